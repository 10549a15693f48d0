"""The counsel on one array: what its calls take today, and what helps without rewriting. Every command asks here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hyperslab.advise.candidate import Candidate
from hyperslab.advise.demand import Demand
from hyperslab.advise.doubts import doubted
from hyperslab.advise.formats import codecs_of
from hyperslab.advise.limits import Limits
from hyperslab.advise.pricing import Measured, Pricer
from hyperslab.advise.results import Counsel
from hyperslab.advise.stored import StoredArray
from hyperslab.advise.tips import tips_of
from hyperslab.advise.traced_demands import SummarizedTrace, traced_array, traced_demand
from hyperslab.advise.usual_reads import encoding_of
from hyperslab.errors import Refused, UsageError
from hyperslab.meant import meant_or_choose
from hyperslab.model.cells import CellCache
from hyperslab.model.hdf5_settings import Hdf5Settings
from hyperslab.model.libraries import LIBRARIES, Layout
from hyperslab.model.predict import Prediction
from hyperslab.model.store_profile import StoreProfile
from hyperslab.storage.chain import PLAIN
from hyperslab.trace.byte_ranges import LAYOUT
from hyperslab.trace.summaries import ArraySummary

MOST_SAMPLED = 8
"""Of so many arrays of a trace, those that took the most time, a sample is decoded."""
ELSEWHERE = "no store profile says what it costs where this file is"


def counsel_on(
    array: StoredArray,
    demands: Sequence[Demand],
    profile: StoreProfile | None,
    limits: Limits | None = None,
    measured: Measured | None = None,
    *,
    obstacle: str = "",
    hdf5: Hdf5Settings | None = None,
) -> Counsel:
    """What the calls to one array take today, and what helps without rewriting.

    Parameters
    ----------
    array : StoredArray
        The array with today's layout.
    demands : Sequence[Demand]
        What is asked of it, with weights.
    profile : StoreProfile | None
        What accesses cost; without one, nothing has a price.
    limits : Limits | None
        What a tip must keep to.
    measured : Measured | None
        Codecs measured on samples of the data. By default, today's is measured, or what is known of it is taken.
    obstacle : str
        Why nothing can have a price, if that is so.
    hdf5 : Hdf5Settings | None
        How the user has set up HDF5, beside what the demands say.

    Returns
    -------
    Counsel
        The price of today, and the tips.
    """
    if measured is None:
        asked = {array.format: [array.encoding]}
        measured = {} if profile is None or obstacle else codecs_of(array, asked, profile, demands)
    pricer = Pricer(profile, list(demands), measured, obstacle, hdf5 or Hdf5Settings())
    today = today_of(array, demands, profile)
    counsel = Counsel(array, list(demands), pricer, limits or Limits(), today, pricer.price(today))
    counsel.tips = tips_of(counsel)
    counsel.now, counsel.doubts, counsel.is_borne_out = doubted(pricer, array, today, counsel.now)
    return counsel


def today_of(array: StoredArray, demands: Sequence[Demand], profile: StoreProfile | None) -> Candidate:
    """Today's layout, read by the library that makes the calls today."""
    made = next((demand for demand in demands if demand.library), None)
    reader = array.library if made is None or made.library is None else made.library
    if profile is not None and (profile.is_far or reader not in profile.libraries):
        reader = "hyperslab"
    nbytes, slots = (made.cache_nbytes, made.cache_slots) if made is not None and reader == "hdf5" else (None, None)
    # A trace of h5py says how large its chunk cache was.
    by_netcdf = array.is_netcdf4 and nbytes is None
    caller = made.caller if made is not None and reader == "hdf5" else ""
    return Candidate(
        array.format, reader, array.layout, array.encoding, nbytes, slots, by_netcdf, caller, is_today=True,
        label="today",
    )  # fmt: skip


def counsels_on(
    one: SummarizedTrace,
    profile: StoreProfile | None,
    *,
    cache: CellCache | None = None,
    hdf5: Hdf5Settings | None = None,
) -> Iterator[tuple[ArraySummary, Counsel | str]]:
    """The counsel on each array of a trace, or why there is none; the array that took most time comes first."""
    for place, summary in enumerate(one.summaries):
        try:
            array = traced_array(summary)
            demand = traced_demand(one, summary, array, 1.0, cache)
            measured: Measured | None = None if place < MOST_SAMPLED else {}
            why = obstacle(summary, profile)
            yield summary, counsel_on(array, [demand], profile, None, measured, obstacle=why, hdf5=hdf5)
        except ValueError as error:  # of ours, or of a trace that was edited
            yield summary, str(error)


def obstacle(summary: ArraySummary, profile: StoreProfile | None) -> str:
    """Why no access to a traced array has a price; nothing if it may have one."""
    if summary.array.layout == LAYOUT:
        return "these are bytes of a file, not elements of an array"
    if not summary.array.shape or 0 in summary.array.shape:
        return "the array has no elements that could be read in parts"
    is_elsewhere = profile is not None and not summary.array.is_local and not profile.is_far
    return ELSEWHERE if is_elsewhere else ""


def predictions(counsel: Counsel, layouts: Sequence[Layout], libraries: Sequence[str] | None) -> list[Prediction]:
    """What the calls take in today's layout and in others, by each library; the fastest first, the unknown last.

    Raises
    ------
    UsageError
        There is no library of such a name.
    Refused
        A library that was named cannot store a layout or make the calls, or none can.
    """
    pricer, today = counsel.pricer, counsel.today
    predicted: list[Prediction] = []
    reasons = []
    profile = pricer.profile
    for name in libraries or ([] if profile is None else profile.libraries):
        if name not in LIBRARIES:
            raise UsageError(f"unknown library {name!r}{meant_or_choose(name, LIBRARIES)}")
        for candidate in _candidates(counsel, layouts, name):
            price = pricer.price(today if candidate.key == today.key else candidate)
            predicted += price.predictions
            if not price.predictions:
                reasons.append(f"{name}, layout {candidate.layout}: {'; '.join(price.unknown)}")
    if reasons and (libraries or not predicted):
        raise Refused("; ".join(reasons))
    return sorted(predicted, key=lambda prediction: prediction.cost.rank)


def _candidates(counsel: Counsel, layouts: Sequence[Layout], library: str) -> list[Candidate]:
    today = counsel.today
    if library == "flat":  # it has one layout, whatever the others do
        whole = Layout(counsel.array.shape, contiguous=True)
        return [replace(today, reader="flat", layout=whole, encoding=PLAIN)]
    mine = replace(today, reader=library)
    if library != "hdf5":
        mine = replace(mine, cache_nbytes=None, cache_slots=None)
    others = [replace(mine, layout=one, encoding=encoding_of(counsel.array, one), is_today=False) for one in layouts]
    return [mine, *others]

"""What would make a recorded program faster without rewriting any data, with predicted seconds if there are prices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from hyperslab.advise.cache_calls import cache_call
from hyperslab.chunk_grid import ceil_div
from hyperslab.model.libraries import Hdf5, HyperslabEngine
from hyperslab.model.store_profile import StoreProfile
from hyperslab.report.trace_prices import ArrayPrices, prices_of
from hyperslab.trace.byte_ranges import LAYOUT
from hyperslab.trace.chunk_touches import decode_count
from hyperslab.trace.served import served_share
from hyperslab.trace.summaries import ArraySummary, capacity_of
from hyperslab.trace.trace import Trace

MIB = 1 << 20
MOST_CACHE_NBYTES = 8 << 30
WORTH = 0.1
"""Advice is given if it saves at least this share of the decoded chunks, or serves this share of the time."""
WITHOUT_LIBHDF5 = ("POSIX", "Darshan")
"""Recorders that see bytes: whether the program has a libhdf5 is not known."""


@dataclass(frozen=True)
class Advice:
    """One thing to do, for one array."""

    array: str
    what: str
    call: str
    decoded_now: int | None = None
    decoded_then: int | None = None
    seconds_now: float | None = None
    """Predicted; None if it is unknown."""
    seconds_then: float | None = None
    priced_count: int | None = None
    """Of how many accesses these are the seconds, if not of all."""
    is_elsewhere: bool = False
    """Whether the seconds are unknown because the file is not where the store profile was measured."""

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for JSON."""
        return asdict(self)


def advice_of(
    trace: Trace,
    summaries: Sequence[ArraySummary],
    trained: StoreProfile | None,
    known: Sequence[ArrayPrices] | None = None,
) -> list[Advice]:
    """What to do, for each array that has reads; what saves most comes first, if that is known."""
    found = []
    for one, prices in zip(summaries, known or prices_of(trace, summaries, trained), strict=True):
        if one.read_count:
            all_advice = (_cache(one, prices), _order(one, prices), _engine(trace, one, prices))
            found += [replace(advice, is_elsewhere=prices.is_elsewhere) for advice in all_advice if advice]
    return sorted(filter(_gains, found), key=lambda advice: -_saved(advice))


def _gains(advice: Advice) -> bool:
    """Whether the advice saves time, or nobody knows whether it does."""
    return None in (advice.seconds_now, advice.seconds_then) or _saved(advice) > 0


def _saved(advice: Advice) -> float:
    if advice.seconds_now is None or advice.seconds_then is None:
        return 0.0
    return advice.seconds_now - advice.seconds_then


def _cache(one: ArraySummary, prices: ArrayPrices) -> Advice | None:
    """A chunk cache that holds what is needed again."""
    array = one.array
    if not isinstance(prices.library, Hdf5) or one.distances is None or not array.chunk_nbytes:
        return None
    capacity = capacity_of(array)
    if capacity is None or one.decoded_count is None or one.touched_count is None:
        return None
    missed = one.distances[one.distances >= capacity]
    if len(missed) < WORTH * one.decoded_count:
        return None
    needed = int(np.quantile(missed, 0.95, method="higher")) + 1
    nbytes = ceil_div(needed * array.chunk_nbytes, MIB) * MIB
    if nbytes > MOST_CACHE_NBYTES:
        return None
    slots = _next_prime(max(521, 10 * needed))
    then = decode_count(one.distances, nbytes // array.chunk_nbytes)
    larger = replace(prices.library, chunk_cache_nbytes=nbytes, chunk_cache_slots=slots)
    size = f"{nbytes // MIB} MiB"
    return Advice(
        array.title,
        f"Open the file with a chunk cache of {size}: {one.decoded_count:,} chunks were decoded, {then:,} would be.",
        cache_call(array.library, array.file, array.array, nbytes, slots),
        one.decoded_count,
        then,
        prices.seconds(prices.library),
        prices.seconds(larger),
        prices.first_count,
    )


def _order(one: ArraySummary, prices: ArrayPrices) -> Advice | None:
    """The same selections, ordered by the chunks that they touch."""
    now, then = one.decoded_count, one.sorted_decoded_count
    if now is None or then is None or now - then < WORTH * now or one.write_count:
        return None
    lengths = " × ".join(map(str, one.array.chunks or ()))
    return Advice(
        one.array.title,
        f"Order the loops by chunks of {lengths}, so that all reads of a chunk follow each other: {now:,} chunks were "
        f"decoded, {then:,} would be.",
        "",
        now,
        then,
        prices.seconds(prices.library),
        prices.seconds(prices.library, one.sorted_rows),
        prices.first_count,
    )


def _engine(trace: Trace, one: ArraySummary, prices: ArrayPrices) -> Advice | None:
    """The same reads by our own engine."""
    array = one.array
    if array.library == "hyperslab" or array.layout == LAYOUT or one.write_count:
        return None
    program = " ".join(map(str, trace.program.get("arguments", ["PROGRAM"])))
    if array.library == "zarr":
        call = 'zarr.config.set({"codec_pipeline.path": "hyperslab.archive.zarr_pipeline.Pipeline"})'
        what = "Let our engine decode, with all cores, by one line before the program opens the array (zarr-python 3)."
    elif array.library not in WITHOUT_LIBHDF5 and find_spec("hyperslab.running") is not None:
        if served_share(trace, one) < WORTH:
            return None
        call, what = (
            f"hyperslab run -- {program}",
            "Let our engine serve the reads, with all cores, without any change.",
        )
    else:
        call = f"hyperslab.open({array.file!r})[{array.array!r}]"
        what = "Read the array with our engine, which uses all cores."
    now, then = prices.seconds(prices.library), prices.seconds(HyperslabEngine())
    return Advice(array.title, what, call, None, None, now, then, prices.first_count)


def _next_prime(number: int) -> int:
    while any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
        number += 1
    return number

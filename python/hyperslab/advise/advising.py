"""Advice for one array: what helps without rewriting it, a ranked list of layouts, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hyperslab.advise.candidate import NETCDF_UNKNOWN, Candidate
from hyperslab.advise.conversion import conversion_cost
from hyperslab.advise.counsel import counsel_on
from hyperslab.advise.defaults import default_chunks
from hyperslab.advise.demand import Demand
from hyperslab.advise.formats import reader_needs
from hyperslab.advise.limits import Limits
from hyperslab.advise.price import Price
from hyperslab.advise.pricing import FINAL_TOUCHES, SEARCH_TOUCHES, Pricer, gain
from hyperslab.advise.reasons import reason_of
from hyperslab.advise.results import ArrayAdvice, Option
from hyperslab.advise.search import Search
from hyperslab.advise.stored import StoredArray
from hyperslab.advise.verdict import AS_GOOD, choose, in_order
from hyperslab.advise.with_run import SERVED, may_run, plain_reader, under_run, without_run
from hyperslab.errors import Refused
from hyperslab.model.codec_sample import MeasuredCodec
from hyperslab.model.store_profile import StoreProfile
from hyperslab.storage.chain import PLAIN, CodecChain

# Of each file format and reader, so many layouts are priced with all calls.
KEPT = 3
WORTH_ANOTHER_ORDER = 1.2
ONLY_WRITES = (
    "these calls only write: if your program makes the array anew, ask for this layout where it creates it, because "
    "converting helps only what is there already"
)
LIBRARY_NAMES = {"hdf5": "h5py", "netcdf4": "netCDF4", "zarr3": "zarr-python"}


def advise(
    array: StoredArray,
    demands: Sequence[Demand],
    profile: StoreProfile,
    limits: Limits,
    measured: Mapping[tuple[str, CodecChain], MeasuredCodec],
    encodings: Mapping[str, Sequence[CodecChain]],
    *,
    progress: Callable[[str], None] = lambda _: None,
) -> ArrayAdvice:
    """Search layouts for an array and rank them.

    Parameters
    ----------
    array : StoredArray
        The array with today's layout.
    demands : Sequence[Demand]
        What is asked of it, with weights.
    profile : StoreProfile
        What accesses cost where the file will be.
    limits : Limits
        What the advice must keep to.
    measured : Mapping[tuple[str, CodecChain], MeasuredCodec]
        Codecs measured on samples of the data, by the cost model's library.
    encodings : Mapping[str, Sequence[CodecChain]]
        The codecs to consider for each file format.
    progress : Callable[[str], None]
        Called with what is searched.

    Returns
    -------
    ArrayAdvice
        Tips, the ranking, and the verdict.

    Raises
    ------
    UsageError
        The limits contradict each other or the array.
    Refused
        Today's reads have no price, or no layout keeps to the limits.
    """
    limits.check(array.shape, array.dtype.itemsize)
    counsel = counsel_on(array, demands, profile, limits, measured)
    pricer, today, now = counsel.pricer, counsel.today, counsel.now
    ratios: dict[tuple[str, CodecChain], float | None] = {key: codec.ratio for key, codec in measured.items()}
    search = Search(pricer, limits, counsel.memory_nbytes, ratios, today, progress)
    if now.unknown:
        raise Refused(f"{array.title}: today's layout has no price: {'; '.join(now.unknown)}")
    defaults = default_chunks(array.shape, array.dtype, encodings)
    seeds = list(dict.fromkeys([*search.expected_shapes(), *defaults.values(), *array.cut]))
    for format_name, listed in encodings.items():
        for reader in _readers(format_name, profile, demands):
            search.family(format_name, reader, listed, seeds)
    _other_orders(search, array)
    considered = len({one.key for one in search.found.values()})
    if not considered and limits != Limits():
        broken = ", ".join(f"{name} ({count} layouts)" for name, count in search.refused.items())
        raise Refused(f"{array.title}: no layout keeps to all limits; these limits exclude layouts: {broken}")
    rest = _finalists(search, array, measured, encodings, defaults)
    options = [_option(array, search, one, today, now) for one in rest]
    mine = _option(array, search, today, today, now)
    ranked = sorted([mine, *options], key=lambda option: option.price.rank)
    notes = list(dict.fromkeys([*(note for demand in demands for note in demand.notes), *counsel.doubts]))
    if now.is_sampled:
        notes.append("the calls touch so many chunks that stretches of them are priced, and multiplied")
    if all(demand.only_writes for demand in demands):
        notes.append(ONLY_WRITES)
    if profile.netcdf4 is None and any(one.candidate.calling_library == "netCDF4" for one in ranked):
        notes.append(NETCDF_UNKNOWN)
    advice = ArrayAdvice(
        array, list(demands), mine, counsel.tips, ranked, mine, "", considered, search.refused, measured, notes,
        append_axis=limits.append_axis, counsel=counsel,
    )  # fmt: skip
    advice.options = in_order(advice.options, advice)
    choose(advice, profile)
    return advice


def _readers(format_name: str, profile: StoreProfile, demands: Sequence[Demand]) -> list[str]:
    """The libraries that read a format, as far as they are calibrated: the program's own, and ours under `run`."""
    own = plain_reader(format_name, demands, list(profile.libraries), is_far=profile.is_far)
    if own is None or (profile.is_far and format_name not in SERVED) or (own == "hyperslab" and _writes(demands)):
        return []
    is_run = own == "hdf5" and "hyperslab" in profile.libraries and may_run(demands)
    return [own, "hyperslab"] if is_run else [own]


def _writes(demands: Sequence[Demand]) -> bool:
    return any(demand.writes for demand in demands)


def _other_orders(search: Search, array: StoredArray) -> None:
    """The axes in another order, where the dimensions have names by which a program can ask."""
    if array.dims is None or search.limits.append_axis is not None:
        return
    readers = {one.reader for one in search.found.values()}
    for reader in sorted(readers):
        mine = [one for one in search.found.values() if one.reader == reader and one.order is None]
        search.orders(search.best_of(mine, 1))


def _finalists(
    search: Search,
    array: StoredArray,
    measured: Mapping[tuple[str, CodecChain], MeasuredCodec],
    encodings: Mapping[str, Sequence[CodecChain]],
    defaults: Mapping[str, tuple[int, ...]],
) -> list[Candidate]:
    """The best of each format and reader, the smallest that is not slow, and the libraries' defaults."""
    families: dict[tuple[str, str], list[Candidate]] = {}
    for one in search.found.values():
        families.setdefault((str(one.format), one.reader), []).append(one)
    chosen: list[Candidate] = []
    for listed in families.values():
        best = _distinct(search, listed)
        # A file that takes less space may be worth a little time: they make the Pareto figure.
        encoded = [one for one in listed if one.layout.ratio is not None]
        plain = [one for one in listed if one.layout.ratio is None]
        chosen += [*best, *(_distinct(search, part)[0] for part in (encoded, plain) if part)]
    for name, chunk in defaults.items():
        for (format_name, reader), listed in families.items():
            if format_name == name and reader != "hyperslab":
                like = search.best_of([one for one in listed if one.order is None], 1)
                is_had = array.encoding in encodings[name] and (reader, array.encoding) in measured
                encoding = array.encoding if is_had else PLAIN
                codec = measured.get((reader, encoding))
                if like:
                    usual = search.today.chunk_cache if reader == "hdf5" else (None, None)
                    made = replace(like[0], order=None).with_cache(usual).with_chunks(chunk)
                    made = made.with_encoding(encoding, None if codec is None else codec.ratio)
                    chosen.append(replace(made, label=f"{LIBRARY_NAMES[name]}'s default chunks"))
    return _rows(chosen, search, measured)


def _rows(chosen: Sequence[Candidate], search: Search, measured: Mapping[tuple[str, CodecChain], MeasuredCodec]
          ) -> list[Candidate]:  # fmt: skip
    """A row for each file and chunk cache, read without `hyperslab run`: that is the second column of every row."""
    libraries = _libraries(search.pricer)
    rows: dict[object, Candidate] = {}
    for one in chosen:
        own = plain_reader(one.format, search.pricer.demands, libraries, is_far=search.pricer.is_far)
        plain = one if own is None else without_run(one, search.today, own)
        codec = measured.get((plain.reader, plain.encoding))
        if plain is not one and codec is not None and plain.layout.ratio is not None:
            plain = replace(plain, layout=replace(plain.layout, ratio=codec.ratio))
        for each in _with_own_cache(plain, search):
            rows.setdefault((each.file_key, each.cache_nbytes, each.cache_slots), each)
    return list(rows.values())


def _with_own_cache(one: Candidate, search: Search) -> list[Candidate]:
    """A row, and the same file as the traced program reads it as it is, if the row has another chunk cache."""
    if _changes_program(one, search.today, search.pricer.demands) is None:
        return [one]
    return [one.with_cache(search.today.chunk_cache), one]


def _distinct(search: Search, listed: Sequence[Candidate]) -> list[Candidate]:
    """The best distinct files of some candidates; of nearly equal ones, the one that asks for least."""
    ranked = search.best_of(listed, len(listed))
    costs = {one.key: search.pricer.price(one, SEARCH_TOUCHES).seconds for one in ranked}
    files: dict[object, Candidate] = {}
    for one in ranked:
        if len(files) == KEPT:
            break
        usual = [other for other in ranked if other.order is None]
        # Another order must be worth changing the program.
        if one.order is not None and usual and costs[one.key] * WORTH_ANOTHER_ORDER > costs[usual[0].key]:
            continue
        alike = [
            each for each in ranked if each.file_key == one.file_key and costs[each.key] <= costs[one.key] * AS_GOOD
        ]
        files.setdefault(one.file_key, min(alike, key=lambda each: each.cache_nbytes or 0))
    return list(files.values())


def _option(array: StoredArray, search: Search, one: Candidate, today: Candidate, now: Price) -> Option:
    pricer, limits = search.pricer, search.limits
    price = pricer.price(one, FINAL_TOUCHES)
    by_run = under_run(one, pricer.demands) if "hyperslab" in _libraries(pricer) else None
    if by_run is not None and search.broken_limit(by_run) == "--memory":
        by_run = None
    run_price = None if by_run is None else pricer.price(by_run, FINAL_TOUCHES)
    readers = (today.reader, "hyperslab")
    shape = array.shape if one.order is None else tuple(array.shape[axis] for axis in one.order)
    nbytes = array.stored_nbytes if one.is_today else one.stored_nbytes(shape, array.dtype.itemsize)
    files = array.file_count if one.is_today else one.file_count(shape)
    cost = None if limits.price_per_request is None else limits.price_per_request * price.requests
    needed = None
    if not one.is_today:
        needed = reader_needs(one.format, one.encoding, array, pricer.demands, is_far=pricer.is_far)
    return Option(
        one,
        price,
        None if one.is_today else gain(pricer.profile, now, price, (today.reader, one.reader)),
        nbytes * array.count,
        files * array.count if one.format.startswith("zarr") else files,
        None if one.is_today else conversion_cost(array, pricer, today, one).times(array.count),
        request_price=cost,
        reason="" if one.is_today else reason_of(pricer.demands, today, one, needed),
        breaks=None if one.is_today else search.broken_limit(one),
        needs=needed,
        refused=_refused(one, needed, limits, grows=array.grows) or _changes_program(one, today, pricer.demands),
        by_run=by_run,
        run_price=run_price,
        run_gain=None if run_price is None else gain(pricer.profile, now, run_price, readers),
    )


def _changes_program(one: Candidate, today: Candidate, demands: Sequence[Demand]) -> str | None:
    """What a traced program would have to do in another way; None if it can read a layout as it is."""
    is_traced = any(demand.summary is not None for demand in demands)
    if not is_traced or one.is_today or one.reader != "hdf5" or one.chunk_cache == today.chunk_cache:
        return None
    return "the program would have to give HDF5 another chunk cache"


def _libraries(pricer: Pricer) -> list[str]:
    return [] if pricer.profile is None else list(pricer.profile.libraries)


def _refused(one: Candidate, needed: str | None, limits: Limits, *, grows: bool = False) -> str | None:
    """Why a layout is shown, but never advised; None if it can be."""
    if grows and one.layout.contiguous:
        return "the array can grow today, and in one piece it could not"
    if one.order is not None:
        return "convert keeps the order of axes"
    if needed is not None and limits.codecs != "any":
        return f"its readers need {needed}: --codecs any allows it"
    return None

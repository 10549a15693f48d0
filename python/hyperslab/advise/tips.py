"""What makes the calls faster without rewriting any data, with the exact call. `TIPS` lists all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from keyword import iskeyword

import numpy as np

from hyperslab._core import reuse_distances
from hyperslab.advise.candidate import MIB, Candidate
from hyperslab.advise.demand import Demand, chunk_touches, in_chunk_order
from hyperslab.advise.price import Price
from hyperslab.advise.pricing import gain
from hyperslab.advise.results import Counsel
from hyperslab.advise.search import Search, cache_slots
from hyperslab.advise.stored import StoredArray
from hyperslab.advise.tip import Tip
from hyperslab.chunk_grid import ceil_div
from hyperslab.quantities import set_nbytes_text
from hyperslab.trace.byte_ranges import LAYOUT
from hyperslab.trace.chunk_touches import decode_count
from hyperslab.trace.summaries import capacity_of

# A tip must save at least this share of the predicted time to be worth a line; without a price, this share of the
# decoded chunks, or serve this share of the time.
WORTH, WORTH_COUNTED = 0.05, 0.1
MOST_CACHE_NBYTES = 8 << 30
# Recorders that see bytes: whether the program has a libhdf5 is not known.
WITHOUT_LIBHDF5 = ("POSIX", "Darshan")
ZARR_LINE = 'zarr.config.set({"codec_pipeline.path": "hyperslab.archive.zarr_pipeline.Pipeline"})'


def tips_of(counsel: Counsel) -> list[Tip]:
    """What helps: first what opens an array or a file once, which needs nothing else; then the fastest first.

    What has no price comes last.
    """
    tips = [make(counsel) for make in TIPS]
    return sorted((tip for tip in tips if tip is not None), key=lambda tip: (not tip.opens_once, tip.price.rank))


def open_tip(counsel: Counsel) -> Tip | None:
    """The array, or its file, opened once: each time that an array is closed, HDF5 forgets its chunks."""
    today, pricer = counsel.today, counsel.pricer
    again = [demand for demand in counsel.demands if demand.is_opened_again]
    if not again:
        return None
    steps = {place: demand.kept_open() for place, demand in enumerate(counsel.demands)}
    price = pricer.reordered(today, steps)
    decoded = _decoded_once(counsel) if today.reader == "hdf5" else None
    if price.unknown or counsel.now.unknown:
        saves = decoded is None or decoded[0] - decoded[1] >= WORTH_COUNTED * decoded[0]
    else:
        saves = _is_worth(price, counsel.now)
    if not saves:
        return None
    is_file = any(
        step.reopens and place not in one.starts for one in again for place, step in enumerate(one.steps[1:], 1)
    )
    what = f"open the {'file' if is_file else 'array'} once, before the loop"
    call = "\n".join(dict.fromkeys(open_call(one.caller, counsel.file, counsel.array.name, is_file) for one in again))
    over = gain(pricer.profile, counsel.now, price, (today.reader, today.reader))
    return Tip(what, call, price, over, None, decoded, opens_once=True)


def _decoded_once(counsel: Counsel) -> tuple[int, int] | None:
    """The chunks that are decoded now, and if the array is opened once; None if no trace says it."""
    seen = [demand.summary for demand in counsel.demands]
    capacities = [capacity_of(one.array) for one in seen if one is not None]
    if len(capacities) < len(seen) or None in capacities:
        return None
    pairs = [
        (one.distances, one.kept_distances, capacity)
        for one, capacity in zip(seen, capacities, strict=True)
        if one is not None and one.distances is not None and one.kept_distances is not None and capacity is not None
    ]
    now = sum(decode_count(distances, capacity) for distances, _, capacity in pairs)
    then = sum(decode_count(kept, capacity) for _, kept, capacity in pairs)
    return (now, then) if pairs else None


def open_call(library: str, file: str, array: str, is_file: bool) -> str:
    """What comes before the loop, for a library as a trace names it."""
    opened = "your_open_file" if file.startswith("<") else repr(file)
    path, name = array.strip("/"), _identifier(array)
    if library == "HDF5":
        first = f"hid_t file = H5Fopen({_quoted(file)}, H5F_ACC_RDONLY, H5P_DEFAULT); " if is_file else ""
        return f"{first}hid_t {name} = H5Dopen(file, {_quoted(array)}, H5P_DEFAULT);"
    if library == "zarr":
        return f"{name} = zarr.open_array({opened}, path={path!r})"
    first, behind, found = {
        "netCDF": (f"netCDF4.Dataset({opened})", f"data = xarray.open_dataset({opened})", f"file[{path!r}]"),
        "PyTables": (f"tables.open_file({opened})", f"store = pandas.HDFStore({opened})", f"file.get_node({array!r})"),
    }.get(library, (f"h5py.File({opened})", "", f"file[{path!r}]"))
    line = f"{f'file = {first}; ' if is_file else ''}{name} = {found}"
    return f"{line}  # or {behind}" if is_file and behind else line


def _identifier(array: str) -> str:
    """A name for a variable that holds the array."""
    name = re.sub(r"\W+", "_", array.rstrip("/").rpartition("/")[2]).strip("_")
    return name if name.isidentifier() and not iskeyword(name) and name != "file" else "array"


def _quoted(text: str) -> str:
    return f'"{text}"'


def cache_tip(counsel: Counsel) -> Tip | None:
    """A larger chunk cache: the smallest that is nearly as good as the best.

    It keeps nothing of an array that is closed, so it is for a program that opens the array once.
    """
    today, demands = counsel.today, counsel.demands
    is_cut = not today.layout.contiguous and 0 not in counsel.array.shape
    if today.reader != "hdf5" or not is_cut or any(demand.only_writes for demand in demands):
        return None
    is_again = any(demand.is_opened_again for demand in demands)
    demands = [replace(demand, steps=demand.kept_open()) for demand in demands] if is_again else demands
    pricer = replace(counsel.pricer, demands=demands, known={}) if is_again else counsel.pricer
    chunk_nbytes = today.chunk_nbytes(counsel.pricer.element_nbytes)
    distances = [_distances(demand, today) for demand in demands]
    capacity = _capacity(today, chunk_nbytes)
    now = sum(decode_count(one, capacity) for one in distances)
    missed = np.concatenate([one[one >= capacity] for one in distances])
    if len(missed) < WORTH_COUNTED * now:
        return None
    needed = int(np.quantile(missed, 0.95, method="higher")) + 1
    nbytes = ceil_div(needed * chunk_nbytes, MIB) * MIB
    exact = replace(today, cache_nbytes=nbytes, cache_slots=cache_slots(nbytes, chunk_nbytes))
    search = Search(pricer, counsel.limits, counsel.memory_nbytes, {}, today)
    # A smaller cache is worth a price only if it decodes about as few chunks.
    least = sum(decode_count(one, needed) for one in distances) * (1 + WORTH)
    smaller = [one for one in search.larger_caches(today) if capacity * chunk_nbytes < (one.cache_nbytes or 0) < nbytes]
    able = [one for one in smaller if sum(decode_count(d, _capacity(one, chunk_nbytes)) for d in distances) <= least]
    sizes = [*able, *([exact] if nbytes <= MOST_CACHE_NBYTES else smaller[-1:])]
    best = _smallest([(one, pricer.price(one)) for one in sizes if not search.broken_limit(one)], pricer.price(today))
    if best is None:
        return None
    chosen, price = best
    size, slots = chosen.cache_nbytes or 0, chosen.cache_slots or 0
    then = sum(decode_count(one, size // max(chunk_nbytes, 1)) for one in distances)
    call_of = cache_call if not is_again else cache_call_once
    calls = [call_of(caller, counsel.file, counsel.array.name, size, slots) for caller in _callers(counsel)]
    what = f"open the file with a chunk cache of {set_nbytes_text(size)}"
    over = gain(pricer.profile, counsel.now, price, ("hdf5", "hdf5"))
    call = "\n".join(dict.fromkeys(calls))
    if not is_again:
        return Tip(what, call, price, over, chosen, (now, then))
    decoded = _decoded_once(counsel)
    what = f"open the array once, before the loop, and {what.removeprefix('open ')}"
    return Tip(what, call, price, over, None, (now if decoded is None else decoded[0], then), opens_once=True)


def _smallest(priced: Sequence[tuple[Candidate, Price]], now: Price) -> tuple[Candidate, Price] | None:
    """The first that is nearly as good as the best; without prices, the last, which holds all that is needed again."""
    known = [(one, price) for one, price in priced if not price.unknown]
    if not known or now.unknown:
        return priced[-1] if priced else None
    least = min(price.seconds for _, price in known)
    if least > now.seconds * (1 - WORTH):
        return None
    return next((one, price) for one, price in known if price.seconds <= least * (1 + WORTH))


def _distances(demand: Demand, today: Candidate) -> np.ndarray:
    """How many other chunks were touched since a chunk was touched last, if the array stays open.

    The trace says so, or the calls do.
    """
    summary = demand.summary
    if summary is not None and summary.kept_distances is not None and summary.array.chunks == today.layout.chunk_shape:
        return summary.kept_distances
    return reuse_distances(chunk_touches(demand, today.layout.chunk_shape).chunks)


def _capacity(today: Candidate, chunk_nbytes: int) -> int:
    """How many chunks today's cache holds."""
    library = today.library(today.layout.chunk_shape)
    nbytes = library.chunk_cache_nbytes  # type: ignore[union-attr] # it is HDF5
    return int(min(nbytes // max(chunk_nbytes, 1), library.chunk_cache_slots))  # type: ignore[union-attr]


def _callers(counsel: Counsel) -> list[str]:
    """The libraries of the traced programs; without a trace, the one that files of this format are made with."""
    traced = [demand.caller for demand in counsel.demands if demand.library == "hdf5"]
    return traced or ["netCDF" if counsel.array.format == "netcdf4" else "h5py"]


def cache_call(library: str, file: str, array: str, nbytes: int, slots: int) -> str:
    """The call, for a library as a trace names it: h5py, netCDF, PyTables, or HDF5 for any other program."""
    opened = "your_open_file" if file.startswith("<") else repr(file)
    if library == "netCDF":
        return f"netCDF4.Dataset({opened})[{array!r}].set_var_chunk_cache({nbytes}, {slots})"
    if library == "PyTables":
        return f"tables.open_file({opened}, CHUNK_CACHE_SIZE={nbytes}, CHUNK_CACHE_NELMTS={slots})"
    if library == "HDF5":
        return f"H5Pset_cache(properties, 0, {slots}, {nbytes}, 0.75) before H5Fopen({opened}, ..., properties)"
    return f"h5py.File({opened}, rdcc_nbytes={nbytes}, rdcc_nslots={slots})"


def cache_call_once(library: str, file: str, array: str, nbytes: int, slots: int) -> str:
    """The same, and the array opened once, before the loop."""
    call, line = cache_call(library, file, array, nbytes, slots), open_call(library, file, array, is_file=False)
    if library == "netCDF":
        return f"{line}; {_identifier(array)}.set_var_chunk_cache({nbytes}, {slots})"
    return f"{call}; {line}" if library == "HDF5" else f"file = {call}; {line}"


def engine_tip(counsel: Counsel) -> Tip | None:
    """Our engine over the file as it is."""
    today, demands = counsel.today, counsel.demands
    if "hyperslab" in (today.reader, *(demand.library for demand in demands)):
        return None
    seen = [demand.summary for demand in demands if demand.summary is not None]
    if any(demand.writes for demand in demands) or any(one.array.layout == LAYOUT for one in seen):
        return None
    ours = replace(today, reader="hyperslab", cache_nbytes=None, cache_slots=None)
    price = counsel.pricer.price(ours)
    if not _is_worth(price, counsel.now):
        return None
    asked = _engine_call(counsel.file, counsel.array, demands)
    if asked is None:
        return None
    return Tip(*asked, price, gain(counsel.pricer.profile, counsel.now, price, (today.reader, "hyperslab")), ours)


def _engine_call(file: str, array: StoredArray, demands: Sequence[Demand]) -> tuple[str, str] | None:
    """What to do, and the call for the program's library; None if `hyperslab run` would serve too little."""
    callers = [demand.caller for demand in demands]
    if "zarr" in callers or array.library == "zarr":
        return "let our engine decode, by one line before your program opens the array (zarr-python 3)", ZARR_LINE
    if (
        array.library != "hdf5"
        or any(one in WITHOUT_LIBHDF5 for one in callers)
        or find_spec("hyperslab.running") is None
    ):
        return "read it with our engine, which uses all cores", f"hyperslab.open({file!r})[{array.name!r}]"
    shares = [demand.served_share for demand in demands if demand.served_share is not None]
    if shares and max(shares) < WORTH_COUNTED:
        return None
    what = "run your program with `hyperslab run`, which reads with our engine, without any change"
    return what, f"hyperslab run -- {demands[0].program}"


def order_tip(counsel: Counsel) -> Tip | None:
    """The same calls in the order of the chunks."""
    today, demands, pricer = counsel.today, counsel.demands, counsel.pricer
    if today.layout.contiguous or any(demand.writes or len(demand.steps) < 2 for demand in demands):
        return None
    decoded = _decoded_in_order(demands)
    if decoded is not None and decoded[0] - decoded[1] < WORTH_COUNTED * decoded[0]:
        return None
    chunk = today.layout.chunk_shape
    steps = {place: in_chunk_order(demand, chunk) for place, demand in enumerate(demands)}
    price = pricer.reordered(today, steps)
    if not _is_worth(price, counsel.now) or (price.unknown and decoded is None):
        return None
    lengths = " × ".join(map(str, chunk))
    what = f"order the loops by chunks of {lengths}, so that all reads of a chunk follow each other"
    return Tip(what, "", price, gain(pricer.profile, counsel.now, price, (today.reader, today.reader)), None, decoded)


def _decoded_in_order(demands: Sequence[Demand]) -> tuple[int, int] | None:
    """The chunks that are decoded now, and in the order of the chunks; None if no trace says it."""
    seen = [demand.summary for demand in demands]
    pairs = [(one.decoded_count, one.sorted_decoded_count or one.decoded_count) for one in seen if one is not None]
    if len(pairs) < len(seen) or any(now is None for now, _ in pairs):
        return None
    return sum(now or 0 for now, _ in pairs), sum(then or 0 for _, then in pairs)


def _is_worth(price: Price, now: Price) -> bool:
    """Whether it saves enough time, or nobody knows what it takes."""
    return bool(price.unknown or now.unknown) or price.seconds <= now.seconds * (1 - WORTH)


TIPS: tuple[Callable[[Counsel], Tip | None], ...] = (open_tip, cache_tip, engine_tip, order_tip)

"""What makes the calls faster without rewriting any data, with the exact call. `TIPS` lists all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec

import numpy as np

from hyperslab.advise.candidate import MIB, Candidate
from hyperslab.advise.demand import Demand, chunk_touches, in_chunk_order
from hyperslab.advise.price import Price
from hyperslab.advise.pricing import gain
from hyperslab.advise.results import Counsel
from hyperslab.advise.search import Search, cache_slots
from hyperslab.advise.stored import StoredArray
from hyperslab.advise.tip import Tip
from hyperslab.chunk_grid import ceil_div
from hyperslab.trace.byte_ranges import LAYOUT
from hyperslab.trace.chunk_touches import decode_count, reuse_distances

# A tip must save at least this share of the predicted time to be worth a line; without a price, this share of the
# decoded chunks, or serve this share of the time.
WORTH, WORTH_COUNTED = 0.05, 0.1
MOST_CACHE_NBYTES = 8 << 30
# Recorders that see bytes: whether the program has a libhdf5 is not known.
WITHOUT_LIBHDF5 = ("POSIX", "Darshan")
ZARR_LINE = 'zarr.config.set({"codec_pipeline.path": "hyperslab.archive.zarr_pipeline.Pipeline"})'


def tips_of(counsel: Counsel) -> list[Tip]:
    """What helps, the fastest first; what has no price comes last."""
    tips = [make(counsel) for make in TIPS]
    return sorted((tip for tip in tips if tip is not None), key=lambda tip: tip.price.rank)


def cache_tip(counsel: Counsel) -> Tip | None:
    """A larger chunk cache: the smallest that is nearly as good as the best."""
    today, demands = counsel.today, counsel.demands
    is_cut = not today.layout.contiguous and 0 not in counsel.array.shape
    if today.reader != "hdf5" or not is_cut or any(demand.only_writes for demand in demands):
        return None
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
    search = Search(counsel.pricer, counsel.limits, counsel.memory_nbytes, {}, today)
    # A smaller cache is worth a price only if it decodes about as few chunks.
    least = sum(decode_count(one, needed) for one in distances) * (1 + WORTH)
    smaller = [one for one in search.larger_caches(today) if capacity * chunk_nbytes < (one.cache_nbytes or 0) < nbytes]
    able = [one for one in smaller if sum(decode_count(d, _capacity(one, chunk_nbytes)) for d in distances) <= least]
    sizes = [*able, *([exact] if nbytes <= MOST_CACHE_NBYTES else smaller[-1:])]
    best = _smallest([(one, counsel.pricer.price(one)) for one in sizes if not search.broken_limit(one)], counsel.now)
    if best is None:
        return None
    chosen, price = best
    size, slots = chosen.cache_nbytes or 0, chosen.cache_slots or 0
    then = sum(decode_count(one, size // max(chunk_nbytes, 1)) for one in distances)
    calls = [cache_call(caller, counsel.file, counsel.array.name, size, slots) for caller in _callers(counsel)]
    what = f"open the file with a chunk cache of {size // MIB} MiB"
    over = gain(counsel.pricer.profile, counsel.now, price, ("hdf5", "hdf5"))
    return Tip(what, "\n".join(dict.fromkeys(calls)), price, over, chosen, (now, then))


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
    """How many other chunks were touched since a chunk was touched last: what the trace says, or the calls do."""
    summary = demand.summary
    if summary is not None and summary.distances is not None and summary.array.chunks == today.layout.chunk_shape:
        return summary.distances
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


TIPS: tuple[Callable[[Counsel], Tip | None], ...] = (cache_tip, engine_tip, order_tip)

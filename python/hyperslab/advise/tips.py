"""What makes the calls faster without rewriting any data, with the exact call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hyperslab.advise.cache_calls import cache_call
from hyperslab.advise.candidate import MIB, Candidate
from hyperslab.advise.demand import Demand, in_chunk_order
from hyperslab.advise.pricing import Price, Pricer, gain
from hyperslab.advise.results import Tip
from hyperslab.advise.search import Search
from hyperslab.advise.stored import StoredArray

# A tip must save at least this share of the predicted time to be worth a line.
WORTH = 0.05


def cache_tip(array: StoredArray, pricer: Pricer, search: Search, today: Candidate, now: Price) -> Tip | None:
    """A larger chunk cache, the smallest that is nearly as good as the best."""
    if today.reader != "hdf5" or today.layout.contiguous:
        return None
    priced = [(one, pricer.price(one)) for one in search.larger_caches(today) if not search.broken_limit(one)]
    known = [(one, price) for one, price in priced if not price.unknown]
    if not known:
        return None
    least = min(price.seconds for _, price in known)
    if least > now.seconds * (1 - WORTH):
        return None
    chosen, price = next((one, price) for one, price in known if price.seconds <= least * (1 + WORTH))
    what = f"open it with a chunk cache of {(chosen.cache_nbytes or 0) // MIB} MiB"
    sizes = chosen.cache_nbytes or 0, chosen.cache_slots or 0
    calls = [cache_call(caller, array.file, array.name, *sizes) for caller in _callers(array, pricer.demands)]
    call = "\n".join(dict.fromkeys(calls))
    return Tip(what, call, price, gain(pricer.profile, now, price, ("hdf5", "hdf5")), chosen)


def _callers(array: StoredArray, demands: Sequence[Demand]) -> list[str]:
    """The libraries of the traced programs; without a trace, the one that files of this format are made with."""
    traced = [demand.caller for demand in demands if demand.library == "hdf5"]
    return traced or ["netCDF" if array.format == "netcdf4" else "h5py"]


def engine_tip(array: StoredArray, pricer: Pricer, today: Candidate, now: Price) -> Tip | None:
    """Our engine over the file as it is."""
    if today.reader == "hyperslab" or "hyperslab" not in pricer.profile.libraries:
        return None
    ours = replace(today, reader="hyperslab", cache_nbytes=None, cache_slots=None)
    price = pricer.price(ours)
    if price.unknown or price.seconds > now.seconds * (1 - WORTH):
        return None
    call = "hyperslab run -- python your_program.py"
    what = "run your program with `hyperslab run`, which reads with our engine"
    if today.reader != "hdf5":
        call, what = f"hyperslab.open({array.file!r})[{array.name!r}]", "read it with our engine"
    return Tip(what, call, price, gain(pricer.profile, now, price, (today.reader, "hyperslab")), ours)


def order_tip(pricer: Pricer, today: Candidate, now: Price) -> Tip | None:
    """The same calls in the order of the chunks."""
    if today.layout.contiguous or any(demand.writes or len(demand.steps) < 2 for demand in pricer.demands):
        return None
    chunk = today.layout.chunk_shape
    steps = {place: in_chunk_order(demand, chunk) for place, demand in enumerate(pricer.demands)}
    price = pricer.reordered(today, steps)
    if price.unknown or price.seconds > now.seconds * (1 - WORTH):
        return None
    lengths = " × ".join(map(str, chunk))
    what = f"order your loops by chunks of {lengths}, so that all reads of a chunk follow each other"
    return Tip(what, "", price, gain(pricer.profile, now, price, (today.reader, today.reader)), None)

"""How long it takes to write an array in another layout: reading all of it once, and writing all of it once."""

from __future__ import annotations

from dataclasses import replace

from hyperslab._core import Hyperslab
from hyperslab.advise.candidate import Candidate
from hyperslab.advise.demand import Demand
from hyperslab.advise.price import Price
from hyperslab.advise.pricing import Pricer
from hyperslab.advise.stored import StoredArray
from hyperslab.model.workload import Step

# Writers take a few megabytes at a time; so many calls are priced.
CALLS = 8


def conversion_prices(array: StoredArray, pricer: Pricer, today: Candidate, target: Candidate) -> tuple[Price, Price]:
    """What it costs to read all of an array today, and to write it in a layout."""
    return _all_of_it(array, pricer, today, "read"), _all_of_it(array, pricer, _written(target), "write")


def conversion_seconds(prices: tuple[Price, Price]) -> float | None:
    """Seconds to read an array and to write it; None if either has no price."""
    return None if any(part.unknown for part in prices) else sum(part.seconds for part in prices)


def _written(target: Candidate) -> Candidate:
    """The candidate as its format's own library writes it: our engine is priced as a reader only."""
    library = "zarr" if target.format.startswith("zarr") else "hdf5"
    return Candidate(target.format, library, target.layout, target.encoding)


def _all_of_it(array: StoredArray, pricer: Pricer, candidate: Candidate, operation: str) -> Price:
    """Reads follow today's chunks, writes those of the target, so no chunk is decoded or encoded twice."""
    shape = array.shape if candidate.order is None else tuple(array.shape[axis] for axis in candidate.order)
    length = max(1, min(candidate.layout.chunk_shape[0], shape[0]))
    if candidate.layout.contiguous:
        length = max(1, shape[0] // CALLS)
    if candidate.layout.shard_shape is not None:
        length = min(candidate.layout.shard_shape[0], shape[0])
    steps = []
    for start in range(0, shape[0], length):
        rows = min(length, shape[0] - start)
        box = Hyperslab([start, *[0] * (len(shape) - 1)], None, [1] * len(shape), [rows, *shape[1:]])
        steps.append(Step("read" if operation == "read" else "write", box))
    demand = Demand("all of it", shape, array.priced_dtype, steps, cache="cold" if operation == "read" else "new")
    return replace(pricer, demands=[demand], known={}).price(candidate)

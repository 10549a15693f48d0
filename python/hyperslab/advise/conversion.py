"""How long it takes to write an array in another layout: reading all of it once, and writing all of it once.

There is always a figure: what has no price by itself is estimated from its bytes and chunks, with a wide interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from hyperslab._core import Hyperslab
from hyperslab.advise.candidate import Candidate
from hyperslab.advise.demand import Demand
from hyperslab.advise.price import Price
from hyperslab.advise.pricing import Pricer
from hyperslab.advise.stored import StoredArray
from hyperslab.chunk_grid import ceil_div
from hyperslab.model.libraries import Layout
from hyperslab.model.workload import Step
from hyperslab.storage.chain import PLAIN

# Writers take a few megabytes at a time; so many calls are priced.
CALLS, MOST_CALLS = 8, 4096
# What is estimated may take so many times more or less: with a codec that was measured, and with nothing but bytes.
FACTOR, WILD_FACTOR = 3.0, 10.0
# Seconds of a byte from and to a disk, of one that a codec works on, and of a chunk, if nothing else is known.
BYTE_SECONDS, CODEC_SECONDS, CHUNK_SECONDS = 5e-9, 1e-8, 5e-5
# What `convert` takes besides for each array, whatever it holds: it creates and verifies it, and copies its attributes.
# 1,000 and 4,000 arrays of one chunk, to HDF5 and to Zarr, took it 1.4 to 1.7 ms each.
ARRAY_SECONDS = 1.6e-3
LIBRARIES = {"read": ("hyperslab", "hdf5", "zarr", "flat"), "write": ("hdf5", "zarr", "flat")}


@dataclass(frozen=True)
class ConversionCost:
    """Seconds with an interval; `is_estimate` says that they follow from bytes, not from a price of each call."""

    seconds: float
    low: float
    high: float
    is_estimate: bool = False

    def __add__(self, other: ConversionCost) -> ConversionCost:
        """Both, one after the other."""
        seconds, low, high = self.seconds + other.seconds, self.low + other.low, self.high + other.high
        return ConversionCost(seconds, low, high, self.is_estimate or other.is_estimate)

    def times(self, count: float) -> ConversionCost:
        """The same for so many arrays."""
        return ConversionCost(self.seconds * count, self.low * count, self.high * count, self.is_estimate)


def conversion_cost(array: StoredArray, pricer: Pricer, today: Candidate, target: Candidate) -> ConversionCost:
    """What it costs to read all of an array as it is today, and to write it in a layout, as a new array."""
    moved = _cost(array, pricer, today, "read") + _cost(array, pricer, _written(target), "write")
    return moved + ConversionCost(ARRAY_SECONDS, ARRAY_SECONDS / FACTOR, ARRAY_SECONDS * FACTOR)


def estimated_rewrite(nbytes: int, encoded_nbytes: int, chunk_count: int, array_count: int) -> ConversionCost:
    """What it costs to write a file again, by nothing but its size.

    Parameters
    ----------
    nbytes : int
        Of the file.
    encoded_nbytes : int
        In memory, of the arrays whose chunks are decoded and encoded again; those of the others are copied.
    chunk_count : int
        The chunks of all arrays.
    array_count : int
        The arrays.
    """
    moved = 2 * nbytes * BYTE_SECONDS + 2 * encoded_nbytes * CODEC_SECONDS
    seconds = moved + chunk_count * CHUNK_SECONDS + array_count * ARRAY_SECONDS
    return ConversionCost(seconds, seconds / WILD_FACTOR, seconds * WILD_FACTOR, is_estimate=True)


def _written(target: Candidate) -> Candidate:
    """The candidate as its format's own library writes it: our engine is priced as a reader only."""
    library = "zarr" if target.format.startswith("zarr") else "hdf5"
    return Candidate(target.format, library, target.layout, target.encoding, order=target.order)


def _cost(array: StoredArray, pricer: Pricer, candidate: Candidate, operation: str) -> ConversionCost:
    key = (("all of it", operation, candidate.key), 0.0)  # every row of a ranking asks for the same reads
    if key not in pricer.known:
        pricer.known[key] = _all_of_it(array, pricer, candidate, operation)
    price = pricer.known[key]
    if not price.unknown:
        return ConversionCost(price.seconds, price.low, price.high)
    return _estimate(array, pricer, candidate, operation)


def _estimate(array: StoredArray, pricer: Pricer, candidate: Candidate, operation: str) -> ConversionCost:
    """From the bytes without a codec, what the codec takes for a byte, and the number of chunks."""
    layout, nbytes, factor = candidate.layout, array.nbytes, FACTOR
    known = [price.seconds for price in _plain_prices(array, pricer, operation) if not price.unknown]
    stored = nbytes / (layout.ratio or 1.0)
    seconds = known[0] if known else stored * BYTE_SECONDS
    if candidate.encoding != PLAIN:
        rates = [pricer.measured[key].rate for key in pricer.measured if key[1] == candidate.encoding]
        each = [one.decode if operation == "read" else one.encode for one in rates]
        seconds += nbytes * (max(each) if each else CODEC_SECONDS)
        factor = factor if each else WILD_FACTOR
    if not layout.contiguous:
        shape = array.shape if candidate.order is None else tuple(array.shape[axis] for axis in candidate.order)
        seconds += prod(ceil_div(n, c) for n, c in zip(shape, layout.chunk_shape, strict=True)) * CHUNK_SECONDS
    factor = factor if known else WILD_FACTOR
    return ConversionCost(seconds, seconds / factor, seconds * factor, is_estimate=True)


def _plain_prices(array: StoredArray, pricer: Pricer, operation: str) -> Iterator[Price]:
    """What moving the bytes takes without a codec, in chunks of a usual size, by each library that was calibrated."""
    libraries = () if pricer.profile is None else pricer.profile.libraries
    chunk = array.cut[-1] if array.cut else array.shape
    for name in LIBRARIES[operation]:
        if name in libraries:
            layout = Layout(array.shape, contiguous=True) if name == "flat" else Layout(chunk)
            format_name = "zarr3" if name == "zarr" else "hdf5"
            yield _all_of_it(array, pricer, Candidate(format_name, name, layout), operation)


def _all_of_it(array: StoredArray, pricer: Pricer, candidate: Candidate, operation: str) -> Price:
    """Reads follow today's chunks, writes those of the target, so no chunk is decoded or encoded twice."""
    shape = array.shape if candidate.order is None else tuple(array.shape[axis] for axis in candidate.order)
    length = max(1, min(candidate.layout.chunk_shape[0], shape[0]))
    if candidate.layout.contiguous:
        length = max(1, shape[0] // CALLS)
    if candidate.layout.shard_shape is not None:
        length = min(candidate.layout.shard_shape[0], shape[0])
    length *= ceil_div(shape[0], length * MOST_CALLS)
    steps = []
    for start in range(0, shape[0], length):
        rows = min(length, shape[0] - start)
        box = Hyperslab([start, *[0] * (len(shape) - 1)], None, [1] * len(shape), [rows, *shape[1:]])
        steps.append(Step("read" if operation == "read" else "write", box))
    demand = Demand("all of it", shape, array.priced_dtype, steps, cache="cold" if operation == "read" else "new")
    return replace(pricer, demands=[demand], known={}).price(replace(candidate, order=None))

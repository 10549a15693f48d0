"""Search for chunk shapes, shards, codecs, chunk caches and orders of axes that make the demands fast.

The expected number of chunks that the calls touch gives the first shapes; no simulation is needed for that (Otoo,
Rotem, Seshadri, DOLAP 2007). From the best of them a local search doubles, halves and trades lengths between axes,
with prices of a sample of the calls. The best of what was found is priced with all calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations, product
from math import prod

import numpy as np

from hyperslab.advise.candidate import Candidate
from hyperslab.advise.limits import Limits
from hyperslab.advise.pricing import SEARCH_TOUCHES, Pricer, threads
from hyperslab.chunk_grid import ceil_div
from hyperslab.model.libraries import Layout
from hyperslab.storage.chain import PLAIN, CodecChain

MIB = 1 << 20
Shape = tuple[int, ...]
# Seconds of a chunk and of a decoded byte: they only decide where the search begins.
CHUNK_SECONDS, BYTE_SECONDS = 1.5e-4, 1e-9
# Of chunks, if there are no limits. Codecs are measured on larger chunks, and do worse on tiny ones.
LEAST_NBYTES, MOST_NBYTES = 16 << 10, 64 * MIB
MOST_IN_SHARD = 1024  # chunks: the index of a shard is read as a whole
MOST_SHAPES = 40_000  # whose expectation is computed
SEEDS, STARTS, MOST_STEPS = 8, 2, 12
CACHES = (32 * MIB, 128 * MIB, 512 * MIB)
MOST_CACHE_SHARE = 0.25  # of the machine's memory
SHARD_NBYTES = (4 * MIB, 16 * MIB, 64 * MIB)
MOST_PERMUTED_AXES = 3


@dataclass
class Search:
    """All candidates of a search that keep to the limits, and why others do not."""

    pricer: Pricer
    limits: Limits
    memory_nbytes: int
    ratios: dict[tuple[str, CodecChain], float | None]
    today: Candidate
    progress: Callable[[str], None] = lambda _: None
    found: dict[object, Candidate] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)

    @property
    def shape(self) -> Shape:
        """The array's shape."""
        return self.pricer.shape

    # --- limits -------------------------------------------------------------------------------------------

    def broken_limit(self, candidate: Candidate) -> str | None:
        """The limit that a candidate breaks, or None."""
        width, limits, layout = self.pricer.element_nbytes, self.limits, candidate.layout
        shape = self.shape if candidate.order is None else tuple(self.shape[axis] for axis in candidate.order)
        if limits.max_files is not None and candidate.file_count(shape) > limits.max_files:
            return "--max-files"
        if limits.max_nbytes is not None and candidate.stored_nbytes(shape, width) > limits.max_nbytes:
            return "--max-size"
        if limits.memory_nbytes is not None and candidate.memory_nbytes(width, threads()) > limits.memory_nbytes:
            return "--memory"
        if layout.contiguous:
            return "--append-axis" if limits.append_axis is not None else None
        nbytes = candidate.chunk_nbytes(width)
        if limits.min_chunk_nbytes is not None and nbytes < limits.min_chunk_nbytes:
            return "--min-chunk"
        return "--max-chunk" if limits.max_chunk_nbytes is not None and nbytes > limits.max_chunk_nbytes else None

    def consider(self, candidate: Candidate) -> float | None:
        """The seconds of a candidate by a sample of the calls; None if it breaks a limit or has no price."""
        if reason := self.broken_limit(candidate):
            self.refused[reason] = self.refused.get(reason, 0) + 1
            return None
        price = self.pricer.price(candidate, SEARCH_TOUCHES)
        if price.unknown:
            return None
        self.found[candidate.key] = candidate
        return price.seconds

    # --- shapes -------------------------------------------------------------------------------------------

    def expected_shapes(self) -> list[Shape]:
        """Chunk shapes with the least expected cost, of several sizes, the best first."""
        least = self.limits.min_chunk_nbytes or LEAST_NBYTES
        most = self.limits.max_chunk_nbytes or MOST_NBYTES
        width, shapes = self.pricer.element_nbytes, list(self._grid_of_shapes())
        sizes = np.array([prod(shape) * width for shape in shapes])
        inside = (sizes >= min(least, prod(self.shape) * width)) & (sizes <= most)
        kept = [shape for shape, fits in zip(shapes, inside.tolist(), strict=True) if fits] or shapes
        costs = self._expected_cost(np.array(kept, np.float64))
        sizes = np.array([prod(shape) * width for shape in kept])
        best: list[Shape] = []
        for octave in np.unique(np.log2(sizes).astype(int) // 3):  # one of each size class
            mine = np.flatnonzero(np.log2(sizes).astype(int) // 3 == octave)
            best.append(kept[mine[np.argmin(costs[mine])]])
        first = [kept[place] for place in np.argsort(costs)[:4].tolist()]
        return list(dict.fromkeys([*first, *best]))

    def _grid_of_shapes(self) -> Iterator[Shape]:
        """Powers of two and whole axes; in steps of four if there are too many."""
        axes = [_powers(length, 2) for length in self.shape]
        step = 2
        while prod(map(len, axes)) > MOST_SHAPES:
            step *= 2
            axes = [_powers(length, step) for length in self.shape]
        return product(*axes)

    def _expected_cost(self, shapes: np.ndarray) -> np.ndarray:
        """The expected cost of chunk shapes, over the distinct lengths of all calls."""
        costs = np.zeros(len(shapes))
        lengths_of_array = np.array(self.shape, np.float64)
        for demand in self.pricer.demands:
            kinds, places = demand.kinds
            numbers = np.bincount(places, minlength=len(kinds))
            for kind, number in zip(kinds[:200], numbers[:200], strict=True):
                lengths, counts = np.split(kind, 2)
                along = np.minimum(1 + (lengths - 1) / shapes, np.maximum(counts, 1))
                touched = np.minimum(along, np.ceil(lengths_of_array / shapes)).prod(axis=1)
                nbytes = np.minimum(shapes, lengths_of_array).prod(axis=1) * demand.element_nbytes
                costs += demand.weight * number * touched * (CHUNK_SECONDS + nbytes * BYTE_SECONDS)
        return costs

    def neighbours(self, shape: Shape) -> Iterator[Shape]:
        """Shapes that differ by a factor of two along one axis, or trade a factor between two axes."""
        for axis in range(len(shape)):
            for other in (None, *range(len(shape))):
                if other == axis:
                    continue
                grown = list(shape)
                grown[axis] = min(shape[axis] * 2, self.shape[axis])
                if other is not None:
                    grown[other] = ceil_div(shape[other], 2)
                yield tuple(grown)
            yield tuple(ceil_div(n, 2) if place == axis else n for place, n in enumerate(shape))
            parts = ceil_div(self.shape[axis], shape[axis])
            yield tuple(ceil_div(self.shape[axis], parts) if place == axis else n for place, n in enumerate(shape))

    def climb(self, start: Candidate, most_steps: int = MOST_STEPS) -> Candidate:
        """The best candidate that steps between neighbours lead to."""
        best, least = start, self.consider(start)
        whole = prod(self.shape) * self.pricer.element_nbytes
        least_nbytes = min(self.limits.min_chunk_nbytes or LEAST_NBYTES, whole)
        for _ in range(most_steps):
            shapes = dict.fromkeys(self.neighbours(best.layout.chunk_shape))
            large = [shape for shape in shapes if prod(shape) * self.pricer.element_nbytes >= least_nbytes]
            nearby = [start.with_chunks(shape) for shape in large]
            priced = [(self.consider(one), place) for place, one in enumerate(nearby)]
            costs = [(seconds, place) for seconds, place in priced if seconds is not None]
            if not costs or (least is not None and min(costs)[0] >= least * 0.995):
                break
            least, best = min(costs)[0], nearby[min(costs)[1]]
        return best

    # --- families -----------------------------------------------------------------------------------------

    def family(self, format_name: str, reader: str, encodings: Sequence[CodecChain], seeds: Iterable[Shape]) -> None:
        """Search the candidates of one file format and reader."""
        self.progress(f"{format_name} read by {reader}")
        first = encodings[1] if len(encodings) > 1 else PLAIN
        made = [self._made(format_name, reader, first, shape) for shape in seeds]
        starts = self.best_of(made, STARTS)
        tops = [self.climb(start) for start in starts]
        ranked = self.best_of([*tops, *made], 3)
        encoded = []
        for candidate in ranked:
            for encoding in encodings:
                ratio = self.ratios.get((reader, encoding))
                if encoding == PLAIN or ratio is not None:
                    encoded.append(candidate.with_encoding(encoding, None if encoding == PLAIN else ratio))
        final = [self.climb(one, 4) for one in self.best_of(encoded, 2)]
        if format_name == "zarr3":
            self._shards(self.best_of([*final, *encoded], 2))
        if reader == "hdf5":
            self._caches(self.best_of([*final, *encoded], 3))
        if reader in ("hdf5", "hyperslab") and not format_name.startswith("zarr"):
            whole = replace(
                self._made(format_name, reader, PLAIN, self.shape), layout=Layout(self.shape, contiguous=True)
            )
            self.consider(whole)

    def _made(self, format_name: str, reader: str, encoding: CodecChain, shape: Shape) -> Candidate:
        ratio = self.ratios.get((reader, encoding))
        used = encoding if ratio is not None else PLAIN
        layout = Layout(shape, None, ratio if used != PLAIN else None, used.codec_text)
        if reader != "hdf5":
            return Candidate(format_name, reader, layout, used)
        # The program opens the new file as it opens today's.
        now = self.today
        by_netcdf = now.by_netcdf or (format_name == "netcdf4" and now.format not in ("hdf5", "netcdf4"))
        return Candidate(format_name, reader, layout, used, now.cache_nbytes, now.cache_slots, by_netcdf, now.caller)

    def best_of(self, candidates: Iterable[Candidate], count: int) -> list[Candidate]:
        """The fastest of these candidates, by a sample of the calls."""
        distinct = {one.key: one for one in candidates}.values()
        costs = [(seconds, place, one) for place, one in enumerate(distinct) if (seconds := self.consider(one))]
        return [one for _, _, one in sorted(costs, key=lambda cost: cost[:2])[:count]]

    def _shards(self, candidates: Sequence[Candidate]) -> None:
        width = self.pricer.element_nbytes
        for candidate in candidates:
            chunk = candidate.layout.chunk_shape
            for nbytes in SHARD_NBYTES:
                shard = shard_of(self.shape, chunk, nbytes // width)
                count = prod(a // b for a, b in zip(shard, chunk, strict=True))
                if 1 < count <= MOST_IN_SHARD:
                    layout = replace(candidate.layout, shard_shape=shard)
                    self.consider(replace(candidate, layout=layout))

    def _caches(self, candidates: Sequence[Candidate]) -> None:
        for candidate in candidates:
            for larger in self.larger_caches(candidate):
                self.consider(larger)

    def larger_caches(self, candidate: Candidate) -> Iterator[Candidate]:
        """The same with larger chunk caches than HDF5's default, as far as memory allows and the array needs them."""
        chunk = candidate.chunk_nbytes(self.pricer.element_nbytes)
        pairs = zip(self.shape, candidate.layout.chunk_shape, strict=True)
        count = prod(ceil_div(length, part) for length, part in pairs)
        now = candidate.library(self.shape)
        if count * chunk <= now.chunk_cache_nbytes and count <= now.chunk_cache_slots:  # type: ignore[union-attr]
            return  # it holds all chunks already
        for nbytes in CACHES:
            if nbytes >= chunk and nbytes <= self.memory_nbytes * MOST_CACHE_SHARE:
                yield replace(candidate, cache_nbytes=nbytes, cache_slots=cache_slots(nbytes, chunk))

    def orders(self, candidates: Sequence[Candidate]) -> None:
        """The same arrays with their axes in another order: for programs that name their dimensions."""
        if not 2 <= len(self.shape) <= MOST_PERMUTED_AXES:
            return
        for candidate in candidates:
            for order in list(permutations(range(len(self.shape))))[1:]:
                chunk = tuple(candidate.layout.chunk_shape[axis] for axis in order)
                layout = replace(candidate.layout, chunk_shape=chunk, manifest=None, index=None, max_shape=None)
                if layout.shard_shape is not None:
                    layout = replace(layout, shard_shape=tuple(layout.shard_shape[axis] for axis in order))
                self.consider(replace(candidate, layout=layout, order=order, is_today=False, label=""))


def shard_of(shape: Shape, chunk: Shape, element_count: int) -> Shape:
    """A shard of about so many elements, whose lengths are multiples of the chunk's."""
    shard = list(chunk)
    while prod(shard) * 2 <= element_count:
        growing = [axis for axis in range(len(shape)) if shard[axis] < shape[axis]]
        if not growing:
            break
        axis = min(growing, key=lambda one: shard[one] / shape[one])
        shard[axis] = min(shard[axis] * 2, ceil_div(shape[axis], chunk[axis]) * chunk[axis])
    return tuple(shard)


def cache_slots(nbytes: int, chunk_nbytes: int) -> int:
    """Slots for a chunk cache of HDF5, so many that chunks seldom share one."""
    return next_prime(max(8191, 10 * (nbytes // max(chunk_nbytes, 1))))


def next_prime(number: int) -> int:
    """The smallest prime that is not less than a number: HDF5 asks for a prime number of slots."""
    while any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
        number += 1
    return number


def _powers(length: int, step: int) -> list[int]:
    powers, value = [], 1
    while value < length:
        powers.append(value)
        value *= step
    return [*powers, length]

"""Draw workloads from a seed: arrays, chunk shapes on either side of HDF5's chunk cache, codecs, and access patterns.

A workload depends on the seed and its number alone, so the first 20 of 40 workloads are those of an evaluation of 20.
Patterns, ranks and cache states take turns in a drawn order, so that no seed misses one of them. A pattern is drawn
without regard to the library that would be faster.

Limits keep the time bounded: a workload makes fewer calls if they would touch more than `most_moved_nbytes` of chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from hyperslab._core import ChunkGrid, Hyperslab
from hyperslab.chunk_grid import ceil_div
from hyperslab.model.cells import CellCache, ModelCell
from hyperslab.model.libraries import Layout, Library
from hyperslab.model.paper_experiments import Candidate
from hyperslab.model.workload import Workload
from hyperslab.storage.chain import PLAIN

Shape = tuple[int, ...]
Random = np.random.Generator


@dataclass(frozen=True)
class DrawnSize:
    """How large drawn workloads are. Sizes are in bytes, and drawn evenly in their logarithm."""

    array_nbytes: tuple[float, float]
    # One layout in each range. HDF5's chunk cache holds 1 MiB before version 2.0, and 8 MiB since.
    chunk_nbytes: tuple[tuple[float, float], ...]
    most_encoded_nbytes: float  # larger arrays have no codec
    most_moved_nbytes: float  # of touched chunks, in one pass
    most_touches: int
    most_calls: int
    most_stepped_count: int  # elements of a selection with steps
    most_chunk_count: int
    most_runs: int  # that chunks cut the array into: without this limit, HDF5 may make 10^8 requests of one byte


LARGE = DrawnSize(
    (5e6, 400e6), ((16e3, 1e6), (1e6, 8e6), (8.5e6, 32e6)), 100e6, 500e6, 3000, 300, 5_000_000, 1500, 2_000_000
)
TINY = DrawnSize((20e3, 200e3), ((1e3, 8e3), (8e3, 60e3)), 100e3, 1e6, 200, 20, 20_000, 50, 20_000)

DTYPES = ("u1", "i2", "i4", "f4", "f8")
CODECS = ("deflate:1", "deflate:4", "zstd:1", "zstd:3")
# The work of encoding or decoding a byte, against that of moving it.
CODEC_READ, CODEC_WRITE = 3.0, 10.0
# As many calls of a pattern stay, however much they move.
LEAST_CALLS = 3
STEPS = (2, 3, 4, 7, 10)


@dataclass(frozen=True)
class DrawnWorkload:
    """One workload with the layouts to choose from."""

    number: int
    pattern: str
    workload: Workload
    cache: CellCache
    layouts: tuple[Layout, ...]

    @property
    def name(self) -> str:
        """The name for people: unlike that of any other workload of the same seed."""
        shape = "x".join(map(str, self.workload.array.shape))
        return f"{self.number}: {self.pattern}, {shape} {self.workload.array.dtype}, {self.cache}"

    def candidates(self, libraries: Sequence[Library]) -> list[Candidate]:
        """Every layout with every library. All of them hold the same elements, whether a codec encodes them or not."""
        return [
            Candidate(self.name, layout_name(layout), ModelCell(self.workload, layout, library, self.cache, "waves"))
            for layout in self.layouts
            for library in libraries
        ]


def layout_name(layout: Layout) -> str:
    """A layout without its ratio, which is not known before it is measured."""
    shape = "x".join(map(str, layout.chunk_shape))
    return shape if layout.codec is None else f"{shape}:{layout.codec}"


def draw(count: int, seed: int, size: DrawnSize = LARGE) -> list[DrawnWorkload]:
    """Draw `count` workloads."""
    patterns = _in_turn(tuple(PATTERNS), seed, 1)
    ranks = _in_turn((1, 2, 3, 4, 5), seed, 2)
    caches = _in_turn((0, 1), seed, 3)
    return [_draw_one(number, next(patterns), next(ranks), next(caches), seed, size) for number in range(1, count + 1)]


def draw_on_arrays(count: int, seed: int, size: DrawnSize, patterns: int, layouts: int) -> list[DrawnWorkload]:
    """Draw `count` arrays and, for each of them, this many patterns and layouts without codecs.

    Each workload only reads or only writes. They share arrays, so that they take less time to measure than the same
    number of `draw`, whose arrays these never are.
    """
    kinds = _in_turn(tuple(name for name in PATTERNS if name != "several"), seed, 4)
    ranks, caches = _in_turn((1, 2, 3, 4, 5), seed, 5), _in_turn((0, 1), seed, 6)
    workloads = []
    for number in range(1, count + 1):
        random = np.random.default_rng([seed, number, 1])
        dtype = str(random.choice(DTYPES))
        width = np.dtype(dtype).itemsize
        shape = _draw_shape(random, next(ranks), _log_uniform(random, *size.array_nbytes) / width)
        drawn = [replace(one, ratio=None, codecs=PLAIN) for one in _draw_layouts(random, shape, width, size)]
        chosen = tuple(drawn[position] for position in random.permutation(len(drawn))[:layouts])
        workloads += [
            _on_array(random, number, next(kinds), next(caches), (shape, dtype), chosen, size) for _ in range(patterns)
        ]
    return workloads


def _in_turn(values: Sequence[Any], seed: int, stream: int) -> Iterator[Any]:
    """All values in a drawn order, then again in another order."""
    random = np.random.default_rng([seed, 0, stream])
    while True:
        yield from (values[position] for position in random.permutation(len(values)))


def _draw_one(number: int, pattern: str, ndim: int, turn: int, seed: int, size: DrawnSize) -> DrawnWorkload:
    random = np.random.default_rng([seed, number])
    dtype = str(random.choice(DTYPES))
    width = np.dtype(dtype).itemsize
    shape = _draw_shape(random, ndim, _log_uniform(random, *size.array_nbytes) / width)
    layouts = _draw_layouts(random, shape, width, size)
    return _on_array(random, number, pattern, turn, (shape, dtype), layouts, size)


def _on_array(
    random: Random,
    number: int,
    pattern: str,
    turn: int,
    array: tuple[Shape, str],
    layouts: tuple[Layout, ...],
    size: DrawnSize,
) -> DrawnWorkload:
    """A pattern on an array."""
    (shape, dtype), kind = array, PATTERNS[pattern]
    calls = _affordable(kind.draw(random, shape, size), shape, np.dtype(dtype).itemsize, layouts, size)
    accesses = [
        {"select": "list", "operation": operation, "boxes": [_box(one) for one in boxes]} for operation, boxes in calls
    ]
    workload = Workload.model_validate({"array": {"shape": list(shape), "dtype": dtype}, "accesses": accesses})
    return DrawnWorkload(number, pattern, workload, kind.caches[turn % len(kind.caches)], layouts)


def _log_uniform(random: Random, low: float, high: float) -> float:
    return float(np.exp(random.uniform(np.log(low), np.log(high))))


def _draw_shape(random: Random, ndim: int, count: float) -> Shape:
    """Lengths with about this product. No axis is shorter than 2, and few are much longer than the others."""
    shares = random.dirichlet(np.full(ndim, 2.5))
    return tuple(max(2, round(float(np.exp(np.log(count) * share)))) for share in shares)


def _draw_layouts(random: Random, shape: Shape, width: int, size: DrawnSize) -> tuple[Layout, ...]:
    nbytes = prod(shape) * width
    by_chunk_shape: dict[Shape, Layout] = {}
    for low, high in size.chunk_nbytes:
        target = np.clip(_log_uniform(random, low, high), nbytes / size.most_chunk_count * 2, nbytes / 2)
        chunk_shape = _draw_chunk_shape(random, shape, target / width, size.most_runs)
        codec = str(random.choice(CODECS)) if random.random() < 0.5 else None
        if nbytes > size.most_encoded_nbytes:
            codec = None
        by_chunk_shape.setdefault(chunk_shape, Layout(chunk_shape, None, None if codec is None else 1.0, codec))
    return tuple(by_chunk_shape.values())


def _draw_chunk_shape(random: Random, shape: Shape, count: float, most_runs: int) -> Shape:
    """Halve axes until a chunk has about this many elements. Some axes are cut more often, as users have reasons to.

    The last axes stay long enough to leave no more runs than that.
    """
    weights = random.dirichlet(np.full(len(shape), 0.8)) + 1e-3
    least = _least_lengths(shape, most_runs)
    chunk = list(shape)
    while prod(chunk) > count and (free := np.array(chunk) > least).any():
        chances = weights * free
        axis = int(random.choice(len(shape), p=chances / chances.sum()))
        chunk[axis] = max(ceil_div(chunk[axis], 2), int(least[axis]))
    axis = int(random.integers(len(shape)))  # so that not every grid ends where the array ends
    chunk[axis] = int(np.clip(round(chunk[axis] * random.uniform(0.85, 1.2)), least[axis], shape[axis]))
    return tuple(chunk)


def _least_lengths(shape: Shape, most_runs: int) -> np.ndarray:
    """The shortest chunk along each axis that leaves no more runs."""
    length, least = ceil_div(prod(shape), most_runs), []
    for whole in reversed(shape):
        least.append(min(whole, length))
        length = ceil_div(length, whole)
    return np.array(least[::-1])


# --- patterns: calls with their operations, in order ---------------------------------------------------------

Calls = list[tuple[str, list[Hyperslab]]]


def _slab(shape: Shape, axis: int, start: int, length: int) -> Hyperslab:
    starts = [0] * len(shape)
    lengths = list(shape)
    starts[axis], lengths[axis] = start, min(length, shape[axis] - start)
    return Hyperslab(starts, None, lengths, [1] * len(shape))


def _whole(_: Random, shape: Shape, __: DrawnSize) -> list[Hyperslab]:
    return [Hyperslab([0] * len(shape), None, list(shape), [1] * len(shape))]


def _one_slab(random: Random, shape: Shape, _: DrawnSize) -> list[Hyperslab]:
    axis = int(random.integers(len(shape)))
    length = max(1, round(shape[axis] * _log_uniform(random, 0.01, 0.6)))
    return [_slab(shape, axis, int(random.integers(shape[axis] - length + 1)), length)]


def _stepped(random: Random, shape: Shape, size: DrawnSize) -> list[Hyperslab]:
    """Every k-th element along some axes, from a part of the array if the whole has too many."""
    chosen = random.random(len(shape)) < 0.5
    chosen[int(random.integers(len(shape)))] = True
    steps = [min(int(random.choice(STEPS)), length) if one else 1 for one, length in zip(chosen, shape, strict=True)]
    counts = [ceil_div(length, step) for length, step in zip(shape, steps, strict=True)]
    while prod(counts) > size.most_stepped_count:
        counts[int(np.argmax(counts))] //= 2
    room = [length - (n - 1) * step for length, n, step in zip(shape, counts, steps, strict=True)]
    starts = [int(random.integers(left)) for left in room]
    return [Hyperslab(starts, steps, counts, [1] * len(shape))]


def _boxes(random: Random, shape: Shape, size: DrawnSize) -> list[Hyperslab]:
    lengths = [max(1, round(length * _log_uniform(random, 0.02, 0.7))) for length in shape]
    count = int(random.integers(5, min(100, size.most_calls) + 1))
    return [_placed(random, shape, lengths) for _ in range(count)]


def _points(random: Random, shape: Shape, size: DrawnSize) -> list[Hyperslab]:
    count = int(random.integers(min(20, size.most_calls), size.most_calls + 1))
    return [_placed(random, shape, [1] * len(shape)) for _ in range(count)]


def _placed(random: Random, shape: Shape, lengths: Sequence[int]) -> Hyperslab:
    room = [length - part + 1 for length, part in zip(shape, lengths, strict=True)]
    return Hyperslab([int(random.integers(left)) for left in room], None, list(lengths), [1] * len(shape))


def _walk(random: Random, shape: Shape, size: DrawnSize) -> list[Hyperslab]:
    """Slabs next to each other along any axis: upwards, downwards, or in any order."""
    axis = int(random.integers(len(shape)))
    slabs = _cut_up(random, shape, axis, size)
    order = random.choice(("up", "down", "any"))
    if order == "any":
        return [slabs[position] for position in random.permutation(len(slabs))]
    return slabs if order == "up" else slabs[::-1]


def _append(random: Random, shape: Shape, size: DrawnSize) -> list[Hyperslab]:
    return _cut_up(random, shape, 0, size)


def _cut_up(random: Random, shape: Shape, axis: int, size: DrawnSize) -> list[Hyperslab]:
    count = int(random.integers(2, min(60, size.most_calls) + 1))
    thickness = max(1, ceil_div(shape[axis], count))
    return [_slab(shape, axis, start, thickness) for start in range(0, shape[axis], thickness)]


Draw = Callable[[Random, Shape, DrawnSize], list[Hyperslab]]
READS: tuple[Draw, ...] = (_one_slab, _stepped, _boxes, _points, _walk)


def _reading(draw_boxes: Draw) -> Callable[[Random, Shape, DrawnSize], Calls]:
    return lambda random, shape, size: [("read", draw_boxes(random, shape, size))]


def _writing(draw_boxes: Draw) -> Callable[[Random, Shape, DrawnSize], Calls]:
    return lambda random, shape, size: [("write", draw_boxes(random, shape, size))]


def _several(random: Random, shape: Shape, size: DrawnSize) -> Calls:
    """Two or three reads after each other, or a read, a write and a read."""
    first, second, third = (READS[position] for position in random.permutation(len(READS))[:3])
    if random.random() < 0.3:
        return [
            ("read", first(random, shape, size)),
            ("write", _walk(random, shape, size)),
            ("read", second(random, shape, size)),
        ]
    chosen = (first, second, third) if random.random() < 0.5 else (first, second)
    return [("read", draw_boxes(random, shape, size)) for draw_boxes in chosen]


@dataclass(frozen=True)
class PatternKind:
    """How a pattern is drawn, and the cache states that take turns in it."""

    draw: Callable[[Random, Shape, DrawnSize], Calls]
    caches: tuple[CellCache, ...] = ("cold", "page-warm")


PATTERNS: dict[str, PatternKind] = {
    "read whole": PatternKind(_reading(_whole)),
    "read slab": PatternKind(_reading(_one_slab)),
    "read steps": PatternKind(_reading(_stepped)),
    "read boxes": PatternKind(_reading(_boxes)),
    "read points": PatternKind(_reading(_points)),
    "read walk": PatternKind(_reading(_walk)),
    "several": PatternKind(_several),
    "write whole": PatternKind(_writing(_whole), ("new", "page-warm")),
    "write slabs": PatternKind(_writing(_walk), ("new", "page-warm")),
    "write boxes": PatternKind(_writing(_boxes), ("page-warm", "cold")),
    "append": PatternKind(_writing(_append), ("new",)),
}


# --- limits --------------------------------------------------------------------------------------------------


def _affordable(calls: Calls, shape: Shape, width: int, layouts: Sequence[Layout], size: DrawnSize) -> Calls:
    """Each list of calls up to the first that would make a pass too long, whatever the layout. A few stay."""
    grids = [(ChunkGrid(shape, layout.chunk_shape), layout) for layout in layouts]
    share = 1 / len(calls)
    affordable: Calls = []
    for operation, boxes in calls:
        moved, touches, runs, kept = 0.0, 0, 0, 0
        for box in boxes:
            counts = [(grid.totals(box).chunk_count, layout) for grid, layout in grids]
            moved += max(count * _work(layout, width, operation) for count, layout in counts)
            touches += max(count for count, _ in counts)
            runs += max(box.size // min(box.count[-1], grid.chunk_shape[-1]) for grid, _ in grids)
            is_long = moved > size.most_moved_nbytes * share or touches > size.most_touches * share
            if (kept >= LEAST_CALLS and is_long) or (kept and runs > size.most_runs * share):
                break
            kept += 1
        affordable.append((operation, boxes[:kept]))
    return affordable


def _work(layout: Layout, width: int, operation: str) -> float:
    """Bytes of a chunk, multiplied by what its codec makes of them."""
    factor = 1.0 if layout.codec is None else CODEC_READ if operation == "read" else CODEC_WRITE
    return prod(layout.chunk_shape) * width * factor


def _box(one: Hyperslab) -> dict[str, Any]:
    given = {"start": list(one.start), "shape": list(one.count)}
    return given if all(step == 1 for step in one.stride) else {**given, "step": list(one.stride)}

"""What a trace says of each array: patterns, chunks, read amplification, repeated decoding, and time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hyperslab._core import reuse_distances
from hyperslab.chunk_grid import ceil_div
from hyperslab.memory import CHUNK_CACHE_NBYTES
from hyperslab.trace.chunk_touches import Touches, all_touched, decode_count, grid_shape
from hyperslab.trace.openings import by_process, openings_of
from hyperslab.trace.patterns import Pattern, patterns_of
from hyperslab.trace.table import TracedArray
from hyperslab.trace.trace import Trace

BLOCK = 1 << 16
"""Rows of which the time is summed at once."""
MOST_ROWS = 200_000
MOST_CELLS = 48
"""Of a heat map, along each axis."""


@dataclass
class ArraySummary:
    """The accesses to one array."""

    array: TracedArray
    rows: npt.NDArray[np.intp] = field(repr=False)
    """Those that are looked at stand first, one process after the other."""
    patterns: list[Pattern]
    read_count: int
    write_count: int
    nbytes: int
    """The bytes selected by reads and writes, in the array's dtype."""
    seconds: float
    """The sum of the durations of all accesses."""
    analysed_count: int
    """How many accesses, from the first on, the following figures are about."""
    chunk_count: int | None = None
    touched_count: int | None = None
    touch_count: int | None = None
    """How often chunks were touched by reads and writes."""
    read_amplification: float | None = None
    decoded_count: int | None = None
    """How often chunks were decoded, by the rules of the library's chunk cache; None if it is unknown."""
    distances: npt.NDArray[np.int64] | None = field(default=None, repr=False)
    kept_distances: npt.NDArray[np.int64] | None = field(default=None, repr=False)
    """The same if each process had opened the array once."""
    sorted_decoded_count: int | None = None
    """The same if the accesses were made in the order of their first chunks."""
    heat: list[list[int]] = field(default_factory=list, repr=False)
    heat_axes: tuple[int, ...] = ()

    touch_counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64), repr=False)
    """How many chunks each of the analysed accesses touches; empty without chunks."""
    durations: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64), repr=False)
    """Of the first `MOST_ROWS` accesses, in nanoseconds."""
    opening_count: int = 1
    """How often the program opened the array, in all accesses."""
    file_opening_count: int = 1
    """How often it opened the file."""
    process_count: int = 1
    """How many processes did."""
    program: dict[str, Any] = field(default_factory=dict, repr=False)
    """What the trace knows of the program."""
    thread_count: int = 1
    """How many threads, of all processes, made accesses."""

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for JSON."""
        array = self.array
        return {
            "library": array.library, "file": array.file, "array": array.array, "shape": list(array.shape),
            "chunks": None if array.chunks is None else list(array.chunks), "dtype": array.dtype,
            "filters": list(array.filters), "layout": array.layout, "cache_nbytes": array.cache_nbytes,
            "openings": self.opening_count, "file_openings": self.file_opening_count,
            "reads": self.read_count, "writes": self.write_count, "nbytes": self.nbytes, "seconds": self.seconds,
            "patterns": [one.words for one in self.patterns], "analysed_accesses": self.analysed_count,
            "chunks_of_array": self.chunk_count, "chunks_touched": self.touched_count,
            "touches": self.touch_count, "decoded_chunks": self.decoded_count,
            "decoded_chunks_if_sorted": self.sorted_decoded_count, "read_amplification": self.read_amplification,
        }  # fmt: skip


def summaries_of(trace: Trace) -> list[ArraySummary]:
    """A summary of each array of a trace; the one that took the most time comes first."""
    if not len(trace):
        return []
    numbers = trace.columns["array"]
    if numbers.min() == numbers.max():
        groups = [np.arange(len(numbers))]
    else:
        order = np.argsort(numbers, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)
    summaries = [_summary(trace, trace.arrays[numbers[rows[0]]], rows) for rows in groups]
    return sorted(summaries, key=lambda one: -one.seconds)


def _summary(trace: Trace, array: TracedArray, rows: npt.NDArray[np.int64]) -> ArraySummary:
    columns = trace.columns
    is_write = columns["operation"][rows] != 0
    looked_at = rows[:MOST_ROWS]
    opened = [int(each.sum()) for each in openings_of(trace, by_process(trace, rows))]
    ordered = by_process(trace, looked_at)
    rows = rows if ordered is looked_at else np.concatenate([ordered, rows[MOST_ROWS:]])
    summary = ArraySummary(
        array,
        rows,
        patterns_of(trace, looked_at, array.shape),
        int(np.count_nonzero(~is_write)),
        int(np.count_nonzero(is_write)),
        int(columns["nbytes"][rows].sum()),
        float(columns["duration_ns"][rows].sum()) / 1e9,
        len(looked_at),
        durations=columns["duration_ns"][rows[:MOST_ROWS]],
        opening_count=opened[0] + 1,
        file_opening_count=opened[1] + 1,
        process_count=opened[2] + 1,
        program=trace.program,
        thread_count=_thread_count(trace, rows[:MOST_ROWS]),
    )
    if _has_grid(array):
        assert array.chunks is not None
        _look_at_chunks(summary, trace, rows[:MOST_ROWS], array.chunks)
    return summary


def _thread_count(trace: Trace, rows: npt.NDArray[np.intp]) -> int:
    pairs = (np.unique(trace.columns[name][rows], return_inverse=True)[1] for name in ("process", "thread"))
    process, thread = pairs
    return len(np.unique(process * len(rows) + thread))


def _has_grid(array: TracedArray) -> bool:
    if not array.chunks or len(array.chunks) != len(array.shape) or min(array.chunks) < 1 or min(array.shape) < 1:
        return False
    return math.prod(grid_shape(array.shape, array.chunks)) < 1 << 62


def _look_at_chunks(summary: ArraySummary, trace: Trace, rows: npt.NDArray[np.intp], chunks: tuple[int, ...]) -> None:
    array = summary.array
    touches = all_touched(trace, rows, array.shape, chunks)
    summary.analysed_count = touches.selection_count
    summary.touch_counts = np.diff(touches.offsets)
    summary.chunk_count = math.prod(grid_shape(array.shape, chunks))
    sequence = touches.chunks
    distinct, counts = np.unique(sequence, return_counts=True)
    summary.touched_count, summary.touch_count = len(distinct), len(sequence)
    selected = int(trace.columns["nbytes"][rows[: summary.analysed_count]].sum()) / array.element_nbytes
    if selected:
        summary.read_amplification = _decoded_elements(sequence, array.shape, chunks) / selected
    opened = openings_of(trace, rows[: touches.selection_count])
    forgets = np.cumsum(opened.files if array.library == "hyperslab" else opened.arrays, dtype=np.int64)
    summary.distances = _distances_within(touches, forgets)
    summary.kept_distances = summary.distances
    if summary.opening_count > summary.process_count:
        summary.kept_distances = _distances_within(touches, np.cumsum(opened.processes, dtype=np.int64))
    capacity = capacity_of(array)
    if capacity is not None:
        summary.decoded_count = decode_count(summary.distances, capacity)
        if summary.decoded_count > len(distinct):
            order = touches.sorted_order()
            # An access that opens the array goes on doing so.
            again = np.cumsum(np.diff(forgets, prepend=0)[order])
            summary.sorted_decoded_count = decode_count(_distances_within(touches, again, order), capacity)
    summary.heat, summary.heat_axes = _heat(distinct, counts, grid_shape(array.shape, chunks))


def _distances_within(
    touches: Touches, openings: npt.NDArray[np.int64], order: npt.NDArray[np.intp] | None = None
) -> npt.NDArray[np.int64]:
    """`reuse_distances` if nothing is kept from one opening, whose number each selection has, to the next."""
    lengths = np.diff(touches.offsets)
    chunks = touches.chunks if order is None else touches.reordered(order)
    if len(openings) and openings[-1] > openings[0]:
        distinct, numbers = np.unique(chunks, return_inverse=True)
        repeated = np.repeat(openings, lengths if order is None else lengths[order])
        chunks = numbers.reshape(-1) + repeated * len(distinct)
    return reuse_distances(chunks)


def _decoded_elements(sequence: npt.NDArray[np.int64], shape: Sequence[int], chunks: Sequence[int]) -> int:
    """The elements of the touched chunks, without what lies outside the array."""
    indices = np.unravel_index(sequence, grid_shape(shape, chunks))
    sizes = np.ones(len(sequence))
    for index, length, chunk in zip(indices, shape, chunks, strict=True):
        sizes *= np.minimum((index + 1) * chunk, length) - index * chunk
    return int(sizes.sum())


def capacity_of(array: TracedArray) -> int | None:
    """How many chunks the library's cache holds: none in zarr-python; None if it is not known."""
    chunk_nbytes = array.chunk_nbytes
    if not chunk_nbytes:
        return None
    if array.library == "zarr":
        return 0
    nbytes = CHUNK_CACHE_NBYTES if array.library == "hyperslab" else array.cache_nbytes
    if nbytes is None:
        return None
    slots = array.cache_slots if array.cache_slots is not None else nbytes
    return min(nbytes // chunk_nbytes, slots)


def _heat(
    chunks: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], grid: tuple[int, ...]
) -> tuple[list[list[int]], tuple[int, ...]]:
    """Touches of the chunk grid, summed to at most two axes and `MOST_CELLS` cells along each.

    All cells stand for equally many chunks, apart from the last ones.
    """
    axes = tuple(sorted(sorted(range(len(grid)), key=lambda axis: -grid[axis])[:2]))
    indices = np.unravel_index(chunks, grid)
    widths = [ceil_div(grid[axis], MOST_CELLS) for axis in axes]
    cells = [ceil_div(grid[axis], width) for axis, width in zip(axes, widths, strict=True)]
    heat = np.zeros(cells if len(cells) == 2 else [1, *cells], np.int64)
    places = [indices[axis] // width for axis, width in zip(axes, widths, strict=True)]
    np.add.at(heat, tuple(places) if len(places) == 2 else (np.zeros_like(places[0]), places[0]), counts)
    return heat.tolist(), axes


def _blocks(trace: Trace) -> Iterator[slice]:
    """Rows that are looked at together: of a long trace, all at once would need several times its memory."""
    return (slice(first, first + BLOCK) for first in range(0, len(trace), BLOCK))


def busy_seconds(trace: Trace) -> float:
    """How long at least one access was under way."""
    busy, before = 0, None
    for rows in _blocks(trace):
        starts = trace.columns["start_ns"][rows]
        stops = starts + trace.columns["duration_ns"][rows]
        latest = np.maximum.accumulate(np.concatenate([starts[:1] if before is None else before, stops]))
        busy += int(np.maximum(latest[1:] - np.maximum(starts, latest[:-1]), 0).sum())
        before = latest[-1:]
    return busy / 1e9


def timeline(trace: Trace, bin_count: int = 120) -> tuple[list[float], list[float]]:
    """Seconds of reading and of writing in equal parts of the program's time, summed over threads."""
    edges = np.linspace(0, max(trace.seconds * 1e9, 1), bin_count + 1)
    seconds_by_operation = []
    for is_write in (False, True):
        spent = np.zeros(len(edges))
        for rows in _blocks(trace):
            columns = {name: trace.columns[name][rows] for name in ("operation", "start_ns", "duration_ns")}
            mine = (columns["operation"] != 0) == is_write
            starts = columns["start_ns"][mine].astype(float)
            stops = starts + columns["duration_ns"][mine]
            # Time of all accesses before an edge: the difference of two sums over sorted times.
            spent += _spent(np.sort(starts), edges) - _spent(np.sort(stops), edges)
        seconds_by_operation.append((np.diff(spent) / 1e9).tolist())
    return seconds_by_operation[0], seconds_by_operation[1]


def _spent(times: npt.NDArray[np.float64], edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    sums = np.concatenate([[0.0], np.cumsum(times)])
    before = np.searchsorted(times, edges)
    result: npt.NDArray[np.float64] = before * edges - sums[before]
    return result

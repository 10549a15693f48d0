"""Which chunks the accesses to an array touch, in order, and how often a cache of a given size would decode them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from hyperslab.chunk_grid import ceil_div
from hyperslab.trace.recording.log import ALL, HYPERSLAB, POINTS
from hyperslab.trace.selection import Numbers, hyperslabs
from hyperslab.trace.table import AccessTable

MOST_PARTS = 10_000
"""Of a selection that is a list: more parts are not looked at."""
BLOCK = 1 << 14
"""So many rows are looked at together: what they need then stays in the processor's caches."""
MOST_TOUCHES = 300_000
"""Of an array: its later accesses are not looked at."""


def grid_shape(shape: Sequence[int], chunk_shape: Sequence[int]) -> tuple[int, ...]:
    """The number of chunks along each axis."""
    return tuple(ceil_div(length, chunk) for length, chunk in zip(shape, chunk_shape, strict=True))


def touched(kind: int, numbers: Numbers, shape: Sequence[int], chunk_shape: Sequence[int]) -> Numbers:
    """The linear indices of the chunks that a selection touches, ascending."""
    grid = grid_shape(shape, chunk_shape)
    if kind == ALL:
        return np.arange(min(math.prod(grid), MOST_TOUCHES))
    if kind == POINTS:
        indices = numbers.reshape(-1, len(grid)) // np.array(chunk_shape)
        return np.unique(np.ravel_multi_index(tuple(indices.T), grid))
    parts = []
    for slabs in hyperslabs(kind, numbers, shape, MOST_PARTS):
        axes = _cut([_of_axis(axis, chunk) for axis, chunk in zip(slabs, chunk_shape, strict=True)])
        combined = np.ravel_multi_index(np.ix_(*axes), grid) if axes else np.zeros(1, np.int64)
        parts.append(np.asarray(combined, np.int64).ravel())
    if not parts:
        return np.empty(0, np.int64)
    return parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))


def _cut(axes: list[Numbers]) -> tuple[Numbers, ...]:
    """At most `MOST_TOUCHES` combinations: of an absurd selection, the first chunks."""
    room = MOST_TOUCHES
    shortened_axes = []
    for axis in reversed(axes):
        shortened_axes.append(axis[: max(room, 1)])
        room //= len(shortened_axes[-1])
    return tuple(reversed(shortened_axes))


def _of_axis(axis: tuple[int, int, int, int], chunk: int) -> npt.NDArray[np.int64]:
    start, stride, count, block = axis
    last = start + (count - 1) * stride + block - 1
    if stride - block < chunk:  # no gap holds a whole chunk
        return np.arange(start // chunk, min(last // chunk, start // chunk + MOST_TOUCHES) + 1)
    first = start + stride * np.arange(min(count, MOST_TOUCHES))
    return np.unique(np.concatenate([np.arange(a // chunk, (a + block - 1) // chunk + 1) for a in first.tolist()]))


@dataclass
class Touches:
    """The chunks that selections touch, one after the other."""

    chunks: Numbers
    offsets: Numbers
    """Selection k touches `chunks[offsets[k]:offsets[k + 1]]`. Later selections are not looked at."""

    @property
    def selection_count(self) -> int:
        """How many selections were looked at."""
        return len(self.offsets) - 1

    def sorted_order(self) -> npt.NDArray[np.intp]:
        """The selections in the order of their first chunks; those that touch nothing come first."""
        has_any = np.diff(self.offsets) > 0
        first = np.full(self.selection_count, -1, np.int64)
        first[has_any] = self.chunks[self.offsets[:-1][has_any]]
        return np.argsort(first, kind="stable")

    def reordered(self, order: npt.NDArray[np.intp]) -> Numbers:
        """The chunks if the selections were made in another order."""
        lengths = np.diff(self.offsets)[order]
        reordered_chunks: Numbers = self.chunks[np.repeat(self.offsets[:-1][order], lengths) + _counted(lengths)]
        return reordered_chunks


def _counted(lengths: npt.NDArray[np.int64]) -> Numbers:
    """0, 1, 2 and so on up to each length, one after the other."""
    ends = np.cumsum(lengths)
    result: Numbers = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
    return result


def all_touched(
    table: AccessTable, rows: Sequence[int] | npt.NDArray[np.intp], shape: Sequence[int], chunk_shape: Sequence[int]
) -> Touches:
    """The chunks that the selections of some rows touch, up to `MOST_TOUCHES` chunks in all."""
    rows = np.asarray(rows, np.intp)
    boxes = _Boxes(table, rows, shape, chunk_shape)
    others = dict(_of_others(table, rows, boxes, shape, chunk_shape))
    counts = boxes.counts.copy()
    for place, chunks in others.items():
        counts[place] = len(chunks)
    before = np.cumsum(counts) - counts
    counts = counts[before < MOST_TOUCHES]
    offsets = np.minimum(np.concatenate([[0], np.cumsum(counts)]), MOST_TOUCHES).astype(np.int64)
    touched_chunks = np.empty(offsets[-1], np.int64)
    lengths = np.where(boxes.counts[: len(counts)] > 0, np.diff(offsets), 0)
    inside = np.repeat(offsets[:-1], lengths) + _counted(lengths)
    touched_chunks[inside] = boxes.chunks(lengths)
    for place, chunks in others.items():
        if place < len(counts):
            touched_chunks[offsets[place] : offsets[place + 1]] = chunks[: offsets[place + 1] - offsets[place]]
    return Touches(touched_chunks, offsets)


class _Boxes:
    """Those hyperslabs that touch every chunk in between: very many at a time."""

    def __init__(
        self,
        table: AccessTable,
        rows: npt.NDArray[np.intp],
        shape: Sequence[int],
        chunk_shape: Sequence[int],
    ) -> None:
        ndim = len(shape)
        self.grid = grid_shape(shape, chunk_shape)
        self.counts = np.zeros(len(rows), np.int64)
        """How many chunks each row touches; 0 for rows that are something else."""
        self.first = np.zeros((len(rows), ndim), np.int64)
        self.lengths = np.zeros((len(rows), ndim), np.int64)
        slabs = np.flatnonzero(table.columns["kind"][rows] == HYPERSLAB) if ndim else np.empty(0, np.intp)
        for begin in range(0, len(slabs), BLOCK):
            self._add(table, rows, slabs[begin : begin + BLOCK], chunk_shape)

    def _add(
        self, table: AccessTable, rows: npt.NDArray[np.intp], slabs: npt.NDArray[np.intp], chunk_shape: Sequence[int]
    ) -> None:
        ndim = len(chunk_shape)
        places = table.offsets[rows[slabs]][:, None] + np.arange(4 * ndim)
        start, stride, count, block = np.moveaxis(table.numbers[places].reshape(len(slabs), ndim, 4), 2, 0)
        chunk = np.array(chunk_shape, np.int64)
        first = start // chunk
        lengths = (start + (count - 1) * stride + block - 1) // chunk - first + 1
        are_few = np.prod(lengths.astype(float), axis=1) <= MOST_TOUCHES
        is_right = (stride - block < chunk).all(axis=1) & are_few  # no gap holds a whole chunk
        whole = slabs[is_right]
        self.first[whole], self.lengths[whole] = first[is_right], lengths[is_right]
        self.counts[whole] = np.prod(lengths[is_right], axis=1)

    def chunks(self, counts: npt.NDArray[np.int64]) -> Numbers:
        """So many chunks of each row, one row after the other."""
        row = np.repeat(np.arange(len(counts)), counts)
        rest = _counted(counts)
        chunk_numbers, step = np.zeros(len(rest), np.int64), 1
        for axis in range(len(self.grid) - 1, -1, -1):
            rest, index = np.divmod(rest, self.lengths[row, axis])
            chunk_numbers += (self.first[row, axis] + index) * step
            step *= self.grid[axis]
        return chunk_numbers


def _of_others(
    table: AccessTable,
    rows: npt.NDArray[np.intp],
    boxes: _Boxes,
    shape: Sequence[int],
    chunk_shape: Sequence[int],
) -> Iterator[tuple[int, Numbers]]:
    """The chunks of each selection that is no simple box, as long as there are not too many."""

    @lru_cache(maxsize=10_000)
    def known(kind: int, content: bytes) -> Numbers:
        return touched(kind, np.frombuffer(content, np.int64), shape, chunk_shape)

    before = np.cumsum(boxes.counts) - boxes.counts
    count = 0
    for place in np.flatnonzero(boxes.counts == 0).tolist():
        if count + before[place] >= MOST_TOUCHES:
            break
        kind, numbers = table.selection(int(rows[place]))
        chunks = known(kind, numbers.tobytes())
        count += len(chunks)
        yield place, chunks


def decode_count(distances: npt.NDArray[np.int64], capacity: int) -> int:
    """How many chunks a cache of `capacity` chunks decodes."""
    return int(np.count_nonzero((distances < 0) | (distances >= capacity)))

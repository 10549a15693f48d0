"""`StagedChunks`: an array as a grid of chunks, with the chunks that you touched in memory.

Each chunk of the grid is in a row of `slab` (staged), or in a slot of the stack of stored chunks, or nowhere, which
means the fill value. The part of a staged chunk outside the array always holds the fill value.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hyperslab.chunk_grid import ceil_div, chunk_counts
from hyperslab.versions.layout.names import Array
from hyperslab.versions.layout.slots import MISSING, Slots
from hyperslab.versions.stage.selection import Selected

# With fewer elements a chunk than this, all elements are located at once, one by one.
FEW_ELEMENTS = 64


class StagedChunks:
    """A grid of chunks over an array.

    Parameters
    ----------
    shape : tuple[int, ...]
        The shape of the array.
    chunk_shape : tuple[int, ...]
        The shape of each chunk.
    dtype : np.dtype[Any]
        The dtype of the elements.
    fill : scalar
        The fill value.
    stored : Slots
        The slot of each chunk of the grid, or -1.
    load : Callable[[Slots], Array]
        Reads the stored chunks in some slots, stacked along a new first axis.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        chunk_shape: tuple[int, ...],
        dtype: np.dtype[Any],
        fill: Any,
        stored: Slots,
        load: Callable[[Slots], Array],
    ) -> None:
        self.shape: tuple[int, ...] = shape
        self.chunk_shape = chunk_shape
        self.fill = fill
        self.stored: Slots = stored.reshape(self.grid_shape)
        self.rows: Slots = np.full(self.grid_shape, MISSING, np.int64)
        self.slab: Array = np.empty((0, *chunk_shape), dtype)
        self.staged_count: int = 0
        self._load = load

    @property
    def grid_shape(self) -> tuple[int, ...]:
        """The number of chunks along each axis."""
        return chunk_counts(self.shape, self.chunk_shape)

    def valid(self, index: Sequence[int]) -> tuple[slice, ...]:
        """The part of a chunk that is inside the array, given its index in the grid."""
        axes = zip(index, self.chunk_shape, self.shape, strict=True)
        return tuple(slice(0, min(chunk, length - position * chunk)) for position, chunk, length in axes)

    def read(self, selected: Selected) -> Array:
        """The elements of a selection, with all axes."""
        touched, slab, row_of = None, None, None
        if selected.boxes is not None and self._elements_per_chunk(selected) >= FEW_ELEMENTS:
            touched = self._touched_by(selected)
            slab = self._chunks(touched)
            row_of = {number: row for row, number in enumerate(touched.tolist())}
            out: Array = np.empty(selected.full_shape, self.slab.dtype)
            for number, inside, outside in self._parts(selected):
                out[outside] = slab[row_of[number]][inside]
            return out
        within, numbers = self._located(selected)
        touched, rows = np.unique(numbers, return_inverse=True)
        slab = self._chunks(touched)
        return np.asarray(slab[(rows.reshape(numbers.shape), *within)]).reshape(selected.full_shape)

    def write(self, selected: Selected, elements: Array) -> None:
        """Write elements, with all axes, to a selection."""
        if selected.boxes is not None and self._elements_per_chunk(selected) >= FEW_ELEMENTS:
            touched = self._touched_by(selected)
            self.stage(touched, self._covered(selected))
            rows = self.rows.reshape(-1)
            for number, inside, outside in self._parts(selected):
                self.slab[rows[number]][inside] = elements[outside]
            return
        within, numbers = self._located(selected)
        self.stage(np.unique(numbers))
        self.slab[(self.rows.reshape(-1)[numbers], *within)] = elements.reshape(numbers.shape)

    def resize(self, shape: tuple[int, ...]) -> None:
        """Change the shape of the array. New elements get the fill value."""
        changed = self._changed(shape)
        is_something = (self.stored.reshape(-1)[changed] != MISSING) | (self.rows.reshape(-1)[changed] != MISSING)
        self.stage(changed[is_something])  # a stored chunk has one valid shape, and the fill value outside the array
        old_stored, old_rows, old_grid = self.stored, self.rows, self.grid_shape
        self.shape = shape
        kept = tuple(slice(0, min(old, new)) for old, new in zip(old_grid, self.grid_shape, strict=True))
        self.stored = np.full(self.grid_shape, MISSING, np.int64)
        self.rows = np.full(self.grid_shape, MISSING, np.int64)
        self.stored[kept], self.rows[kept] = old_stored[kept], old_rows[kept]
        staged = np.flatnonzero(self.rows.reshape(-1) != MISSING)
        self._clear_outside(staged)

    def stage(self, numbers: Slots, covered: npt.NDArray[np.bool_] | None = None) -> None:
        """Load chunks into the slab, by their linear indices; covered chunks only get room there."""
        rows = self.rows.reshape(-1)
        new = rows[numbers] == MISSING
        numbers = numbers[new]
        if not len(numbers):
            return
        first, last = self.staged_count, self.staged_count + len(numbers)
        if last > len(self.slab):
            room = max(last, 2 * self.staged_count)
            slab: Array = np.empty((room, *self.chunk_shape), self.slab.dtype)
            slab[:first] = self.slab[:first]
            self.slab = slab
        loaded = np.ones(len(numbers), bool) if covered is None else ~covered[new]
        rows[numbers] = np.arange(first, last)
        self.staged_count = last
        if loaded.any():
            self.slab[first:last][loaded] = self._loaded(numbers[loaded])
        self._clear_outside(numbers)

    def _chunks(self, numbers: Slots) -> Array:
        """Chunks by their linear indices, whether staged or not; this stages nothing."""
        rows = self.rows.reshape(-1)[numbers]
        is_staged = rows != MISSING
        if is_staged.all() and np.array_equal(rows, np.arange(len(self.slab))):
            return self.slab
        out: Array = np.empty((len(numbers), *self.chunk_shape), self.slab.dtype)
        out[is_staged] = self.slab[rows[is_staged]]
        out[~is_staged] = self._loaded(numbers[~is_staged])
        return out

    def adopt(self, numbers: Slots, slots: Slots) -> None:
        """Put stored chunks, by their slots, in the place of others, without reading any."""
        self.stored = self.stored.copy()  # it may belong to the version before
        self.stored.reshape(-1)[numbers] = slots
        self.rows.reshape(-1)[numbers] = MISSING

    def _loaded(self, numbers: Slots) -> Array:
        """Load stored chunks that are not staged."""
        return self.of_slots(self.stored.reshape(-1)[numbers])

    def of_slots(self, stored: Slots) -> Array:
        """The chunks in some slots; -1 means the fill value."""
        out: Array = np.full((len(stored), *self.chunk_shape), self.fill, self.slab.dtype)
        wanted, inverse = np.unique(stored[stored != MISSING], return_inverse=True)
        if len(wanted):
            out[stored != MISSING] = self._load(wanted)[inverse]
        return out

    def _clear_outside(self, numbers: Slots) -> None:
        """Fill the part outside the array, of staged chunks at its end, with the fill value."""
        rest = [length % chunk for length, chunk in zip(self.shape, self.chunk_shape, strict=True)]
        if not any(rest) or not len(numbers):
            return
        indices = np.unravel_index(numbers, self.grid_shape)
        rows = self.rows.reshape(-1)[numbers]
        for axis, (inside, count) in enumerate(zip(rest, self.grid_shape, strict=True)):
            if inside:
                at_end = rows[indices[axis] == count - 1]
                outside: tuple[Any, ...] = (at_end, *[slice(None)] * axis, slice(inside, None))
                self.slab[outside] = self.fill

    def _changed(self, shape: tuple[int, ...]) -> Slots:
        """The linear indices of chunks that an array of `shape` cuts at another length without losing them."""
        changed, stays = np.zeros((), bool), np.ones((), bool)
        for old, new, chunk in zip(self.shape, shape, self.chunk_shape, strict=True):
            starts = np.arange(ceil_div(old, chunk)) * chunk
            differ = np.minimum(old, starts + chunk) != np.minimum(new, starts + chunk)
            changed, stays = np.logical_or.outer(changed, differ), np.logical_and.outer(stays, starts < new)
        return np.flatnonzero(changed & stays).astype(np.int64)

    def _located(self, selected: Selected) -> tuple[list[Slots], Slots]:
        """The position of each element in its chunk, axis by axis, and the linear index of the chunk."""
        within, numbers = [], np.zeros((), np.int64)
        for indices, chunk, count in zip(selected.indices, self.chunk_shape, self.grid_shape, strict=True):
            numbers = numbers * count + indices // chunk
            within.append(indices % chunk)
        return within, np.asarray(numbers)

    def _elements_per_chunk(self, selected: Selected) -> float:
        counts = [len(self._along(axis, box)) for axis, box in enumerate(selected.boxes or ())]
        return math.prod(selected.full_shape) / max(1, math.prod(counts))

    def _along(self, axis: int, box: tuple[int, int, int]) -> range:
        """The chunks along an axis that a (start, step, count) may touch."""
        start, step, count = box
        chunk = self.chunk_shape[axis]
        return range(start // chunk, (start + (count - 1) * step) // chunk + 1) if count else range(0)

    def _touched_by(self, selected: Selected) -> Slots:
        ranges = [self._along(axis, box) for axis, box in enumerate(selected.boxes or ())]
        return np.ravel_multi_index(np.ix_(*ranges), self.grid_shape).reshape(-1).astype(np.int64)

    def _covered(self, selected: Selected) -> npt.NDArray[np.bool_]:
        """Whether the boxes cover all valid elements of each chunk that they touch."""
        covered = np.ones((), bool)
        for axis, (start, step, count) in enumerate(selected.boxes or ()):
            chunk, length = self.chunk_shape[axis], self.shape[axis]
            chunks = np.asarray(self._along(axis, (start, step, count)), np.int64)
            ends = np.minimum((chunks + 1) * chunk, length)
            whole = (chunks * chunk >= start) & (ends <= start + count) & (step == 1)
            covered = np.logical_and.outer(covered, whole)
        return covered.reshape(-1)

    def _parts(self, selected: Selected) -> Any:
        """For each chunk that the boxes touch: its linear index, the part of it, and the part of the selection."""
        per_axis = []
        for axis, (start, step, count) in enumerate(selected.boxes or ()):
            chunk, parts = self.chunk_shape[axis], []
            for position in self._along(axis, (start, step, count)):
                first = max(0, ceil_div(position * chunk - start, step))
                stop = min(count, ceil_div((position + 1) * chunk - start, step))
                if first < stop:
                    origin = start + first * step - position * chunk
                    inside = slice(origin, origin + (stop - first - 1) * step + 1, step)
                    parts.append((position, inside, slice(first, stop)))
            per_axis.append(parts)
        for chosen in itertools.product(*per_axis):
            number = 0
            for (index, _, _), count in zip(chosen, self.grid_shape, strict=True):
                number = number * count + index
            yield number, tuple(part[1] for part in chosen), tuple(part[2] for part in chosen)

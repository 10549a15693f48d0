"""`Sides`: an array in three versions, and what has to be done with each of its chunks to merge two of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hyperslab.chunk_grid import chunk_counts
from hyperslab.errors import DamagedFile
from hyperslab.versions.inspect.chunk_maps import ChunkMap
from hyperslab.versions.layout.slots import MISSING, Slots, check_chunk_count

ABSENT = -2  # of a chunk outside the array


class Plan(NamedTuple):
    """The chunks to take from theirs, with their slots, and those to merge element by element; all others stay ours."""

    adopted: Slots
    slots: Slots
    both: Slots


class Sides(NamedTuple):
    """An array before both sides changed it, if it existed, and as each side has it."""

    base: ChunkMap | None
    ours: ChunkMap
    theirs: ChunkMap

    def merged_shape(self, theirs_count: bool) -> tuple[tuple[int, ...], bool]:
        """The shape, axis by axis; and whether no axis got two new lengths."""
        base, lengths, is_clear = self.base, [], True
        if len({len(one.shape) for one in self if one is not None}) > 1:
            raise DamagedFile(f"{self.ours.path!r} has another number of axes in another version")
        for axis, (own, other) in enumerate(zip(self.ours.shape, self.theirs.shape, strict=True)):
            old = None if base is None else base.shape[axis]
            if own == other or other == old:
                lengths.append(own)
            elif own == old:
                lengths.append(other)
            else:
                is_clear = False
                lengths.append(other if theirs_count else own)
        return tuple(lengths), is_clear

    def plan(self, shape: tuple[int, ...]) -> Plan:
        """What to do with each chunk of an array with the merged shape."""
        chunk_shape = self.ours.chunk_shape
        if any(one.chunk_shape != chunk_shape for one in self if one is not None):
            raise DamagedFile(f"{self.ours.path!r} has other chunks in another version")
        check_chunk_count(self.ours.path, shape, chunk_shape)
        grid = chunk_counts(shape, chunk_shape)
        old, own, other = (states(one, grid) for one in self)
        ours_kept = same_states(old, own, self.base, self.ours, grid)
        theirs_kept = same_states(old, other, self.base, self.theirs, grid) | same_states(
            own, other, self.ours, self.theirs, grid
        )
        own_fits, other_fits = (fits(one, shape, grid) for one in (self.ours, self.theirs))
        adopted = ours_kept & ~theirs_kept & (other != ABSENT) & other_fits
        stays = theirs_kept & (own_fits | ((own == ABSENT) & (other == ABSENT)))
        stays |= (own == ABSENT) & (other == ABSENT)
        numbers = np.flatnonzero(adopted)
        return Plan(numbers, other.reshape(-1)[numbers], np.flatnonzero(~(adopted | stays)))

    def changed_beyond(self, side: ChunkMap, shape: tuple[int, ...]) -> Iterator[npt.NDArray[np.int64]]:
        """The indices of chunks that a side changed and that reach beyond a shape."""
        cut = [axis for axis, length in enumerate(shape) if length < side.shape[axis]]
        if not cut:
            return
        grid = side.grid_shape
        changed = ~same_states(states(self.base, grid), states(side, grid), self.base, side, grid)
        ends = (np.argwhere(changed) + 1) * side.chunk_shape
        yield from np.argwhere(changed)[(ends > shape).any(axis=1)]


def states(one: ChunkMap | None, grid: tuple[int, ...]) -> Slots:
    """The slot of each chunk of a grid; `ABSENT` outside the array."""
    if one is not None and one.slots is None:
        raise DamagedFile(f"{one.path!r} is not made of whole chunks")
    if one is not None and one.slots is not None and one.grid_shape == grid:
        return one.slots.reshape(grid)
    states = np.full(grid, ABSENT, np.int64)
    if one is not None and one.slots is not None:
        shared = tuple(slice(0, min(counts)) for counts in zip(grid, one.grid_shape, strict=True))
        states[shared] = one.slots.reshape(one.grid_shape)[shared]
    return states


def same_states(
    one: Slots, other: Slots, one_map: ChunkMap | None, other_map: ChunkMap | None, grid: tuple[int, ...]
) -> npt.NDArray[np.bool_]:
    """Which chunks are equal: those in the same slot, or nowhere with the same valid shape."""
    same: npt.NDArray[np.bool_] = np.asarray(one == other)
    if one_map is None or other_map is None or one_map.shape == other_map.shape:
        return same
    return np.asarray(same & ((one != MISSING) | fits(one_map, other_map.shape, grid)))


def fits(one: ChunkMap, shape: tuple[int, ...], grid: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Which chunks have the same valid shape in an array of another shape."""
    fits = np.ones((), bool)
    for own, length, chunk, count in zip(one.shape, shape, one.chunk_shape, grid, strict=True):
        starts = np.arange(count) * chunk
        fits = np.logical_and.outer(fits, np.clip(own - starts, 0, chunk) == np.clip(length - starts, 0, chunk))
    return fits


def inside(
    shape: tuple[int, ...], indices: npt.NDArray[np.int64], chunk_shape: tuple[int, ...]
) -> npt.NDArray[np.bool_]:
    """Which elements of chunks are inside an array of a shape."""
    found = np.ones((len(indices), *chunk_shape), bool)
    for axis, (length, chunk) in enumerate(zip(shape, chunk_shape, strict=True)):
        along = indices[:, axis, None] * chunk + np.arange(chunk) < length
        found &= along.reshape(len(indices), *(chunk if other == axis else 1 for other in range(len(shape))))
    return found

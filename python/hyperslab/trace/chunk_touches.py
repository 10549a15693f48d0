"""Which chunks the accesses to an array touch, in order, and how often a cache of a given size would decode them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from hyperslab.chunk_grid import ceil_div
from hyperslab.trace.recording.log import ALL, POINTS
from hyperslab.trace.selection import Numbers, hyperslabs

MOST_PARTS = 10_000
"""Of a selection that is a list: more parts are not looked at."""
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
    found = []
    for axis in reversed(axes):
        found.append(axis[: max(room, 1)])
        room //= len(found[-1])
    return tuple(reversed(found))


def _of_axis(axis: tuple[int, int, int, int], chunk: int) -> npt.NDArray[np.int64]:
    start, stride, count, block = axis
    last = start + (count - 1) * stride + block - 1
    if stride - block < chunk:  # no gap holds a whole chunk
        return np.arange(start // chunk, min(last // chunk, start // chunk + MOST_TOUCHES) + 1)
    first = start + stride * np.arange(min(count, MOST_TOUCHES))
    return np.unique(np.concatenate([np.arange(a // chunk, (a + block - 1) // chunk + 1) for a in first.tolist()]))


def all_touched(
    selections: Iterable[tuple[int, Numbers]], shape: Sequence[int], chunk_shape: Sequence[int]
) -> list[Numbers]:
    """The chunks that each selection touches, up to `MOST_TOUCHES` chunks in all."""

    @lru_cache(maxsize=10_000)
    def known(kind: int, content: bytes) -> Numbers:
        return touched(kind, np.frombuffer(content, np.int64), shape, chunk_shape)

    found: list[Numbers] = []
    count = 0
    for kind, numbers in selections:
        if count >= MOST_TOUCHES:
            break
        chunks = known(kind, numbers.tobytes())
        found.append(chunks[: MOST_TOUCHES - count])
        count += len(chunks)
    return found


def reuse_distances(chunks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each touch, how many other chunks were touched since the last touch of its chunk; -1 for the first one.

    A cache of n chunks that forgets the one that was used longest ago still has a chunk if its distance is below n.
    """
    count = len(chunks)
    marks = [0] * (count + 1)  # a Fenwick tree: 1 at the last touch of each chunk
    last: dict[int, int] = {}
    found = np.full(count, -1, np.int64)
    total = 0
    for place, chunk in enumerate(chunks.tolist(), start=1):
        before = last.get(chunk)
        if before is not None:
            upto, position = 0, before
            while position:
                upto += marks[position]
                position &= position - 1
            found[place - 1] = total - upto
            position = before
            while position <= count:
                marks[position] -= 1
                position += position & -position
        else:
            total += 1
        last[chunk] = position = place
        while position <= count:
            marks[position] += 1
            position += position & -position
    return found


def decode_count(distances: npt.NDArray[np.int64], capacity: int) -> int:
    """How many chunks a cache of `capacity` chunks decodes."""
    return int(np.count_nonzero((distances < 0) | (distances >= capacity)))

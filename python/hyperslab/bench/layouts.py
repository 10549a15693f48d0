"""The chunk and shard shapes that conditions give an array."""

from __future__ import annotations

import numpy as np

from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import StudyError

AUTO_CHUNK_NBYTES = 1 << 20
SHARD_CHUNKS = 16  # chunks in a shard, for formats with shards


def given_chunks(case: str, chunks: list[int], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The chunk shape from a study, limited to the array's shape. -1 means the whole axis."""
    if len(chunks) != len(shape) or any(c == 0 or c < -1 for c in chunks):
        raise StudyError(
            f"study {case}: chunks {chunks} do not fit arrays of shape {list(shape)}: give one length for each axis"
        )
    return tuple(length if c == -1 else min(c, length) for c, length in zip(chunks, shape, strict=True))


def auto_chunks(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """A chunk shape of about 1 MiB. The longest axis is halved until a chunk fits, so that all axes are cut alike."""
    lengths = [max(1, length) for length in shape]
    while int(np.prod(lengths, dtype=np.int64)) * itemsize > AUTO_CHUNK_NBYTES and max(lengths) > 1:
        axis = lengths.index(max(lengths))
        lengths[axis] = ceil_div(lengths[axis], 2)
    return tuple(lengths)


def shard_shape(chunks: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shard shape of up to `SHARD_CHUNKS` chunks. It doubles along the axis with the most remaining chunks."""
    times = [1] * len(chunks)
    while int(np.prod(times)) < SHARD_CHUNKS:
        left = [ceil_div(length, c * t) for length, c, t in zip(shape, chunks, times, strict=True)]
        if max(left) <= 1:
            break
        times[left.index(max(left))] *= 2
    return tuple(c * t for c, t in zip(chunks, times, strict=True))

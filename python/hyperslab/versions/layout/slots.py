"""In which slot of its stack each chunk of a version's array lies, for arrays small enough for memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from hyperslab._core import chunk_slots_of
from hyperslab.archive.tree.array import Array as ArchiveArray
from hyperslab.chunk_grid import chunk_counts
from hyperslab.errors import DamagedFile, Unsupported
from hyperslab.versions.layout.names import DATA

Slots: TypeAlias = npt.NDArray[np.int64]
MISSING = -1
# No useful array has more chunks than this, stored or not: they would fill memory, or the shape is damaged.
MOST_CHUNKS = 1 << 26


def grid_slots(base: ArchiveArray, chunk_shape: tuple[int, ...]) -> Slots | None:
    """The slot of each chunk of a version's array; None if the array is not made of whole chunks.

    Raises
    ------
    DamagedFile
        The array has another number of axes than its chunks.
    Unsupported
        The array has too many chunks.
    """
    name = f"{base.name} in {base.filename}"
    if len(base.shape) != len(chunk_shape) or min(chunk_shape, default=0) < 1:
        raise DamagedFile(f"{name} has the shape {base.shape} and chunks of {chunk_shape}")
    check_chunk_count(name, base.shape, chunk_shape, Unsupported)
    return chunk_slots_of(base._stored, chunk_shape)


def check_chunk_count(
    name: str, shape: Sequence[int], chunk_shape: Sequence[int], error: type[Exception] = ValueError
) -> None:
    """Refuse an array with too many chunks.

    Raises
    ------
    error
        The array has too many chunks.
    """
    count = math.prod(chunk_counts(shape, chunk_shape))
    if count > MOST_CHUNKS:
        said = f"{name} of the shape {tuple(shape)} has {count} chunks of {tuple(chunk_shape)}, more than {MOST_CHUNKS}"
        raise error(f"{said}: use larger chunks, unless the shape is damaged")


def stored_length(table: ArchiveArray) -> int:
    """The number of rows of a 1-D array up to the end of its last stored chunk. The stored chunks bound it, even if the
    shape says more.
    """
    chunk_length = (table.chunks or table.shape)[0]
    last = max((int(segment.indices().max(initial=0)) + 1 for segment in table.segments()), default=0)
    return min(table.shape[0], last * chunk_length)


def slots_of(base: ArchiveArray, path: str, chunk_count: int | None) -> Slots | None:
    """The slot of each chunk of a version's array; None if the array holds its elements itself.

    Raises
    ------
    DamagedFile
        The array is made of something else, or of chunks that do not exist.
    """
    slots = grid_slots(base, tuple(int(length) for length in base.attrs["chunks"]))
    if slots is None or base.attrs["raw_data"] != f"/{DATA}/{path}/raw_data":
        raise DamagedFile(
            f"{base.name} in {base.filename} is not made of whole chunks: hyperslab.versions.repair helps"
        )
    if not (slots != MISSING).any() and base.stored_chunk_count:
        return None
    if chunk_count is not None and slots.size and int(slots.max()) >= chunk_count:
        raise DamagedFile(
            f"{base.name} in {base.filename} shows chunks that do not exist: hyperslab.versions.repair helps"
        )
    return slots

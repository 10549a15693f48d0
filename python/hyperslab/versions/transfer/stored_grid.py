"""`StoredGrid`: where each chunk of an array is stored, so that two arrays can be compared by their stored bytes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from typing import Any

import numpy as np
import numpy.typing as npt

from hyperslab._core import same_stored
from hyperslab.archive.tree.array import Array
from hyperslab.chunk_grid import ceil_div, chunk_counts
from hyperslab.errors import HyperslabError
from hyperslab.journal.signals import raise_pending_signals
from hyperslab.versions.layout.slots import Slots

NOWHERE = -1
PIECE_NBYTES = 1 << 17  # two of them stay in the cache of a processor
TURN_NBYTES = 1 << 27  # Ctrl-C waits no longer than for this
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class StoredGrid:
    """An array whose chunks lie in one local file, in one regular grid.

    `offsets` has, for each chunk in C order, where it starts in the file, or -1 if it is not stored.
    """

    path: str
    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    kind: tuple[Any, ...]  # type, codecs and fill value: chunks of equal kinds are equal if their stored bytes are
    offsets: Slots
    lengths: Slots
    masks: Slots
    has_codecs: bool  # of any format; only HDF5's are among the filters of an array

    @classmethod
    def of(cls, array: Array) -> StoredGrid | None:
        """Where the chunks of an array are; None if it is stored in another way, or holds text of variable length."""
        try:
            segments = array.segments()
        except HyperslabError:
            return None
        if array.chunks is None or len(segments) > 1 or array.dtype.hasobject or not array.ndim:
            return None
        grid = chunk_counts(array.shape, array.chunks)
        offsets, lengths, masks = (np.full(int(np.prod(grid)), NOWHERE, np.int64) for _ in range(3))
        path, codecs, has_codecs = array.filename, "", False
        for segment in segments:
            files = np.unique(segment.files()).tolist()
            if len(files) > 1 or segment.chunk_shape != array.chunks or segment.inline() or not segment.is_tidy:
                return None
            found = array.file_paths()[files[0]] if files else path
            box = segment.box
            if found is None or not os.path.isfile(found) or box is None or any(box[0]) or any(box[2]):  # noqa: PTH113
                return None
            if chunk_counts(segment.source_shape, segment.chunk_shape)[1:] != grid[1:]:
                return None
            indices = segment.indices().astype(np.int64)
            if len(indices) and int(indices.max()) >= len(offsets):
                return None
            path, codecs = found, f"{segment.codecs!r} {segment.plain_edge_chunks}"
            has_codecs |= bool(segment.codecs)
            offsets[indices], lengths[indices] = segment.offsets(), segment.lengths()
            masks[indices] = segment.filter_masks()
        kind = (str(array.dtype), repr(array.dtype.metadata), codecs, array.fill_bytes)
        return cls(path, array.shape, array.chunks, kind, offsets, lengths, masks, has_codecs)

    def fits(self, theirs: Sequence[tuple[int, Any]], ours: Sequence[tuple[int, Any]]) -> bool:
        """Whether stored chunks can go as they are to an array with our filters. `theirs` are the HDF5 filters of the
        array; if it has other codecs, which other formats have, its stored bytes mean nothing in HDF5.
        """
        same = [(number, tuple(values)) for number, values in theirs] == [
            (number, tuple(values)) for number, values in ours
        ]
        return same and self.has_codecs == bool(theirs)

    @property
    def grid(self) -> tuple[int, ...]:
        """The number of chunks along each axis."""
        return chunk_counts(self.shape, self.chunk_shape)

    def read(self, numbers: Slots) -> Iterator[tuple[bytes, int]]:
        """The stored bytes of chunks, with the codecs that were skipped."""
        with open(self.path, "rb", buffering=0) as file:
            for number in numbers.tolist():
                yield (
                    os.pread(file.fileno(), int(self.lengths[number]), int(self.offsets[number])),
                    int(self.masks[number]),
                )

    def gather(self, numbers: Slots, into: npt.NDArray[np.uint8]) -> bool:
        """Read the stored bytes of chunks, each into a row of memory. Returns False if one has another length."""
        lengths, offsets = self.lengths[numbers], self.offsets[numbers]
        if (lengths != into.shape[1]).any():
            return False
        is_next = offsets[1:] == offsets[:-1] + lengths[:-1]
        starts = np.concatenate(([0], np.flatnonzero(~is_next) + 1))
        stops = np.append(starts[1:], len(numbers))
        with open(self.path, "rb", buffering=0) as file:
            runs = zip(starts.tolist(), stops.tolist(), strict=True)
            return all(_read(file, int(offsets[start]), into[start:stop].reshape(-1)) for start, stop in runs)

    def same(self, before: StoredGrid, is_ended: Callable[[], bool] = lambda: False) -> Mask:
        """Which chunks have the same valid shape and the same stored bytes in another array. If `is_ended` says that
        nobody waits for it any more, the rest is not compared, and counts as different.
        """
        same = np.zeros(len(self.offsets), bool)
        if self.chunk_shape != before.chunk_shape or self.kind != before.kind or len(self.shape) != len(before.shape):
            return same
        mine, theirs = _shared(self, before)
        is_alike = self.lengths[mine] == before.lengths[theirs]
        is_alike &= self.masks[mine] == before.masks[theirs]
        is_sure = (self.offsets[mine] == NOWHERE) & (before.offsets[theirs] == NOWHERE)
        if self.path == before.path:
            is_sure |= self.offsets[mine] == before.offsets[theirs]
        same[mine[is_alike & is_sure]] = True
        rest = np.flatnonzero(
            is_alike & ~is_sure & (self.offsets[mine] != NOWHERE) & (before.offsets[theirs] != NOWHERE)
        )
        same[mine[rest]] = _equal(self, before, mine[rest], theirs[rest], is_ended)
        return same

    def covered(self, changed: Mask, chunk_shape: tuple[int, ...]) -> Mask:
        """Which chunks of another grid over the same array touch any of some chunks of this one."""
        grid = chunk_counts(self.shape, chunk_shape)
        covered = np.zeros(grid, bool)
        for index in np.argwhere(changed.reshape(self.grid)).tolist():
            axes = zip(index, self.chunk_shape, chunk_shape, self.shape, strict=True)
            covered[
                tuple(
                    slice(at * own // other, ceil_div(min((at + 1) * own, length), other))
                    for at, own, other, length in axes
                )
            ] = True
        return covered.reshape(-1)


def _shared(one: StoredGrid, other: StoredGrid) -> tuple[Slots, Slots]:
    """The chunks that both have at the same index and with the same valid shape, by their linear indices in each."""
    if one.shape == other.shape:
        numbers = np.arange(len(one.offsets))
        return numbers, numbers
    along = []
    for own, length, chunk in zip(one.shape, other.shape, one.chunk_shape, strict=True):
        starts = np.arange(ceil_div(min(own, length), chunk)) * chunk
        along.append(np.flatnonzero(np.clip(own - starts, 0, chunk) == np.clip(length - starts, 0, chunk)))
    indices = np.meshgrid(*along, indexing="ij")
    mine, theirs = (np.ravel_multi_index(indices, each.grid).reshape(-1) for each in (one, other))
    return mine.astype(np.int64), theirs.astype(np.int64)


def _equal(one: StoredGrid, other: StoredGrid, mine: Slots, theirs: Slots, is_ended: Callable[[], bool]) -> Mask:
    """Compare the stored bytes of chunks of the same lengths. Chunks that lie one after the other in both files are
    read together, in pieces that stay in the processor's cache.
    """
    same = np.zeros(len(mine), bool)
    lengths, at, there = (
        each.astype(np.uint64) for each in (one.lengths[mine], one.offsets[mine], other.offsets[theirs])
    )
    turns = np.cumsum(lengths) // TURN_NBYTES
    starts = np.flatnonzero(np.diff(turns)) + 1
    for start, stop in itertools.pairwise([0, *starts.tolist(), len(mine)]):
        raise_pending_signals()
        if is_ended():
            break
        some = slice(start, stop)
        same[some] = same_stored((one.path, other.path), lengths[some], (at[some], there[some]), PIECE_NBYTES)
    return same


def _read(file: FileIO, offset: int, into: npt.NDArray[np.uint8]) -> bool:
    """Fill memory from a file. Returns False if the file ends before."""
    done = 0
    while done < len(into):
        count = os.preadv(file.fileno(), [into[done:].data], offset + done)
        if not count:
            return False
        done += count
    return True

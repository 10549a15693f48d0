"""`StoredCopy`: an array whose chunks are copied as they are stored, without decoding them.

libhdf5 places a stand-in of each chunk, and where it would write that, the kernel copies the bytes from the source.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import h5py
import numpy as np

from hyperslab.archive.opening import open as open_archive
from hyperslab.chunk_grid import ceil_div
from hyperslab.conversion.hdf5_target import check
from hyperslab.conversion.index_room import Indexed
from hyperslab.conversion.meter import Meter
from hyperslab.conversion.partial_file import PartialFile
from hyperslab.errors import FileChanged, RunError
from hyperslab.journal.signals import defer_signals, raise_pending_signals

if TYPE_CHECKING:
    from hyperslab.archive.tree.array import Array

BUFFER_NBYTES = 4 << 20
COPY_NBYTES = 512 << 10
PART_NBYTES, TOGETHER_NBYTES = 4 << 20, 128 << 20
PAGE = 4096


Piece: TypeAlias = tuple[tuple[int, ...] | None, int, int, int]


def pieces_of(array: Array) -> list[Piece]:
    """Start, filter mask, position and stored bytes of each chunk in the grid's order; without chunks one piece.

    Our own parser lists them. libhdf5 2.0 gives wrong starts for indexes in extensible arrays whose growing axis is
    not the first one (H5Dchunk_iter, H5Dget_chunk_info).
    """
    pieces: list[Piece] = []
    for segment in array.segments():
        columns = [one.tolist() for one in (segment.filter_masks(), segment.offsets(), segment.lengths())]
        starts: list[Any] = [None] * len(columns[0])
        if array.chunks is not None:
            grid = [ceil_div(length, chunk) for length, chunk in zip(array.shape, array.chunks, strict=True)]
            places = np.unravel_index(segment.indices().astype(np.int64), grid)
            starts = list(zip(*((at * n).tolist() for at, n in zip(places, array.chunks, strict=True)), strict=True))
        pieces += [piece for piece in zip(starts, *columns, strict=True) if piece[3]]
    return pieces


@dataclass(frozen=True)
class StoredCopy:
    """An array of the source as we read it, and the new one with the same layout and filters."""

    path: str
    array: Array
    target: Any

    def place(self, start: tuple[int, ...] | None, stand_in: memoryview, mask: int) -> None:
        """Let libhdf5 give a chunk, or the whole array, its place."""
        if start is not None:
            self.target.write_direct_chunk(start, stand_in, mask)
            return
        kind = self.target.get_type()
        elements = np.ndarray(self.target.shape, f"V{kind.get_size()}", stand_in)
        self.target.write(h5py.h5s.ALL, h5py.h5s.ALL, elements, kind)


class StoredChunks:
    """The stored chunks of all arrays that are copied as they are.

    Parameters
    ----------
    copies : list[StoredCopy]
        The arrays.
    """

    def __init__(self, copies: list[StoredCopy]) -> None:
        self._tables = [(copy, pieces_of(copy.array)) for copy in copies]
        self.nbytes: int = sum(size for _, table in self._tables for *_, size in table)

    def indexed(self) -> list[Indexed]:
        """The arrays that have chunks."""
        return [Indexed(copy.target, len(table), True) for copy, table in self._tables if copy.array.chunks]

    @defer_signals()
    def copy(self, file: PartialFile, source: str, meter: Meter) -> None:
        """Copy all chunks.

        Parameters
        ----------
        file : PartialFile
            What libhdf5 writes to.
        source : str
            The path of the source.
        meter : Meter
            Told what is done.

        Raises
        ------
        FileChanged
            The source is shorter than its chunks.
        """
        descriptor = os.open(source, os.O_RDONLY)
        copier = _Copier(descriptor, file)
        try:
            file.instead = copier.place
            for copy, table in self._tables:
                meter.is_copied(copy.path, len(table), sum(piece[3] for piece in table))
                waiting = 0
                for start, mask, position, size in table:
                    raise_pending_signals()
                    copier.next = position
                    try:
                        copy.place(start, file.stand_in(size), mask)
                    except (OSError, RuntimeError):
                        check(file)
                        raise
                    waiting += size
                    if waiting >= BUFFER_NBYTES:
                        copier.copy_if_many()
                        meter.add(copy.path, waiting)
                        waiting = 0
                meter.add(copy.path, waiting)
            copier.finish()
        finally:
            file.instead = None
            os.close(descriptor)


def verify_stored(copies: list[StoredCopy], source: str, target: Path, meter: Meter) -> None:
    """Compare the stored bytes of copied arrays, file against file.

    Parameters
    ----------
    copies : list[StoredCopy]
        The arrays.
    source : str
        The path of the source.
    target : Path
        The path of the copy, which is complete.
    meter : Meter
        Told what is done.

    Raises
    ------
    RunError
        Some bytes are different.
    """
    with open_archive(target) as made:
        files = [os.open(path, os.O_RDONLY) for path in (source, target)]
        try:
            for one in copies:
                again: Any = made[one.path]
                for mine, copy in itertools.zip_longest(pieces_of(one.array), pieces_of(again)):
                    is_alike = mine is not None and copy is not None and mine[:2] == copy[:2] and mine[3] == copy[3]
                    if not is_alike or not _same_bytes(files, (mine[2], copy[2]), mine[3]):
                        raise RunError(
                            f"{one.path}: its copy is not the same: nothing was put in place, please report it"
                        )
                    meter.add(f"verifying {one.path}", mine[3])
        finally:
            for number in files:
                os.close(number)


def _same_bytes(files: list[int], starts: tuple[int, int], nbytes: int) -> bool:
    for done in range(0, nbytes, BUFFER_NBYTES):
        part = min(BUFFER_NBYTES, nbytes - done)
        left, right = (os.pread(file, part, start + done) for file, start in zip(files, starts, strict=True))
        if left != right or len(left) != part:
            return False
    return True


def copy_user_block(source: str, file: PartialFile, nbytes: int) -> None:
    """Copy what stands in front of an HDF5 file, which only the program that put it there understands."""
    descriptor = os.open(source, os.O_RDONLY)
    try:
        copier = _Copier(descriptor, file)
        copier.place(0, nbytes, 0)
        copier.finish()
    finally:
        os.close(descriptor)


class _Copier:
    """Copies bytes between files with two threads. Pieces that follow each other in both files are copied together.

    While libhdf5 writes, this thread holds h5py's lock. Nothing is copied then: Python's garbage collector runs in any
    thread, may free an object of h5py there, and would wait for that lock for ever. So pieces are only noted, and
    copied between calls of libhdf5.

    Parameters
    ----------
    source : int
        The open source.
    file : PartialFile
        What is written.
    """

    def __init__(self, source: int, file: PartialFile) -> None:
        self._source = source
        self._file = file
        self._in_kernel = hasattr(os, "copy_file_range")
        self._noted: deque[tuple[int, int, int]] = deque()  # position in the source, in the file, and bytes
        self._nbytes = 0
        self._error: BaseException | None = None
        self.next = 0

    def place(self, start: int, nbytes: int, within: int) -> None:
        """Note that bytes of the next chunk belong where libhdf5 would write its stand-in."""
        at = self.next + within
        self._nbytes += nbytes
        if self._noted:
            before = self._noted[-1]
            if (at, start) == (before[0] + before[2], before[1] + before[2]):
                self._noted[-1] = (before[0], before[1], before[2] + nbytes)
                return
        self._noted.append((at, start, nbytes))

    def copy_if_many(self) -> None:
        """Copy what was noted, if it is worth starting a thread."""
        if self._nbytes >= TOGETHER_NBYTES:
            self.finish()

    def finish(self) -> None:
        """Copy what was noted. h5py's lock must be free.

        Raises
        ------
        FileChanged
            The source is too short.
        OSError
            The disk is full, or damaged.
        """
        parts = deque(_cut(self._noted))
        self._noted.clear()
        self._nbytes = 0
        helper = threading.Thread(target=self._help, args=(parts,)) if len(parts) > 1 else None
        if helper is not None:
            helper.start()
        try:
            self._help(parts)
        finally:
            parts.clear()  # so that the other thread ends
            if helper is not None:
                helper.join()
        if self._error is not None:
            raise self._error

    def _help(self, parts: deque[tuple[int, int, int]]) -> None:
        """Copy parts until none is left."""
        buffer = memoryview(bytearray(COPY_NBYTES))
        try:
            while self._error is None:
                self._copy(*parts.popleft(), buffer)
        except IndexError:
            return
        except BaseException as error:  # the calling thread raises it
            self._error = error
            if isinstance(error, OSError) and self._file.failure is None:
                self._file.failure = error  # nothing more is written, so libhdf5 can close the file

    def _copy(self, at: int, start: int, nbytes: int, buffer: memoryview) -> None:
        while nbytes:
            done = self._copied(at, start, nbytes, buffer)
            if not done:
                raise FileChanged("the source became shorter while it was copied: start again")
            at, start, nbytes = at + done, start + done, nbytes - done

    def _copied(self, at: int, start: int, nbytes: int, buffer: memoryview) -> int:
        # The kernel copies page by page, which takes longer than through memory if pages do not lie alike.
        if self._in_kernel and (at - start) % PAGE == 0:
            try:
                return os.copy_file_range(self._source, self._file.descriptor, nbytes, at, start)
            except OSError as error:
                if error.errno not in UNAVAILABLE:
                    raise
                self._in_kernel = False
        count = os.preadv(self._source, [buffer[: min(nbytes, COPY_NBYTES)]], at)
        return os.pwrite(self._file.descriptor, buffer[:count], start)


def _cut(pieces: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """The pieces, cut so that two threads finish together."""
    for at, start, nbytes in pieces:
        for done in range(0, nbytes, PART_NBYTES):
            yield at + done, start + done, min(PART_NBYTES, nbytes - done)


def _numbers(*names: str) -> frozenset[int]:
    import errno

    return frozenset(getattr(errno, name) for name in names if hasattr(errno, name))


UNAVAILABLE = _numbers("EXDEV", "EINVAL", "ENOSYS", "EOPNOTSUPP", "EPERM")

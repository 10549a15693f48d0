"""`StoredCopy`: an array whose chunks are copied as they are stored, without decoding them.

libhdf5 places a stand-in of each chunk, and where it would write that, the kernel copies the bytes from the source.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from hyperslab.conversion.hdf5_target import check
from hyperslab.conversion.partial_file import PartialFile
from hyperslab.errors import FileChanged
from hyperslab.progress import Progress

BUFFER_NBYTES = 4 << 20


@dataclass(frozen=True)
class StoredCopy:
    """An array of the source, and the new one with the same layout and filters."""

    path: str
    source: Any
    target: Any

    def pieces(self) -> list[tuple[tuple[int, ...] | None, int, int, int]]:
        """Start, filter mask, address and stored bytes of each chunk in the grid's order; without chunks one piece."""
        if self.source.get_create_plist().get_layout() != h5py.h5d.CHUNKED:
            address, nbytes = self.source.get_offset(), self.source.get_storage_size()
            return [] if address is None or not nbytes else [(None, 0, address, nbytes)]
        found: list[tuple[tuple[int, ...] | None, int, int, int]] = []

        def note(chunk: Any) -> None:
            if chunk.byte_offset is not None and chunk.size:
                found.append((chunk.chunk_offset, chunk.filter_mask, chunk.byte_offset, chunk.size))

        self.source.chunk_iter(note)
        return sorted(found)

    def place(self, start: tuple[int, ...] | None, stand_in: memoryview, mask: int) -> None:
        """Let libhdf5 give a chunk, or the whole array, its place."""
        if start is not None:
            self.target.write_direct_chunk(start, stand_in, mask)
            return
        kind = self.target.get_type()
        elements = np.ndarray(self.target.shape, f"V{kind.get_size()}", stand_in)
        self.target.write(h5py.h5s.ALL, h5py.h5s.ALL, elements, kind)


def copy_stored(copies: list[StoredCopy], file: PartialFile, source: str | None, progress: Progress | None) -> int:
    """Copy the chunks of all arrays. Returns their bytes.

    Parameters
    ----------
    copies : list[StoredCopy]
        The arrays.
    file : PartialFile
        What libhdf5 writes to.
    source : str | None
        The path of the source; None to place the chunks without copying them.
    progress : Progress | None
        Told how many MiB are done.

    Raises
    ------
    FileChanged
        The source is shorter than its chunks.
    """
    descriptor = -1 if source is None else os.open(source, os.O_RDONLY)
    base = _base(copies)
    tables = [copy.pieces() for copy in copies]
    total = sum(size for table in tables for *_, size in table)
    copier = _Copier(descriptor, file)
    done = 0
    try:
        file.instead = copier.place
        for copy, table in zip(copies, tables, strict=True):
            for number, (start, mask, address, size) in enumerate(table):
                copier.next = base + address
                try:
                    copy.place(start, file.stand_in(size), mask)
                except (OSError, RuntimeError):
                    check(file)
                    raise
                done += size
                if progress is not None and number % 64 == 0:
                    progress(copy.path, done >> 20, total >> 20)
    finally:
        file.instead = None
        if descriptor >= 0:
            os.close(descriptor)
    return done


def _base(copies: list[StoredCopy]) -> int:
    """Where the HDF5 part of the source begins: behind its user block."""
    if not copies:
        return 0
    owner = h5py.h5i.get_file_id(copies[0].source)
    return int(owner.get_create_plist().get_userblock())


class _Copier:
    """Copies bytes between files in the kernel, or through memory where the kernel cannot."""

    def __init__(self, source: int, file: PartialFile) -> None:
        self._source = source
        self._file = file
        self._in_kernel = hasattr(os, "copy_file_range")
        self.next = 0

    def place(self, start: int, nbytes: int, within: int) -> None:
        """Copy bytes of the next chunk to where libhdf5 would write its stand-in."""
        if self._source < 0:
            return
        at = self.next + within
        while nbytes:
            done = self._copied(at, start, nbytes)
            if not done:
                raise FileChanged("the source became shorter while it was copied: start again")
            at, start, nbytes = at + done, start + done, nbytes - done

    def _copied(self, at: int, start: int, nbytes: int) -> int:
        if self._in_kernel:
            try:
                return os.copy_file_range(self._source, self._file.descriptor, nbytes, at, start)
            except OSError as error:
                if error.errno not in UNAVAILABLE:
                    raise
                self._in_kernel = False
        data = os.pread(self._source, min(nbytes, BUFFER_NBYTES), at)
        return os.pwrite(self._file.descriptor, data, start)


def _numbers(*names: str) -> frozenset[int]:
    import errno

    return frozenset(getattr(errno, name) for name in names if hasattr(errno, name))


UNAVAILABLE = _numbers("EXDEV", "EINVAL", "ENOSYS", "EOPNOTSUPP", "EPERM")

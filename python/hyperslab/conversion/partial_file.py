"""`PartialFile`: the HDF5 file that libhdf5 writes while a conversion is under way, and how an interrupted one goes on.

libhdf5 gives each chunk its place in the order in which chunks are written, whatever their bytes are. So an interrupted
conversion is replayed: the same objects are created again, and chunks that the file already holds are "written" again
with their recorded sizes, but from a stand-in, whose bytes this file does not write. The metadata come out anew, and
the chunks are where they were.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt


class PartialFile:
    """What h5py writes to: a file at a path. Errors are kept, because libhdf5 forgets them."""

    def __init__(self, path: Path, *, is_new: bool) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | (os.O_TRUNC if is_new else 0), 0o666)
        self._position = 0
        self._length = 0  # of what libhdf5 has written now: it must not see what is left of an interrupted conversion
        self.failure: OSError | None = None
        self.is_replaying: bool = not is_new
        self.placeholder: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
        self.instead: Callable[[int, int, int], None] | None = None

    @property
    def descriptor(self) -> int:
        """The open file."""
        return self._descriptor

    def stand_in(self, nbytes: int) -> memoryview:
        """Bytes to pass to libhdf5 in place of others; `instead` is called where they would be written.

        Its arguments are the position in the file, the number of bytes, and the position in these bytes.
        """
        if len(self.placeholder) < nbytes:
            # Private and only for reading: the system promises no memory for it, however large it is.
            given = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
            self.placeholder = np.frombuffer(given, np.uint8)
        return self.placeholder[:nbytes].data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position, which is all that libhdf5 asks of it."""
        self._position = offset + (self._length if whence == os.SEEK_END else 0)
        return self._position

    def tell(self) -> int:
        """The position."""
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read bytes; those behind the end are zeros."""
        view = memoryview(buffer).cast("B")
        done = os.preadv(self._descriptor, [view], self._position) if self._position < self._length else 0
        if done < len(view):
            view[done:] = bytes(len(view) - done)
        return len(view)

    def write(self, buffer: Any) -> int:
        """Write bytes, unless they stand in for others."""
        view = memoryview(buffer).cast("B")
        nbytes, start = len(view), self._position
        self._length = max(self._length, start + nbytes)
        if self.failure is not None:
            return nbytes  # so that libhdf5 can close the file
        try:
            within = self._within_placeholder(view)
            if within is not None:
                if self.instead is not None:
                    self.instead(start, nbytes, within)
                return nbytes
            done = 0
            while done < nbytes:
                done += os.pwrite(self._descriptor, view[done:], start + done)
        except OSError as error:
            self.failure = error
            raise
        return nbytes

    def _within_placeholder(self, view: memoryview) -> int | None:
        """Where these bytes lie in the stand-in; None if they are others."""
        if not len(self.placeholder) or not len(view):
            return None
        within = np.frombuffer(view, np.uint8, 1).ctypes.data - self.placeholder.ctypes.data
        return int(within) if 0 <= within < len(self.placeholder) else None

    def truncate(self, length: int | None = None) -> int:
        """Cut or lengthen the file; not while it is replayed, for there are chunks behind libhdf5's end."""
        self._length = self._position if length is None else length
        if not self.is_replaying and self.failure is None:
            try:
                os.ftruncate(self._descriptor, self._length)
            except OSError as error:
                self.failure = error
                raise
        return self._length

    def flush(self) -> None:
        """Do nothing: the file is synced once, when it is complete."""

    def close(self) -> None:
        """Close the file; its length is then what libhdf5 last asked for."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def created(
    file: PartialFile,
    creation: h5py.h5p.PropFCID,
    *,
    low: int = h5py.h5f.LIBVER_EARLIEST,
) -> h5py.File:
    """A new HDF5 file that libhdf5 writes through `file`.

    Parameters
    ----------
    file : PartialFile
        What libhdf5 writes to.
    creation : h5py.h5p.PropFCID
        How to create it.
    low : int
        The oldest version of libhdf5 that must read the file.
    """
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_fileobj_driver(h5py.h5fd.fileobj_driver, file)
    access.set_fclose_degree(h5py.h5f.CLOSE_STRONG)
    access.set_libver_bounds(low, h5py.h5f.LIBVER_LATEST)
    name = f"hyperslab-{id(file):x}".encode()  # libhdf5 recognizes open files by their names
    return h5py.File(h5py.h5f.create(name, h5py.h5f.ACC_TRUNC, creation, access))


class Unwatched:
    """Takes the place of a `PartialFile` where libhdf5 writes to its own file."""

    failure: OSError | None = None

    def stand_in(self, nbytes: int) -> memoryview:
        """Never needed."""
        raise NotImplementedError

"""Open local files that a user or a document names: regular files, and nothing else.

A pipe would keep us waiting for its other end, a device may do something when it is opened, and a file of the kernel
holds secrets of the machine. The rule itself is in the compiled part, which opens archives by it.
"""

from __future__ import annotations

import os
from io import BufferedReader
from typing import BinaryIO

from hyperslab._core import open_regular as descriptor_of
from hyperslab.errors import DamagedFile, HyperslabError, NoSuchFile


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading, without ever waiting.

    Raises
    ------
    ReadError
        It is a pipe, a device, a folder, or a file of the kernel.
    NoSuchFile
        There is no such file.
    OSError
        It may not be read.
    """
    if os.name != "posix":
        return open(path, "rb")
    try:
        return os.fdopen(descriptor_of(os.fspath(path)), "rb")
    except HyperslabError:
        raise
    except FileNotFoundError:
        raise NoSuchFile.at(os.fspath(path)) from None
    except OSError as error:
        raise OSError(error.errno, os.strerror(error.errno or 0), os.fspath(path)) from None


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """Read a regular file. It raises what `open_regular` raises."""
    with open_regular(path) as stream:
        return stream.read()


class Sparing(BufferedReader):
    """A file that refuses to read much at once: lengths in a hostile file may be absurd.

    Parameters
    ----------
    path : str
        The path of a regular file.
    most_nbytes : int
        How many bytes a read may ask for.
    """

    def __init__(self, path: str, most_nbytes: int) -> None:
        super().__init__(open_regular(path).detach())  # type: ignore[attr-defined]
        self._path, self._most_nbytes = path, most_nbytes

    def read(self, size: int | None = -1) -> bytes:
        """Read bytes; refuses a size above the limit."""
        if size is not None and size > self._most_nbytes:
            raise DamagedFile(
                f"{self._path}: {size} bytes are to be read at once, but at most {self._most_nbytes} make sense"
            )
        return super().read(size)

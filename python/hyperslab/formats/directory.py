"""One file per array in a directory: what raw, npy, csv, blosc2 and tiledb share.

Every open array may hold a file descriptor, so a study with thousands of arrays needs thousands of descriptors. When
the process reaches its soft limit, `open_descriptor` raises it to the hard limit.
"""

from __future__ import annotations

import errno
import os
import resource
from abc import abstractmethod
from pathlib import Path

from hyperslab.errors import Refused, RunError, UsageError
from hyperslab.formats.contract import ArrayFile, ArrayHandle, ArraySpec


class DirectoryFile(ArrayFile):
    """A directory with one file `NAME<extension>` for each array."""

    def __init__(self, root: Path, extension: str, writable: bool) -> None:
        if not root.is_dir():
            raise UsageError(f"{root} is not a directory of *{extension} files")
        self._root = root
        self._extension = extension
        self._writable = writable
        self._handles: list[ArrayHandle] = []

    @abstractmethod
    def _create(self, path: Path, spec: ArraySpec) -> ArrayHandle: ...

    @abstractmethod
    def _open(self, path: Path, spec: ArraySpec | None) -> ArrayHandle: ...

    def create_array(self, name: str, spec: ArraySpec) -> ArrayHandle:
        """Create the array's file."""
        return self._kept(self._create(self._path(name), spec))

    def open_array(self, name: str, spec: ArraySpec | None = None) -> ArrayHandle:
        """Open the array's file."""
        path = self._path(name)
        if not path.exists():
            raise UsageError(f"{self._root} has no array {name!r} (no file {path.name})")
        return self._kept(self._open(path, spec))

    def array_names(self) -> list[str]:
        """The files' names without their extension."""
        return sorted(path.stem for path in self._root.glob(f"*{self._extension}"))

    def close(self) -> None:
        """Close every array."""
        for handle in self._handles:
            handle.close()
        self._handles.clear()

    def _kept(self, handle: ArrayHandle) -> ArrayHandle:
        self._handles.append(handle)
        return handle

    def _path(self, name: str) -> Path:
        if "/" in name:
            raise Refused(f"array name {name!r}: one file per array allows no nesting; use a name without '/'")
        return self._root / (name + self._extension)


def open_descriptor(path: Path, flags: int) -> int:
    """Call `os.open`; if the process has reached its soft limit of open files, raise the limit and try again."""
    try:
        return os.open(path, flags | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        raise RunError(f"{path}: too many open files; raise the limit of {soft} with `ulimit -n`")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return os.open(path, flags | os.O_CLOEXEC, 0o666)

"""Find all files that libhdf5 would open to read an array, and check them first, because libhdf5 itself checks nothing.

These are the targets of links, the sources of virtual arrays, external raw files, and the same of each source. Only
regular files are read.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from typing import Any

from hyperslab._core import DocumentResolver
from hyperslab.errors import ReadError, Unsupported
from hyperslab.regular_files import open_regular

MOST_FILES = 100_000
MOST_HOPS = 64


def opened_by_h5py(h5py: Any, path: str, *, locks: bool = True) -> Any:
    """A file opened by h5py for reading. If this process has it open already, it is locked in the same way.

    libhdf5 refuses to open a file twice in different ways. If somebody writes to the file, it is read without a lock,
    as our engine reads it.
    """
    ways = (None, False, True, "best-effort") if locks else (False, None, True, "best-effort")
    for locking in ways:
        try:
            return h5py.File(path, "r", locking=locking)
        except OSError as error:
            if "flag values don't match" not in str(error) and error.errno != errno.EAGAIN:
                raise
            refused = error
    raise refused


class Followed:
    """The files that an array leads to, directly or through other files.

    Raises
    ------
    NotAllowed
        One of them is not allowed.
    ReadError
        One of them is not a regular file.
    Unsupported
        There are too many links or files.
    """

    def __init__(self, h5py: Any, path: str, name: str, resolver: DocumentResolver) -> None:
        self._h5py, self._resolver = h5py, resolver
        self._seen: set[tuple[str, str]] = set()
        self.files: set[str] = set()
        waiting = [(path, name, 0)]
        while waiting:
            path, name, hops = waiting.pop()
            if (path, name) in self._seen:
                continue
            self._seen.add((path, name))
            if hops > MOST_HOPS or len(self._seen) > MOST_FILES:
                raise Unsupported(f"{path} leads through more than {MOST_HOPS} links or {MOST_FILES} files")
            with opened_by_h5py(h5py, path) as file:
                waiting += [(*led, hops + 1) for led in self._led(file.id, path, name)]
        self.files.discard(path)

    def _led(self, file: Any, path: str, name: str) -> Iterator[tuple[str, str]]:
        target = self._object(file, path, name)
        if isinstance(target, tuple):
            yield target
            return
        if not isinstance(target, self._h5py.h5d.DatasetID):
            return
        layout = target.get_create_plist()
        for number in range(layout.get_external_count()):
            raw = os.fspath(self._resolver.raw(path, os.fsdecode(layout.get_external(number)[0])))
            check_regular(raw)
            self.files.add(raw)
        if layout.get_layout() != self._h5py.h5d.VIRTUAL:
            return
        for number in range(layout.get_virtual_count()):
            file_name, inner = layout.get_virtual_filename(number), layout.get_virtual_dsetname(number)
            for source_name, source_inner in _numbered(file_name, inner):
                source = path if source_name == "." else self._source(path, source_name)
                if source is None or (source_inner != inner and not self._is_there(source, source_inner)):
                    break
                yield source, source_inner

    def _source(self, path: str, name: str) -> str | None:
        path_there = self._resolver.source(path, name)
        if path_there is None:
            return None
        check_regular(os.fspath(path_there))
        self.files.add(os.fspath(path_there))
        return os.fspath(path_there)

    def _is_there(self, path: str, name: str) -> bool:
        with opened_by_h5py(self._h5py, path) as file:
            return self._object(file.id, path, name) is not None

    def _object(self, file: Any, path: str, name: str) -> Any:
        """The object at a path; if the path contains an external link, the file and the path that it leads to."""
        h5py, parts, hops = self._h5py, name.split("/")[::-1], 0
        root = h5py.h5o.open(file, b"/")
        here = root
        while parts:
            part = parts.pop()
            if part in ("", "."):
                continue
            if not isinstance(here, h5py.h5g.GroupID):
                return None
            encoded = part.encode()
            if not here.links.exists(encoded):
                return None
            kind = here.links.get_info(encoded).type
            if kind == h5py.h5l.TYPE_HARD:
                here = h5py.h5o.open(here, encoded)
                continue
            hops += 1
            if hops > MOST_HOPS:
                return None
            target = here.links.get_val(encoded)
            if kind == h5py.h5l.TYPE_SOFT:
                here = root if target.startswith(b"/") else here
                parts += target.decode().split("/")[::-1]
                continue
            linked = self._resolver.linked(path, os.fsdecode(target[0]))
            if linked is None:
                return None
            check_regular(os.fspath(linked))
            self.files.add(os.fspath(linked))
            return os.fspath(linked), "/".join([target[1].decode(), *parts[::-1]])
        return here


def _numbered(file: str, inner: str) -> Iterator[tuple[str, str]]:
    """The names of a source. A pattern with `%b` yields one name for each number, from 0."""
    if "%" not in file and "%" not in inner:
        yield file, inner
        return
    for number in range(MOST_FILES):
        numbered = ["%".join(part.replace("%b", str(number)) for part in name.split("%%")) for name in (file, inner)]
        yield numbered[0], numbered[1]
        if numbered == [file.replace("%%", "%"), inner.replace("%%", "%")]:
            return


def check_regular(path: str) -> None:
    """Check that a path is a regular file that may be read.

    Raises
    ------
    ReadError
        It is not.
    """
    try:
        open_regular(path).close()
    except ReadError:
        raise
    except OSError as error:
        raise ReadError(f"{path}: {error.strerror}") from error

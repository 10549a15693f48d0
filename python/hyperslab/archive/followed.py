"""What libhdf5 would open to read an array: found and judged before h5py is asked, since libhdf5 asks nobody.

Links in paths, sources of virtual arrays and external raw files, those of sources included. A pipe would be waited
for, and a file of the kernel (`/proc/self/environ`) says that it is empty, and is not: neither is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hyperslab._core import DocumentResolver
from hyperslab.errors import ReadError, Unsupported

MOST_FILES = 100_000
MOST_HOPS = 64


class Followed:
    """The files that an array of a file leads to, with those that the files lead to in turn.

    Raises
    ------
    NotAllowed
        One of them may not be led to.
    ReadError
        One of them is no regular file.
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
                raise Unsupported(f"{path} leads on too far: through more than {MOST_HOPS} links or {MOST_FILES} files")
            with h5py.File(path, "r") as file:
                waiting += [(*led, hops + 1) for led in self._led(file.id, path, name)]
        self.files.discard(path)

    def _led(self, file: Any, path: str, name: str) -> Iterator[tuple[str, str]]:
        found = self._object(file, path, name)
        if isinstance(found, tuple):
            yield found
            return
        if not isinstance(found, self._h5py.h5d.DatasetID):
            return
        layout = found.get_create_plist()
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
        found = self._resolver.source(path, name)
        if found is None:
            return None
        check_regular(os.fspath(found))
        self.files.add(os.fspath(found))
        return os.fspath(found)

    def _is_there(self, path: str, name: str) -> bool:
        with self._h5py.File(path, "r") as file:
            return self._object(file.id, path, name) is not None

    def _object(self, file: Any, path: str, name: str) -> Any:
        """What a path leads to, unless an external link is on the way: then the file and path that this leads to."""
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
    """Names of a source; of a pattern with `%b`, which stands for numbers, one after the other."""
    if "%" not in file and "%" not in inner:
        yield file, inner
        return
    for number in range(MOST_FILES):
        numbered = ["%".join(part.replace("%b", str(number)) for part in name.split("%%")) for name in (file, inner)]
        yield numbered[0], numbered[1]
        if numbered == [file.replace("%%", "%"), inner.replace("%%", "%")]:
            return


def check_regular(path: str) -> None:
    """Refuse what is no regular file, or says that it is empty and is not.

    Raises
    ------
    ReadError
        It is none.
    """
    if not Path(path).is_file():
        raise ReadError(f"{path}: it is not a regular file")
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        if os.fstat(descriptor).st_size == 0 and os.read(descriptor, 1):
            raise ReadError(f"{path}: it has bytes although its size is 0, so it is not a regular file")
    except OSError as error:
        raise ReadError(f"{path}: {error.strerror}: it is not a regular file") from error
    finally:
        os.close(descriptor)

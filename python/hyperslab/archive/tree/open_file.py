"""`OpenFile`: the one open file of all its groups and arrays. It follows links, also those to other files.

Each file that links lead to is opened once, whatever names the links use for it.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Hashable, Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit
from weakref import WeakValueDictionary

from hyperslab._core import ArchiveFile, DocumentResolver
from hyperslab.archive.far.remote import Remote, SourceResolver
from hyperslab.archive.given.files import Given
from hyperslab.archive.given.parquet_references import ParquetReferences
from hyperslab.archive.given.zipped_zarr import ZippedZarr
from hyperslab.archive.tree.locating import far_file, is_zarr_folder, local_file
from hyperslab.cached import cached_property
from hyperslab.errors import DamagedFile, ReadError, Unsupported
from hyperslab.meant import meant_or_known

MOST_HOPS = 32
REFERENCES = ("references", "dmrpp")  # formats that name the files that hold the chunks
# A malicious server can invent a file for every name, each with a link to the next.
MOST_LINKED_FILES = 4096


class OpenFile:
    """An open file, shared by all of its groups and arrays. If it is not held, each read opens it again.

    With `patterns`, only objects of an HDF5 file with matching paths are parsed. With `between_commits`, chunk indexes
    are parsed when an array is first read, inside the context that it returns.
    """

    def __init__(
        self,
        location: str | Remote | Given,
        chunk_cache_nbytes: int,
        resolver: SourceResolver,
        patterns: tuple[str, ...] = (),
        *,
        is_held: bool = True,
        between_commits: Callable[[], AbstractContextManager[None]] | None = None,
        linked: LinkedFiles | None = None,
    ) -> None:
        self.location = location
        self.resolver = resolver
        self.chunk_cache_nbytes = chunk_cache_nbytes
        self.patterns = patterns
        self.path: str
        self._core: ArchiveFile | None
        if isinstance(location, Remote):
            self.path, self._core = far_file(location, chunk_cache_nbytes, resolver, patterns)
        elif isinstance(location, Given):
            self.path = location.name
            self._core = location.opened(chunk_cache_nbytes, resolver.for_document(location.name))
        else:
            self.path = location
            kind = ParquetReferences if is_zarr_folder(location) else ZippedZarr
            tables = kind.found(location, resolver)
            if tables is not None:
                self._core = tables.opened(chunk_cache_nbytes)
            elif is_held:
                own = resolver.for_document(location)
                if patterns:  # a versioned file; the caller has looked for its journal
                    self._core = ArchiveFile(location, chunk_cache_nbytes, own, list(patterns), between_commits)
                else:
                    self._core = local_file(location, chunk_cache_nbytes, own)
            else:
                self._core = ArchiveFile.closed(location, resolver.for_document(location))
        if self._core.format in REFERENCES:
            resolver.check(self._core.urls)
        self._links: dict[int, dict[str, tuple[str, Any]]] = {}
        self._others: dict[str, OpenFile] = {}
        self._linked = LinkedFiles() if linked is None else linked

    @property
    def is_remote(self) -> bool:
        """Whether the file is not a local file: it is remote, or your program gave it as bytes or as an object."""
        return not isinstance(self.location, str)

    @property
    def url(self) -> str | None:
        """The URL that was opened, including user and query; None for a local file."""
        return self.location.url if isinstance(self.location, Remote) else None

    @property
    def opened_urls(self) -> list[str]:
        """The URLs that were opened, including user and query: one for each remote file of a collection."""
        return [] if self.url is None else [self.url]

    @property
    def opened_paths(self) -> list[str]:
        """The paths or URLs that were opened: one for each file of a collection."""
        return [self.path]

    @property
    def is_closed(self) -> bool:
        """Whether the file was closed."""
        return self._core is None

    @property
    def document_resolver(self) -> DocumentResolver:
        """What opens the files that this file leads to."""
        return self.resolver.for_document(self.path)

    def owns(self, path: str) -> bool:
        """Whether chunks in this file or URL may be copied, not only referred to."""
        return self.resolver.allowed.holds(path)

    def check_allowed(self, path: str) -> None:
        """Check that the file may lead to this path or URL; raise `NotAllowed` if not."""
        self.resolver.check_allowed(path)

    @property
    def core(self) -> ArchiveFile:
        """The compiled part."""
        if self._core is None:
            raise ValueError(f"{self.path} was closed: open it again")
        return self._core

    @property
    def root(self) -> Place:
        """Where the root group is."""
        return Place(self, True, 0, "/")

    def close(self) -> None:
        """Close the file. Arrays that were used before keep it open until they are deleted."""
        waiting = [self]
        while waiting:
            file = waiting.pop()
            file._core = None
            waiting += file._others.values()

    def links(self, group: int) -> dict[str, tuple[str, Any]]:
        """Kind and target of every name in a group."""
        core = self.core  # raises if the file is closed
        if group not in self._links:
            self._links[group] = {name: (kind, target) for name, kind, target in core.links(group)}
        return self._links[group]

    def other(self, file: str) -> OpenFile:
        """Open the file that a link leads to, by the name in the link."""
        if file not in self._others or self._others[file].is_closed:
            own = self.path if isinstance(self.location, Given) else self.location
            location, resolver = self.resolver.linked(own, file)
            self._linked.add(self)
            known = self._linked.known(location)
            if known is not None:  # not stored: files that link to each other would keep each other open
                return known
            self._others[file] = OpenFile(location, self.chunk_cache_nbytes, resolver, linked=self._linked)
        return self._others[file]

    def token(self, name: str) -> tuple[Any, ...]:
        """Dask's token of a group or array: the same in every process until the file changes."""
        return ("hyperslab", self.path, self._version, name)

    @cached_property
    def _version(self) -> str:
        """A token of the file's content; for a folder, the time of its last direct change."""
        return self.core.version or str(os.stat(self.path).st_mtime_ns)  # noqa: PTH116

    def __reduce__(self) -> tuple[Any, ...]:
        return (OpenFile, (self.location, self.chunk_cache_nbytes, self.resolver))


class Place(NamedTuple):
    """Where a group or an array is, after all links were followed: its file, its number in it, and its path."""

    file: OpenFile
    is_group: bool
    number: int
    name: str

    def below(self, path: str, hops: int = 0) -> Place:
        """Where a path from this group leads to; a path from the root starts with "/".

        Raises
        ------
        KeyError
            There is nothing at the path, or links lead in a circle.
        FileNotFoundError
            A link leads to another file, which does not exist.
        Unsupported
            The object uses a feature that hyperslab cannot read.
        DamagedFile
            The object is damaged.
        ReadError
            The metadata of the object could not be fetched.
        """
        if path == "" and path in self.file.links(self.number):
            return self._child(path, hops)
        here = self.file.root if path.startswith("/") else self
        for name in path.split("/"):
            if name in ("", "."):
                continue
            if not here.is_group:
                raise KeyError(f"{path!r}: {here.name!r} is an array, not a group")
            here = here._child(name, hops)
        return here

    def _child(self, name: str, hops: int) -> Place:
        links = self.file.links(self.number)
        path = f"{self.name.rstrip('/')}/{name}"
        if name not in links:
            raise KeyError(f"there is no {path!r} in {self.file.path}{instead(name, links)}")
        if hops > MOST_HOPS:
            raise KeyError(f"{path!r} in {self.file.path}: links lead in a circle")
        kind, target = links[name]
        if kind in ("group", "array"):
            return Place(self.file, kind == "group", target, path if name else "")  # the root itself may be an array
        if kind == "soft":
            return self.below(target, hops + 1)
        if kind == "external":
            file, inner = target
            return self.file.other(file).root.below(inner, hops + 1)
        reasons = {"damaged": DamagedFile, "unfetched": ReadError, "unsupported": Unsupported}
        raise reasons[kind](f"{path!r} in {self.file.path}: {target}")


class LinkedFiles:
    """The files that were opened through links from one file. It does not keep them open."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[Hashable, OpenFile] = WeakValueDictionary()

    def add(self, file: OpenFile) -> None:
        """Remember an open file."""
        self._known.setdefault(identity(file.location), file)

    def known(self, location: str | Remote | Given) -> OpenFile | None:
        """The open file that is at a place; none where it is not open.

        Raises
        ------
        Unsupported
            Opening it would exceed the limit of linked files.
        """
        file = self._known.get(identity(location))
        if file is not None and not file.is_closed:
            return file
        if len(self._known) >= MOST_LINKED_FILES:
            raise Unsupported(
                f"links lead to more than {MOST_LINKED_FILES} files: open the files that you need one by one"
            )
        return None


def identity(location: str | Remote | Given) -> Hashable:
    """What tells files apart: device and inode, since names may be links themselves; far away the URL."""
    if isinstance(location, Remote):
        parts = urlsplit(location.url)
        return urlunsplit(parts._replace(path=posixpath.normpath(parts.path)))
    if isinstance(location, Given):
        return id(location)
    try:
        about = os.stat(location)  # noqa: PTH116
    except OSError:
        return location  # opening it will raise the error
    return (about.st_dev, about.st_ino)


def instead(name: str, names: Iterable[str]) -> str:
    """The end of a message: the name that you may have meant, or else the names that there are."""
    return meant_or_known(name, names, "the group is empty")

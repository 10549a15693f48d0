"""`OpenFile` and `Group`: the tree of an archive. Links are followed when you use them."""

from __future__ import annotations

import os
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, ValuesView
from contextlib import AbstractContextManager
from typing import Any

from hyperslab._core import ArchiveFile, DocumentResolver
from hyperslab.archive import display, display_html, walking
from hyperslab.archive.array import Array
from hyperslab.archive.attributes import Attributes
from hyperslab.archive.given_files import Given
from hyperslab.archive.linked_files import LinkedFiles
from hyperslab.archive.open_file import far_file, is_zarr_folder, local_file
from hyperslab.archive.parquet_references import ParquetReferences
from hyperslab.archive.remote import Remote, SourceResolver
from hyperslab.archive.zipped_zarr import ZippedZarr
from hyperslab.cached import cached_property
from hyperslab.errors import DamagedFile, ReadError, Unsupported
from hyperslab.meant import meant_or_known

MOST_HOPS = 32
REFERENCES = ("references", "dmrpp")  # formats that name the files that hold the chunks
MOST_NAMES = 8  # in a message


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
    def root(self) -> Group:
        """The root group."""
        return Group(self, 0, "/")

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

    def reopening(self, name: str) -> tuple[Any, ...]:
        """How to pickle a group or array: as a function that finds it again, with its arguments."""
        return (found_again, (self.location, self.chunk_cache_nbytes, self.resolver, name))


def found_again(
    location: str | Remote | Given, chunk_cache_nbytes: int, resolver: SourceResolver, name: str
) -> Group | Array:
    """What pickled groups and arrays become."""
    root = OpenFile(location, chunk_cache_nbytes, resolver).root
    return root if name == "/" else root[name]


def instead(name: str, names: Iterable[str]) -> str:
    """The end of a message: the name that you may have meant, or else the names that there are."""
    return meant_or_known(name, names, "the group is empty")


class Group(Mapping[str, "Group | Array"]):
    """A group of an archive: a mapping of names to groups and arrays, as in h5py and Zarr."""

    def __init__(self, file: OpenFile, number: int, name: str) -> None:
        self._file = file
        self._number = number
        self.name = name

    @property
    def opened(self) -> OpenFile:
        """The open file, which all of its groups and arrays share."""
        return self._file

    @property
    def filename(self) -> str:
        """The path of the file, or its URL without query and credentials."""
        return self._file.path

    @property
    def url(self) -> str | None:
        """The URL that was opened, including user and query; None for a local file."""
        return self._file.url

    @property
    def file(self) -> ArchiveFile:
        """The compiled part of the open file, shared by all of its groups."""
        return self._file.core

    @property
    def format(self) -> str:
        """The format of the file: "hdf5", "netcdf3", "fits", "hdf4", "zarr", "references", "dmrpp" or "collection"."""
        return self._file.core.format

    @property
    def lost_nbytes(self) -> int:
        """How many bytes are missing at the end of the file, because it was truncated or never closed; 0 if unknown."""
        return self._file.core.lost_nbytes

    @property
    def key(self) -> tuple[int, int]:
        """What identifies the group while its file is open, whichever link led to it."""
        return (id(self._file), self._number)

    @cached_property
    def attrs(self) -> Attributes:
        """The attributes, in the order of the file."""
        return Attributes(self._file.core.attributes(self._number))

    @property
    def groups(self) -> dict[str, Group]:
        """The groups in this group, by name, without broken links and without damaged or unsupported objects.

        Raises
        ------
        ReadError
            A child could not be fetched.
        """
        return {name: child for name, child in self._children() if isinstance(child, Group)}

    @property
    def arrays(self) -> dict[str, Array]:
        """The arrays in this group, by name; the same are left out as for `groups`, and the same errors raised."""
        return {name: child for name, child in self._children() if isinstance(child, Array)}

    def _children(self) -> Iterator[tuple[str, Group | Array]]:
        for name in self:
            try:
                yield name, self[name]
            except walking.NOWHERE:
                continue

    def walk(self) -> Iterator[Array]:
        """Yield every array below this group, each once, however many links lead to it."""
        seen = set()
        for group in self.walk_groups():
            for array in group.arrays.values():
                if array.key not in seen:
                    seen.add(array.key)
                    yield array

    def walk_groups(self) -> Iterator[Group]:
        """Yield this group and every group below it, each once, however many links lead to it."""
        return (group for _, group in walking.groups_by_path(self))

    def kinds(self) -> list[tuple[str, str]]:
        """List each name with its kind: group, array, soft, external, damaged, unfetched or unsupported."""
        return [(name, kind) for name, (kind, _) in self._file.links(self._number).items()]

    def __getitem__(self, path: str) -> Group | Array:
        """Get the group or array at a path; a path from the root starts with "/".

        If a Zarr hierarchy is a single array without a group, its path is `""`.

        Parameters
        ----------
        path : str
            Names with slashes between them, from this group or from the root.

        Returns
        -------
        Group | Array
            The group or array; links are followed, also to other files.

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
        if not isinstance(path, str):
            raise TypeError(f"{path!r} is not a name: use the path of a group or array")
        return self._found(path, 0)

    def _found(self, path: str, hops: int) -> Group | Array:
        if path == "" and path in self._file.links(self._number):
            return self._child(path, hops)
        here: Group | Array = self._file.root if path.startswith("/") else self
        for name in path.split("/"):
            if name in ("", "."):
                continue
            if not isinstance(here, Group):
                raise KeyError(f"{path!r}: {here.name!r} is an array, not a group")
            here = here._child(name, hops)
        return here

    def _child(self, name: str, hops: int) -> Group | Array:
        links = self._file.links(self._number)
        path = f"{self.name.rstrip('/')}/{name}"
        if name not in links:
            raise KeyError(f"there is no {path!r} in {self._file.path}{instead(name, links)}")
        if hops > MOST_HOPS:
            raise KeyError(f"{path!r} in {self._file.path}: links lead in a circle")
        kind, target = links[name]
        path = path if name else ""  # the array that is the root itself
        if kind == "group":
            return Group(self._file, target, path)
        if kind == "array":
            return Array(self._file, target, path)
        if kind == "soft":
            return self._found(target, hops + 1)
        if kind == "external":
            file, inner = target
            return self._file.other(file).root._found(inner, hops + 1)
        reasons = {"damaged": DamagedFile, "unfetched": ReadError, "unsupported": Unsupported}
        raise reasons[kind](f"{path!r} in {self._file.path}: {target}")

    def get(self, name: str, default: Any = None) -> Any:
        """Get the group or array at a path, or `default` if there is none, as for the name of a committed datatype.

        Raises
        ------
        DamagedFile
            The object is damaged.
        ReadError
            The metadata of the object could not be fetched.
        """
        try:
            return self[name]
        except (KeyError, FileNotFoundError, Unsupported):
            return default

    def items(self) -> ItemsView[str, Group | Array]:
        """The groups and arrays in this group with their names, in the order of the file.

        The names of committed datatypes, broken links, and damaged or unsupported objects are left out, as in `groups`;
        `keys()` has them all.
        """
        return dict(self._children()).items()

    def values(self) -> ValuesView[Group | Array]:
        """The groups and arrays in this group, in the order of the file; the same are left out as in `items`."""
        return dict(self._children()).values()

    def visititems(self, visit: Callable[[str, Group | Array], Any]) -> Any:
        """Call `visit(path, found)` for every group and array below this group, until it returns something (as h5py).

        Each group and array is visited once. Soft and external links are not followed; damaged and unsupported objects
        are left out.

        Parameters
        ----------
        visit : Callable[[str, Group | Array], Any]
            Called with the path relative to this group, and the group or array.

        Returns
        -------
        Any
            The first value that `visit` returned, other than None; otherwise None.
        """
        return walking.visit_own(self, visit)

    def __setitem__(self, path: str, value: object) -> None:
        raise TypeError(f"{self._file.path} is read-only: hyperslab does not write archives; use h5py or zarr-python")

    def __iter__(self) -> Iterator[str]:
        return iter(self._file.links(self._number))

    def __len__(self) -> int:
        return len(self._file.links(self._number))

    def __contains__(self, path: object) -> bool:
        """Whether there is such a name, even if it is a broken link (as in h5py).

        Raises
        ------
        ReadError
            A group on the path could not be fetched.
        """
        if not isinstance(path, str):
            return False
        start = self._file.root if path.startswith("/") else self
        parent, _, name = path.strip("/").rpartition("/")
        try:
            group = start[parent]
        except walking.NOWHERE:
            return False
        return isinstance(group, Group) and (not name or name in group._file.links(group._number))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return display.group(self)

    def _repr_html_(self) -> str:
        return display_html.group(self)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._file.reopening(self.name)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return self._file.token(self.name)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

"""What the metadata of a file say of it: what opening it takes, where its metadata are, and how its arrays are stored.

A local file is opened with the requests that would open it from far away, so that these are counted, not estimated.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hyperslab._core import ArchiveFile, DocumentResolver
from hyperslab.archive.far.allowed import Locations
from hyperslab.archive.far.remote import Remote, SourceResolver, is_url, shown
from hyperslab.archive.given.files import Given
from hyperslab.archive.opening import open as open_archive
from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.group import Group, root_of
from hyperslab.archive.tree.locating import ZARR_METADATA, locate
from hyperslab.archive.tree.open_file import OpenFile
from hyperslab.errors import HyperslabError

# HDF5's own filters: deflate, shuffle, fletcher32, szip, nbit, scaleoffset. Others need a plugin.
OWN_FILTERS = frozenset(range(1, 7))
# What the parser calls the parts of HDF5's chunk indexes.
INDEX_KINDS = (
    "a B-tree (version 1) node of chunks", "a page of a chunk index", "a fixed array's header",
    "a fixed array's data block", "an extensible array's header", "an extensible array's index block",
    "an extensible array's secondary block", "an extensible array's data block", "a B-tree (version 2) header",
    "a B-tree (version 2) node",
)  # fmt: skip
TINY_NBYTES = 4 << 10


@dataclass(frozen=True)
class OpeningFacts:
    """What opening a file from far away takes, and where its metadata are."""

    nbytes: int  # of the file
    request_count: int
    round_count: int
    fetched_nbytes: int
    metadata_nbytes: int  # of all structures that were read, each once
    metadata_end: int
    place_count: int  # parts of the file so far apart that one request should not bring two of them
    index_nbytes: int = 0  # of HDF5's chunk indexes
    last_index_offset: int | None = None

    @classmethod
    def of(cls, opening: Mapping[str, Any]) -> OpeningFacts:
        """What the compiled part counted."""
        counts = {name: value for name, value in opening.items() if name != "kinds"}
        indexes = [kind for kind in opening["kinds"] if kind[0] in INDEX_KINDS]
        last = max((kind[4] for kind in indexes), default=None)
        return cls(**counts, index_nbytes=sum(kind[2] for kind in indexes), last_index_offset=last)


@dataclass(frozen=True)
class ArrayFacts:
    """How an array is stored."""

    name: str
    shape: tuple[int, ...]
    element_nbytes: int
    dims: tuple[str, ...] | None
    chunks: tuple[int, ...] | None
    nbytes: int
    stored_nbytes: int | None
    chunk_count: int
    stored_chunk_count: int | None
    codecs: tuple[str, ...]
    foreign_filters: tuple[str, ...] = ()  # that HDF5 has only with a plugin
    damaged: str | None = None
    unsupported: str | None = None
    first_offset: int | None = None  # of its first chunk, if it has chunks that are in the file itself
    array: Array | None = field(default=None, repr=False, compare=False)

    @property
    def is_coordinate(self) -> bool:
        """Whether it holds the positions along the dimension of its own name."""
        return self.dims is not None and len(self.dims) == 1 == len(self.shape) and self.dims[0] == self.own_name

    @property
    def own_name(self) -> str:
        """Its name without those of its groups."""
        return self.name.rpartition("/")[2]

    @property
    def chunk_nbytes(self) -> int | None:
        """The size of a chunk in memory; None without chunks."""
        if self.chunks is None:
            return None
        nbytes = self.element_nbytes
        for length in self.chunks:
            nbytes *= length
        return nbytes

    @property
    def is_cut(self) -> bool:
        """Whether more than one chunk of it is stored."""
        return self.chunks is not None and (self.stored_chunk_count or 0) > 1

    @property
    def missing_chunk_count(self) -> int:
        """How many chunks were never written."""
        return 0 if self.stored_chunk_count is None else max(0, self.chunk_count - self.stored_chunk_count)


@dataclass(frozen=True)
class FileFacts:
    """A file, as its metadata describe it."""

    name: str
    format: str
    nbytes: int | None  # None for a folder, or where the server does not say it
    opening: OpeningFacts | None  # None for a folder of Zarr, and for references
    arrays: tuple[ArrayFacts, ...]
    problems: tuple[str, ...] = ()  # objects of which not even the metadata can be read
    lost_nbytes: int = 0
    root: Group | None = field(default=None, repr=False, compare=False)

    @property
    def first_chunk_offset(self) -> int | None:
        """Where the first chunk of all arrays is."""
        return min((one.first_offset for one in self.arrays if one.first_offset is not None), default=None)

    def array(self, name: str) -> ArrayFacts | None:
        """The array of this name in the root."""
        return next((one for one in self.arrays if one.name.strip("/") == name), None)


class _AsFar(Given):
    """A file that is opened with the requests of a far reader, which are counted."""

    takes_options = True

    def __init__(self, location: str | Remote, resolver: SourceResolver) -> None:
        self._location, self._resolver = location, resolver
        self.name = shown(location.url) if isinstance(location, Remote) else location

    def opened(self, chunk_cache_nbytes: int, resolver: DocumentResolver) -> ArchiveFile:
        """Open the file, and count what that takes."""
        if isinstance(self._location, str):
            return ArchiveFile.as_far(self._location, resolver)
        file = self._location.file(self._resolver.allowed.redirects())
        return ArchiveFile.remote(file, chunk_cache_nbytes, resolver, notes_metadata=True)


def facts_of(name: str, options: Mapping[str, Any] | None = None, allowed: Locations | None = None) -> FileFacts:
    """What the metadata of a file say of it. `root` stays open as long as the facts are kept.

    Raises
    ------
    HyperslabError
        The file cannot be opened.
    OSError
        The same.
    """
    root = _opened(name, options or {}, allowed)
    core = root.opened.core
    opening = core.opening
    arrays, problems = [], []
    for found in _walked(root):
        if isinstance(found, str):
            problems.append(found)
        elif found.is_variable:
            arrays.append(_array_facts(found))
    counted = None if opening is None else OpeningFacts.of(opening)
    nbytes = _nbytes_of(root, opening)
    shown_name = shown(name) if is_url(name) else name
    return FileFacts(shown_name, core.format, nbytes, counted, tuple(arrays), tuple(problems), core.lost_nbytes, root)


def _opened(name: str, options: Mapping[str, Any], allowed: Locations | None) -> Group:
    location, resolver = locate(name, options, 0, allowed)
    is_file = location.names_file if isinstance(location, Remote) else isinstance(location, str)
    is_folder = isinstance(location, str) and os.path.isdir(location)  # noqa: PTH112
    if is_file and not is_folder and isinstance(location, str | Remote):
        try:
            return root_of(OpenFile(_AsFar(location, resolver), 0, resolver))
        except HyperslabError:
            if isinstance(location, Remote):
                raise
    # Folders; our own references; and files with a journal, which settles what looks damaged.
    return open_archive(name, storage_options=options, allowed=allowed)


def is_zarr(path: str) -> bool:
    """Whether a local folder is a Zarr hierarchy."""
    return any(os.path.exists(os.path.join(path, name)) for name in ZARR_METADATA)  # noqa: PTH110, PTH118


def _walked(root: Group) -> Iterator[Array | str]:
    """Every array, and what is to be said of the names that lead to none."""
    seen = set()
    for group in root.walk_groups():
        kinds = dict(group.kinds())
        for name, kind in kinds.items():
            if kind in ("damaged", "unfetched", "unsupported"):
                yield _problem(group, name)
        for array in group.arrays.values():
            if array.key not in seen:
                seen.add(array.key)
                yield array


def _problem(group: Group, name: str) -> str:
    try:
        group[name]
    except (HyperslabError, OSError, KeyError) as error:
        return str(error)
    return f"{group.name.rstrip('/')}/{name} cannot be read"


def _array_facts(array: Array) -> ArrayFacts:
    try:
        element_nbytes = array.dtype.itemsize
        unsupported = array.unsupported
    except (HyperslabError, OSError) as error:
        element_nbytes, unsupported = 0, str(error)
    foreign = dict.fromkeys(number for number, _ in array.filters if number not in OWN_FILTERS)
    chunks = None if array.chunks is None or array.is_null else array.chunks
    return ArrayFacts(
        array.name, array.shape, element_nbytes, array.dims, chunks, array.size * element_nbytes, array.stored_nbytes,
        array.chunk_count, array.stored_chunk_count, array.codecs,
        tuple(_filter_name(array, number) for number in foreign), array.damaged, unsupported,
        None if chunks is None else _first_offset(array), array,
    )  # fmt: skip


def _filter_name(array: Array, number: int) -> str:
    position = [one for one, _ in array.filters].index(number)
    return f"{array.codecs[position]} ({number})" if len(array.codecs) == len(array.filters) else f"filter {number}"


def _first_offset(array: Array) -> int | None:
    if array.format != "hdf5" or array.damaged or array.unsupported:
        return None
    first = None
    for segment in array.segments():
        offsets = segment.offsets()[segment.files() == 0]
        if len(offsets):
            first = int(offsets.min()) if first is None else min(first, int(offsets.min()))
    return first


def _nbytes_of(root: Group, opening: Mapping[str, Any] | None) -> int | None:
    if opening is not None:
        return int(opening["nbytes"])
    path = root.filename
    return os.path.getsize(path) if os.path.isfile(path) else None  # noqa: PTH113, PTH202

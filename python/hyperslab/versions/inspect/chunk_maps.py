"""What versions hold, from their metadata alone: which slot of its stack each chunk of an array is in.

Neither chunks nor their positions in the file are read: comparing versions costs no more than parsing their mappings.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from hyperslab._core import described_damage, mapped_source
from hyperslab.archive.tree.array import Array as ArchiveArray
from hyperslab.archive.tree.group import Group
from hyperslab.cached import cached_property
from hyperslab.chunk_grid import chunk_counts
from hyperslab.errors import DamagedFile, HyperslabError, ReadError, Unsupported
from hyperslab.versions.layout.elements import same_value
from hyperslab.versions.layout.names import VERSIONS, bookkeeping, raw_path
from hyperslab.versions.layout.padding import meaningful
from hyperslab.versions.layout.reading import parsed
from hyperslab.versions.layout.slots import MISSING, Slots, grid_slots

MOST_PARSED_SLOTS = 1 << 18  # mappings to parse at a time, roughly
MOST_PARSED_VERSIONS = 256
MOST_KEPT_VERSIONS = 32


@dataclass(frozen=True, eq=False)
class ChunkMap:
    """An array of a version.

    `slots` has, for each chunk in C order, its slot in the stack of all chunks that the array ever had, or -1 for the
    fill value; it is None if the array is not made of such chunks. `dtype` is None if NumPy has no such dtype.
    `problem` describes damage; then nothing else is certain.
    """

    path: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any] | None
    chunk_shape: tuple[int, ...]
    slots: Slots | None
    attributes: Mapping[str, Any]
    fill: bytes = b""  # one element where nothing is stored; empty if that is zeros
    problem: str | None = None

    @cached_property
    def grid_shape(self) -> tuple[int, ...]:
        """The number of chunks along each axis."""
        return chunk_counts(self.shape, self.chunk_shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements in memory; text of variable length counts only its pointers."""
        return math.prod(self.shape) * (0 if self.dtype is None else self.dtype.itemsize)

    @cached_property
    def used_slots(self) -> Slots:
        """The slots of the array's chunks, each once, in order."""
        return np.empty(0, np.int64) if self.slots is None else np.unique(self.slots[self.slots != MISSING])


@dataclass(frozen=True)
class VersionMap:
    """The groups (with their attributes) and arrays of a version by path, and why some names lead to nothing."""

    name: str
    attributes: Mapping[str, Any]
    groups: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    arrays: dict[str, ChunkMap] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays in memory."""
        return sum(array.nbytes for array in self.arrays.values())


class ChunkMaps:
    """The maps of a file's versions. They are parsed when you ask for them, and some are kept.

    Parameters
    ----------
    path : str
        The path of the file.
    only : str, optional
        The path of the only array to look at.
    """

    def __init__(self, path: str, only: str | None = None) -> None:
        self._path = path
        self._below = ("/**",) if only is None else ("", f"/{only}")
        self._kept: OrderedDict[str, VersionMap] = OrderedDict()
        self._last: dict[str, _Described] = {}  # the last array that was described at each path

    def __getitem__(self, name: str) -> VersionMap:
        if name in self._kept:
            self._kept.move_to_end(name)
            return self._kept[name]
        return next(self.each([name]))

    def each(self, names: Sequence[str]) -> Iterator[VersionMap]:
        """The maps of versions, in the order of their names. Several are parsed at a time."""
        start, count = 0, 1
        while start < len(names):
            maps = self._parsed(names[start : start + count])
            start += count
            for version in maps:
                self._kept[version.name] = version
                self._kept.move_to_end(version.name)
                if len(self._kept) > MOST_KEPT_VERSIONS:
                    self._kept.popitem(last=False)
                yield version
            distinct = {id(one): one for version in maps for one in version.arrays.values()}.values()
            slots = sum(1 if one.slots is None else len(one.slots) for one in distinct)
            count = max(1, min(MOST_PARSED_VERSIONS, MOST_PARSED_SLOTS * len(maps) // max(1, slots)))

    def _parsed(self, names: Sequence[str]) -> list[VersionMap]:
        root = parsed(self._path, 0, tuple(f"{VERSIONS}/{name}{below}" for name in names for below in self._below))
        known: dict[int, ChunkMap] = {}  # in some files unchanged arrays are links to one object
        versions = root[VERSIONS]
        assert isinstance(versions, Group)
        return [_version_map(versions, name, known, self._last) for name in names]


class _Described(NamedTuple):
    """How a version's array describes itself, and its map."""

    said: tuple[Any, ...]
    map: ChunkMap


def _version_map(versions: Group, name: str, known: dict[int, ChunkMap], last: dict[str, _Described]) -> VersionMap:
    if name not in versions:
        raise KeyError(f"version {name!r} is no longer in {versions.filename}: call refresh() to see what is")
    group = versions[name]
    if not isinstance(group, Group):
        raise DamagedFile(f"{versions.filename}: version {name!r} is not a group")
    version = VersionMap(name, user_attributes(group))
    waiting = [("", group)]
    while waiting:
        prefix, group = waiting.pop()
        for child_name in group:
            path = f"{prefix}{child_name}"
            try:
                child = group[child_name]
                if isinstance(child, Group):
                    version.groups[path] = user_attributes(child)
                    waiting.append((f"{path}/", child))
                    continue
                if child._number not in known:
                    known[child._number] = _same_or_new(path, child, last)
                version.arrays[path] = known[child._number]
            except (KeyError, OSError, HyperslabError) as error:
                version.problems[path] = str(error.args[0] if error.args else error)
    return version


def _same_or_new(path: str, array: ArchiveArray, last: dict[str, _Described]) -> ChunkMap:
    """The map of an array, or the map before it if nothing changed, which is known in a fifth of the time. Unchanged
    arrays are copies in the file; with one map for all of them, comparing is quick.
    """
    stored, before = array._stored, last.get(path)
    try:
        dtype = stored.dtype
    except Unsupported:
        dtype = None
    source = mapped_source(stored)
    said = (stored.shape, dtype, stored.fill, source, described_damage(stored), stored.attributes())
    old = before.map if before is not None and _is_same(before.said, said) else None
    if old is not None and old.slots is not None and old.problem is None:
        slots = grid_slots(array, old.chunk_shape)
        if slots is not None and np.array_equal(slots, old.slots):
            return old
        if slots is not None and source is not None:  # only other chunks: all else that was checked is the same
            last[path] = _Described(said, replace(old, slots=slots))
            return last[path].map
    described = chunk_map(path, array)
    last[path] = _Described(said, described)
    return described


def _is_same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return same_value(one, other)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return bool(one == other)


def chunk_map(path: str, array: ArchiveArray) -> ChunkMap:
    """The map of an array of a version, which has this path in the version."""
    stored, problems = array._stored, []
    attributes = user_attributes(array)
    try:
        dtype = stored.dtype
    except Unsupported:
        dtype = None
    shape, slots = array.shape, None
    chunk_shape = _chunk_shape(array)
    source = mapped_source(stored)
    if chunk_shape is not None and described_damage(stored) is None:
        slots = grid_slots(array, chunk_shape)
    is_plain = slots is not None and source == (".", raw_path(path))  # then there is no need to resolve its mappings
    damage = None if is_plain else stored.damaged
    if damage is not None:
        problems.append(damage)
        slots = None
    elif chunk_shape is None:
        problems.append("it does not give the shape of its chunks")
    else:
        if slots is None or source not in (None, (".", raw_path(path))):
            problems.append("its mappings are not one for each stored chunk")
            slots = None
        elif source is None and array.stored_chunk_count:
            problems.append("it holds its elements itself: it is not a virtual array")
            slots = None
    for name in array.attrs:
        try:
            array.attrs[name]
        except DamagedFile as error:
            problems.append(f"attribute {name!r}: {error}")
        except ReadError:
            continue
    problem = "; ".join(problems) or None
    fill = stored.fill or b"" if dtype is None else meaningful(stored.fill or b"", dtype)
    fill = fill if any(fill) else b""
    return ChunkMap(path, shape, dtype, chunk_shape or (1,) * len(shape), slots, attributes, fill, problem)


def _chunk_shape(array: ArchiveArray) -> tuple[int, ...] | None:
    try:
        lengths = tuple(int(length) for length in np.atleast_1d(array.attrs["chunks"]))
    except (KeyError, TypeError, ValueError, HyperslabError):
        return None
    return lengths if len(lengths) == array.ndim and min(lengths, default=0) > 0 else None


def user_attributes(node: Group | ArchiveArray) -> dict[str, Any]:
    """The attributes that users gave to a version, or to a group or array in it, without those of the layout."""
    own = bookkeeping(node.name, is_array=isinstance(node, ArchiveArray))
    return dict(node.attrs.readable(own))

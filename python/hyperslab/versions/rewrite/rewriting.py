"""Writes a new tree of versions, beside the old one or in another file. Arrays that get new chunks are written again;
the rest is linked or copied. No chunk changes in place, and nothing leads to the new tree until it is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import h5py
import numpy as np

from hyperslab.archive.tree.array import Array as ArchiveArray
from hyperslab.archive.tree.group import Group
from hyperslab.errors import DamagedFile
from hyperslab.journal.journaled_file import JournaledFile
from hyperslab.journal.signals import raise_pending_signals
from hyperslab.progress import Progress
from hyperslab.versions.commit.attributes import copy_attribute, copy_attributes
from hyperslab.versions.commit.chunk_store import row_count
from hyperslab.versions.commit.virtual import VirtualArrays, put_bookkeeping
from hyperslab.versions.layout.fingerprint_log import LOG, Mark, Marks
from hyperslab.versions.layout.fingerprints import content, description, keys_of, rewrite
from hyperslab.versions.layout.names import ARRAY_BOOKKEEPING, DATA, FIRST_VERSION, VERSIONS, text_bytes
from hyperslab.versions.layout.reading import parsed
from hyperslab.versions.layout.slots import Slots, slots_of
from hyperslab.versions.layout.version_group import check_agrees

CHUNKS = ("raw_data", "hash_table")
# How many mappings to parse at a time, over all versions.
MOST_MAPPINGS = 2_000_000


class Raw(NamedTuple):
    """All chunks of an array, as `create_virtual` needs them, under the name that they will have."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    id: Any

    @classmethod
    def of(cls, path: str, raw: Any) -> Raw:
        """The chunks of the array with this path, wherever they are now."""
        return cls(f"/{DATA}/{path}/raw_data", raw.dtype, raw.shape, raw.chunks, raw.id)


class NewChunks(NamedTuple):
    """The new chunks of an array, and a function for the slots of a version's array.

    `slots` is None if the virtual arrays stay as they are.
    """

    raw: Raw
    fill: Any
    slots: Callable[[ArchiveArray], Slots] | None


MakeChunks: TypeAlias = "Callable[[Target], NewChunks]"


@dataclass(frozen=True)
class RewritePlan:
    """What is going to happen to the versions of a file.

    Attributes
    ----------
    arrays
        How to make the chunks of arrays that get new ones, by path; None for arrays that no version has any more.
    versions
        The names of the versions that stay.
    parents
        The names of the new parents of versions that get another parent.
    current
        The name of the version that will be current.
    read
        The paths of the arrays whose elements must be read.
    """

    versions: frozenset[str]
    current: str
    arrays: Mapping[str, MakeChunks | None] = field(default_factory=dict)
    parents: Mapping[str, str] = field(default_factory=dict)
    read: frozenset[str] = frozenset()


class Target(NamedTuple):
    """Where a new tree of versions goes: the group for it, the old file, whether the group is in another file, and what
    creates virtual arrays there.
    """

    root: h5py.Group
    source: h5py.File
    is_elsewhere: bool
    arrays: VirtualArrays


def rewrite_in_place(
    file: h5py.File, change: RewritePlan, journaled: JournaledFile | None, progress: Progress | None = None
) -> None:
    """Replace the tree of versions in a file with a new one. The links to it change last."""
    arrays = VirtualArrays(file, journaled)
    top = file["/"].id
    root = h5py.Group(h5py.h5g.create(top, None))
    Rewriting(Target(root, file, is_elsewhere=False, arrays=arrays), change, progress).write()
    for name in (DATA, LOG):
        old = file.get(name)
        try:
            if old is not None:
                top.unlink(name.encode())
            if name in root:
                top.links.create_hard(name.encode(), root.id, name.encode())
        except BaseException:
            if name not in file and old is not None:
                file[name] = old
            raise


def rewrite_elsewhere(
    file: h5py.File,
    target: h5py.File,
    change: RewritePlan,
    journaled: JournaledFile,
    progress: Progress | None = None,
) -> None:
    """Write everything in a file to a new one, with the versions changed."""
    arrays = VirtualArrays(target, journaled)
    copy_attributes(file["/"].id, target["/"].id)
    rewriting = Rewriting(Target(target, file, is_elsewhere=True, arrays=arrays), change, progress)
    for name in file:
        if name not in (DATA, LOG):
            rewriting.take(file, target, name)
    rewriting.write()


class Rewriting:
    """Writes the versions of a file again."""

    def __init__(self, target: Target, change: RewritePlan, progress: Progress | None = None) -> None:
        self._target = target
        self._change = change
        self._progress, self._done = progress, 0
        self._count = sum(make is not None for make in change.arrays.values()) + len(change.versions)
        self._chunks: dict[str, NewChunks] = {}
        self._made: dict[int, tuple[Any, bytes]] = {}  # links to what lies beside the versions, by old address
        self._version = ""
        self._recoded: dict[tuple[str, str], tuple[tuple[int, ...], Slots]] = {}  # by version and path

    def write(self) -> None:
        """Write everything: chunks first, then the versions, and last the name of the current one."""
        source, root = self._target.source, self._target.root
        data, old = root.create_group(DATA), source[DATA]
        copy_attributes(old.id, data.id)
        for path, make in self._change.arrays.items():
            if make is not None:
                self._tell(path)
                self._chunks[path] = make(self._target)
        self._store(old, data, "")
        self._versions(source[VERSIONS], data.create_group("versions"))
        self._target.arrays.finish()
        kept = [name for name in source[VERSIONS] if name in self._change.versions]
        rewrite(source, root, kept, self._change.parents, self._change.current, self._marks())

    def _tell(self, what: str) -> None:
        """Say what is written next."""
        if self._progress is not None:
            self._progress(what, self._done, self._count)
            self._done += 1

    def _marks(self) -> dict[str, Marks]:
        """The new marks of arrays whose elements or chunks changed, by version."""
        marks: dict[str, Marks] = {}
        keys: dict[str, Slots] = {}
        for (version, path), (shape, slots) in self._recoded.items():
            raw, fill, _ = self._chunks[path]
            if path not in keys:
                table = self._target.root[f"{DATA}/{path}/hash_table"]
                keys[path] = keys_of(table[: row_count(table)], raw.chunks[0])
            said = description(raw.dtype, raw.chunks, fill)
            marks.setdefault(version, {})[path] = Mark(True, said, b"", content(shape, slots, keys[path]))
        return marks

    def _store(self, old: h5py.Group, new: h5py.Group, prefix: str) -> None:
        """Write what lies beside the versions: chunks, and objects of other software."""
        is_changed = prefix.rstrip("/") in self._change.arrays
        for name in old:
            path = f"{prefix}{name}"
            if path == "versions" or (is_changed and name in CHUNKS):
                continue
            if not self._is_group(old, name) or not self._touches(path):
                self.take(old, new, name)
                continue
            inner = new.require_group(name)
            copy_attributes(old[name].id, inner.id)
            self._store(old[name], inner, f"{path}/")
            if not len(inner) and self._change.arrays.get(path, self) is None:
                del new[name]

    def _versions(self, old: h5py.Group, new: h5py.Group) -> None:
        kept = [name for name in old if name in self._change.versions]
        self.take(old, new, FIRST_VERSION)
        for name, parsed_group in version_groups(self._target.source.filename, kept, self._change.read):
            self._tell(name)
            parent = self._change.parents.get(name)
            if parent is None and not self._target.is_elsewhere and not self._has_changed(old[name]):
                self.take(old, new, name)
                continue
            self._version = name
            made = new.create_group(name)
            copy_attributes(old[name].id, made.id, () if parent is None else ("prev_version",))
            if parent is not None:
                made.attrs["prev_version"] = parent
            self._group(old[name], made, "", parsed_group)
        copy_attributes(old.id, new.id, ("current_version",))
        new.attrs["current_version"] = self._change.current

    def _has_changed(self, version: h5py.Group) -> bool:
        return any(path in version for path in self._chunks)

    def _touches(self, path: str) -> bool:
        """Whether an array at this path, or below it, gets new chunks or none."""
        if self._target.is_elsewhere:
            return True  # to find objects that several links lead to
        return any(changed == path or changed.startswith(f"{path}/") for changed in self._change.arrays)

    def _is_group(self, group: h5py.Group, name: str) -> bool:
        is_hard = group.id.links.get_info(name.encode()).type == h5py.h5l.TYPE_HARD
        return bool(is_hard and h5py.h5o.get_info(group.id, name.encode()).type == h5py.h5o.TYPE_GROUP)

    def _group(self, old: h5py.Group, new: h5py.Group, prefix: str, ours: Group) -> None:
        """Write a group of a version."""
        for name in old:
            path = f"{prefix}{name}"
            if path in self._chunks and self._chunks[path].slots is not None:
                self._array(old, new, name, path, ours)
            elif self._is_group(old, name) and self._touches(path):
                made = new.create_group(name)
                copy_attributes(old[name].id, made.id)
                inner = ours[name]
                assert isinstance(inner, Group)
                self._group(old[name], made, f"{path}/", inner)
            else:
                self._copy(old, new, name)

    def _array(self, old: h5py.Group, new: h5py.Group, name: str, path: str, ours: Group) -> None:
        """Write a virtual array of a version again."""
        base = ours[name]
        if not isinstance(base, ArchiveArray) or slots_of(base, path, None) is None:
            self._copy(old, new, name)  # older libraries stored arrays of only the fill value this way
            return
        check_agrees(base)
        raw, fill, slots = self._chunks[path]
        assert slots is not None
        shown = slots(base)
        made = self._target.arrays.create(new, name, base.shape, shown, raw, fill)
        for attribute in base.attrs:  # libhdf5 would read all mappings of the old array to open it
            if attribute not in ARRAY_BOOKKEEPING:
                copy_attribute(h5py.h5a.open(old.id, text_bytes(attribute), obj_name=name.encode()), made.id)
        put_bookkeeping(made, raw.name, raw.chunks)
        if path in self._change.read:
            self._recoded[self._version, path] = (base.shape, shown)

    def _copy(self, old: h5py.Group, new: h5py.Group, name: str) -> None:
        """Copy an array of a version. Arrays that several versions share become copies."""
        raise_pending_signals()
        if self._target.is_elsewhere and old.id.links.get_info(name.encode()).type == h5py.h5l.TYPE_HARD:
            h5py.h5o.copy(old.id, name.encode(), new.id, name.encode())
        else:
            self.take(old, new, name)

    def take(self, old: h5py.Group, new: h5py.Group, name: str) -> None:
        """Make another link to an object; in another file, one copy of it, however many links lead to it."""
        raise_pending_signals()
        key = name.encode()
        link = old.id.links.get_info(key)
        if link.type != h5py.h5l.TYPE_HARD:
            new[name] = old.get(name, getlink=True)
        elif not self._target.is_elsewhere:
            new.id.links.create_hard(key, old.id, key)
        else:
            address = h5py.h5o.get_info(old.id, key).addr
            if address in self._made:
                new.id.links.create_hard(key, *self._made[address])
            else:
                h5py.h5o.copy(old.id, key, new.id, key)
                self._made[address] = (new.id, key)


def version_groups(path: str, names: list[str], read: Iterable[str] = ()) -> Iterator[tuple[str, Group]]:
    """Yield the groups of versions as they were committed. As many are parsed together as memory allows.

    Parameters
    ----------
    path : str
        The file.
    names : list[str]
        The names of the versions.
    read : Iterable[str]
        The paths of the arrays whose elements you will read; of the others you get only the metadata.
    """
    start, count = 0, 1
    chunks = [f"{DATA}/{array}/raw_data" for array in read]
    while start < len(names):
        some = names[start : start + count]
        versions = parsed(path, 0, (*(f"{VERSIONS}/{name}/**" for name in some), *chunks))[VERSIONS]
        assert isinstance(versions, Group)
        mappings = 1
        for name in some:
            group = versions[name]
            if not isinstance(group, Group):
                raise DamagedFile(f"{path}: version {name!r} is not a group")
            yield name, group
            mappings = max(mappings, sum(array.chunk_count for _, array in arrays_of(group)))
        start, count = start + len(some), max(1, MOST_MAPPINGS // mappings)


def arrays_of(group: Group, prefix: str = "") -> Iterator[tuple[str, ArchiveArray]]:
    """Every array below a group, with its path.

    Raises
    ------
    DamagedFile
        An object cannot be read.
    """
    for name, (kind, _) in group.opened.links(group.key[1]).items():
        if kind in ("soft", "external"):
            continue
        child = group[name]
        if isinstance(child, Group):
            yield from arrays_of(child, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}", child

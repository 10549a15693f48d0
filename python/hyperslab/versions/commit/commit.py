"""Commits a staged version: chunks, virtual arrays, hashes and their count, the version itself, and last its name as
the current version. The version exists only once its group is linked, which is one step, so nobody ever sees half of
it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, TypeAlias

import h5py
import numpy as np

from hyperslab._core import gather_chunks, hash_chunks, hash_staged
from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import DamagedFile, Unsupported
from hyperslab.journal.signals import raise_pending_signals
from hyperslab.versions.commit.attributes import copy_attribute, copy_attributes, put_flag, put_text, write_attributes
from hyperslab.versions.commit.chunk_store import ChunkStore, ChunkStores, as_bytes, make_store
from hyperslab.versions.commit.marking import Marking
from hyperslab.versions.commit.virtual import VirtualArrays, put_bookkeeping
from hyperslab.versions.layout.fingerprints import NOTHING, Fingerprints, version_attributes
from hyperslab.versions.layout.names import (
    ARRAY_BOOKKEEPING,
    FIRST_VERSION,
    VERSION_BOOKKEEPING,
    VERSIONS,
    Array,
    chunk_hash,
    path_in_version,
)
from hyperslab.versions.layout.padding import cleared, element_bytes, without_fields
from hyperslab.versions.layout.slots import MISSING, Slots, slots_of
from hyperslab.versions.stage.attributes import StagedAttributes
from hyperslab.versions.stage.committed import Child, CommittedArray, CommittedGroup, CommittedVersion
from hyperslab.versions.stage.staged_array import StagedArray
from hyperslab.versions.stage.staged_group import StagedGroup

BATCH_NBYTES = 1 << 22
MANY_MAPPINGS = 64  # libhdf5 takes 2 to 5 µs and some kB to copy each mapping, and 50 µs for the array
DIGEST_NBYTES = 32
# How many hashes to give on at a time, and the function that takes them with the number of the first.
Taken: TypeAlias = tuple[int, Callable[[int, bytes], None]]


def write_version(
    file: h5py.Group,
    root: StagedGroup,
    parent: str | None,
    timestamp: str,
    version: CommittedVersion,
    arrays: VirtualArrays,
    *,
    make_current: bool,
    refs: Mapping[str, Any],
) -> CommittedGroup:
    """Write all of a version, into a group that no link leads to before it is complete.

    Parameters
    ----------
    file : h5py.Group
        The file, or the group that holds the versions.
    root : StagedGroup
        The staged version.
    parent : str | None
        The name of the version before, or None.
    timestamp : str
        The time of the commit, as it is stored.
    version : CommittedVersion
        The committed version to create.
    arrays : VirtualArrays
        Creates the virtual arrays.
    make_current : bool
        Whether it becomes the current version.
    refs : Mapping[str, Any]
        What the list of fingerprints is to say of branches.

    Returns
    -------
    CommittedGroup
        The content of the version, from which the next one can be staged.
    """
    versions = file[VERSIONS]
    group = h5py.Group(h5py.h5g.create(versions.id, None))
    before = None if parent is None else versions[parent]
    marking = Marking(version.stores, parent)
    written = _Writing(version, arrays, marking).group(group, before, root)
    arrays.finish()
    version.stores.settle()  # last: later allocations would take the space that growing tables need, and leave gaps
    for name in VERSION_BOOKKEEPING:
        root.attrs.pop(name, None)
    write_attributes(group, root.attrs, version.name, None, "")
    record = marking.record(version.name, timestamp, version_attributes(group) if root.attrs else NOTHING)
    version.stores.fingerprints.add(record, **({"current": version.name} if make_current else {}), **refs)
    put_text(group, "prev_version", parent or FIRST_VERSION)
    put_text(group, "timestamp", timestamp)
    put_flag(group, "committed", value=True)
    versions[version.name] = group
    if make_current:
        put_text(versions, "current_version", version.name)
    return written


def undo(file: h5py.Group, name: str, current: str, refs: Mapping[str, Any]) -> None:
    """Remove what exists of a version, as far as possible, and make `current` the current version. `refs` says what the
    branches were before.
    """
    versions = file[VERSIONS]
    with suppress(Exception):
        Fingerprints(file, is_ours=False).add(None, deleted=[name], current=current, **refs)
        if name in versions:
            del versions[name]
        if versions.attrs["current_version"] != current:
            versions.attrs["current_version"] = current


class _Writing(NamedTuple):
    version: CommittedVersion
    arrays: VirtualArrays
    marking: Marking

    def group(self, group: h5py.Group, before: h5py.Group | None, staged: StagedGroup) -> CommittedGroup:
        children: dict[str, Child] = {}
        for name, child in staged.touched():
            if isinstance(child, StagedGroup):
                made = group.create_group(name)
                write_attributes(made, child.attrs, child.name, None if child.base is None else before, name)
                self.marking.group(child.name, made, has_attributes=bool(child.attrs))
                children[name] = self.group(made, None if child.base is None else before[name], child)  # type: ignore[index]
            elif isinstance(child, StagedArray):
                children[name] = self.array(group, before, name, child)
            else:
                assert before is not None
                self.copy(group, before, name, child)
                self.marking.same(f"{staged.name}/{name}".lstrip("/"), before, name, child)
                children[name] = child
        attrs = None if staged.parent is None else self.known(staged.attrs, staged.base)
        return CommittedGroup(self.version, staged.name, attrs, children)

    def array(self, group: h5py.Group, before: h5py.Group | None, name: str, array: StagedArray) -> Child:
        attrs = self.known(array.attrs, array.base)
        if not array.is_changed and before is not None and array.base is not None and array.attrs.is_same:
            self.copy(group, before, name, array.base)
            self.marking.same(array.name, before, name, array.base)
            return array.base
        slots = store_chunks(array, self.version.stores)
        store = store_of(array, self.version.stores)
        made = self.arrays.create(group, name, array.shape, slots, store.raw, array.fillvalue)
        write_attributes(made, array.attrs, array.name, None if array.base is None else before, name)
        put_bookkeeping(made, store.name, store.chunk_shape)
        self.marking.array(array.name, made, store, array.shape, slots, has_attributes=bool(array.attrs))
        description = (array.shape, array.chunks, array.dtype, array.fillvalue)
        return CommittedArray(self.version, array.name, *description, slots, attrs)

    def known(self, staged: StagedAttributes, base: Child | None) -> Mapping[str, Any] | None:
        """The attributes of the version before if they did not change; none if there was no such object; otherwise
        None, unless nobody can parse them yet.
        """
        if base is not None and staged.is_same:
            return base.attrs
        return dict(staged) if self.version.is_held or (base is None and not staged) else None

    def copy(self, group: h5py.Group, before: h5py.Group, name: str, child: Child) -> None:
        """Copy what did not change: versions share chunks but no objects, which versioned-hdf5 needs."""
        if isinstance(child, Mapping):
            made, old = group.create_group(name), before[name]
            copy_attributes(old.id, made.id)
            for inner in child:
                self.copy(made, old, inner, child[inner])
            return
        encoded = name.encode()
        if self.arrays.is_fast:
            with suppress(DamagedFile, Unsupported):  # damaged parts are copied as they are
                if self.copy_mappings(group, before, encoded, child):
                    return
        h5py.h5o.copy(before.id, encoded, group.id, encoded)

    def copy_mappings(self, group: h5py.Group, before: h5py.Group, name: bytes, child: Any) -> bool:
        """Copy an array with many mappings without letting libhdf5 decode them. Returns whether that was done."""
        count = len(child.slots) if isinstance(child, CommittedArray) else child.chunk_count
        if count < MANY_MAPPINGS:
            return False
        path = child.path if isinstance(child, CommittedArray) else path_in_version(child.name)
        store = self.version.stores.of_path(path)
        slots = child.slots if isinstance(child, CommittedArray) else slots_of(child, path, store.count)
        if slots is None:
            return False
        fill = "" if store.dtype.hasobject else store.fill[()]
        made = self.arrays.create(group, name.decode(), child.shape, slots, store.raw, fill)
        for attribute in child.attrs:
            if attribute not in ARRAY_BOOKKEEPING:
                copy_attribute(h5py.h5a.open(before.id, attribute.encode(), obj_name=name), made.id)
        put_bookkeeping(made, store.name, store.chunk_shape)
        return True


def store_of(array: StagedArray, stores: ChunkStores) -> ChunkStore:
    """The chunks that the array of this path ever had; the arrays for them are created if there are none."""

    def make() -> None:
        options = dict(array.options)
        make_store(stores.file, array.name, array.dtype, array.chunks, options.pop("fillvalue", None), options)

    return stores.of_path(array.name, make)


def store_chunks(array: StagedArray, stores: ChunkStores) -> Slots:
    """Store the new chunks of an array, and return the slot of every chunk; -1 for chunks that need none.

    While the slots of some chunks are found and the new ones stored, the next ones are hashed.
    """
    source = WholeChunks(array) if array.whole is not None else TouchedChunks(array)
    slots, length = source.slots, array.chunks[0]
    inner = math.prod(source.grid_shape[1:])

    def take(first: int, digests: bytes) -> None:
        raise_pending_signals()
        store, numbers = store_of(array, stores), source.numbers[first : first + len(digests) // DIGEST_NBYTES]
        slots[numbers], new = store.find(digests)
        if len(new):
            stored = numbers[new]
            lengths = np.minimum(length, array.shape[0] - stored // inner * length)
            store.append(np.frombuffer(digests, "V32")[new].tobytes(), source.gather(stored), lengths)

    step = max(1, BATCH_NBYTES // max(1, math.prod(array.chunks) * array.dtype.itemsize))
    source.digests(source.numbers, (step, take))
    return slots


def _taken(hashes: Iterator[bytes], taken: Taken | None) -> bytes:
    """Return all hashes, and pass them to the function in `taken` in parts while they are computed."""
    if taken is None:
        return b"".join(hashes)
    step, take = taken
    made = bytearray()
    while part := b"".join(itertools.islice(hashes, step)):
        take(len(made) // DIGEST_NBYTES, part)
        made += part
    return bytes(made)


class Chunks(Protocol):
    """The chunks of an array that may be new, by their linear indices, and the slots of all its chunks so far."""

    grid_shape: tuple[int, ...]
    slots: Slots
    numbers: Slots

    def digests(self, numbers: Slots, taken: Taken | None = None) -> bytes:
        """Hash some chunks. `taken` receives parts of the hashes meanwhile, with the number of the first of each."""

    def gather(self, numbers: Slots) -> Array:
        """Some chunks, whole, stacked along a new first axis."""


class TouchedChunks:
    """The staged chunks of an array."""

    def __init__(self, array: StagedArray) -> None:
        self._staged = array.staged
        self._staged.slab = cleared(self._staged.slab)
        self._rows = array.staged.rows.reshape(-1)
        self.grid_shape: tuple[int, ...] = array.staged.grid_shape
        self.slots: Slots = array.staged.stored.reshape(-1).copy()
        self.numbers: Slots = np.flatnonzero(self._rows != MISSING)

    def digests(self, numbers: Slots, taken: Taken | None = None) -> bytes:
        """Hash some chunks. `taken` receives parts of the hashes meanwhile, with the number of the first of each."""
        staged, rows = self._staged, self._rows[numbers]
        if staged.slab.dtype.hasobject:
            indices = np.stack(np.unravel_index(numbers, staged.grid_shape), axis=1).tolist()
            chunks = (staged.slab[row][staged.valid(index)] for row, index in zip(rows.tolist(), indices, strict=True))
            return _taken(map(chunk_hash, chunks), taken)
        shapes = (staged.shape, staged.chunk_shape)
        return hash_staged(as_bytes(staged.slab), rows, numbers, shapes, staged.slab.itemsize, taken)

    def gather(self, numbers: Slots) -> Array:
        """Some chunks, whole, stacked along a new first axis."""
        slab = self._staged.slab
        return without_fields(slab)[self._rows[numbers]].view(slab.dtype)  # the same bytes that were hashed


class WholeChunks:
    """All chunks of an array that is in memory in one piece."""

    def __init__(self, array: StagedArray) -> None:
        assert array.whole is not None
        self._whole, self._chunk_shape = cleared(array.whole), array.chunks
        self._fill = array.fillvalue
        axes = zip(array.shape, array.chunks, strict=True)
        self.grid_shape: tuple[int, ...] = tuple(ceil_div(length, chunk) for length, chunk in axes)
        self.numbers: Slots = np.arange(math.prod(self.grid_shape))
        self.slots: Slots = np.full(len(self.numbers), MISSING, np.int64)

    def digests(self, numbers: Slots, taken: Taken | None = None) -> bytes:
        """Hash some chunks. `taken` receives parts of the hashes meanwhile, with the number of the first of each."""
        if self._whole.dtype.hasobject:
            return _taken((chunk_hash(self._part(number)) for number in numbers.tolist()), taken)
        shapes = (self._whole.shape, self._chunk_shape)
        return hash_chunks(as_bytes(self._whole), shapes, numbers, self._whole.itemsize, taken)

    def gather(self, numbers: Slots) -> Array:
        """Some chunks, whole, stacked along a new first axis."""
        whole, chunk_shape = self._whole, self._chunk_shape
        first, last = int(numbers[0]) * chunk_shape[0], (int(numbers[-1]) + 1) * chunk_shape[0]
        if whole.ndim == 1 and len(numbers) * chunk_shape[0] == last - first and last <= len(whole):
            return whole[first:last].reshape(-1, *chunk_shape)
        if not whole.dtype.hasobject:
            fill = element_bytes(self._fill, whole.dtype)
            chunks = gather_chunks(as_bytes(whole), (whole.shape, chunk_shape), numbers, fill)
            return chunks.view(whole.dtype).reshape(-1, *chunk_shape)
        out: Array = np.full((len(numbers), *chunk_shape), self._fill, whole.dtype)
        for row, number in enumerate(numbers.tolist()):
            part = self._part(number)
            out[row][tuple(slice(length) for length in part.shape)] = part
        return out

    def _part(self, number: int) -> Array:
        axes = zip(np.unravel_index(number, self.grid_shape), self._chunk_shape, strict=True)
        part: Array = self._whole[tuple(slice(int(at) * chunk, (int(at) + 1) * chunk) for at, chunk in axes)]
        return part

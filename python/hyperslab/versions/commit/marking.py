"""`Marking`: makes the fingerprint of a version while it is written. Unchanged parts keep their marks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from hyperslab.archive.tree.array import Array as ArchiveArray
from hyperslab.versions.layout.fingerprint_log import Mark, Marks, Record
from hyperslab.versions.layout.fingerprints import (
    CONTENT_NBYTES,
    NOTHING,
    array_attributes,
    content,
    description,
    group_mark,
    table_address,
)
from hyperslab.versions.layout.names import FIRST_VERSION
from hyperslab.versions.layout.slots import grid_slots

if TYPE_CHECKING:
    from hyperslab.versions.commit.chunk_store import ChunkStore, ChunkStores
    from hyperslab.versions.layout.slots import Slots
    from hyperslab.versions.stage.committed import Child


class Marking:
    """Collects the marks of all groups and arrays of a version.

    Parameters
    ----------
    stores : ChunkStores
        The chunks of the file's arrays.
    parent : str | None
        The version that it is based on.
    """

    def __init__(self, stores: ChunkStores, parent: str | None) -> None:
        self._stores, self._parent = stores, parent
        self._before = None if parent is None else stores.fingerprints.of(parent)
        self._is_sure = parent is not None and stores.fingerprints.is_last(parent)
        self._file = stores.file
        self._known: Marks = {} if self._before is None else self._before.marks
        self._marks: Marks = {}
        self._tables: dict[str, int] = {}

    def record(self, name: str, timestamp: str, attributes: bytes) -> Record:
        """The record of the version."""
        return Record(name, self._parent or FIRST_VERSION, timestamp, attributes, self._marks, self._tables)

    def group(self, path: str, made: h5py.Group, *, has_attributes: bool) -> None:
        """Mark a new group."""
        self._marks[path] = group_mark(made) if has_attributes else Mark(False, NOTHING, NOTHING, bytes(8))

    def array(
        self, path: str, made: Any, store: ChunkStore, shape: tuple[int, ...], slots: Slots, *, has_attributes: bool
    ) -> None:
        """Mark a new array."""
        known = self._known.get(path)
        if known is not None and known.is_array:
            said = known.description  # of its chunks; it never changes
        else:
            said = description(store.dtype, store.chunk_shape, store.raw.fillvalue)
        given = array_attributes(made) if has_attributes else NOTHING
        self._marks[path] = Mark(True, said, given, content(shape, slots, store.keys))
        if shape[0]:
            self._tables[path] = store.table_address

    def same(self, path: str, before: h5py.Group, name: str, child: Child) -> None:
        """Mark an unchanged group or array, and everything in it."""
        for inner, kind in _below(path, child):
            known, address = self._known.get(inner), self._address(inner)
            is_moved = not address and not isinstance(kind, Mapping) and kind.shape[0] > 0
            if known is None or is_moved or known.is_array == isinstance(kind, Mapping):
                known = self._seen(inner, before[f"{name}{inner[len(path) :]}"], kind)
            self._marks[inner] = known
            if not isinstance(kind, Mapping) and kind.shape[0]:
                self._tables[inner] = address or self._stores.of_path(inner).table_address

    def _address(self, path: str) -> int:
        """The address of an array's table if it is where the version before recorded it, otherwise 0."""
        address = 0 if self._before is None else self._before.tables.get(path, 0)
        if self._is_sure or not address:
            return address
        return address if table_address(self._file, path) == address else 0

    def _seen(self, path: str, there: Any, child: Child) -> Mark:
        """Make the mark of an object that other software, or a release without fingerprints, committed."""
        if isinstance(there, h5py.Group):
            return group_mark(there)
        store = self._stores.of_path(path)
        slots = grid_slots(child, store.chunk_shape) if isinstance(child, ArchiveArray) else child.slots  # type: ignore[union-attr]
        if slots is None:  # damaged, but untouched: it is kept as it is, and `verify` reports it
            return self._known.get(path, Mark(True, NOTHING, NOTHING, bytes(CONTENT_NBYTES)))
        said = description(store.dtype, store.chunk_shape, store.raw.fillvalue)
        slots = np.asarray(slots)
        return Mark(True, said, array_attributes(there), content(there.shape, slots, store.keys))


def _below(path: str, child: Child) -> Iterator[tuple[str, Child]]:
    yield path, child
    if isinstance(child, Mapping):
        for name in child:
            yield from _below(f"{path}/{name}", child[name])

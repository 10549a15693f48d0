"""Converts a version of a local file to an HDF5 file: each array takes type, filters and chunks from its stack."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from hyperslab.archive.tree.array import Array
from hyperslab.conversion.from_hdf5 import FromHdf5
from hyperslab.conversion.hdf5_structure import Original, StructureCopy, has_pointers, is_plain
from hyperslab.conversion.hdf5_target import created_array, creation_list, filters_of, lacking
from hyperslab.conversion.index_room import Indexed
from hyperslab.conversion.reading import bookkeeping_of
from hyperslab.conversion.stored_chunks import StoredCopy
from hyperslab.errors import HyperslabError
from hyperslab.journal.locks import shared
from hyperslab.versions.layout.elements import as_elements
from hyperslab.versions.layout.names import VERSIONS, raw_path, text_bytes

if TYPE_CHECKING:
    from hyperslab.archive.tree.group import Group

SLAB_NBYTES = 64 << 20


class FromVersion(FromHdf5):
    """Creates the objects of the target, and lists the arrays to fill. All axes can grow, as in the next version."""

    def build(self) -> None:
        """Create everything but the elements of arrays.

        No commit overwrites types and attributes meanwhile. Elements are never overwritten, so commits need not wait
        for text, which takes longer.
        """
        self._again: list[tuple[Array, Any]] = []
        with shared(self._root.filename):
            super().build()

    def small(self) -> list[Indexed | None]:
        """The arrays that are not worth our threads."""
        return super().small() + [Indexed.of_small(made.id) for _, made in self._again]

    def write_small(self) -> None:
        """Write the elements of these."""
        super().write_small()
        for array, made in self._again:
            _encode_again(array, made)

    def _creation(self) -> Any:
        made = h5py.h5p.create(h5py.h5p.FILE_CREATE)
        made.set_link_creation_order(self.source[self._root.name].id.get_create_plist().get_link_creation_order())
        return made

    def _structure_copy(self) -> StructureCopy:
        return VersionCopy(self.source, self.target, self._array, self._root.name, version=self._root)

    def _addresses(self) -> dict[int, str]:
        return {}  # paths name the arrays of a version, which share no objects

    def _array(self, original: Original, structure: StructureCopy) -> None:
        path = original.path.strip("/")
        array: Any = self._root[path]
        if array.damaged:
            structure.losses.append((path, f"it cannot be read: {array.damaged}"))
            return
        stack, wish = original.source, self._wish_of(original)
        plist = stack.get_create_plist()
        said = lacking(filters_of(plist)) if wish.codec is None else None
        if said is not None:
            structure.losses.append((path, said))
            return
        placed, kept = replace(original, path=path, own_shape=array.shape), plist.get_chunk()
        can_be_ours = is_plain(stack.get_type())
        wanted = self._wanted(wish, placed, array, kept) if can_be_ours else kept
        same_codec = wish.codec is None or not can_be_ours or self._same(wish.codec, plist, array, kept)
        if not can_be_ours and wish.codec is not None:
            self.notes.append((path, "its elements are of no plain type, so it keeps its codecs"))
        segments = array.segments()
        is_one_grid = len(segments) <= 1 and all(one.chunk_shape == kept == array.chunks for one in segments)
        elsewhere = _other_file(array)
        if elsewhere is not None:
            structure.losses.append((path, f"some of its chunks are in {elsewhere}, and cannot be copied from there"))
        elif wanted == kept and same_codec and is_one_grid and not has_pointers(stack.get_type()):
            self._copied(placed, structure, array, plist)
        elif can_be_ours:
            self._new(placed, structure, array, plist, wanted)
        else:
            self._again.append((array, h5py.Dataset(self._made(placed, structure, plist))))

    def _made(self, placed: Original, structure: StructureCopy, plist: Any) -> Any:
        chunk_shape = plist.get_chunk()
        settings = creation_list(plist, chunk_shape, filters_of(plist), keeps_chunks=True)
        space = self._space(placed, chunk_shape)
        return created_array(placed.parent, placed.name, structure.type_of(placed.source), space, settings)

    def _copied(self, placed: Original, structure: StructureCopy, array: Array, plist: Any) -> None:
        self.copies.append(StoredCopy(placed.path, array, self._made(placed, structure, plist)))


@dataclass
class VersionCopy(StructureCopy):
    """Copies the objects of one version, without the attributes that only the layout of versions needs.

    Its arrays are never opened by libhdf5, which decodes all mappings of an array that it opens, and cannot if the
    array's path has a "%".
    """

    version: Group | None = None

    def opened(self, group: Any, name: bytes, kind: int, path: bytes) -> Any:
        """The object; for an array the stack of its chunks."""
        if kind != h5py.h5o.TYPE_DATASET:
            return super().opened(group, name, kind, path)
        assert self.version is not None
        shown = path.decode("utf-8", "surrogateescape").strip("/")
        try:
            array = self.version[shown]
        except HyperslabError as error:
            self.losses.append((shown, str(error)))
            return None
        stack = self._prefix + raw_path(f"{self._above}{shown}")
        if stack not in self.source:
            self.losses.append((shown, f"the chunks of {shown!r} are missing"))
            return None
        self._arrays[path] = (array, group, name)
        return self.source[stack].id

    def __post_init__(self) -> None:
        assert self.version is not None
        self._arrays: dict[bytes, tuple[Any, Any, bytes]] = {}
        self._prefix, _, inside = self.root.rpartition(f"/{VERSIONS}/")
        above = inside.partition("/")[2]  # of a group in the version
        self._above = f"{above}/" if above else ""

    def attributes_of(self, old: Any, path: bytes) -> Iterator[Any]:
        """The attributes that a user gave."""
        if path in self._arrays:
            array, group, name = self._arrays[path]
            left = bookkeeping_of(self.version, array)
            for one in (one for one in array.attrs if one not in left):
                yield h5py.h5a.open(group, text_bytes(one), obj_name=name)
            return
        left = bookkeeping_of(self.version, self.version) if path == b"/" else ()
        yield from (one for one in super().attributes_of(old, path) if one.name.decode("utf-8", "replace") not in left)


def _encode_again(array: Array, made: Any) -> None:
    """Read the elements, mostly text, and let HDF5 store them, some rows at a time."""
    row_nbytes = max(1, array.dtype.itemsize * math.prod(array.shape[1:]))
    rows = max(1, SLAB_NBYTES // row_nbytes // made.chunks[0]) * made.chunks[0]
    for start in range(0, array.shape[0], rows) if array.size else ():
        elements = np.asarray(array[start : start + rows])
        made[start : start + rows] = as_elements(elements, array.dtype)


def _other_file(array: Array) -> str | None:
    """Another file that holds chunks of an array; None if all are in its own."""
    paths = array.file_paths()
    used = {int(number) for segment in array.segments() for number in np.unique(segment.files())}
    return next((paths[number] for number in sorted(used) if paths[number] != array.filename), None)

"""`object.id`: identifiers of objects, with the methods of h5py's low-level interface that code for reading uses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hyperslab.cached import cached_property
from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import Unsupported
from hyperslab.h5 import elements, property_lists, spaces
from hyperslab.h5.store import Facts, Place

if TYPE_CHECKING:
    from hyperslab.archive.tree.array import Array


class StoreInfo(NamedTuple):
    """The location of a stored chunk.

    `chunk_offset` is the index of its first element, `filter_mask` has a bit for each filter that was skipped, and
    `byte_offset` and `size` say where its bytes are in the file.
    """

    chunk_offset: tuple[int, ...]
    filter_mask: int
    byte_offset: int | None
    size: int


class ObjectID:
    """The identifier of an object. It is valid until its file is closed."""

    def __init__(self, place: Place) -> None:
        self.place: Place = place
        self._key: tuple[Any, ...] | None = None

    @property
    def valid(self) -> int:
        """1 while the file is open, 0 afterwards."""
        return int(self.place.store.is_open)

    @property
    def id(self) -> int:
        """A number for the object within its file; 0 after the file is closed."""
        return self.place.address + 1 if self.valid else 0

    @property
    def path(self) -> str | None:
        """The path that you used to open the object; without one, the first path that leads to it, or None."""
        if self.place.name is None:
            self.place = self.place._replace(name=self.place.store.name_of(self.place.address))
        return self.place.name

    @property
    def facts(self) -> Facts:
        """The properties of the object from its header."""
        return self.place.facts

    def get_create_plist(self) -> property_lists.CreatePropertyList:
        """Return the creation properties of the object."""
        return property_lists.CreatePropertyList(self.facts)

    def close(self) -> None:
        """Do nothing: only files need to be closed."""

    def __bool__(self) -> bool:
        return bool(self.valid)

    @property
    def key(self) -> tuple[Any, ...]:
        """The file and the address in it, by which identifiers are compared."""
        if self._key is None:
            self._key = (self.place.store.key, self.place.address)
        return self._key

    def __eq__(self, other: object) -> bool:
        if other is self or not isinstance(other, ObjectID):
            return other is self
        if not (self.valid and other.valid):  # as in h5py, all invalid identifiers are equal
            return self.valid == other.valid
        return other.key == self.key

    def __hash__(self) -> int:
        if self._key is None and not self.valid:
            raise TypeError(f"Objects of class {type(self).__name__} cannot be hashed: the file was closed")
        return hash(self.key)


class FileID(ObjectID):
    """The identifier of a file."""

    @property
    def name(self) -> Any:
        """The path that was opened, as bytes."""
        return self.place.store.filename.encode("utf-8", "surrogateescape")

    def get_filesize(self) -> int:
        """Return the length of the file in bytes."""
        import os

        return os.stat(self.place.store.opened.path).st_size  # noqa: PTH116

    def get_intent(self) -> int:
        """Return 0, HDF5's value for a file that is open for reading."""
        return 0

    def close(self) -> None:
        """Close the file."""
        self.place.store.close()


class GroupID(ObjectID):
    """The identifier of a group."""

    def get_num_objs(self) -> int:
        """Return the number of links in the group."""
        return len(self.place.store.links(self.place.address))

    def __len__(self) -> int:
        return self.get_num_objs()

    def __iter__(self) -> Iterator[bytes]:
        for name in self.place.store.links(self.place.address):
            yield name.encode("utf-8", "surrogateescape")

    def __contains__(self, name: bytes) -> bool:
        return name.decode("utf-8", "surrogateescape") in self.place.store.links(self.place.address)


class TypeID:
    """A datatype.

    Parameters
    ----------
    element : Element
        The datatype as the Rust core describes it.
    is_committed : bool
        Whether the datatype has a name in the file.
    """

    def __init__(self, element: elements.Element, is_committed: bool = False) -> None:
        self.element = element
        self._is_committed = is_committed

    @property
    def dtype(self) -> np.dtype[Any]:
        """The equivalent NumPy dtype, with h5py's metadata."""
        return elements.dtype_of(self.element)

    def get_size(self) -> int:
        """Return the number of bytes that HDF5's own library gives an element in memory."""
        return elements.memory_nbytes(self.element)

    def committed(self) -> bool:
        """Whether the datatype has a name in the file."""
        return self._is_committed

    def equal(self, other: object) -> bool:
        """Whether another datatype is equal."""
        return isinstance(other, TypeID) and other.element == self.element

    def __eq__(self, other: object) -> bool:
        return self.equal(other)

    def __hash__(self) -> int:
        return hash(repr(self.element))


class NamedTypeID(ObjectID, TypeID):
    """The identifier of a named datatype."""

    def __init__(self, place: Place) -> None:
        ObjectID.__init__(self, place)
        TypeID.__init__(self, place.facts["element"], is_committed=True)

    __eq__ = ObjectID.__eq__
    __hash__ = ObjectID.__hash__


class DatasetID(ObjectID):
    """The identifier of a dataset."""

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The length of each axis; None for a null dataspace. A virtual dataset may take its shape from its sources."""
        facts = self.facts
        if facts["shape"] is None or not isinstance(facts["storage"], tuple) or facts["storage"][0] != "virtual":
            shape: tuple[int, ...] | None = facts["shape"]
            return shape
        return self.array.shape

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape or ())

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of an element."""
        return elements.dtype_of(self.facts["element"])

    @property
    def array(self) -> Array:
        """The same dataset as an `Array` of `hyperslab.open`."""
        return self.place.store.array(self.place.address, self.place.name)

    def get_type(self) -> TypeID:
        """Return the datatype of an element."""
        return TypeID(self.facts["element"], is_committed=self.facts["committed"] is not None)

    def get_space(self) -> spaces.SpaceID:
        """Return the dataspace: shape and maximum shape."""
        shape = self.shape
        return spaces.SpaceID(shape, None if shape is None else self.facts["max_shape"])

    def get_create_plist(self) -> property_lists.DatasetCreatePropertyList:
        """Return the creation properties of the dataset."""
        return property_lists.DatasetCreatePropertyList(self.facts)

    def get_storage_size(self) -> int:
        """Return the number of bytes that the elements take in the file; 0 if nothing is stored."""
        storage = self._storage
        if storage[0] == "virtual" or self.facts["shape"] is None:
            return 0
        if storage[0] == "contiguous" and storage[1] is None and not self.facts["external"]:
            return 0
        if storage[0] in ("compact", "contiguous"):
            return math.prod(self.shape or ()) * int(self.facts["element"][1])
        return self.array.stored_nbytes or 0

    @property
    def _storage(self) -> tuple[str, Any]:
        storage = self.facts["storage"]
        if isinstance(storage, Exception):
            raise storage
        layout: tuple[str, Any] = storage
        return layout

    def get_offset(self) -> int | None:
        """Return the offset of a contiguous dataset in the file; None for any other layout."""
        kind, address = self._storage
        if kind != "contiguous" or address is None or self.facts["external"]:
            return None
        at: int = address
        return at

    def _chunked(self) -> None:
        if self._storage[0] != "chunked":
            raise RuntimeError("Can't get number of chunks (not a chunked dataset)")

    def get_num_chunks(self, space: Any = None) -> int:
        """Return the number of stored chunks. `space` is ignored."""
        self._chunked()
        return len(self._chunks)

    @cached_property
    def _chunks(self) -> list[StoreInfo]:
        stored = []
        chunk_shape = self._storage[1]
        shape = self.shape or ()
        counts = [ceil_div(length, chunk) for length, chunk in zip(shape, chunk_shape, strict=True)]
        for segment in self.array.segments():
            columns = (segment.indices(), segment.offsets(), segment.lengths(), segment.filter_masks())
            for index, offset, length, mask in zip(*columns, strict=True):
                place = np.unravel_index(int(index), counts) if counts else ()
                start = tuple(int(at) * chunk for at, chunk in zip(place, chunk_shape, strict=True))
                stored.append(StoreInfo(start, int(mask), int(offset), int(length)))
        return stored

    def get_chunk_info(self, index: int, space: Any = None) -> StoreInfo:
        """Return the location of a stored chunk.

        Parameters
        ----------
        index : int
            A number from 0 to `get_num_chunks() - 1`.
        space : SpaceID or None
            Ignored.

        Raises
        ------
        ValueError
            The index is out of range.
        """
        self._chunked()
        if not 0 <= index < len(self._chunks):
            raise ValueError("Chunk index is out of range")
        return self._chunks[index]

    def get_chunk_info_by_coord(self, chunk_offset: tuple[int, ...]) -> StoreInfo:
        """Return the location of the chunk whose first element has this index; `byte_offset` is None if not stored."""
        self._chunked()
        for info in self._chunks:
            if info.chunk_offset == tuple(chunk_offset):
                return info
        return StoreInfo(tuple(chunk_offset), 0, None, 0)

    def chunk_iter(self, func: Callable[[StoreInfo], Any]) -> Any:
        """Call `func(info)` for each stored chunk until it returns something other than None, and return that."""
        self._chunked()
        for info in self._chunks:
            returned = func(info)
            if returned is not None:
                return returned
        return None

    def read_direct_chunk(self, offsets: tuple[int, ...], *_: Any, **__: Any) -> tuple[int, bytes]:
        """Read the stored bytes of a chunk.

        Parameters
        ----------
        offsets : tuple of int
            The index of its first element.

        Returns
        -------
        tuple[int, bytes]
            The filter mask, with a bit for each filter that was skipped; and the encoded bytes.

        Raises
        ------
        RuntimeError
            The chunk was never written, or the dataset is not chunked.
        Unsupported
            The file is remote.
        """
        info = self.get_chunk_info_by_coord(offsets)
        if info.byte_offset is None:
            raise RuntimeError("Unable to read direct chunk (the chunk was never written)")
        opened = self.place.store.opened
        if opened.is_remote:
            raise Unsupported(f"{opened.path}: read_direct_chunk works only with local files: download the file")
        with open(opened.path, "rb") as file:
            file.seek(info.byte_offset)
            return info.filter_mask, file.read(info.size)

    def refresh(self) -> None:
        """Do nothing. To see what another program wrote, open the file again."""
        self.place.store.opened  # noqa: B018 -- raises if the file is closed

    flush = refresh

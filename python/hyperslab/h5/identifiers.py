"""`object.id`: what h5py's low-level interface says of an object, as far as code that only reads asks for it."""

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
    from hyperslab.archive.array import Array


class StoreInfo(NamedTuple):
    """Where a chunk is: its first element, the filters that were left out, and its bytes in the file."""

    chunk_offset: tuple[int, ...]
    filter_mask: int
    byte_offset: int | None
    size: int


class ObjectID:
    """What tells an object apart from others; not valid any more once its file is closed."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._key: tuple[Any, ...] | None = None

    @property
    def valid(self) -> int:
        """1 while the file is open, 0 afterwards."""
        return int(self.place.store.is_open)

    @property
    def id(self) -> int:
        """A number for the object; 0 once its file is closed."""
        return self.place.address + 1 if self.valid else 0

    @property
    def path(self) -> str | None:
        """The path by which the object was found, or else the first by which links lead to it."""
        if self.place.name is None:
            self.place = self.place._replace(name=self.place.store.name_of(self.place.address))
        return self.place.name

    @property
    def facts(self) -> Facts:
        """What the object's header says."""
        return self.place.facts

    def get_create_plist(self) -> property_lists.CreatePropertyList:
        """How the object was made."""
        return property_lists.CreatePropertyList(self.facts)

    def close(self) -> None:
        """Nothing: files are closed, objects are forgotten."""

    def __bool__(self) -> bool:
        return bool(self.valid)

    @property
    def key(self) -> tuple[Any, ...]:
        """The file and the address."""
        if self._key is None:
            self._key = (self.place.store.key, self.place.address)
        return self._key

    def __eq__(self, other: object) -> bool:
        if other is self or not isinstance(other, ObjectID):
            return other is self
        if not (self.valid and other.valid):  # as h5py has it: all of them are nothing
            return self.valid == other.valid
        return other.key == self.key

    def __hash__(self) -> int:
        if self._key is None and not self.valid:
            raise TypeError(f"Objects of class {type(self).__name__} cannot be hashed: the file was closed")
        return hash(self.key)


class FileID(ObjectID):
    """A file."""

    @property
    def name(self) -> Any:
        """The path that was opened, as bytes."""
        return self.place.store.filename.encode("utf-8", "surrogateescape")

    def get_filesize(self) -> int:
        """How long the file is."""
        import os

        return os.stat(self.place.store.opened.path).st_size  # noqa: PTH116

    def get_intent(self) -> int:
        """How the file was opened: always for reading."""
        return 0

    def close(self) -> None:
        """Let go of the file."""
        self.place.store.close()


class GroupID(ObjectID):
    """A group."""

    def get_num_objs(self) -> int:
        """How many names the group has."""
        return len(self.place.store.links(self.place.address))

    def __len__(self) -> int:
        return self.get_num_objs()

    def __iter__(self) -> Iterator[bytes]:
        for name in self.place.store.links(self.place.address):
            yield name.encode("utf-8", "surrogateescape")

    def __contains__(self, name: bytes) -> bool:
        return name.decode("utf-8", "surrogateescape") in self.place.store.links(self.place.address)


class TypeID:
    """A datatype."""

    def __init__(self, element: elements.Element, is_committed: bool = False) -> None:
        self.element = element
        self._is_committed = is_committed

    @property
    def dtype(self) -> np.dtype[Any]:
        """The datatype as NumPy has it."""
        return elements.dtype_of(self.element)

    def get_size(self) -> int:
        """Bytes of an element in memory."""
        return elements.memory_nbytes(self.element)

    def committed(self) -> bool:
        """Whether the datatype has a name in the file."""
        return self._is_committed

    def equal(self, other: object) -> bool:
        """Whether another datatype is the same."""
        return isinstance(other, TypeID) and other.element == self.element

    def __eq__(self, other: object) -> bool:
        return self.equal(other)

    def __hash__(self) -> int:
        return hash(repr(self.element))


class NamedTypeID(ObjectID, TypeID):
    """A datatype with a name."""

    def __init__(self, place: Place) -> None:
        ObjectID.__init__(self, place)
        TypeID.__init__(self, place.facts["element"], is_committed=True)

    __eq__ = ObjectID.__eq__
    __hash__ = ObjectID.__hash__


class DatasetID(ObjectID):
    """A dataset."""

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The length of each axis; None for no element at all. That of a virtual dataset may follow its sources."""
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
        """The dataset as `hs.open` has it."""
        return self.place.store.array(self.place.address, self.place.name)

    def get_type(self) -> TypeID:
        """The datatype of an element."""
        return TypeID(self.facts["element"], is_committed=self.facts["committed"] is not None)

    def get_space(self) -> spaces.SpaceID:
        """The dataspace: shape and largest shape."""
        shape = self.shape
        return spaces.SpaceID(shape, None if shape is None else self.facts["max_shape"])

    def get_create_plist(self) -> property_lists.DatasetCreatePropertyList:
        """How the dataset was made."""
        return property_lists.DatasetCreatePropertyList(self.facts, self)

    def get_storage_size(self) -> int:
        """Bytes of the elements as they are stored."""
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
        found: tuple[str, Any] = storage
        return found

    def get_offset(self) -> int | None:
        """Where the elements start in the file, if they are in one piece."""
        kind, address = self._storage
        if kind != "contiguous" or address is None or self.facts["external"]:
            return None
        found: int = address
        return found

    def _chunked(self) -> None:
        if self._storage[0] != "chunked":
            raise RuntimeError("Can't get number of chunks (not a chunked dataset)")

    def get_num_chunks(self, space: Any = None) -> int:
        """How many chunks are stored."""
        self._chunked()
        return len(self._chunks)

    @cached_property
    def _chunks(self) -> list[StoreInfo]:
        found = []
        chunk_shape = self._storage[1]
        shape = self.shape or ()
        counts = [ceil_div(length, chunk) for length, chunk in zip(shape, chunk_shape, strict=True)]
        for segment in self.array.segments():
            columns = (segment.indices(), segment.offsets(), segment.lengths(), segment.filter_masks())
            for index, offset, length, mask in zip(*columns, strict=True):
                place = np.unravel_index(int(index), counts) if counts else ()
                start = tuple(int(at) * chunk for at, chunk in zip(place, chunk_shape, strict=True))
                found.append(StoreInfo(start, int(mask), int(offset), int(length)))
        return found

    def get_chunk_info(self, index: int, space: Any = None) -> StoreInfo:
        """Where a stored chunk is, by its number among them."""
        self._chunked()
        if not 0 <= index < len(self._chunks):
            raise ValueError("Chunk index is out of range")
        return self._chunks[index]

    def get_chunk_info_by_coord(self, chunk_offset: tuple[int, ...]) -> StoreInfo:
        """Where the chunk with this first element is."""
        self._chunked()
        for info in self._chunks:
            if info.chunk_offset == tuple(chunk_offset):
                return info
        return StoreInfo(tuple(chunk_offset), 0, None, 0)

    def chunk_iter(self, func: Callable[[StoreInfo], Any]) -> Any:
        """Call `func` for each stored chunk, until it returns something."""
        self._chunked()
        for info in self._chunks:
            found = func(info)
            if found is not None:
                return found
        return None

    def read_direct_chunk(self, offsets: tuple[int, ...], *_: Any, **__: Any) -> tuple[int, bytes]:
        """The filters that were left out of a chunk, and its bytes as they are stored.

        Raises
        ------
        RuntimeError
            The chunk was never written.
        Unsupported
            The file is far away.
        """
        info = self.get_chunk_info_by_coord(offsets)
        if info.byte_offset is None:
            raise RuntimeError("Unable to read direct chunk (the chunk was never written)")
        opened = self.place.store.opened
        if opened.is_remote:
            raise Unsupported(f"{opened.path}: chunks as they are stored are read of files of this machine only")
        with open(opened.path, "rb") as file:
            file.seek(info.byte_offset)
            return info.filter_mask, file.read(info.size)

    def refresh(self) -> None:
        """Nothing: a file that changed is opened again."""
        self.place.store.opened  # noqa: B018 -- raises of a closed file

    flush = refresh

"""`StagedArray`: an array of a version that you are making. The work depends on how much of it you touch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab.archive.tree.array import Array as ArchiveArray
from hyperslab.archive.tree.indexing import Key
from hyperslab.errors import Unsupported
from hyperslab.versions.layout.elements import as_elements, as_new_elements, fill_element, read_chunks
from hyperslab.versions.layout.names import ARRAY_BOOKKEEPING, Array
from hyperslab.versions.layout.slots import MISSING, Slots, check_chunk_count, grid_slots
from hyperslab.versions.stage.attributes import StagedAttributes
from hyperslab.versions.stage.selection import selected, spread
from hyperslab.versions.stage.staged_chunks import StagedChunks

if TYPE_CHECKING:
    from hyperslab.versions.stage.committed import CommittedArray

MOST_WHOLE_NBYTES = 1 << 31  # of an array that must fit in memory in one piece


class StagedArray:
    """An array of a version that you are making. Read it, write to it and resize it as with NumPy and h5py.

    `array[...] = new` replaces all elements without reading the old ones.
    """

    def __init__(
        self,
        path: str,
        chunk_shape: tuple[int, ...],
        dtype: np.dtype[Any],
        fill: Any,
        *,
        chunks: StagedChunks | None = None,
        whole: Array | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.name = path
        self.chunks = chunk_shape
        self.dtype = dtype
        self.fillvalue = fill
        self.attrs: StagedAttributes = StagedAttributes(path)
        self.options: dict[str, Any] = options or {}
        self.base: ArchiveArray | CommittedArray | None = None
        self._chunks = chunks
        self._whole = whole
        self._resized = False
        self._open = True

    @classmethod
    def of_version(cls, path: str, base: ArchiveArray, raw: ArchiveArray) -> StagedArray:
        """Stage an array of the version before."""
        if raw.dtype.hasobject and not base.is_text:
            said = "elements of variable length can only be changed if they are text"
            raise Unsupported(f"{path}: {said}, not {raw.dtype}")
        chunk_shape = tuple(int(length) for length in base.attrs["chunks"])
        fill = fill_element(raw.dtype, raw.fill_value)
        slots = grid_slots(base, chunk_shape)
        if slots is None or (not (slots != MISSING).any() and base.stored_chunk_count):
            if base.nbytes > MOST_WHOLE_NBYTES:
                said = f"{path} is not made of whole chunks, and its {base.nbytes} bytes are too many for memory"
                raise Unsupported(f"{base.filename}: {said}: hyperslab.versions.repair helps, if its shape is damaged")
            array = cls(path, chunk_shape, raw.dtype, fill, whole=np.array(base[...], raw.dtype))
        else:
            chunks = StagedChunks(base.shape, chunk_shape, raw.dtype, fill, slots, partial(_loaded, raw, chunk_shape))
            array = cls(path, chunk_shape, raw.dtype, fill, chunks=chunks)
        array._start_as(base)
        return array

    @classmethod
    def of_commit(cls, base: CommittedArray) -> StagedArray:
        """Stage an array of the version before, which was committed here."""
        chunks = StagedChunks(base.shape, base.chunks, base.dtype, base.fill, base.slots, base.load)
        array = cls(base.path, base.chunks, base.dtype, base.fill, chunks=chunks)
        array._start_as(base)
        return array

    def _start_as(self, base: ArchiveArray | CommittedArray) -> None:
        self.base = base
        self.attrs = StagedAttributes(self.name, base.attrs, ARRAY_BOOKKEEPING)

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        if self._whole is not None:
            return tuple(self._whole.shape)
        assert self._chunks is not None
        return self._chunks.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.chunks)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def whole(self) -> Array | None:
        """All elements, if they are in memory in one piece."""
        return self._whole

    @property
    def staged(self) -> StagedChunks:
        """The grid of chunks, if the elements are not all in memory."""
        assert self._chunks is not None
        return self._chunks

    @property
    def is_changed(self) -> bool:
        """Whether anything except the attributes may differ from the version before."""
        if self.base is None or self._chunks is None:
            return True
        return self._chunks.staged_count > 0 or self._resized

    @property
    def is_open(self) -> bool:
        """Whether you can still change it."""
        return self._open

    def close(self) -> None:
        """Refuse further changes."""
        self._open = False

    def __getitem__(self, key: Key) -> Any:
        if isinstance(key, str):
            return self[...][key]
        asked = selected(key, self.shape)
        if self.base is not None and not self.is_changed and asked.is_product and not self.dtype.hasobject:
            return self.base[key]
        if self._whole is not None:
            read = np.array(self._whole[asked.numpy_key])
        elif asked.is_empty:
            read = np.empty(asked.full_shape, self.dtype)
        else:
            read = self.staged.read(asked)
        shaped = read.reshape(asked.shape)
        return shaped[()] if asked.is_element else shaped

    def __setitem__(self, key: Key, value: Any) -> None:
        self._check_open()
        asked = selected(key, self.shape)
        elements = spread(as_new_elements(value, self.dtype), asked, self.dtype)
        if asked.is_empty:
            return
        if asked.full_shape == self.shape and asked.boxes is not None:
            self._whole, self._chunks = np.array(elements, self.dtype, order="C"), None
        elif self._whole is not None:
            self._whole[asked.numpy_key] = elements.reshape(asked.full_shape)
        else:
            self.staged.write(asked, elements)

    def resize(self, size: int | Sequence[int], axis: int | None = None) -> None:
        """Change the shape of the array, or the length of one axis. New elements get the fill value.

        Raises
        ------
        ValueError
            The shape has another number of axes, a negative length or too many chunks.
        """
        self._check_open()
        if axis is not None:
            shape = (*self.shape[:axis], int(size), *self.shape[axis + 1 :])  # type: ignore[arg-type]
        else:
            shape = (size,) if isinstance(size, int) else tuple(int(length) for length in size)
        if len(shape) != self.ndim or min(shape, default=0) < 0:
            raise ValueError(f"{self.name} cannot get the shape {shape}: it has {self.ndim} axes")
        check_chunk_count(self.name, shape, self.chunks)
        self._resized = self._resized or shape != self.shape  # growing again does not restore what was cut off
        if self._whole is None:
            self.staged.resize(shape)
            return
        grown: Array = np.full(shape, self.fillvalue, self.dtype)
        kept = tuple(slice(0, min(old, new)) for old, new in zip(self._whole.shape, shape, strict=True))
        grown[kept] = self._whole[kept]
        self._whole = grown

    def adopt(self, numbers: Slots, slots: Slots) -> None:
        """Show other stored chunks, by their slots, at some places of the grid, without reading any."""
        self._check_open()
        self._resized = True
        self.staged.adopt(numbers, slots)

    def as_new(self) -> StagedArray:
        """This array, which another version than the one before has, as one that this version adds."""
        self.base, self._resized = None, True
        kept = StagedAttributes(self.name)
        kept.layouts, self.attrs = self.attrs.layouts, kept
        return self

    def astype(self, dtype: Any) -> Array:
        """All elements, converted to another dtype."""
        converted: Array = np.asarray(self[...]).astype(dtype)
        return converted

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("a staged array cannot be converted without a copy")
        array = np.asarray(self[...])
        return array if dtype is None else array.astype(dtype, copy=False)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return f"<hyperslab.StagedArray {self.name!r} {self.shape} {self.dtype}>"

    def _check_open(self) -> None:
        if not self._open:
            raise ValueError(f"{self.name}: its version was committed or abandoned; stage a new version")


def _loaded(raw: ArchiveArray, chunk_shape: tuple[int, ...], slots: Slots) -> Array:
    chunks: Array = as_elements(read_chunks(raw, chunk_shape, slots), raw.dtype)
    return chunks

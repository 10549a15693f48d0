"""Arrays of versions that you are making, and of committed versions in a file open for writing, as in versioned-hdf5:
with the attributes and indices of h5py, and with text as bytes.
"""

from __future__ import annotations

import operator
import posixpath
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import h5py
import numpy as np
from h5py._hl.dataset import ChunkIterator
from numpy.exceptions import AxisError

from hyperslab.archive.tree.array import Array as ArchiveArray
from hyperslab.errors import printable
from hyperslab.versions.compat.opened import Opened
from hyperslab.versions.compat.text import as_h5py, decoded, is_string
from hyperslab.versions.layout.names import ARRAY_BOOKKEEPING, without
from hyperslab.versions.stage.staged_array import StagedArray


class DatasetLike:
    """An array of a version.

    Parameters
    ----------
    parent : h5py.Group
        The group that holds it.
    opened : Opened
        The file.
    version : str
        The name of the version.
    path : str
        Its path in the version.
    array : StagedArray | None
        The staged array; None in a committed version.
    """

    def __init__(
        self, parent: h5py.Group, opened: Opened, version: str, path: str, array: StagedArray | None = None
    ) -> None:
        self.parent = parent
        self._opened, self._version, self._path = opened, version, path
        self._link = posixpath.basename(path)
        self._array: StagedArray | ArchiveArray | None = array
        self._generation = opened.generation
        self._committed_attrs: dict[str, Any] | None = None

    @property
    def _found(self) -> StagedArray | ArchiveArray:
        """The array that holds the elements. It is looked up again after versions were deleted or rewritten."""
        array, opened = self._array, self._opened
        if isinstance(array, StagedArray) and array.is_open:
            return array
        opened.table  # noqa: B018 -- notices changes
        if array is None or self._generation != opened.generation:
            array = self._array = opened.array(self._version, self._path)
            self._generation = opened.generation
            self._committed_attrs = None
        return array

    @property
    def staged(self) -> StagedArray | None:
        """The staged array; None in a committed version."""
        return self._array if isinstance(self._array, StagedArray) else None

    def _changeable(self) -> StagedArray:
        if not isinstance(self._array, StagedArray) or not self._array.is_open:
            raise ValueError(f'"{self.name}" has already been committed: stage a new version')
        return self._array

    @property
    def _raw(self) -> Any:
        return self._opened.raw(self._path)

    @property
    def name(self) -> str:
        """The path of the array in the file."""
        return f"{self.parent.name}/{self._link}"

    @property
    def file(self) -> Any:
        """The h5py file that holds it."""
        return self.parent.file

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self._found.shape

    @property
    def maxshape(self) -> tuple[None, ...]:
        """None for each axis: every array can be resized in a new version."""
        return (None,) * self.ndim

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._found.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements, as in h5py."""
        raw = self._raw
        dtype: np.dtype[Any] = self._found.dtype if raw is None else raw.dtype
        return dtype

    @property
    def nbytes(self) -> int:
        """Bytes of all elements in memory."""
        return self.size * self.dtype.itemsize

    @property
    def chunks(self) -> tuple[int, ...]:
        """The shape of a chunk."""
        array = self._found
        chunks = array.chunks if isinstance(array, StagedArray) else array.attrs["chunks"]
        return tuple(int(length) for length in chunks)

    @property
    def fillvalue(self) -> Any:
        """The fill value."""
        raw, array = self._raw, self._found
        if raw is not None:
            return raw.fillvalue
        fill = array.fillvalue if isinstance(array, StagedArray) else array.fill_value
        return fill.encode() if isinstance(fill, str) else fill

    @property
    def attrs(self) -> MutableMapping[str, Any]:
        """The attributes. Those of a committed version are copies."""
        array = self._found
        if isinstance(array, StagedArray):
            return array.attrs
        if self._committed_attrs is None:
            self._committed_attrs = without(array.attrs, ARRAY_BOOKKEEPING)
        return self._committed_attrs

    def _option(self, name: str, absent: Any = None) -> Any:
        raw = self._raw
        if raw is not None:
            return getattr(raw, name)
        array = self._found
        return array.options.get(name, absent) if isinstance(array, StagedArray) else absent

    @property
    def compression(self) -> Any:
        """The codec, or None."""
        return self._option("compression")

    @property
    def compression_opts(self) -> Any:
        """The settings of the codec, or None."""
        return self._option("compression_opts")

    @property
    def scaleoffset(self) -> int | None:
        """The setting of HDF5's scale-offset filter, or None."""
        setting: int | None = self._option("scaleoffset")
        return setting

    @property
    def shuffle(self) -> bool:
        """Whether bytes are shuffled before compression."""
        return bool(self._option("shuffle", False))

    @property
    def fletcher32(self) -> bool:
        """Whether chunks have checksums."""
        return bool(self._option("fletcher32", False))

    def len(self) -> int:
        """The length of the first axis."""
        return self.shape[0]

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        return bool(self.size)

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        names, key = _split_fields(key)
        if isinstance(key, h5py.RegionReference):
            return self.file[self.name][key]
        array = self._found
        read = array[key]
        if array.dtype.hasobject:
            read = as_h5py(read, self.dtype)
        if not names:
            return read
        return read[names[0]] if len(names) == 1 else read[list(names)]

    def __setitem__(self, key: Any, value: Any) -> None:
        staged = self._changeable()
        names, key = _split_fields(key)
        if names:
            changed = np.array(staged[key])
            value = np.asarray(value)
            for name in names:
                if name not in (changed.dtype.names or ()):
                    raise ValueError(f"{self.name} has no field {name!r}: there are {changed.dtype.names}")
                changed[name] = value[name] if value.dtype.names else value
            value = changed
        elif isinstance(value, DatasetLike | h5py.Dataset):
            value = value[()]
        staged[key] = value

    def resize(self, size: Any, axis: int | None = None) -> None:
        """Change the shape of the array, or the length of one axis. New elements get the fill value.

        Raises
        ------
        ValueError
            The shape has another number of axes, or the version was committed.
        AxisError
            The axis does not exist.
        TypeError
            A length is not an integer.
        """
        staged = self._changeable()
        if axis is None:
            shape = [int(length) for length in np.atleast_1d(np.asarray(size, object))]
        else:
            if not -self.ndim <= axis < self.ndim:
                raise AxisError(axis, self.ndim)
            if np.ndim(size):
                raise TypeError(f"{self.name}: the length of one axis must be an integer, not {size!r}")
            shape = list(self.shape)
            shape[axis] = int(size)
        staged.resize(tuple(shape))

    def astype(self, dtype: Any) -> View:
        """A read-only view that converts elements to another dtype when you index it."""
        wanted = np.dtype(dtype)
        if wanted.kind == "T" and not is_string(self.dtype):
            raise TypeError(f"{self.name} holds {self.dtype}, which is not text: it cannot be converted to {wanted}")
        return View(self, wanted, lambda read: np.asarray(read).astype(wanted)[()])

    def asstr(self, encoding: str | None = None, errors: str = "strict") -> View:
        """A view that decodes text to `str` when you index it."""
        info = h5py.check_string_dtype(self.dtype)
        if info is None:
            raise TypeError(f"{self.name} holds {self.dtype}, which is not text")
        chosen = info.encoding if encoding is None else encoding
        return View(self, np.dtype(object), lambda read: decoded(read, chosen, errors))

    def fields(self, names: str | list[str] | tuple[str, ...]) -> View:
        """A view that picks some fields when you index it."""
        chosen = names if isinstance(names, str) else list(names)
        return View(self, self.dtype[chosen], operator.itemgetter(chosen))

    def iter_chunks(self, sel: Any = None) -> Iterator[tuple[slice, ...]]:
        """The part of the array that each chunk covers, as slices."""
        parts: Iterator[tuple[slice, ...]] = ChunkIterator(self, sel)
        return parts

    def read_direct(self, dest: np.ndarray[Any, Any], source_sel: Any = None, dest_sel: Any = None) -> None:
        """Read into an existing array."""
        dest[... if dest_sel is None else dest_sel] = self[... if source_sel is None else source_sel]

    def write_direct(self, source: np.ndarray[Any, Any], source_sel: Any = None, dest_sel: Any = None) -> None:
        """Write from an array."""
        self[... if dest_sel is None else dest_sel] = source[... if source_sel is None else source_sel]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("an array of a version cannot be converted without a copy")
        array = np.asarray(self[...])
        return array if dtype is None else array.astype(dtype, copy=False)

    def __repr__(self) -> str:
        return f'<{type(self).__name__} "{printable(self._link)}": shape {self.shape}, type "{self.dtype.str}">'


class InMemoryDataset(DatasetLike):
    """An array of the version before, with your changes."""


class InMemoryArrayDataset(DatasetLike):
    """An array whose elements are all in memory."""


class InMemorySparseDataset(DatasetLike):
    """An array created without elements."""


class DatasetWrapper(DatasetLike):
    """An array created with elements, or taken from the version before."""

    @property
    def dataset(self) -> DatasetLike:
        """The same array, with a class that tells where its elements are."""
        staged = self.staged
        kind: type[DatasetLike] = InMemoryDataset
        if staged is not None and staged.whole is not None:
            kind = InMemoryArrayDataset
        elif staged is not None and staged.base is None:
            kind = InMemorySparseDataset
        return kind(self.parent, self._opened, self._version, self._path, staged)


class View:
    """An array that is converted when you index it."""

    def __init__(self, array: DatasetLike, dtype: np.dtype[Any], convert: Callable[[Any], Any]) -> None:
        self._viewed = array
        self._convert = convert
        self.dtype = dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self._viewed.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._viewed.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._viewed.size

    def __len__(self) -> int:
        return len(self._viewed)

    def __getitem__(self, key: Any) -> Any:
        return self._convert(self._viewed[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        raise ValueError("this is a read-only view: assign to the array itself")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("an array of a version cannot be converted without a copy")
        array = np.asarray(self[...])
        return array if dtype is None else array.astype(dtype, copy=False)


def _split_fields(key: Any) -> tuple[tuple[str, ...], Any]:
    """The field names in a key, and the rest of the key."""
    items = key if isinstance(key, tuple) else (key,)
    names = tuple(one for one in items if isinstance(one, str))
    rest = tuple(one for one in items if not isinstance(one, str)) if names else items
    return names, rest[0] if len(rest) == 1 else rest

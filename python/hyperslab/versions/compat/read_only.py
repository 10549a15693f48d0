"""Versions of a file open for reading: groups and arrays of h5py, whose elements the engine reads."""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np

from hyperslab.archive.tree.array import Array as ArchiveArray
from hyperslab.errors import UsageError
from hyperslab.versions.compat.opened import Opened
from hyperslab.versions.compat.text import as_h5py


class ReadOnlyGroup(h5py.Group):  # type: ignore[misc]
    """A group of a version, in a file open for reading."""

    def __init__(self, opened: Opened, version: str, path: str = "") -> None:
        super().__init__(opened.f[f"{opened.path}/{version}/{path}"].id)
        self._opened, self._version, self._path = opened, version, path

    def __getitem__(self, name: Any) -> Any:
        if not isinstance(name, str) or name.startswith("/"):
            return super().__getitem__(name)
        kind = super().get(name, getclass=True)
        path = "/".join(part for part in (self._path, *name.split("/")) if part not in ("", "."))
        if kind is h5py.Group:
            return ReadOnlyGroup(self._opened, self._version, path)
        if kind is h5py.Dataset:
            return ReadOnlyArray(self, name, path)
        return super().__getitem__(name)


class ReadOnlyArray(h5py.Dataset):  # type: ignore[misc]
    """An array of a version. h5py opens virtual arrays slowly, so this waits until something needs it."""

    def __init__(self, group: ReadOnlyGroup, name: str, path: str) -> None:
        self._group, self._link, self._path = group, name, path
        self._array: ArchiveArray = group._opened.array(group._version, path)

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__") or "_id" in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no attribute {attribute!r}")
        h5py.Dataset.__init__(self, h5py.h5d.open(self._group.id, self._link.encode()), readonly=True)
        return getattr(self, attribute)

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self._array.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._array.size

    @property
    def chunks(self) -> tuple[int, ...]:
        """The shape of a chunk. (h5py gives none for a virtual array.)"""
        return tuple(int(length) for length in self._array.attrs["chunks"])

    def len(self) -> int:
        """The length of the first axis."""
        return self._array.shape[0]

    def __len__(self) -> int:
        return self._array.shape[0]

    def __getitem__(self, args: Any, new_dtype: Any = None) -> Any:
        names = any(isinstance(one, str) for one in args) if isinstance(args, tuple) else isinstance(args, str)
        if new_dtype is None and not names:
            try:
                return as_h5py(self._array[args], self._array.dtype)
            except UsageError:
                raise
            except (TypeError, ValueError, IndexError):
                pass  # h5py knows more kinds of keys, and raises its own errors
        return super().__getitem__(args, new_dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("an array of a file cannot be converted without a copy")
        array = np.asarray(self[...])
        return array if dtype is None else array.astype(dtype, copy=False)

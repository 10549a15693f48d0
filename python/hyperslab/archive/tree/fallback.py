"""Read arrays through h5py that hyperslab cannot read itself: slower, in one thread. Then `array.via` is "h5py"."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import numpy as np

from hyperslab._core import DocumentResolver
from hyperslab.archive.tree.followed import Followed, opened_by_h5py
from hyperslab.archive.tree.indexing import NormalizedKey
from hyperslab.errors import DamagedFile, HyperslabError, Unsupported
from hyperslab.needed import advice
from hyperslab.storage.hdf5_plugins import h5py_with_plugins

# From HDF5 itself, and for elements and texts that NumPy or Python cannot represent.
WHAT_H5PY_RAISES = (OSError, RuntimeError, KeyError, TypeError, ValueError, OverflowError)


def is_possible() -> bool:
    """Whether h5py is installed."""
    return find_spec("h5py") is not None


def dtype_of(path: str, name: str, resolver: DocumentResolver) -> np.dtype[Any]:
    """The dtype of an array.

    Raises
    ------
    DamagedFile
        h5py cannot read the array either.
    NotAllowed
        The array leads to a file that is not allowed.
    """
    try:
        h5py = h5py_with_plugins()
        Followed(h5py, path, name, resolver)
        with opened_by_h5py(h5py, path) as file:
            dtype: np.dtype[Any] = file[name].dtype
            return dtype
    except HyperslabError:
        raise
    except WHAT_H5PY_RAISES as error:
        raise DamagedFile(f"array {name} of {path}: h5py cannot read it either: {error}") from error


def files_of(path: str, name: str, resolver: DocumentResolver) -> set[str]:
    """The other files that an array leads to."""
    return Followed(h5py_with_plugins(), path, name, resolver).files


def read(path: str, name: str, index: NormalizedKey, resolver: DocumentResolver) -> np.ndarray[Any, Any]:
    """Read the selected elements, with every axis of the array; points give one axis.

    Raises
    ------
    DamagedFile
        h5py cannot read the array either.
    NotAllowed
        The array leads to a file that is not allowed.
    Unsupported
        The array needs an HDF5 filter that is not installed.
    """
    try:
        array = _read(path, name, index, resolver)
    except HyperslabError:
        raise
    except WHAT_H5PY_RAISES as error:
        codec = _missing_codec(path, name)
        if codec is not None:
            plugin = f" (hdf5plugin has many: {advice('hdf5plugin')})" if find_spec("hdf5plugin") is None else ""
            said = f"array {name} of {path} is encoded with {codec}, which neither hyperslab nor h5py has here"
            raise Unsupported(f"{said}: install an HDF5 plugin for it{plugin}") from error
        raise DamagedFile(f"array {name} of {path}: h5py cannot read it either: {error}") from error
    if index.points is not None:
        start = [axis[0] for axis in index.axes if not isinstance(axis, np.ndarray)]
        picked: np.ndarray[Any, Any] = array[tuple((index.points.coordinates - start).T)]
        return picked
    for axis, asked in enumerate(index.axes):
        array = array.take(_within(asked), axis=axis)
    return array


def _read(path: str, name: str, index: NormalizedKey, resolver: DocumentResolver) -> np.ndarray[Any, Any]:
    h5py = h5py_with_plugins()
    Followed(h5py, path, name, resolver)
    with opened_by_h5py(h5py, path) as file:
        stored = file[name]
        text = h5py.check_string_dtype(stored.dtype)
        source = stored.asstr() if text is not None and text.length is None else stored
        return np.asarray(source[tuple(_around(axis) for axis in index.axes)])


def _missing_codec(path: str, name: str) -> str | None:
    """The first filter of an array that libhdf5 lacks."""
    h5py = h5py_with_plugins()
    with suppress(*WHAT_H5PY_RAISES), opened_by_h5py(h5py, path) as file:
        made = file[name].id.get_create_plist()
        for number, _, _, label in map(made.get_filter, range(made.get_nfilters())):
            if not h5py.h5z.filter_avail(number):
                return f"{label.decode('utf-8', 'replace')!r} (HDF5 filter {number})"
    return None


def _around(asked: Any) -> slice:
    """One slice that contains all indices that are asked for on an axis."""
    if isinstance(asked, np.ndarray):
        return slice(int(asked.min()), int(asked.max()) + 1) if asked.size else slice(0, 0)
    start, stride, count, block = asked
    return slice(start, start + (count - 1) * stride + block) if count else slice(0, 0)


def _within(asked: Any) -> np.ndarray[Any, Any]:
    """The indices, relative to the start of that slice, of what is asked for."""
    if isinstance(asked, np.ndarray):
        return asked - asked.min() if asked.size else asked
    _, stride, count, block = asked
    indices: np.ndarray[Any, Any] = np.arange(count)[:, None] * stride + np.arange(block)
    return indices.reshape(-1)

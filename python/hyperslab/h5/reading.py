"""Read selections of a dataset with hyperslab's engine into the arrays that h5py would return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab.errors import Unsupported
from hyperslab.h5 import elements
from hyperslab.h5.converting import converted
from hyperslab.h5.dtypes import check_string_dtype
from hyperslab.h5.selecting import Selected, select

if TYPE_CHECKING:
    from hyperslab.h5.dataset import Dataset
    from hyperslab.h5.identifiers import DatasetID

__all__ = ["converted", "default_fill", "read", "read_direct", "shaped"]


def read(dataset: DatasetID, selected: Selected) -> np.ndarray[Any, Any]:
    """Read the selected elements.

    Raises
    ------
    Unsupported
        Only h5py can decode the chunks, and the elements have a variable length.
    """
    element, dtype = dataset.facts["element"], dataset.dtype
    shape = (*selected.shape, *dtype.shape)
    if selected.nselect == 0:
        return np.zeros(shape, dtype.base)
    array = dataset.array
    if elements.has_pointers(element):
        if array.via == "h5py":
            said = f"{array.name} has elements of variable length in chunks that only h5py can decode"
            raise Unsupported(f"{said}: open the file with h5py")
        stored = array.read_stored(selected.key)
        return shaped(element, dtype, stored, array.heap_values(stored), selected.shape)
    found = np.asarray(array.read_index(selected.key))
    if found.dtype.itemsize != dtype.base.itemsize:
        return found.astype(dtype.base).reshape(shape)
    if found.dtype.kind == "f" and found.dtype != dtype.base:  # floats that are not IEEE 754 in the file
        return found.astype(dtype.base).reshape(shape)
    return found.reshape(shape).view(dtype.base)


def shaped(
    element: elements.Element,
    dtype: np.dtype[Any],
    stored: Any,
    heap: list[bytes],
    shape: tuple[int, ...],
) -> np.ndarray[Any, Any]:
    """Convert stored elements to an array of a shape.

    Parameters
    ----------
    element : Element
        The datatype.
    dtype : np.dtype
        The dtype of the result.
    stored : bytes-like
        The elements as stored, without gaps.
    heap : list of bytes
        The values of the elements of variable length, in order.
    shape : tuple of int
        The shape of the result, to which the axes of a sub-array dtype are added.
    """
    return elements.values(element, dtype, bytes(stored), heap).reshape((*shape, *dtype.shape))


def default_fill(dtype: np.dtype[Any]) -> Any:
    """Return HDF5's default fill value: zero, empty text, or None for other objects."""
    if dtype.kind == "O":
        return b"" if check_string_dtype(dtype) is not None else None
    filled = np.zeros((1,), dtype)
    for name in dtype.names or () if dtype.hasobject else ():
        if filled[name].dtype.kind == "O":
            filled[name] = None
    return filled[0]


def read_direct(dataset: Dataset, dest: np.ndarray[Any, Any], source_sel: Any, dest_sel: Any) -> None:
    """Read a selection into a part of an array.

    Parameters
    ----------
    dataset : Dataset
        The dataset to read.
    dest : np.ndarray
        The array to fill.
    source_sel : index or None
        The elements to read; all by default.
    dest_sel : index or None
        The elements of `dest` to fill; all by default.

    Raises
    ------
    TypeError
        `dest` is not in C order or not writable, or the two selections do not fit each other.
    """
    if not isinstance(dest, np.ndarray) or not dest.flags.c_contiguous or not dest.flags.writeable:
        raise TypeError("Array must be C-contiguous and writable")
    source = _selection(dataset.shape or (), source_sel)
    target = _selection(dest.shape, dest_sel)
    if source is None:
        source_shape: tuple[int, ...] = dataset.shape or ()
        found = dataset[()]
    else:
        source_shape = source.shape
        found = dataset._select_read(source, None)
    array = np.asarray(found)
    if check_string_dtype(dataset.dtype) is None or dest.dtype != dataset.dtype:
        array = converted(array, dataset.dtype, dest.dtype)
    target_shape = dest.shape if target is None else target.shape
    if not _fits(source_shape, target_shape):
        raise TypeError(f"Can't broadcast {source_shape} -> {target_shape}")
    dest[... if dest_sel is None else dest_sel] = array


def _selection(shape: tuple[int, ...], args: Any) -> Selected | None:
    if args is None:
        return None
    return select(shape, args if isinstance(args, tuple) else (args,))


def _fits(source: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether `source` can be broadcast to `target`, where extra axes of `source` may only have length 1."""
    if any(length != 1 for length in source[: max(0, len(source) - len(target))]):
        return False
    pairs = zip(reversed(source), reversed(target), strict=False)
    return all(one in (1, other) for one, other in pairs)

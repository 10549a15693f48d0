"""Read selections of a dataset with hyperslab's engine into the arrays that h5py would return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab.errors import Unsupported
from hyperslab.h5 import elements
from hyperslab.h5.dtypes import check_string_dtype
from hyperslab.h5.selecting import Selected, select

if TYPE_CHECKING:
    from hyperslab.h5.identifiers import DatasetID


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
    values = np.asarray(array.read_index(selected.key))
    if values.dtype.itemsize != dtype.base.itemsize:
        return values.astype(dtype.base).reshape(shape)
    if values.dtype.kind == "f" and values.dtype != dtype.base:  # floats that are not IEEE 754 in the file
        return values.astype(dtype.base).reshape(shape)
    return values.reshape(shape).view(dtype.base)


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


def optional_selection(shape: tuple[int, ...], args: Any) -> Selected | None:
    """The selection; None for all elements."""
    if args is None:
        return None
    return select(shape, args if isinstance(args, tuple) else (args,))


def fits(source: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether `source` can be broadcast to `target`, where extra axes of `source` may only have length 1."""
    if any(length != 1 for length in source[: max(0, len(source) - len(target))]):
        return False
    pairs = zip(reversed(source), reversed(target), strict=False)
    return all(one in (1, other) for one, other in pairs)

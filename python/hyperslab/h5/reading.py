"""Reading selections of a dataset by hyperslab's engine, as the arrays that h5py makes of them."""

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
    """What is selected."""
    element, dtype = dataset.facts["element"], dataset.dtype
    shape = (*selected.shape, *dtype.shape)
    if selected.nselect == 0:
        return np.zeros(shape, dtype.base)
    array = dataset.array
    if elements.has_pointers(element):
        if array.via == "h5py":
            raise Unsupported(f"{array.name}: elements of any length in an array that only h5py can decode")
        stored = array.read_stored(selected.key)
        return shaped(element, dtype, stored, array.heap_values(stored), selected.shape)
    found = np.asarray(array.read_index(selected.key))
    if found.dtype.itemsize != dtype.base.itemsize:
        return found.astype(dtype.base).reshape(shape)
    if found.dtype.kind == "f" and found.dtype != dtype.base:  # of another layout than IEEE 754's
        return found.astype(dtype.base).reshape(shape)
    return found.reshape(shape).view(dtype.base)


def shaped(
    element: elements.Element,
    dtype: np.dtype[Any],
    stored: Any,
    heap: list[bytes],
    shape: tuple[int, ...],
) -> np.ndarray[Any, Any]:
    """Elements as they are stored, as an array of a shape."""
    return elements.values(element, dtype, bytes(stored), heap).reshape((*shape, *dtype.shape))


def default_fill(dtype: np.dtype[Any]) -> Any:
    """What elements are that nobody wrote, where the writer named no value: zeros, no text, None for other objects."""
    if dtype.kind == "O":
        return b"" if check_string_dtype(dtype) is not None else None
    filled = np.zeros((1,), dtype)
    for name in dtype.names or () if dtype.hasobject else ():
        if filled[name].dtype.kind == "O":
            filled[name] = None
    return filled[0]


def read_direct(dataset: Dataset, dest: np.ndarray[Any, Any], source_sel: Any, dest_sel: Any) -> None:
    """Read a selection into a part of an array.

    Raises
    ------
    TypeError
        The array is not in C order or cannot be written, or what is read does not fit it.
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
    """Whether axes of the source, from the last on, are as long as the target's, or 1; more of them are all 1."""
    if any(length != 1 for length in source[: max(0, len(source) - len(target))]):
        return False
    pairs = zip(reversed(source), reversed(target), strict=False)
    return all(one in (1, other) for one, other in pairs)

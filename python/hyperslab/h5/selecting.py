"""Parse the index of `dataset[...]` by h5py's rules into a selection and the shape of its result."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from hyperslab._core import Points
from hyperslab.archive.tree import indexing
from hyperslab.archive.tree.indexing import AxisIndices, NormalizedKey, of_points


class Selected(NamedTuple):
    """A selection of a dataset, either by indices on each axis or by points, and the shape of its result."""

    key: NormalizedKey
    shape: tuple[int, ...]
    is_scalar: bool  # the result is a NumPy scalar, not an array without axes

    @property
    def nselect(self) -> int:
        """The number of selected elements."""
        return math.prod(self.key.shape)


class MultiBlockSlice:
    """Blocks of indices on an axis.

    Parameters
    ----------
    start : int
        The first index of the first block.
    stride : int
        The distance from the first index of a block to that of the next one.
    count : int or None
        The number of blocks; None for as many as fit the axis.
    block : int
        The number of indices in each block.

    Raises
    ------
    ValueError
        A number is negative, or 0 where that is not allowed, or blocks overlap.
    """

    block: int
    count: int | None
    start: int
    stride: int

    def __init__(self, start: int = 0, stride: int = 1, count: int | None = None, block: int = 1) -> None:
        if start < 0:
            raise ValueError("Start can't be negative")
        if stride < 1 or (count is not None and count < 1) or block < 1:
            raise ValueError("Stride, count and block can't be 0 or negative")
        if block > stride:
            raise ValueError("Blocks will overlap if block > stride")
        self.start, self.stride, self.count, self.block = start, stride, count, block

    def indices(self, length: int) -> tuple[int, int, int, int]:
        """Return start, stride, count and block on an axis.

        Parameters
        ----------
        length : int
            The length of the axis.

        Raises
        ------
        ValueError
            The axis is too short.
        """
        count = self.count
        if count is None:
            count = (length - self.start - self.block) // self.stride + 1
            if count < 1:
                raise ValueError(f"No full blocks of {self!r} fit in an axis of length {length}")
        last = self.start + self.block + (count - 1) * self.stride - 1
        if last >= length:
            raise ValueError(f"{self!r} reaches index {last}, beyond the maximum index ({length - 1})")
        return (self.start, self.stride, count, self.block)

    def __repr__(self) -> str:
        named = ("start", "stride", "count", "block")
        return f"MultiBlockSlice({', '.join(f'{name}={getattr(self, name)}' for name in named)})"


def select(shape: tuple[int, ...], args: tuple[Any, ...]) -> Selected:
    """Parse the index of a dataset.

    Parameters
    ----------
    shape : tuple of int
        The shape of the dataset.
    args : tuple
        Integers, slices, `MultiBlockSlice`s, an ellipsis, at most one list or mask of an axis; or one mask of the whole
        shape.

    Raises
    ------
    IndexError
        An index is outside the dataset.
    ValueError
        There are more indices than axes, two ellipses, or a step below 1.
    TypeError
        A list is not in increasing order, there are two lists, or an index has another type.
    """
    if len(args) == 1 and isinstance(args[0], np.ndarray) and args[0].dtype.kind == "b":
        mask = args[0]
        if mask.shape == shape:
            return of_mask(mask)
        if mask.shape != shape[:1]:
            raise TypeError("Boolean indexing array has incompatible shape")
    axes: list[AxisIndices] = []
    kept: list[int] = []
    lengths: list[int] = []
    has_list = False
    for axis, item in _per_axis(args, len(shape)):
        indices, count, is_kept, is_list = _axis(item, shape[axis], len(shape), has_list)
        has_list = has_list or is_list
        axes.append(indices)
        lengths.append(count)
        if is_kept:
            kept.append(count)
    index = NormalizedKey(tuple(axes), tuple(lengths), tuple(kept), is_element=False)
    return Selected(index, tuple(kept), is_scalar=not kept)


def of_mask(mask: np.ndarray[Any, Any]) -> Selected:
    """Select the elements where a mask of the dataset's shape is true."""
    index = indexing.of_mask(mask, mask.shape)
    return Selected(index, index.shape, is_scalar=False)


def of_coordinates(places: np.ndarray[Any, Any], shape: tuple[int, ...]) -> Selected:
    """Select elements by their indices.

    Parameters
    ----------
    places : np.ndarray
        The indices, shape (elements, axes).
    shape : tuple of int
        The shape of the dataset.
    """
    index = of_points(Points(places.astype(np.int64)), shape) if len(places) else _nothing(shape)
    return Selected(index, (len(places),), is_scalar=False)


def _nothing(shape: tuple[int, ...]) -> NormalizedKey:
    return NormalizedKey(((0, 1, 0, 1),) * len(shape), (0,) * max(1, len(shape)), (0,), is_element=False)


def _per_axis(args: tuple[Any, ...], ndim: int) -> Iterator[tuple[int, Any]]:
    """Yield each axis with its index, in order, so that the first mistake raises the error.

    An ellipsis stands for all axes without an index; so does the end of the arguments.
    """
    given, axis, has_ellipsis = len(args), 0, False
    for item in args:
        if item is Ellipsis:
            if has_ellipsis:
                raise ValueError("Only one ellipsis may be used.")
            has_ellipsis, given = True, given - 1
        if given > ndim and (item is Ellipsis or axis >= ndim):
            raise ValueError(f"{given} indexing arguments for {ndim} dimensions")
        if item is not Ellipsis:
            yield axis, item
            axis += 1
            continue
        for _ in range(ndim - given):
            yield axis, slice(None)
            axis += 1
    for rest in range(axis, ndim):
        yield rest, slice(None)


def _axis(item: Any, length: int, ndim: int, has_list: bool) -> tuple[AxisIndices, int, bool, bool]:
    """Parse the index of one axis.

    Returns
    -------
    tuple[AxisIndices, int, bool, bool]
        The selected indices; their number; whether the result keeps the axis; and whether they are a list.
    """
    if isinstance(item, slice):
        start, stop, step = item.indices(length)
        if step < 1:
            raise ValueError(f"Step must be >= 1 (got {step})")
        count = len(range(start, stop, step))
        return (start if count else 0, step, count, 1), count, True, False
    try:
        index = operator.index(item)
    except TypeError:
        pass
    else:
        return (_within(index, length), 1, 1, 1), 1, False, False
    if isinstance(item, MultiBlockSlice):
        start, stride, count, block = item.indices(length)
        return (start, stride, count, block), count * block, True, False
    listed = _listed(item, length, ndim, has_list)
    return listed, len(listed), True, True


def _within(index: int, length: int) -> int:
    place = index + length if index < 0 else index
    if 0 <= place < length:
        return place
    said = "empty dimension" if length == 0 else f"(0-{length - 1})"
    raise IndexError(f"Index ({place}) out of range for {said}")


def _listed(item: Any, length: int, ndim: int, has_list: bool) -> np.ndarray[Any, Any]:
    indices = _as_list(item)
    if indices.dtype.kind == "b":
        if ndim == 1:  # `select` has handled arrays of booleans
            raise TypeError("a list of booleans cannot be the mask of a dataset with one axis: make it an array")
        if indices.size != length:
            raise TypeError("boolean index did not match indexed array")
        indices = indices.nonzero()[0]
    if not np.issubdtype(indices.dtype, np.integer):
        raise TypeError("Indexing arrays must have integer dtypes")
    if has_list:
        raise TypeError("Only one indexing vector or array is currently allowed for fancy indexing")
    places = indices.astype(np.int64)
    places[places < 0] += length
    said = "empty dimension" if length == 0 else f"(0-{length - 1})"
    if ((places < 0) | (places > length)).any():
        raise IndexError(f"Fancy indexing out of range for {said}")
    if (np.diff(places) <= 0).any():
        raise TypeError("Indexing elements must be in increasing order")
    if (places == length).any():  # h5py lets HDF5 find this
        raise IndexError(f"Fancy indexing out of range for {said}")
    return np.ascontiguousarray(places)


def _as_list(item: Any) -> np.ndarray[Any, Any]:
    indices = item if isinstance(item, np.ndarray) else np.asarray(item)
    if indices.ndim != 1:
        if isinstance(item, np.ndarray):
            raise TypeError("Only 1D arrays allowed for fancy indexing")
        raise TypeError(f"Selection can't process {item!r}")
    is_empty = indices.size == 0 and not isinstance(item, np.ndarray)
    return indices.astype(np.intp) if is_empty else indices

"""Normalize what you write between the brackets of `array[...]`: NumPy's rules, but lists select axis by axis.

An integer drops its axis. A slice needs a positive step. A list or a boolean mask picks indices of one axis; several
lists pick the outer product of their indices, in the order given (like `ix_` in NumPy, `oindex` in xarray and Zarr).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from hyperslab._core import Hyperslab, Points

AxisIndices: TypeAlias = "tuple[int, int, int, int] | npt.NDArray[np.int64]"
Key: TypeAlias = Any  # int, slice, ellipsis, list, mask, Hyperslab, or a tuple of the first five


class NormalizedKey(NamedTuple):
    """A key, normalized for an array of one shape: the indices of each axis, and the shape of the result."""

    axes: tuple[AxisIndices, ...]
    full_shape: tuple[int, ...]
    shape: tuple[int, ...]
    is_element: bool
    points: Points | None = None  # then `axes` is a box around them

    @property
    def is_empty(self) -> bool:
        """Whether nothing is selected."""
        return 0 in self.full_shape


def normalize(key: Key, shape: Sequence[int]) -> NormalizedKey:
    """Normalize a key for an array of `shape`.

    Raises
    ------
    IndexError
        An index is outside the array, or there are more indices than axes.
    ValueError
        A slice has a step below 1, or a mask does not have the length of its axis.
    TypeError
        An item is none of these kinds.
    """
    if isinstance(key, Hyperslab):
        key.check_within(shape)
        blocks = tuple(zip(key.start, key.stride, key.count, key.block, strict=True))
        return NormalizedKey(blocks, key.shape, key.shape, is_element=False)
    items, has_ellipsis = _per_axis(key, len(shape))
    axes: list[AxisIndices] = []
    lengths: list[int] = []
    kept: list[int] = []  # filled in one pass, as normalizing takes longer than reading a cached element
    for axis, (item, length) in enumerate(zip(items, shape, strict=True)):
        indices, count, is_kept = _axis(axis, item, length)
        axes.append(indices)
        lengths.append(count)
        if is_kept:
            kept.append(count)
    return NormalizedKey(tuple(axes), tuple(lengths), tuple(kept), not kept and not has_ellipsis)


def of_points(points: Points, shape: Sequence[int]) -> NormalizedKey:
    """Normalize points for an array of `shape`: the result has one axis, with the points in their order.

    Raises
    ------
    IndexError
        A point is outside the array.
    ValueError
        The points do not have as many axes as the array.
    """
    points.check_within(shape)
    coordinates = points.coordinates
    starts = coordinates.min(axis=0) if len(coordinates) else np.zeros(len(shape), np.int64)
    counts = coordinates.max(axis=0) + 1 - starts if len(coordinates) else starts
    axes = tuple((int(start), 1, int(count), 1) for start, count in zip(starts, counts, strict=True))
    return NormalizedKey(axes, points.shape, points.shape, is_element=False, points=points)


def _per_axis(key: Key, ndim: int) -> tuple[Sequence[Any], bool]:
    items = list(key) if isinstance(key, tuple) else [key]
    positions = [position for position, item in enumerate(items) if item is ...]
    if not positions and len(items) == ndim:
        return items, False
    if len(positions) > 1:
        raise IndexError("the index has two ellipses: use at most one '...'")
    given = len(items) - len(positions)
    if given > ndim:
        raise IndexError(f"{given} indices for {ndim} axes: give at most one per axis")
    rest: list[Any] = [slice(None)] * (ndim - given)
    position = positions[0] if positions else len(items)
    return items[:position] + rest + items[position + len(positions) :], bool(positions)


def _axis(axis: int, item: Any, length: int) -> tuple[AxisIndices, int, bool]:
    """The indices of an axis, their number, and whether the axis is kept."""
    if isinstance(item, slice):
        return _slice(axis, item, length)
    if type(item) is int:  # checked first: the other checks take longer than reading an element
        return _element(axis, item, length)
    if item is None:
        raise TypeError(f"axis {axis}: None cannot add an axis here; add it to the result")
    if isinstance(item, bool | np.bool_):
        raise TypeError(f"axis {axis}: {item} is not an index; give a mask with the length of the axis")
    if isinstance(item, list | tuple | range | np.ndarray) and np.ndim(item) > 0:
        return _listed(axis, np.asarray(item), length)
    try:
        index = operator.index(item)
    except TypeError:
        message = f"axis {axis}: {item!r} is not an integer, a slice, an ellipsis or a list of indices"
        raise TypeError(message) from None
    return _element(axis, index, length)


def _element(axis: int, index: int, length: int) -> tuple[AxisIndices, int, bool]:
    if not -length <= index < length:
        raise IndexError(f"axis {axis}: index {index} is outside an array of length {length}")
    return (index % length, 1, 1, 1), 1, False


def _slice(axis: int, item: slice, length: int) -> tuple[AxisIndices, int, bool]:
    if item.step is not None and operator.index(item.step) < 1:
        raise ValueError(f"axis {axis}: step {item.step}; use a positive step and flip the result")
    start, stop, step = item.indices(length)
    count = len(range(start, stop, step))
    return (start if count else 0, step, count, 1), count, True


def _listed(axis: int, items: npt.NDArray[Any], length: int) -> tuple[AxisIndices, int, bool]:
    if items.ndim != 1:
        raise TypeError(f"axis {axis}: a list of indices must have one axis, not {items.ndim}")
    if items.dtype == bool:
        if len(items) != length:
            raise ValueError(f"axis {axis}: the mask has length {len(items)}, but the axis has length {length}")
        indices = np.flatnonzero(items).astype(np.int64)
    elif items.size == 0:
        indices = np.empty(0, np.int64)
    elif items.dtype.kind in "iu":
        outside = items[(items < -length) | (items >= length)] if length else items
        if outside.size:
            raise IndexError(f"axis {axis}: index {outside[0]} is outside an array of length {length}")
        indices = items.astype(np.int64)
        indices[indices < 0] += length
    else:
        raise TypeError(f"axis {axis}: a list of {items.dtype} is neither a list of integers nor a mask")
    return np.ascontiguousarray(indices), len(indices), True

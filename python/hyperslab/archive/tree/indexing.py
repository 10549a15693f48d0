"""Normalize what you write between the brackets of `array[...]`: NumPy's rules, but lists select axis by axis.

An integer drops its axis. A slice needs a positive step. A list or a boolean mask picks indices of one axis; several
lists pick the outer product of their indices, in the order given (like `ix_` in NumPy, `oindex` in xarray and Zarr).
A boolean mask of the array's shape picks elements, in C order.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from hyperslab._core import Hyperslab, Points

AxisIndices: TypeAlias = "tuple[int, int, int, int] | npt.NDArray[np.int64]"
Key: TypeAlias = Any  # int, slice, ellipsis, list, mask, Hyperslab, or a tuple of the first five
# A mask that picks many elements reads all around them if these are at most so many times as many. Points take longer
# for each element, but only touch the chunks that have one.
MOST_AROUND, FEW_POINTS = 16, 10_000


class NormalizedKey(NamedTuple):
    """A key, normalized for an array of one shape: the indices of each axis, and the shape of the result."""

    axes: tuple[AxisIndices, ...]
    full_shape: tuple[int, ...]
    shape: tuple[int, ...]
    is_element: bool
    points: Points | None = None  # then `axes` is a box around them
    mask: npt.NDArray[np.bool_] | None = None  # which of the elements of `axes`, of shape `full_shape`, are picked

    @property
    def around(self) -> NormalizedKey:
        """The same key without its mask: all elements around those that the mask picks."""
        return self._replace(shape=self.full_shape, mask=None)

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
        A slice has a step below 1, or a mask has neither the length of its axis nor the shape of the array.
    TypeError
        An item is none of these kinds.
    """
    if isinstance(key, Hyperslab):
        key.check_within(shape)
        blocks = tuple(zip(key.start, key.stride, key.count, key.block, strict=True))
        return NormalizedKey(blocks, key.shape, key.shape, is_element=False)
    mask = whole_mask(key, shape)
    if mask is not None:
        return of_mask(mask, shape)
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


def whole_mask(key: Key, shape: Sequence[int]) -> npt.NDArray[np.bool_] | None:
    """The mask of all elements of an array of `shape`, if the key is one; a mask of a single axis is none.

    Raises
    ------
    ValueError
        The mask has several axes, but not the shape of the array.
    """
    mask = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    if not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.ndim < 2:
        return None
    if mask.shape != tuple(shape):
        raise ValueError(f"the mask has the shape {mask.shape}, but the array has the shape {tuple(shape)}")
    return mask


def of_mask(mask: npt.NDArray[np.bool_], shape: Sequence[int]) -> NormalizedKey:
    """Normalize a mask of an array of `shape`: the result has one axis, with the elements in C order."""
    count = int(np.count_nonzero(mask))
    if not count:
        return NormalizedKey(((0, 1, 0, 1),) * mask.ndim, (0,) * mask.ndim, (0,), is_element=False)
    others = [tuple(other for other in range(mask.ndim) if other != axis) for axis in range(mask.ndim)]
    indices = [np.flatnonzero(mask.any(axis=axes)).astype(np.int64) for axes in others]
    lengths = tuple(map(len, indices))
    if count <= FEW_POINTS or math.prod(lengths) > MOST_AROUND * count:
        return of_points(Points(np.argwhere(mask)), shape)
    return NormalizedKey(tuple(map(_run, indices)), lengths, (count,), is_element=False, mask=mask[np.ix_(*indices)])


def of_count(count: int) -> NormalizedKey:
    """The key of elements that were picked already."""
    return NormalizedKey(((0, 1, count, 1),), (count,), (count,), is_element=False)


def _run(indices: npt.NDArray[np.int64]) -> AxisIndices:
    """Indices as one run if they follow each other, which takes no list."""
    first, count = int(indices[0]), len(indices)
    return (first, 1, count, 1) if int(indices[-1]) - first == count - 1 else indices


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

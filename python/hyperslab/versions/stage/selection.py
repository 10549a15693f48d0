"""The keys that select elements of a staged array: those of archive arrays, and masks of the array's shape."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hyperslab._core import Points
from hyperslab.archive.tree.indexing import Key, normalize, of_points, whole_mask


class Selected(NamedTuple):
    """A selection of an array of known shape.

    `boxes` holds (start, step, count) for each axis, or None if indices are listed. `indices` broadcast to
    `full_shape`, which is the shape with the axes that an int drops.
    """

    boxes: tuple[tuple[int, int, int], ...] | None
    axes: tuple[npt.NDArray[np.int64] | slice, ...]
    full_shape: tuple[int, ...]
    shape: tuple[int, ...]
    is_element: bool
    is_product: bool

    @property
    def indices(self) -> tuple[npt.NDArray[np.int64], ...]:
        """The indices along each axis, shaped so that they broadcast to the selection."""
        if not self.is_product:
            return tuple(axis for axis in self.axes if not isinstance(axis, slice))
        return np.ix_(*[_listed(axis) for axis in self.axes])

    @property
    def is_empty(self) -> bool:
        """Whether nothing is selected."""
        return 0 in self.full_shape

    @property
    def numpy_key(self) -> tuple[Any, ...]:
        """The key that selects the same elements of a NumPy array, with all axes kept."""
        return self.axes if self.boxes is not None else self.indices


def selected(key: Key, shape: tuple[int, ...]) -> Selected:
    """What a key means in an array of `shape`.

    Raises
    ------
    IndexError
        An index is outside the array.
    ValueError
        A step is below 1, or a mask has another shape.
    TypeError
        It is not a key.
    """
    mask = whole_mask(key, shape)
    if mask is not None:
        coordinates = tuple(axis.astype(np.int64) for axis in np.nonzero(mask))
        point_shape = (len(coordinates[0]),)
        return Selected(None, coordinates, point_shape, point_shape, is_element=False, is_product=False)
    if isinstance(key, Points):
        index = of_points(key, shape)
        coordinates = tuple(np.ascontiguousarray(axis) for axis in key.coordinates.T)
        return Selected(None, coordinates, index.full_shape, index.shape, is_element=False, is_product=False)
    index = normalize(key, shape)
    boxes: list[tuple[int, int, int]] = []
    axes: list[npt.NDArray[np.int64] | slice] = []
    for indices in index.axes:
        if isinstance(indices, np.ndarray):
            axes.append(indices)
            continue
        start, stride, count, block = (int(number) for number in indices)
        if block != 1 and count != 1 and stride != block:
            positions: npt.NDArray[np.int64] = np.arange(count)[:, None] * stride + np.arange(block) + start
            axes.append(positions.reshape(-1))
            continue
        box = (start, stride, count) if block == 1 else (start, 1, count * block)
        boxes.append(box)
        axes.append(slice(box[0], box[0] + max(0, box[2] - 1) * box[1] + (box[2] > 0), box[1]))
    all_boxes = tuple(boxes) if len(boxes) == len(axes) else None
    return Selected(all_boxes, tuple(axes), index.full_shape, index.shape, index.is_element, is_product=True)


def spread(value: Any, selection: Selected, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A value as an array with all axes of the selection, including those that an int drops.

    Raises
    ------
    ValueError
        The value does not fit the selection.
    """
    array = np.asarray(value, dtype)
    while array.ndim > len(selection.shape) and array.shape[0] == 1:
        array = array[0]
    return np.broadcast_to(array, selection.shape).reshape(selection.full_shape)


def _listed(axis: npt.NDArray[np.int64] | slice) -> npt.NDArray[np.int64]:
    return np.arange(axis.start, axis.stop, axis.step) if isinstance(axis, slice) else axis

"""Dataspaces: the shape of a dataset and, for mappings of virtual datasets, a selection of its elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hyperslab.h5.references import ALL, HYPERSLAB, NONE, POINTS

UNLIMITED = (1 << 64) - 1
SCALAR, SIMPLE, NULL = 0, 1, 2
KINDS = {"all": ALL, "none": NONE, "regular": HYPERSLAB, "boxes": HYPERSLAB, "points": POINTS}


class SpaceID:
    """A dataspace.

    Parameters
    ----------
    shape : tuple of int or None
        The length of each axis; None for a null dataspace.
    max_shape : tuple of (int or None), or None
        The maximum length of each axis; None for an unlimited axis.
    selection : tuple
        A selection as `_core.StoredArray.virtual_sources` describes it; by default all elements.
    """

    def __init__(
        self,
        shape: tuple[int, ...] | None,
        max_shape: tuple[int | None, ...] | None,
        selection: tuple[Any, ...] = ("all",),
    ) -> None:
        self._shape = shape
        self._max_shape = max_shape
        self._selection = selection

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The length of each axis; None for a null dataspace."""
        return self._shape

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self._shape or ())

    def get_simple_extent_ndims(self) -> int:
        """Return the number of axes."""
        return self.rank

    def get_simple_extent_dims(self, maxdims: bool = False) -> tuple[int, ...] | None:
        """Return the length of each axis; with `maxdims` the maximum length, `UNLIMITED` for an unlimited axis."""
        if self._shape is None or not maxdims or self._max_shape is None:
            return self._shape
        return tuple(UNLIMITED if length is None else length for length in self._max_shape)

    def get_simple_extent_type(self) -> int:
        """Return HDF5's number of the class: 0 scalar, 1 simple (with axes), 2 null."""
        if self._shape is None:
            return NULL
        return SIMPLE if self._shape else SCALAR

    def get_simple_extent_npoints(self) -> int:
        """Return the number of elements."""
        return 0 if self._shape is None else math.prod(self._shape)

    def get_select_type(self) -> int:
        """Return HDF5's number of the kind of selection: 0 none, 1 points, 2 hyperslab, 3 all."""
        return KINDS[self._selection[0]]

    def is_regular_hyperslab(self) -> bool:
        """Whether the selection is one start, stride, count and block on each axis."""
        return bool(self._selection[0] == "regular")

    def get_regular_hyperslab(self) -> tuple[tuple[int, ...], ...]:
        """Return start, stride, count and block of the selection, each with one number for each axis.

        Raises
        ------
        TypeError
            The selection is not a regular hyperslab.
        """
        if not self.is_regular_hyperslab():
            raise TypeError("the selection is not a regular hyperslab")
        columns = zip(*self._selection[1], strict=True)
        return tuple(tuple(UNLIMITED if one is None else one for one in column) for column in columns)

    def get_select_bounds(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Return the first and the last index of the bounding box of the selection; None if nothing is selected."""
        kind = self._selection[0]
        if kind == "all":
            shape = self._shape or ()
            return (0,) * len(shape), tuple(length - 1 for length in shape)
        if kind == "regular":
            axes = self._selection[1]
            last = tuple(start + stride * ((count or 1) - 1) + (block or 1) - 1 for start, stride, count, block in axes)
            return tuple(start for start, _, _, _ in axes), last
        if kind == "boxes":
            starts, stops = (np.array(column) for column in zip(*self._selection[1], strict=True))
            return tuple(starts.min(0).tolist()), tuple((stops.max(0) - 1).tolist())
        if kind == "points":
            points = np.array(self._selection[1])
            return tuple(points.min(0).tolist()), tuple(points.max(0).tolist())
        return None

    def get_select_npoints(self) -> int:
        """Return the number of selected elements."""
        kind = self._selection[0]
        if kind == "regular":
            return int(
                np.prod([(count or 1) * (block or 1) for _, _, count, block in self._selection[1]], dtype=object)
            )
        if kind == "boxes":
            return sum(math.prod(np.subtract(stop, start)) for start, stop in self._selection[1])
        if kind == "points":
            return len(self._selection[1])
        return 0 if kind == "none" else self.get_simple_extent_npoints()

"""References to objects and to regions of datasets, as in h5py. Only the file of a reference can resolve it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hyperslab.errors import DamagedFile, Unsupported

OBJECT, REGION = 0, 1
NONE, POINTS, HYPERSLAB, ALL = 0, 1, 2, 3  # HDF5's numbers of the kinds of selections
UNLIMITED = (1 << 64) - 1
MOST_BLOCKS = 1 << 24


class Reference:
    """A reference to an object: `file[reference]` is the object. A null reference is false.

    Parameters
    ----------
    address : int
        The offset of the object's header in its file; 0 for a null reference.
    """

    typecode = OBJECT
    typesize = 8

    def __init__(self, address: int = 0) -> None:
        self._address = address

    @property
    def address(self) -> int:
        """The offset of the object's header in its file; 0 for a null reference."""
        return self._address

    def __bool__(self) -> bool:
        return self._address not in (0, UNLIMITED)

    def __repr__(self) -> str:
        return f"<HDF5 object reference{'' if self else ' (null)'}>"


class RegionReference(Reference):
    """A reference to a region of a dataset: `dataset[reference]` reads it.

    Parameters
    ----------
    address : int
        The offset of the dataset's header in its file; 0 for a null reference.
    region : Region or None
        The selected elements.
    """

    typecode = REGION
    typesize = 12

    def __init__(self, address: int = 0, region: Region | None = None) -> None:
        super().__init__(address)
        self._region = region

    @property
    def region(self) -> Region | None:
        """The selected elements."""
        return self._region

    def __repr__(self) -> str:
        return f"<HDF5 region reference{'' if self else ' (null'}>"


class Region(NamedTuple):
    """A selection of elements of a dataset: all, none, points, a regular hyperslab, or a list of boxes."""

    kind: int
    points: np.ndarray[Any, Any] | None = None  # shape (points, axes)
    axes: tuple[tuple[int, int, int, int], ...] | None = None  # start, stride, count, block of each axis
    boxes: np.ndarray[Any, Any] | None = None  # first and last index of each box, shape (boxes, 2, axes)


def region_reference(stored: bytes, offset_nbytes: int = 8) -> RegionReference:
    """Parse a region reference as stored in a heap: an address, and a selection that HDF5 has serialized.

    Parameters
    ----------
    stored : bytes
        The value from the heap.
    offset_nbytes : int
        The width of addresses in the file, in bytes.

    Raises
    ------
    DamagedFile
        The selection is truncated or contradicts itself.
    Unsupported
        The selection is of an unknown kind.
    """
    if not stored:
        return RegionReference()
    address = int.from_bytes(stored[:offset_nbytes], "little")
    try:
        return RegionReference(address, region(stored[offset_nbytes:]))
    except (struct.error, ValueError, IndexError) as error:
        raise DamagedFile(f"the region reference to the object at address {address} is damaged: {error}") from error


def region(stored: bytes) -> Region:
    """Parse a selection that HDF5 has serialized (`H5S_SELECT_SERIALIZE`)."""
    kind, version = struct.unpack_from("<II", stored)
    if kind in (NONE, ALL):
        return Region(kind)
    if kind == POINTS:
        return _points(stored, version)
    if kind == HYPERSLAB:
        return _hyperslab(stored, version)
    raise Unsupported(f"a region reference has a selection of kind {kind}, which hyperslab does not know")


def _numbers(stored: bytes, start: int, count: int, width: int) -> np.ndarray[Any, Any]:
    if count > MOST_BLOCKS or start + count * width > len(stored):
        raise ValueError(f"{count} numbers of {width} bytes in {len(stored)} bytes")
    return np.frombuffer(stored, f"<u{width}", count, start).astype(np.uint64)


def _points(stored: bytes, version: int) -> Region:
    if version == 1:
        _, _, ndim, count = struct.unpack_from("<IIII", stored, 8)
        width, start = 4, 24
    else:
        width = stored[8]
        (ndim,) = struct.unpack_from("<I", stored, 9)
        count = int.from_bytes(stored[13 : 13 + width], "little")
        start = 13 + width
    return Region(POINTS, points=_numbers(stored, start, ndim * count, width).reshape(count, ndim))


def _hyperslab(stored: bytes, version: int) -> Region:
    if version == 1:
        _, _, ndim, count = struct.unpack_from("<IIII", stored, 8)
        return _boxes(_numbers(stored, 24, 2 * ndim * count, 4).reshape(count, 2, ndim))
    if version == 2:
        flags, _, ndim = struct.unpack_from("<BII", stored, 8)
        width, start = 8, 17
    else:
        flags, width, ndim = struct.unpack_from("<BBI", stored, 8)
        start = 14
    if flags & 1:
        axes_stored = _numbers(stored, start, 4 * ndim, width).reshape(ndim, 4)
        return Region(HYPERSLAB, axes=tuple(tuple(map(int, axis)) for axis in axes_stored))  # type: ignore[misc]
    count = int.from_bytes(stored[start : start + width], "little")
    return _boxes(_numbers(stored, start + width, 2 * ndim * count, width).reshape(count, 2, ndim))


def _boxes(boxes: np.ndarray[Any, Any]) -> Region:
    if len(boxes) == 1:
        first, last = boxes[0]
        return Region(HYPERSLAB, axes=tuple((int(a), 1, 1, int(b - a + 1)) for a, b in zip(first, last, strict=True)))
    return Region(HYPERSLAB, boxes=boxes)


def coordinates(region: Region, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return the index of each element of a region, in the order in which HDF5 reads them.

    Returns
    -------
    np.ndarray
        int64, shape (elements, axes).
    """
    ndim = len(shape)
    if region.points is not None:
        return region.points.astype(np.int64)
    if region.boxes is not None:
        mask = np.zeros(tuple(shape), bool)
        for first, last in region.boxes.astype(np.int64):
            mask[tuple(slice(int(a), int(b) + 1) for a, b in zip(first, last, strict=True))] = True
        return np.argwhere(mask)
    if region.axes is not None:
        grid = np.meshgrid(*(axis_indices(axis) for axis in region.axes), indexing="ij")
        return np.stack(grid, -1).reshape(-1, ndim)
    return np.empty((0, ndim), np.int64)


def axis_indices(axis: tuple[int, int, int, int]) -> np.ndarray[Any, Any]:
    """Return the indices that start, stride, count and block select on an axis."""
    start, stride, count, block = axis
    return (start + stride * np.arange(count)[:, None] + np.arange(block)).reshape(-1)


def region_shape(region: Region, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of the array that h5py returns for a region: that of a box, otherwise one axis."""
    if region.kind == ALL:
        return tuple(shape)
    if region.kind == NONE:
        return (0,) * len(shape)
    if region.axes is not None:
        return tuple(count * block for _, _, count, block in region.axes)
    places = coordinates(region, shape)
    if region.points is None and len(places):
        lengths = tuple(len(np.unique(places[:, axis])) for axis in range(len(shape)))
        if int(np.prod(lengths)) == len(places):
            return lengths
    return (len(places),)

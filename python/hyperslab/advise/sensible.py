"""Chunk shapes that are always worth a look: of the array's proportions, whole rows, whole columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from hyperslab.chunk_grid import ceil_div
from hyperslab.model.libraries import Layout

MIB = 1 << 20
# The library that reads a format; our own engine reads all of them.
LIBRARY_OF = {"hdf5": "hdf5", "zarr": "zarr", "netcdf3": "flat", "fits": "flat"}
OURS = "hyperslab"


def sensible_layouts(shape: Sequence[int], width: int, today: Layout) -> list[Layout]:
    """Three other layouts: chunks of the array's proportions, whole rows, whole columns. One axis: three lengths."""
    if len(shape) == 1:
        shapes = [_balanced(shape, nbytes // width) for nbytes in (MIB // 16, MIB, 16 * MIB)]
    else:
        count = max(1, MIB // width)
        shapes = [_balanced(shape, count), _filled(shape, count, reversed(range(len(shape)))),
                  _filled(shape, count, range(len(shape)))]  # fmt: skip
    known = {today.chunk_shape} if not today.contiguous else set()
    cut = [chunk for chunk in dict.fromkeys(shapes) if chunk not in known]
    return [Layout(chunk, None, today.ratio, today.codec) for chunk in cut]


def _balanced(shape: Sequence[int], count: int) -> tuple[int, ...]:
    """A chunk of about `count` elements that cuts every axis into as many parts, as far as it is long enough."""
    parts = 1.0
    while True:
        chunk = tuple(max(1, ceil_div(length, max(1, int(parts)))) for length in shape)
        if prod(chunk) <= count or max(chunk) == 1:
            return chunk
        parts = max(parts + 1, parts * 1.05)


def _filled(shape: Sequence[int], count: int, axes: Iterable[int]) -> tuple[int, ...]:
    """A chunk of at most `count` elements that is as long as the array along the first of `axes`, then the next."""
    chunk, left = [1] * len(shape), max(1, count)
    for axis in axes:
        chunk[axis] = min(shape[axis], left)
        left //= chunk[axis]
    return tuple(chunk)

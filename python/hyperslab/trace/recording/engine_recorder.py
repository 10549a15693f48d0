"""Records what our own engine reads."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

from .hooks import location, replace
from .log import FAILED, NOTHING, READ, Log, clock
from .selecting import Encoded, hyperslab, lists, points, slices


def put_into(module: Any, log: Log) -> Callable[[], None]:
    """Replace a method of `hyperslab.archive.Array`. Call what it returns to restore it."""
    kind = module.Array
    original = kind.read_index

    def read_index(self: Any, index: Any, out: Any = None, threads: int | None = None) -> Any:
        if getattr(log.inside, "depth", 0):
            return original(self, index, out, threads)
        log.enter()  # h5py may read for us
        start, flags, value = clock(), FAILED, None
        try:
            value = original(self, index, out, threads)
            flags = 0
            return value
        finally:
            stop = clock()
            log.leave()
            with contextlib.suppress(Exception):  # what cannot be described is not recorded; the program goes on
                selection, size = selected(index, self.shape)
                described = _described(self)
                memory_type = log.dtype_name(getattr(value, "dtype", None))
                nbytes = size * described["element_nbytes"]
                log.access((start, stop), log.array(described), READ, selection, nbytes, memory_type, flags)

    return replace(kind, read_index=read_index)


def selected(index: Any, shape: tuple[int, ...]) -> tuple[Encoded, int]:
    """The selection of a normalized key, and its number of elements."""
    size = math.prod(index.full_shape)
    if size == 0:
        return (NOTHING, []), 0
    if index.points is not None:
        return points(index.points.coordinates), size
    if all(isinstance(axis, tuple) for axis in index.axes):
        if all(axis[3] == 1 for axis in index.axes):
            return slices([axis[:3] for axis in index.axes], shape)
        return hyperslab(index.axes), size
    if all(not isinstance(axis, tuple) or axis[3] == 1 for axis in index.axes):
        return lists([axis[:3] if isinstance(axis, tuple) else axis.tolist() for axis in index.axes])
    return lists([_indices(axis) if isinstance(axis, tuple) else axis.tolist() for axis in index.axes])


def _indices(axis: tuple[int, int, int, int]) -> list[int]:
    start, stride, count, block = axis
    return [start + k * stride + j for k in range(count) for j in range(block)]


def _described(stored: Any) -> dict[str, Any]:
    dtype, chunks = stored.dtype, stored.chunks
    return {
        "library": "hyperslab", "file": location(stored.filename),
        "array": "/" + stored.name.strip("/"),
        "shape": list(stored.shape), "chunks": None if chunks is None else list(chunks),
        "dtype": dtype.str if dtype.names is None and dtype.kind != "O" else str(dtype),
        "element_nbytes": dtype.itemsize, "filters": list(stored.codecs),
        "layout": "contiguous" if chunks is None else "chunked", "stored_nbytes": stored.stored_nbytes,
    }  # fmt: skip

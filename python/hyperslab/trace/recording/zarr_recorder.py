"""Records what arrays of zarr-python 3 read and write. The thread is the one that runs zarr's event loop."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from .hooks import replace
from .log import FAILED, READ, REOPENED, WRITE, Log, clock
from .selecting import Encoded, lists, points, slices


def put_into(module: Any, log: Log) -> Callable[[], None]:
    """Replace two methods of `zarr.core.array.AsyncArray`. Call what it returns to restore them."""
    kind = module.AsyncArray
    get, put = kind._get_selection, kind._set_selection

    async def _get_selection(self: Any, indexer: Any, *rest: Any, **named: Any) -> Any:
        start, flags, value = clock(), FAILED, None
        try:
            value = await get(self, indexer, *rest, **named)
            flags = 0
            return value
        finally:
            _note(log, self, indexer, READ, (start, clock()), getattr(value, "dtype", None), flags)

    async def _set_selection(self: Any, indexer: Any, value: Any, *rest: Any, **named: Any) -> None:
        start, flags = clock(), FAILED
        try:
            await put(self, indexer, value, *rest, **named)
            flags = 0
        finally:
            _note(log, self, indexer, WRITE, (start, clock()), getattr(value, "dtype", None), flags)

    return replace(kind, _get_selection=_get_selection, _set_selection=_set_selection)


class Openings:
    """The arrays that zarr-python has made: each of them has read the array's metadata. It caches nothing else."""

    def __init__(self) -> None:
        self._made: dict[int, weakref.ref[Any]] = {}
        self._last: weakref.WeakKeyDictionary[Log, set[tuple[str, str]]] = weakref.WeakKeyDictionary()

    def accessed(self, stored: Any, log: Log, described: dict[str, Any]) -> int:
        """The program accesses an array. Returns the flags of `log.py`."""
        before, name = self._last.setdefault(log, set()), (described["file"], described["array"])
        known = self._made.get(id(stored))
        if known is not None and known() is stored and name in before:
            return 0
        number = id(stored)
        self._made[number] = weakref.ref(stored, lambda _: self._made.pop(number, None))
        is_again = name in before
        before.add(name)
        return REOPENED if is_again else 0


OPENINGS = Openings()


def _note(log: Log, stored: Any, indexer: Any, operation: int, times: tuple[int, int], dtype: Any, flags: int) -> None:
    with contextlib.suppress(Exception):  # what cannot be described is not recorded; the program goes on
        described = _described(stored)
        flags |= OPENINGS.accessed(stored, log, described)
        note(log, described, selected(indexer, tuple(stored.shape)), operation, times, dtype, flags)


def note(
    log: Log,
    described: dict[str, Any],
    selection_and_size: tuple[Encoded, int],
    operation: int,
    times: tuple[int, int],
    dtype: Any,
    flags: int,
) -> None:
    """Write an access to an array of zarr-python."""
    selection, size = selection_and_size
    nbytes = size * described["element_nbytes"]
    log.access(times, log.array(described), operation, selection, nbytes, log.dtype_name(dtype), flags)


def selected(indexer: Any, shape: tuple[int, ...]) -> tuple[Encoded, int]:
    """The selection of an indexer, and its number of elements."""
    if hasattr(indexer, "dim_indexers"):
        axes = [_axis(one) for one in indexer.dim_indexers]
        if all(isinstance(axis, tuple) for axis in axes):
            return slices(axes, shape)  # type: ignore[arg-type] # they are tuples
        return lists(axes)
    if not shape:
        return slices([], shape)
    coordinates = np.stack(np.broadcast_arrays(*(np.asarray(one).ravel() for one in indexer.selection)), axis=-1)
    return points(coordinates), len(coordinates)


def _axis(one: Any) -> tuple[int, int, int] | list[int]:
    if hasattr(one, "start"):
        return int(one.start), int(one.step), max(0, -((one.start - one.stop) // one.step))
    if isinstance(one.dim_sel, np.ndarray):
        listed: list[int] = (np.flatnonzero(one.dim_sel) if one.dim_sel.dtype == bool else one.dim_sel).tolist()
        return listed
    return int(one.dim_sel), 1, 1


def _described(stored: Any) -> dict[str, Any]:
    metadata = stored.metadata
    dtype = np.dtype(stored.dtype) if not isinstance(stored.dtype, np.dtype) else stored.dtype
    shards = getattr(stored, "shards", None)
    codecs = getattr(metadata, "inner_codecs", None) or getattr(metadata, "codecs", None)
    if codecs is None:  # version 2
        codecs = [*(metadata.filters or ()), *([metadata.compressor] if metadata.compressor is not None else [])]
    path = stored.store_path
    return {
        "library": "zarr", "file": _location(path.store), "array": "/" + path.path.strip("/"),
        "shape": list(stored.shape),
        "chunks": list(stored.chunks), "shards": None if shards is None else list(shards),
        "dtype": dtype.str if dtype.names is None and dtype.kind != "O" else str(dtype),
        "element_nbytes": dtype.itemsize, "filters": [codec_name(one) for one in codecs], "layout": "chunked",
    }  # fmt: skip


def _location(store: Any) -> str:
    root = getattr(store, "root", None)
    return str(store) if root is None else os.path.abspath(str(root))


def codec_name(codec: Any) -> str:
    """The name of a codec, of zarr-python or of numcodecs."""
    named = getattr(codec, "codec_id", None)
    return str(named) if named else type(codec).__name__.removesuffix("Codec").lower()

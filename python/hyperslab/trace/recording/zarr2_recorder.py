"""Records what arrays of zarr-python 2 read and write."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

from .hooks import replace
from .log import FAILED, READ, WRITE, Log, clock
from .selecting import Encoded, slices
from .zarr_recorder import OPENINGS, codec_name, note, selected


def put_into(module: Any, log: Log) -> Callable[[], None]:
    """Replace methods of `zarr.core.Array`. Call what it returns to restore them.

    In zarr-python 3, `zarr.core` is a package without that class.
    """
    kind = getattr(module, "Array", None)
    if kind is None:
        return lambda: None

    def reading(original: Any) -> Any:
        def read(self: Any, *given: Any, **named: Any) -> Any:
            start, flags, value = clock(), FAILED, None
            try:
                value = original(self, *given, **named)
                flags = 0
                return value
            finally:
                selection = _given(given, named, 0, "indexer", "selection")
                _note(log, self, selection, READ, (start, clock()), getattr(value, "dtype", None), flags)

        return read

    def writing(original: Any) -> Any:
        def write(self: Any, *given: Any, **named: Any) -> None:
            start, flags = clock(), FAILED
            try:
                original(self, *given, **named)
                flags = 0
            finally:
                selection = _given(given, named, 0, "indexer", "selection")
                dtype = getattr(_given(given, named, 1, "value"), "dtype", None)
                _note(log, self, selection, WRITE, (start, clock()), dtype, flags)

        return write

    # Arrays without axes have methods of their own; all other reads and writes end in the first two.
    return replace(
        kind,
        _get_selection=reading(kind._get_selection),
        _set_selection=writing(kind._set_selection),
        _get_basic_selection_zd=reading(kind._get_basic_selection_zd),
        _set_basic_selection_zd=writing(kind._set_basic_selection_zd),
    )


def _given(given: tuple[Any, ...], named: dict[str, Any], place: int, *names: str) -> Any:
    """An argument, by its place or by one of its names."""
    if place < len(given):
        return given[place]
    return next((named[name] for name in names if name in named), None)


def _note(log: Log, stored: Any, indexer: Any, operation: int, times: tuple[int, int], dtype: Any, flags: int) -> None:
    with contextlib.suppress(Exception):  # what cannot be described is not recorded; the program goes on
        described = _described(stored)
        flags |= OPENINGS.accessed(stored, log, described)
        note(log, described, _selected(indexer, tuple(stored.shape)), operation, times, dtype, flags)


def _selected(indexer: Any, shape: tuple[int, ...]) -> tuple[Encoded, int]:
    return selected(indexer, shape) if shape else slices([], shape)


def _described(stored: Any) -> dict[str, Any]:
    codecs = [*(stored.filters or ()), *([stored.compressor] if stored.compressor is not None else [])]
    root = getattr(stored.chunk_store, "path", None)
    dtype = stored.dtype
    return {
        "library": "zarr", "file": str(stored.chunk_store) if root is None else os.path.abspath(str(root)),
        "array": "/" + (stored.path or "").strip("/"),
        "shape": list(stored.shape), "chunks": list(stored.chunks),
        "dtype": dtype.str if dtype.names is None and dtype.kind != "O" else str(dtype),
        "element_nbytes": dtype.itemsize, "filters": [codec_name(one) for one in codecs], "layout": "chunked",
    }  # fmt: skip

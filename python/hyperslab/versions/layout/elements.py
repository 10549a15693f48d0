"""Stored chunks as elements in memory, where text of any length is `str`."""

from __future__ import annotations

from typing import Any

import numpy as np

from hyperslab.archive.array import Array as ArchiveArray
from hyperslab.versions.layout.names import Array
from hyperslab.versions.layout.slots import Slots


class ChunkLoader:
    """Reads the stored chunks in the given slots in one call."""

    def __init__(self, raw: ArchiveArray, chunk_shape: tuple[int, ...]) -> None:
        self._raw = raw
        self._chunk_shape = chunk_shape

    def __call__(self, slots: Slots) -> Array:
        """The chunks, stacked along a new first axis."""
        length = self._chunk_shape[0]
        first, last = int(slots[0]), int(slots[-1]) + 1
        if len(slots) == last - first and (np.diff(slots) == 1).all():
            read = np.asarray(self._raw[first * length : last * length])
        else:
            rows = (slots[:, None] * length + np.arange(length)).reshape(-1)
            read = np.asarray(self._raw[rows])
        chunks: Array = as_elements(read, self._raw.dtype).reshape(len(slots), *self._chunk_shape)
        return chunks


def fill_element(dtype: np.dtype[Any], stored: Any) -> Any:
    """The element that stands where nothing was written.

    Raises
    ------
    ValueError
        The fill value of text of any length is not empty.
    """
    if dtype.hasobject:
        if stored not in (None, 0, "", b""):
            raise ValueError(f"the fill value of text of any length must be empty: {stored!r} is not")
        return ""
    return np.zeros((), dtype)[()] if stored is None else stored


def as_elements(value: Any, dtype: np.dtype[Any]) -> Any:
    """A value as it is kept in memory: text of any length is `str`, or bytes if it is not UTF-8."""
    if not dtype.hasobject:
        return value
    array = np.asarray(value, None if np.asarray(value).dtype.kind in "OTUS" else object).astype(object)
    flat = array.reshape(-1)
    for position, one in enumerate(flat):
        if not isinstance(one, str):
            flat[position] = _text(one)
    return flat.reshape(array.shape)


def _text(one: Any) -> str | bytes:
    if not isinstance(one, bytes):
        raise TypeError(f"{one!r} is not text")
    try:
        return one.decode()
    except UnicodeDecodeError:
        return one

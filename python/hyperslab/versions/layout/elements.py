"""Stored chunks as elements in memory, where text of variable length is `str`."""

from __future__ import annotations

from typing import Any

import numpy as np

from hyperslab.archive.tree.array import Array as ArchiveArray
from hyperslab.versions.layout.names import Array, text_bytes
from hyperslab.versions.layout.padding import element_bytes
from hyperslab.versions.layout.slots import Slots


def read_chunks(raw: ArchiveArray, chunk_shape: tuple[int, ...], slots: Slots) -> Array:
    """Stored chunks by their slots, stacked along a new first axis."""
    length, dtype = chunk_shape[0], raw.dtype
    shape = (len(slots), *chunk_shape, *dtype.shape)
    if not len(slots):
        return np.empty(shape, dtype.base)
    first, last = int(slots[0]), int(slots[-1]) + 1
    if len(slots) == last - first and (np.diff(slots) == 1).all():
        return np.asarray(raw[first * length : last * length]).reshape(shape)
    return np.asarray(raw[(slots[:, None] * length + np.arange(length)).reshape(-1)]).reshape(shape)


def fill_element(dtype: np.dtype[Any], stored: Any) -> Any:
    """The element that stands where nothing was written.

    Raises
    ------
    ValueError
        The fill value of text of variable length is not empty.
    """
    if dtype.hasobject:
        if stored not in (None, 0, "", b""):
            raise ValueError(f"the fill value of text of variable length must be empty: {stored!r} is not")
        return ""
    return np.zeros((), dtype)[()] if stored is None else stored


def as_new_elements(value: Any, dtype: np.dtype[Any]) -> Any:
    """A value that somebody assigns, as it is kept in memory.

    Raises
    ------
    TypeError
        It is not text, where the elements are.
    ValueError
        HDF5 cannot store the text.
    """
    elements = as_elements(value, dtype)
    for one in elements.reshape(-1) if dtype.hasobject else ():
        if ("\0" if isinstance(one, str) else b"\0") in one:
            raise ValueError(f"{one!r} has a NUL in it, which HDF5 cannot store in text")
    return elements


def as_elements(value: Any, dtype: np.dtype[Any]) -> Any:
    """A value as it is kept in memory: text of variable length is `str`, or bytes if it is not UTF-8."""
    if not dtype.hasobject:
        return value
    array = np.asarray(value, None if np.asarray(value).dtype.kind in "OTUS" else object).astype(object)
    flat = array.reshape(-1)
    for position, one in enumerate(flat):
        flat[position] = _text(one)
    return flat.reshape(array.shape)


def same_value(one: Any, other: Any) -> bool:
    """Whether two attribute values are equal bit by bit, including their dtypes; None means that there is none."""
    if one is other or one is None or other is None:
        return one is other
    left, right = np.asarray(one), np.asarray(other)
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if not left.dtype.hasobject:
        return element_bytes(left, left.dtype) == element_bytes(right, right.dtype)
    if left.dtype.names is not None:
        return all(same_value(left[name], right[name]) for name in left.dtype.names)
    pairs = zip(left.reshape(-1).tolist(), right.reshape(-1).tolist(), strict=True)
    return all(same_value(*pair) if isinstance(pair[0], np.ndarray) else pair[0] == pair[1] for pair in pairs)


def _text(one: Any) -> str | bytes:
    """An element of text as it is kept in memory.

    Raises
    ------
    TypeError
        It is not text.
    ValueError
        HDF5 cannot store it.
    """
    if isinstance(one, str):
        if one.isascii():
            return one
        try:
            return text_bytes(one).decode()
        except UnicodeDecodeError:
            return text_bytes(one)
        except UnicodeEncodeError:
            raise ValueError(f"{one!r} cannot be stored as UTF-8, because it has surrogates in it") from None
    if not isinstance(one, bytes):
        raise TypeError(f"{one!r} is not text")
    try:
        return one.decode()
    except UnicodeDecodeError:
        return one

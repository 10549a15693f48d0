"""Bytes of elements that mean nothing: those that fill a long double, and the gaps of a compound.

Whoever copies such an element may leave anything in them, so equal elements can differ there.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

LONG_DOUBLE_NBYTES = 10 if np.finfo(np.longdouble).nmant == 63 else np.dtype(np.longdouble).itemsize
IS_BIG = sys.byteorder == "big"


@cache
def _meaning(dtype: np.dtype[Any]) -> npt.NDArray[np.bool_] | None:
    """Which bytes of an element mean something; None if all do."""
    mask = np.ones(dtype.itemsize, bool)
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        inner = _meaning(base)
        mask = mask if inner is None else np.tile(inner, int(np.prod(shape)))
    elif dtype.fields is not None:
        mask[:] = False
        for kind, offset, *_ in dtype.fields.values():
            inner = _meaning(kind)
            mask[offset : offset + kind.itemsize] |= True if inner is None else inner
    elif dtype.kind in "fc" and dtype.char in "gG":
        part = np.arange(dtype.itemsize) % np.dtype(np.longdouble).itemsize
        is_big = dtype.byteorder == ">" or (dtype.byteorder == "=" and IS_BIG)
        first = np.dtype(np.longdouble).itemsize - LONG_DOUBLE_NBYTES if is_big else 0
        mask = (part >= first) & (part < first + LONG_DOUBLE_NBYTES)
    return None if mask.all() else mask


def has_padding(dtype: np.dtype[Any]) -> bool:
    """Whether some bytes of each element mean nothing."""
    return not dtype.hasobject and _meaning(dtype) is not None


def without_fields(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same elements as plain bytes. NumPy copies a compound field by field, and leaves anything in the gaps."""
    if array.dtype.fields is None or array.dtype.hasobject:
        return array
    return array.view(np.dtype((np.void, array.dtype.itemsize)))


def cleared(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same elements, in C order, with zeros in the bytes that mean nothing; the array itself if all mean something.

    Two copies of an element are then equal byte by byte, and have one hash, whoever copied them.
    """
    mask = None if array.dtype.hasobject else _meaning(array.dtype)
    if mask is None or not array.size:
        return array
    stored = np.ascontiguousarray(without_fields(array)).reshape(-1).view(np.uint8).reshape(-1, len(mask))
    return (stored * mask).reshape(-1).view(array.dtype).reshape(array.shape)


def filled(shape: tuple[int, ...], fill: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """An array of one element, with zeros in the bytes that mean nothing."""
    return cleared(np.full(shape, fill, dtype))


def meaningful(stored: bytes, dtype: np.dtype[Any]) -> bytes:
    """The bytes of elements, with zeros where they mean nothing."""
    mask = None if dtype.hasobject else _meaning(dtype)
    if mask is None or not stored or len(stored) % len(mask):
        return stored
    return bytes((np.frombuffer(stored, np.uint8).reshape(-1, len(mask)) * mask).tobytes())


def element_bytes(elements: Any, dtype: np.dtype[Any]) -> bytes:
    """Elements as the bytes of a dtype, with zeros where they mean nothing."""
    return meaningful(np.asarray(elements, dtype).tobytes(), dtype)


def as_stored(element: Any, dtype: np.dtype[Any]) -> Any:
    """An element as an array without axes, with zeros in the bytes that mean nothing."""
    array = np.asarray(element, dtype)
    if not has_padding(dtype):
        return array
    return np.frombuffer(element_bytes(array, dtype), dtype).reshape(array.shape)

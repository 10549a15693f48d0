"""Elements as h5py gives them, with text of variable length as bytes."""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np

from hyperslab.versions.layout.names import text_bytes


def as_h5py(read: Any, dtype: np.dtype[Any]) -> Any:
    """Elements with text as bytes."""
    if isinstance(read, str):
        return text_bytes(read)
    if not dtype.hasobject or not isinstance(read, np.ndarray):
        return read
    out = np.empty(read.shape, dtype)
    flat = out.reshape(-1)
    for position, one in enumerate(read.reshape(-1)):
        flat[position] = text_bytes(one)
    return out


def is_string(dtype: np.dtype[Any]) -> bool:
    """Whether elements are text, of any or of fixed length."""
    return h5py.check_string_dtype(dtype) is not None


def decoded(read: Any, encoding: str, errors: str) -> Any:
    """Decode text from bytes to `str`."""
    if isinstance(read, bytes):
        return read.decode(encoding, errors)
    out = np.empty(read.shape, object)
    flat = out.reshape(-1)
    for position, one in enumerate(read.reshape(-1)):
        flat[position] = one.decode(encoding, errors)
    return out

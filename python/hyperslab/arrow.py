"""Columns of pyarrow's. Its own `array` imports pandas, if that is there, which takes half a second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hyperslab.needed import need


def number_column(column: npt.NDArray[Any]) -> Any:
    """A column with the elements of an array of numbers."""
    need("a table of Apache Arrow", "pyarrow")
    import pyarrow as pa

    buffer = pa.py_buffer(np.ascontiguousarray(column))
    return pa.Array.from_buffers(pa.from_numpy_dtype(column.dtype), len(column), [None, buffer])


def value_column(values: Sequence[Any], kind: type) -> Any:
    """A column of texts, truth values, integers or floats (`kind`); None is a value that is not known."""
    need("a table of Apache Arrow", "pyarrow")
    import pyarrow as pa

    known = np.array([value is not None for value in values], bool)
    validity = None if known.all() else _bits(known)
    if kind is str:
        texts = [("" if value is None else value).encode() for value in values]
        offsets = np.cumsum([0, *map(len, texts)], dtype=np.int32)
        return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(b"".join(texts)), validity)
    filled = [kind() if value is None else value for value in values]
    if kind is bool:
        return pa.Array.from_buffers(pa.bool_(), len(filled), [validity, _bits(np.array(filled, bool))])
    given = np.array(filled, np.dtype(kind))
    return pa.Array.from_buffers(pa.from_numpy_dtype(given.dtype), len(given), [validity, pa.py_buffer(given)])


def _bits(flags: npt.NDArray[np.bool_]) -> Any:
    import pyarrow as pa

    return pa.py_buffer(np.packbits(flags, bitorder="little"))

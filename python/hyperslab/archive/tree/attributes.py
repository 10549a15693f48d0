"""Attributes of groups and arrays, as Python values: text is `str`, numbers are NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np


class Attributes(Mapping[str, Any]):
    """The attributes of a group or array: a read-only mapping, in the order of the file.

    Reading a value raises `Unsupported` or `DamagedFile` if hyperslab cannot read it.
    """

    def __init__(self, stored: Sequence[tuple[str, Any]]) -> None:
        self._stored = dict(stored)

    def __getitem__(self, name: str) -> Any:
        stored = self._stored[name]
        if isinstance(stored, Exception):
            raise stored
        return value(*stored)

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)

    def __repr__(self) -> str:
        reasons = {name: str(reason) for name, reason in self.unreadable()}
        shown = dict.fromkeys(self._stored) | dict(self.readable()) | reasons
        return f"<hyperslab.Attributes {shown!r}>"

    def stored(self, name: str) -> tuple[tuple[int, ...] | None, Any, bytes | list[Any]]:
        """The shape, dtype and elements of an attribute, as the file has them.

        The shape of HDF5's null dataspace is None, and so is the dtype of a single text of variable length.
        """
        stored = self._stored[name]
        if isinstance(stored, Exception):
            raise stored
        return stored  # type: ignore[no-any-return]

    def readable(self, leave: Sequence[str] = ()) -> Iterator[tuple[str, Any]]:
        """Yield the name and value of each attribute that can be read, except for some names."""
        known = ((name, stored) for name, stored in self._stored.items() if name not in leave)
        return ((name, value(*stored)) for name, stored in known if not isinstance(stored, Exception))

    def unreadable(self) -> Iterator[tuple[str, Exception]]:
        """Yield the name of each attribute that cannot be read, and the reason."""
        return ((name, stored) for name, stored in self._stored.items() if isinstance(stored, Exception))


def value(shape: tuple[int, ...] | None, dtype: Any, elements: bytes | list[Any]) -> Any:
    """Make a value from its elements; None for an HDF5 null dataspace. A single text has no dtype."""
    if shape is None:
        return None
    if isinstance(elements, list):
        return filled(shape, dtype, elements) if shape else elements[0]
    array = np.ndarray(shape, dtype, buffer=elements).copy() if elements else np.empty(shape, dtype)
    if array.ndim == 0 and dtype.kind == "S":
        return text(bytes(array[()]))
    return array[()] if array.ndim == 0 else array


def text(stored: bytes) -> str | bytes:
    """The text if the bytes are valid UTF-8, otherwise the bytes."""
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored


def filled(shape: tuple[int, ...], dtype: np.dtype[Any], objects: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Make an array of these objects, in C order."""
    array = np.empty(shape, dtype)
    flat = array.reshape(len(objects), *array.shape[len(shape) :])
    for position, one in enumerate(objects):
        flat[position] = one
    return array


def for_json(value: Any, decode: Callable[[bytes], str] = bytes.decode) -> Any:
    """A value for JSON. An array of one element becomes the element, as in netCDF; complex numbers become pairs.

    Raises
    ------
    TypeError
        JSON cannot express it.
    OverflowError
        It is a long double outside the range of a double, which is what JSON's readers take numbers for.
    UnicodeDecodeError
        It has bytes that `decode` does not take for text.
    """
    if isinstance(value, np.ndarray):
        return for_json(value[0], decode) if value.shape == (1,) else [for_json(one, decode) for one in value]
    if isinstance(value, np.generic):
        return for_json(as_python(value), decode)
    if isinstance(value, complex):
        return [value.real, value.imag]
    if isinstance(value, bytes):
        return decode(value)
    if isinstance(value, tuple | list):
        return [for_json(one, decode) for one in value]
    if isinstance(value, dict):
        return {str(name): for_json(one, decode) for name, one in value.items()}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"JSON cannot express a {type(value).__name__}")


def as_python(value: np.generic) -> Any:
    """A NumPy scalar as a Python value. Python has no long doubles: they become the nearest double.

    Raises
    ------
    OverflowError
        A long double is outside the range of a double.
    """
    plain = value.item()
    if not isinstance(plain, np.longdouble | np.clongdouble):
        return plain
    near = complex(plain) if isinstance(plain, np.clongdouble) else float(plain)
    if np.isinf(near) and not np.isinf(plain):
        raise OverflowError(f"{plain} is outside the range of a double")
    return near

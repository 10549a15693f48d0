"""Convert HDF5 datatypes to dtypes with h5py's metadata, and stored elements to arrays, which may hold objects."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hyperslab.errors import Unsupported
from hyperslab.h5.dtypes import (
    Empty,
    check_enum_dtype,
    enum_dtype,
    ref_dtype,
    regionref_dtype,
    string_dtype,
    vlen_dtype,
)
from hyperslab.h5.references import Reference, region_reference

Element = tuple[Any, ...]  # class, width in bytes, and further properties of the class: `_core.hdf5_objects`
POINTERS = ("vlen string", "vlen", "object reference", "region reference")
TIME_TAGS = ("HDF5 time",)


def has_pointers(element: Element) -> bool:
    """Whether elements become Python objects, because they have a variable length or are references."""
    kind = element[0]
    if kind == "compound":
        return any(has_pointers(inner) for _, _, inner in element[2])
    if kind == "array":
        return has_pointers(element[3])
    return kind in POINTERS


def dtype_of(element: Element) -> np.dtype[Any]:
    """Return the dtype that h5py gives to a datatype.

    Raises
    ------
    TypeError
        NumPy has no such dtype.
    """
    kind, nbytes = element[:2]
    make = _MAKERS.get(kind)
    if make is None:
        raise TypeError(f"No NumPy equivalent for {kind} exists")
    try:
        return make(element)
    except ValueError as error:
        raise TypeError(f"No NumPy equivalent for {kind} of {nbytes} bytes exists: {error}") from error


def _number(kind: str, nbytes: int, order: str) -> np.dtype[Any]:
    if order == "vax" or nbytes not in (1, 2, 4, 8):
        raise TypeError(f"data type '{order}{kind}{nbytes}' not understood")
    return np.dtype(f"{order}{kind}{nbytes}")


def _integer(element: Element) -> np.dtype[Any]:
    _, nbytes, order, signed, _, _ = element
    return _number("i" if signed else "u", nbytes, order)


def _float(element: Element) -> np.dtype[Any]:
    """Return the narrowest float dtype of NumPy that holds all values, as h5py does."""
    _, nbytes, order, (_, _, _, (_, exponent_nbits, bias), (_, mantissa_nbits, implied_one)) = element
    if order == "vax":
        raise TypeError("VAX floats have no NumPy equivalent")
    significant = mantissa_nbits if implied_one else mantissa_nbits - 1
    for name in ("f2", "f4", "f8", "longdouble"):
        dtype = np.dtype(name)
        info = np.finfo(dtype)
        fits = dtype.itemsize >= nbytes and significant <= info.nmant
        if fits and 2**exponent_nbits - bias - 1 <= info.maxexp and 1 - bias >= info.minexp:
            return dtype.newbyteorder(order)
    raise ValueError("Insufficient precision in available types")


def _complex(element: Element) -> np.dtype[Any]:
    part = dtype_of(element[2])
    return np.dtype(f"c{2 * part.itemsize}").newbyteorder(part.byteorder)


def _string(element: Element) -> np.dtype[Any]:
    return string_dtype(element[2][1], element[1])


def _opaque(element: Element) -> np.dtype[Any]:
    _, nbytes, tag = element
    if tag in TIME_TAGS:
        raise TypeError("No NumPy equivalent for TypeTimeID exists")
    if tag.startswith("NUMPY:"):
        made: np.dtype[Any] = np.dtype(tag[6:], metadata={"h5py_opaque": True})
        return made
    return np.dtype(f"V{nbytes}")


def _enum(element: Element) -> np.dtype[Any]:
    base = dtype_of(element[2])
    names = {name: np.frombuffer(value, base)[0].item() for name, value in element[3]}
    if base.itemsize == 1 and names == {"FALSE": 0, "TRUE": 1}:
        return np.dtype("bool")
    return enum_dtype(names, base)


def _compound(element: Element) -> np.dtype[Any]:
    _, nbytes, fields = element
    names = [name for name, _, _ in fields]
    formats = [dtype_of(inner) for _, _, inner in fields]
    if names == ["r", "i"] and formats[0] == formats[1] and formats[0].kind == "f" and formats[0].itemsize >= 4:
        return np.dtype(f"{formats[0].byteorder}c{2 * formats[0].itemsize}")
    offsets, nbytes = _places(fields, nbytes)
    described: Any = {"names": names, "formats": formats, "offsets": offsets, "itemsize": nbytes}
    made: np.dtype[Any] = np.dtype(described)
    return made


def _places(fields: Any, nbytes: int) -> tuple[list[int], int]:
    """Return the offsets of the fields in memory, and the total width.

    An element of variable length has another width in memory than in the file, so the fields after it move.
    """
    offsets, moved = [0] * len(fields), 0
    for number in sorted(range(len(fields)), key=lambda number: fields[number][1]):
        _, offset, inner = fields[number]
        offsets[number] = offset + moved
        moved += memory_nbytes(inner) - inner[1]
    return offsets, nbytes + moved


def memory_nbytes(element: Element) -> int:
    """Return the width in bytes that HDF5's own library gives an element in memory, where text is a `char *`."""
    kind, nbytes = element[:2]
    if kind == "compound":
        return _places(element[2], nbytes)[1]
    if kind == "array":
        return math.prod(element[2]) * memory_nbytes(element[3])
    widths: dict[str, int] = {"vlen string": 8, "vlen": 16, "object reference": 8, "region reference": 12}
    return widths.get(kind, int(nbytes or 0))


def _array(element: Element) -> np.dtype[Any]:
    return np.dtype((dtype_of(element[3]), element[2]))


_MAKERS: dict[str, Callable[[Element], np.dtype[Any]]] = {
    "integer": _integer,
    "float": _float,
    "complex": _complex,
    "string": _string,
    "opaque": _opaque,
    "bitfield": lambda element: _number("u", element[1], element[2]),
    "enum": _enum,
    "compound": _compound,
    "array": _array,
    "vlen string": lambda element: string_dtype(element[2][1]),
    "vlen": lambda element: vlen_dtype(dtype_of(element[2])),
    "object reference": lambda _: ref_dtype,
    "region reference": lambda _: regionref_dtype,
}


def values(element: Element, dtype: np.dtype[Any], stored: bytes, heap: list[bytes]) -> np.ndarray[Any, Any]:
    """Convert stored elements to an array of one axis.

    Parameters
    ----------
    element : Element
        The datatype.
    dtype : np.dtype
        The dtype of the array.
    stored : bytes
        The elements as stored, without gaps.
    heap : list of bytes
        The values of the elements of variable length, in order.
    """
    if not has_pointers(element):
        return plain(element, dtype, stored)
    return _Objects(iter(heap)).array(element, dtype, bytes(stored))


def plain(element: Element, dtype: np.dtype[Any], stored: bytes) -> np.ndarray[Any, Any]:
    """Convert stored elements of fixed width to an array of one axis.

    Raises
    ------
    Unsupported
        The dtype has another width than the stored elements.
    """
    count = len(stored) // element[1]
    if dtype.itemsize == element[1]:
        return np.ndarray((count,), dtype, buffer=bytearray(stored))
    raise Unsupported(f"hyperslab.h5 cannot convert elements of {element[1]} bytes to {dtype}: open it with h5py")


class _Objects:
    """Makes Python objects of elements of variable length and of references, in the order in which they are stored."""

    def __init__(self, heap: Iterator[bytes]) -> None:
        self._heap = heap

    def array(self, element: Element, dtype: np.dtype[Any], stored: bytes) -> np.ndarray[Any, Any]:
        """Convert stored elements to an array of one axis, plus the axes of the dtype."""
        width = element[1]
        count = len(stored) // width
        if element[0] == "vlen string":
            out = np.empty(count, dtype)
            for place in range(count):
                out[place] = text(next(self._heap))
            return out
        out = np.empty(count, dtype)
        for place in range(count):
            self.put(out, place, element, stored[place * width : (place + 1) * width])
        return out

    def put(self, out: np.ndarray[Any, Any], place: int, element: Element, stored: bytes) -> None:
        """Convert one element, and put it at an index of an array."""
        kind = element[0]
        if kind == "compound" and out.dtype.names is not None:
            for name, offset, inner in element[2]:
                self.put(out[name], place, inner, stored[offset : offset + inner[1]])
        elif kind == "array":
            base = np.dtype((out.dtype, out.shape[1:])).base if out.ndim > 1 else out.dtype
            values = self.inner(element[3], base, stored)
            out[place] = values.reshape(out.shape[1:])
        else:
            out[place : place + 1] = self.one(element, stored)

    def inner(self, element: Element, dtype: np.dtype[Any], stored: bytes) -> np.ndarray[Any, Any]:
        """Convert the elements of an array datatype or of a sequence."""
        return self.array(element, dtype, stored) if has_pointers(element) else plain(element, dtype, stored)

    def one(self, element: Element, stored: bytes) -> np.ndarray[Any, Any]:
        """Convert one element to an array of length 1."""
        if not has_pointers(element):
            return plain(element, dtype_of(element), stored)
        out = np.empty(1, object)
        out[0] = self.object(element, stored)
        return out

    def object(self, element: Element, stored: bytes) -> Any:
        """Convert one reference, text or sequence to a Python object."""
        kind = element[0]
        if kind == "object reference":
            return Reference(int.from_bytes(stored, "little"))
        value = next(self._heap)
        if kind == "region reference":
            return region_reference(value, element[1] - 4)
        if kind == "vlen string":
            return text(value)
        base = dtype_of(element[2])
        if base.kind == "O" or check_enum_dtype(base) is not None:  # h5py keeps the metadata only on the whole dtype
            return self.inner(element[2], base, value).view(np.dtype(base.str))
        return self.inner(element[2], base, value)


def text(stored: bytes) -> bytes:
    """Cut text at its first zero byte, as h5py does."""
    end = stored.find(b"\0")
    return stored if end < 0 else stored[:end]


def empty(element: Element) -> Empty:
    """Return the value of a null dataspace."""
    return Empty(dtype_of(element))

"""HDF5 files that h5py alone does not make: groups whose links are filtered, floats of other layouts, and a filter
pipeline message that no release writes yet."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import h5py
import numpy as np

MASK = 0xFFFFFFFF
DEFLATE = 1
FILTER_PIPELINE = 0x0B
FLETCHER32 = 3


def libhdf5() -> Any:
    """The library that h5py has loaded."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = Path(line.split()[-1])  # netCDF4 and PyTables bring others
        if path.name.startswith("libhdf5") and "_hl" not in path.name and path.parent.name == "h5py.libs":
            return ctypes.CDLL(str(path))
    raise OSError("h5py has loaded no libhdf5")


def filtered_group(file: h5py.File, name: str, fletcher32: bool = False) -> h5py.Group:
    """A group whose links are in a fractal heap, and deflated there."""
    created, library = h5py.h5p.create(h5py.h5p.GROUP_CREATE), libhdf5()
    plist = ctypes.c_int64(created.id)
    assert library.H5Pset_link_phase_change(plist, ctypes.c_uint(0), ctypes.c_uint(0)) >= 0
    assert library.H5Pset_deflate(plist, ctypes.c_uint(6)) >= 0
    if fletcher32:
        assert library.H5Pset_fletcher32(plist) >= 0
    return h5py.Group(h5py.h5g.create(file.id, name.encode(), None, created))


def float_type(parts: tuple[int, int, int], offset: int, nbytes: int, order: str, bias: int) -> h5py.h5t.TypeFloatID:
    """A float of sign, exponent and mantissa next to each other: `parts` are bits of exponent and mantissa, and bits
    that nobody uses between them."""
    exponent, mantissa, gap = parts
    made = h5py.h5t.IEEE_F64LE.copy() if order == "<" else h5py.h5t.IEEE_F64BE.copy()
    made.set_fields(offset + mantissa + gap + exponent, offset + mantissa + gap, exponent, offset, mantissa)
    made.set_offset(offset)
    made.set_precision(1 + exponent + mantissa + gap)
    made.set_ebias(bias)
    made.set_size(nbytes)
    return made


def write_floats(
    file: h5py.File, name: str, kind: h5py.h5t.TypeFloatID, values: np.ndarray[Any, Any], filters: tuple[int, ...]
) -> None:
    """An array of such floats: in one piece without chunks, else in small ones."""
    created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if filters:
        created.set_chunk((4,))
    for number in filters:
        created.set_filter(number, 0, (6,) if number == DEFLATE else ())
    array = h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple(values.shape), created)
    array.write(h5py.h5s.ALL, h5py.h5s.ALL, values, h5py.h5t.NATIVE_DOUBLE)


def lookup3(data: bytes) -> int:
    """Bob Jenkins' hash, which ends every structure of HDF5 since 1.8."""

    def rotated(value: int, count: int) -> int:
        return ((value << count) | (value >> (32 - count))) & MASK

    def added(state: list[int], block: bytes) -> list[int]:
        words = [int.from_bytes(block[k : k + 4], "little") for k in (0, 4, 8)]
        return [(value + word) & MASK for value, word in zip(state, words, strict=True)]

    state = [(0xDEADBEEF + len(data)) & MASK] * 3
    while len(data) > 12:
        a, b, c = added(state, data[:12])
        for count in (4, 6, 8, 16, 19, 4):
            a, b, c = b, (c + b) & MASK, ((a - c) & MASK) ^ rotated(c, count)
        state, data = [a, b, c], data[12:]
    if not data:
        return state[2]
    a, b, c = added(state, data.ljust(12, b"\0"))
    for count in (14, 11, 25, 16, 4, 14, 24):
        a, b, c = b, ((c ^ b) - rotated(b, count)) & MASK, a
    return b


def pipeline_of_version_3(filters: list[tuple[int, str, tuple[int, ...]]], blocks: list[list[bytes]]) -> bytes:
    """The message as `H5O__pline_encode` of HDF5's development branch of September 2026 writes it: behind each filter
    the blocks that extend it."""
    message = bytes([3, len(filters)])
    for (number, name, parameters), extending in zip(filters, blocks, strict=True):
        text = name.encode() + b"\0" if number >= 256 else b""
        message += number.to_bytes(2, "little")
        message += len(text).to_bytes(2, "little") if number >= 256 else b""
        message += (1).to_bytes(2, "little") + len(parameters).to_bytes(2, "little") + text
        message += b"".join(parameter.to_bytes(4, "little") for parameter in parameters)
        message += len(extending).to_bytes(2, "little") + b"".join(extending)
    return message


def extension(kind: int, content: bytes, flags: int = 0) -> bytes:
    """One such block."""
    return kind.to_bytes(2, "little") + bytes([flags, 0]) + len(content).to_bytes(4, "little") + content


def roomy(path: Path, values: np.ndarray[Any, Any], filters: list[tuple[int, tuple[int, ...]]]) -> None:
    """An array in chunks behind these filters and a checksum, whose message is far longer than it needs to be."""
    created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    created.set_chunk(tuple(max(1, length // 3) for length in values.shape))
    for number, parameters in [*filters, (FLETCHER32, (0,) * 60)]:
        created.set_filter(number, h5py.h5z.FLAG_OPTIONAL, parameters)
    with h5py.File(path, "w", libver="latest") as file:
        kind, space = h5py.h5t.py_create(values.dtype), h5py.h5s.create_simple(values.shape)
        h5py.h5d.create(file.id, b"a", kind, space, created).write(h5py.h5s.ALL, h5py.h5s.ALL, values)


def with_pipeline(path: Path, message: bytes) -> None:
    """Put this message in the place of the only filter pipeline of a file."""
    data = bytearray(path.read_bytes())
    start = next(at for at in headers(data) if any(kind == FILTER_PIPELINE for kind, _, _ in messages(data, at)))
    content, nbytes = bounds(data, start)
    kept = b""
    for kind, flags, body in messages(data, start):
        room = len(body) - len(message) - 4
        kept += bytes([kind])
        if kind == FILTER_PIPELINE:
            assert room >= 0
            kept += len(message).to_bytes(2, "little") + bytes([flags]) + message
            kept += bytes([0]) + room.to_bytes(2, "little") + bytes([0]) + bytes(room)
        else:
            kept += len(body).to_bytes(2, "little") + bytes([flags]) + body
    data[content : content + len(kept)] = kept
    end = content + nbytes
    data[end : end + 4] = lookup3(bytes(data[start:end])).to_bytes(4, "little")
    path.write_bytes(data)


def headers(data: bytearray) -> list[int]:
    """Where object headers of version 2 are."""
    found, at = [], data.find(b"OHDR")
    while at >= 0:
        found.append(at)
        at = data.find(b"OHDR", at + 1)
    return found


def bounds(data: bytearray, start: int) -> tuple[int, int]:
    """Where the messages of a header's first chunk begin, and how long they are together."""
    flags = data[start + 5]
    at = start + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
    width = 1 << (flags & 3)
    return at + width, int.from_bytes(data[at : at + width], "little")


def messages(data: bytearray, start: int) -> list[tuple[int, int, bytes]]:
    """The messages: kind, flags, body; none of them in order of creation."""
    at, nbytes = bounds(data, start)
    end, found = at + nbytes, []
    assert not data[start + 5] & 4, "attributes in order of creation"
    while at + 4 <= end:
        length = int.from_bytes(data[at + 1 : at + 3], "little")
        found.append((data[at], data[at + 3], bytes(data[at + 4 : at + 4 + length])))
        at += 4 + length
    return found

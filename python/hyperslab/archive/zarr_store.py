"""`ZarrStore`: an archive of any format as a read-only Zarr 3 hierarchy, for zarr-python and everything built on it.

The store returns decoded chunks, so you can read any codec, filter mask or edge chunk that hyperslab reads, even if
Zarr cannot express it. With `hyperslab.archive.zarr_pipeline`, hyperslab reads whole selections instead of chunks.
Specification: https://zarr-specs.readthedocs.io/en/latest/v3/core/
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
import struct
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from typing import Any, Literal

import numpy as np
import zarr.dtype
from zarr.abc.store import (
    ByteRequest,
    OffsetByteRequest,
    RangeByteRequest,
    Store,
    SuffixByteRequest,
)
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype

from hyperslab.archive.conventions import cf
from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.attributes import for_json
from hyperslab.archive.tree.dimensions import dimension_names
from hyperslab.archive.tree.group import Group, groups_by_path
from hyperslab.cached import cached_property
from hyperslab.chunk_grid import chunk_counts
from hyperslab.errors import DamagedFile, Unsupported, printable

METADATA = "zarr.json"
# zarr 3.1.0 has only the older name.
parse_dtype = vars(zarr.dtype).get("parse_dtype") or vars(zarr.dtype)["parse_data_type"]
# A contiguous array is split into chunks of about this size, so that reading a part does not read all of it.
MADE_UP_CHUNK_NBYTES = 4 << 20


class ZarrStore(Store):
    """The keys and values of a Zarr 3 hierarchy, made from an open group.

    Use it as `zarr.open(ZarrStore(hs.open("ocean.nc")))` or `xr.open_zarr(ZarrStore(...))`. Arrays that hyperslab
    cannot read, or whose elements Zarr cannot express, are left out; `left_out` names them with the reasons.

    Parameters
    ----------
    group : Group
        The group that becomes the root of the hierarchy.
    """

    def __init__(self, group: Group) -> None:
        super().__init__(read_only=True)
        self.group = group

    @cached_property
    def _nodes(self) -> dict[str, Group | Array]:
        """All groups and arrays by their path in the hierarchy; the root is ""."""
        nodes: dict[str, Group | Array] = {}
        for path, group in groups_by_path(self.group):
            nodes[path] = group
            nodes |= {f"{path}/{name}" if path else name: array for name, array in group.arrays.items()}
        return nodes

    @cached_property
    def _described(self) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
        metadata, left_out = {}, {}
        for path, node in self._nodes.items():
            try:
                metadata[path] = self._node_metadata(path, node)
            except Unsupported as error:
                left_out[path] = str(error)
        return metadata, left_out

    @property
    def left_out(self) -> dict[str, str]:
        """The arrays that the hierarchy lacks, by path, with the reasons."""
        return self._described[1]

    def array(self, path: str) -> Array:
        """The array at a path of the hierarchy."""
        node = self._nodes[path]
        if not isinstance(node, Array):
            raise KeyError(f"{path!r} is a group")
        return node

    def chunk_shape(self, path: str) -> tuple[int, ...]:
        """The chunk shape of an array in the hierarchy."""
        return tuple(self._described[0][path]["chunk_grid"]["configuration"]["chunk_shape"])

    def _node_metadata(self, path: str, node: Group | Array) -> dict[str, Any]:
        if isinstance(node, Array):
            return array_metadata(node, self._dimensions[path])
        return {"zarr_format": 3, "node_type": "group", "attributes": _json_attributes(node)}

    @cached_property
    def _dimensions(self) -> dict[str, tuple[str, ...]]:
        groups = {path: node for path, node in self._nodes.items() if isinstance(node, Group)}
        named = {}
        for path, group in groups.items():
            names = dimension_names(group.arrays)
            named.update({f"{path}/{name}".lstrip("/"): dims for name, dims in names.items()})
        return named

    def _value(self, key: str) -> bytes | None:
        if key == METADATA or key.endswith("/" + METADATA):
            return self._document(key[: -len(METADATA)].rstrip("/"))
        chunk = self._parse_chunk_key(key)
        return None if chunk is None else self._chunk(*chunk)

    def _document(self, path: str) -> bytes | None:
        metadata = self._described[0]
        if path not in metadata:
            return None
        document = dict(metadata[path])
        if path == "":
            inner = {name: described for name, described in metadata.items() if name}
            document["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": inner}
        return json.dumps(document).encode()

    def _parse_chunk_key(self, key: str) -> tuple[str, tuple[int, ...]] | None:
        """The path of the array and the index of the chunk that a key names; None if it names no chunk."""
        path, separator, coordinates = f"/{key}/".rpartition("/c/")
        path, coordinates = path.strip("/"), coordinates.strip("/")
        if not separator or "chunk_grid" not in self._described[0].get(path, {}):
            return None
        numbers = coordinates.split("/") if coordinates else []
        grid = chunk_counts(self.array(path).shape, self.chunk_shape(path))
        if len(numbers) != len(grid) or not all(number.isdecimal() for number in numbers):
            return None
        index = tuple(int(number) for number in numbers)
        return (path, index) if all(i < length for i, length in zip(index, grid, strict=True)) else None

    def _chunk(self, path: str, index: tuple[int, ...]) -> bytes:
        """A whole decoded chunk; elements beyond the array have the fill value."""
        array, shape = self.array(path), self.chunk_shape(path)
        start = [i * length for i, length in zip(index, shape, strict=True)]
        asked = tuple(slice(a, a + n) for a, n in zip(start, shape, strict=True))
        part = np.asarray(array.read(asked), object if array.is_text else None)
        if part.shape != shape:
            whole = np.full(shape, _fill(array), part.dtype)
            whole[tuple(slice(n) for n in part.shape)] = part
            part = whole
        return _vlen(part) if part.dtype == object else _little(part).tobytes()

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """The value of a key, or a part of it; None if there is no such key."""
        value = await asyncio.to_thread(self._value, key)
        if value is None:
            return None
        part = value if byte_range is None else value[_slice(byte_range, len(value))]
        return (prototype or default_buffer_prototype()).buffer.from_bytes(part)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Parts of values, read in parallel."""
        return list(await asyncio.gather(*(self.get(key, prototype, asked) for key, asked in key_ranges)))

    async def exists(self, key: str) -> bool:
        """Whether there is such a key."""
        path = key[: -len(METADATA)].rstrip("/")
        is_document = key.endswith(METADATA) and path in self._described[0]
        return is_document or self._parse_chunk_key(key) is not None

    @property
    def supports_writes(self) -> bool:
        """Never."""
        return False

    @property
    def supports_deletes(self) -> bool:
        """Never."""
        return False

    @property
    def supports_listing(self) -> bool:
        """Always."""
        return True

    @property
    def supports_partial_writes(self) -> Literal[False]:
        """Never; zarr before 3.1.3 asks."""
        return False

    async def set_partial_values(self, key_start_values: Iterable[tuple[str, int, Any]]) -> None:  # noqa: ARG002
        """Raise an error: the store is read-only; zarr before 3.1.3 wants to have this."""
        self._check_writable()

    async def set(self, key: str, value: Buffer) -> None:  # noqa: ARG002
        """Raise an error: the store is read-only."""
        self._check_writable()

    async def delete(self, key: str) -> None:  # noqa: ARG002
        """Raise an error: the store is read-only."""
        self._check_writable()

    async def list(self) -> AsyncIterator[str]:
        """Every key."""
        for key in self._keys():
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Every key that starts with the prefix."""
        for key in self._keys():
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """The names directly below a path."""
        inside = prefix.strip("/") + "/" if prefix.strip("/") else ""
        seen = {key[len(inside) :].split("/")[0] for key in self._keys() if key.startswith(inside)}
        for name in sorted(seen):
            yield name

    def _keys(self) -> Iterator[str]:
        for path, metadata in self._described[0].items():
            yield f"{path}/{METADATA}".lstrip("/")
            if metadata["node_type"] == "array":
                shape = metadata["shape"]
                grid = chunk_counts(shape, metadata["chunk_grid"]["configuration"]["chunk_shape"])
                indices = np.ndindex(*grid)
                yield from ("/".join([*([path] if path else []), "c", *map(str, index)]) for index in indices)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ZarrStore) and self.group.__dask_tokenize__() == other.group.__dask_tokenize__()

    def __hash__(self) -> int:
        return hash(self.group.__dask_tokenize__())

    def __reduce__(self) -> tuple[Any, ...]:
        return ZarrStore, (self.group,)

    def __repr__(self) -> str:
        return f"<hyperslab.ZarrStore of {printable(self.group.filename)}>"


def array_metadata(array: Array, dimensions: tuple[str, ...]) -> dict[str, Any]:
    """The `zarr.json` of an array.

    Raises
    ------
    Unsupported
        hyperslab cannot read the array, or Zarr has no data type for its elements.
    """
    if array.via == "hyperslab" and array.unsupported:
        raise Unsupported(array.unsupported)
    if not array.is_variable:
        raise Unsupported("it has no elements")
    is_text = array.is_text
    if array.dtype.hasobject and not is_text:
        raise Unsupported("Zarr has no data type for elements of variable length that are not text")
    element = array.dtype if is_text else array.dtype.newbyteorder("<")
    try:
        data_type = parse_dtype("string" if is_text else element, zarr_format=3)
        fill = data_type.to_json_scalar("" if is_text else _fill(array), zarr_format=3)
    except (ValueError, TypeError) as error:
        raise Unsupported(f"Zarr has no data type for {array.dtype}: {error}") from error
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(array.shape),
        "data_type": data_type.to_json(zarr_format=3),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(_chunk_shape(array))}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill,
        "codecs": [{"name": "vlen-utf8"} if is_text else {"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": _json_attributes(array),
        "dimension_names": list(dimensions),
    }


def _chunk_shape(array: Array) -> tuple[int, ...]:
    if array.chunks is not None:
        return array.chunks
    shape, room = [max(1, length) for length in array.shape], max(1, MADE_UP_CHUNK_NBYTES // array.dtype.itemsize)
    for axis, length in enumerate(shape):
        inner = math.prod(shape[axis + 1 :])
        shape[axis] = min(length, max(1, room // inner))
    return tuple(shape)


def _fill(array: Array) -> Any:
    return array.fill_value if array.fill_value is not None else np.zeros((), array.dtype)[()]


def _little(part: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return part.astype(part.dtype.newbyteorder("<"), copy=False)


def _vlen(part: np.ndarray[Any, Any]) -> bytes:
    """Text as numcodecs' `vlen-utf8` stores it: the count, then the length and the bytes of each text, as uint32."""
    texts = [text.encode() if isinstance(text, str) else bytes(text or b"") for text in part.reshape(-1)]
    return struct.pack("<I", len(texts)) + b"".join(struct.pack("<I", len(text)) + text for text in texts)


def _slice(asked: ByteRequest, length: int) -> slice:
    if isinstance(asked, RangeByteRequest):
        return slice(asked.start, asked.end)
    if isinstance(asked, OffsetByteRequest):
        return slice(asked.offset, None)
    if isinstance(asked, SuffixByteRequest):
        return slice(max(0, length - asked.suffix), None)
    raise TypeError(f"{asked!r} is not a byte range of zarr-python")


def _json_attributes(node: Group | Array) -> dict[str, Any]:
    attributes = {}
    for name, value in node.attrs.readable():
        with suppress(OverflowError, TypeError):  # what JSON cannot express is left out
            attributes[name] = for_json(value, _text)
    with suppress(Unsupported, DamagedFile):  # then it is not among the attributes either
        fill = cf.fill_value(node) if isinstance(node, Array) else None
        if fill is not None:
            attributes["_FillValue"] = _json_fill(fill)
    return attributes


def _text(stored: bytes) -> str:
    return stored.decode("latin-1")


def _json_fill(value: Any) -> Any:
    """`_FillValue` as xarray writes it to Zarr 3: floats as base64 of a little-endian double."""
    scalar = np.asarray(value).reshape(-1)[0]
    if np.asarray(scalar).dtype.kind == "f":
        return base64.standard_b64encode(struct.pack("<d", float(scalar))).decode()
    return for_json(scalar, _text)

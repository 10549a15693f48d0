"""Arrays in Zarr version 3, which Icechunk and VirtualiZarr use; or the reason why an array cannot be expressed.

Codecs have the names that zarr-python gives to numcodecs' codecs (`numcodecs.zlib`, ...), of which HDF5's codec chains
consist. Specification: https://zarr-specs.readthedocs.io/en/latest/v3/core/
"""

from __future__ import annotations

import base64
import math
import struct
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab.archive.conventions import cf
from hyperslab.errors import HyperslabError, Refused
from hyperslab.needed import missing
from hyperslab.references import chunks, zarr2
from hyperslab.references.chunks import ChunkTable

if TYPE_CHECKING:
    from hyperslab.archive.tree.array import Array

OF_ARRAYS = ("transpose", "delta", "fixedscaleoffset")  # codecs that work on elements, before they become bytes


def group_documents(prefix: str, attributes: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The document of a group by key."""
    document = {"zarr_format": 3, "node_type": "group", "attributes": _strict(attributes)}
    return {f"{prefix}zarr.json": document}


def array_documents(
    path: str, array: Array, dimensions: list[str], inline_threshold: int
) -> tuple[dict[str, dict[str, Any]], ChunkTable]:
    """The document of an array by key, and its chunks.

    Raises
    ------
    Refused
        The array cannot be expressed; the message has the reason.
    """
    _check_name(path)
    if array.is_null:
        raise Refused("it has no elements (a null dataspace)")
    if array.damaged:
        raise Refused(array.damaged)
    if array.nbytes <= inline_threshold and 0 not in array.shape and array.is_own:
        described, table = _inlined(array)
    else:
        described, table = _referenced(array)
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(array.shape),
        **described,
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "attributes": attributes(array),
        "dimension_names": dimensions,
    }
    return {f"{path}/zarr.json": document}, table


def _check_name(path: str) -> None:
    for part in path.split("/"):
        if part == "zarr.json" or part.startswith("__") or not part.strip("."):
            raise Refused(f"Zarr reserves names like {part!r}")


def _referenced(array: Array) -> tuple[dict[str, Any], ChunkTable]:
    as_stored = chunks.stored(array)
    if not as_stored.table.is_full and len(as_stored.fills) > 1:
        raise Refused("its parts have different fill values for chunks that were never written")
    fill = next(iter(as_stored.fills)) if len(as_stored.fills) == 1 else array.fill_bytes
    described = description(array.dtype, np.frombuffer(fill, array.dtype, 1)[0], as_stored.chunk_shape)
    before, after = _codecs(as_stored, array.dtype)
    return {**described, "codecs": [*before, *described["codecs"], *after]}, as_stored.table


def _inlined(array: Array) -> tuple[dict[str, Any], ChunkTable]:
    """The whole array as one chunk without codecs."""
    try:
        values = np.asarray(array.read())
    except HyperslabError as error:
        raise Refused(f"it cannot be read: {error}") from error
    if array.dtype.hasobject:
        encoded, chunk_grid = zarr2.texts(values), regular_grid(array.shape)
        text = {"data_type": "string", "fill_value": "", "codecs": [{"name": "vlen-utf8"}], "chunk_grid": chunk_grid}
        return text, chunks.of_bytes(encoded, array.ndim)
    described = description(array.dtype, np.zeros((), array.dtype)[()], array.shape)
    return described, chunks.of_bytes(values.tobytes(), array.ndim)


def description(dtype: np.dtype[Any], fill: Any, chunk_shape: tuple[int, ...]) -> dict[str, Any]:
    """Data type, fill value, the codec that turns elements into bytes, and the grid."""
    zarr2.dtype_of(dtype)  # refuses dtypes that Zarr does not have
    is_big = _byte_order(dtype) == ">"
    data_type, fill_value = _data_type(dtype.newbyteorder("<"), fill)
    to_bytes = {"name": "bytes", "configuration": {"endian": "big" if is_big else "little"}}
    return {
        "data_type": data_type,
        "fill_value": fill_value,
        "codecs": [to_bytes],
        "chunk_grid": regular_grid(chunk_shape),
    }


def _byte_order(dtype: np.dtype[Any]) -> str:
    if dtype.names is None:
        return "<" if dtype.str[0] == "|" else dtype.str[0]
    if any(_byte_order(dtype[name]) == ">" for name in dtype.names):
        raise Refused("the fields of its dtype are big-endian, which Zarr 3 cannot express")
    return "<"


def _data_type(dtype: np.dtype[Any], fill: Any) -> tuple[Any, Any]:
    try:
        from hyperslab.archive.zarr_store import parse_dtype
    except ImportError as error:
        raise missing("zarr", "writing references as Zarr 3") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # zarr-python warns about types outside the core specification
            data_type = parse_dtype(dtype, zarr_format=3)
            return data_type.to_json(zarr_format=3), data_type.to_json_scalar(fill, zarr_format=3)
    except (ValueError, TypeError) as error:
        raise Refused(f"Zarr 3 has no dtype {dtype}: {error}") from error


def regular_grid(chunk_shape: tuple[int, ...]) -> dict[str, Any]:
    """The grid of chunks of one shape."""
    return {"name": "regular", "configuration": {"chunk_shape": list(chunk_shape)}}


def _codecs(as_stored: chunks.Stored, dtype: np.dtype[Any]) -> tuple[list[Any], list[Any]]:
    """The codecs before and after the one that turns elements into bytes, in the order of encoding."""
    before: list[dict[str, Any]] = []
    after: list[dict[str, Any]] = []
    for codec, settings in zip(as_stored.codecs, zarr2.numcodecs_chain(as_stored, dtype.itemsize), strict=True):
        is_of_arrays = codec["name"] in OF_ARRAYS
        name = settings.pop("id")
        described: dict[str, Any] = {"name": f"numcodecs.{name}", "configuration": settings}
        if name == "transpose":
            described = {"name": name, "configuration": {"order": list(codec["order"])}}
        if is_of_arrays and after:
            raise Refused(f"its codec {codec['name']} works on elements but comes after a codec of bytes")
        if is_of_arrays and name != "transpose" and (dtype.str[0] == ">" or codec["stored"] != codec["decoded"]):
            raise Refused(f"its codec {codec['name']} changes the elements' dtype, or they are big-endian")
        (before if is_of_arrays else after).append(described)
    return before, after


def attributes(array: Array) -> dict[str, Any]:
    """The attributes of an array as xarray writes them in Zarr 3."""
    strict = _strict(array.attrs)
    strict.pop("_FillValue", None)
    fill = _cf_fill(array)
    return strict if fill is None else {**strict, "_FillValue": fill}


def _cf_fill(array: Array) -> Any:
    """`_FillValue` as xarray writes it in Zarr 3: floats as base64 of a little-endian double. None if it is unfit."""
    try:
        value = cf.fill_value(array)
    except HyperslabError:
        return None
    given = np.asarray([] if value is None else value).reshape(-1)
    kind = array.dtype.kind
    if given.size != 1 or given.dtype.kind not in "biuf" or kind not in "biuf":
        return None
    if kind == "f":
        return base64.b64encode(struct.pack("<d", float(given[0]))).decode()
    value = float(given[0])
    if not math.isfinite(value) or value != int(value):
        return None
    return bool(given[0]) if kind == "b" else int(given[0])


def _strict(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that strict JSON can express, which has no infinities and no NaN."""
    return {name: value for name, value in zarr2.plain_attributes(attributes).items() if _is_strict(value)}


def _is_strict(value: Any) -> bool:
    if isinstance(value, list | dict):
        return all(map(_is_strict, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or math.isfinite(value)

"""Arrays in Zarr version 2, which kerchunk uses; or the reason why an array cannot be expressed."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab.archive.conventions import cf
from hyperslab.archive.tree.attributes import for_json
from hyperslab.errors import HyperslabError, Refused
from hyperslab.references import chunks
from hyperslab.references.chunks import ChunkTable
from hyperslab.storage.table import known

if TYPE_CHECKING:
    from hyperslab.archive.tree.array import Array

LEVEL = 1  # the compression level, which numcodecs requires even for decoding
NUMBERS = {"f": (2, 4, 8), "c": (8, 16), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "b": (1,)}


@dataclass(frozen=True)
class Described:
    """The documents of an array, and its chunks."""

    zarray: dict[str, Any]
    attributes: dict[str, Any]
    table: ChunkTable


def described(array: Array, inline_threshold: int) -> Described:
    """Describe an array; if it has at most `inline_threshold` bytes, include its decoded values.

    Raises
    ------
    Refused
        The array cannot be expressed; the message has the reason.
    """
    if array.is_null:
        raise Refused("it has no elements (a null dataspace)")
    if array.damaged:
        raise Refused(array.damaged)
    if array.nbytes <= inline_threshold and 0 not in array.shape and array.is_own:
        return _inlined(array)
    as_stored = chunks.stored(array, are_values_expressible=True)
    filters = numcodecs_chain(as_stored, array.dtype.itemsize)
    is_transposed = bool(filters) and filters[0] == {"id": "transpose"}
    if is_transposed:
        _check_reversed(as_stored.codecs[0]["order"])
    attributes = plain_attributes(array.attrs)
    if array.dtype.hasobject:
        dtype, fill = "|O", _fill_of_values(array, as_stored.table.is_full)
    else:
        dtype, fill = (
            dtype_of(array.dtype),
            _fill(array, attributes, None if as_stored.table.is_full else set(as_stored.fills)),
        )
    zarray = array_document(array, as_stored.chunk_shape, dtype, fill)
    zarray |= {"filters": filters[is_transposed:] or None, "order": "F" if is_transposed else "C"}
    return Described(zarray, attributes, as_stored.table)


def group_documents(prefix: str, attributes: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The documents of a group by key."""
    return {f"{prefix}.zgroup": {"zarr_format": 2}, f"{prefix}.zattrs": plain_attributes(attributes)}


def array_documents(
    path: str, array: Array, dimensions: list[str], inline_threshold: int
) -> tuple[dict[str, dict[str, Any]], ChunkTable]:
    """The documents of an array by key, and its chunks.

    Raises
    ------
    Refused
        The array cannot be expressed; the message has the reason.
    """
    if any(part.startswith(".z") for part in path.split("/")):
        raise Refused("its name begins with .z, which Zarr reserves for its own documents")
    made = described(array, inline_threshold)
    attributes = {**made.attributes, "_ARRAY_DIMENSIONS": dimensions}
    return {f"{path}/.zarray": made.zarray, f"{path}/.zattrs": attributes}, made.table


def _inlined(array: Array) -> Described:
    """The whole array as one chunk without codecs."""
    try:
        values = np.asarray(array.read())
    except HyperslabError as error:
        raise Refused(f"it cannot be read: {error}") from error
    filters: list[dict[str, Any]] | None = None
    attributes = plain_attributes(array.attrs)
    if array.dtype.hasobject:
        dtype, filters, encoded = "|O", [{"id": "vlen-utf8"}], texts(values)
    else:
        dtype, encoded = dtype_of(array.dtype), values.tobytes()
    fill = None if array.dtype.hasobject else _fill(array, attributes, None)
    zarray = {**array_document(array, array.shape, dtype, fill), "filters": filters, "order": "C"}
    return Described(zarray, attributes, chunks.of_bytes(encoded, array.ndim))


def texts(values: np.ndarray[Any, Any]) -> bytes:
    """Encode text as numcodecs' `vlen-utf8` does: the number of strings, then each string after its length.

    Raises
    ------
    Refused
        Some elements are not text.
    """
    listed = values.reshape(-1).tolist()
    if not all(isinstance(text, str) for text in listed):
        raise Refused("its elements have variable length, and are not text")
    try:
        encoded = [text.encode() for text in listed]
    except UnicodeEncodeError as error:
        raise Refused("its text is not valid UTF-8") from error
    return struct.pack("<I", len(listed)) + b"".join(struct.pack("<I", len(text)) + text for text in encoded)


def array_document(array: Array, chunk_shape: tuple[int, ...], dtype: Any, fill: Any) -> dict[str, Any]:
    """The document of an array without codecs, in C order."""
    return {
        "zarr_format": 2,
        "shape": list(array.shape),
        "chunks": list(chunk_shape),
        "dtype": dtype,
        "compressor": None,
        "fill_value": fill,
        "dimension_separator": ".",
    }


def dtype_of(dtype: np.dtype[Any]) -> Any:
    """A dtype in Zarr 2: NumPy's string, or a list of field names and strings.

    Raises
    ------
    Refused
        Zarr 2 has no such dtype.
    """
    if dtype.names is not None:
        fields = [[name, dtype_of(dtype[name])] for name in dtype.names]
        if np.dtype([(name, dtype[name]) for name in dtype.names]).itemsize != dtype.itemsize or _is_mixed(dtype):
            raise Refused("the fields of its dtype have gaps between them, or are not in the order of their offsets")
        return fields
    if dtype.subdtype is not None:
        raise Refused("its elements are arrays")
    widths = NUMBERS.get(dtype.kind)
    if (widths is None and dtype.kind not in "SUVMm") or (widths is not None and dtype.itemsize not in widths):
        raise Refused(f"Zarr has no dtype {dtype}")
    return dtype.str


def _is_mixed(dtype: np.dtype[Any]) -> bool:
    assert dtype.fields is not None
    offsets = [dtype.fields[name][1] for name in dtype.names or ()]
    return offsets != sorted(offsets)


def _pair(name: str, codec: Mapping[str, Any], **settings: Any) -> dict[str, Any]:
    return {"id": name, "dtype": dtype_of(codec["decoded"]), "astype": dtype_of(codec["stored"]), **settings}


# How to decode with numcodecs what is no codec of chunks, but of elements; the table has the codecs.
OF_ELEMENTS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "delta": lambda codec: _pair("delta", codec),
    "fixedscaleoffset": lambda codec: _pair("fixedscaleoffset", codec, scale=codec["scale"], offset=codec["offset"]),
    "transpose": lambda _: {"id": "transpose"},
}


def numcodecs_chain(stored: chunks.Stored, element_nbytes: int) -> list[dict[str, Any]]:
    """The codec chain in numcodecs' terms, in the order of encoding.

    Raises
    ------
    Refused
        numcodecs lacks a codec, or cannot undo a shuffle of such a number of bytes.
    """
    nbytes: int | None = math.prod(stored.chunk_shape) * element_nbytes  # input of a step, if equal for all chunks
    for codec in stored.codecs:
        if codec["name"] == "shuffle" and (nbytes is None or nbytes % codec["element_nbytes"]):
            raise Refused("numcodecs cannot undo its shuffle: the shuffled bytes are not a whole number of elements")
        known = {"shuffle": 0, "fletcher32": 4, "crc32c": 4}.get(codec["name"])
        nbytes = None if nbytes is None or known is None else nbytes + known
    return [_numcodec(codec) for codec in stored.codecs]


def _numcodec(codec: Mapping[str, Any]) -> dict[str, Any]:
    name = codec["name"]
    if name in OF_ELEMENTS:
        return OF_ELEMENTS[name](codec)
    if name in chunks.FRAMINGS:
        return {"id": name}
    row = known(name)
    if row is None or row.numcodecs is None:
        raise Refused(f"numcodecs has no codec {name}")
    if codec.get("numcodecs") is False:
        raise Refused(f"numcodecs cannot decode {name} in HDF5's framing")
    codec_id, settings = row.settings(row.numcodecs, row.words(LEVEL, codec.get("element_nbytes", 0), 0, 0))
    return {"id": codec_id, **settings}


def _check_reversed(order: list[int]) -> None:
    if list(order) != list(range(len(order)))[::-1]:
        raise Refused("its axes are transposed in another order than reversed")


def _fill(array: Array, attributes: dict[str, Any], missing: set[bytes] | None) -> Any:
    """The fill value for Zarr 2. xarray takes it for CF's `_FillValue`, so that attribute moves into it.

    `missing` are the fill values of chunks that were never written; None if there are no such chunks.

    Raises
    ------
    Refused
        Readers would misinterpret the fill value of missing chunks.
    """
    if array.dtype.kind in "Mm":
        return _fill_of_times(array, missing)
    if missing and _is_misread(array.dtype):
        raise Refused(
            "chunks that were never written would be read wrongly: zarr-python fills text and bytes with the number 0"
        )
    unmasked = {fill for fill in missing or () if any(fill)}
    given = marked(array)
    if given is None:
        if unmasked:
            raise Refused("chunks that were never written have a fill value that is not marked as CF's _FillValue")
        return None
    if missing is not None and missing != {given.tobytes()}:
        raise Refused("the fill value of chunks that were never written differs from CF's _FillValue")
    attributes.pop("_FillValue", None)
    return json_fill(given[()])


def _fill_of_times(array: Array, missing: set[bytes] | None) -> int | str:
    """The fill value of dates or durations. Without one zarr-python reads not-a-time; xarray masks none of them.

    Raises
    ------
    Refused
        Missing chunks have different fill values.
    """
    fills = missing or {array.fill_bytes}
    if len(fills) > 1:
        raise Refused("its parts have different fill values for chunks that were never written")
    element = np.frombuffer(next(iter(fills)), array.dtype)[0]
    return "NaT" if np.isnat(element) else int(element.astype(np.int64))


def _is_misread(dtype: np.dtype[Any]) -> bool:
    """Whether zarr-python makes another record than zeros of a missing fill value: it converts the number 0."""
    fields = [dtype[name] for name in dtype.names or ()]
    return any(
        field.kind in "SU" or (field.kind == "V" and field.names is None) or _is_misread(field) for field in fields
    )


def _fill_of_values(array: Array, is_full: bool) -> Any:
    """The fill value of an array of variable-length values. Readers of CF take Zarr 2's for a missing value.

    Raises
    ------
    Refused
        Chunks that were never written have a fill value that is not a missing one.
    """
    fill = array.fill_value
    if array.fill_is_missing or (not is_full and fill not in (None, "", b"")):
        if not array.fill_is_missing:
            raise Refused("chunks that were never written have a fill value that is not marked as CF's _FillValue")
        return base64.b64encode(fill).decode() if isinstance(fill, bytes) else fill
    return None


def marked(array: Array) -> np.ndarray[Any, Any] | None:
    """CF's `_FillValue` as an element of the array; None if there is none, or it does not fit the dtype."""
    if array.dtype.names is not None or array.dtype.kind in "SUVO":
        return None
    try:
        value = cf.fill_value(array)
    except HyperslabError:
        return None
    given = np.asarray([] if value is None else value).reshape(-1)
    if given.size != 1 or given.dtype.kind not in "biufc":
        return None
    with np.errstate(all="ignore"):
        element = given[0].astype(array.dtype)
    is_same = element == given[0] or (element != element and given[0] != given[0])
    return np.asarray(element, array.dtype) if is_same else None


def json_fill(element: Any) -> Any:
    """A fill value as Zarr 2 writes it."""
    value = element.item()
    if isinstance(value, complex):
        return [_float(value.real), _float(value.imag)]
    return _float(value) if isinstance(value, float) else value


def _float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def plain_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes as kerchunk writes them in JSON; values that JSON cannot express are left out."""
    plain = {}
    for name in attributes:
        try:
            plain[name] = for_json(attributes[name])
        except (HyperslabError, OverflowError, TypeError, UnicodeDecodeError):
            continue
    return plain


def encoded(chunk: bytes) -> str:
    """A chunk's bytes in JSON, as kerchunk writes them."""
    return "base64:" + base64.b64encode(chunk).decode()

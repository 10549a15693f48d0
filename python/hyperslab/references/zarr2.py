"""An array as Zarr version 2 describes it, the language of kerchunk; or why it cannot be said."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab.errors import HyperslabError, Refused
from hyperslab.references import chunks
from hyperslab.references.chunks import ChunkTable

if TYPE_CHECKING:
    from hyperslab.archive.array import Array

LEVEL = 1  # of compressors that numcodecs wants to know even for decoding
NUMBERS = {"f": (2, 4, 8), "c": (8, 16), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "b": (1,)}


@dataclass(frozen=True)
class Described:
    """An array's documents, and its chunks."""

    zarray: dict[str, Any]
    attributes: dict[str, Any]
    table: ChunkTable


def described(array: Array, inline_threshold: int) -> Described:
    """An array; its values themselves, decoded, if they take at most `inline_threshold` bytes.

    Raises:
        Refused: With the reason.
    """
    if array.is_null:
        raise Refused("it has no elements (a null dataspace)")
    if array.damaged:
        raise Refused(array.damaged)
    if array.nbytes <= inline_threshold and 0 not in array.shape and array.is_own:
        return _inlined(array)
    found = chunks.stored(array)
    filters = numcodecs_chain(found, array.dtype.itemsize)
    is_transposed = bool(filters) and filters[0] == {"id": "transpose"}
    if is_transposed:
        _check_reversed(found.codecs[0]["order"])
    attributes = plain_attributes(array.attrs)
    fill = _fill(array, attributes, None if found.table.is_full else set(found.fills))
    zarray = _zarray(array, found.chunk_shape, dtype_of(array.dtype), fill)
    zarray |= {"filters": filters[is_transposed:] or None, "order": "F" if is_transposed else "C"}
    return Described(zarray, attributes, found.table)


def group_documents(prefix: str, attributes: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """A group's documents by their keys."""
    return {f"{prefix}.zgroup": {"zarr_format": 2}, f"{prefix}.zattrs": plain_attributes(attributes)}


def array_documents(
    path: str, array: Array, dimensions: list[str], inline_threshold: int
) -> tuple[dict[str, dict[str, Any]], ChunkTable]:
    """An array's documents by their keys, and its chunks.

    Raises:
        Refused: With the reason.
    """
    if any(part.startswith(".z") for part in path.split("/")):
        raise Refused("its name is one of Zarr's own documents")
    found = described(array, inline_threshold)
    attributes = {**found.attributes, "_ARRAY_DIMENSIONS": dimensions}
    return {f"{path}/.zarray": found.zarray, f"{path}/.zattrs": attributes}, found.table


def _inlined(array: Array) -> Described:
    """The whole array as one chunk without codecs."""
    try:
        values = np.asarray(array.read())
    except HyperslabError as error:
        raise Refused(f"it cannot be read: {error}") from error
    filters: list[dict[str, Any]] | None = None
    attributes = plain_attributes(array.attrs)
    if values.dtype.hasobject:
        dtype, filters, encoded = "|O", [{"id": "vlen-utf8"}], texts(values)
    else:
        dtype, encoded = dtype_of(values.dtype), values.tobytes()
    fill = None if values.dtype.hasobject else _fill(array, attributes, None)
    zarray = {**_zarray(array, array.shape, dtype, fill), "filters": filters, "order": "C"}
    return Described(zarray, attributes, chunks.of_bytes(encoded, array.ndim))


def texts(values: np.ndarray[Any, Any]) -> bytes:
    """numcodecs' `vlen-utf8`: how many texts, then the length of each before it.

    Raises:
        Refused: There is something else among the elements.
    """
    found = values.reshape(-1).tolist()
    if not all(isinstance(text, str) for text in found):
        raise Refused("its elements are of any length, and no texts")
    try:
        encoded = [text.encode() for text in found]
    except UnicodeEncodeError as error:
        raise Refused("its texts are no UTF-8") from error
    return struct.pack("<I", len(found)) + b"".join(struct.pack("<I", len(text)) + text for text in encoded)


def _zarray(array: Array, chunk_shape: tuple[int, ...], dtype: Any, fill: Any) -> dict[str, Any]:
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
    """A dtype in Zarr 2: NumPy's own text, or names and texts of fields.

    Raises:
        Refused: Zarr has no such elements.
    """
    if dtype.names is not None:
        fields = [[name, dtype_of(dtype[name])] for name in dtype.names]
        if np.dtype([(name, dtype[name]) for name in dtype.names]).itemsize != dtype.itemsize or _is_mixed(dtype):
            raise Refused("there are gaps between the fields of its elements, or they are in another order")
        return fields
    if dtype.subdtype is not None:
        raise Refused("its elements are arrays")
    widths = NUMBERS.get(dtype.kind)
    if (widths is None and dtype.kind not in "SUVMm") or (widths is not None and dtype.itemsize not in widths):
        raise Refused(f"Zarr has no elements of dtype {dtype}")
    return dtype.str


def _is_mixed(dtype: np.dtype[Any]) -> bool:
    assert dtype.fields is not None
    offsets = [dtype.fields[name][1] for name in dtype.names or ()]
    return offsets != sorted(offsets)


def _simple(name: str, **settings: Any) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    return lambda _: {"id": name, **settings}


def _lz4(codec: Mapping[str, Any]) -> dict[str, Any]:
    if codec["framing"] != "numcodecs":
        raise Refused("numcodecs has no lz4 in HDF5's framing")
    return {"id": "lz4", "acceleration": 1}


def _pair(name: str, codec: Mapping[str, Any], **settings: Any) -> dict[str, Any]:
    return {"id": name, "dtype": dtype_of(codec["decoded"]), "astype": dtype_of(codec["stored"]), **settings}


# What decodes each codec in numcodecs; what is not here it does not have.
NUMCODECS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "shuffle": lambda codec: {"id": "shuffle", "elementsize": codec["element_nbytes"]},
    "deflate": _simple("zlib", level=LEVEL),
    "gzip": _simple("gzip", level=LEVEL),
    "zstd": _simple("zstd", level=LEVEL),
    "blosc": _simple("blosc", cname="lz4", clevel=5, shuffle=1, blocksize=0),
    "bzip2": _simple("bz2", level=LEVEL),
    "lz4": _lz4,
    "fletcher32": _simple("fletcher32"),
    "crc32c": _simple("crc32c", location="end"),
    "delta": lambda codec: _pair("delta", codec),
    "fixedscaleoffset": lambda codec: _pair("fixedscaleoffset", codec, scale=codec["scale"], offset=codec["offset"]),
    "transpose": _simple("transpose"),
}


def numcodecs_chain(stored: chunks.Stored, element_nbytes: int) -> list[dict[str, Any]]:
    """The steps of encoding as numcodecs has them, first to last.

    Raises:
        Refused: numcodecs has no such codec, or cannot undo one on what the step before it leaves.
    """
    nbytes: int | None = math.prod(stored.chunk_shape) * element_nbytes  # that go into a step, if all chunks agree
    for codec in stored.codecs:
        if codec["name"] == "shuffle" and (nbytes is None or nbytes % codec["element_nbytes"]):
            raise Refused("its bytes were shuffled with a rest that is no whole element, which numcodecs cannot undo")
        known = {"shuffle": 0, "fletcher32": 4, "crc32c": 4}.get(codec["name"])
        nbytes = None if nbytes is None or known is None else nbytes + known
    return [_numcodec(codec) for codec in stored.codecs]


def _numcodec(codec: Mapping[str, Any]) -> dict[str, Any]:
    if codec["name"] not in NUMCODECS:
        raise Refused(f"numcodecs has no codec {codec['name']}")
    return NUMCODECS[codec["name"]](codec)


def _check_reversed(order: list[int]) -> None:
    if list(order) != list(range(len(order)))[::-1]:
        raise Refused("its axes are permuted otherwise than reversed")


def _fill(array: Array, attributes: dict[str, Any], missing: set[bytes] | None) -> Any:
    """Zarr 2's fill value as xarray understands it: CF's `_FillValue`, which is moved there from the attributes.

    `missing` are the fill values of chunks that were never written; None if there are none.

    Raises:
        Refused: Missing chunks hold something that readers of CF would take for something else.
    """
    unmasked = {fill for fill in missing or () if any(fill)}
    marked = _marked(array, attributes)
    if marked is None:
        if unmasked:
            raise Refused("chunks that were never written hold a fill value that is not marked as CF's _FillValue")
        return None
    if missing is not None and missing != {marked.tobytes()}:
        raise Refused("chunks that were never written hold another fill value than CF's _FillValue")
    attributes.pop("_FillValue")
    return json_fill(marked[()])


def _marked(array: Array, attributes: Mapping[str, Any]) -> np.ndarray[Any, Any] | None:
    """`_FillValue` as an element, if there is one that an element can be."""
    if "_FillValue" not in attributes or array.dtype.names is not None:
        return None
    given = np.asarray(array.attrs["_FillValue"]).reshape(-1)
    if given.size != 1 or array.dtype.kind in "SUVO" or given.dtype.kind not in "biufc":
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
    """Attributes that JSON can say, as kerchunk says them; values that it cannot say are left out."""
    found = {}
    for name in attributes:
        try:
            found[name] = plain(attributes[name])
        except (HyperslabError, TypeError):
            continue
    return found


def plain(value: Any) -> Any:
    """A value as JSON has it: one of a list of one, as netCDF writes them; complex numbers as pairs.

    Raises:
        TypeError: JSON has nothing like it.
    """
    if isinstance(value, np.ndarray):
        return plain(value[0]) if value.shape == (1,) else [plain(one) for one in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, complex):
        return [value.real, value.imag]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"JSON has no {type(value).__name__}")


def encoded(chunk: bytes) -> str:
    """A chunk's bytes in JSON, as kerchunk writes them."""
    return "base64:" + base64.b64encode(chunk).decode()

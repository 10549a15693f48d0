"""Attributes as netCDF libraries return them, and how to decode CF's packed numbers, exactly as xarray does.

Conventions: https://cfconventions.org, sections 2.5.1 (missing data) and 8.1 (packed data). The dtypes are those of
xarray's `CFMaskCoder` and `CFScaleOffsetCoder`, so a collection has the same bits as files that xarray decodes and
concatenates.
"""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.attributes import text
from hyperslab.archive.tree.group import Group
from hyperslab.errors import Unsupported

# Attributes that HDF5's dimension scales and netCDF use internally, also in files that netCDF did not write.
BOOKKEEPING = frozenset(
    ("CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates",
     "_NCProperties", "_nc3_strict")
)  # fmt: skip
MASKS = ("_FillValue", "missing_value")
PACKING = (*MASKS, "scale_factor", "add_offset", "_Unsigned")
# These describe packed numbers and mean nothing once the numbers are unpacked.
OF_PACKED = ("valid_min", "valid_max", "valid_range")


def attributes(node: Group | Array) -> dict[str, Any]:
    """The attributes as netCDF libraries return them: one element becomes a scalar; unreadable ones are left out."""
    values = {name: _single(value) for name, value in node.attrs.readable() if name not in BOOKKEEPING}
    if isinstance(node, Array) and (node.fill_is_missing or node.format in ("zarr", "references")):
        fill = _zarr_fill(node, values.get("_FillValue"))
        values.update({} if fill is None else {"_FillValue": fill})
    return values


def fill_value(array: Array) -> Any:
    """CF's `_FillValue` of an array, wherever its format keeps it; None if it has none.

    Raises
    ------
    HyperslabError
        The attribute cannot be read.
    """
    stored = array.attrs.get("_FillValue")
    if array.fill_is_missing or array.format in ("zarr", "references"):
        try:
            return _zarr_fill(array, stored)
        except (ValueError, struct.error):
            return None  # not base64 of a float
    return stored


def _single(value: Any) -> Any:
    if value is None:
        return ""  # an attribute without a value, which netCDF libraries return as empty text
    if isinstance(value, np.ndarray) and value.shape == (1,):
        is_text = value.dtype.kind == "S" and value.dtype.itemsize > 1  # a single byte may be anything
        return text(bytes(value[0])) if is_text else value[0]
    return value.tolist() if isinstance(value, np.ndarray) and value.dtype == object else value


def _zarr_fill(array: Array, stored: Any) -> Any:
    """CF's `_FillValue` of a Zarr array: the fill value in Zarr 2, an attribute in Zarr 3 (floats in base64).

    In Zarr 2 an attribute of that name counts only if there is no fill value, as for xarray's engine "zarr".
    """
    if array.fill_is_missing:
        return array.fill_value
    if isinstance(stored, str) and array.dtype.kind == "f":
        return array.dtype.type(struct.unpack("<d", base64.standard_b64decode(stored))[0])
    return stored


@dataclass(frozen=True)
class Conversion:
    """How to convert stored elements to those of a collection's array. The compiled part reads these fields.

    `stored_as` is the dtype to interpret them as. `packing` is the masked values, the factor, the offset, and whether
    to compute in 32 bits. If both are None, only the width or byte order of the numbers changes.
    """

    stored_as: str | None
    packing: tuple[list[float], float | None, float | None, bool] | None


def is_same(one: Any, other: Any) -> bool:
    """Whether two attribute values have the same dtype, ignoring byte order, and the same bits."""
    if one is None or other is None or isinstance(one, str) or isinstance(other, str):
        return type(one) is type(other) and bool(one == other)
    a, b = (np.asarray(value) for value in (one, other))
    a, b = (value.astype(value.dtype.newbyteorder("="), copy=False) for value in (a, b))
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def packed_alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether packed numbers with these attributes decode alike."""
    return all(is_same(one.get(name), other.get(name)) for name in PACKING)


def is_packed(attrs: dict[str, Any]) -> bool:
    """Whether xarray decodes numbers with these attributes."""
    return any(name in attrs for name in PACKING)


def decoding(dtype: np.dtype[Any], attrs: dict[str, Any]) -> tuple[np.dtype[Any], Conversion]:
    """The dtype that xarray decodes packed numbers to, and the conversion that does it.

    Raises
    ------
    Unsupported
        An attribute is not a number that they can be decoded with; the message names it.
    """
    if dtype.kind not in "iuf" or dtype.itemsize > 8 or (dtype.kind == "f" and dtype.itemsize < 4):
        raise Unsupported(f"packed numbers of dtype {dtype}")
    masks = {name: _masks(attrs[name], dtype) for name in MASKS if name in attrs}
    stored = _stored_as(dtype, attrs.get("_Unsigned"), masks)
    scale, offset = (_factor(attrs, name) for name in ("scale_factor", "add_offset"))
    masked = [value for values in masks.values() for value in values]
    is_scaled = scale is not None or offset is not None
    if masked:
        made = _float_dtype(stored, scale, offset) if is_scaled else _promoted(stored)
    elif is_scaled:
        has_mask = any(name in masks and (masks[name] or stored.kind == "f") for name in MASKS)
        made = stored if has_mask else _float_dtype(stored, scale, offset)
    else:
        return stored.newbyteorder("="), Conversion(None if stored == dtype else stored.str, None)
    if made.kind != "f" or made.itemsize not in (4, 8):
        raise Unsupported(f"a scale_factor of dtype {np.asarray(attrs.get('scale_factor')).dtype}")
    made = made.newbyteorder("=")
    packing = (
        [float(np.result_type(made, value.dtype).type(value)) for value in masked],
        None if scale is None else float(scale),
        None if offset is None else float(offset),
        made.itemsize == 4,
    )
    return made, Conversion(None if stored == dtype else stored.str, packing)


def _masks(value: Any, dtype: np.dtype[Any]) -> list[Any]:
    if isinstance(value, str | bytes) or np.asarray(value).dtype.kind not in "iuf":
        raise Unsupported(f"masked numbers {value!r} for dtype {dtype}")
    values = np.ravel(np.asarray(value))
    return [one for one in values if one == one]  # not-a-number stays itself


def _stored_as(dtype: np.dtype[Any], unsigned: Any, masks: dict[str, list[Any]]) -> np.dtype[Any]:
    """The dtype that `_Unsigned` says; of the masked numbers xarray turns `_FillValue` alone."""
    kinds = {("i", "true"): "u", ("u", "false"): "i"}
    kind = kinds.get((dtype.kind, str(unsigned)))
    if kind is None:
        return dtype
    stored = np.dtype(f"{dtype.str[0]}{kind}{dtype.itemsize}")
    if "_FillValue" in masks:
        native = stored.newbyteorder("=")
        turned = [np.array(value).astype(dtype.newbyteorder("=")).view(native)[()] for value in masks["_FillValue"]]
        masks["_FillValue"] = turned
    return stored


def _factor(attrs: dict[str, Any], name: str) -> Any:
    if name not in attrs:
        return None
    value = np.asarray(attrs[name])
    if value.size != 1 or value.dtype.kind not in "iuf":
        raise Unsupported(f"a {name} of {attrs[name]!r}")
    return value.reshape(())[()]


def _float_dtype(dtype: np.dtype[Any], scale: Any, offset: Any) -> np.dtype[Any]:
    """The dtype that xarray chooses from those of the numbers, the factor and the offset."""
    of_scale: np.dtype[Any] | None = None if scale is None else scale.dtype
    if offset is None and of_scale is not None:
        return of_scale
    if of_scale is None:  # NumPy takes None for float64 where it compares dtypes
        return np.dtype("f8")
    if of_scale == offset.dtype and of_scale in (np.dtype("f4"), np.dtype("f8")):
        return np.dtype("f8") if dtype.kind in "iu" and dtype.itemsize == 4 else of_scale
    return np.dtype("f8")


def _promoted(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The float dtype that holds the numbers of a dtype and NaN."""
    if dtype.kind == "f":
        return dtype
    return np.dtype("f4") if dtype.itemsize <= 2 else np.dtype("f8")

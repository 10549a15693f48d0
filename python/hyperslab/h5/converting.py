"""Convert elements from one dtype to another by HDF5's rules: an integer out of range becomes the nearest limit."""

from __future__ import annotations

from typing import Any

import numpy as np

from hyperslab.h5.dtypes import check_enum_dtype, check_opaque_dtype, check_string_dtype, check_vlen_dtype

NO_PATH = "Can't synchronously read data (no appropriate function for conversion path)"


def converted(array: np.ndarray[Any, Any], stored: np.dtype[Any], wanted: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Convert an array to another dtype.

    Parameters
    ----------
    array : np.ndarray
        The elements.
    stored : np.dtype
        The dtype of the dataset, with h5py's metadata.
    wanted : np.dtype
        The dtype to convert to.

    Returns
    -------
    np.ndarray
        An array of dtype `wanted`; `array` itself if there is nothing to convert.

    Raises
    ------
    OSError
        HDF5 has no conversion between the two.
    TypeError
        HDF5 has no datatype for `wanted`.
    """
    _check(wanted)
    if stored.subdtype is not None or wanted.subdtype is not None:
        return _subarrays(array, stored, wanted)
    if wanted == stored and wanted.metadata == stored.metadata and array.dtype == wanted:
        return array
    if array.size == 0:  # HDF5 looks for a conversion only if there is something to convert
        return np.empty(array.shape, wanted)
    if wanted.names is not None:
        return _fields(array, stored, wanted)
    if wanted.kind == "T":
        return _strings(array, stored, wanted)
    if wanted.hasobject or stored.hasobject:
        return _objects(array, stored, wanted)
    if stored.names is not None:
        raise OSError(NO_PATH)
    return _plain(array, stored, wanted)


def _check(wanted: np.dtype[Any]) -> None:
    if wanted.kind in "UMm" and not check_opaque_dtype(wanted):
        raise TypeError(f"No conversion path for dtype: {wanted!r}")


def _plain(array: np.ndarray[Any, Any], stored: np.dtype[Any], wanted: np.dtype[Any]) -> np.ndarray[Any, Any]:
    numbers, either = "biuf", {stored.kind, wanted.kind}
    if either <= {*numbers} or either == {"c"}:
        if check_enum_dtype(wanted) is not None and check_enum_dtype(stored) is None and wanted.kind != "b":
            raise OSError(NO_PATH)
        if wanted.kind == "b" and stored.kind == "f":
            raise OSError(NO_PATH)
        if _differ_in_order(stored, wanted):  # here HDF5 only swaps the bytes and ignores signs
            return array.astype(wanted)
        return _numbers(array, wanted)
    if either == {"S"} or (either == {"V"} and stored.itemsize == wanted.itemsize):
        return array.astype(wanted)
    if stored.kind == wanted.kind and stored.kind in "Mm" and stored == wanted:
        return array
    raise OSError(NO_PATH)


def _differ_in_order(stored: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether both are integers of equal width and opposite byte order."""
    is_swapped = stored.isnative != wanted.isnative
    return is_swapped and stored.kind in "iu" and wanted.kind in "iu" and stored.itemsize == wanted.itemsize > 1


def _numbers(array: np.ndarray[Any, Any], wanted: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if wanted.kind not in "iu" or array.dtype.kind == "b":
        with np.errstate(over="ignore", invalid="ignore"):
            return array.astype(wanted)
    limits = np.iinfo(wanted)
    if array.dtype.kind == "f":
        whole = np.nan_to_num(np.trunc(array), nan=0.0, posinf=np.inf, neginf=-np.inf)
        out = np.where(np.abs(whole) < 2.0**62, whole, 0).astype("i8").clip(*_within(limits, "i8"))
        out = out.astype(wanted)
        out[whole >= float(limits.max)] = limits.max
        out[whole <= float(limits.min)] = limits.min
        return out
    low, high = _within(limits, array.dtype)
    return array.clip(low, high).astype(wanted)


def _within(limits: Any, dtype: Any) -> tuple[int, int]:
    own = np.iinfo(dtype)
    return max(int(limits.min), int(own.min)), min(int(limits.max), int(own.max))


def _fields(array: np.ndarray[Any, Any], stored: np.dtype[Any], wanted: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Convert the fields that both dtypes have by name; the other fields of `wanted` become zero."""
    if stored.names is None:
        raise OSError(NO_PATH)
    out = np.zeros(array.shape, wanted)
    for name in wanted.names or ():
        if name in stored.names:
            inner, target = stored.fields[name][0], wanted.fields[name][0]  # type: ignore[index]
            out[name] = converted(array[name], inner, target)
    return out


def _subarrays(array: np.ndarray[Any, Any], stored: np.dtype[Any], wanted: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if stored.shape != wanted.shape:
        raise OSError(NO_PATH)
    return converted(array, stored.base, wanted.base)


def _strings(array: np.ndarray[Any, Any], stored: np.dtype[Any], wanted: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if check_string_dtype(stored) is None:
        raise OSError(NO_PATH)
    out = np.empty(array.shape, wanted)
    flat = out.reshape(-1)
    for place, one in enumerate(array.flat):
        flat[place] = one.decode("utf-8")
    return out


def _objects(array: np.ndarray[Any, Any], stored: np.dtype[Any], wanted: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Convert text from one encoding to another, and the elements of sequences of variable length."""
    theirs, ours = check_vlen_dtype(stored), check_vlen_dtype(wanted)
    if wanted.kind == "O" and not wanted.metadata:
        raise OSError(NO_PATH)
    if check_string_dtype(stored) is not None and check_string_dtype(wanted) is not None:
        return _text(array, stored, wanted)
    if theirs is None or ours is None or isinstance(theirs, type) or isinstance(ours, type):
        if stored.metadata == wanted.metadata and stored == wanted:
            return array
        raise OSError(NO_PATH)
    out = np.empty(array.shape, wanted)
    flat = out.reshape(-1)
    for place, one in enumerate(array.flat):
        flat[place] = converted(one, np.dtype(theirs), np.dtype(ours))
    return out


def _text(array: np.ndarray[Any, Any], stored: np.dtype[Any], wanted: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if stored.kind == "O" and wanted.kind == "O":
        return array.astype(wanted) if array.dtype.metadata == wanted.metadata else array.view(wanted)
    out = np.empty(array.shape, wanted)
    flat = out.reshape(-1)
    for place, one in enumerate(array.flat):
        flat[place] = bytes(one)
    return out

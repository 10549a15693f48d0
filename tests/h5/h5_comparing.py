"""Whether h5py and `hyperslab.h5` gave the same: values, dtypes with their metadata, objects, classes of errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

# Objects are compared by what they say of themselves; these hold the number of an object in memory.
WITHOUT_REPR = (
    "AttributeManager",
    "DimensionManager",
    "DimensionProxy",
    "AsTypeView",
    "AsStrView",
    "FieldsView",
    "HardLink",
)


def metadata(dtype: np.dtype[Any]) -> Any:
    """A dtype's metadata with classes by their names: h5py's `Reference` is another class than ours."""
    if dtype.subdtype is not None:
        return (metadata(dtype.base), dtype.shape)
    if dtype.names is not None:
        return {name: (metadata(dtype.fields[name][0]), dtype.fields[name][1]) for name in dtype.names}
    found = {}
    for key, value in (dtype.metadata or {}).items():
        if isinstance(value, type):
            found[key] = value.__name__
        elif isinstance(value, np.dtype):
            found[key] = (value, metadata(value))
        else:
            found[key] = value
    return found


def differences(theirs: Any, ours: Any, where: str = "it") -> str | None:
    """What differs; None if nothing does."""
    if isinstance(theirs, BaseException) or isinstance(ours, BaseException):
        return _errors(theirs, ours, where)
    if isinstance(theirs, np.dtype):
        same = isinstance(ours, np.dtype) and theirs == ours and metadata(theirs) == metadata(ours)
        return None if same else f"{where}: {theirs!r} {metadata(theirs)} and {ours!r} {_metadata_of(ours)}"
    if isinstance(theirs, np.ndarray):
        return _arrays(theirs, ours, where)
    if isinstance(theirs, np.void) and theirs.dtype.names is not None:
        return (
            _arrays(np.asarray(theirs), np.asarray(ours), where) if isinstance(ours, np.void) else f"{where}: {ours!r}"
        )
    if isinstance(theirs, np.generic):
        same = type(theirs) is type(ours) and np.array_equal(
            np.asarray(theirs), np.asarray(ours), equal_nan=_may_be_nan(theirs)
        )
        return None if same else f"{where}: {theirs!r} ({type(theirs)}) and {ours!r} ({type(ours)})"
    if isinstance(theirs, Mapping) and type(theirs) is dict:
        return differences(list(theirs.items()), list(ours.items()) if isinstance(ours, dict) else ours, where)
    if isinstance(theirs, tuple | list):
        return _sequences(theirs, ours, where)
    if theirs is None or isinstance(theirs, str | bytes | bool | int | float | complex | slice | range):
        same = type(theirs) is type(ours) and theirs == ours
        return None if same else f"{where}: {theirs!r} and {ours!r}"
    return _objects(theirs, ours, where)


def _metadata_of(ours: Any) -> Any:
    return metadata(ours) if isinstance(ours, np.dtype) else ""


def _may_be_nan(value: Any) -> bool:
    return np.asarray(value).dtype.kind in "fcMm"


def _errors(theirs: Any, ours: Any, where: str) -> str | None:
    if type(theirs) is type(ours):
        return None
    # A subclass is caught by whoever catches theirs.
    if isinstance(theirs, BaseException) and isinstance(ours, type(theirs)):
        return None
    return f"{where}: {type(theirs).__name__}({str(theirs)[:200]}) and {type(ours).__name__}({str(ours)[:200]})"


def _arrays(theirs: np.ndarray[Any, Any], ours: Any, where: str) -> str | None:
    if not isinstance(ours, np.ndarray):
        return f"{where}: {theirs!r} and {type(ours)} {ours!r}"
    if theirs.shape != ours.shape or theirs.dtype != ours.dtype:
        return f"{where}: {theirs.shape} {theirs.dtype} and {ours.shape} {ours.dtype}"
    if metadata(theirs.dtype) != metadata(ours.dtype):
        return f"{where}: metadata {metadata(theirs.dtype)} and {metadata(ours.dtype)}"
    if theirs.dtype.names is not None:
        for name in theirs.dtype.names:
            found = _arrays(np.asarray(theirs[name]), np.asarray(ours[name]), f"{where}[{name!r}]")
            if found:
                return found
        return None
    if theirs.dtype.kind == "O":
        for place, (one, other) in enumerate(zip(theirs.reshape(-1), ours.reshape(-1), strict=True)):
            found = differences(one, other, f"{where}[{place}]")
            if found:
                return found
        return None
    same = np.array_equal(theirs, ours, equal_nan=theirs.dtype.kind in "fcMm")
    return None if same else f"{where}: {theirs!r} and {ours!r}"


def _sequences(theirs: Any, ours: Any, where: str) -> str | None:
    if type(theirs).__name__ != type(ours).__name__ or len(theirs) != len(ours):
        return f"{where}: {theirs!r} and {ours!r}"
    for place, (one, other) in enumerate(zip(theirs, ours, strict=True)):
        found = differences(one, other, f"{where}[{place}]")
        if found:
            return found
    return None


def _objects(theirs: Any, ours: Any, where: str) -> str | None:
    name = type(theirs).__name__
    if isinstance(theirs, type):
        return None if isinstance(ours, type) and theirs.__name__ == ours.__name__ else f"{where}: {theirs} and {ours}"
    if name != type(ours).__name__:
        return f"{where}: a {name} and a {type(ours).__name__}"
    if name in WITHOUT_REPR:
        return None
    if name.endswith("ID") or "object at 0x" in repr(theirs):
        return None
    return None if repr(theirs) == repr(ours) else f"{where}: {theirs!r} and {ours!r}"

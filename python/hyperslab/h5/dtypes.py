"""Dtypes for text, sequences of variable length, enumerations and references, with the metadata that h5py uses.

h5py's `check_*` functions understand these dtypes, and the functions here understand h5py's dtypes.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hyperslab.h5.references import Reference, RegionReference

ENCODINGS = ("ascii", "utf-8")


class string_info(NamedTuple):  # noqa: N801 -- h5py's name
    """The encoding of text, and its fixed length in bytes; `length` is None for text of variable length."""

    encoding: str
    length: int | None


def string_dtype(encoding: str = "utf-8", length: int | None = None) -> np.dtype[Any]:
    """Return a dtype for text.

    Parameters
    ----------
    encoding : {"utf-8", "ascii"}
        The encoding.
    length : int or None
        The fixed length in bytes; None for text of variable length.

    Raises
    ------
    ValueError
        The encoding is unknown.
    TypeError
        `length` is not an integer.
    """
    try:
        name = codecs.lookup(encoding).name
    except LookupError:
        name = encoding
    if name not in ENCODINGS:
        raise ValueError(f"Invalid encoding ({encoding!r}); 'utf-8' or 'ascii' allowed")
    if length is None:
        return np.dtype("O", metadata={"vlen": str if name == "utf-8" else bytes})
    if not isinstance(length, int):
        raise TypeError(f"length must be integer or None (got {length!r})")
    return np.dtype(f"S{length}", metadata={"h5py_encoding": name})


def vlen_dtype(basetype: npt.DTypeLike) -> np.dtype[Any]:
    """Return a dtype for sequences of variable length with elements of `basetype`."""
    return np.dtype("O", metadata={"vlen": basetype})


def enum_dtype(values_dict: Mapping[str, int], basetype: npt.DTypeLike = np.uint8) -> np.dtype[Any]:
    """Return a dtype for an enumeration.

    Parameters
    ----------
    values_dict : Mapping[str, int]
        The value of each name.
    basetype : dtype-like
        An integer dtype.

    Raises
    ------
    TypeError
        `basetype` is not an integer dtype.
    """
    base = np.dtype(basetype)
    if not np.issubdtype(base, np.integer):
        raise TypeError("Only integer types can be used as enums")
    return np.dtype(base, metadata={"enum": values_dict})


def opaque_dtype(np_dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return a dtype that HDF5 stores as opaque bytes, for example for NumPy's dates.

    Raises
    ------
    TypeError
        The dtype has fields, a sub-array, objects, or no size.
    """
    dtype = np.dtype(np_dtype)
    refusals = [
        (np.issubdtype(dtype, np.object_), "Cannot store numpy object arrays as opaque data"),
        (dtype.names is not None, "Cannot store numpy structured arrays as opaque data"),
        (dtype.subdtype is not None, "Cannot store numpy sub-array dtype as opaque data"),
        (dtype.itemsize == 0, "dtype for opaque data must have explicit size"),
    ]
    for applies, said in refusals:
        if applies:
            raise TypeError(said)
    return np.dtype(dtype, metadata={"h5py_opaque": True})


ref_dtype: np.dtype[Any] = np.dtype("O", metadata={"ref": Reference})
regionref_dtype: np.dtype[Any] = np.dtype("O", metadata={"ref": RegionReference})


def special_dtype(**kinds: Any) -> np.dtype[Any]:
    """Return one of these dtypes, as older code does: `vlen=str`, `enum=("i1", {...})` or `ref=Reference`."""
    if len(kinds) != 1:
        raise TypeError("Exactly one keyword may be provided")
    [(kind, value)] = kinds.items()
    if kind == "vlen":
        return vlen_dtype(value)
    if kind == "enum":
        try:
            base, names = value
        except TypeError:
            raise TypeError("Enums must be created from a 2-tuple (basetype, values_dict)") from None
        return enum_dtype(names, base)
    if kind == "ref":
        if value not in (Reference, RegionReference):
            raise ValueError("Ref class must be Reference or RegionReference")
        return ref_dtype if value is Reference else regionref_dtype
    raise TypeError(f'Unknown special type "{kind}"')


def _metadata(dtype: Any, key: str, otherwise: Any = None) -> Any:
    metadata = getattr(dtype, "metadata", None)
    return otherwise if metadata is None else metadata.get(key, otherwise)


def check_vlen_dtype(dt: np.dtype[Any]) -> Any:
    """Return the element type of sequences of variable length (`str` or `bytes` for text); None for other dtypes."""
    if dt.kind == "T":
        return str
    return _metadata(dt, "vlen")


def check_string_dtype(dt: np.dtype[Any]) -> string_info | None:
    """Return the encoding and the length of text; None for other dtypes."""
    vlen = check_vlen_dtype(dt)
    if vlen is str:
        return string_info("utf-8", None)
    if vlen is bytes:
        return string_info("ascii", None)
    if dt.kind == "S":
        return string_info(_metadata(dt, "h5py_encoding", "ascii"), dt.itemsize)
    return None


def check_enum_dtype(dt: np.dtype[Any]) -> dict[str, int] | None:
    """Return the names and values of an enumeration; None for other dtypes."""
    members: dict[str, int] | None = _metadata(dt, "enum")
    return members


def check_opaque_dtype(dt: np.dtype[Any]) -> bool:
    """Whether HDF5 stores the dtype as opaque bytes."""
    return bool(_metadata(dt, "h5py_opaque", False))


def check_ref_dtype(dt: np.dtype[Any]) -> type[Reference] | None:
    """Return `Reference` or `RegionReference` for a dtype of references; None for other dtypes."""
    kind: type[Reference] | None = _metadata(dt, "ref")
    return kind


def check_dtype(**kinds: Any) -> Any:
    """Check a dtype, as older code does: `vlen=dtype`, `enum=dtype` or `ref=dtype`; None if it is of another kind."""
    if len(kinds) != 1:
        raise TypeError("Exactly one keyword may be provided")
    [(kind, dtype)] = kinds.items()
    if kind not in ("vlen", "enum", "ref"):
        raise TypeError(f'Unknown special type "{kind}"')
    return _metadata(dtype, kind)


class Empty:
    """The value of a dataset or attribute with a null dataspace, which has a dtype but no elements.

    Parameters
    ----------
    dtype : dtype-like
        The dtype.
    """

    shape = None
    size = None

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.dtype: Any = np.dtype(dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Empty) and self.dtype == other.dtype

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Empty(dtype={self.dtype!r})"

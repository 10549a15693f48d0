"""Attributes that mean the same in another file."""

from __future__ import annotations

from typing import Any

from hyperslab.archive.tree.attributes import Attributes
from hyperslab.errors import Unsupported
from hyperslab.versions.commit.attributes import as_in_hdf5

SCALES = ("DIMENSION_LIST", "REFERENCE_LIST")  # which array is the scale of which: references in both directions


def portable(attributes: Attributes, leave: tuple[str, ...] = ()) -> dict[str, Any]:
    """All attributes, as values that h5py stores with the same types, without some names.

    Raises
    ------
    Unsupported
        One of them is a reference, or has another variable length than text.
    DamagedFile
        One of them cannot be read.
    """
    return {name: portable_value(attributes, name) for name in attributes if name not in leave}


def portable_value(attributes: Attributes, name: str) -> Any:
    """An attribute as a value that h5py stores with the same type; errors as for `portable`."""
    _, dtype, _ = attributes.stored(name)
    if dtype is not None and dtype.hasobject and (dtype.metadata or {}).get("vlen") is not str:
        raise Unsupported(f"attribute {name!r} is a reference, or of variable length, which cannot go to another file")
    return as_in_hdf5(attributes, tuple(other for other in attributes if other != name))[name]

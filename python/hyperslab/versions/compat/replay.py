"""The names in versioned-hdf5's `replay` that its users import: they rewrite committed versions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import h5py

from hyperslab.versions.compat.api import VersionedHDF5File
from hyperslab.versions.compat.codecs import GIVEN_NOTHING, given
from hyperslab.versions.compat.opened import Opened

__all__ = ["delete_version", "delete_versions", "modify_metadata"]


def delete_versions(f: VersionedHDF5File | h5py.Group, versions_to_delete: str | Iterable[str]) -> None:
    """Delete versions, and the data that no other version has.

    Raises
    ------
    ValueError
        A version does not exist.
    """
    opened = _opened(f)
    opened.native.delete_versions(versions_to_delete)
    opened.changed()


delete_version = delete_versions


def modify_metadata(
    f: VersionedHDF5File | h5py.Group,
    dataset_name: str,
    *,
    chunks: Any = None,
    dtype: Any = None,
    fillvalue: Any = None,
    compression: Any = GIVEN_NOTHING,
    compression_opts: Any = GIVEN_NOTHING,
    scaleoffset: Any = GIVEN_NOTHING,
    shuffle: Any = GIVEN_NOTHING,
    fletcher32: Any = GIVEN_NOTHING,
) -> None:
    """Change how an array is stored, in all versions. Options that you leave out stay as they are.

    Parameters
    ----------
    f : VersionedHDF5File | h5py.Group
        The file.
    dataset_name : str
        The path of the array in a version.
    chunks : int, tuple of int or True, optional
        The new chunk shape in elements.
    dtype : dtype, optional
        The new dtype; all elements are cast to it.
    fillvalue : scalar, optional
        The new fill value; elements equal to the old fill value become the new one.
    compression : str, int or None
        The codec; None turns it off.
    compression_opts : int, tuple or None
        The settings of the codec.
    scaleoffset : int or None
        The setting of HDF5's scale-offset filter; None turns it off.
    shuffle : bool
        Whether bytes are shuffled before compression.
    fletcher32 : bool
        Whether chunks have checksums.

    Raises
    ------
    KeyError
        The array does not exist.
    ValueError
        The options contradict each other.
    """
    opened = _opened(f)
    codecs = given(compression, compression_opts, scaleoffset, shuffle, fletcher32)
    opened.native.modify_metadata(dataset_name, chunks=chunks, dtype=dtype, fillvalue=fillvalue, **codecs)
    opened.changed()


def _opened(f: VersionedHDF5File | h5py.Group) -> Opened:
    return Opened.of(f.f if isinstance(f, VersionedHDF5File) else f)

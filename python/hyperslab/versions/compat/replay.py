"""Names of versioned-hdf5's `replay` that its users import: what rewrites versions that were committed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import h5py

from hyperslab.versions.compat.api import VersionedHDF5File
from hyperslab.versions.compat.codecs import GIVEN_NOTHING, given
from hyperslab.versions.compat.opened import Opened

__all__ = ["delete_version", "delete_versions", "modify_metadata"]


def delete_versions(f: VersionedHDF5File | h5py.Group, versions_to_delete: str | Iterable[str]) -> None:
    """Delete versions, with the data that no other has.

    Raises
    ------
    ValueError
        There is no such version.
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
    """Change how an array is stored, in all versions. What is left out stays as it is.

    Parameters
    ----------
    f : VersionedHDF5File | h5py.Group
        The file.
    dataset_name : str
        The array's path in a version.
    chunks : Any
        The shape of a chunk.
    dtype : Any
        The elements' dtype; they are cast.
    fillvalue : Any
        What elements are that nobody wrote; those that are the old one become this one.
    compression : Any
        The codec; None for none.
    compression_opts : Any
        Its settings.
    scaleoffset : Any
        The setting of HDF5's scale-offset filter.
    shuffle : Any
        Whether bytes are shuffled before compression.
    fletcher32 : Any
        Whether chunks have checksums.

    Raises
    ------
    KeyError
        There is no such array.
    ValueError
        What is given contradicts itself.
    """
    opened = _opened(f)
    codecs = given(compression, compression_opts, scaleoffset, shuffle, fletcher32)
    opened.native.modify_metadata(dataset_name, chunks=chunks, dtype=dtype, fillvalue=fillvalue, **codecs)
    opened.changed()


def _opened(f: VersionedHDF5File | h5py.Group) -> Opened:
    return Opened.of(f.f if isinstance(f, VersionedHDF5File) else f)

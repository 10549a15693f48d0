"""Arrays with all their versions in one HDF5 file, where unchanged chunks are stored only once.

The layout is that of versioned-hdf5 (its DATA_VERSION 4): each library can read and extend the files of the other.
"""

from typing import TYPE_CHECKING, Any

from hyperslab.versions.file import VersionedFile
from hyperslab.versions.layout.table import Version, VersionTable
from hyperslab.versions.stage.staged_array import StagedArray
from hyperslab.versions.stage.staged_group import StagedGroup

if TYPE_CHECKING:
    from hyperslab.versions.rewrite.repairing import Loss, Repair, repair

__all__ = ["Loss", "Repair", "StagedArray", "StagedGroup", "Version", "VersionTable", "VersionedFile", "repair"]


def __getattr__(name: str) -> Any:
    """Import what needs h5py on first use, because you can read versions without h5py."""
    if name not in ("Loss", "Repair", "repair"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    from hyperslab.needed import need_h5py

    need_h5py("repairing a file with versions")
    return getattr(import_module("hyperslab.versions.rewrite.repairing"), name)

"""Arrays with all their versions in one HDF5 file, where unchanged chunks are stored only once.

The layout is that of versioned-hdf5 (its DATA_VERSION 4): each library can read and extend the files of the other.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hyperslab.versions.branching.mergeable import Merge
    from hyperslab.versions.branching.merging import Conflict
    from hyperslab.versions.file import VersionedFile
    from hyperslab.versions.layout.refs import Branch, Tag
    from hyperslab.versions.layout.table import Version, VersionTable
    from hyperslab.versions.rewrite.repairing import Loss, Repair, repair
    from hyperslab.versions.stage.staged_array import StagedArray
    from hyperslab.versions.stage.staged_group import StagedGroup
    from hyperslab.versions.transfer.exchange import Bundled, apply, bundle, pull, push
    from hyperslab.versions.transfer.folder_check import FolderVerification, verify_folder
    from hyperslab.versions.transfer.importing import Imported, import_files
    from hyperslab.versions.transfer.ref_moves import Taken

__all__ = [
    "Branch",
    "Bundled",
    "Conflict",
    "FolderVerification",
    "Imported",
    "Loss",
    "Merge",
    "Repair",
    "StagedArray",
    "StagedGroup",
    "Tag",
    "Taken",
    "Version",
    "VersionTable",
    "VersionedFile",
    "apply",
    "bundle",
    "import_files",
    "pull",
    "push",
    "repair",
    "verify_folder",
]

_HOMES = {
    "VersionedFile": "file",
    "Merge": "branching.mergeable",
    "Conflict": "branching.merging",
    **dict.fromkeys(("Branch", "Tag"), "layout.refs"),
    **dict.fromkeys(("Version", "VersionTable"), "layout.table"),
    **dict.fromkeys(("Loss", "Repair", "repair"), "rewrite.repairing"),
    "StagedArray": "stage.staged_array",
    "StagedGroup": "stage.staged_group",
    "Taken": "transfer.ref_moves",
    **dict.fromkeys(("Bundled", "apply", "bundle", "pull", "push"), "transfer.exchange"),
    **dict.fromkeys(("FolderVerification", "verify_folder"), "transfer.folder_check"),
    **dict.fromkeys(("Imported", "import_files"), "transfer.importing"),
}


def __getattr__(name: str) -> Any:
    """Import everything on first use: `convert` needs one module of this folder, and reading versions needs no h5py."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    from hyperslab.needed import need_h5py

    if _HOMES[name] == "rewrite.repairing":
        need_h5py("repairing a file with versions")
    if _HOMES[name].startswith("transfer."):
        need_h5py("writing versions")
    return getattr(import_module(f"hyperslab.versions.{_HOMES[name]}"), name)

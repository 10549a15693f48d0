"""Arrays with all their versions in one HDF5 file, without copies of what did not change.

The layout is that of versioned-hdf5 (its DATA_VERSION 4): either library reads and adds to the other's files.
"""

from hyperslab.versions.file import VersionedFile
from hyperslab.versions.repair import Loss, Repair, repair
from hyperslab.versions.staged_array import StagedArray
from hyperslab.versions.staged_group import StagedGroup
from hyperslab.versions.table import Version, VersionTable

__all__ = ["Loss", "Repair", "StagedArray", "StagedGroup", "Version", "VersionTable", "VersionedFile", "repair"]

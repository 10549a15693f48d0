"""The names of versioned-hdf5 2.6, on top of `hyperslab.versions`. Existing code runs with

    import hyperslab.versions.compat as versioned_hdf5

or, if other modules import it too, with `sys.modules["versioned_hdf5"] = hyperslab.versions.compat` before they do.
The files are the same. `VersionedHDF5File` works on an `h5py.File` of yours, so if your process is killed during a
commit, the file can be damaged; `hyperslab.VersionedFile(path, "r+")` is safe from that.
"""

from hyperslab.versions.compat.api import VersionedHDF5File
from hyperslab.versions.compat.replay import delete_version, delete_versions, modify_metadata

__version__ = "2.6.0"  # the release of versioned-hdf5 whose names these are

__all__ = ["VersionedHDF5File", "delete_version", "delete_versions", "modify_metadata"]

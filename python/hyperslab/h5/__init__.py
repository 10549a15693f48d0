"""The reading part of h5py's interface on hyperslab's engine: `import hyperslab.h5 as h5py`.

You can open files only for reading. h5py need not be installed.
"""

from __future__ import annotations

from hyperslab.h5.attributes import AttributeManager
from hyperslab.h5.dataset import Dataset, VDSmap
from hyperslab.h5.dtypes import (
    Empty,
    check_dtype,
    check_enum_dtype,
    check_opaque_dtype,
    check_ref_dtype,
    check_string_dtype,
    check_vlen_dtype,
    enum_dtype,
    opaque_dtype,
    ref_dtype,
    regionref_dtype,
    special_dtype,
    string_dtype,
    vlen_dtype,
)
from hyperslab.h5.file import File, is_hdf5
from hyperslab.h5.group import Datatype, Group
from hyperslab.h5.links import ExternalLink, HardLink, SoftLink
from hyperslab.h5.objects import HLObject
from hyperslab.h5.references import Reference, RegionReference
from hyperslab.h5.selecting import MultiBlockSlice

UNLIMITED = (1 << 64) - 1  # HDF5's value for an unlimited axis

__all__ = [
    "UNLIMITED", "AttributeManager", "Dataset", "Datatype", "Empty", "ExternalLink", "File", "Group", "HLObject",
    "HardLink", "MultiBlockSlice", "Reference", "RegionReference", "SoftLink", "VDSmap", "check_dtype",
    "check_enum_dtype", "check_opaque_dtype", "check_ref_dtype", "check_string_dtype", "check_vlen_dtype",
    "enum_dtype", "is_hdf5", "opaque_dtype", "ref_dtype", "regionref_dtype", "special_dtype", "string_dtype",
    "vlen_dtype",
]  # fmt: skip

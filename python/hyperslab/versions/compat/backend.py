"""The names in versioned-hdf5's `backend` that its users import."""

from __future__ import annotations

import h5py

from hyperslab.versions.commit.writing import prepare
from hyperslab.versions.layout.names import DATA_VERSION
from hyperslab.versions.layout.names import DEFAULT_CHUNK_LENGTH as DEFAULT_CHUNK_SIZE

__all__ = ["DATA_VERSION", "DEFAULT_CHUNK_SIZE", "initialize"]


def initialize(f: h5py.Group) -> None:
    """Create the group of versions in a file, or in a group of one."""
    prepare(f)

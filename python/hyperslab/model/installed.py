"""The libraries as they are on this machine, with the versions and the configuration that change what they request."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

from hyperslab.errors import MissingLibrary
from hyperslab.formats import availability
from hyperslab.model.hdf5_settings import Hdf5Settings
from hyperslab.model.libraries import LIBRARIES, Hdf5, Library, Zarr

GAP_KEY, JOINED_KEY = "array.sharding_coalesce_max_gap_bytes", "array.sharding_coalesce_max_bytes"


def installed_library(name: str) -> Library:
    """The library of a name in `LIBRARIES`, as it is installed; if it is not, as its newest version is that we know."""
    if name == "hdf5":
        return Hdf5Settings().library()
    return installed_zarr() if name == "zarr" else LIBRARIES[name]


def installed_hdf5() -> Hdf5:
    """HDF5 with the defaults of the version that h5py uses.

    Raises
    ------
    MissingLibrary
        h5py is not installed.
    """
    from hyperslab.formats.hdf5 import import_h5py

    return Hdf5.of_version(import_h5py().version.hdf5_version)


def installed_zarr() -> Zarr:
    """zarr-python with the defaults of the installed version and what its configuration says about shards."""
    version = zarr_version()
    made = Zarr() if version is None else Zarr.of_version(version)
    if version is None or made.joined_gap_nbytes is None:
        return made
    configured = _configuration()
    return replace(
        made,
        joined_gap_nbytes=int(configured.get(GAP_KEY, made.joined_gap_nbytes)),
        joined_nbytes=int(configured.get(JOINED_KEY, made.joined_nbytes)),
    )


@cache
def zarr_version() -> str | None:
    """The version of zarr-python that is installed, or None."""
    library = availability("zarr3")
    return None if isinstance(library, MissingLibrary) else library.version


def _configuration() -> Any:
    """zarr-python's configuration: that of the imported module, or else what its files and variables say.

    Importing zarr takes a third of a second, and its configuration alone does not.
    """
    imported = sys.modules.get("zarr")
    return imported.config if imported is not None else _read_configuration()


@cache
def _read_configuration() -> Any:
    return import_module("donfig").Config("zarr")  # zarr-python requires it

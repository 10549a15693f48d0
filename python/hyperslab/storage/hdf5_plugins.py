"""h5py with the codecs of hdf5plugin, if it is installed: the only place that loads hdf5plugin."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

from hyperslab.needed import missing


def plugins() -> Any:
    """hdf5plugin, which registers its codecs when it is imported.

    Raises
    ------
    MissingLibrary
        It is not installed.
    """
    try:
        return import_module("hdf5plugin")
    except ImportError as error:
        raise missing("hdf5plugin") from error


def h5py_with_plugins() -> Any:
    """h5py, whose libhdf5 has all codecs that are installed."""
    with suppress(ImportError):
        plugins()
    return import_module("h5py")


@cache
def h5py_with_own_plugins() -> Any:
    """The same with hdf5plugin's codecs in the place of others.

    netCDF4 puts its own plugins on HDF5's path, and its blosc works only with its own HDF5.
    """
    h5py = h5py_with_plugins()
    with suppress(ImportError):
        plugins().register(force=True)
    return h5py


def plugins_version() -> str | None:
    """The version of hdf5plugin; None if it is not installed."""
    try:
        return str(plugins().version)
    except ImportError:
        return None


def has_codec(number: int) -> bool:
    """Whether h5py's libhdf5 has the codec ("filter") with this number; hdf5plugin is loaded if that can help."""
    import h5py

    if not h5py.h5z.filter_avail(number):
        h5py_with_plugins()
    return bool(h5py.h5z.filter_avail(number))

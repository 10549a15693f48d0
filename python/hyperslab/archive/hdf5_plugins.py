"""h5py with the codecs of hdf5plugin, if it is installed."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any


def h5py_with_plugins() -> Any:
    """h5py, whose libhdf5 has all codecs that are installed."""
    with suppress(ImportError):
        import_module("hdf5plugin")  # registers codecs
    return import_module("h5py")


def has_codec(number: int) -> bool:
    """Whether h5py's libhdf5 has the codec ("filter") with this number; hdf5plugin is loaded if that can help."""
    import h5py

    if not h5py.h5z.filter_avail(number):
        h5py_with_plugins()
    return bool(h5py.h5z.filter_avail(number))

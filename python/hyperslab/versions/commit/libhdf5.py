"""Functions of the libhdf5 that h5py loaded, by their addresses; we do not link to libhdf5 ourselves."""

from __future__ import annotations

import ctypes
from functools import cache

import h5py


@cache
def address(name: str) -> int | None:
    """The address of a function, or None if it is missing or may have another signature."""
    if h5py.version.hdf5_version_tuple < (1, 10, 4):
        return None
    try:
        library = ctypes.CDLL(h5py.h5s.__file__)  # its own symbols, and those of the libraries that it links to
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None


def evict_on_close(access: h5py.h5p.PropFAID) -> bool:
    """Make libhdf5 forget an object when it is closed. Returns whether that is possible."""
    found = address("H5Pset_evict_on_close")
    if found is None:
        return False
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_bool)(found)
    return bool(function(access.id, True) >= 0)

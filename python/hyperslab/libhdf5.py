"""The libhdf5 that h5py loaded; we do not link to libhdf5 ourselves."""

from __future__ import annotations

from functools import cache

import h5py

from hyperslab._core import LibHdf5


@cache
def loaded() -> LibHdf5 | None:
    """The libhdf5 of h5py, or None if it is too old for us or cannot be found."""
    return LibHdf5.of_h5py()


def evict_on_close(access: h5py.h5p.PropFAID) -> None:
    """Make libhdf5 forget the objects of a file when they are closed, if that is possible."""
    library = loaded()
    if library is not None:
        library.evict_on_close(access.id)

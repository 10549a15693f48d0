"""Where a store of zarr-python keeps its keys, if we can reach them ourselves."""

from __future__ import annotations

import os
import re

from zarr.abc.store import Store
from zarr.storage import FsspecStore, LocalStore, ObjectStore

from hyperslab.archive.foreign_stores import location_of
from hyperslab.archive.remote import Remote
from hyperslab.errors import UsageError

# Names that lead to the same place in every library; some escape others.
PLAIN = re.compile(r"[A-Za-z0-9_./-]*")


def location_of_keys(store: Store | None, path: str) -> str | Remote | None:
    """The folder of this machine, or the URL, below which the keys of an array are; None if there is no such place.

    Stores derived from zarr-python's, or around them, may do something of their own: they have no such place.
    """
    if type(store) is LocalStore:
        return os.path.join(os.path.abspath(store.root), path)  # noqa: PTH100, PTH118 -- resolve() would follow links
    if not PLAIN.fullmatch(path):
        return None
    try:
        if type(store) is FsspecStore:
            return _below(location_of((store.fs, store.path)), path)
        if type(store) is ObjectStore:
            return _below(location_of(store.store), path)
    except UsageError:  # something of them cannot be taken over: zarr-python has the store itself
        return None
    return None


def _below(location: str | Remote, path: str) -> str | Remote:
    return location.below(path) if isinstance(location, Remote) else os.path.join(location, path)  # noqa: PTH118

"""Find out where a store of zarr-python keeps its keys, if we can read them ourselves."""

from __future__ import annotations

import os
import re

from zarr.abc.store import Store
from zarr.storage import FsspecStore, LocalStore, ObjectStore

from hyperslab.archive.far.remote import Remote
from hyperslab.archive.given.files import Given
from hyperslab.archive.given.foreign_stores import Location, location_of
from hyperslab.errors import UsageError

# Names with these characters mean the same key in every library; some libraries escape other characters.
PLAIN = re.compile(r"[A-Za-z0-9_./-]*")


def location_of_keys(store: Store | None, path: str) -> str | Remote | None:
    """The local folder or the URL that has the keys of an array below it; None if there is none.

    Stores that are derived from zarr-python's, or that wrap them, may behave differently, so they have none.
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
    except UsageError:  # we cannot use its configuration, but zarr-python can use the store itself
        return None
    return None


def _below(location: Location, path: str) -> str | Remote | None:
    if isinstance(location, Given):  # read through the object itself, which zarr-python does as well
        return None
    return location.below(path) if isinstance(location, Remote) else os.path.join(location, path)  # noqa: PTH118

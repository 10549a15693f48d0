"""The folder of this machine that a store of zarr-python keeps its keys in, where it does."""

from __future__ import annotations

import os
import re
from typing import Any

from zarr.abc.store import Store
from zarr.storage import FsspecStore, LocalStore, ObjectStore

# Keys that every store has under the same name; some escape others.
PLAIN = re.compile(r"[A-Za-z0-9_./ -]*")


def folder_of(store: Store | None) -> str | None:
    """The absolute path of the folder in which each key is a file; None if the store is of another kind.

    Stores derived from zarr-python's, or around them, may do something of their own: they are of another kind.
    """
    if type(store) is LocalStore:
        return os.path.abspath(store.root)  # noqa: PTH100 -- resolve() would follow links
    if type(store) is FsspecStore:
        return _of_fsspec(store)
    if type(store) is ObjectStore:
        return _of_obstore(store.store)
    return None


def _of_fsspec(store: Any) -> str | None:
    from fsspec.implementations.local import LocalFileSystem

    inner = getattr(store.fs, "sync_fs", store.fs)
    return store.path if type(inner) is LocalFileSystem and os.path.isabs(store.path) else None  # noqa: PTH117


def _of_obstore(inner: Any) -> str | None:
    from obstore.store import LocalStore as LocalObjects

    prefix = inner.prefix if type(inner) is LocalObjects else None
    return None if prefix is None else os.fspath(prefix)

"""The peers that find the chunks of a file. Timed: from its path or URL to the index, without reading any data.

The results are compared by the stored bytes of all arrays together. `where` returns what to open, new each time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from comparison import Side

import hyperslab


def by_hyperslab(where: Callable[[], Path | str]) -> Side:
    """Open the file and get the stored size of each array."""
    return Side(lambda: sum(array.stored_nbytes for array in hyperslab.open(where()).walk()))


def by_h5py(where: Callable[[], Any]) -> Side:
    """Offset and length of each chunk, by HDF5's own iteration."""

    def run() -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []

        def visit(_: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset) and item.chunks is None:
                found.append((item.id.get_offset() or 0, item.id.get_storage_size()))
            elif isinstance(item, h5py.Dataset):
                item.id.chunk_iter(lambda chunk: found.append((chunk.byte_offset, chunk.size)))

        with h5py.File(where()) as file:
            file.visititems(visit)
        return found

    return Side(run, lambda found: sum(nbytes for _, nbytes in found))


def by_hidefix(path: Path, names: list[str]) -> Side:
    """hidefix indexes all arrays but lists only those of the root, so each is read by name; chunks are uncompressed."""
    import hidefix

    def stored_nbytes(index: Any) -> int:
        return sum(np.asarray(index[name][:, :]).nbytes for name in names)

    return Side(lambda: hidefix.Index(path), stored_nbytes)


def by_kerchunk(where: Callable[[], Path | str], **storage_options: Any) -> Side:
    """References in kerchunk's form, with no inlined data."""
    from kerchunk.hdf import SingleHdf5ToZarr

    def run() -> dict[str, Any]:
        said = {"storage_options": storage_options} if storage_options else {}
        return SingleHdf5ToZarr(str(where()), inline_threshold=0, **said).translate()["refs"]

    return Side(run, lambda refs: sum(part[2] for part in refs.values() if isinstance(part, list)))


def by_virtualizarr(where: Callable[[], str], registry: Callable[[str], Any]) -> Side:
    """A VirtualiZarr ManifestStore. `registry` maps a URL to the object store of its files."""
    from virtualizarr.parsers import HDFParser

    def run() -> Any:
        url = where()
        return HDFParser()(url=url, registry=registry(url))

    def stored_nbytes(group: Any) -> int:
        own = sum(int(array.manifest._lengths.sum()) for array in group.arrays.values())
        return own + sum(stored_nbytes(child) for child in group.groups.values())

    return Side(run, lambda store: stored_nbytes(store._group))


def local_registry(_: str) -> Any:
    """A registry for local files."""
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore

    return ObjectStoreRegistry({"file://": LocalStore()})

"""The peers that find where the chunks of a file are. Timed: from the path to the index, with nothing read.

What each found is compared by the stored bytes of all arrays together.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
from comparison import Side

import hyperslab


def by_hyperslab(path: Path) -> Side:
    """Open, and ask each array what its chunks take."""
    return Side(lambda: sum(array.stored_nbytes for array in hyperslab.open(path).walk()))


def by_h5py(path: Path) -> Side:
    """Place and length of each chunk, by HDF5's own iteration."""

    def run() -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []

        def visit(_: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset):
                item.id.chunk_iter(lambda chunk: found.append((chunk.byte_offset, chunk.size)))

        with h5py.File(path) as file:
            file.visititems(visit)
        return found

    return Side(run, lambda found: sum(nbytes for _, nbytes in found))


def by_hidefix(path: Path, names: list[str]) -> Side:
    """hidefix lists the root's arrays only, though it has indexed all: read each by name, chunks being uncompressed."""
    import hidefix

    def stored_nbytes(index: Any) -> int:
        return sum(np.asarray(index[name][:, :]).nbytes for name in names)

    return Side(lambda: hidefix.Index(path), stored_nbytes)


def by_kerchunk(path: Path) -> Side:
    """References of kerchunk's form, no data inlined."""
    from kerchunk.hdf import SingleHdf5ToZarr

    def run() -> dict[str, Any]:
        return SingleHdf5ToZarr(str(path), inline_threshold=0).translate()["refs"]

    return Side(run, lambda refs: sum(part[2] for part in refs.values() if isinstance(part, list)))


def by_virtualizarr(path: Path) -> Side:
    """A ManifestStore of VirtualiZarr."""
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore
    from virtualizarr.parsers import HDFParser

    registry = ObjectStoreRegistry({"file://": LocalStore()})

    def stored_nbytes(group: Any) -> int:
        own = sum(int(array.manifest._lengths.sum()) for array in group.arrays.values())
        return own + sum(stored_nbytes(child) for child in group.groups.values())

    return Side(lambda: HDFParser()(url=f"file://{path}", registry=registry), lambda store: stored_nbytes(store._group))

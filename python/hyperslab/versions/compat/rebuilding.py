"""Makes hash tables again from the chunks, for files whose layout hashed them in another way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import h5py
import numpy as np

from hyperslab.versions.commit.chunk_store import table_in
from hyperslab.versions.layout.names import DATA, HASH_TABLE_DTYPE, VERSIONS, chunk_hash


def stored_arrays(f: h5py.Group) -> Iterator[str]:
    """The paths of all arrays that have chunks in a file."""
    paths: list[str] = []
    f[DATA].visit(lambda path: paths.append(path) if path.endswith("/raw_data") else None)
    return (path.removesuffix("/raw_data") for path in paths if not path.startswith("versions/"))


def rebuild(f: h5py.Group, path: str) -> None:
    """Hash all chunks of an array again, and replace its table of hashes."""
    raw, table = f[f"{DATA}/{path}/raw_data"], table_in(f[f"{DATA}/{path}"])
    length = int(raw.attrs["chunks"][0])
    shapes = _shown_shapes(f, path, length)
    rows = np.zeros(max(shapes, default=-1) + 1, HASH_TABLE_DTYPE)
    whole = tuple(int(each) for each in raw.attrs["chunks"])
    for slot, row in enumerate(rows):
        shape = shapes.get(slot, whole)  # no version shows this chunk, but it keeps its slot
        start = slot * length
        chunk = raw[(slice(start, start + shape[0]), *(slice(0, each) for each in shape[1:]))]
        row["hash"] = np.frombuffer(chunk_hash(chunk), np.uint8)
        row["shape"] = start, start + shape[0]
    table.attrs["largest_index"] = 0
    table.resize((max(1, len(rows)),))
    table[: len(rows)] = rows
    table.attrs["largest_index"] = len(rows)


def _shown_shapes(f: h5py.Group, path: str, length: int) -> dict[int, tuple[int, ...]]:
    """The valid shape of each chunk that a version shows, by slot."""
    shapes: dict[int, tuple[int, ...]] = {}
    for version in f[VERSIONS].values():
        array: Any = version.get(path)
        if not isinstance(array, h5py.Dataset) or not array.is_virtual:
            continue
        for mapping in array.virtual_sources():
            first, last = mapping.src_space.get_select_bounds()
            shapes[first[0] // length] = tuple(
                int(stop) - int(start) + 1 for start, stop in zip(first, last, strict=True)
            )
    return shapes

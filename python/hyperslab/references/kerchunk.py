"""kerchunk's references, version 1: one JSON document, or a folder with Parquet tables for each array.

`docs/source/spec.rst` in fsspec/kerchunk describes the JSON layout, and `LazyReferenceMapper` in fsspec's
`implementations/reference.py` defines the Parquet layout.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab.chunk_grid import ceil_div
from hyperslab.needed import need
from hyperslab.references import zarr2
from hyperslab.references.chunks import ChunkTable
from hyperslab.references.export import Export
from hyperslab.replacing import replacing

if TYPE_CHECKING:
    from hyperslab.archive.tree.group import Group

RECORD_SIZE = 100_000  # references in one Parquet table


def save_json(roots: Mapping[str, Group], target: Path, export: Export) -> None:
    """Write one document, `{"version": 1, "refs": {...}}`, piece by piece."""
    with replacing(target) as beside, beside.open("w", encoding="utf-8") as stream:
        stream.write('{"version": 1, "refs": {')
        separator = "\n"
        for key, item in export.items(roots):
            for line in _lines(key, item):
                stream.write(separator)
                stream.write(line)
                separator = ",\n"
        stream.write("\n}}\n")


def _lines(key: str, item: dict[str, Any] | ChunkTable) -> Iterator[str]:
    if not isinstance(item, ChunkTable):
        yield f"{json.dumps(key)}: {json.dumps(json.dumps(item))}"
        return
    start = json.dumps(f"{key}/")[:-1]
    paths = {path: json.dumps(path) for path in item.paths}
    for name, path, offset, length in item.named():
        yield f'{start}{name}": [{paths[path]}, {offset}, {length}]'
    for position, chunk in item.inline.items():
        yield f'{start}{item.key(position)}": "{zarr2.encoded(chunk)}"'


def save_parquet(roots: Mapping[str, Group], target: Path, export: Export, record_size: int = RECORD_SIZE) -> None:
    """Write a folder: `.zmetadata` with all documents, and for each array tables of `record_size` chunks."""
    need("writing references in Parquet", "pyarrow")
    documents: dict[str, dict[str, Any]] = {}
    with replacing(target, is_folder=True) as beside:
        beside.mkdir()
        for key, item in export.items(roots):
            if isinstance(item, ChunkTable):
                _save_tables(item, beside / key, record_size)
            else:
                documents[key] = item
        text = json.dumps({"metadata": documents, "record_size": record_size})
        (beside / ".zmetadata").write_text(text, encoding="utf-8")


def _save_tables(table: ChunkTable, folder: Path, record_size: int) -> None:
    """Write tables `refs.N.parq` of exactly `record_size` rows, also those without chunks, which readers expect."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = np.array([*table.paths, None], object)
    for number in range(ceil_div(table.chunk_count, record_size)):
        first = number * record_size
        start, stop = np.searchsorted(table.positions, [first, first + record_size])
        rows, own = table.positions[start:stop] - first, slice(start, stop)
        path, raw = np.full(record_size, None, object), np.full(record_size, None, object)
        offset, size = np.zeros(record_size, np.int64), np.zeros(record_size, np.int64)
        path[rows], offset[rows], size[rows] = paths[table.files[own]], table.offsets[own], table.lengths[own]
        for position, chunk in table.inline.items():
            if first <= position < first + record_size:
                raw[position - first] = chunk
        _write_table(folder / f"refs.{number}.parq", path, offset, size, raw)


def _write_table(file: Path, path: Any, offset: Any, size: Any, raw: Any) -> None:
    import pyarrow
    from pyarrow import parquet

    columns = {
        "path": pyarrow.array(path, pyarrow.string()),
        "offset": pyarrow.array(offset),
        "size": pyarrow.array(size),
        "raw": pyarrow.array(raw, pyarrow.binary()),
    }
    with pyarrow.OSFile(str(file), "wb") as out:  # parquet leaves a file open that it cannot begin, on a full disk
        parquet.write_table(
            pyarrow.table(columns), out, compression="zstd", use_dictionary=["path"], write_statistics=False
        )

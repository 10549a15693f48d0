"""A version as a folder of Zarr 3, with its chunks copied as they are stored.

Codecs have the names that zarr-python gives to those of numcodecs. Both formats store edge chunks whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from hyperslab.archive.tree import Group
from hyperslab.references import zarr3
from hyperslab.references.chunks import ChunkTable
from hyperslab.references.export import Export
from hyperslab.replacing import replacing
from hyperslab.versions.inspect.exported import Exported, UsersOnly
from hyperslab.versions.inspect.stored_bytes import StoredBytes

REPORTED_CHUNKS = 256


def write_zarr(
    group: Group,
    source: StoredBytes,
    target: Path,
    done: Exported,
    progress: Callable[[str, int, int], None],
    *,
    skip_unsupported: bool,
) -> None:
    """Write a version, and record what was written in `done`."""
    export = Export(UsersOnly(zarr3), 0, skip_unsupported)
    with replacing(target, is_folder=True) as beside:
        beside.mkdir()
        for key, item in export.items({"": group}):
            if isinstance(item, ChunkTable):
                _write_chunks(item, source, beside / key, key, done, progress)
                done.encoded_again += [key] if item.inline else []
            else:
                document = beside / key
                document.parent.mkdir(parents=True, exist_ok=True)
                document.write_text(json.dumps(item, indent=1), encoding="utf-8")
    done.array_count, done.left_out = export.array_count, dict(export.left_out)


def _write_chunks(
    table: ChunkTable,
    source: StoredBytes,
    folder: Path,
    name: str,
    done: Exported,
    progress: Callable[[str, int, int], None],
) -> None:
    named = list(table.named())
    made: set[Path] = set()
    for count, ((key, *_), chunk) in enumerate(zip(named, source.ranges(one[1:] for one in named), strict=True), 1):
        _write(folder / "c" / key.replace(".", "/"), chunk, made)
        done.chunk_count += 1
        done.nbytes += len(chunk)
        if count % REPORTED_CHUNKS == 0 or count == len(named):
            progress(name, count, len(named))
    for number, inline in table.inline.items():
        _write(folder / "c" / table.key(number).replace(".", "/"), inline, made)


def _write(path: Path, chunk: bytes | memoryview, made: set[Path]) -> None:
    if path.parent not in made:
        path.parent.mkdir(parents=True, exist_ok=True)
        made.add(path.parent)
    path.write_bytes(chunk)

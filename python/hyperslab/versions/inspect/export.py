"""One version as a file of its own: HDF5, Zarr 3 or kerchunk references. Chunks are copied as they are stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hyperslab.archive.array import Array as ArchiveArray
from hyperslab.archive.tree import Group
from hyperslab.errors import UsageError
from hyperslab.needed import need, need_h5py
from hyperslab.progress import Progress
from hyperslab.references import kerchunk, zarr2, zarr3
from hyperslab.references.chunks import ChunkTable
from hyperslab.references.export import Document, Export, Language
from hyperslab.replacing import replacing
from hyperslab.versions.inspect.stored_bytes import StoredBytes
from hyperslab.versions.layout.names import ARRAY_BOOKKEEPING, VERSION_BOOKKEEPING, without
from hyperslab.versions.layout.reading import version_group

HDF5, ZARR, JSON, PARQUET = (".h5", ".hdf5", ".he5"), (".zarr",), (".json",), (".parquet", ".parq")
INLINE_NBYTES = 500  # references hold arrays up to this size as values
REPORTED_CHUNKS = 256


@dataclass
class Exported:
    """What was written. Chunks of the arrays in `encoded_again` could not be copied, mostly text of variable length."""

    path: str
    version: str
    array_count: int = 0
    chunk_count: int = 0  # chunks copied or referenced
    nbytes: int = 0  # bytes of these chunks
    encoded_again: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # arrays that the format cannot express, with the reasons


def export(
    path: str, version: str, target: Path, *, skip_unsupported: bool = False, progress: Progress | None = None
) -> Exported:
    """Write a version to a file of its own; see `VersionedFile.export`.

    Whatever was at `target` is replaced at once, and only after success.
    """
    if target.suffix in HDF5:
        need_h5py("exporting a version as HDF5")
    if target.suffix in ZARR:
        need("exporting a version as Zarr 3", "zarr")
    if target.suffix in PARQUET:
        need("exporting a version as Parquet", "pyarrow")
    done = Exported(str(target), version)
    report = progress or (lambda *_: None)
    if target.absolute() == Path(path):
        raise UsageError(f"{target} is the file with the versions: choose another name")
    with StoredBytes(path) as source:
        group = version_group(path, version)
        source.check()
        if target.suffix in HDF5:
            from hyperslab.versions.inspect.export_hdf5 import write_hdf5

            write_hdf5(group, source, target, done, report)
        elif target.suffix in ZARR:
            _write_zarr(group, source, target, done, report, skip_unsupported=skip_unsupported)
        else:
            _write_references(group, target, done, skip_unsupported=skip_unsupported)
    return done


def _write_references(group: Group, target: Path, done: Exported, *, skip_unsupported: bool) -> None:
    if target.suffix not in (*JSON, *PARQUET):
        known = ", ".join((*HDF5, *ZARR, *JSON, *PARQUET))
        raise UsageError(f"{target} does not end with one of {known}, which choose the format")
    export = Export(UsersOnly(zarr2), INLINE_NBYTES, skip_unsupported)
    if target.suffix in JSON:
        kerchunk.save_json({"": group}, target, export)
    else:
        kerchunk.save_parquet({"": group}, target, export)
    done.array_count, done.chunk_count, done.left_out = export.array_count, export.chunk_count, dict(export.left_out)


def _write_zarr(
    group: Group,
    source: StoredBytes,
    target: Path,
    done: Exported,
    progress: Progress,
    *,
    skip_unsupported: bool,
) -> None:
    """Write a folder of Zarr 3. Codecs have the names that zarr-python gives to those of numcodecs."""
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
    progress: Progress,
) -> None:
    named = list(table.named())
    made: set[Path] = set()
    for count, ((key, *_), chunk) in enumerate(zip(named, source.ranges(one[1:] for one in named), strict=True), 1):
        _put(folder / "c" / key.replace(".", "/"), chunk, made)
        done.chunk_count += 1
        done.nbytes += len(chunk)
        if count % REPORTED_CHUNKS == 0 or count == len(named):
            progress(name, count, len(named))
    for number, inline in table.inline.items():
        _put(folder / "c" / table.key(number).replace(".", "/"), inline, made)


def _put(path: Path, chunk: bytes | memoryview, made: set[Path]) -> None:
    if path.parent not in made:
        path.parent.mkdir(parents=True, exist_ok=True)
        made.add(path.parent)
    path.write_bytes(chunk)


class UsersOnly:
    """A version of Zarr without the attributes that the layout of versions needs, and with text as values."""

    def __init__(self, language: Language) -> None:
        self._language = language

    def group_documents(self, prefix: str, attributes: Mapping[str, Any]) -> dict[str, Document]:
        """The documents of a group, see `Language`."""
        kept = attributes if prefix else without(attributes, VERSION_BOOKKEEPING)
        return self._language.group_documents(prefix, kept)

    def array_documents(
        self, path: str, array: ArchiveArray, dimensions: list[str], inline_threshold: int
    ) -> tuple[dict[str, Document], ChunkTable]:
        """The documents and chunks of an array, see `Language`."""
        if array.is_text:
            inline_threshold = array.nbytes
        documents, table = self._language.array_documents(path, array, dimensions, inline_threshold)
        for key, document in documents.items():
            said = document if key.endswith(".zattrs") else document.get("attributes", {})
            for name in ARRAY_BOOKKEEPING:
                said.pop(name, None)
        return documents, table

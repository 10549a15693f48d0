"""One version as a file of its own: HDF5, Zarr 3, or references of kerchunk. Chunks are copied as they are stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hyperslab.archive.array import Array as ArchiveArray
from hyperslab.archive.tree import Group
from hyperslab.errors import UsageError
from hyperslab.needed import need_h5py
from hyperslab.references import kerchunk, zarr2
from hyperslab.references.chunks import ChunkTable
from hyperslab.references.export import Document, Export, Language
from hyperslab.versions.layout import ARRAY_BOOKKEEPING, VERSION_BOOKKEEPING
from hyperslab.versions.reading import version_group
from hyperslab.versions.stored_bytes import StoredBytes

Progress = Callable[[str, int, int], None]
HDF5, ZARR, JSON, PARQUET = (".h5", ".hdf5", ".he5"), (".zarr",), (".json",), (".parquet", ".parq")
INLINE_NBYTES = 500  # arrays of at most so many bytes are put into references as values


@dataclass
class Exported:
    """What was written. Chunks of `encoded_again` could not be copied: those of text of any length, mostly."""

    path: str
    version: str
    array_count: int = 0
    chunk_count: int = 0  # that were copied, or are referenced
    nbytes: int = 0  # of these
    encoded_again: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # arrays that the format cannot express, with the reasons


def export(
    path: str, version: str, target: Path, *, skip_unsupported: bool = False, progress: Progress | None = None
) -> Exported:
    """Write a version; what was at `target` before is replaced at once, and only if all went well.

    Args:
        path: The file's.
        version: The version's name.
        target: Where to write; its ending chooses the format.
        skip_unsupported: Leave out arrays that the format cannot express, instead of refusing them.
        progress: Called with an array's path, how many of its chunks are copied, and how many it has.

    Raises:
        UsageError: The ending is not known, or there is no room for the target.
        Refused: The format cannot express an array; the message has its name and the reason.
    """
    if target.suffix in HDF5:
        need_h5py("exporting a version as HDF5")
    from hyperslab.versions.export_zarr import write_zarr

    done = Exported(str(target), version)
    report = progress or (lambda *_: None)
    if target.absolute() == Path(path):
        raise UsageError(f"{target} is the file that the version is in: choose another name")
    with StoredBytes(path) as source:
        group = version_group(path, version)
        source.check()
        if target.suffix in HDF5:
            from hyperslab.versions.export_hdf5 import write_hdf5

            write_hdf5(group, source, target, done, report)
        elif target.suffix in ZARR:
            write_zarr(group, source, target, done, report, skip_unsupported=skip_unsupported)
        else:
            _write_references(group, target, done, skip_unsupported=skip_unsupported)
    return done


def _write_references(group: Group, target: Path, done: Exported, *, skip_unsupported: bool) -> None:
    if target.suffix not in (*JSON, *PARQUET):
        known = ", ".join((*HDF5, *ZARR, *JSON, *PARQUET))
        raise UsageError(f"{target} has none of the endings {known}, which choose the format")
    export = Export(UsersOnly(zarr2), INLINE_NBYTES, skip_unsupported)
    if target.suffix in JSON:
        kerchunk.save_json({"": group}, target, export)
    else:
        kerchunk.save_parquet({"": group}, target, export)
    done.array_count, done.chunk_count, done.left_out = export.array_count, export.chunk_count, dict(export.left_out)


class UsersOnly:
    """A version of Zarr in which the attributes that the layout of versions wants are not said; text is values."""

    def __init__(self, language: Language) -> None:
        self._language = language

    def group_documents(self, prefix: str, attributes: Mapping[str, Any]) -> dict[str, Document]:
        """As `Language` has it."""
        kept = attributes if prefix else without(attributes, VERSION_BOOKKEEPING)
        return self._language.group_documents(prefix, kept)

    def array_documents(
        self, path: str, array: ArchiveArray, dimensions: list[str], inline_threshold: int
    ) -> tuple[dict[str, Document], ChunkTable]:
        """As `Language` has it."""
        if array.is_text:
            inline_threshold = array.nbytes
        documents, table = self._language.array_documents(path, array, dimensions, inline_threshold)
        for key, document in documents.items():
            said = document if key.endswith(".zattrs") else document.get("attributes", {})
            for name in ARRAY_BOOKKEEPING:
                said.pop(name, None)
        return documents, table


def without(attributes: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Attributes without some."""
    return {name: attributes[name] for name in attributes if name not in names}

"""`export`: one version as an archive of its own. It is a conversion of that version, or a file of references to it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hyperslab.archive.opening import open as open_archive
from hyperslab.conversion.converting import Task, format_of, usual_memory
from hyperslab.conversion.meter import Meter
from hyperslab.conversion.reading import bookkeeping_of
from hyperslab.conversion.settings import Settings
from hyperslab.conversion.sources import SourceFiles
from hyperslab.conversion.suffixes import SUFFIXES
from hyperslab.conversion.wishes import Wish
from hyperslab.errors import UsageError
from hyperslab.needed import need
from hyperslab.progress import Progress, watched
from hyperslab.references import kerchunk, zarr2
from hyperslab.references.export import Export
from hyperslab.versions.layout.seen import opened_version

if TYPE_CHECKING:
    from hyperslab.archive.tree.group import Group

JSON, PARQUET = (".json",), (".parquet", ".parq")
INLINE_NBYTES = 500  # references hold arrays up to this size as values


@dataclass
class Exported:
    """What was written. Chunks of the arrays in `encoded_again` could not be copied, mostly text of variable length."""

    path: str
    version: str
    array_count: int = 0
    chunk_count: int = 0  # chunks copied or referenced
    nbytes: int = 0  # bytes of these chunks
    encoded_again: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # what the format cannot express, with the reasons


@watched("chunks")
def export(
    path: str,
    version: str,
    target: Path,
    *,
    format: str | None = None,
    skip_unsupported: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write a version to an archive of its own; see `VersionedFile.export`.

    Whatever was at `target` is replaced at once, and only after success.
    """
    done = Exported(str(target), version)
    if format is None and target.suffix in PARQUET:
        need("exporting a version as Parquet", "pyarrow")
    if format is None and target.suffix not in (*SUFFIXES, *JSON, *PARQUET):
        known = ", ".join((*SUFFIXES, *JSON, *PARQUET))
        raise UsageError(f"{target} does not end with one of {known}, which choose the format")
    if target.absolute() == Path(path):
        raise UsageError(f"{target} is the file with the versions: choose another name")
    task = None
    if format is not None or target.suffix in SUFFIXES:
        settings = Settings(
            format_of(target, format), Wish(), False, usual_memory(), None, "checksum", skip_unsupported, True, None
        )
        task = Task(target, settings, overwrite=True, is_kept=False)
        if target.is_dir() and any(target.iterdir()):
            raise UsageError(f"{target} is a folder that holds something else: choose another name")
    before = os.stat(path)  # noqa: PTH116
    with opened_version(path, version, 0) as group:
        if task is None:
            _write_references(group, target, done, skip_unsupported=skip_unsupported)
        else:
            _convert(group, task, done, before, progress)
    return done


def _convert(group: Group, task: Task, done: Exported, before: os.stat_result, progress: Progress | None) -> None:
    task.meter = meter = Meter(progress, counts_chunks=True)
    converted = task.run(group, SourceFiles(group, before))
    done.left_out = {path.strip("/"): reason for path, reason in converted.losses}
    done.chunk_count = sum(count for count, _ in meter.copied.values())
    done.nbytes = sum(nbytes for _, nbytes in meter.copied.values())
    paths = [array.name.removeprefix(f"{group.name}/") for array in group.walk()]
    with open_archive(task.path) as made:  # NetCDF4 has more arrays: one for each dimension
        written = [path for path in paths if path in made]
    done.array_count, done.encoded_again = len(written), [path for path in written if path not in meter.copied]


def _write_references(group: Group, target: Path, done: Exported, *, skip_unsupported: bool) -> None:
    export = Export(zarr2, INLINE_NBYTES, skip_unsupported, left=partial(bookkeeping_of, group), keeps_text=True)
    write = kerchunk.save_json if target.suffix in JSON else kerchunk.save_parquet
    write({"": group}, target, export)
    done.array_count, done.chunk_count, done.left_out = export.array_count, export.chunk_count, dict(export.left_out)

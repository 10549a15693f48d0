"""One version as a file of its own: HDF5, Zarr 3 or kerchunk references. Chunks are copied as they are stored."""

from __future__ import annotations

from pathlib import Path

from hyperslab.archive.tree import Group
from hyperslab.errors import UsageError
from hyperslab.needed import need_h5py
from hyperslab.progress import Progress
from hyperslab.references import kerchunk, zarr2
from hyperslab.references.export import Export
from hyperslab.versions.inspect.export_zarr import write_zarr
from hyperslab.versions.inspect.exported import Exported, UsersOnly
from hyperslab.versions.inspect.stored_bytes import StoredBytes
from hyperslab.versions.layout.reading import version_group

HDF5, ZARR, JSON, PARQUET = (".h5", ".hdf5", ".he5"), (".zarr",), (".json",), (".parquet", ".parq")
INLINE_NBYTES = 500  # references hold arrays up to this size as values


def export(
    path: str, version: str, target: Path, *, skip_unsupported: bool = False, progress: Progress | None = None
) -> Exported:
    """Write a version to a file of its own. Whatever was at `target` is replaced at once, and only after success.

    Parameters
    ----------
    path : str
        The path of the file with the versions.
    version : str
        The name of the version.
    target : Path
        Where to write; its suffix chooses the format.
    skip_unsupported : bool
        Leave out arrays that the format cannot express, instead of refusing to write.
    progress : callable, optional
        Called with the path of an array, the number of its chunks copied so far, and the number of all its chunks.

    Raises
    ------
    UsageError
        The suffix is unknown, or the target cannot be written.
    Refused
        The format cannot express an array; the message gives its name and the reason.
    """
    if target.suffix in HDF5:
        need_h5py("exporting a version as HDF5")
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
            write_zarr(group, source, target, done, report, skip_unsupported=skip_unsupported)
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

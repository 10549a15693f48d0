"""`convert`: writes an archive again, in another format or with other chunks and codecs."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperslab.archive.opening import open as open_archive
from hyperslab.conversion.journal import ConversionJournal
from hyperslab.conversion.settings import Conversion, Format, Settings, Verify
from hyperslab.conversion.steps import write
from hyperslab.conversion.wishes import wish
from hyperslab.errors import FileChanged, NoSpace, UsageError
from hyperslab.needed import need, need_h5py
from hyperslab.replacing import FULL, sync_one

if TYPE_CHECKING:
    from hyperslab.archive.tree import Group
    from hyperslab.progress import Progress

FORMATS = ("hdf5", "netcdf4", "zarr2", "zarr3")
SUFFIXES: dict[str, Format] = {".h5": "hdf5", ".hdf5": "hdf5", ".he5": "hdf5", ".nc": "netcdf4", ".nc4": "netcdf4",
                               ".zarr": "zarr3"}  # fmt: skip
ZARR_DOCUMENTS = ("zarr.json", ".zgroup", ".zarray", ".zmetadata")
LEAST_MEMORY = 64 << 20


def convert(
    source: Any,
    target: str | os.PathLike[str],
    *,
    format: str | None = None,
    chunks: Any = None,
    shards: Any = None,
    codec: Any = None,
    like: Any = None,
    relayout: bool = False,
    memory: int | None = None,
    threads: int | None = None,
    verify: str = "checksum",
    overwrite: bool = False,
    resume: bool = False,
    skip_unsupported: bool = False,
    sync: bool = True,
    progress: Progress | None = None,
    **opening: Any,
) -> Conversion:
    """Write an archive again, in another format or with other chunks and codecs. The source is never changed.

    The result appears under its name in one step, when it is complete. Until then it is in a folder beside it, from
    which `resume` goes on after a kill or a full disk.

    Parameters
    ----------
    source : Any
        Anything that `hyperslab.open` opens, or a group that is open.
    target : str | os.PathLike[str]
        The path of the result.
    format : {"hdf5", "netcdf4", "zarr2", "zarr3"} | None
        Its format; by default that of its suffix: `.h5`, `.nc`, `.zarr`.
    chunks : Any
        The chunk shape: lengths in order, or by dimension ("time=1,lat=100"), for all arrays with these axes; or a dict
        of these by path. By default chunks stay as they are.
    shards : Any
        The same for shards of Zarr 3.
    codec : Any
        How to encode chunks, such as "deflate-4+shuffle" or "zstd-3"; or a dict of these by path.
    like : Any
        An advice, or the file that it was saved in. What you give as `chunks`, `shards` and `codec` goes first.
    relayout : bool
        Copy the chunks as they are stored, and put all metadata of the HDF5 file together at its front.
    memory : int | None
        The most bytes to use for elements; by default half of what is available.
    threads : int | None
        How many threads work; by default one per core.
    verify : {"checksum", "library", "none"}
        How to verify the result before it gets its name: read it back and compare checksums of the decoded chunks; the
        same through h5py or zarr-python; or not at all.
    overwrite : bool
        Whether to replace an existing target, or an unfinished conversion.
    resume : bool
        Whether to go on with an unfinished conversion.
    skip_unsupported : bool
        Whether to leave out what the target cannot hold; otherwise that is an error, before anything is written.
    sync : bool
        Whether to sync the result to disk before it gets its name.
    progress : Progress | None
        Called with the array at work, the MiB done and the MiB of all.
    **opening : Any
        Options of `hyperslab.open`, such as `storage_options` and `allowed`.

    Returns
    -------
    Conversion
        What was done.

    Raises
    ------
    UsageError
        The target exists, the format is unknown, or an option does not fit.
    Refused
        The target cannot hold something; the message names it.
    FileChanged
        The source changed meanwhile.
    NoSpace
        The disk is full; finished work is kept for `resume`.
    """
    path = Path(os.fspath(target))
    settings = Settings(
        format_of(path, format), wish(chunks, shards, codec, like), relayout, memory or usual_memory(), threads,
        _verify(verify), skip_unsupported, sync, progress,
    )  # fmt: skip
    if settings.memory < 1 or (threads is not None and threads < 1):
        raise UsageError("memory and threads must be at least 1")
    check_libraries(settings.format, settings.verify)
    is_open = hasattr(source, "kinds")
    group = source if is_open else open_archive(source, **opening)
    try:
        _check_target(path, group, overwrite=overwrite)
        return _converted(group, path, settings, overwrite=overwrite, resume=resume)
    finally:
        if not is_open:
            group.close()


def check_libraries(format: Format, verify: str) -> None:
    """Check that what writing a format takes is installed.

    Raises
    ------
    MissingLibrary
        It is not; the message says how to install it.
    """
    if format in ("hdf5", "netcdf4"):
        need_h5py("writing HDF5")
    elif format == "zarr3":
        need("writing Zarr 3", "zarr")
    elif verify == "library":
        need("--verify library", "zarr")


def _converted(group: Group, path: Path, settings: Settings, *, overwrite: bool, resume: bool) -> Conversion:
    started = time.monotonic()
    header = {
        "name": group.filename,
        "source": _version(group),
        "format": settings.format,
        "wish": settings.wish.plain,
        "relayout": settings.relayout,
        "memory": settings.memory,
    }
    journal = ConversionJournal(path, header, resume=resume, overwrite=overwrite)
    done = Conversion(path, settings.format, is_resumed=journal.is_resumed, verified=settings.verify)
    is_kept = False
    try:
        write(group, journal, settings, done)
        if _version(group) != header["source"]:
            raise FileChanged(f"{group.filename} changed while it was converted: start again with --overwrite")
        done.stored_nbytes = _nbytes(journal.data)
        _put_in_place(journal, path, is_synced=settings.is_synced)
    except (UsageError, FileChanged):
        raise
    except OSError as error:
        is_kept = bool(journal.finished)
        if error.errno is not None and error.errno in FULL and not isinstance(error, NoSpace):
            kept = f": {journal.folder} has what is finished; go on with --resume, or remove it" if is_kept else ""
            raise NoSpace(f"{path}: {error.strerror}: make room{kept}") from error
        raise
    except BaseException:
        is_kept = bool(journal.finished)
        raise
    finally:
        if is_kept:
            journal.close()
        else:
            journal.remove()
    done.seconds = time.monotonic() - started
    return done


def format_of(path: Path, asked: str | None) -> Format:
    """The format that was asked for, or that a name ends in; refuses others."""
    found: Any = asked or SUFFIXES.get(path.suffix.lower())
    if found not in FORMATS:
        known = ", ".join(FORMATS)
        raise UsageError(
            f"{path}: the format is not clear: end the name with .h5, .nc or .zarr, or choose from {known}"
        )
    return found  # type: ignore[no-any-return]


def _verify(asked: str) -> Verify:
    if asked not in ("checksum", "library", "none"):
        raise UsageError(f"verify={asked!r}: choose checksum, library or none")
    return asked  # type: ignore[return-value]


def usual_memory() -> int:
    """Half of the memory that is available now, but at least 64 MiB."""
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(line for line in lines if line.startswith("MemAvailable:"))
        return max(LEAST_MEMORY, int(available.split()[1]) * 1024 // 2)
    return max(LEAST_MEMORY, os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)


def _check_target(path: Path, group: Group, *, overwrite: bool) -> None:
    if not path.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {path.absolute().parent} to write {path.name} to: create it first")
    source = Path(group.filename)
    with suppress(OSError):
        if path.exists() and source.exists() and path.samefile(source):
            raise UsageError(f"{path} is the source: choose another name")
        if source.is_dir() and path.absolute().is_relative_to(source.absolute()):
            raise UsageError(f"{path} is inside the source: choose another name")
    if not path.exists():
        return
    if not overwrite:
        raise UsageError(f"{path} exists: choose another name, or allow it to be replaced with --overwrite")
    if path.is_dir() and not any((path / name).is_file() for name in ZARR_DOCUMENTS):
        raise UsageError(f"{path} is a folder that holds something else: choose another name")


def _version(group: Group) -> str:
    """What tells this version of the source from others."""
    core = group.opened.core
    core.check_sources()
    path = Path(group.filename)
    try:
        found = path.stat()
    except (OSError, ValueError):
        return str(core.version)
    if path.is_dir():
        newest = max((one.stat().st_mtime_ns for one in path.rglob("*") if one.name in DOCUMENT_NAMES), default=0)
        return f"{found.st_mtime_ns}-{newest}"
    return f"{found.st_size}-{found.st_mtime_ns}"


DOCUMENT_NAMES = ("zarr.json", ".zarray", ".zattrs", ".zgroup")


def _nbytes(path: Path) -> int:
    if path.is_dir():
        return sum(one.stat().st_size for one in path.rglob("*") if one.is_file())
    return path.stat().st_size if path.exists() else 0


def _put_in_place(journal: ConversionJournal, path: Path, *, is_synced: bool) -> None:
    """Give the finished data their name, in one step if there is nothing of that name."""
    if is_synced:
        inner = journal.data.rglob("*") if journal.data.is_dir() else ()
        for one in (*inner, journal.data):
            sync_one(one)
    if path.is_dir() and not path.is_symlink():
        old = journal.folder / "replaced"
        path.rename(old)
        try:
            journal.data.rename(path)
        except BaseException:
            old.rename(path)
            raise
        shutil.rmtree(old, ignore_errors=True)
    else:
        if path.exists():
            shutil.copymode(path, journal.data)
        journal.data.replace(path.resolve())
    if is_synced:
        sync_one(path.absolute().parent)

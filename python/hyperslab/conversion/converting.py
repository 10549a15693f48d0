"""`convert`: writes an archive again, in another format or with other chunks and codecs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperslab._core import __version__
from hyperslab.archive.opening import open as open_archive
from hyperslab.archive.tree.whole import check_whole
from hyperslab.conversion.advice import FORMATS
from hyperslab.conversion.checking import check_in_place, check_target, check_wish
from hyperslab.conversion.journal import ConversionJournal, remove_unfinished
from hyperslab.conversion.meter import Meter
from hyperslab.conversion.settings import Conversion, Format, Settings, Verify
from hyperslab.conversion.sources import SourceFiles
from hyperslab.conversion.steps import write
from hyperslab.conversion.suffixes import SUFFIXES
from hyperslab.conversion.wishes import Wish, wish
from hyperslab.errors import DamagedFile, FileChanged, HyperslabError, NoSpace, ReadError, RunError, UsageError
from hyperslab.journal.locks import without_writers
from hyperslab.journal.signals import defer_signals
from hyperslab.meant import meant
from hyperslab.memory import available_nbytes
from hyperslab.needed import need, need_h5py
from hyperslab.progress import Progress, watched
from hyperslab.replacing import FULL, followed, put_in_place, sync_one
from hyperslab.versions.layout.version_group import VersionGroup

if TYPE_CHECKING:
    from hyperslab.archive.tree.group import Group

LEAST_MEMORY = 64 << 20
CHANGED = "{} changed while it was converted: start again with --overwrite"


@watched("MB")
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
    purpose: str | None = None,
    in_place: bool = False,
    memory: int | None = None,
    threads: int | None = None,
    verify: str = "checksum",
    overwrite: bool = False,
    resume: bool = False,
    skip_unsupported: bool = False,
    sync: bool = True,
    progress: Progress | None = None,
    predicted: Callable[[float], None] | None = None,
    scheduler: Any = None,
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
        How to encode chunks, such as "shuffle+deflate:4" or "zstd-3"; or a dict of these by path.
    like : Any
        An advice, or the file that it was saved in. What it says of an array, `chunks`, `shards` and `codec` cannot say
        too.
    relayout : bool
        Copy the chunks as they are stored, and put all metadata of the HDF5 file together at its front. There can be no
        wish for other chunks or codecs then.
    purpose : {"cmip7", "cloud"} | None
        What the HDF5 or NetCDF4 file must suit: only arrays that do not suit it yet get other chunks and codecs. There
        can be no other wish then.
    in_place : bool
        Whether the target is the source, a local HDF5 file. It is replaced in one step, when its copy is complete and
        verified. A file that suits its purpose already stays as it is.
    memory : int | None
        The most bytes to use for elements, at least two chunks or shards; by default half of what is available.
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
        Called with the array at work, the MB done and the MB of all. Without it, notebooks show a bar after two
        seconds.
    predicted : Callable[[float], None] | None
        Called once with the seconds that the conversion will probably take, before arrays of at least 64 MiB are
        written.
    scheduler : str | distributed.Client | None
        The address of a Dask scheduler whose workers read and encode, or a client of it. They must see the source and
        the target under the same paths. `memory` is then for all of them together, and everything goes in one pass.
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
    asked = wish(chunks, shards, codec, like)
    if purpose is not None and (asked != Wish() or relayout):
        raise UsageError(f"the purpose {purpose} decides chunks and codecs itself: ask for it, or for them")
    settings = Settings(
        format_of(path, format), asked, relayout,
        usual_memory() if memory is None else memory, threads, _verify(verify), skip_unsupported, sync, progress,
        scheduler, predicted,
    )  # fmt: skip
    if purpose is not None and settings.format not in ("hdf5", "netcdf4"):
        raise UsageError(f"the purpose {purpose} is for HDF5 and NetCDF4 files: end the name of the target with .nc")
    if settings.memory < 1 or (threads is not None and threads < 1):
        raise UsageError("memory and threads must be at least 1")
    task = Task(path, settings, overwrite, resume, is_memory_given=memory is not None, is_in_place=in_place)
    is_open = hasattr(source, "kinds")
    group = source if is_open else open_archive(source, **opening)
    try:
        if purpose is not None:
            from hyperslab.conversion.purposes import plan_for

            plan = plan_for(group, purpose)
            if plan.suits and in_place:
                return task.left(group)
            task.settings = replace(settings, wish=plan.wish)
        return task.run(group, SourceFiles(group))
    finally:
        if not is_open:
            group.close()


@dataclass
class Task:
    """A conversion to a path, from any group that is open.

    Attributes
    ----------
    path
        The target.
    settings
        How to convert.
    overwrite, resume
        Whether to replace an existing target; whether to go on with an unfinished conversion.
    is_kept
        Whether what is finished stays for `resume` after an interruption.
    is_memory_given
        Whether the memory is your choice; otherwise an unfinished conversion goes on with its own.
    is_in_place
        Whether the target is the source, and replaces it.
    meter
        Told what is done.
    """

    path: Path
    settings: Settings
    overwrite: bool = False
    resume: bool = False
    is_kept: bool = True
    is_memory_given: bool = False
    is_in_place: bool = False
    meter: Meter | None = None

    def __post_init__(self) -> None:
        self.place = followed(self.path)
        check_libraries(self.settings.format, self.settings.verify)

    def left(self, group: Group) -> Conversion:
        """What is said of a file that stays as it is. What a kill left of its conversion is removed."""
        check_in_place(self.path, self.place, group)
        said = Conversion(self.path, self.settings.format, array_count=sum(1 for _ in group.walk()), is_unchanged=True)
        said.stored_nbytes = _nbytes(self.place)
        remove_unfinished(self.place)
        return said

    def run(self, group: Group, files: SourceFiles) -> Conversion:
        """Convert; see `convert`."""
        if not self.is_in_place:
            return self._run(group, files)
        check_in_place(self.path, self.place, group)
        with without_writers(self.place, writes=False):  # what it writes would go to a file without a name
            return self._run(group, files)

    def _run(self, group: Group, files: SourceFiles) -> Conversion:
        check_target(
            self.path, self.place, files, overwrite=self.overwrite or self.is_in_place, is_in_place=self.is_in_place
        )
        if not self.settings.skip_unsupported and not isinstance(group, VersionGroup):
            check_whole(group)
        check_wish(group, self.settings.wish, self.settings.format)
        paths = tuple(str(path.absolute()) for path in files.paths)
        started = time.monotonic()
        done = Conversion(self.path, self.settings.format, is_resumed=False, verified=self.settings.verify)
        journal: ConversionJournal | None = None
        try:
            with defer_signals():  # Ctrl-C must find the journal, so that its folder is removed
                journal = self._journal(group, files)
            done.is_resumed = journal.is_resumed
            self.settings = replace(self.settings, memory=journal.header["memory"], source_paths=paths)
            self._write_and_name(group, files, journal, done)
        except BaseException as error:
            if journal is None:
                raise
            self._end(journal, error, has_changed=isinstance(error, ReadError) and _has_changed(files, journal))
            raise
        journal.remove()
        done.seconds = time.monotonic() - started
        return done

    def _journal(self, group: Group, files: SourceFiles) -> ConversionJournal:
        settings, place = self.settings, self.place
        header = {
            "name": group.filename,
            "source": files.version(),
            "format": settings.format,
            "wish": settings.wish.plain,
            "relayout": settings.relayout,
            "memory": settings.memory,
            "writer": _writer(settings.format),
        }
        # The memory that is available differs from run to run, but a conversion goes on with its own slabs.
        adopted = () if self.is_memory_given else ("memory",)
        try:
            return ConversionJournal(place, header, resume=self.resume, overwrite=self.overwrite, adopted=adopted)
        except HyperslabError:
            raise
        except OSError as error:
            if error.errno in FULL:
                raise NoSpace(f"{place}: {error.strerror}: make room, or choose another disk") from error
            raise UsageError(f"{place} cannot be written: {error.strerror}") from error

    def _end(self, journal: ConversionJournal, error: BaseException, *, has_changed: bool) -> None:
        """Keep or remove what was finished, and raise an error that says more if there is one."""
        is_damaged = isinstance(error, FileChanged | DamagedFile | RunError) and not isinstance(error, NoSpace)
        is_kept = self.is_kept and bool(journal.finished) and not has_changed and not is_damaged
        (journal.close if is_kept else journal.remove)()
        if isinstance(error, OSError) and error.errno in FULL and not isinstance(error, NoSpace):
            kept = f": {journal.folder} has what is finished; go on with --resume, or remove it" if is_kept else ""
            raise NoSpace(f"{self.path}: {error.strerror}: make room{kept}") from error
        if has_changed and not isinstance(error, FileChanged):
            raise FileChanged(CHANGED.format(journal.header["name"])) from error

    def _write_and_name(self, group: Group, files: SourceFiles, journal: ConversionJournal, done: Conversion) -> None:
        settings, place = self.settings, self.place
        if journal.ended is None:
            write(group, journal, settings, done, self.meter)
            with open_archive(journal.data) as made:
                done.array_count = sum(1 for _ in made.walk())
        else:  # only its name was missing
            done.array_count, done.nbytes, done.verified = journal.ended
        if files.version() != journal.header["source"]:
            raise FileChanged(CHANGED.format(group.filename))
        done.stored_nbytes = _nbytes(journal.data)
        if settings.is_synced:
            _sync(journal)
        is_free = self.overwrite or self.is_in_place
        if place.exists() and not is_free:  # asked as late as possible: syncing takes time
            said = f"{done.target} was created meanwhile"
            raise UsageError(f"{said}: choose another name, or go on with --resume --overwrite")
        journal.end((done.array_count, done.nbytes, done.verified))
        put_in_place(journal.data, place, journal.folder)
        if settings.is_synced:
            sync_one(place.parent)


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


def _writer(format: Format) -> str:
    """Which libraries decide where the bytes of the target go."""
    if format in ("zarr2", "zarr3"):
        return f"hyperslab {__version__}"
    import h5py

    return f"hyperslab {__version__}, HDF5 {h5py.version.hdf5_version}, h5py {h5py.version.version}"


def _has_changed(files: SourceFiles, journal: ConversionJournal) -> bool:
    try:
        return bool(files.version() != journal.header["source"])
    except FileChanged:
        return True


def format_of(path: Path, asked: str | None) -> Format:
    """The format that was asked for, or that a name ends in; refuses others."""
    chosen: Any = asked or SUFFIXES.get(path.suffix.lower())
    if chosen not in FORMATS:
        known = ", ".join(FORMATS)
        near = meant(asked or "", FORMATS)
        raise UsageError(
            f"{path}: the format is not clear{near}; end the name with .h5, .nc or .zarr, or choose from {known}"
        )
    return chosen  # type: ignore[no-any-return]


def _verify(asked: str) -> Verify:
    if asked not in ("checksum", "library", "none"):
        raise UsageError(f"verify={asked!r}: choose checksum, library or none")
    return asked  # type: ignore[return-value]


def usual_memory() -> int:
    """Half of the memory that is available now, but at least 64 MiB."""
    return max(LEAST_MEMORY, available_nbytes() // 2)


def _nbytes(path: Path) -> int:
    if path.is_dir():
        return sum(one.stat().st_size for one in path.rglob("*") if one.is_file())
    return path.stat().st_size if path.exists() else 0


def _sync(journal: ConversionJournal) -> None:
    inner = journal.data.rglob("*") if journal.data.is_dir() else ()
    for one in (*inner, journal.data):
        sync_one(one)

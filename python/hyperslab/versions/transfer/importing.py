"""`import_files`: files become versions of one file, in which equal chunks are stored once."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hyperslab.archive.opening import open as open_archive
from hyperslab.archive.tree.group import Group
from hyperslab.errors import FileChanged, HyperslabError, NoSuchFile, RunError, UsageError
from hyperslab.journal.signals import raise_pending_signals
from hyperslab.progress import Progress
from hyperslab.versions.branching.ancestry import children_first
from hyperslab.versions.file import VersionedFile
from hyperslab.versions.inspect import witness
from hyperslab.versions.inspect.verify import verify as check_versions
from hyperslab.versions.layout.names import DATA, as_datetime, check_name
from hyperslab.versions.layout.seen import SeenVersions
from hyperslab.versions.transfer.ahead import Ahead, Compared
from hyperslab.versions.transfer.receiving import Received, Receiving

FROM = "imported_from"  # the attribute of a version that says which file it was made from
MTIME, ATTRIBUTE = "mtime", "attribute:"
# Each commit waits for the disk some ten times, so it takes as many versions as this, or as add so many bytes.
HELD_COUNT, HELD_NBYTES = 32, 1 << 27


@dataclass(frozen=True)
class Imported:
    """What was imported.

    Attributes
    ----------
    path
        The file with the versions.
    versions
        The versions that were made, in the order in which they were made.
    present
        Versions that an earlier import, which was stopped, had made already.
    chunk_count, same_count, found_count, new_count
        Chunks of all these files: all; those that the version before has; those found in another version or place; and
        those that were stored.
    source_nbytes
        The bytes of the files.
    file_nbytes
        The bytes of the file with the versions.
    left_out
        What a version cannot hold, by version and path, with the reason.
    notes
        What you may want to know: versions whose time is not later than that of the one before.
    """

    path: str
    versions: tuple[str, ...]
    present: tuple[str, ...]
    chunk_count: int
    same_count: int
    found_count: int
    new_count: int
    source_nbytes: int
    file_nbytes: int
    left_out: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def saved_nbytes(self) -> int:
        """How many bytes fewer the file has than the files that were imported."""
        return self.source_nbytes - self.file_nbytes


class Source(NamedTuple):
    """What becomes a version: a file, or a version of a file."""

    name: str
    path: str
    version: str | None
    parent: str | None  # the name of the version before it
    time: dt.datetime
    stat: os.stat_result

    def check(self) -> None:
        """Refuse a file that is not what it was when the import began.

        Raises
        ------
        FileChanged
            It has changed, or another file, or none, has its name.
        """
        now = os.stat(self.path) if Path(self.path).exists() else None  # noqa: PTH116
        if now is None or _identity(now) != _identity(self.stat):
            raise FileChanged(f"{self.path} changed while it was imported: do the same again")

    @property
    def mark(self) -> str:
        """What the version says of where it comes from."""
        said: dict[str, Any] = {"file": Path(self.path).name, "nbytes": self.stat.st_size}
        said |= {"mtime_ns": self.stat.st_mtime_ns} | ({} if self.version is None else {"version": self.version})
        return json.dumps(said)


def import_files(
    files: Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    time: str = MTIME,
    chunks: Mapping[str, Sequence[int]] | None = None,
    skip_unsupported: bool = False,
    verify: bool = True,
    timeout: float = 1.0,
    progress: Progress | None = None,
) -> Imported:
    """Make each file a version, in this order; a file with versions becomes all of these. The first one follows the
    current version of the output, if there is one.

    Chunks are compared with those of the file before: by their stored bytes, or by their elements where codecs or chunk
    shapes differ. Equal chunks are stored once, new ones with the bytes that they have, if that is possible. A few
    versions are committed at a time: if the import is stopped, do the same again, and it goes on after the last commit.

    Parameters
    ----------
    files : iterable of str or os.PathLike
        The files: HDF5, NetCDF, or anything that `hyperslab.open` reads. A version gets the name of its file without
        the suffix, and the attributes of the file's root.
    output : str or os.PathLike
        The file with the versions, which is created if it does not exist.
    time : str
        The time of each version: `mtime`, when the file was last changed; or `attribute:NAME`, an attribute of the
        file's root, as ISO 8601 or in seconds since 1970. Versions of a file with versions keep theirs.
    chunks : mapping of str to sequence of int, optional
        The chunk shapes of new arrays by path; "" stands for all others. By default as in the first file.
    skip_unsupported : bool
        Leave out what a version cannot hold, such as arrays without axes, instead of refusing it.
    verify : bool
        Read the versions that were made again, and hash their chunks.
    timeout : float
        How many seconds to wait for other processes that have the output open.
    progress : callable, optional
        Called with the name of a version, the number of versions made so far, and the number of all.

    Returns
    -------
    Imported
        What was imported, and the bytes saved.

    Raises
    ------
    UsageError
        Two files would get the same name; the output has a version of that name that comes from elsewhere; a file has
        no such time; or an array has another type than before.
    Refused
        A version cannot hold something that a file holds.
    NoSuchFile
        A file does not exist.
    RunError
        What was written is not what was read.
    """
    target = os.path.abspath(os.fspath(output))  # noqa: PTH100
    sources = list(_sources([os.path.abspath(os.fspath(one)) for one in files], target, time))  # noqa: PTH100
    cut = {path.strip("/"): tuple(map(int, shape)) for path, shape in (chunks or {}).items()}
    with VersionedFile(target, "a", timeout=timeout) as file, witness.hired() if verify else nullcontext() as ask:
        importing = _Importing(file, sources, cut, skip_unsupported)
        importing.check()
        importing.run(progress)
        if ask is not None and importing.made:
            found = check_versions(file.path, file.table, importing.made, ask=ask)
            if not found.is_whole:
                raise RunError(f"{target} is not what was read: {found.damages[0].what}: please report it")
    return importing.result()


@dataclass
class _Importing:
    file: VersionedFile
    sources: list[Source]
    chunks: Mapping[str, tuple[int, ...]]
    skip_unsupported: bool

    def __post_init__(self) -> None:
        self.made: list[str] = []
        self.present: list[str] = []
        self._total = Received()
        self._receiving: Receiving | None = None
        self._held: list[Source] = []  # made, but not committed
        self._nbytes = Path(self.file.path).stat().st_size  # when they were last
        self._by_name = {one.name: one for one in self.sources}
        self._root = self.file.current_version or ""  # what the first file follows

    def check(self) -> None:
        """Find the versions that are there already, and refuse names that are taken, before anything is written."""
        for one in self.sources:
            if one.name not in self.file:
                continue
            if self.file[one.name].attrs.get(FROM) != one.mark:
                said = (
                    f"there is a version {one.name!r} in {self.file.path} already, which was not made from {one.path}"
                )
                raise UsageError(f"{said} as it is now: rename the file, or import it into another one")
            self.present.append(one.name)
        if self.present:
            self._root = self.file.table[self.present[0]].parent or ""

    def run(self, progress: Progress | None) -> None:
        """Make the versions that are not there yet."""
        with Ahead() as ahead:
            self._run(ahead, progress)

    def _run(self, ahead: Ahead, progress: Progress | None) -> None:
        for done, one in enumerate(self.sources):
            if progress is not None:
                progress(one.name, done, len(self.sources))
            if one.name in self.present:
                continue
            compared = ahead.take(one.name)
            for following in self.sources[done + 1 : done + 2]:
                before = self._before(following)
                if before is not None and before.path != following.path:  # a file's versions share what is equal
                    ahead.begin(following.name, partial(_opened, following), partial(_opened, before))
            try:
                self._add(one, compared)
            except Exception:  # which undid the versions before it that were not committed
                self._add_again()
                raise
            self.made.append(one.name)
            added = Path(self.file.path).stat().st_size - self._nbytes
            if added >= HELD_NBYTES or len(self._held) >= HELD_COUNT:
                self._commit()
        self._commit()

    def _before(self, one: Source) -> Source | None:
        """What the version before another is made from."""
        return None if one.parent is None else self._by_name.get(one.parent)

    def _add(self, one: Source, compared: Compared | None = None) -> None:
        before = self._before(one)
        parent = one.parent if one.parent is not None else self._root
        with ExitStack() as stack:
            group = stack.enter_context(_opened(one))
            old = None if before is None else stack.enter_context(_opened(before))
            self._make(one, parent, group, old, compared)
        self._held.append(one)

    def _commit(self) -> None:
        self.file.commit_held()
        self._held.clear()
        self._nbytes = Path(self.file.path).stat().st_size

    def _add_again(self) -> None:
        """Make the versions again that were undone: as many as can be, if a file is not what it was."""
        held, self._held = self._held, []
        while held:
            try:
                for one in held:
                    self._add(one)
                self._commit()
            except Exception:
                made, self._held = self._held, []
                held = made if len(made) < len(held) else []  # what stopped it was a file, or the disk
            else:
                return

    def _make(self, one: Source, parent: str, group: Group, old: Group | None, compared: Compared | None) -> None:
        before = self._before(one)
        with self.file.receive_version(one.name, parent, one.time, hold=True) as (staged, stores):
            if self._receiving is None or self._receiving.stores is not stores:
                self._receiving = Receiving(stores, self.chunks, self.skip_unsupported)
            found = self._receiving.put(staged, group, old, compared)
            staged.attrs[FROM] = one.mark
            for read in (one,) if before is None else (one, before):
                read.check()
        total = self._total
        total.chunk_count += found.chunk_count
        total.same_count += found.same_count
        total.found_count += found.found_count
        total.new_count += found.new_count
        total.left_out.update((f"{one.name}: {path}", reason) for path, reason in found.left_out.items())

    def result(self) -> Imported:
        """What was done."""
        total = self._total
        notes = []
        for one in self.sources:
            before = next((other for other in self.sources if other.name == one.parent), None)
            if before is not None and one.time <= before.time:
                notes.append(f"{one.name} is not later than {before.name}, which it was made from")
        sizes = {one.path: one.stat.st_size for one in self.sources}
        return Imported(
            self.file.path, tuple(self.made), tuple(self.present), total.chunk_count, total.same_count,
            total.found_count, total.new_count, sum(sizes.values()), Path(self.file.path).stat().st_size,
            total.left_out, tuple(notes),
        )  # fmt: skip


def _identity(stat: os.stat_result) -> tuple[int, int, int]:
    return stat.st_size, stat.st_mtime_ns, stat.st_ino


def _sources(paths: Sequence[str], target: str, time: str) -> Iterator[Source]:
    """What becomes versions, in order, each after its parent."""
    if not paths:
        raise UsageError("name the files to import")
    names: dict[str, str] = {}
    last: str | None = None
    for path in paths:
        raise_pending_signals()
        if not Path(path).exists():
            raise NoSuchFile.at(path)
        stat = os.stat(path)  # noqa: PTH116
        if Path(target).exists() and os.path.samefile(path, target):  # noqa: PTH121
            raise UsageError(f"{path} is the file to import into: leave it out")
        with open_archive(path) as root:
            is_versioned = f"{DATA}/versions" in root
            own_time = None if is_versioned else _time(root, time, stat)
        found = _versions_of(path, stat, last) if own_time is None else [_file(path, own_time, stat, last)]
        for one in found:
            if one.name in names:
                raise UsageError(
                    f"{names[one.name]} and {path} both become the version {one.name!r}: rename one of them"
                )
            names[one.name] = path
            last = one.name
            yield one


def _file(path: str, time: dt.datetime, stat: os.stat_result, last: str | None) -> Source:
    return Source(check_name(Path(path.rstrip("/")).stem), path, None, last, time, stat)


def _versions_of(path: str, stat: os.stat_result, last: str | None) -> list[Source]:
    """The versions of a file, each after its parent. The first ones follow the file before."""
    seen = SeenVersions(path, 0)
    table = seen.table
    found = dict[str, Source]()
    for name in reversed(children_first(table, table, seen.refs)):
        parent = table[name].parent
        if parent in table and parent not in found:
            raise UsageError(f"the ancestors of version {name!r} of {path} form a circle: repair the file first")
        known = parent if parent in table else last
        found[name] = Source(name, path, name, known, table[name].time, stat)
    return list(found.values())


def _time(root: Group, asked: str, stat: os.stat_result) -> dt.datetime:
    """The time of the version that a file becomes."""
    if asked == MTIME:
        return dt.datetime.fromtimestamp(stat.st_mtime_ns // 1000 / 1e6, dt.UTC)
    if not asked.startswith(ATTRIBUTE) or asked == ATTRIBUTE:
        raise UsageError(f"{asked!r} is no time of a file: use {MTIME}, or {ATTRIBUTE}NAME")
    name = asked.removeprefix(ATTRIBUTE)
    if name not in root.attrs:
        raise UsageError(f"{root.filename} has no attribute {name!r} that says its time")
    said = root.attrs[name]
    try:
        if isinstance(said, int | float | np.integer | np.floating):
            return dt.datetime.fromtimestamp(float(said), dt.UTC)
        time = dt.datetime.fromisoformat(str(said))
        return as_datetime(time.replace(tzinfo=dt.UTC) if time.tzinfo is None else time.astimezone(dt.UTC))
    except (ValueError, OverflowError, OSError):
        said_of = f"attribute {name!r} of {root.filename} is {said!r}"
        raise UsageError(f"{said_of}, which is no time: use ISO 8601, or seconds since 1970") from None


@contextmanager
def _opened(one: Source) -> Iterator[Group]:
    """The content of what becomes a version."""
    try:
        opened = open_archive(one.path) if one.version is None else open_archive(one.path, version=one.version)
    except HyperslabError:
        raise
    except OSError as error:
        raise UsageError(f"{one.path} cannot be opened: {error.strerror or error}") from error
    with opened as group:
        yield group

"""`VersionedFile`: arrays with all their versions in one HDF5 file, in the layout of versioned-hdf5."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from hyperslab.archive.far.allowed import Allowed, Locations
from hyperslab.archive.far.remote import SourceResolver
from hyperslab.archive.tree.array import Array as ArchiveArray
from hyperslab.archive.tree.group import Group
from hyperslab.errors import UsageError
from hyperslab.journal.locks import check_is_named, check_process
from hyperslab.journal.signals import defer_signals
from hyperslab.meant import meant
from hyperslab.memory import CHUNK_CACHE_NBYTES
from hyperslab.needed import need_h5py
from hyperslab.versions.branching.branched import Place, version_texts
from hyperslab.versions.branching.mergeable import Mergeable
from hyperslab.versions.layout import names as layout
from hyperslab.versions.layout.names import FIRST_VERSION, VERSIONS, Time
from hyperslab.versions.layout.reading import local_path
from hyperslab.versions.layout.refs import Target
from hyperslab.versions.layout.seen import SeenVersions
from hyperslab.versions.layout.table import Version, VersionKey, VersionTable
from hyperslab.versions.layout.version_group import checked_chunks
from hyperslab.versions.rewrite.rewritable import Rewritable
from hyperslab.versions.stage.staged_array import StagedArray
from hyperslab.versions.stage.staged_group import StagedGroup

if TYPE_CHECKING:
    import h5py

    from hyperslab.journal.journaled_file import JournaledFile
    from hyperslab.progress import Progress
    from hyperslab.versions.rewrite.rewriting import RewritePlan
    from hyperslab.versions.stage.committed import CommittedArray, CommittedGroup

Location: TypeAlias = "str | os.PathLike[str] | h5py.File"
TIMEOUT = 1.0  # seconds; long enough for a process that reads only a little
Mode = Literal["r", "r+", "a", "w"]


class VersionedFile(Mergeable, Rewritable):
    """A file of versions: `file["v1"]["x"][...]` reads, `with file.stage_version("v2") as version:` adds a version.

    Parameters
    ----------
    file : str, os.PathLike, h5py.File or h5py.Group
        The path of the file, or an open h5py file (or a group in one). An open file keeps its own mode, and you close
        it yourself.
    mode : {"r", "r+", "a", "w"}
        `r` reads; `r+` adds versions; `a` creates the file if it does not exist; `w` always creates a new file.
    chunk_cache_nbytes : int
        Memory in bytes for the decoded chunks of each version that you read.
    timeout : float
        How many seconds to wait, when writing, for other processes that have the file open. Ctrl-C ends the wait.
    allowed : list of str, optional
        Folders and URLs that the groups of versions may lead to, as for `hyperslab.open`. `diff`, `log`, `stats` and
        `export` read only this file.

    Raises
    ------
    FileNotFoundError
        The file does not exist.
    Unsupported
        The file has no versions, or its layout is newer than this release knows.
    StaleJournal, MissingJournal
        The journal beside the file belongs to another file; or (when writing) the file needs a journal that is missing.
    UsageError
        The file cannot be written to.
    """

    def __init__(
        self,
        file: Location,
        mode: Mode = "r",
        chunk_cache_nbytes: int = CHUNK_CACHE_NBYTES,
        *,
        timeout: float = TIMEOUT,
        allowed: Locations | None = None,
    ) -> None:
        self._stores: Any = None
        self._kept_open: Any = None  # libhdf5 reads an object again unless something keeps it open
        self._last: tuple[str, CommittedGroup] | None = None  # the last version that this object committed
        self._staging: str | None = None
        self._is_held = False  # whether versions wait for the next commit
        self._process = os.getpid()
        self._file: Any = None
        self._owned: Any = None
        self._borrowed_as: Any = None  # the file that h5py has open
        self.layouts: Any = None  # that HDF5 may use for new objects, if they are not its defaults
        self._closed = False
        self._within = ""  # the path of the group that holds the versions
        if isinstance(file, str | os.PathLike):
            self.path: str = local_path(file)
            if mode not in ("r", "r+", "a", "w"):
                raise ValueError(f"{mode!r} is not a mode: use r, r+, a or w")
            if mode != "r":
                self._own(mode, timeout)
        else:
            self.path = os.path.abspath(file.file.filename)  # noqa: PTH100
            self._within = f"{file.name}/".lstrip("/")
            self._borrow(file)
        is_lazy, to_write = self._owned is not None or self._file is None, self._file is not None
        location = (self.path, chunk_cache_nbytes, self._within)
        resolver = SourceResolver(allowed=Allowed.of(allowed, self.path))
        self._seen = SeenVersions(*location, is_lazy=is_lazy, to_write=to_write, settle=self._settle, resolver=resolver)

    @defer_signals()
    def _own(self, mode: Mode, timeout: float) -> None:
        need_h5py("writing versions")
        from hyperslab.versions.commit import writing

        self._owned = writing.WritableFile(self.path, mode, writing.SYSTEM, timeout)
        self._forget()

    def _borrow(self, file: Any) -> None:
        from hyperslab.versions.commit.writing import check_borrowed, identity, prepare

        check_borrowed(file)
        if file.file.mode != "r":
            self._file, self._borrowed_as, self.layouts = file, identity(file.file), file.file.libver
            self._ready()
            prepare(file)
            self._forget()

    def _settle(self) -> None:
        """Flush what h5py still holds back, if the file is not ours, so that it can be read."""
        self._ready()
        if self._file is not None and self._owned is None:
            self._file.file.flush()

    def _recover(self) -> None:
        """Complete or undo a change that failed together with its disk."""
        if self._owned is not None and not self._owned.is_usable:
            with self._change("the change that failed before"):
                self._roll_back()
            self._seen.refresh()

    def _ready(self) -> None:
        """Go on after a failure, and refuse a file that was replaced."""
        self._recover()
        if self._owned is not None:
            self._owned.journaled.check_is_named()
        elif self._file is not None:
            check_is_named(self._borrowed_as, self.path)

    @property
    def versions(self) -> list[str]:
        """The names of all versions, oldest first."""
        return list(self.table)

    @property
    def table(self) -> VersionTable:
        """All versions with their parents and times."""
        self._recover()
        return self._seen.table

    @property
    def _said(self) -> VersionTable:
        return self._seen.said

    @property
    def current_version(self) -> str | None:
        """The name of the current version, or None if there is none. You can set it."""
        self._recover()
        return self._seen.current

    @current_version.setter
    def current_version(self, name: str) -> None:
        self._writable()
        self.table[name]  # raises an error if there is no such version
        ours = self._ours() if self._seen.refs.is_explicit else None
        leaves = ours is not None and (ours.problem is not None or ours.version != name)
        self._put({"checked_out": None} if leaves else {}, f"{name!r} as the current version", name)

    @property
    def closed(self) -> bool:
        """Whether the file is closed."""
        return self._closed

    def __getitem__(self, key: VersionKey) -> Group:
        """The group of a version.

        You can ask by name; by time in UTC, which gives the last version committed at or before it; by 0 or None for
        the current version; or by -n for its n-th ancestor. A branch means its head, and a tag its version.

        Raises
        ------
        KeyError
            The version does not exist.
        IndexError
            The current version has fewer ancestors.
        """
        self._check_not_closed()
        return self._seen[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)

    def __contains__(self, name: object) -> bool:
        return name in self.table

    def refresh(self) -> None:
        """Look for versions that others have committed since. Groups and arrays in use do not change."""
        self._check_not_closed()
        self._seen.refresh()

    @contextmanager
    def stage_version(
        self,
        name: str | None = None,
        prev_version: str | None = None,
        make_current: bool | None = None,
        timestamp: Time | None = None,
        *,
        branch: str | None = None,
        message: str | None = None,
        author: str | None = None,
    ) -> Iterator[StagedGroup]:
        """Make a new version: change the group that the `with` statement gives; its end commits the version.

        An exception inside the statement leaves the file as it was.

        Parameters
        ----------
        name : str, optional
            The name of the version; by default a new unique name.
        prev_version : str, optional
            The version to start from; by default the head of `branch`, or the current version. Use "" to start with
            nothing.
        make_current : bool, optional
            Whether the new version becomes the current one; by default unless `branch` is not checked out. To make it
            current there checks the branch out.
        timestamp : datetime.datetime or numpy.datetime64, optional
            The time of the commit, in UTC; by default now.
        branch : str, optional
            The branch that moves on to the new version; by default the one that is checked out, if the version starts
            from its head. A branch that does not exist is created.
        message, author : str, optional
            Attributes of the version with these names.

        Raises
        ------
        ValueError
            The version exists already, its parent does not exist, or the time is not in UTC.
        UsageError
            The file is open for reading only, or another version is being made.
        """
        self._writable()
        chosen = str(uuid.uuid4()) if name is None else name
        place, texts = self._place(chosen, branch, prev_version, make_current), version_texts(message, author)
        with self._staged(chosen, place, texts, timestamp) as root:
            yield root

    @contextmanager
    def receive_version(
        self,
        name: str,
        parent: str,
        timestamp: Time,
        merged: Target | None = None,
        *,
        make_current: bool | None = None,
        hold: bool = False,
    ) -> Iterator[tuple[StagedGroup, Any]]:
        """Make a version from another file: its chunks may be stored before it is complete. Gives the staged version,
        and the chunks of all arrays. `hold` leaves it to the next commit, which a failure undoes as a whole.
        """
        self._writable()
        self._check_whole()
        if self._is_held and (self._last is None or self._last[0] != parent):  # which is to be read from the file
            self.commit_held()
        self._is_held, self._stores.commit_held = hold, self.commit_held if hold else None
        place = self._place(name, None, parent, make_current)
        change = self._change(f"version {name!r}")
        with defer_signals(), change, self._staged(name, place, {}, timestamp, merged) as root:
            yield root, self._stores

    def commit_held(self) -> None:
        """Commit the versions that were left to the next commit."""
        self._is_held, self._stores.commit_held = False, None
        with self._change("versions"):
            self._flush()

    @contextmanager
    def _staged(
        self, name: str, place: Place, texts: dict[str, str], timestamp: Time | None, merged: Target | None = None
    ) -> Iterator[StagedGroup]:
        if timestamp is not None:
            layout.as_datetime(timestamp)
        if self._staging is not None:
            raise UsageError(f"version {self._staging!r} is being made: finish it before another")
        root = StagedGroup("", self._base(place.parent), self)
        root.attrs.update(texts)
        self._staging = name
        try:
            yield root
            self._commit(name, place, root, timestamp, merged)
        finally:
            self._staging = None
            root.close()

    @defer_signals()
    def _rewrite(self, plan: Callable[[], RewritePlan], repack: bool, progress: Progress | None = None) -> None:
        """Write versions again: all of them, or none."""
        from hyperslab.versions.rewrite.rewriting import rewrite_elsewhere, rewrite_in_place

        self._writable()
        self._check_whole()
        if self._staging is not None:
            raise UsageError(f"version {self._staging!r} is being made: finish it before")
        self._flush()
        known = self.table
        self._seen.forget_groups()
        self._let_go()
        with self._change("the change"):
            change = plan()
            if repack and self._owned is not None:
                fill = partial(rewrite_elsewhere, self._file, change=change, progress=progress)
                self._owned.replace(lambda made, journaled: fill(made, journaled=journaled))
            else:
                rewrite_in_place(self._file.file, change, self._journaled, progress)
                self._flush()
                if self._owned is not None:
                    self._owned.reopen()
        self._forget()
        self._seen.table = known.rewritten(change.versions, change.parents, change.current)
        self._seen.refs = None

    def _let_go(self) -> None:
        """Let libhdf5 close all that is open in the file."""
        self._last = self._stores = self._kept_open = None

    def _forget(self) -> None:
        """Forget what is known of chunks and groups, which may have changed."""
        from hyperslab.versions.commit.chunk_store import ChunkStores

        self._let_go()
        if self._owned is not None:
            self._file = self._owned.file
            self._kept_open = self._file[VERSIONS] if self._file else None
        self._stores = ChunkStores(self._file, self._journaled)

    @contextmanager
    def _change(self, what: str) -> Iterator[None]:
        """Make all of a change, or nothing of it; an error of the disk says which."""
        before = 0 if self._owned is None else self._owned.commit_count
        try:
            yield
        except BaseException as error:
            with suppress(OSError, RuntimeError):  # what fails now is done by `_ready`
                self._roll_back()
                self._seen.refresh()  # a commit that could not be undone was completed
            clearer = None if self._owned is None else self._owned.told(error, what, before)
            if clearer is not None:
                raise clearer from error
            raise

    def _roll_back(self) -> None:
        """Undo all changes since the last commit, if the file is ours."""
        self._seen.forget_groups()
        self._let_go()
        try:
            if self._owned is not None:
                self._owned.roll_back()
        finally:
            self._forget()

    @property
    def _journaled(self) -> JournaledFile | None:
        return None if self._owned is None else self._owned.journaled

    def _base(self, version: str | None) -> Group | CommittedGroup | None:
        """What a version that is based on another starts with."""
        if self._last is not None and self._last[0] == version:
            return self._last[1]
        self._check_not_closed()
        return None if version is None else self._seen[version].plain

    def _parent(self, asked: str | None) -> str | None:
        if asked is None:
            return self.current_version
        if asked in ("", FIRST_VERSION):
            return None
        if asked not in self.table:
            near = meant(asked, self.table)
            raise ValueError(f"there is no version {asked!r} in {self.path} to start from{near}")
        return asked

    @defer_signals()
    def _commit(
        self, name: str, place: Place, root: StagedGroup, timestamp: Time | None, merged: Target | None = None
    ) -> None:
        from hyperslab.versions.commit.commit import undo, write_version
        from hyperslab.versions.commit.virtual import VirtualArrays
        from hyperslab.versions.stage.committed import CommittedVersion

        self._writable()
        stamp = layout.stored_time(timestamp)
        current = self._file[VERSIONS].attrs["current_version"] if self._owned is None else ""
        version, parent = CommittedVersion(self.path, name, self._stores, self._is_held), place.parent
        entries, refs = self._entries_of(place, Target(name, stamp), merged), self._seen.refs
        with self._change(f"version {name!r}"):
            try:
                arrays = VirtualArrays(self._file, self._journaled)
                how: dict[str, Any] = {"make_current": place.is_current, "refs": entries}
                written = write_version(self._file, root, parent, stamp, version, arrays, **how)
                if not self._is_held:
                    self._flush()
            except BaseException:
                if self._owned is None:
                    undo(self._file, name, current, self._before(entries))
                raise
        if self._owned is not None:  # otherwise others may change it
            self._last = (name, written)
        added = Version(name, parent, layout.parsed_time(stamp))
        self._seen.table = self.table.changed(added, name if place.is_current else self.table.current)
        own = {"version": name, "timestamp": stamp, "parent": parent or FIRST_VERSION}
        self._seen.refs = refs.changed({**own, **entries})

    def array_of(self, path: str, base: ArchiveArray | CommittedArray) -> StagedArray:
        """Stage an array of the version before, for the version that is being made."""
        if isinstance(base, ArchiveArray):
            return StagedArray.of_version(path, base, checked_chunks(base))
        return StagedArray.of_commit(base)

    def new_array(self, path: str, asked: dict[str, Any]) -> StagedArray:
        """Stage a new array for the version that is being made."""
        from hyperslab.versions.commit.writing import new_array

        return new_array(self._file, path, asked)

    def close(self) -> None:
        """Close the file if it was opened here."""
        if not self._closed:
            self._closed = True
            self._let_go()
            self._seen.forget_groups()  # groups in use stay valid
            if self._owned is not None:
                self._owned.close()
            self._file = self._owned = None

    def __enter__(self) -> VersionedFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _flush(self) -> None:
        if self._owned is not None:
            self._owned.commit()
        else:
            self._file.file.flush()

    def _check_not_closed(self) -> None:
        if self._closed:
            raise ValueError(f"{self.path} is closed: open it again")

    def _check_whole(self) -> None:
        """Refuse files whose versions are not in the root, and flush what h5py still holds back."""
        self._check_not_closed()
        if self._within:
            raise UsageError(f"{self.path}: this works only for versions in a file's root, not in {self._within[:-1]}")
        self._settle()

    def _writable(self) -> None:
        self._check_not_closed()
        if self._file is None:
            raise UsageError(f"{self.path} is open for reading only: open it with mode='r+' to add versions")
        check_process(self.path, self._process)
        self._ready()

"""`VersionedFile`: arrays with all their versions in one HDF5 file, in the layout of versioned-hdf5."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from hyperslab.archive.allowed import Allowed, Locations
from hyperslab.archive.array import Array as ArchiveArray
from hyperslab.archive.open_file import CHUNK_CACHE_NBYTES
from hyperslab.archive.remote import SourceResolver
from hyperslab.archive.tree import Group
from hyperslab.errors import UsageError
from hyperslab.journal.locks import check_process
from hyperslab.journal.signals import defer_signals
from hyperslab.needed import need_h5py
from hyperslab.versions.inspect.inspected import Inspected
from hyperslab.versions.layout import names as layout
from hyperslab.versions.layout.names import FIRST_VERSION, VERSIONS, Time
from hyperslab.versions.layout.reading import local_path
from hyperslab.versions.layout.seen import SeenVersions
from hyperslab.versions.layout.table import Version, VersionKey, VersionTable
from hyperslab.versions.layout.version_group import checked_chunks
from hyperslab.versions.stage.staged_array import StagedArray
from hyperslab.versions.stage.staged_group import StagedGroup

if TYPE_CHECKING:
    import h5py

    from hyperslab.journal.journaled_file import JournaledFile
    from hyperslab.versions.rewrite.rewriting import Change
    from hyperslab.versions.stage.committed import CommittedArray, CommittedGroup

Location: TypeAlias = "str | os.PathLike[str] | h5py.File"
TIMEOUT = 1.0  # seconds, for who only reads a little
Mode = Literal["r", "r+", "a", "w"]


class VersionedFile(Inspected):
    """A file of versions: `file["v1"]["x"][...]` reads, `with file.stage_version("v2") as version:` makes a new one.

    Parameters
    ----------
    file : Location
        Its path, or an `h5py.File` (or group in one) that is open; then `mode` is that file's, and closing it is its
        owner's.
    mode : Mode
        `r` to read; `r+` to add versions; `a` to make the file if there is none; `w` to make a new one.
    chunk_cache_nbytes : int
        Memory for decoded chunks of each version that is read.
    timeout : float
        To write: how many seconds to wait for others who have the file open. Ctrl-C ends it.
    allowed : Locations | None
        Folders and URLs that the groups of versions may lead to, as for `hyperslab.open`. `diff`, `log`, `stats` and
        `export` read nothing but the file.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    Unsupported
        The file has no versions, or those of a later layout.
    StaleJournal, MissingJournal
        The journal beside it is not of it; to write: one is needed, and is not there.
    UsageError
        It cannot be written to.
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
        self._kept_open: Any = None  # libhdf5 reads again what nobody keeps open
        self._last: tuple[str, CommittedGroup] | None = None  # the version that was committed here last
        self._staging: str | None = None
        self._process = os.getpid()
        self._file: Any = None
        self._owned: Any = None
        self._closed = False
        self._within = ""  # the path of the group that versions are in
        if isinstance(file, str | os.PathLike):
            self.path = local_path(file)
            if mode not in ("r", "r+", "a", "w"):
                raise ValueError(f"{mode!r} is no mode: use r, r+, a or w")
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
        from hyperslab.versions.commit.writing import check_borrowed, prepare

        check_borrowed(file)
        if file.file.mode != "r":
            self._file = file
            prepare(file)
            self._forget()

    def _settle(self) -> None:
        """Make what h5py holds back of a file that is not ours readable."""
        if self._file is not None and self._owned is None:
            self._file.file.flush()

    @property
    def versions(self) -> list[str]:
        """The names of all versions, oldest first."""
        return list(self.table)

    @property
    def table(self) -> VersionTable:
        """All versions with their parents and times."""
        return self._seen.table

    @property
    def _said(self) -> VersionTable:
        return self._seen.said

    @property
    def current_version(self) -> str | None:
        """The name of the current version; None while there is none. Can be set."""
        return self._seen.current

    @current_version.setter
    def current_version(self, name: str) -> None:
        self._writable()
        self.table[name]  # so that it is one
        with defer_signals():
            self._file[VERSIONS].attrs["current_version"] = name
            self._stores.fingerprints.add(None, current=name)
            self._flush()
        self._seen.table = self.table.changed(None, name)

    @property
    def closed(self) -> bool:
        """Whether the file was closed."""
        return self._closed

    def __getitem__(self, key: VersionKey) -> Group:
        """The group of a version: by name, by time in UTC (the last one then or before), 0 or None for the current
        one, -n for its ancestors.

        Raises
        ------
        KeyError
            There is no such version.
        IndexError
            There are not so many ancestors.
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
        """See versions that others committed since. Groups and arrays that are in use stay as they are."""
        self._check_not_closed()
        self._seen.refresh()

    @contextmanager
    def stage_version(
        self,
        name: str | None = None,
        prev_version: str | None = None,
        make_current: bool = True,
        timestamp: Time | None = None,
    ) -> Iterator[StagedGroup]:
        """Make a new version: what the `with` statement gives can be changed; at its end that is committed.

        An exception inside leaves the file as it was.

        Parameters
        ----------
        name : str | None
            The version's name; made up if there is none.
        prev_version : str | None
            The version to start from, by default the current one; "" to start from nothing.
        make_current : bool
            Whether it becomes the current version.
        timestamp : Time | None
            When it was committed, in UTC, if not now.

        Raises
        ------
        ValueError
            There is such a version already, or no such parent; the time is not in UTC.
        UsageError
            The file is open for reading, or another version is being made.
        """
        self._writable()
        chosen = layout.check_name(str(uuid.uuid4()) if name is None else name)
        if timestamp is not None:
            layout.as_datetime(timestamp)
        if chosen in self.table:
            raise ValueError(f"there is a version {chosen!r} in {self.path} already")
        parent = self._parent(prev_version)
        if self._staging is not None:
            raise UsageError(f"version {self._staging!r} is being made: finish it before another")
        root = StagedGroup("", self._base(parent), self)
        self._staging = chosen
        try:
            yield root
            self._commit(chosen, parent, root, make_current, timestamp)
        finally:
            self._staging = None
            root.close()

    def delete_versions(self, names: str | Iterable[str], *, repack: bool = True) -> None:
        """Delete versions, with all that only they hold. Their children become those of their parents.

        All or nothing, as committing is. Readers keep what they have open.

        Parameters
        ----------
        names : str | Iterable[str]
            The names of the versions.
        repack : bool
            Write what stays into a new file, which then takes the place of this one: it is as short as can be, and
            nothing of what was deleted is left in it. Needs room for both. If not, only the arrays that lose chunks are
            written anew, behind the rest: the file gets longer, for HDF5 forgets what is free. An `h5py.File` that was
            given is never repacked.

        Raises
        ------
        ValueError
            There is no such version.
        DamagedFile
            A version that stays cannot be read.
        """
        from hyperslab.versions.rewrite.deletion import deletion

        self._rewrite(lambda: deletion(self._file.file, names), repack)

    def modify_metadata(
        self,
        array: str,
        *,
        chunks: int | tuple[int, ...] | Literal[True] | None = None,
        dtype: Any = None,
        fillvalue: Any = None,
        repack: bool = True,
        **codecs: Any,
    ) -> None:
        """Change how an array is stored, in all versions; all or nothing, as committing is.

        Parameters
        ----------
        array : str
            The array's path.
        chunks : int | tuple[int, ...] | Literal[True] | None
            The chunk shape.
        dtype : Any
            The dtype; all elements are cast.
        fillvalue : Any
            The fill value; elements that are the old one become this one.
        repack : bool
            As for `delete_versions`.
        codecs : Any
            `compression`, `compression_opts`, `shuffle`, `fletcher32`, `scaleoffset`, as h5py has them; None for none.
            What is not said stays as it is.

        Raises
        ------
        KeyError
            There is no such array.
        TypeError
            There is no such option, or elements cannot be cast so.
        ValueError
            What is asked contradicts itself.
        """
        from hyperslab.versions.rewrite.recoding import modification

        asked = {"chunks": chunks, "dtype": dtype, "fillvalue": fillvalue}
        self._rewrite(lambda: modification(self._file.file, array, asked, codecs), repack)

    def repack(self) -> None:
        """Write the file anew, as short as can be, in the place of this one; only if it was opened here, to write."""
        from hyperslab.versions.rewrite.deletion import nothing

        self._writable()
        if self._owned is None:
            raise UsageError(f"{self.path} was opened by h5py: open it by its path to repack it")
        self._rewrite(lambda: nothing(self._file.file), repack=True)

    @defer_signals()
    def _rewrite(self, plan: Callable[[], Change], repack: bool) -> None:
        """Write versions anew, all or nothing."""
        from hyperslab.versions.rewrite.rewriting import rewrite_elsewhere, rewrite_in_place

        self._writable()
        self._check_whole()
        if self._staging is not None:
            raise UsageError(f"version {self._staging!r} is being made: finish it before")
        self._flush()
        known = self.table
        self._seen.forget_groups()
        self._let_go()
        try:
            change = plan()
            if repack and self._owned is not None:
                self._owned.replace(lambda made, journaled: rewrite_elsewhere(self._file, made, change, journaled))
            else:
                rewrite_in_place(self._file.file, change, self._journaled)
                self._flush()
                if self._owned is not None:
                    self._owned.reopen()
        except BaseException:
            self._roll_back()
            self._seen.refresh()
            raise
        self._forget()
        self._seen.table = known.rewritten(change.versions, change.parents, change.current)

    def _let_go(self) -> None:
        """Let libhdf5 close what is open of the file."""
        self._last = self._stores = self._kept_open = None

    def _forget(self) -> None:
        """What is known of chunks and groups may not be so any more."""
        from hyperslab.versions.commit.chunk_store import ChunkStores

        self._let_go()
        if self._owned is not None:
            self._file = self._owned.file
            self._kept_open = self._file[VERSIONS] if self._file else None
        self._stores = ChunkStores(self._file, self._journaled)

    def _roll_back(self) -> None:
        """Forget all changes since the last commit, of a file of our own."""
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
        """What a version that is made from another starts with."""
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
            raise ValueError(f"there is no version {asked!r} in {self.path} to start from")
        return asked

    @defer_signals()
    def _commit(
        self, name: str, parent: str | None, root: StagedGroup, make_current: bool, timestamp: Time | None
    ) -> None:
        from hyperslab.versions.commit.commit import undo, write_version
        from hyperslab.versions.commit.virtual import VirtualArrays
        from hyperslab.versions.stage.committed import CommittedVersion

        self._writable()
        stamp = layout.stored_time(timestamp)
        current = self._file[VERSIONS].attrs["current_version"] if self._owned is None else ""
        version = CommittedVersion(self.path, name, self._stores)
        try:
            arrays = VirtualArrays(self._file, self._journaled)
            written = write_version(self._file, root, parent, stamp, version, arrays, make_current=make_current)
            self._flush()
        except BaseException:
            self._roll_back()
            if self._owned is not None:
                self._seen.refresh()  # a commit that could not be undone was finished
            else:
                undo(self._file, name, current)
            raise
        if self._owned is not None:  # else others may change it
            self._last = (name, written)
        time = layout.parsed_time(stamp)
        self._seen.table = self.table.changed(Version(name, parent, time), name if make_current else self.table.current)

    def array_of(self, path: str, base: ArchiveArray | CommittedArray) -> StagedArray:
        """An array of the version that is being made, as the one before has it."""
        if isinstance(base, ArchiveArray):
            return StagedArray.of_version(path, base, checked_chunks(base))
        return StagedArray.of_commit(base)

    def new_array(self, path: str, asked: dict[str, Any]) -> StagedArray:
        """A new array of the version that is being made."""
        from hyperslab.versions.commit.writing import new_array

        return new_array(self._file, path, asked)

    def close(self) -> None:
        """Close the file, if it was opened here."""
        if not self._closed:
            self._closed = True
            self._let_go()
            self._seen.forget_groups()  # whoever holds some keeps them
            if self._owned is not None:
                self._owned.close()
            self._file = self._owned = None

    def __enter__(self) -> VersionedFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{len(self.table)} versions, current {self.table.current!r}"
        return f"<hyperslab.VersionedFile {self.path!r}: {state}>"

    def _flush(self) -> None:
        if self._owned is not None:
            self._owned.commit()
        else:
            self._file.file.flush()

    def _check_not_closed(self) -> None:
        if self._closed:
            raise ValueError(f"{self.path} was closed: open it again")

    def _check_whole(self) -> None:
        """Refuse what knows only of versions in a file's root; and let it see all that h5py holds back."""
        self._check_not_closed()
        if self._within:
            raise UsageError(f"{self.path}: this works only with versions in a file's root, not in {self._within[:-1]}")
        self._settle()

    def _writable(self) -> None:
        self._check_not_closed()
        if self._file is None:
            raise UsageError(f"{self.path} is open for reading: open it with mode='r+' to add versions")
        check_process(self.path, self._process)

"""`JournaledFile`: the file that libhdf5 writes to. A kill or a power cut at any moment leaves the last commit intact.

Bytes beyond the end of the last commit are written to the file at once, because nothing refers to them yet. Bytes that
overwrite committed ones stay in memory until the commit, which has four steps:

1. Sync the appended bytes to disk.
2. Write a journal beside the file, with all bytes to overwrite, old and new. Sync it and its folder.
3. Overwrite the file, in the order of `write_order`, while `write_guard` keeps others from writing. Sync the file.
4. Remove the journal, and sync the folder.

The commit counts from the moment that its journal is complete. If you open the file after an interruption, a complete
journal that belongs to the file is applied again (step 3), and an incomplete one is removed. Bytes that were appended
but not committed are cut off.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from hyperslab.errors import StaleJournal
from hyperslab.journal.journal import (
    Foreign,
    Journal,
    Step,
    System,
    Torn,
    apply,
    found_journal,
    in_the_way,
    journal_path,
    recover,
    remove_journal,
    samples,
    stale,
    sync_folder,
    write_journal,
)
from hyperslab.journal.locks import check_is_named, check_process, exclusive, locked
from hyperslab.journal.overlay import Overlay
from hyperslab.journal.write_guard import NIL, UNKNOWN, Guard, addition, check_has_journal, guard_of, is_plain
from hyperslab.journal.write_order import Overwritten, narrowed, steps_of

TAIL_NBYTES = 1 << 20  # small writes are gathered up to this many bytes
LARGE_NBYTES = 1 << 15


def address(memory: npt.NDArray[np.uint8]) -> int:
    """The address of the first byte."""
    first: int = memory.__array_interface__["data"][0]
    return first


class JournaledFile:
    """A file for h5py (`h5py.File(journaled, ...)`), locked against other writers while it is open.

    Parameters
    ----------
    path : str
        The path of the file; it is created if it does not exist.
    link : str, optional
        Another path that leads to the file, by which the user knows it.
    is_replaced : bool
        Whether another file is going to take its name, so that it does not matter what it holds.
    timeout : float
        How long to wait for another writer that has the file open, in seconds.
    system : System
        Makes the calls that reach the disk.

    Raises
    ------
    UsageError
        Another writer has the file open.
    StaleJournal
        The journal beside the file does not belong to it.
    MissingJournal
        A commit was interrupted while it overwrote parts of the file, and its journal is gone.
    """

    def __init__(
        self,
        path: str,
        *,
        link: str | None = None,
        is_replaced: bool = False,
        timeout: float = 0.0,
        system: System = os,
    ) -> None:
        self.path: str = path
        self._link = path if link is None else link
        self._system = system
        self._process = os.getpid()
        self._descriptor = locked(path, self._opened, timeout)
        try:
            if not is_replaced:
                check_has_journal(path, self._descriptor)
            recover(path, self._descriptor, system)
        except BaseException:
            os.close(self._descriptor)
            raise
        self.committed_nbytes: int = os.fstat(self._descriptor).st_size
        self._nbytes = self.committed_nbytes
        self._overlay = Overlay(self._descriptor)
        self._tail = bytearray()  # appended, not yet written
        self._tail_start = 0
        self._lasting: npt.NDArray[np.uint8] | None = None
        self._lasting_address = 0
        self._run: tuple[int, int, int] | None = None  # of lasting memory, not yet written: offset in file, start, stop
        self._position = 0
        self._is_open = True
        self._failure: OSError | None = None
        self._unwritten: list[tuple[int, bytes]] = []  # what could not be written because of the failure
        self._has_journal = False  # writing it has begun; from then on it alone determines what is written
        self._applying: Journal | None = None  # a complete one, which must be written to the file
        self.commit_count: int = 0
        self.stuck: OSError | None = None  # why a commit that failed could be neither completed nor undone so far
        self._nothing: tuple[list[Overwritten], int] = [], self.committed_nbytes  # the state that needs no commit
        _open_files.add(self)

    def __repr__(self) -> str:
        return self.path

    def _opened(self) -> int:
        """Open the file; create it if it does not exist, unless the journal of a lost file lies there."""
        try:
            return os.open(self.path, os.O_RDWR)
        except FileNotFoundError:
            journal = found_journal(self.path)
            if isinstance(journal, Journal):
                raise stale(self.path, "the file does not exist") from None
            if isinstance(journal, Foreign):
                raise in_the_way(self.path, journal) from None
            return os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Set the position, as the method of files."""
        if whence:
            offset += self._position if whence == os.SEEK_CUR else self._nbytes
        self._position = offset
        return offset

    def tell(self) -> int:
        """The position, as the method of files."""
        return self._position

    def flush(self) -> None:
        """Do nothing: only `commit` writes to disk."""

    def truncate(self, length: int | None = None) -> int:
        """Set the length, as the method of files; committed bytes stay until the commit."""
        self._nbytes = self._position if length is None else length
        return self._nbytes

    def read(self, count: int = -1) -> bytes:
        """Read bytes, as the method of files."""
        out = bytearray(max(0, self._nbytes - self._position) if count < 0 else count)
        return bytes(out[: self.readinto(out)])

    def at(self, offset: int, count: int) -> bytes:
        """Read `count` bytes at an offset.

        Raises
        ------
        OSError
            An earlier write failed.
        """
        self.seek(offset)
        data = self.read(count)
        if self._failure is not None:
            raise self._failure
        return data

    def readinto(self, out: Any) -> int:
        """Read into memory, as the method of files; beyond the end there are zeros."""
        self._append_tail()
        view, start = memoryview(out).cast("B"), self._position
        done = 0 if self._is_open else len(view)
        while done < len(view):
            got = os.preadv(self._descriptor, [view[done:]], start + done)
            if not got:
                view[done:] = bytes(len(view) - done)
                break
            done += got
        stop = start + len(view)
        for offset, data in self._unwritten:
            first, last = max(start, offset), min(stop, offset + len(data))
            if first < last:
                view[first - start : last - start] = data[first - offset : last - offset]
        if self._overlay:
            self._overlay.lay_over(view, start, self.committed_nbytes)
        self._position = stop
        return len(view)

    def write(self, data: Any) -> int:
        """Write bytes, as the method of files; bytes that overwrite committed ones are kept in memory.

        After closing, and once the journal is begun, this does nothing: after an error libhdf5 may flush objects late,
        and by then the descriptor may belong to another file.
        """
        if not self._is_open or self._has_journal:
            return len(data)
        start, count, held = self._position, len(data), len(self._tail)
        if self._lasting is not None and count >= LARGE_NBYTES and self._joins_run(start, data):
            self._position = self._tail_start = start + count
            self._nbytes = max(self._nbytes, self._position)
            return count
        if start == self._tail_start + held and start >= self.committed_nbytes and count < LARGE_NBYTES:
            self._tail += data
            self._position = stop = start + count
            if stop > self._nbytes:
                self._nbytes = stop
            if held + count >= TAIL_NBYTES:
                self._append_tail()
            return count
        self._append_tail()
        view = memoryview(data).cast("B")
        kept = min(max(self.committed_nbytes - start, 0), len(view))
        if kept:
            self._overlay.put(start, view[:kept])
        self._tail_start = start + kept
        if count - kept < LARGE_NBYTES:
            self._tail += view[kept:]
        else:
            self._append(start + kept, view[kept:])
            self._tail_start = start + count
        self._position = start + count
        self._nbytes = max(self._nbytes, self._position)
        return count

    @contextmanager
    def lasting(self, memory: npt.NDArray[np.uint8]) -> Iterator[None]:
        """Promise that this memory stays unchanged during the context, so that writes from it need no copy.

        Large writes from consecutive memory are joined to one call: one write of 1 MiB takes half as long as 16 writes
        of 64 KiB.
        """
        self._lasting, self._lasting_address = memory, address(memory)
        try:
            yield
        finally:
            self._append_tail()
            self._lasting = None

    def _joins_run(self, start: int, data: Any) -> bool:
        """Whether a piece belongs to lasting memory, so that it can be written together with those before it."""
        assert self._lasting is not None
        first = address(np.frombuffer(data, np.uint8)) - self._lasting_address
        last = first + len(data)
        if first < 0 or last > len(self._lasting) or start < self.committed_nbytes:
            return False
        if self._run is not None and not self._tail:
            run_start, run_first, run_last = self._run
            if start - run_start == first - run_first and first == run_last and last - run_first <= TAIL_NBYTES:
                self._run = run_start, run_first, last
                return True
        self._append_tail()
        self._run = start, first, last
        return True

    def _append_tail(self) -> None:
        """Write the gathered pieces in one call."""
        if self._run is not None and self._lasting is not None and self._is_open:
            (start, first, last), self._run = self._run, None
            self._append(start, self._lasting[first:last].data)
        if self._tail and self._is_open:
            tail, self._tail = self._tail, bytearray()
            start, self._tail_start = self._tail_start, self._tail_start + len(tail)
            self._append(start, memoryview(tail))

    def _append(self, start: int, view: memoryview) -> None:
        done = 0
        try:
            while done < len(view):
                done += self._system.pwrite(self._descriptor, view[done:], start + done)
        except OSError as failure:  # raising it into libhdf5 is not safe: `commit` raises it
            self._failure = self._failure or failure
            if len(view) <= TAIL_NBYTES:
                self._unwritten.append((start, bytes(view)))  # libhdf5 may read it again

    def add_guard(self) -> None:
        """Let the next commit add a write guard to the file, if it lacks one and can have one. Call this first."""
        if not self.committed_nbytes or guard_of(self.at) is not None:
            return
        for offset, data in addition(self.at, self._nbytes):
            self.seek(offset)
            self.write(data)
        self._append_tail()
        self._nothing = self._overlay.changed(), self._nbytes
        if self._failure is not None:  # the disk is full, but the next commit may need no room
            self.roll_back()

    def commit(self, versions: int | None = None, *, keep_journal: bool = False) -> None:
        """Commit everything that was written since the last commit, as one step that survives a power cut.

        Parameters
        ----------
        versions : int | None
            The offset of the object header of the group of versions.
        keep_journal : bool
            Whether to keep the journal, until the file replaces another.

        Raises
        ------
        UsageError
            This process was forked from the one that opened the file.
        FileReplaced
            The path leads to another file, or to none.
        StaleJournal
            A file with the name of the journal appeared.
        OSError
            The disk is full or broken. Earlier commits are intact; call `roll_back` before you go on.
        """
        self.check_writable()
        self._append_tail()
        if self._failure is not None:
            raise self._failure
        nbytes = max(self._nbytes, self.committed_nbytes)
        overwritten = self._overlay.changed()
        if (overwritten, nbytes) == self._nothing:
            if not overwritten:
                self._overlay.clear()
            return
        guard = self._guard(overwritten)
        overwritten, steps = narrowed(overwritten, steps_of(overwritten, self.at, versions, guard))
        if os.fstat(self._descriptor).st_size != nbytes:
            self._system.ftruncate(self._descriptor, nbytes)
        self._system.fdatasync(self._descriptor)
        journal = self._journal(overwritten, steps, guard, nbytes)
        self.check_writable()  # syncing takes long
        try:
            self._has_journal = True
            write_journal(self.path, journal, self._system)
        except StaleJournal:
            self._has_journal = False  # the file there is not ours
            raise
        self._applying, self.commit_count = journal, self.commit_count + 1
        self._finish(journal, keep_journal=keep_journal)
        self.check_is_named(is_committed=True)

    def _finish(self, journal: Journal, *, keep_journal: bool = False) -> None:
        """Write to the file what a complete journal says."""
        with exclusive(self._descriptor):
            apply(self._descriptor, journal, self._system)
            self._overlay.clear()
            self.committed_nbytes = self._nbytes = journal.after_nbytes
            self._nothing = [], self._nbytes
            self._applying = None  # last, because until here an interrupted commit must be finished
            if not keep_journal:
                remove_journal(self.path, self._system)
        self._has_journal = False

    def _guard(self, overwritten: list[Overwritten]) -> Guard | None:
        """The write guard for this commit. A new guard refuses writers as soon as the root refers to it."""
        if not overwritten or not self.committed_nbytes or not is_plain(os.pread(self._descriptor, 16, 0)):
            return None
        guard = guard_of(self.at)
        if guard is None or any(one.offset <= guard.offset < one.offset + len(one.new) for one in overwritten):
            return None
        if guard.offset >= self.committed_nbytes:
            self.seek(guard.offset)
            self.write(bytes([UNKNOWN]))
            self._append_tail()
            guard = guard._replace(is_set=True)
        return guard

    def _journal(self, overwritten: list[Overwritten], steps: list[Step], guard: Guard | None, nbytes: int) -> Journal:
        before, old = self.committed_nbytes, [(one.offset, one.old) for one in overwritten]
        sampled = [(before, nbytes)]
        if guard is not None:
            old.append((guard.offset, bytes([UNKNOWN if guard.is_set else NIL])))
            if guard.offset >= before:  # it will change
                sampled = [(before, guard.offset), (guard.offset + 1, nbytes)]
        journal_samples = [sample for start, stop in sampled for sample in samples(self._descriptor, start, stop)]
        return Journal(before, nbytes, old, steps, journal_samples)

    def check_writable(self) -> None:
        """Refuse to write where it would be lost, or would damage what others wrote.

        Raises
        ------
        UsageError
            This process was forked from the one that opened the file.
        FileReplaced
            The path leads to another file, or to none.
        """
        check_process(self.path, self._process)
        self.check_is_named()

    def is_same(self, about: os.stat_result) -> bool:
        """Whether this is the file that `os.stat` describes."""
        return self._is_open and os.path.samestat(os.fstat(self._descriptor), about)

    def check_is_named(self, *, is_committed: bool = False) -> None:
        """Raise `FileReplaced` if the path leads to another file, or to none."""
        if self._is_open:  # not in a forked process
            names = dict.fromkeys((self.path, self._link))
            check_is_named(os.fstat(self._descriptor), *names, is_committed=is_committed)

    @property
    def is_applying(self) -> bool:
        """Whether a complete journal has still to be written to the file."""
        return self._applying is not None

    def roll_back(self) -> None:
        """Discard everything written since the last commit; finish a commit that had begun to overwrite.

        Raises
        ------
        OSError
            The disk fails still. Call this again when it works.
        """
        if not self._is_open:
            return
        try:
            if self._applying is not None:
                self._finish(self._applying)
            elif self._has_journal:
                remove_journal(self.path, self._system)
        except OSError as error:
            self.stuck = error
            raise
        self.stuck = None
        self._has_journal = False
        self._overlay.clear()
        self._tail.clear()
        self._run = None
        self._unwritten.clear()
        self._failure = None
        self._nbytes = self.committed_nbytes
        self._nothing = [], self._nbytes
        self._system.ftruncate(self._descriptor, self.committed_nbytes)

    def take_name_of(self, other: JournaledFile) -> None:
        """Replace another file: rename this one, which must be fully committed, to its path.

        This is one step: after a kill or a power cut, the path is either the old or the new file.

        Raises
        ------
        FileReplaced
            The path of the other file leads to a third file, or to none.
        """
        beside = self.path
        other.check_writable()
        self._system.rename(beside, other.path)
        self.path, self._link = other.path, other._link
        sync_folder(self.path, self._system)
        if isinstance(found_journal(beside), Journal | Torn):
            remove_journal(beside, self._system)
        self.check_is_named(is_committed=True)

    def close(self) -> None:
        """Close the file and release its lock; bytes that were not committed are cut off."""
        if self._is_open:
            self._is_open = False
            _open_files.discard(self)
            try:
                if (
                    os.fstat(self._descriptor).st_size > self.committed_nbytes
                    and not Path(journal_path(self.path)).exists()
                ):
                    self._system.ftruncate(self._descriptor, self.committed_nbytes)
            finally:
                os.close(self._descriptor)

    def let_go_in_child(self) -> None:
        """Close the descriptor in a forked process: lock and pending writes belong to the parent."""
        self._is_open = False
        os.close(self._descriptor)


def failure_here(path: str) -> OSError | None:
    """Why this process can neither complete nor undo its last commit to a file; None if it can, or does not write."""
    about = os.stat(path)  # noqa: PTH116
    stuck_files = [one for one in list(_open_files) if one.stuck is not None and one.is_same(about)]
    return stuck_files[0].stuck if stuck_files else None


_open_files: WeakSet[JournaledFile] = WeakSet()


def _let_go_in_child() -> None:
    for one in list(_open_files):
        one.let_go_in_child()
    _open_files.clear()


os.register_at_fork(after_in_child=_let_go_in_child)

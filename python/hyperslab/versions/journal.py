"""`JournaledFile`: what libhdf5 writes to, so that a kill or a power cut at any moment leaves the last commit whole.

Bytes past the end of the last commit go straight to the file: nothing leads there yet. Bytes that overwrite committed
ones are kept in memory until the commit, which is:

1. fdatasync: what was appended is on the disk;
2. the journal, a file beside: all that is overwritten, its checksum, the new length; fsync of it and of its folder;
3. the same is written in place, fdatasync;
4. the journal is removed, and the folder synced.

Whoever opens the file to write finds a whole journal and does step 3 again, or a torn one and removes it: a commit is
there from the moment that its journal is whole. What was appended but not committed is cut off.
"""

from __future__ import annotations

import fcntl
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hyperslab.errors import DamagedFile, UsageError

PAGE_NBYTES = 4096
TAIL_NBYTES = 1 << 20  # smaller pieces are gathered up to so many bytes
LARGE_NBYTES = 1 << 15
MAGIC = b"HSLABJ01"
HEADER = struct.Struct("<8sQQQI")  # magic, length of the body, length of the file before and after, crc of both
ENTRY = struct.Struct("<QI")


class Page:
    """A page of which committed bytes are to be overwritten, from `start` to `stop`."""

    __slots__ = ("data", "start", "stop")

    def __init__(self, data: bytearray) -> None:
        self.data, self.start, self.stop = data, PAGE_NBYTES, 0

    def put(self, start: int, piece: memoryview) -> None:
        """Overwrite from here on."""
        stop = start + len(piece)
        self.data[start:stop] = piece
        self.start, self.stop = min(self.start, start), max(self.stop, stop)


class System(Protocol):
    """The calls that reach the disk. Tests put others in their place."""

    def open(self, path: str, flags: int, mode: int, /) -> int: ...  # noqa: D102
    def pwrite(self, descriptor: int, data: Any, offset: int, /) -> int: ...  # noqa: D102
    def ftruncate(self, descriptor: int, length: int, /) -> None: ...  # noqa: D102
    def fdatasync(self, descriptor: int, /) -> None: ...  # noqa: D102
    def fsync(self, descriptor: int, /) -> None: ...  # noqa: D102
    def unlink(self, path: str, /) -> None: ...  # noqa: D102
    def rename(self, path: str, to: str, /) -> None: ...  # noqa: D102


def address(memory: npt.NDArray[np.uint8]) -> int:
    """Where the first byte is."""
    place: int = memory.__array_interface__["data"][0]
    return place


def journal_path(path: str) -> str:
    """Where the journal of a file is: beside the file itself, not beside a link to it."""
    return f"{os.path.realpath(path)}.journal"


class JournaledFile:
    """A file for h5py (`h5py.File(journaled, ...)`), locked against other writers while it is open.

    Args:
        path: The file; made if there is none.
        truncate: Whether to empty it.
        system: Makes the calls that reach the disk.

    Raises:
        UsageError: Somebody else has it open to write.
    """

    def __init__(self, path: str, *, truncate: bool = False, system: System = os) -> None:
        self.path = path
        self._system = system
        self._descriptor = self._locked()
        try:
            recover(path, self._descriptor, system)
            if truncate:
                system.ftruncate(self._descriptor, 0)
        except BaseException:
            os.close(self._descriptor)
            raise
        self.committed_nbytes = os.fstat(self._descriptor).st_size
        self._nbytes = self.committed_nbytes
        self._pages: dict[int, Page] = {}
        self._tail = bytearray()  # appended, not yet written
        self._tail_start = 0
        self._lasting: npt.NDArray[np.uint8] | None = None
        self._lasting_address = 0
        self._run: tuple[int, int, int] | None = None  # of lasting memory, not yet written: to where, from, until
        self._position = 0
        self._is_open = True
        self._failure: OSError | None = None
        self._unwritten: list[tuple[int, bytes]] = []  # because of the failure
        self._is_applying = False

    def __repr__(self) -> str:
        return self.path

    def _locked(self) -> int:
        """The file, opened and locked: that which has the name then, as another may be put in its place meanwhile."""
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                raise UsageError(
                    f"{self.path} is open elsewhere, here or in another process (HDF5 locks what it has open): close it"
                    " there, or open it here with mode='r', which needs no lock"
                ) from None
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(self.path)):  # noqa: PTH116
                    return descriptor
            os.close(descriptor)

    def seek(self, offset: int, whence: int = 0) -> int:
        """As files do."""
        if whence:
            offset += self._position if whence == os.SEEK_CUR else self._nbytes
        self._position = offset
        return offset

    def tell(self) -> int:
        """As files do."""
        return self._position

    def flush(self) -> None:
        """Nothing: only `commit` makes anything last."""

    def truncate(self, length: int | None = None) -> int:
        """As files do; committed bytes stay until the commit."""
        self._nbytes = self._position if length is None else length
        return self._nbytes

    def read(self, count: int = -1) -> bytes:
        """As files do."""
        out = bytearray(max(0, self._nbytes - self._position) if count < 0 else count)
        return bytes(out[: self.readinto(out)])

    def at(self, offset: int, count: int) -> bytes:
        """So many bytes from an offset on.

        Raises:
            OSError: Something could not be written.
        """
        self.seek(offset)
        found = self.read(count)
        if self._failure is not None:
            raise self._failure
        return found

    def readinto(self, out: Any) -> int:
        """As files do; what lies behind the end is zeros."""
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
        if self._pages:
            for number in range(start // PAGE_NBYTES, -(-stop // PAGE_NBYTES)):
                page = self._pages.get(number)
                if page is not None:
                    origin = number * PAGE_NBYTES
                    first, last = max(start, origin), min(stop, origin + PAGE_NBYTES, self.committed_nbytes)
                    if first < last:
                        view[first - start : last - start] = page.data[first - origin : last - origin]
        self._position = stop
        return len(view)

    def write(self, data: Any) -> int:
        """As files do; what overwrites committed bytes is kept in memory. Once it is closed, nothing happens: libhdf5
        may let go of objects later, after an error, and the descriptor may be that of another file by then.
        """
        if not self._is_open:
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
            self._overlay(start, view[:kept])
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
        """What is written from this memory meanwhile stays there until the end: large pieces that follow one another
        are written in one, without a copy. The system takes half as long for 1 MiB as for 16 times 64 KiB.
        """
        self._lasting, self._lasting_address = memory, address(memory)
        try:
            yield
        finally:
            self._append_tail()
            self._lasting = None

    def _joins_run(self, start: int, data: Any) -> bool:
        """Whether a piece is of memory that lasts, and will be written with those before it."""
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
        """Write what was appended piece by piece in one piece."""
        if self._run is not None and self._lasting is not None and self._is_open:
            (start, first, last), self._run = self._run, None
            self._append(start, self._lasting[first:last].data)
        if self._tail and self._is_open:
            tail, self._tail = self._tail, bytearray()
            start, self._tail_start = self._tail_start, self._tail_start + len(tail)
            self._append(start, memoryview(tail))

    def _overlay(self, start: int, view: memoryview) -> None:
        done = 0
        while done < len(view):
            number, within = divmod(start + done, PAGE_NBYTES)
            page = self._pages.get(number)
            if page is None:
                stored = os.pread(self._descriptor, PAGE_NBYTES, number * PAGE_NBYTES)
                page = self._pages[number] = Page(bytearray(stored.ljust(PAGE_NBYTES, b"\0")))
            count = min(PAGE_NBYTES - within, len(view) - done)
            page.put(within, view[done : done + count])
            done += count

    def _append(self, start: int, view: memoryview) -> None:
        done = 0
        try:
            while done < len(view):
                done += self._system.pwrite(self._descriptor, view[done:], start + done)
        except OSError as failure:  # libhdf5 goes on more safely without: `commit` raises it
            self._failure = self._failure or failure
            if len(view) <= TAIL_NBYTES:
                self._unwritten.append((start, bytes(view)))  # what libhdf5 may read again

    def commit(self) -> None:
        """Make all that was written last, together.

        Raises:
            OSError: The disk is full or broken. What was committed before is whole; nothing more can be written here.
        """
        self._append_tail()
        if self._failure is not None:
            raise self._failure
        nbytes = max(self._nbytes, self.committed_nbytes)
        if not self._pages and nbytes == self.committed_nbytes:
            return
        end = self.committed_nbytes
        if os.fstat(self._descriptor).st_size < nbytes:
            self._system.ftruncate(self._descriptor, nbytes)
        self._system.fdatasync(self._descriptor)
        entries = self._overwritten()
        write_journal(self.path, entries, end, nbytes, self._system)
        with exclusive(self._descriptor):
            self._is_applying = True
            apply(self._descriptor, entries, nbytes, self._system)
            self._pages.clear()
            self.committed_nbytes = self._nbytes = nbytes
            self._is_applying = False  # last: before, whatever stops us, the commit is to be finished
            remove_journal(self.path, self._system)

    def _overwritten(self) -> list[tuple[int, bytes]]:
        """The committed bytes that are other ones now, each run with its offset."""
        runs: list[tuple[int, list[bytearray]]] = []
        end = -1
        for number, page in sorted(self._pages.items()):
            start = number * PAGE_NBYTES + page.start
            if start != end:
                runs.append((start, []))
            runs[-1][1].append(page.data[page.start : page.stop])
            end = number * PAGE_NBYTES + page.stop
        return [(start, b"".join(pieces)) for start, pieces in runs]

    def roll_back(self) -> None:
        """Forget all that was written since the last commit; finish one that had begun to overwrite."""
        if self._is_applying:
            with exclusive(self._descriptor):
                recover(self.path, self._descriptor, self._system)
            self._is_applying = False
            self.committed_nbytes = os.fstat(self._descriptor).st_size
        elif Path(journal_path(self.path)).exists():
            remove_journal(self.path, self._system)
        self._pages.clear()
        self._tail.clear()
        self._run = None
        self._unwritten.clear()
        self._failure = None
        self._nbytes = self.committed_nbytes
        self._system.ftruncate(self._descriptor, self.committed_nbytes)

    def take_place_of(self, path: str) -> None:
        """Give the file, all of which was committed, the name of another, which is gone then. One step: a kill or a
        power cut leaves the one or the other.
        """
        self._system.rename(self.path, path)
        self.path = path
        sync_folder(path, self._system)

    def close(self) -> None:
        """Let go of the file and its lock; what was not committed is cut off."""
        if self._is_open:
            self._is_open = False
            try:
                if (
                    os.fstat(self._descriptor).st_size > self.committed_nbytes
                    and not Path(journal_path(self.path)).exists()
                ):
                    self._system.ftruncate(self._descriptor, self.committed_nbytes)
            finally:
                os.close(self._descriptor)


def write_journal(path: str, entries: list[tuple[int, bytes]], before: int, after: int, system: System) -> None:
    """Write down what is to be overwritten, so that it lasts."""
    body = b"".join(ENTRY.pack(offset, len(data)) + data for offset, data in entries)
    head = HEADER.pack(MAGIC, len(body), before, after, 0)[:-4]
    whole = head + struct.pack("<I", zlib.crc32(body, zlib.crc32(head))) + body
    descriptor = system.open(journal_path(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        done = 0
        while done < len(whole):
            done += system.pwrite(descriptor, whole[done:], done)
        system.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_folder(path, system)


def apply(descriptor: int, entries: list[tuple[int, bytes]], nbytes: int, system: System) -> None:
    """Overwrite what a journal says, so that it lasts. May be done again and again."""
    for offset, data in entries:
        done = 0
        while done < len(data):
            done += system.pwrite(descriptor, data[done:], offset + done)
    if os.fstat(descriptor).st_size != nbytes:
        system.ftruncate(descriptor, nbytes)
    system.fdatasync(descriptor)


def remove_journal(path: str, system: System) -> None:
    """The commit is done."""
    system.unlink(journal_path(path))
    sync_folder(path, system)


def read_journal(path: str) -> tuple[list[tuple[int, bytes]], int] | None:
    """What a whole journal says: pages with their offsets, and the file's length. None if there is none, or a torn one.

    Raises:
        DamagedFile: Its checksum is right, but not what it says.
    """
    try:
        stored = Path(journal_path(path)).read_bytes()
    except FileNotFoundError:
        return None
    if len(stored) < HEADER.size:
        return None
    magic, length, _, after, crc = HEADER.unpack_from(stored)
    body = stored[HEADER.size : HEADER.size + length]
    head = stored[: HEADER.size - 4]
    if magic != MAGIC or len(body) != length or zlib.crc32(body, zlib.crc32(head)) != crc:
        return None
    entries, place = [], 0
    while place < length:
        if place + ENTRY.size > length:
            raise DamagedFile(f"{journal_path(path)}: an entry is cut off at {place}")
        offset, count = ENTRY.unpack_from(body, place)
        place += ENTRY.size
        if count > length - place or offset + count > after:
            raise DamagedFile(f"{journal_path(path)}: an entry of {count} bytes for offset {offset} does not fit")
        entries.append((offset, body[place : place + count]))
        place += count
    return entries, after


def recover(path: str, descriptor: int, system: System = os) -> bool:
    """Finish a commit that was cut short, or forget one that had not begun; whether anything was to do."""
    if not Path(journal_path(path)).exists():
        return False
    found = read_journal(path)
    if found is not None:
        entries, nbytes = found
        if os.fstat(descriptor).st_size < nbytes:
            raise DamagedFile(f"{path} is shorter than its journal says: restore both from one copy")
        apply(descriptor, entries, nbytes, system)
    remove_journal(path, system)
    return True


# Readers share a lock while they parse, whoever overwrites has it alone: of one byte where no file has any.
LOCKED_BYTE = 1 << 62


@contextmanager
def shared(path: str) -> Iterator[None]:
    """Hold off whoever overwrites what is committed; first wait for them."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        _lock_byte(descriptor, fcntl.F_RDLCK)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def exclusive(descriptor: int) -> Iterator[None]:
    """Wait for readers that parse the file, and hold off others."""
    _lock_byte(descriptor, fcntl.F_WRLCK)
    try:
        yield
    finally:
        _lock_byte(descriptor, fcntl.F_UNLCK)


def _lock_byte(descriptor: int, kind: int) -> None:
    command = getattr(fcntl, "F_OFD_SETLKW", None)  # Linux; elsewhere readers that meet a commit see it as damage
    if command is not None:
        with suppress(OSError):  # a file system without locks
            fcntl.fcntl(descriptor, command, struct.pack("hhqqi4x", kind, os.SEEK_SET, LOCKED_BYTE, 1, 0))


def sync_folder(path: str, system: System) -> None:
    """Make names in the folder of a file last."""
    folder = os.open(Path(path).parent, os.O_RDONLY)
    try:
        system.fsync(folder)
    finally:
        os.close(folder)

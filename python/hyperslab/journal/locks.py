"""Locks on a file: one for its single writer, and one that readers share while they parse."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from hyperslab.errors import FileReplaced, UsageError
from hyperslab.journal.signals import raise_pending_signals

# Readers hold a shared lock while they parse, and a commit an exclusive one while it overwrites. It is a lock on one
# byte, at an offset beyond the end of any file.
LOCKED_BYTE = 1 << 62
PAUSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)  # seconds between attempts; the last is repeated


class Opens(Protocol):
    """A function that opens a file and returns its descriptor."""

    def __call__(self) -> int: ...  # noqa: D102


def locked(path: str, opened: Opens, timeout: float) -> int:
    """Open and lock a file. If another file gets the name in the meantime, open and lock that instead.

    Parameters
    ----------
    path : str
        The path of the file.
    opened : Opens
        Opens the file.
    timeout : float
        How long to wait for other writers, in seconds. Signals are handled while waiting.

    Returns
    -------
    int
        The file descriptor, which holds the lock.

    Raises
    ------
    UsageError
        Another writer still has the file open.
    """
    until, pauses = time.monotonic() + timeout, iter(PAUSES)
    while True:
        descriptor = opened()
        try:
            if _is_locked(descriptor):
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(descriptor), os.stat(path)):  # noqa: PTH116
                        return descriptor
                os.close(descriptor)
                continue
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if (left := until - time.monotonic()) <= 0:
            waited = f", and stayed so for {timeout:g} s" if timeout else ""
            raise UsageError(
                f"{path} is open elsewhere, in this or another process{waited} (HDF5 locks the files that it opens):"
                " close it there, wait longer (timeout=), or open it here with mode='r', which needs no lock"
            )
        raise_pending_signals()
        time.sleep(min(left, next(pauses, PAUSES[-1])))
        raise_pending_signals()


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def check_process(path: str, process: int) -> None:
    """Refuse to write in a process that was forked after the file was opened: the two would overwrite each other.

    Raises
    ------
    UsageError
        Another process opened the file.
    """
    if os.getpid() != process:
        raise UsageError(
            f"{path} was opened by process {process}, and this process was forked from it: only process {process} may"
            " write to it. To write from here, close the file there, then open it here"
        )


def check_is_named(held: os.stat_result, *paths: str, is_committed: bool = False) -> None:
    """Refuse to write to a file that lost its name, because another file replaced it, or it was moved or deleted.

    Parameters
    ----------
    held : os.stat_result
        What `os.fstat` says of the file.
    *paths : str
        All the names that must lead to it.
    is_committed : bool
        Whether a change has just been committed to it.

    Raises
    ------
    FileReplaced
        A path leads to another file, or to none.
    """
    for path in paths:
        try:
            is_same = os.path.samestat(held, os.stat(path))  # noqa: PTH116
            now = f"another file has the name {path} now"
        except (FileNotFoundError, NotADirectoryError):
            is_same, now = False, f"there is no file {path} any more"
        if not is_same:
            raise FileReplaced(f"{now}: {_COMMITTED if is_committed else _REFUSED}")


_REFUSED = (
    "the one that is open here was replaced, moved or deleted. Nothing was written, neither to it nor to what has its "
    "name. What you staged is still in memory: read it from the group of the `with` statement. Then close this object, "
    "check which file you want under that name, open the path again, and repeat the change"
)
_COMMITTED = (
    "the one that is open here was replaced, moved or deleted during the commit. The change is in the file that had "
    "the name before, not in what has it now, which was not touched. Close this object, check which file you want "
    "under that name, open the path again, and look whether the change is there"
)


@contextmanager
def without_writers(path: str | os.PathLike[str], *, writes: bool) -> Iterator[int]:
    """Keep a file open and locked, as libhdf5 locks it: no other program writes to it meanwhile.

    Parameters
    ----------
    path : str | os.PathLike[str]
        The file.
    writes : bool
        Whether you write to it; then nobody may read it through libhdf5 either.

    Yields
    ------
    int
        Its descriptor.

    Raises
    ------
    UsageError
        The file cannot be opened, or another program has it open.
    """
    try:
        descriptor = os.open(path, os.O_RDWR if writes else os.O_RDONLY)
    except OSError as error:
        raise UsageError(f"{path} cannot be {'written' if writes else 'read'}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_EX if writes else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                how = "" if writes else " for writing"
                raise UsageError(f"{path} is open{how} in another program: close it there first") from None
            # some file systems have no locks
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def shared(path: str) -> Iterator[None]:
    """Wait until no commit overwrites the file, and keep others from starting to."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # which does not wait for the writer of a pipe
    try:
        _lock_byte(descriptor, fcntl.F_RDLCK)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def exclusive(descriptor: int) -> Iterator[None]:
    """Wait until no reader parses the file, and keep others from starting to."""
    _lock_byte(descriptor, fcntl.F_WRLCK)
    try:
        yield
    finally:
        _lock_byte(descriptor, fcntl.F_UNLCK)


def _lock_byte(descriptor: int, kind: int) -> None:
    command = getattr(fcntl, "F_OFD_SETLKW", None)  # Linux only; elsewhere a reader may take a commit for damage
    if command is not None:
        with suppress(OSError):  # a file system without locks
            fcntl.fcntl(descriptor, command, struct.pack("hhqqi4x", kind, os.SEEK_SET, LOCKED_BYTE, 1, 0))

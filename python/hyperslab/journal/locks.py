"""Who may do what with a file meanwhile: the lock of its writer, and that of whoever parses it."""

from __future__ import annotations

import fcntl
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from hyperslab.errors import UsageError
from hyperslab.journal.signals import raise_pending_signals

# Readers share a lock while they parse, whoever overwrites has it alone: of one byte where no file has any.
LOCKED_BYTE = 1 << 62
PAUSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)  # seconds from one attempt to the next, then the last again and again


class Opens(Protocol):
    """What opens the file that a name leads to."""

    def __call__(self) -> int: ...  # noqa: D102


def locked(path: str, opened: Opens, timeout: float) -> int:
    """A file, opened and locked: that which has the name then, as another may be put in its place meanwhile.

    Parameters
    ----------
    path : str
        Its name.
    opened : Opens
        Opens it.
    timeout : float
        How many seconds to wait for others who have it open. Signals have their effect meanwhile.

    Raises
    ------
    UsageError
        Somebody else still has it open.
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
            waited = f", and was for {timeout:g} s" if timeout else ""
            raise UsageError(
                f"{path} is open elsewhere{waited}, here or in another process (HDF5 locks what it has open): close it"
                " there, wait longer (timeout=), or open it here with mode='r', which needs no lock"
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
    """Refuse to write in a process that was forked off that which opened a file: neither knows what the other did.

    Raises
    ------
    UsageError
        This is another process.
    """
    if os.getpid() != process:
        raise UsageError(
            f"{path} was opened by process {process}, of which this one was forked off: only that one may write to it;"
            " to write from here, open it here, when it is closed there"
        )


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

"""How a command ends by a signal: its exception arrives as itself, whatever compiled code made of it on the way."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# What is said for an exit status.
STOPPED = {128 + signal.SIGINT: "interrupted", 128 + signal.SIGTERM: "terminated"}

_received: list[int] = []


def end_by_signals() -> None:
    """Let SIGTERM and SIGHUP end the command as Ctrl-C does, so that temporary files are removed."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(number, _end)
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_DFL):
        signal.signal(signal.SIGINT, _interrupt)
    if sys.unraisablehook is sys.__unraisablehook__:
        sys.unraisablehook = _unraisable


def _end(number: int, _: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # a second signal does not interrupt the removal of temporary files
    _received.append(number)
    sys.exit(128 + number)


def _interrupt(number: int, _: FrameType | None) -> None:
    _received.append(number)
    raise KeyboardInterrupt


def _unraisable(said: sys.UnraisableHookArgs) -> None:
    """Say what could not be raised, but not what a signal interrupted in libhdf5, which closes its files anyway."""
    if not _received:
        sys.__unraisablehook__(said)


@contextmanager
def as_signalled() -> Iterator[None]:
    """Raise what the signal raised where compiled code made another exception of it.

    h5py makes a SystemError, pydantic a PydanticSerializationError of a signal's exception.

    Raises
    ------
    KeyboardInterrupt
        After SIGINT.
    SystemExit
        After SIGTERM or SIGHUP, with 128 and the signal's number.
    """
    try:
        yield
    except Exception:
        if not _received:
            raise
        number = _received[-1]
        raise (KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)) from None

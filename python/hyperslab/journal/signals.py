"""Ctrl-C and other signals, held back while a file is written.

libhdf5 calls our functions to write. An exception that a signal's handler raises in one of them may be lost there, and
with it what was to be written: the commit would go on without. So handlers run before, afterwards, and where all that
was done so far can be undone.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeAlias

Handler: TypeAlias = "Callable[[int, FrameType | None], Any]"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


class Held:
    """Signals that came, and what is to handle them."""

    def __init__(self) -> None:
        self._handlers: dict[int, Handler] = {}
        self._came: list[tuple[int, FrameType | None]] = []

    def begin(self) -> None:
        """Take the place of the handlers that are Python's: only those can raise."""
        for number in SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                self._handlers[number] = handler
                signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came.append((number, frame))

    def handle(self) -> None:
        """Run the handlers of what came."""
        while self._came:
            number, frame = self._came.pop(0)
            self._handlers[number](number, frame)

    def end(self) -> None:
        """Give the handlers their places back, and run those of what came."""
        for number in reversed(self._handlers):  # Ctrl-C last: after it may come what interrupts us
            signal.signal(number, self._handlers[number])
        self.handle()


_holding: list[Held] = []


@contextmanager
def held_back() -> Iterator[None]:
    """Signals have no effect before the end of the `with` statement, or `let_through`. In other threads than the main
    one, which no signal reaches, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held = Held()
    try:
        _holding.append(held)
        held.begin()
        yield
    finally:
        if held in _holding:
            _holding.remove(held)
        held.end()


def let_through() -> None:
    """Where all can be undone: let the signals that came have their effect, which may be an exception."""
    if _holding and threading.current_thread() is threading.main_thread():
        _holding[-1].handle()

"""Defer Ctrl-C and other signals while a file is written.

libhdf5 calls our functions to write. If the handler of a signal raises an exception in one of them, libhdf5 may drop
that exception and the write with it, and the commit would continue without those bytes. Handlers therefore run before
a commit, after it, and at points where everything done so far can be undone.
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


class DeferredSignals:
    """Signals that arrived, and the handlers that will receive them."""

    def __init__(self) -> None:
        self._handlers: dict[int, Handler] = {}
        self._pending: list[tuple[int, FrameType | None]] = []

    def begin(self) -> None:
        """Replace the handlers written in Python: only those can raise exceptions."""
        for number in SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                self._handlers[number] = handler
                signal.signal(number, self._record)

    def _record(self, number: int, frame: FrameType | None) -> None:
        self._pending.append((number, frame))

    def handle(self) -> None:
        """Run the handlers of the signals that arrived."""
        while self._pending:
            number, frame = self._pending.pop(0)
            self._handlers[number](number, frame)

    def end(self) -> None:
        """Put the original handlers back, and run them for the signals that arrived."""
        for number in reversed(self._handlers):  # Ctrl-C last: from then on it can interrupt us
            signal.signal(number, self._handlers[number])
        self.handle()


_deferring: list[DeferredSignals] = []


@contextmanager
def defer_signals() -> Iterator[None]:
    """Defer signals until the `with` statement ends or `raise_pending_signals` is called.

    Python runs signal handlers in the main thread only, so in any other thread this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    deferred = DeferredSignals()
    try:
        _deferring.append(deferred)
        deferred.begin()
        yield
    finally:
        if deferred in _deferring:
            _deferring.remove(deferred)
        deferred.end()


def raise_pending_signals() -> None:
    """Run the handlers of deferred signals, which may raise; call this only where all work so far can be undone."""
    if _deferring and threading.current_thread() is threading.main_thread():
        _deferring[-1].handle()

"""Processes that do the trials: one for each format, so that libraries neither share state nor crash each other.

A worker imports one format's library, then does tasks one at a time. Only one trial runs at any moment; its
process is fresh to the file, not to the library, whose import no trial should pay for.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import multiprocessing
import signal
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any, Protocol

import numpy as np

from hyperslab.errors import HyperslabError, NoSpace, TrialFailed
from hyperslab.lab.fields import Field
from hyperslab.memory import make_ready


class Workbench:
    """The state that a worker keeps between jobs: the source elements, made once for each array shape."""

    def __init__(self) -> None:
        self._field: Field | None = None
        self._buffer = np.empty(0)

    def arrays(self, field: Field, stored: np.dtype[Any]) -> Callable[[int], np.ndarray]:
        """A function that gives array number i of a field, in the dtype in which a format stores it."""
        if field != self._field:
            self._buffer = np.empty(0)
            self._buffer, self._field = field.buffer(), field
        buffer = self._buffer
        return lambda i: field.array(buffer, i).view(stored)

    @contextlib.contextmanager
    def undisturbed(self, nbytes: int) -> Iterator[None]:
        """While Python collects no garbage; `nbytes` of memory are ready to be allocated."""
        gc.collect()
        gc.freeze()  # what is left stays: looking through the libraries' objects again takes longer than many a trial
        gc.disable()
        make_ready(nbytes)
        try:
            yield
        finally:
            gc.enable()


class Task(Protocol):
    """What another layer asks of a worker: it is pickled, run there once, and what it gives is sent back."""

    def run(self, bench: Workbench) -> Any:
        """Do it."""


def _serve(connection: Connection) -> None:
    """Answer requests until the other end closes. Ctrl-C is the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    bench = Workbench()
    with contextlib.suppress(EOFError, ConnectionError):  # the parent left, whether we were idle or busy
        while True:
            request = connection.recv()
            try:
                answer = request.run(bench)
            except Exception as error:
                answer = _told(error)
            connection.send(answer)


def _told(error: Exception) -> HyperslabError:
    """What the parent is told: our own errors as they are, others by what they say and where they arose."""
    if isinstance(error, HyperslabError):
        return error
    if getattr(error, "errno", None) == errno.ENOSPC or "No space left" in str(error):
        return NoSpace(str(error))
    if isinstance(error, MemoryError):
        return TrialFailed(f"out of memory: {error}; a smaller --scale needs less")
    return TrialFailed(f"{type(error).__name__}: {' '.join(str(error).split())}")


def _start_deaf_to_ctrl_c(process: multiprocessing.process.BaseProcess) -> None:
    """Ctrl-C reaches every process of the terminal; a worker must not meet it even while it starts.

    The new process inherits the blocked signal; here it is delivered as soon as it is unblocked.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


class Worker:
    """One process; started at the first request, and again after it died."""

    def __init__(self, what: str, timeout_seconds: float) -> None:
        self._what = what
        self._timeout = timeout_seconds
        self._process: multiprocessing.process.BaseProcess | None = None
        self._connection: Connection | None = None

    def ask(self, request: Task, timeout_seconds: float | None = None) -> Any:
        """Send a request and wait; raises what the worker says, or TrialFailed when it died or hung."""
        self.send(request)
        return self.receive(timeout_seconds)

    def send(self, request: Task) -> None:
        """Send a request without waiting."""
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._connection, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs,), name=f"hyperslab {self._what}", daemon=True)
            _start_deaf_to_ctrl_c(self._process)
            theirs.close()
        assert self._connection is not None
        self._connection.send(request)

    def receive(self, timeout_seconds: float | None = None) -> Any:
        """Wait for the answer to the last request."""
        assert self._connection is not None
        allowed = self._timeout if timeout_seconds is None else timeout_seconds
        if not self._connection.poll(allowed):
            self.stop()
            raise TrialFailed(f"no answer within {allowed:g} s; --timeout allows longer ones")
        try:
            answer = self._connection.recv()
        except (EOFError, ConnectionError) as error:
            raise TrialFailed(f"its process {self._how_it_died()}; the run goes on without this trial") from error
        if isinstance(answer, HyperslabError):
            raise answer
        return answer

    @property
    def pid(self) -> int | None:
        """The process's number, while it lives."""
        return self._process.pid if self._process else None

    def _how_it_died(self) -> str:
        assert self._process is not None
        self._process.join(5)
        code = self._process.exitcode
        self.stop()
        if code is not None and code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with status {code}"

    def stop(self, grace_seconds: float = 0.0) -> None:
        """End the process, whatever it is doing; an idle one may be given a moment to leave by itself."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.join(grace_seconds)
            self._process.kill()
            self._process.join(5)
        self._process = self._connection = None


class LocalWorkers:
    """A worker for each format and part, on this machine."""

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout = timeout_seconds
        self._workers: dict[tuple[str, int], Worker] = {}

    def worker(self, format_name: str, part: int = 0) -> Worker:
        """The worker of a format; several parts of one trial have one each."""
        key = (format_name, part)
        if key not in self._workers:
            self._workers[key] = Worker(f"{format_name} {part}", self._timeout)
        return self._workers[key]

    def close(self) -> None:
        """End every process."""
        for worker in self._workers.values():
            worker.stop(grace_seconds=2.0)
        self._workers.clear()

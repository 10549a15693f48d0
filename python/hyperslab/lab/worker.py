"""Worker processes that run the trials: one for each format, so that libraries cannot share state or crash each other.

A worker imports one format's library and then runs one task at a time. Only one trial runs at any moment. The file is
new to the process, but the library is already imported: no trial should pay for the import.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from hyperslab.errors import HyperslabError, NoSpace, TrialFailed
from hyperslab.lab.fields import Field
from hyperslab.memory import make_ready


class Workbench:
    """What a worker keeps between tasks: the source elements, generated once for each array shape."""

    def __init__(self) -> None:
        self._field: Field | None = None
        self._buffer = np.empty(0)

    def arrays(self, field: Field, stored: np.dtype[Any]) -> Callable[[int], np.ndarray]:
        """A function that returns array number i of a field, in the dtype in which a format stores it."""
        if field != self._field:
            self._buffer = np.empty(0)
            self._buffer, self._field = field.buffer(), field
        buffer = self._buffer
        return lambda i: field.array(buffer, i).view(stored)

    @contextlib.contextmanager
    def undisturbed(self, nbytes: int) -> Iterator[None]:
        """A context without garbage collection, in which `nbytes` of memory are ready to be allocated."""
        gc.collect()
        gc.freeze()  # leave frozen objects alone: scanning the libraries' objects again takes longer than many trials
        gc.disable()
        make_ready(nbytes)
        try:
            yield
        finally:
            gc.enable()


class Task(Protocol):
    """A task for a worker. It is pickled and runs once in the worker; its result is sent back."""

    def run(self, bench: Workbench) -> Any:
        """Run the task."""


def _serve(connection: Connection) -> None:
    """Run tasks until the other end closes. The parent handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    bench = Workbench()
    with contextlib.suppress(EOFError, ConnectionError):  # the parent is gone
        while True:
            request = connection.recv()
            try:
                answer = request.run(bench)
            except Exception as error:
                answer = _told(error)
            connection.send(answer)


def _told(error: Exception) -> HyperslabError:
    """The error to send to the parent: our own errors unchanged, other errors with their text and origin."""
    if isinstance(error, HyperslabError):
        return error
    if getattr(error, "errno", None) == errno.ENOSPC or "No space left" in str(error):
        return NoSpace(str(error))
    if isinstance(error, MemoryError):
        return TrialFailed(f"out of memory: {error}; use a smaller --scale")
    return TrialFailed(f"{type(error).__name__}: {' '.join(str(error).split())}")


def _start_deaf_to_ctrl_c(process: multiprocessing.process.BaseProcess) -> None:
    """Start a process that never receives Ctrl-C, which the terminal sends to all its processes, not even while
    starting.

    The new process inherits the blocked signal. The parent receives the signal as soon as it unblocks it.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


@contextlib.contextmanager
def _without_plugins_of_netcdf4() -> Iterator[None]:
    """A context in which new processes do not inherit the folder of filters that netCDF4 names when it is imported.

    Its filters call netCDF4's own libhdf5. A process that reads or writes with h5py would load them all the same, and
    then fail with "error during user callback". A process that imports netCDF4 names the folder again.
    """
    netcdf4 = sys.modules.get("netCDF4")
    folder = os.environ.get("HDF5_PLUGIN_PATH")
    if netcdf4 is None or folder is None or str(Path(folder).parent) not in netcdf4.__path__:
        yield
        return
    del os.environ["HDF5_PLUGIN_PATH"]
    try:
        yield
    finally:
        os.environ["HDF5_PLUGIN_PATH"] = folder


class Worker:
    """One process. It is started at the first request, and again if it died."""

    def __init__(self, what: str, timeout_seconds: float) -> None:
        self._what = what
        self._timeout = timeout_seconds
        self._process: multiprocessing.process.BaseProcess | None = None
        self._connection: Connection | None = None

    def ask(self, request: Task, timeout_seconds: float | None = None) -> Any:
        """Send a request and wait for the result.

        Raises the worker's error, or TrialFailed if it died or did not answer.
        """
        self.send(request)
        return self.receive(timeout_seconds)

    def send(self, request: Task) -> None:
        """Send a request without waiting for the result."""
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._connection, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs,), name=f"hyperslab {self._what}", daemon=True)
            with _without_plugins_of_netcdf4():
                _start_deaf_to_ctrl_c(self._process)
            theirs.close()
        assert self._connection is not None
        self._connection.send(request)

    def receive(self, timeout_seconds: float | None = None) -> Any:
        """Wait for the result of the last request."""
        assert self._connection is not None
        allowed = self._timeout if timeout_seconds is None else timeout_seconds
        if not self._connection.poll(allowed):
            self.stop()
            raise TrialFailed(f"no answer within {allowed:g} s; use --timeout to allow more")
        try:
            answer = self._connection.recv()
        except (EOFError, ConnectionError) as error:
            raise TrialFailed(f"its process {self._how_it_died()}; the run continues without this trial") from error
        if isinstance(answer, HyperslabError):
            raise answer
        return answer

    @property
    def pid(self) -> int | None:
        """The process's number, or None if it is not running."""
        return self._process.pid if self._process else None

    def _how_it_died(self) -> str:
        assert self._process is not None
        self._process.join(60)  # it may be slow to end
        code = self._process.exitcode
        self.stop()
        if code is not None and code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with status {code}"

    def stop(self, grace_seconds: float = 0.0) -> None:
        """Stop the process, whatever it is doing. An idle process first gets `grace_seconds` to exit."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.join(grace_seconds)
            self._process.kill()
            self._process.join(5)
        self._process = self._connection = None


class LocalWorkers:
    """Workers on this machine, one for each format and part."""

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout = timeout_seconds
        self._workers: dict[tuple[str, int], Worker] = {}

    def worker(self, format_name: str, part: int = 0) -> Worker:
        """The worker of a format. Each part of a trial has its own worker."""
        key = (format_name, part)
        if key not in self._workers:
            self._workers[key] = Worker(f"{format_name} {part}", self._timeout)
        return self._workers[key]

    def close(self) -> None:
        """Stop all processes."""
        for worker in self._workers.values():
            worker.stop(grace_seconds=2.0)
        self._workers.clear()

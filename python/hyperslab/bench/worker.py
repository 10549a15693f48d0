"""Processes that do the trials: one for each format, so that libraries neither share state nor crash each other.

A worker imports one format's library, then answers jobs one at a time. Only one trial runs at any moment; its
process is fresh to the file, not to the library, whose import no trial should pay for.
"""

from __future__ import annotations

import contextlib
import errno
import multiprocessing
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from hyperslab.bench.patterns import Operation
from hyperslab.bench.published import PublishedArrays, make_replay
from hyperslab.bench.records import Phases
from hyperslab.bench.trial import Job, Measured, Workbench
from hyperslab.errors import HyperslabError, NoSpace, TrialFailed

# Time for all processes of a trial to have read their job before they start together.
START_TOGETHER_SECONDS = 0.25


@dataclass(frozen=True)
class Prepare:
    """Ask a worker to write the file that reads will read."""

    job: Job


@dataclass(frozen=True)
class PublishedJob:
    """Ask a worker to write or read as a published study did."""

    replay: str
    verb: str
    format: str
    path: Path
    arrays: PublishedArrays
    operation: Operation
    printed: Path  # what the study printed inside its timers goes to a real file


class Task(Protocol):
    """What another layer asks of a worker: it is pickled, run there once, and what it gives is sent back."""

    def run(self, bench: Workbench) -> Any:
        """Do it."""


Request = Job | Prepare | PublishedJob | Task
T = TypeVar("T", int, float)


def _answer(bench: Workbench, request: Request) -> Any:
    if isinstance(request, Prepare):
        return bench.prepare(request.job)
    if isinstance(request, PublishedJob):
        return _replay(request)
    return bench.run(request) if isinstance(request, Job) else request.run(bench)


def _replay(request: PublishedJob) -> Phases:
    replay = make_replay(request.replay)
    verb = replay.write if request.verb == "write" else replay.read
    with (
        open(request.printed, "w") as stream,
        contextlib.redirect_stdout(stream),
        contextlib.redirect_stderr(stream),  # warnings that a published program provoked are its own
    ):
        return verb(request.format, request.path, request.arrays, request.operation)


def _serve(connection: Connection) -> None:
    """Answer requests until the other end closes. Ctrl-C is the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    bench = Workbench()
    with contextlib.suppress(EOFError, ConnectionError):  # the parent left, whether we were idle or busy
        while True:
            request = connection.recv()
            try:
                answer = _answer(bench, request)
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

    def ask(self, request: Request) -> Any:
        """Send a request and wait; raises what the worker says, or TrialFailed when it died or hung."""
        self.send(request)
        return self.receive()

    def send(self, request: Request) -> None:
        """Send a request without waiting."""
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._connection, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs,), name=f"hyperslab {self._what}", daemon=True)
            _start_deaf_to_ctrl_c(self._process)
            theirs.close()
        assert self._connection is not None
        self._connection.send(request)

    def receive(self) -> Any:
        """Wait for the answer to the last request."""
        assert self._connection is not None
        if not self._connection.poll(self._timeout):
            self.stop()
            raise TrialFailed(f"no answer within {self._timeout:g} s; --timeout allows longer ones")
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

    controls_cache = True

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout = timeout_seconds
        self._workers: dict[tuple[str, int], Worker] = {}

    def worker(self, format_name: str, part: int = 0) -> Worker:
        """The worker of a format; several parts of one trial have one each."""
        key = (format_name, part)
        if key not in self._workers:
            self._workers[key] = Worker(f"{format_name} {part}", self._timeout)
        return self._workers[key]

    def run(self, jobs: Sequence[Job]) -> Measured:
        """Run the parts of one trial, all starting together where they are several, and combine what they found."""
        if len(jobs) == 1:
            found: Measured = self.worker(jobs[0].format).ask(jobs[0])
            return found
        workers = [self.worker(job.format, job.part) for job in jobs]
        start = time.monotonic() + START_TOGETHER_SECONDS  # Linux has one monotonic clock for all processes
        for worker, job in zip(workers, jobs, strict=True):
            worker.send(replace(job, start_at=start))
        return combine([worker.receive() for worker in workers])

    def stop(self) -> None:
        """End every process."""
        for worker in self._workers.values():
            worker.stop(grace_seconds=2.0)
        self._workers.clear()


def combine(parts: Sequence[Measured]) -> Measured:
    """The trial that several processes made together: as long as its slowest, as large as all of them."""

    def total(values: list[T | None]) -> T | None:
        known = [value for value in values if value is not None]
        return sum(known[1:], known[0]) if len(known) == len(values) else None

    slowest = max(parts, key=lambda part: sum(part.seconds.values()))
    amplifications = [part.read_amplification for part in parts if part.read_amplification is not None]
    errors = [part.max_abs_error for part in parts if part.max_abs_error is not None]
    return replace(
        slowest,
        cpu_seconds=total([part.cpu_seconds for part in parts]),
        peak_rss_nbytes=total([part.peak_rss_nbytes for part in parts]),
        device_read_nbytes=total([part.device_read_nbytes for part in parts]),
        device_write_nbytes=total([part.device_write_nbytes for part in parts]),
        decoded_nbytes=sum(part.decoded_nbytes for part in parts),
        selection_count=total([part.selection_count for part in parts]),
        chunk_count=total([part.chunk_count for part in parts]),
        read_amplification=float(np.mean(amplifications)) if amplifications else None,
        verified=all(part.verified for part in parts) if all(p.verified is not None for p in parts) else None,
        max_abs_error=max(errors) if errors else None,
    )

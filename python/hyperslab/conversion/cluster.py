"""`Cluster`: the workers of a Dask scheduler, which read and encode slabs of one target."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hyperslab.errors import RemoteError, UsageError

Task = tuple[Callable[..., Any], tuple[Any, ...]]
# So many slabs for each thread that works are under way or wait to be finished.
AHEAD = 2
# What distributed raises when workers or the scheduler are gone.
LOST = ("KilledWorker", "CommClosedError", "FutureCancelledError", "CancelledError", "SchedulerClosed")


class Cluster:
    """Runs tasks on the workers of a scheduler.

    Parameters
    ----------
    client : Any
        A client of the scheduler.

    Raises
    ------
    UsageError
        The scheduler has no workers.
    """

    most_at_once: int
    thread_count: int

    def __init__(self, client: Any) -> None:
        self._client = client
        self.thread_count = self.most_at_once = sum(client.nthreads().values())
        if not self.thread_count:
            raise UsageError("the Dask scheduler has no workers: start some, or leave --scheduler out")

    def check(self, paths: list[str]) -> None:
        """Check that every worker sees these files and folders.

        Raises
        ------
        UsageError
            One does not; the message names both.
        """
        for worker, missing in self._client.run(_missing, paths).items():
            if missing:
                said = f"the worker {worker} does not see {missing[0]}"
                raise UsageError(f"{said}: --scheduler needs a file system that all workers share")

    def in_order(self, tasks: Iterable[Task]) -> Iterator[Any]:
        """The results of tasks in their order; only a few are under way at a time."""
        waiting: deque[Any] = deque()
        try:
            for function, given in tasks:
                waiting.append(self._client.submit(function, *given, pure=False))
                if len(waiting) >= AHEAD * self.most_at_once:
                    yield self._result(waiting)
            while waiting:
                yield self._result(waiting)
        finally:
            self._client.cancel(list(waiting))

    @staticmethod
    def _result(waiting: deque[Any]) -> Any:
        try:
            finished = waiting[0].result()
        except Exception as error:
            if type(error).__name__ in LOST:
                said = f"the Dask workers were lost ({error})"
                raise RemoteError(f"{said}: start others, and go on with --resume") from error
            raise
        waiting.popleft().release()
        return finished


@contextmanager
def cluster_of(scheduler: Any) -> Iterator[Cluster | None]:
    """The workers of a scheduler, given by its address or as a client; None if there is none."""
    if scheduler is None:
        yield None
        return
    from hyperslab.references.side_by_side import client_of  # takes time to import

    with client_of(scheduler) as client:
        yield Cluster(client)


def _missing(paths: list[str]) -> list[str]:
    return [path for path in paths if not (Path(path).exists() and os.access(path, os.R_OK))]

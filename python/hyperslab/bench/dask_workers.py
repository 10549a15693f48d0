"""Readers and writers as processes of a Dask cluster, anywhere: `--scheduler ADDRESS`.

Each part of a trial goes to a worker of its own. The measured files must be on a file system that all of them
see. The page cache is controlled on the machine where the bench runs; a worker on another one refuses to claim it.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

from hyperslab.bench.trial import Job
from hyperslab.errors import HyperslabError, MissingLibrary, RunError, TrialFailed, UsageError
from hyperslab.lab.timers import Timing, combine
from hyperslab.lab.worker import Workbench

_bench = Workbench()


def _run_part(job: Job) -> Timing:
    """Runs on a Dask worker, in its process; the source elements are kept there between trials."""
    return job.run(_bench)


class DaskWorkers:
    """Runs the parts of a trial side by side on the workers of a scheduler."""

    def __init__(self, scheduler: str, timeout_seconds: float = 900.0) -> None:
        try:
            import dask.distributed as distributed
        except ImportError as error:
            raise MissingLibrary("--scheduler needs Dask: pip install 'hyperslab[dask]'") from error
        try:
            self._client: Any = distributed.Client(scheduler, timeout=10)  # type: ignore[no-untyped-call]  # Dask's is untyped
        except (OSError, ValueError) as error:
            raise UsageError(f"--scheduler {scheduler}: no Dask scheduler answers there ({error})") from error
        self._timeout = timeout_seconds

    def run(self, jobs: Sequence[Job]) -> Timing:
        """Run each part on a worker of its own; raises UsageError when there are too few."""
        addresses = self._addresses()
        if len(addresses) < len(jobs):
            raise UsageError(f"{len(jobs)} processes are asked for, the Dask scheduler has {len(addresses)} workers")
        futures = [
            self._client.submit(_run_part, job, workers=[address], pure=False, allow_other_workers=False)
            for job, address in zip(jobs, addresses, strict=False)
        ]
        return combine([self._result(future) for future in futures])

    @property
    def controls_cache(self) -> bool:
        """Whether the workers run on this machine, so that the page cache that the bench controls is theirs."""
        return bool(self._here())

    def _addresses(self) -> list[str]:
        return self._here() or sorted(self._workers())

    def _here(self) -> list[str]:
        own = {"127.0.0.1", "localhost", socket.gethostname(), socket.gethostbyname(socket.gethostname())}
        return sorted(address for address, worker in self._workers().items() if worker["host"] in own)

    def _workers(self) -> dict[str, dict[str, Any]]:
        known: dict[str, dict[str, Any]] = self._client.scheduler_info(n_workers=-1)["workers"]
        return known

    def _result(self, future: Any) -> Timing:
        try:
            found: Timing = future.result(timeout=self._timeout)
        except HyperslabError:
            raise
        except TimeoutError as error:
            raise TrialFailed(f"a Dask worker gave no answer within {self._timeout:g} s") from error
        except Exception as error:
            raise TrialFailed(f"on a Dask worker: {type(error).__name__}: {error}") from error
        return found

    def close(self) -> None:
        """Leave the scheduler; it and its workers go on."""
        try:
            self._client.close()
        except OSError as error:
            raise RunError(f"the Dask scheduler went away: {error}") from error

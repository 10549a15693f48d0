"""Run readers and writers as processes of a Dask cluster: `--scheduler ADDRESS`.

Each part of a trial runs on its own worker. All workers must see the file system of the measured files. The bench
controls the page cache of its own machine only, so trials on other machines cannot claim a cache state.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

from hyperslab.bench.trial import Job
from hyperslab.errors import HyperslabError, RunError, TrialFailed, UsageError
from hyperslab.lab.timers import Timing, combine
from hyperslab.lab.worker import Workbench
from hyperslab.needed import missing

_bench = Workbench()


def _run_part(job: Job) -> Timing:
    """Run a job in a Dask worker's process, which keeps the source elements between trials."""
    return job.run(_bench)


class DaskWorkers:
    """Runs the parts of a trial at the same time on the workers of a scheduler."""

    def __init__(self, scheduler: str, timeout_seconds: float = 900.0) -> None:
        try:
            import dask.distributed as distributed
        except ImportError as error:
            raise missing("distributed", "--scheduler") from error
        try:
            self._client: Any = distributed.Client(scheduler, timeout=10)  # type: ignore[no-untyped-call]  # Dask's is untyped
        except (OSError, ValueError) as error:
            raise UsageError(f"--scheduler {scheduler}: no Dask scheduler answers at this address ({error})") from error
        self._timeout = timeout_seconds

    def run(self, jobs: Sequence[Job]) -> Timing:
        """Run each part on its own worker. Raises UsageError if there are too few workers."""
        addresses = self._addresses()
        if len(addresses) < len(jobs):
            raise UsageError(
                f"the study needs {len(jobs)} processes, but the Dask scheduler has {len(addresses)} workers"
            )
        futures = [
            self._client.submit(_run_part, job, workers=[address], pure=False, allow_other_workers=False)
            for job, address in zip(jobs, addresses, strict=False)
        ]
        return combine([self._result(future) for future in futures])

    @property
    def controls_cache(self) -> bool:
        """Whether the workers run on this machine, so that the bench controls their page cache."""
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
            timing: Timing = future.result(timeout=self._timeout)
        except HyperslabError:
            raise
        except TimeoutError as error:
            raise TrialFailed(f"a Dask worker gave no answer within {self._timeout:g} s") from error
        except Exception as error:
            raise TrialFailed(f"on a Dask worker: {type(error).__name__}: {error}") from error
        return timing

    def close(self) -> None:
        """Disconnect from the scheduler, which keeps running with its workers."""
        try:
            self._client.close()
        except OSError as error:
            raise RunError(f"lost the connection to the Dask scheduler: {error}") from error

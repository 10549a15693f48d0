"""Where the parts of a trial run: in one process, several processes, a Dask cluster, or MPI ranks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from hyperslab.bench import mpi
from hyperslab.bench.dask_workers import DaskWorkers
from hyperslab.bench.records import Cell
from hyperslab.bench.study import Case
from hyperslab.bench.trial import Job
from hyperslab.lab.timers import Timing, combine
from hyperslab.lab.worker import LocalWorkers

# Time for all processes of a trial to read their job before they start together.
START_TOGETHER_SECONDS = 0.25


class Execution:
    """The workers on this machine, and optionally a cluster for trials with several parts."""

    def __init__(self, timeout_seconds: float, cluster: DaskWorkers | None = None) -> None:
        self.local: LocalWorkers = LocalWorkers(timeout_seconds)
        self._timeout = timeout_seconds
        self._cluster = cluster

    def run(self, case: Case, cell: Cell, jobs: Sequence[Job]) -> Timing:
        """Run the parts of one trial where its case says, and combine their timings."""
        if case.launcher == "mpi":
            return mpi.run(jobs[0], cell.processes, self._timeout)
        if len(jobs) == 1:
            timing: Timing = self.local.worker(cell.format).ask(jobs[0])
            return timing
        return self._side_by_side(jobs) if self._cluster is None else self._cluster.run(jobs)

    def _side_by_side(self, jobs: Sequence[Job]) -> Timing:
        """Start all parts at the same time."""
        workers = [self.local.worker(job.format, job.part) for job in jobs]
        start = time.monotonic() + START_TOGETHER_SECONDS  # Linux has one monotonic clock for all processes
        for worker, job in zip(workers, jobs, strict=True):
            worker.send(replace(job, start_at=start))
        return combine([worker.receive() for worker in workers])

    def controls_cache(self, cell: Cell) -> bool:
        """Whether the bench controls the page cache that a trial of this cell uses."""
        return cell.processes == 1 or self._cluster is None or self._cluster.controls_cache

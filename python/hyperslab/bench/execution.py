"""Where the parts of a trial run: a process here, several side by side, a Dask cluster's, or MPI ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hyperslab.bench import mpi
from hyperslab.bench.records import Cell
from hyperslab.bench.study import Case
from hyperslab.bench.trial import Job, Measured
from hyperslab.bench.worker import LocalWorkers


class Executor(Protocol):
    """Whatever runs the parts of one trial side by side."""

    @property
    def controls_cache(self) -> bool:
        """Whether it runs where the bench controls the page cache."""

    def run(self, jobs: Sequence[Job]) -> Measured:
        """Run the parts side by side and combine what they found."""


@dataclass(frozen=True)
class Execution:
    """The workers on this machine, and whoever runs trials of several parts."""

    local: LocalWorkers
    several: Executor
    timeout_seconds: float

    def run(self, case: Case, cell: Cell, jobs: Sequence[Job]) -> Measured:
        """Run the parts of one trial wherever its case says."""
        if case.launcher == "mpi":
            return mpi.run(jobs[0], cell.processes, self.timeout_seconds)
        return self.several.run(jobs) if len(jobs) > 1 else self.local.run(jobs)

    def controls_cache(self, cell: Cell) -> bool:
        """Whether the page cache that a trial of this cell meets is the one that the bench controls."""
        return cell.processes == 1 or self.several.controls_cache

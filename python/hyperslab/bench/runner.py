"""Carry out a run: every cell in random order, round after round, until its interval is narrow enough.

A round gives each unfinished cell one trial, in an order drawn anew, so that a slow minute of the machine falls
on all formats alike. Every trial goes to the journal before the next begins; what the journal holds is not done
again. Nothing outside the run's own scratch directory is ever removed.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hyperslab.bench import cells
from hyperslab.bench.cells import Group
from hyperslab.bench.dask_workers import DaskWorkers
from hyperslab.bench.execution import Execution
from hyperslab.bench.fair import FairTrials
from hyperslab.bench.ledger import WARM_UP, Ledger
from hyperslab.bench.published import make_replay
from hyperslab.bench.published.running import run_published
from hyperslab.bench.records import Cell, blank_trial
from hyperslab.bench.statistics import headline_metric, interval_of_median
from hyperslab.bench.study import Case
from hyperslab.errors import UsageError

# Trials of a cell that may fail their proof and be made again, before the cell is left with what it has.
MOST_REJECTED = 3


@dataclass(frozen=True)
class Policy:
    """How many trials a cell gets: `least`, then more until its interval is narrow, its time spent, or `most` made."""

    least: int
    most: int
    precision: float = 0.05  # half width of the median's interval / median
    most_seconds: float = 30.0  # of timed work in one cell


POLICIES = {
    "quick": Policy(3, 3),  # too few for an interval, so quick runs name no winner
    "small": Policy(6, 9, most_seconds=20.0),
    "paper": Policy(10, 30, precision=0.03, most_seconds=600.0),
}


class Runner:
    """Runs groups of cells and writes them into the ledger."""

    def __init__(
        self,
        ledger: Ledger,
        scratch: Path,
        policy: Policy,
        *,
        seed: int,
        timeout_seconds: float,
        executor: DaskWorkers | None = None,
        data_files: Mapping[str, Path] | None = None,
    ) -> None:
        self._ledger = ledger
        self._scratch = scratch
        self._policy = policy
        self._random = random.Random(seed)
        self._execution = Execution(timeout_seconds, executor)
        self._data_files = data_files or {}

    def run(self, groups: Sequence[Group]) -> None:
        """Carry out all groups. Raises NoSpace when the disk is full; finished trials are in the journal."""
        self._ledger.expected = sum(len(group.cells) * self._most_trials(group) for group in groups)
        try:
            for group in groups:
                self._run_group(group)
        finally:
            self._execution.local.stop()

    def _most_trials(self, group: Group) -> int:
        if group.method == "published":
            return make_replay(group.case.replay or "").trials
        return self._policy.most + 1

    def _run_group(self, group: Group) -> None:
        usable = [cell for cell in group.cells if not self._refuse(group, cell)]
        if not any(self._unfinished(cell) for cell in usable):
            return
        directory = Path(tempfile.mkdtemp(prefix=f"{group.case.name}-", dir=self._scratch))
        try:
            if group.method == "published":
                run_published(self._ledger, self._execution.local, group, usable, directory)
            else:
                self._run_fair(group, usable, directory)
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _refuse(self, group: Group, cell: Cell) -> bool:
        reason = cells.refusal(group.case, cell)
        if reason is not None and not self._ledger.trials(cell):
            dtype = str(cells.array_dtype(group.case))
            self._ledger.record(blank_trial(cell, dtype, 0, "refused", reason))
        return reason is not None

    def _run_fair(self, group: Group, usable: list[Cell], directory: Path) -> None:
        field = replace(group.field, file=self._data_files.get(group.case.data_file or ""))
        with closing(FairTrials(self._ledger, self._execution, group, directory, field)) as trials:
            for cell in usable:
                if self._unfinished(cell):
                    trials.make(cell, WARM_UP)
            while pending := [cell for cell in usable if self._unfinished(cell)]:
                self._random.shuffle(pending)
                for cell in pending:
                    trials.make(cell, len(self._ledger.attempts(cell)))
        self._ledger.expected -= sum(self._policy.most - len(self._ledger.attempts(cell)) for cell in usable)

    def _unfinished(self, cell: Cell) -> bool:
        """Whether a cell needs more trials: the stop rule."""
        if any(trial.status in ("failed", "refused") for trial in self._ledger.trials(cell)):
            return False
        attempts = self._ledger.attempts(cell)
        accepted = sum(trial.status == "ok" for trial in attempts)
        if accepted >= self._policy.most or len(attempts) >= self._policy.most + MOST_REJECTED:
            return False
        metric = headline_metric(cell.operation.name)
        seconds = [t.phases.metric(metric) or 0.0 for t in attempts if t.status == "ok"]
        if len(seconds) < self._policy.least:
            return True
        if sum(seconds) > self._policy.most_seconds:
            return False
        interval = interval_of_median(seconds)
        median = float(np.median(seconds))
        return interval is None or (interval[1] - interval[0]) / 2 > self._policy.precision * median


def check_room(groups: Sequence[Group], scratch: Path, memory_nbytes: int | None) -> None:
    """Raise UsageError with figures when a run cannot fit the disk or memory; known before anything runs."""
    for group in groups:
        one = cells.file_nbytes(group.case, group.shape, group.count)
        files = {(cell.format, cell.conditions) for cell in group.cells}
        disk = one * (len(files) + 1)
        free = shutil.disk_usage(scratch).free
        if disk > free:
            raise UsageError(
                f"{group.case.name}: {len(files)} files of {one / 1e9:.1f} GB and one more at a time need "
                f"{disk / 1e9:.1f} GB below {scratch}, which has {free / 1e9:.1f} GB; a smaller --scale, fewer "
                "--formats, or another --scratch"
            )
        array = cells.file_nbytes(group.case, group.shape, 1)
        if memory_nbytes is not None and 3 * array > memory_nbytes:
            raise UsageError(
                f"{group.case.name}: an array of {array / 1e9:.1f} GB is held three times (written, read, compared), "
                f"memory is {memory_nbytes / 1e9:.1f} GB; a smaller --scale"
            )


def expand(cases: Sequence[Case], methods: Sequence[str]) -> list[Group]:
    """Every group of a run, in order. A case without a published method has none by that method."""
    return [
        group
        for case in cases
        for method in methods
        if method == "fair" or case.replay
        for group in cells.groups(case, method)  # type: ignore[arg-type]  # the command line checked the names
    ]

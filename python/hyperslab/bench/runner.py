"""Carry out a run, group by group: with the lab's rounds, or as a published study did.

Every trial is in the journal before the next one begins. What the journal holds is not repeated. Only the run's own
scratch directory is ever removed.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from hyperslab.bench import cells
from hyperslab.bench.budgets import Budget, TimeLimit
from hyperslab.bench.cells import CellGroup
from hyperslab.bench.execution import Execution
from hyperslab.bench.fair import FairTrials, seconds_of, tally_of
from hyperslab.bench.published import make_replay
from hyperslab.bench.published.running import run_published
from hyperslab.bench.records import Cell, Trial, trial_of
from hyperslab.bench.study import Case
from hyperslab.lab.journal import Journal
from hyperslab.lab.looks import Looks
from hyperslab.lab.room import check_room
from hyperslab.lab.rounds import Rounds, StopRule, trial_count


def expected(groups: Sequence[CellGroup], rule: StopRule) -> int:
    """The most trials that a run takes."""
    return sum(
        len(group.cells) * make_replay(group.case.replay or "").trials
        if group.method == "published"
        else trial_count(len(group.cells), rule)
        for group in groups
    )


def run_groups(
    groups: Sequence[CellGroup],
    rounds: Rounds,
    journal: Journal[Trial],
    execution: Execution,
    scratch: Path,
    data_files: Mapping[str, Path],
    looks: Looks | None,
    limit: TimeLimit,
) -> None:
    """Measure all groups, or those for which the time is enough; with `looks`, only what is open gets more rounds.

    Raises NoSpace if the disk is full; finished trials are in the journal.
    """
    for number, group in enumerate(groups):
        if limit.is_over():
            return
        limit.begin(number)
        usable = [cell for cell in group.cells if not _refuse(journal, group, cell)]
        directory = Path(tempfile.mkdtemp(prefix=f"{group.case.name}-", dir=scratch))
        try:
            if group.method == "published":
                run_published(journal, rounds, execution.local, group, usable, directory)
            else:
                field = replace(group.field, file=data_files.get(group.case.data_file or ""))
                with closing(FairTrials(journal, execution, group, directory, field)) as trials:
                    _run_fair(usable, rounds, journal, trials, looks, limit)
        finally:
            shutil.rmtree(directory, ignore_errors=True)


def _run_fair(
    usable: list[Cell],
    rounds: Rounds,
    journal: Journal[Trial],
    trials: FairTrials,
    looks: Looks | None,
    limit: TimeLimit,
) -> None:
    budget = None if looks is None else Budget(usable, looks, lambda cell: seconds_of(cell, journal.of(cell.key)))

    def select(pending: Sequence[Cell]) -> Sequence[Cell]:
        trials.begin_round()
        if budget is None or looks is None:
            return pending
        made = max((len(seconds_of(cell, journal.of(cell.key))) for cell in usable), default=0)
        return budget.select(pending) if limit.allows(made, looks) else []

    rounds.run(
        usable,
        trials.make,
        lambda cell: tally_of(cell, journal.of(cell.key)),
        warm_up=trials.warm_up,
        name=lambda cell: cell.name,
        is_cold=lambda cell: cell.cache == "cold",
        select=select,
    )


def _refuse(journal: Journal[Trial], group: CellGroup, cell: Cell) -> bool:
    reason = cells.refusal(group.case, cell)
    if reason is not None and not journal.of(cell.key):
        dtype = str(cells.array_dtype(group.case))
        journal.append(trial_of(cell, dtype, 0, "refused", reason))
    return reason is not None


def check_groups(groups: Sequence[CellGroup], scratch: Path, memory_nbytes: int | None) -> None:
    """Raise UsageError if a run does not fit on the disk or into memory. This is known before anything runs."""
    for group in groups:
        files = {(cell.format, cell.conditions) for cell in group.cells}
        # plus one that is being written
        disk = cells.file_nbytes(group.case, group.shape, group.count) * (len(files) + 1)
        array = cells.file_nbytes(group.case, group.shape, 1)
        hint = "use a smaller --scale, fewer --formats, or another --scratch"
        check_room(f"{group.case.name} ({len(files)} files)", disk, array, scratch, memory_nbytes, hint)


def expand(cases: Sequence[Case], methods: Sequence[str]) -> list[CellGroup]:
    """All groups of a run, in order. A case without a published method has no group for that method."""
    return [
        group
        for case in cases
        for method in methods
        if method == "fair" or case.replay
        for group in cells.groups(case, method)  # type: ignore[arg-type]  # the command line checked the names
    ]

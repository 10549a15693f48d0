"""What a run has done so far, in memory and in the journal, and what its user is told of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from hyperslab.bench.cells import Group
from hyperslab.bench.records import Cell, Trial
from hyperslab.bench.results import Journal

WARM_UP = -1

Progress = Callable[[str, int, int], None]  # what is going on, trials done, trials expected at most


class Ledger:
    """Every trial of a run, by cell."""

    def __init__(self, journal: Journal, done: Iterable[Trial], progress: Progress) -> None:
        self._journal = journal
        self._progress = progress
        self._trials: dict[str, list[Trial]] = defaultdict(list)
        for trial in done:
            self._trials[trial.cell_key].append(trial)
        self.expected = 0

    @property
    def position(self) -> int:
        """The place of the next trial in the order of execution."""
        return sum(map(len, self._trials.values()))

    def record(self, trial: Trial) -> None:
        """Keep a finished trial; a warm-up that is repeated after --resume is not kept twice."""
        known = self._trials[trial.cell_key]
        if trial.trial == WARM_UP and trial.status == "ok" and known:
            return
        self._journal.append(trial.to_dict())
        known.append(trial)

    def trials(self, cell: Cell) -> list[Trial]:
        """All of a cell's trials."""
        return self._trials[cell.key]

    def attempts(self, cell: Cell) -> list[Trial]:
        """A cell's trials without the warm-up."""
        return [trial for trial in self.trials(cell) if trial.trial >= 0]

    def has(self, cell: Cell, number: int) -> bool:
        """Whether a cell's trial with this number is done."""
        return any(trial.trial == number for trial in self.trials(cell))

    def announce(self, group: Group, cell: Cell) -> None:
        """Tell whoever watches what runs now."""
        what = f"{group.case.name} {cell.format} {cell.operation.name} {cell.conditions} {cell.cache}"
        self._progress(what, self.position, max(self.expected, self.position))

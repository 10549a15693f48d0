"""How many rounds a run makes, and which cells take part in the next one: rounds go where a decision is open."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Protocol

from hyperslab.bench.rankings import UNRANKED
from hyperslab.bench.records import Cell
from hyperslab.bench.standings import wanting
from hyperslab.bench.study import Scale
from hyperslab.lab.looks import MOST_ROUNDS, Looks, one_look
from hyperslab.lab.paired import Rounds
from hyperslab.lab.rounds import StopRule, exactly

RULES = {
    "quick": StopRule(6, 6),
    "small": StopRule(6, 15, 20.0),
    "paper": StopRule(10, 33, 600.0),
}
# With --until-decided, a comparison is given up after this many timed seconds of one of its cells.
GIVEN_UP_SECONDS = 600.0


class Asked(Protocol):
    """What a request and the description of a run both say about the number of rounds."""

    @property
    def scale(self) -> Scale:
        """The size of the experiment."""

    @property
    def trials(self) -> int | None:
        """Exactly as many trials of each cell; None for the scale's own rule."""

    @property
    def until_decided(self) -> bool:
        """Whether to go on until the comparisons are decided."""


def rule_of(asked: Asked) -> StopRule:
    """When a cell has enough trials at the latest."""
    if asked.trials is not None:
        return exactly(asked.trials)
    rule = RULES[asked.scale]
    return StopRule(rule.least, MOST_ROUNDS, GIVEN_UP_SECONDS) if asked.until_decided else rule


def looks_of(asked: Asked) -> Looks:
    """After how many rounds the comparisons are looked at."""
    if asked.trials is not None:
        return one_look(asked.trials)
    rule = rule_of(asked)
    return Looks(rule.least, rule.most)


class Budget:
    """The cells of one group that another round helps.

    Parameters
    ----------
    cells : Sequence[Cell]
        All cells of the group.
    looks : Looks
        When decisions are looked at.
    seconds : Callable[[Cell], Rounds]
        The seconds of a cell by round, so far.
    """

    def __init__(self, cells: Sequence[Cell], looks: Looks, seconds: Callable[[Cell], Rounds]) -> None:
        self._looks = looks
        self._seconds = seconds
        self._comparisons: dict[tuple[str, ...], list[Cell]] = defaultdict(list)
        for cell in cells:
            apart = cell.format if cell.format in UNRANKED else ""
            self._comparisons[cell.conditions, cell.operation.label, cell.cache, str(cell.processes), apart].append(
                cell
            )

    def select(self, pending: Sequence[Cell]) -> list[Cell]:
        """Those of the pending cells that the next round should have."""
        wanted: set[str] = set()
        for members in self._comparisons.values():
            undecided = wanting({cell.key: self._seconds(cell) for cell in members}, self._looks)
            wanted |= undecided
        return [cell for cell in pending if cell.key in wanted]


class TimeLimit:
    """How long a run may take, and how much of that each of its groups may use.

    No trial begins when the time is over. Every group makes the rounds of its first look; only rounds beyond them stop
    when the group has used its share, which is the time left, divided by the numbers of cells.

    Parameters
    ----------
    minutes : float | None
        The time of the whole run; None for no limit.
    sizes : Sequence[int]
        The number of cells of each group, in order.
    clock : Callable[[], float]
        The seconds now.
    """

    def __init__(
        self, minutes: float | None, sizes: Sequence[int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._sizes = sizes
        self._end = None if minutes is None else clock() + 60 * minutes
        self._share_ends = self._end

    def begin(self, group: int) -> None:
        """Begin the group of this number, counted from 0."""
        if self._end is not None:
            now = self._clock()
            left = max(0.0, self._end - now)
            self._share_ends = now + left * self._sizes[group] / max(1, sum(self._sizes[group:]))

    def is_over(self) -> bool:
        """Whether no trial may begin any more."""
        return self._end is not None and self._clock() >= self._end

    def allows(self, rounds: int, looks: Looks) -> bool:
        """Whether a group that made so many rounds may go on."""
        return rounds < looks.first or self._share_ends is None or self._clock() < self._share_ends

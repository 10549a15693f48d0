"""The loop that measures everything: round after round over all points that need more trials, until none does.

A round gives each unfinished point one trial, in a new random order, so that slow minutes of the machine affect all
points alike. Making one file cold makes all others cold too. So the cold trials of a round run together, before or
after the other trials.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np

from hyperslab.lab.statistics import interval_of_median
from hyperslab.progress import Progress

# A point may have this many rejected trials before it is left with the trials it has.
MOST_REJECTED = 6


class Tally(NamedTuple):
    """What is known of a point: the seconds of its accepted trials, and the number of rejected ones."""

    seconds: Sequence[float] = ()
    rejected: int = 0
    is_over: bool = False  # it failed or was refused, so it is not tried again

    @property
    def trial_count(self) -> int:
        """The number of accepted and rejected trials."""
        return len(self.seconds) + self.rejected


@dataclass(frozen=True)
class StopRule:
    """When a point has enough trials: after `least`, once its interval is narrow or its time is spent; at the latest,
    `most`.
    """

    least: int
    most: int
    most_seconds: float = float("inf")  # timed seconds of one point
    precision: float | None = None  # half width of the interval / median
    run_seconds: float | None = None  # of the whole run: if it is late, groups of points get fewer trials

    def is_met(self, tally: Tally) -> bool:
        """Whether a point has enough trials."""
        made = len(tally.seconds)
        if tally.is_over or made >= self.most or tally.trial_count >= self.most + MOST_REJECTED:
            return True
        if made < self.least:
            return False
        if sum(tally.seconds) >= self.most_seconds:
            return True
        interval = interval_of_median(tally.seconds) if self.precision is not None else None
        if interval is None or self.precision is None:
            return False
        return (interval[1] - interval[0]) / 2 <= self.precision * float(np.median(tally.seconds))


P = TypeVar("P")
# A run is not called late before this share of its trials: it begins with starting workers.
UNHURRIED_SHARE = 1 / 6


class Rounds:
    """Measures groups of points, one group after the other, and reports progress.

    Parameters
    ----------
    rule : StopRule
        When a point has enough trials.
    seed : int
        Seed of the order of trials.
    progress : Progress
        Called before each trial.
    expected : int
        The most trials that there will be.
    made : int
        How many of them were made earlier.
    is_over : Callable[[], bool]
        Called before each trial: whether the time for the whole run is over.
    """

    def __init__(
        self,
        rule: StopRule,
        seed: int,
        progress: Progress,
        expected: int,
        made: int = 0,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self.rule = rule
        self._order = random.Random(seed)
        self._progress = progress
        self._expected = expected
        self._made = made
        self._made_before = made
        self._start = time.monotonic()
        self.is_over = is_over

    def announce(self, name: str) -> None:
        """Report what runs now."""
        self._progress(name, min(self._made, self._expected - 1), self._expected)
        self._made += 1

    def run(
        self,
        points: Sequence[P],
        make: Callable[[P], None],
        tally: Callable[[P], Tally],
        *,
        warm_up: Callable[[P], None] | None = None,
        name: Callable[[P], str] = str,
        is_cold: Callable[[P], bool] = lambda _: False,
        select: Callable[[Sequence[P]], Sequence[P]] = lambda points: points,
    ) -> None:
        """Make the trials of one group until each of its points has enough, or until the time is over.

        Parameters
        ----------
        points : Sequence[P]
            The points to measure.
        make : Callable[[P], None]
            Makes one trial of a point and records it.
        tally : Callable[[P], Tally]
            What is known of a point.
        warm_up : Callable[[P], None] | None
            Makes the first trial of a point, which does not count.
        name : Callable[[P], str]
            A point's name for people.
        is_cold : Callable[[P], bool]
            Whether the trials of a point start with nothing in the page cache.
        select : Callable[[Sequence[P]], Sequence[P]]
            Called before each round with the points that need more trials: those that the round should have.
        """

        rule = self._rule_in_time()

        def pending() -> list[P]:
            return [point for point in points if not rule.is_met(tally(point))]

        if warm_up is not None:
            for point in select(pending()):
                if self.is_over():
                    return
                self.announce(name(point))
                warm_up(point)
        while left := list(select(pending())):
            self._order.shuffle(left)
            colder = self._order.choice((True, False))
            for point in sorted(left, key=lambda point: is_cold(point) is colder):
                if self.is_over():
                    return
                self.announce(name(point))
                make(point)
        self._expected -= sum(max(0, self.rule.most - tally(point).trial_count) for point in points)

    def _rule_in_time(self) -> StopRule:
        """The rule for the next group: with `least` trials, or one, if the run would otherwise end too late."""
        made, wanted = self._made - self._made_before, self.rule.run_seconds
        if wanted is None or made < UNHURRIED_SHARE * (self._expected - self._made_before):
            return self.rule
        elapsed = time.monotonic() - self._start
        each = elapsed * (self._expected - self._made) / max(made, 1) / (self.rule.most + 1)
        in_time = (wanted - elapsed) / each - 1 if each > 0 else float("inf")
        count = next((count for count in (self.rule.most, self.rule.least) if count <= in_time), 1)
        return self.rule if count == self.rule.most else replace(self.rule, least=count, most=count)


def trial_count(point_count: int, rule: StopRule) -> int:
    """The most trials that these points take, including warm-up trials but not rejected ones."""
    return point_count * (rule.most + 1)


def exactly(count: int) -> StopRule:
    """Exactly this many trials of each point, however long they take."""
    return StopRule(count, count)

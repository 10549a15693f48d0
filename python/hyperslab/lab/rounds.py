"""The loop by which everything is measured: round after round over all points that need more, until none does.

A round gives each unfinished point one trial, in an order drawn anew, so that a slow minute of the machine falls on
all points alike. Making one file cold cools all others: the cold trials of a round follow each other, before the rest
or after it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from hyperslab.lab.statistics import interval_of_median

# Trials of a point that may fail their proof and be made again, before the point is left with what it has.
MOST_REJECTED = 6

Progress = Callable[[str, int, int], None]  # what is going on, trials done, trials expected at most


class Tally(NamedTuple):
    """What is known of a point: the seconds of its accepted trials, and how many were rejected."""

    seconds: Sequence[float] = ()
    rejected: int = 0
    is_over: bool = False  # it failed, or was refused: it is not tried again

    @property
    def trial_count(self) -> int:
        """Those that count, and those that do not."""
        return len(self.seconds) + self.rejected


@dataclass(frozen=True)
class StopRule:
    """When a point has enough trials: after `least`, when its interval is narrow or its time is spent; after `most`."""

    least: int
    most: int
    most_seconds: float = float("inf")  # of timed work in one point
    precision: float | None = None  # half width of the median's interval / median

    def is_met(self, tally: Tally) -> bool:
        """Whether a point has enough."""
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


class Rounds:
    """Measures groups of points, one group after another, and tells whoever watches.

    Args:
        rule: When a point has enough.
        seed: Of the order of trials.
        progress: Told of each trial before it begins.
        expected: How many trials there will be at most.
        made: How many of them were made before.
    """

    def __init__(self, rule: StopRule, seed: int, progress: Progress, expected: int, made: int = 0) -> None:
        self.rule = rule
        self._order = random.Random(seed)
        self._progress = progress
        self._expected = expected
        self._made = made

    def announce(self, name: str) -> None:
        """Tell what runs now."""
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
    ) -> None:
        """Make the trials of one group, until each of its points has enough.

        Args:
            points: What is measured in turn.
            make: Makes one trial of a point, and remembers what it gave.
            tally: What is known of a point.
            warm_up: Makes the first trial of a point, which counts for nothing.
            name: A point in words.
            is_cold: Whether the trials of a point begin with nothing in the page cache.
        """

        def pending() -> list[P]:
            return [point for point in points if not self.rule.is_met(tally(point))]

        if warm_up is not None:
            for point in pending():
                self.announce(name(point))
                warm_up(point)
        while left := pending():
            self._order.shuffle(left)
            colder = self._order.choice((True, False))
            for point in sorted(left, key=lambda point: is_cold(point) is colder):
                self.announce(name(point))
                make(point)
        self._expected -= sum(max(0, self.rule.most - tally(point).trial_count) for point in points)


def trial_count(point_count: int, rule: StopRule) -> int:
    """How many trials so many points take at most, warming up included, unless trials are rejected."""
    return point_count * (rule.most + 1)


def exactly(count: int) -> StopRule:
    """So many trials of each point, however long they take."""
    return StopRule(count, count)

"""How many times as long one contender takes as another, with an exact interval, from the rounds that both were in.

In a round each contender runs once, in random order. Without a difference between two of them, each of their ratios is
as likely above one as below it, whatever the shape of the timings. From this follow the exact distributions of
Wilcoxon's two tests (F. Wilcoxon, "Individual comparisons by ranking methods", 1945), and from these the intervals of
J. L. Hodges and E. L. Lehmann ("Estimates of location based on rank tests", 1963): the ratios that the test does not
reject. docs/decisions/0015 says why.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

# A pair with fewer common rounds than this cannot be told apart at 95 % by its signs: 2 * 0.5**5 is 6 %.
LEAST_ROUNDS = 6
# A contender is far slower if each of its trials took this many times as long as each of another's.
FAR_FACTOR = 3.0
SHORTEST = 1e-9  # seconds: the resolution of the clock

Rounds = Mapping[int, float]  # the seconds of a contender by the number of the round


class Ratio(NamedTuple):
    """How many times as long one contender takes as another."""

    value: float
    low: float | None  # None if there are too few rounds for an interval
    high: float | None
    rounds: int  # rounds with both contenders
    is_far: bool = False  # it stopped early because it was far slower, so there may be no interval

    @property
    def is_above(self) -> bool:
        """Whether it certainly takes longer."""
        return self.is_far or (self.low is not None and self.low > 1)

    @property
    def is_below(self) -> bool:
        """Whether it certainly takes less time."""
        return self.high is not None and self.high < 1

    def is_within(self, factor: float) -> bool:
        """Whether the two certainly differ by less than this factor."""
        return self.low is not None and self.high is not None and 1 / factor <= self.low and self.high <= factor


def ratio_of(first: Rounds, second: Rounds, level: float = 0.05) -> Ratio | None:
    """How many times as long `second` takes as `first`.

    Parameters
    ----------
    first, second : Rounds
        The seconds of the two contenders by round.
    level : float
        The probability that the interval misses the ratio.

    Returns
    -------
    Ratio | None
        None if one of them has no rounds. From six common rounds on, the ratios within rounds are compared. With fewer,
        because one contender stopped early, all trials of one are compared with all trials of the other.
    """
    if not first or not second:
        return None
    common = sorted(first.keys() & second.keys())
    if len(common) >= LEAST_ROUNDS:
        within = [_log(second[k]) - _log(first[k]) for k in common]
        averages = np.sort(np.add.outer(within, within)[np.triu_indices(len(within))] / 2)
        return _ratio(averages, _most_signed(len(within), level), len(common))
    across = np.sort(np.subtract.outer([_log(s) for s in second.values()], [_log(s) for s in first.values()]).ravel())
    compared = _ratio(across, _most_across(len(first), len(second), level), len(common))
    return compared._replace(is_far=1 < len(second) < len(first) and is_far_slower(second, first))


def is_far_slower(second: Rounds, first: Rounds) -> bool:
    """Whether each trial of `second` took at least three times as long as each of `first`."""
    return min(second.values()) >= FAR_FACTOR * max(max(first.values()), SHORTEST)


def _log(seconds: float) -> float:
    return math.log(max(seconds, SHORTEST))


def _ratio(ordered: np.ndarray, dropped: int | None, rounds: int) -> Ratio:
    value = float(np.exp(np.median(ordered)))
    if dropped is None:
        return Ratio(value, None, None, rounds)
    return Ratio(value, float(np.exp(ordered[dropped])), float(np.exp(ordered[-1 - dropped])), rounds)


def _most_signed(count: int, level: float) -> int | None:
    """How many of the ordered averages the interval leaves out at each end; None if it cannot be that sure."""
    return _most(_signed_ranks(count), level)


def _most_across(first: int, second: int, level: float) -> int | None:
    return _most(_rank_sums(min(first, second), max(first, second)), level)


def _most(counts: Sequence[int], level: float) -> int | None:
    """The largest k with 2 P(statistic <= k) <= level, for a symmetric statistic with these counts."""
    total, below, most = sum(counts), 0, None
    for k, count in enumerate(counts):
        below += count
        if 2 * below > level * total:
            break
        most = k
    return most


@cache
def _signed_ranks(count: int) -> tuple[int, ...]:
    """How many of all 2**count choices of signs give each sum of the ranks with a plus."""
    ways = [1]
    for rank in range(1, count + 1):
        ways = [a + b for a, b in zip(ways + [0] * rank, [0] * rank + ways, strict=True)]
    return tuple(ways)


@cache
def _rank_sums(fewer: int, more: int) -> tuple[int, ...]:
    """How many of all orders of two samples have each number of pairs in the wrong order."""
    ways = [1] + [0] * (fewer * more)  # the coefficients of a Gaussian binomial
    for k in range(1, fewer + 1):
        ways = [a - (ways[at - more - k] if at >= more + k else 0) for at, a in enumerate(ways)]
        for at in range(k, len(ways)):
            ways[at] += ways[at - k]
    return tuple(ways)


def chance_of(rounds: int) -> float:
    """The probability that one of two equal contenders is ahead in every one of this many rounds."""
    return 2.0 * 0.5**rounds

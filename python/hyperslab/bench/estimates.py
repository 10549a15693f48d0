"""What a conclusion compares: each contender's seconds per array, and the quotient of two of them with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from hyperslab.bench.records import Method, Summary
from hyperslab.lab.looks import Looks
from hyperslab.lab.paired import Rounds, ratio_of


@dataclass(frozen=True)
class Estimate:
    """One contender's seconds per array, with their interval, and in each round if they are known."""

    name: str
    point: float
    low: float
    high: float
    n: int
    rounds: Rounds = field(default_factory=dict)


@dataclass(frozen=True)
class Quotient:
    """How many times as long one contender takes as another, with its bounds."""

    value: float
    low: float
    high: float

    @property
    def is_known(self) -> bool:
        """Whether there is an interval."""
        return self.low > 0 and math.isfinite(self.high)

    def __str__(self) -> str:
        """The value with its interval, for a table."""
        if self.low == self.high:
            return f"{self.value:.2f}"
        return (
            f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"
            if self.is_known
            else f"{self.value:.2f} (no interval)"
        )


def estimate_of(name: str, summary: Summary, method: Method) -> Estimate:
    """The published side has points only. A fair estimate without an interval could have any value."""
    low = high = point = summary.point_seconds
    if method == "fair":
        low = 0.0 if summary.low_seconds is None else summary.low_seconds
        high = math.inf if summary.high_seconds is None else summary.high_seconds
    arrays = summary.count
    rounds = {k: seconds / arrays for k, seconds in summary.rounds} if method == "fair" else {}
    return Estimate(name, point / arrays, low / arrays, high / arrays, summary.n, rounds)


def quotient(above: Estimate, below: Estimate, looks: Looks, *, shared_rounds: bool = True) -> Quotient:
    """How many times as long `above` takes as `below`: by their rounds if both have them, otherwise by their intervals.

    Without `shared_rounds`, the two were measured at different times, so all trials of one are compared with all of the
    other. A time of zero has no meaningful quotient.
    """
    if above.rounds and below.rounds:
        other = above.rounds if shared_rounds else {-1 - k: seconds for k, seconds in above.rounds.items()}
        ratio = ratio_of(below.rounds, other, looks.level(min(len(above.rounds), len(below.rounds))))
        if ratio is not None:
            low, high = (0.0 if ratio.low is None else ratio.low), (math.inf if ratio.high is None else ratio.high)
            return Quotient(ratio.value, low, high)

    def divided(a: float, b: float) -> float:
        return a / b if b > 0 else math.inf

    return Quotient(divided(above.point, below.point), divided(above.low, below.high), divided(above.high, below.low))

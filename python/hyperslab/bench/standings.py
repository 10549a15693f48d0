"""Who leads a comparison, who may be as fast, who is behind and by how much: decided by rounds that all ran in.

The bench asks while it measures, to give more rounds to what is open, and the report asks afterwards. Both ask here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hyperslab.lab.looks import EARLY_ROUNDS, ROUNDS, Looks
from hyperslab.lab.paired import LEAST_ROUNDS, SHORTEST, Ratio, Rounds, is_far_slower, ratio_of

# Two contenders that certainly differ by less than this factor are as fast as each other.
ALIKE = 1.05
# A contender that certainly takes this many times as long as the leader is one to avoid.
AVOIDED = 2.0
# Rounds are foreseen so that the interval would part with four chances in five: (1.96 + 0.84) standard errors.
ERRORS = 2.8
Place = Literal["leads", "alike", "open", "behind"]
Pair = Callable[[str, str], Ratio | None]  # how many times as long the second one takes as the first


@dataclass(frozen=True)
class Standing:
    """A contender's place in a comparison.

    `alike` is as fast as the leader, `open` may be or may not, `behind` is certainly slower.
    """

    name: str
    place: Place
    ratio: float  # its time / the leader's
    low: float | None
    high: float | None
    rounds: int  # rounds that both were in
    is_far: bool = False  # it stopped early, because it was far slower in each of its trials

    @property
    def is_avoided(self) -> bool:
        """Whether it certainly takes at least twice as long as the leader."""
        return self.place == "behind" and (self.is_far or (self.low or 0) >= AVOIDED)


@dataclass(frozen=True)
class Standings:
    """All contenders of a comparison, the leader first."""

    entries: tuple[Standing, ...]

    @property
    def leader(self) -> str:
        """The contender that leads, surely or not."""
        return self.entries[0].name

    @property
    def leading(self) -> tuple[str, ...]:
        """The leader and all that are not certainly slower."""
        return tuple(entry.name for entry in self.entries if entry.place != "behind")

    @property
    def winner(self) -> str | None:
        """The leader, if all others are certainly slower."""
        return self.leader if len(self.entries) > 1 and len(self.leading) == 1 else None

    @property
    def open(self) -> tuple[str, ...]:
        """The contenders that may or may not be as fast as the leader."""
        return tuple(entry.name for entry in self.entries if entry.place == "open")

    @property
    def is_decided(self) -> bool:
        """Whether every contender is certainly behind the leader or certainly as fast."""
        return len(self.entries) > 1 and not self.open

    @property
    def avoided(self) -> tuple[Standing, ...]:
        """The contenders to avoid, the slowest first."""
        return tuple(sorted((e for e in self.entries if e.is_avoided), key=lambda e: -e.ratio))


def stand(medians: Mapping[str, float], pair: Pair) -> Standings:
    """The standings of contenders with these medians; `pair` compares two of them.

    The leader has the lowest median of those that are not slower than another one in the rounds that both were in.
    """
    ordered = sorted(medians, key=lambda name: (medians[name], name))
    leader = next((name for name in ordered if not _is_beaten(name, ordered, pair)), ordered[0])
    others = [_standing(name, pair(leader, name)) for name in ordered if name != leader]
    first = Standing(leader, "leads", 1.0, 1.0, 1.0, max((other.rounds for other in others), default=0))
    return Standings((first, *others))


def _is_beaten(name: str, others: list[str], pair: Pair) -> bool:
    """Whether another contender is certainly faster or, with too few rounds to be certain, faster by the estimate."""
    return any(
        ratio.value < 1 if ratio.high is None else ratio.high < 1
        for other in others
        if other != name and (ratio := pair(name, other)) is not None
    )


def _standing(name: str, ratio: Ratio | None) -> Standing:
    if ratio is None:
        return Standing(name, "open", float("nan"), None, None, 0)
    place: Place = "behind" if ratio.is_above else "alike" if ratio.is_within(ALIKE) else "open"
    return Standing(name, place, *ratio)


def standings_of(contenders: Mapping[str, Rounds], looks: Looks) -> Standings | None:
    """The standings of contenders by their seconds in each round; None if none of them has any.

    Only the rounds up to the latest look count, so that more looks than planned cannot find more.
    """
    made = max((len(rounds) for rounds in contenders.values()), default=0)
    known = {name: _first(rounds, looks.latest(made)) for name, rounds in contenders.items() if rounds}
    if not known:
        return None

    def pair(first: str, second: str) -> Ratio | None:
        common = len(known[first].keys() & known[second].keys())
        return ratio_of(known[first], known[second], looks.level(common))

    return stand({name: float(np.median(list(rounds.values()))) for name, rounds in known.items()}, pair)


def _first(rounds: Rounds, count: int) -> Rounds:
    return {number: rounds[number] for number in sorted(rounds)[:count]}


def wanting(contenders: Mapping[str, Rounds], looks: Looks) -> set[str]:
    """The contenders that should run in the next round, so that rounds are spent where the decision is open."""
    made = max((len(rounds) for rounds in contenders.values()), default=0)
    if made < EARLY_ROUNDS:
        return set(contenders)
    if made < looks.first:
        return {name for name in contenders if not _is_left_behind(contenders[name], contenders)}
    standings = standings_of(contenders, looks)
    if standings is None:
        return set()
    # Trials are rejected sometimes: who has too few of them is not judged yet, unless it stopped early.
    judged = {entry.name for entry in standings.entries if entry.place != "open"}
    late = {name for name, rounds in contenders.items() if len(rounds) < looks.first and name not in judged}
    return late if not standings.open or looks.next_after(made) is None else {standings.leader, *standings.open, *late}


def _is_left_behind(rounds: Rounds, contenders: Mapping[str, Rounds]) -> bool:
    if len(rounds) < EARLY_ROUNDS:
        return False
    return any(len(other) >= EARLY_ROUNDS and is_far_slower(rounds, other) for other in contenders.values())


def rounds_to_decide(first: Rounds, second: Rounds, planned: Sequence[int] = ROUNDS) -> int | None:
    """How many rounds would probably decide a pair: told apart, or as fast as each other.

    One of the `planned` numbers of rounds, and the first one if there are too few rounds to say. None if even the most
    are too few.
    """
    common = sorted(first.keys() & second.keys())
    if len(common) < 2:
        return planned[0]
    within = np.log([max(second[k], SHORTEST) / max(first[k], SHORTEST) for k in common])
    middle = abs(float(np.median(within)))
    spread = max(float(np.std(within, ddof=1)), 1e-4)
    # The nearer of both ways out: away from no difference, or into the margin.
    distance = max(middle, float(np.log(ALIKE)) - middle)
    needed = max(LEAST_ROUNDS, math.ceil((ERRORS * spread / distance) ** 2), len(common) + 1)
    return next((count for count in planned if count >= needed), None)

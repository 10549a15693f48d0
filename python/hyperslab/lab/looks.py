"""After how many rounds a decision is looked at, and how sure each look must be so that all of them together are 95 %.

Whoever looks again and again, and stops once a difference shows, finds one sooner or later. So the first look may be
wrong with 3.5 %, and each of the later ones with 0.3 %. A single look may be wrong with 5 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from hyperslab.lab.paired import LEAST_ROUNDS

ALL = 0.05
FIRST, LATER = 0.035, 0.003
ROUNDS = (LEAST_ROUNDS, 10, 15, 22, 33, 50)
MOST_ROUNDS = ROUNDS[-1]
# A contender stops before the first look if it was far slower in each of this many rounds.
EARLY_ROUNDS = 3


@dataclass(frozen=True)
class Looks:
    """The looks at the comparisons of a run: the first one after `first` rounds, the last one after `most`."""

    first: int
    most: int

    @property
    def rounds(self) -> tuple[int, ...]:
        """The numbers of rounds after which there is a look."""
        later = [count for count in ROUNDS if self.first < count <= self.most]
        return (self.first, *later)

    def latest(self, made: int) -> int:
        """The look that these rounds allow: the number of rounds that it may use."""
        done = list(takewhile(lambda count: count <= made, self.rounds))
        return done[-1] if done else made

    def next_after(self, made: int) -> int | None:
        """The number of rounds of the next look; None after the last one."""
        return next((count for count in self.rounds if count > made), None)

    def level(self, made: int) -> float:
        """The probability that an interval from this many rounds may miss."""
        if len(self.rounds) == 1:
            return ALL
        return FIRST if made < self.rounds[1] else LATER


def one_look(rounds: int) -> Looks:
    """A single look, after all rounds."""
    return Looks(rounds, rounds)

"""Verdicts as sentences: what holds in how many cases, and what the other cases say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from math import comb
from typing import Literal

Finding = Literal["supports", "contradicts", "undecided"]
Word = Literal["holds", "reverses", "depends", "undecided"]
TALLY: dict[Finding, str] = {"supports": "support it", "contradicts": "contradict it", "undecided": "are undecided"}
# A case is decided wrongly in one direction, and so many of all cases by chance, with at most these probabilities.
WRONG, MOST_CHANCE = 0.025, 0.05
UP_TO = "{up to}"  # in the words of a difference, where a sentence about several cases says "up to"
Case = tuple[Finding, str, float]  # the finding, the difference that it rests on in words, and its size as a factor


def word_of(outcomes: Sequence[Finding], published: bool = False) -> Word:
    """The verdict from the findings of all cases.

    Of many cases, a few seem decided by chance. So a finding counts if chance alone would hardly bring as many. A
    published study compared points, without chance.
    """
    counted = Counter(outcomes)
    least = 1 if published else least_decided(len(outcomes))
    supported, contradicted = counted["supports"] >= least, counted["contradicts"] >= least
    if supported and contradicted:
        return "depends"
    return "holds" if supported else "reverses" if contradicted else "undecided"


@cache
def least_decided(cases: int) -> int:
    """How many of so many cases must be decided in one direction, so that chance is not the likely reason."""
    least = 1
    while _chance_of(least, cases) > MOST_CHANCE:
        least += 1
    return least


def _chance_of(least: int, cases: int) -> float:
    """The probability that at least so many of the cases are decided wrongly."""
    return 1 - sum(comb(cases, k) * WRONG**k * (1 - WRONG) ** (cases - k) for k in range(least))


def tally(outcomes: Sequence[Finding]) -> str:
    """How many cases support, contradict and are undecided."""
    counted = Counter(outcomes)
    words = [f"{counted[finding]} {text}" for finding, text in TALLY.items() if counted[finding]]
    return f"of {len(outcomes)} cases: {', '.join(words)}"


def sentence(claim: str, cases: Sequence[Case]) -> str:
    """What the cases say of a claim, as the rest of a sentence that begins with the verdict."""
    by_finding: dict[Finding, list[Case]] = {
        finding: [case for case in cases if case[0] == finding] for finding in TALLY
    }
    word = word_of([case[0] for case in cases])
    yes, no, unknown = by_finding["supports"], by_finding["contradicts"], by_finding["undecided"]
    against = f"; the opposite in {len(no)}: {_largest(no)}" if no else ""
    favour = f"; as claimed in {len(yes)}: {_largest(yes)}" if yes else ""
    rest = f"; {_undecided(unknown)}" if unknown else ""
    if word in ("holds", "depends"):
        return f"{claim}{_of(yes, cases)} ({_largest(yes)}){against}{rest}"
    if word == "reverses":
        return f"it is not so that {claim}{_of(no, cases)}: {_largest(no)}{favour}{rest}"
    if yes or no:
        return f"whether {claim}{favour}{against}{rest}. Chance alone may decide so few cases"
    _, difference, _ = max(unknown, key=lambda case: case[2])
    where = "" if len(unknown) == 1 else f" in one of {len(unknown)} cases"
    return f"whether {claim}: {difference.replace(UP_TO, '')}{where}"


def _of(some: Sequence[Case], cases: Sequence[Case]) -> str:
    if len(cases) == 1:
        return ""
    if len(some) == len(cases):
        return " in both cases" if len(cases) == 2 else f" in all {len(cases)} cases"
    return f" in {len(some)} of {len(cases)} cases"


def _undecided(cases: Sequence[Case]) -> str:
    """The undecided cases, with the one whose difference is the largest."""
    _, difference, _ = max(cases, key=lambda case: case[2])
    example = difference.replace(UP_TO, "")
    return f"undecided: {example}" if len(cases) == 1 else f"{len(cases)} undecided, in one of which {example}"


def _largest(cases: Sequence[Case]) -> str:
    """The largest difference among some cases; "up to" says that there are smaller ones."""
    _, difference, _ = max(cases, key=lambda case: case[2])
    return difference.replace(UP_TO, "" if len(cases) == 1 else "up to ")


def factor_text(value: float) -> str:
    """A factor with three significant digits, without an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def reach_text(low: float, high: float) -> str:
    """An interval of factors with two significant digits."""
    return " to ".join(f"{end:,.0f}" if end >= 10 else f"{end:.2g}" for end in (low, high))

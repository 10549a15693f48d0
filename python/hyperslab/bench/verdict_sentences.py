"""Verdicts as sentences: what holds in how many cases, and what the other cases say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

Finding = Literal["supports", "contradicts", "undecided"]
Word = Literal["holds", "reverses", "depends", "undecided"]
TALLY: dict[Finding, str] = {"supports": "support it", "contradicts": "contradict it", "undecided": "are undecided"}
Case = tuple[Finding, str, float]  # the finding, the difference that it rests on in words, and its size as a factor


def word_of(outcomes: Sequence[Finding]) -> Word:
    """The verdict from the findings of all cases."""
    decided = set(outcomes) - {"undecided"}
    if len(decided) == 2:
        return "depends"
    return "holds" if "supports" in decided else "reverses" if "contradicts" in decided else "undecided"


def tally(outcomes: Sequence[Finding]) -> str:
    """How many cases support, contradict and are undecided."""
    counted = Counter(outcomes)
    words = [f"{counted[finding]} {text}" for finding, text in TALLY.items() if counted[finding]]
    return f"of {len(outcomes)} cases: {', '.join(words)}"


def sentence(claim: str, cases: Sequence[Case]) -> str:
    """What the cases say of a claim, as the rest of a sentence that begins with the verdict."""
    found: dict[Finding, list[Case]] = {finding: [case for case in cases if case[0] == finding] for finding in TALLY}
    word = word_of([case[0] for case in cases])
    yes, no, unknown = found["supports"], found["contradicts"], found["undecided"]
    rest = f"; {_count(unknown)} undecided: {_largest(unknown)}" if unknown else ""
    if word == "holds":
        return f"{claim}{_of(yes, cases)} ({_largest(yes)}){rest}"
    if word == "reverses":
        return f"it is not so that {_lowered(claim)}{_of(no, cases)}: {_largest(no)}{rest}"
    if word == "depends":
        return f"{claim}{_of(yes, cases)} ({_largest(yes)}), but not in {len(no)}: {_largest(no)}{rest}"
    return f"whether {_lowered(claim)}: {_largest(unknown)}" + ("" if len(cases) == 1 else f", in {len(cases)} cases")


def _of(some: Sequence[Case], cases: Sequence[Case]) -> str:
    if len(cases) == 1:
        return ""
    return f" in all {len(cases)} cases" if len(some) == len(cases) else f" in {len(some)} of {len(cases)} cases"


def _count(cases: Sequence[Case]) -> str:
    return "one is" if len(cases) == 1 else f"{len(cases)} are"


def _largest(cases: Sequence[Case]) -> str:
    """The largest difference among some cases; "at most" says that there are smaller ones."""
    _, difference, _ = max(cases, key=lambda case: case[2])
    return difference if len(cases) == 1 else f"{difference} at most"


def _lowered(claim: str) -> str:
    """A claim within a sentence. Names of formats keep their capitals."""
    first, _, rest = claim.partition(" ")
    return claim if first != first.capitalize() or first in {"Zarr"} else f"{first.lower()} {rest}"

"""One recommendation for a whole workload: the format and conditions that take the least time over all its operations.

Every operation counts the same: the geometric mean of the seconds of all operations is compared, round by round. Only
candidates that did every operation take part. Bare bytes (`raw`) keep neither shape nor dtype: they are the floor
that candidates are compared with, and never recommended.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hyperslab.bench.rankings import DEFAULT_LOOKS, Ranking
from hyperslab.bench.records import Summary
from hyperslab.bench.standings import Standing, Standings, rounds_to_decide, stand
from hyperslab.lab.looks import Looks
from hyperslab.lab.paired import LEAST_ROUNDS, SHORTEST, Ratio, Rounds, chance_of, ratio_of

FLOOR = "raw"
Candidate = tuple[str, str]  # format, conditions
Confidence = Literal["clear", "shared", "open", "first impression", "alone"]


@dataclass(frozen=True)
class Recommendation:
    """What to use for the operations of one case, and how sure that is.

    `clear`: all others are certainly slower. `shared`: those that lead are certainly as fast as each other. `open`: the
    rounds do not tell yet. `first impression`: there are too few rounds to tell anything. `alone`: there is no other
    candidate.
    """

    case: str
    method: str
    shape: str
    count: int
    operations: tuple[str, ...]  # with cache state and processes
    candidates: tuple[Candidate, ...]  # in the order of `standings`
    standings: tuple[Standing, ...]
    confidence: Confidence
    rounds: int
    chance: float  # that one of two equal candidates would be ahead in all of these rounds
    floor: float | None  # the time of bare bytes / the recommended candidate's
    more_seconds: float | None  # that would probably decide it; None if it is decided, or if too many would be needed
    left_out: tuple[str, ...]  # formats that could not do every operation

    @property
    def judged(self) -> Standings:
        """The places of the candidates."""
        return Standings(self.standings)

    @property
    def recommended(self) -> Candidate:
        """The format and the conditions to use."""
        return self.candidates[0]

    def candidate(self, standing: Standing) -> Candidate:
        """The candidate of a standing."""
        return self.candidates[self.standings.index(standing)]


def recommend(rankings: Iterable[Ranking], looks: Looks = DEFAULT_LOOKS) -> list[Recommendation]:
    """One recommendation for each case, from the comparisons of its largest arrays."""
    cases: dict[tuple[str, str], list[Ranking]] = defaultdict(list)
    for ranking in rankings:
        cases[ranking.case, ranking.method].append(ranking)
    made = [_recommendation(own, looks) for own in cases.values()]
    return [each for each in made if each is not None]


def _size(ranking: Ranking) -> tuple[int, int]:
    return math.prod(int(length) for length in ranking.shape.split("x")) * ranking.count, ranking.count


def _recommendation(rankings: list[Ranking], looks: Looks) -> Recommendation | None:
    largest = max(map(_size, rankings))
    rankings = [ranking for ranking in rankings if _size(ranking) == largest]
    cells: dict[Candidate, dict[str, Summary]] = defaultdict(dict)
    for ranking in rankings:
        for entry in ranking.entries:
            cells[entry.format, ranking.conditions][_operation(ranking)] = entry
    operations = tuple(dict.fromkeys(map(_operation, rankings)))
    complete = {candidate: own for candidate, own in cells.items() if len(own) == len(operations)}
    floors = [own for (name, _), own in complete.items() if name == FLOOR]
    candidates = {candidate: own for candidate, own in complete.items() if candidate[0] != FLOOR}
    if not candidates:
        return None
    workloads = {_key(candidate): _Workload(tuple(own.values())) for candidate, own in candidates.items()}

    def pair(first: str, second: str) -> Ratio | None:
        return _compared(workloads[first], workloads[second], looks)

    judged = stand({name: workload.median for name, workload in workloads.items()}, pair)
    by_key = {_key(candidate): candidate for candidate in candidates}
    together = [standing.rounds for standing in judged.entries[1:]]
    made = max(together, default=len(workloads[judged.leader].rounds))
    floor = min((_Workload(tuple(own.values())).median for own in floors), default=None)
    first = rankings[0]
    return Recommendation(
        case=first.case,
        method=first.method,
        shape=first.shape,
        count=first.count,
        operations=operations,
        candidates=tuple(by_key[standing.name] for standing in judged.entries),
        standings=judged.entries,
        confidence=_confidence(judged),
        rounds=made,
        chance=chance_of(made),
        floor=None if floor is None else floor / workloads[judged.leader].median,
        more_seconds=_more_seconds(judged, workloads),
        left_out=tuple(sorted({name for name, _ in cells} - {name for name, _ in complete})),
    )


def _key(candidate: Candidate) -> str:
    return "|".join(candidate)


def _operation(ranking: Ranking) -> str:
    processes = f", {ranking.processes} processes" if ranking.processes > 1 else ""
    return f"{ranking.operation}, {ranking.cache}{processes}"


@dataclass(frozen=True)
class _Workload:
    """A candidate's cells, one for each operation."""

    cells: tuple[Summary, ...]

    @property
    def median(self) -> float:
        """The geometric mean of the medians of all operations, in seconds."""
        return math.exp(float(np.mean([_log(cell.median_seconds) for cell in self.cells])))

    @property
    def rounds(self) -> set[int]:
        """The rounds that most operations were in: some stop early, far behind, and some trials are rejected."""
        most = max(len(cell.rounds) for cell in self.cells)
        full = [{number for number, _ in cell.rounds} for cell in self.cells if len(cell.rounds) > most / 2]
        known = set.union(*full)
        return {number for number in known if 2 * sum(number in each for each in full) >= len(full)} or known

    def seconds(self, rounds: set[int], *, slowest: bool) -> Rounds:
        """The geometric mean in each round. Where an operation stopped early, its slowest or fastest trial counts."""
        kept = []
        for cell in self.cells:
            known = dict(cell.rounds)
            instead = (max if slowest else min)(known.values())
            kept.append([_log(known.get(number, instead)) for number in sorted(rounds)])
        return dict(zip(sorted(rounds), np.exp(np.mean(kept, axis=0)).tolist(), strict=True))


def _log(seconds: float) -> float:
    return math.log(max(seconds, SHORTEST))


def _compared(first: _Workload, second: _Workload, looks: Looks) -> Ratio | None:
    """How many times as long the second one takes. Missing trials count against the claim that it takes longer, and
    against the claim that it takes less.
    """
    common = first.rounds & second.rounds
    # If one of them stopped early in all operations, all of its rounds are compared with all of the other's.
    own = (common, common) if len(common) >= LEAST_ROUNDS else (first.rounds, second.rounds)
    mine, theirs = (set(sorted(one)[: looks.latest(len(one))]) for one in own)
    level = looks.level(len(common))
    low = ratio_of(first.seconds(mine, slowest=True), second.seconds(theirs, slowest=False), level)
    high = ratio_of(first.seconds(mine, slowest=False), second.seconds(theirs, slowest=True), level)
    if low is None or high is None:
        return None
    return Ratio(second.median / first.median, low.low, high.high, len(common), low.is_far)


def _confidence(judged: Standings) -> Confidence:
    if len(judged.entries) == 1:
        return "alone"
    if judged.open and all(entry.low is None for entry in judged.entries[1:]):
        return "first impression"
    return "open" if judged.open else "clear" if judged.winner else "shared"


def _more_seconds(judged: Standings, workloads: Mapping[str, _Workload]) -> float | None:
    """The timed seconds that would probably decide what is open; None if nothing is, or if it takes too many rounds."""
    if not judged.open:
        return None
    leader = workloads[judged.leader]
    total = 0.0
    for name in judged.open:
        other = workloads[name]
        common = leader.rounds & other.rounds
        needed = rounds_to_decide(leader.seconds(common, slowest=False), other.seconds(common, slowest=False))
        if needed is None:
            return None
        each = sum(cell.median_seconds for workload in (leader, other) for cell in workload.cells)
        total += each * (needed - len(common))
    return total

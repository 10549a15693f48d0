"""Judge each published conclusion on this machine, by the study's own method and by a fair one.

A conclusion is judged in every group of measurements that differ only in what the conclusion compares. On the published
side, point estimates are compared, as the studies did. On the fair side, something is decided only if the 95 %
intervals do not overlap. The verdict is that of the fair side: it `holds` if all decided groups support it, it
`reverses` if all of them contradict it, and otherwise it is `undecided`.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Literal

from hyperslab.bench.conclusions import Axis, Conclusion, Effect, Extreme, Order, Ratio, Within, formats_of
from hyperslab.bench.records import Method, Summary, Verdict

Finding = Literal["supports", "contradicts", "undecided"]
Word = Literal["holds", "reverses", "undecided"]
WORDS: dict[Finding, Word] = {"supports": "holds", "contradicts": "reverses", "undecided": "undecided"}
# How far outside a published range around 1 a ratio may lie and still count as alike.
LIKENESS = 0.1


@dataclass(frozen=True)
class Estimate:
    """One contender's seconds per array, with their interval."""

    name: str
    point: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Setting:
    """What all contenders of a group have in common. A field is None if the contenders differ in it."""

    case: str | None
    format: str | None
    conditions: str | None
    operation: str | None
    count: int | None
    shape: str
    cache: str
    processes: int

    @property
    def size(self) -> float:
        """The number of elements in all arrays, to find the largest group."""
        return math.prod(int(length) for length in self.shape.split("x")) * (self.count or 1)

    def __str__(self) -> str:
        count = f"{self.count} × " if self.count and self.count > 1 else ""
        processes = f"{self.processes} processes" if self.processes > 1 else None
        words = [self.case, self.format, self.operation, count + self.shape, self.conditions, self.cache, processes]
        return ", ".join(word for word in words if word)


@dataclass(frozen=True)
class Judged:
    """The finding of one group, with its figures."""

    setting: Setting
    outcome: Finding
    figures: str


Contenders = Mapping[str, Estimate]


def judge(conclusions: Iterable[Conclusion], summaries: Sequence[Summary]) -> list[Verdict]:
    """Verdicts on all conclusions whose study was run, in order. Other conclusions are left out."""
    return [
        _verdict(conclusion, own)
        for conclusion in conclusions
        if (own := [summary for summary in summaries if _is_case_of(summary, conclusion)])
    ]


def _is_case_of(summary: Summary, conclusion: Conclusion) -> bool:
    return any(fnmatchcase(summary.case, glob) for glob in conclusion.cases)


def _verdict(conclusion: Conclusion, summaries: Sequence[Summary]) -> Verdict:
    published, fair = (_judge_side(conclusion, summaries, method) for method in ("published", "fair"))
    return Verdict(
        id=conclusion.id,
        study=conclusion.study,
        conclusion=conclusion.conclusion,
        published=f"{conclusion.published} ({conclusion.source})",
        by_published_method=_told(published),
        by_fair_method=_told(fair),
        verdict=_word(fair),
        reason=_reason(fair),
    )


def _judge_side(conclusion: Conclusion, summaries: Sequence[Summary], method: Method) -> list[Judged]:
    groups: dict[Setting, dict[str, Estimate]] = defaultdict(dict)
    axis = _axis(conclusion)
    for summary in summaries:
        if _is_asked(summary, conclusion, method):
            groups[_setting(summary, axis)][_contender(summary, axis)] = _estimate(summary, axis, method)
    found = [
        Judged(setting, *judged)
        for setting, contenders in groups.items()
        if (judged := _judge_group(conclusion, contenders))
    ]
    if conclusion.counts == "largest":
        most = max((judged.setting.count or 0 for judged in found), default=0)
        found = [judged for judged in found if judged.setting.count == most]
    return found


def _is_asked(summary: Summary, conclusion: Conclusion, method: Method) -> bool:
    claim = conclusion.claim
    operations = conclusion.operations
    if method == "fair" and conclusion.fair_operations is not None:
        operations = conclusion.fair_operations
    if isinstance(claim, Effect) and claim.axis == "operation":
        operations = [claim.of, claim.against]
    named = formats_of(claim) or conclusion.formats
    asked = summary.method == method and summary.metric == getattr(conclusion.metrics, method)
    asked = asked and summary.operation.partition("(")[0] in operations
    asked = asked and (not named or summary.format in named)
    if method == "published" or not asked:
        return asked
    return (conclusion.conditions is None or summary.conditions in conclusion.conditions) and (
        conclusion.caches is None or summary.cache in conclusion.caches
    )


def _axis(conclusion: Conclusion) -> Axis:
    return conclusion.claim.axis if isinstance(conclusion.claim, Effect) else "format"


def _setting(summary: Summary, axis: Axis) -> Setting:
    return Setting(
        case=None if axis == "count" else summary.case,  # cases may differ only in their number of arrays
        format=None if axis == "format" else summary.format,
        conditions=None if axis == "conditions" else summary.conditions,
        operation=None if axis == "operation" else summary.operation,
        count=None if axis == "count" else summary.count,
        shape=summary.shape,
        cache=summary.cache,
        processes=summary.processes,
    )


def _contender(summary: Summary, axis: Axis) -> str:
    return summary.operation.partition("(")[0] if axis == "operation" else str(getattr(summary, axis))


def _estimate(summary: Summary, axis: Axis, method: Method) -> Estimate:
    """The published side has points only. A fair estimate without an interval could have any value."""
    low = high = summary.point_seconds
    if method == "fair":
        low = 0.0 if summary.low_seconds is None else summary.low_seconds
        high = math.inf if summary.high_seconds is None else summary.high_seconds
    arrays = summary.count
    point = summary.point_seconds
    return Estimate(_contender(summary, axis), point / arrays, low / arrays, high / arrays, summary.n)


def _judge_group(conclusion: Conclusion, contenders: Contenders) -> tuple[Finding, str] | None:
    """The finding and the figures in words. None if the group lacks something that is compared."""
    claim = conclusion.claim
    if isinstance(claim, Extreme):
        return _judge_extreme(claim, contenders)
    if isinstance(claim, Order):
        return _judge_order(claim, contenders)
    if isinstance(claim, Ratio):
        return _judge_ratio(claim, contenders)
    if isinstance(claim, Within):
        return _judge_within(claim, contenders)
    return _judge_effect(claim, contenders)


def _judge_extreme(claim: Extreme, contenders: Contenders) -> tuple[Finding, str] | None:
    if claim.format not in contenders or len(contenders) < 2:
        return None
    own = contenders[claim.format]
    others = [estimate for name, estimate in contenders.items() if name != claim.format]
    if claim.kind == "fastest":
        behind, ahead = [own.high < other.low for other in others], [other.high < own.low for other in others]
    else:
        behind, ahead = [own.low > other.high for other in others], [other.low > own.high for other in others]
    complete = len(contenders) == len(claim.among)
    missing = "" if complete else f"; without {', '.join(sorted(set(claim.among) - set(contenders)))}"
    outcome: Finding = "contradicts" if any(ahead) else "supports" if complete and all(behind) else "undecided"
    return outcome, _in_line(contenders) + missing


def _judge_order(claim: Order, contenders: Contenders) -> tuple[Finding, str] | None:
    present = [contenders[name] for name in claim.order if name in contenders]
    if len(present) < 2:
        return None
    pairs = [(first, second) for i, first in enumerate(present) for second in present[i + 1 :]]
    outcome: Finding = "undecided"
    if any(second.high < first.low for first, second in pairs):
        outcome = "contradicts"
    elif len(present) == len(claim.order) and all(first.high < second.low for first, second in pairs):
        outcome = "supports"
    return outcome, _in_line(contenders)


def _judge_ratio(claim: Ratio, contenders: Contenders) -> tuple[Finding, str] | None:
    if claim.numerator not in contenders or claim.denominator not in contenders:
        return None
    fast, slow = contenders[claim.numerator], contenders[claim.denominator]
    point, low, high = _quotient(slow, fast)  # a ratio of speeds is the inverse ratio of times
    within = claim.low <= point <= (claim.high or math.inf)
    where = f"{'inside' if within else 'outside'} the published range"
    figures = f"{claim.numerator}/{claim.denominator} {point:.2f}{_interval(low, high)}, {where}"
    return _ratio_outcome(claim, low, high), f"{figures} (n={min(fast.n, slow.n)})"


def _ratio_outcome(claim: Ratio, low: float, high: float) -> Finding:
    if claim.high is None:
        return _side(low, high, claim.low)
    if claim.claims_likeness:
        floor, ceiling = claim.low * (1 - LIKENESS), claim.high * (1 + LIKENESS)
        if not _is_known(low, high):
            return "undecided"
        return "supports" if high >= floor and low <= ceiling else "contradicts"
    above = _side(low, high, 1.0)
    return above if claim.low > 1 else _opposite(above)


def _judge_within(claim: Within, contenders: Contenders) -> tuple[Finding, str] | None:
    if claim.format not in contenders:
        return None
    found = contenders[claim.format]
    outcome = _opposite(_side(found.low, found.high, claim.seconds))
    return outcome, f"{claim.format} {_seconds(found.point)}, claimed at most {claim.seconds:g} s (n={found.n})"


def _judge_effect(claim: Effect, contenders: Contenders) -> tuple[Finding, str] | None:
    of, against = claim.of, claim.against
    if claim.axis == "count":
        of, against = max(contenders, key=int), min(contenders, key=int)
    if of == against or of not in contenders or against not in contenders:
        return None
    point, low, high = _quotient(contenders[of], contenders[against])
    outcome = _effect_outcome(claim, low, high)
    names = (f"{of} arrays", f"{against} arrays") if claim.axis == "count" else (of, against)
    seconds = (_seconds(contenders[of].point), _seconds(contenders[against].point))
    n = min(contenders[of].n, contenders[against].n)
    figures = f"{names[0]} {seconds[0]} against {names[1]} {seconds[1]}: {point:.2f} times{_interval(low, high)}"
    return outcome, f"{figures} (n={n})"


def _effect_outcome(claim: Effect, low: float, high: float) -> Finding:
    """Slower, no effect and faster divide all quotients among them, so that no two findings can hold at once."""
    slower, faster = 1 + claim.tolerance, 1 / (1 + claim.tolerance)
    if claim.expected == "slower":
        return _side(low, high, slower)
    if claim.expected == "faster":
        return _opposite(_side(low, high, faster))
    if faster <= low and high <= slower:
        return "supports"
    return "contradicts" if low > slower or high < faster else "undecided"


def _quotient(above: Estimate, below: Estimate) -> tuple[float, float, float]:
    """The quotient of two times with its bounds. A time of zero has no meaningful quotient."""

    def divided(a: float, b: float) -> float:
        return a / b if b > 0 else math.inf

    return divided(above.point, below.point), divided(above.low, below.high), divided(above.high, below.low)


def _side(low: float, high: float, bound: float) -> Finding:
    return "supports" if low > bound else "contradicts" if high < bound else "undecided"


def _opposite(outcome: Finding) -> Finding:
    turned: dict[Finding, Finding] = {"supports": "contradicts", "contradicts": "supports"}
    return turned.get(outcome, outcome)


def _is_known(low: float, high: float) -> bool:
    return low > 0 and math.isfinite(high)


def _in_line(contenders: Contenders) -> str:
    """From fastest to slowest: < if the intervals do not overlap, ≈ if they do."""
    ordered = sorted(contenders.values(), key=lambda estimate: estimate.point)
    words = [f"{ordered[0].name} {_seconds(ordered[0].point)}"]
    for before, estimate in pairwise(ordered):
        words.append(f"{'<' if before.high < estimate.low else '≈'} {estimate.name} {_seconds(estimate.point)}")
    return f"{' '.join(words)} (n={min(estimate.n for estimate in ordered)})"


def _interval(low: float, high: float) -> str:
    if low == high:
        return ""
    return f" [{low:.2f}, {high:.2f}]" if _is_known(low, high) else " (no interval)"


def _seconds(value: float) -> str:
    """Seconds per array in a readable unit."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def _word(judged: Sequence[Judged]) -> Word:
    decided = {one.outcome for one in judged} - {"undecided"}
    return WORDS[decided.pop()] if len(decided) == 1 else "undecided"


def _told(judged: Sequence[Judged]) -> str:
    """The finding, and the figures of the largest group."""
    if not judged:
        return "not run"
    largest = max(judged, key=lambda one: one.setting.size)
    figures = f"{largest.figures}; {largest.setting}"
    if len(judged) == 1:
        return f"{_word(judged)}: {figures}"
    return f"{_word(judged)} ({_tally(judged)}); largest: {figures}"


def _tally(judged: Sequence[Judged]) -> str:
    counted = Counter(one.outcome for one in judged)
    words = [f"{counted[outcome]} {outcome.rstrip('s')}" for outcome in WORDS if counted[outcome]]
    return f"of {len(judged)} groups: {', '.join(words)}"


def _reason(judged: Sequence[Judged]) -> str:
    if not judged:
        return "the fair method did not measure everything that the conclusion compares"
    counted = Counter(one.outcome for one in judged)
    if counted["supports"] and counted["contradicts"]:
        return f"groups disagree: {_tally(judged)}"
    if len(judged) == counted["undecided"]:
        return f"intervals overlap or need more trials, or something to compare is missing: {_tally(judged)}"
    return _tally(judged)

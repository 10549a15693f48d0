"""Judge each published conclusion on this machine, by the study's own method and by a fair one.

A conclusion is judged in every group of measurements that differ only in what the conclusion compares. On the published
side, point estimates are compared, as the studies did. On the fair side, contenders are compared round by round, and
something is decided only if the 95 % interval of their quotient says so. The verdict is that of the fair side: it
`holds` if decided groups support it, it `reverses` if decided groups contradict it, it `depends` if there are groups of
both kinds, and otherwise it is `undecided`. Groups only count if there are more of them than chance would bring.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise

from hyperslab.bench.conclusions import Axis, Conclusion, Effect, Extreme, Order, Ratio, Within, formats_of
from hyperslab.bench.estimates import Estimate, Quotient, estimate_of, quotient
from hyperslab.bench.rankings import DEFAULT_LOOKS
from hyperslab.bench.records import Method, Summary
from hyperslab.bench.verdict_sentences import UP_TO, Finding, factor_text, reach_text, sentence, tally, word_of
from hyperslab.lab.looks import Looks
from hyperslab.lab.verdict import Verdict

# How far outside a published range around 1 a ratio may lie and still count as alike.
LIKENESS = 0.1


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
    """The finding of one group, with its figures, and the difference that it rests on in words."""

    setting: Setting
    outcome: Finding
    figures: str
    difference: str = ""
    size: float = 1.0  # of the difference, as a factor, to find the largest


Contenders = Mapping[str, Estimate]


def judge(
    conclusions: Iterable[Conclusion], summaries: Sequence[Summary], looks: Looks = DEFAULT_LOOKS
) -> list[Verdict]:
    """Verdicts on all conclusions whose study was run, in order. Other conclusions are left out."""
    return [
        _verdict(conclusion, own, looks)
        for conclusion in conclusions
        if (own := [summary for summary in summaries if _is_case_of(summary, conclusion)])
    ]


def _is_case_of(summary: Summary, conclusion: Conclusion) -> bool:
    return any(fnmatchcase(summary.case, glob) for glob in conclusion.cases)


def _verdict(conclusion: Conclusion, summaries: Sequence[Summary], looks: Looks) -> Verdict:
    published, fair = (_judge_side(conclusion, summaries, method, looks) for method in ("published", "fair"))
    return Verdict(
        id=conclusion.id,
        study=conclusion.study,
        conclusion=conclusion.conclusion,
        published=f"{conclusion.published} ({conclusion.source})",
        by_published_method=_told(published, published=True),
        by_fair_method=_told(fair),
        verdict=word_of([one.outcome for one in fair]),
        reason=_reason(conclusion, fair),
    )


def _judge_side(conclusion: Conclusion, summaries: Sequence[Summary], method: Method, looks: Looks) -> list[Judged]:
    groups: dict[Setting, dict[str, Estimate]] = defaultdict(dict)
    axis = _axis(conclusion)
    for summary in summaries:
        if _is_asked(summary, conclusion, method):
            name = _contender(summary, axis)
            groups[_setting(summary, axis)][name] = estimate_of(name, summary, method)
    chosen = [
        Judged(setting, *judged)
        for setting, contenders in groups.items()
        if (judged := _judge_group(conclusion, contenders, looks))
    ]
    if conclusion.counts == "largest":
        most = max((judged.setting.count or 0 for judged in chosen), default=0)
        chosen = [judged for judged in chosen if judged.setting.count == most]
    return chosen


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


Found = tuple[Finding, str, str, float]


def _judge_group(conclusion: Conclusion, contenders: Contenders, looks: Looks) -> Found | None:
    """The finding, the figures, and the difference in words and as a factor. None if the group lacks something that is
    compared.
    """
    claim = conclusion.claim
    if isinstance(claim, Extreme):
        return _judge_extreme(claim, contenders, looks)
    if isinstance(claim, Order):
        return _judge_order(claim, contenders, looks)
    if isinstance(claim, Ratio):
        return _judge_ratio(claim, contenders, looks)
    if isinstance(claim, Within):
        return _judge_within(claim, contenders)
    return _judge_effect(claim, contenders, looks)


def _judge_extreme(claim: Extreme, contenders: Contenders, looks: Looks) -> Found | None:
    if claim.format not in contenders or len(contenders) < 2:
        return None
    own = contenders[claim.format]
    others = [estimate for name, estimate in contenders.items() if name != claim.format]
    times = {other.name: quotient(other, own, looks) for other in others}  # above 1: the others are slower
    if claim.kind == "slowest":
        times = {other.name: quotient(own, other, looks) for other in others}
    rival = min(times, key=lambda name: times[name].value)
    behind, ahead = [q.low > 1 for q in times.values()], [q.high < 1 for q in times.values()]
    complete = len(contenders) == len(claim.among)
    missing = "" if complete else f"; without {', '.join(sorted(set(claim.among) - set(contenders)))}"
    outcome: Finding = "contradicts" if any(ahead) else "supports" if complete and all(behind) else "undecided"
    pair = (claim.format, rival) if claim.kind == "fastest" else (rival, claim.format)
    difference, size = _difference(*pair, times[rival])
    return outcome, _in_line(contenders, looks) + missing, difference, size


def _judge_order(claim: Order, contenders: Contenders, looks: Looks) -> Found | None:
    present = [contenders[name] for name in claim.order if name in contenders]
    if len(present) < 2:
        return None
    pairs = {
        (first.name, second.name): quotient(second, first, looks)
        for i, first in enumerate(present)
        for second in present[i + 1 :]
    }
    outcome: Finding = "undecided"
    if any(q.high < 1 for q in pairs.values()):
        outcome = "contradicts"
    elif len(present) == len(claim.order) and all(q.low > 1 for q in pairs.values()):
        outcome = "supports"
    nearest = min(pairs, key=lambda pair: pairs[pair].value)
    return outcome, _in_line(contenders, looks), *_difference(*nearest, pairs[nearest])


def _judge_ratio(claim: Ratio, contenders: Contenders, looks: Looks) -> Found | None:
    if claim.numerator not in contenders or claim.denominator not in contenders:
        return None
    fast, slow = contenders[claim.numerator], contenders[claim.denominator]
    ratio = quotient(slow, fast, looks)  # a ratio of speeds is the inverse ratio of times
    within = claim.low <= ratio.value <= (claim.high or math.inf)
    where = f"{'inside' if within else 'outside'} the published range"
    figures = f"{claim.numerator}/{claim.denominator} {ratio}, {where} (n={min(fast.n, slow.n)})"
    return _ratio_outcome(claim, ratio), figures, *_difference(claim.numerator, claim.denominator, ratio)


def _ratio_outcome(claim: Ratio, ratio: Quotient) -> Finding:
    if claim.high is None:
        return _side(ratio, claim.low)
    if claim.claims_likeness:
        floor, ceiling = claim.low * (1 - LIKENESS), claim.high * (1 + LIKENESS)
        if floor <= ratio.low and ratio.high <= ceiling:
            return "supports"
        return "contradicts" if ratio.high < floor or ratio.low > ceiling else "undecided"
    above = _side(ratio, 1.0)
    return above if claim.low > 1 else _opposite(above)


def _judge_within(claim: Within, contenders: Contenders) -> Found | None:
    if claim.format not in contenders:
        return None
    judged = contenders[claim.format]
    outcome = _opposite(_side(Quotient(judged.point, judged.low, judged.high), claim.seconds))
    took = f"{claim.format} takes {UP_TO}{_seconds(judged.point)}"
    figures = f"{claim.format} {_seconds(judged.point)}, claimed at most {claim.seconds:g} s (n={judged.n})"
    return outcome, figures, took, judged.point / claim.seconds


def _judge_effect(claim: Effect, contenders: Contenders, looks: Looks) -> Found | None:
    of, against = claim.of, claim.against
    if claim.axis == "count":
        of, against = max(contenders, key=int), min(contenders, key=int)
    if of == against or of not in contenders or against not in contenders:
        return None
    effect = quotient(contenders[of], contenders[against], looks, shared_rounds=claim.axis != "count")
    names = (f"{of} arrays", f"{against} arrays") if claim.axis == "count" else (of, against)
    seconds = (_seconds(contenders[of].point), _seconds(contenders[against].point))
    n = min(contenders[of].n, contenders[against].n)
    figures = f"{names[0]} {seconds[0]} against {names[1]} {seconds[1]}: {effect} times (n={n})"
    return _effect_outcome(claim, effect), figures, *_duration(*names, effect)


def _effect_outcome(claim: Effect, effect: Quotient) -> Finding:
    """Slower, no effect and faster divide all quotients among them, so that no two findings can hold at once."""
    slower, faster = 1 + claim.tolerance, 1 / (1 + claim.tolerance)
    if claim.expected == "slower":
        return _side(effect, slower)
    if claim.expected == "faster":
        return _opposite(_side(effect, faster))
    if faster <= effect.low and effect.high <= slower:
        return "supports"
    return "contradicts" if effect.low > slower or effect.high < faster else "undecided"


def _side(ratio: Quotient, bound: float) -> Finding:
    return "supports" if ratio.low > bound else "contradicts" if ratio.high < bound else "undecided"


def _opposite(outcome: Finding) -> Finding:
    turned: dict[Finding, Finding] = {"supports": "contradicts", "contradicts": "supports"}
    return turned.get(outcome, outcome)


def _difference(first: str, second: str, times: Quotient) -> tuple[str, float]:
    """The difference in words, and its size: `times` is how many times as long `second` takes as `first`."""
    value = max(times.value, 1e-9)
    if times.low > 1 or times.low == times.high >= 1:
        return f"{first} is {UP_TO}{factor_text(value)} times as fast as {second}", value
    if times.high < 1:
        return f"{second} is {UP_TO}{factor_text(1 / value)} times as fast as {first}", 1 / value
    return _duration(second, first, times)


def _duration(first: str, second: str, times: Quotient) -> tuple[str, float]:
    """How many times as long `first` takes as `second`, in words, and the size of the difference."""
    value = max(times.value, 1e-9)
    verb = "take" if first.endswith(" arrays") else "takes"
    size = max(value, 1 / value)
    if times.low > 1:
        return f"{first} {verb} {UP_TO}{factor_text(value)} times as long as {second}", size
    reach = reach_text(times.low, times.high) if times.is_known else factor_text(value)
    return f"{first} {verb} {reach} times as long as {second}", size


def _in_line(contenders: Contenders, looks: Looks) -> str:
    """From fastest to slowest: < if the next one is certainly slower, ≈ if not."""
    ordered = sorted(contenders.values(), key=lambda estimate: estimate.point)
    words = [f"{ordered[0].name} {_seconds(ordered[0].point)}"]
    for before, estimate in pairwise(ordered):
        sign = "<" if quotient(estimate, before, looks).low > 1 else "≈"
        words.append(f"{sign} {estimate.name} {_seconds(estimate.point)}")
    return f"{' '.join(words)} (n={min(estimate.n for estimate in ordered)})"


def _seconds(value: float) -> str:
    """Seconds per array in a readable unit."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def _told(judged: Sequence[Judged], published: bool = False) -> str:
    """The finding, and the figures of the largest group."""
    if not judged:
        return "not run"
    largest = max(judged, key=lambda one: one.setting.size)
    figures = f"{largest.figures}; {largest.setting}"
    outcomes = [one.outcome for one in judged]
    word = word_of(outcomes, published)
    return f"{word}: {figures}" if len(judged) == 1 else f"{word} ({tally(outcomes)}); largest: {figures}"


def _reason(conclusion: Conclusion, judged: Sequence[Judged]) -> str:
    if not judged:
        return "the fair method did not measure everything that this compares"
    return sentence(conclusion.conclusion, [(one.outcome, one.difference, one.size) for one in judged])

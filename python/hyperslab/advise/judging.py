"""What measured seconds say of the predictions, and the ranking by them."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from hyperslab.advise.results import ArrayAdvice, Option, RunAdvice
from hyperslab.advise.verdict import WITH_RUN, in_order, needed_text
from hyperslab.advise.verifying import Verification, Verified
from hyperslab.lab.paired import ratio_of
from hyperslab.quantities import digits, interval_text, seconds_text

SIGNIFICANT = 0.05
CONTRADICTED = (
    "where measuring contradicts a prediction, the ranking and the advice follow the measurement. The prediction comes "
    "from the calibration: if the machine or the disk has changed since, run `hyperslab calibrate` again"
)


def judge(advice: ArrayAdvice, verification: Verification) -> None:
    """Rank the measured options by what they took, choose again, and say what measuring contradicts."""
    before = advice.chosen
    weights = verification.weights
    now = next((one for one in verification.each if one.option.candidate.is_today and not _is_tip(advice, one)), None)
    ranked = []
    for option in advice.options:
        mine = verification.of(option.candidate)
        seconds = None if mine is None else mine.seconds(weights)
        interval = None if mine is None else mine.interval(weights)
        by_run = None if option.by_run is None else verification.of(option.by_run)
        run_seconds = None if by_run is None else by_run.seconds(weights)
        took = replace(option, measured_seconds=seconds, measured_interval=interval)
        ranked.append(replace(took, measured_run_seconds=run_seconds))
    advice.options = in_order(ranked, advice)
    advice.today = next(one for one in advice.options if one.candidate.is_today)
    advice.verified = [f"measured on {verification.words}"]
    base = None if now is None else now.seconds(weights)
    if now is None or base is None:
        reason = "no pass was accepted" if now is None else now.reason or now.last_rejection
        advice.verified.append(f"today's layout could not be measured ({reason}), so nothing is decided by measuring")
        return
    _choose(advice, verification, now, base)
    _contradictions(advice, verification, now, base, before)


def _is_tip(advice: ArrayAdvice, one: Verified) -> bool:
    return one.option.candidate.key != advice.today.candidate.key


def _choose(advice: ArrayAdvice, verification: Verification, now: Verified, base: float) -> None:
    """By the program's own library first; then what is certainly faster under `hyperslab run`."""
    weights = verification.weights
    by_run = [one for one in verification.each if _is_by_run(advice, one) and one.seconds(weights)]
    tips = [one for one in verification.each if one.option.candidate.is_today and _is_tip(advice, one)]
    mine = _choose_plainly(advice, verification, now, [one for one in tips if one not in by_run])
    fastest = min(by_run, key=lambda one: one.seconds(weights) or inf, default=None)
    advice.needs_run, advice.with_run = False, None
    if fastest is None or not _is_faster(fastest, mine, weights, len(by_run)):
        return
    key = fastest.option.candidate.file_key
    option = next(one for one in advice.options if one.candidate.file_key == key)
    seconds = fastest.seconds(weights) or 0.0
    what = "keep the file" if option.candidate.is_today else f"rewrite as {option.candidate.file_title}"
    what = "the same layout" if option is advice.chosen and not advice.keeps else what
    took = f"measured {seconds_text(seconds)} instead of {seconds_text(base)}"
    verdict = f"{what}: {took}, {digits(base / seconds)} × faster"
    if mine is not now:
        advice.with_run = RunAdvice(option, verdict)
        return
    advice.needs_run, advice.verdict, advice.chosen = True, f"{WITH_RUN}: {verdict}", option
    advice.tip = next((tip for tip in advice.tips if tip.candidate == fastest.option.candidate), None)


def _is_by_run(advice: ArrayAdvice, one: Verified) -> bool:
    return one.option.candidate.reader == "hyperslab" != advice.today.candidate.reader


def _choose_plainly(advice: ArrayAdvice, verification: Verification, now: Verified, tips: list[Verified]) -> Verified:
    """Choose without `hyperslab run`. What was chosen; today's, if nothing is certainly faster."""
    weights = verification.weights
    base = now.seconds(weights) or 0.0
    free = min((one for one in [now, *tips] if one.seconds(weights)), key=lambda one: one.seconds(weights) or 0.0)
    known = [one for one in advice.options if one.measured_seconds is not None and one.can_be_advised]
    best = known[0] if known else None  # they are in order
    least = free.seconds(weights) or base
    mine = None if best is None else verification.of(best.candidate)
    if best is not None and mine is not None and _is_faster(mine, free, weights, len(known)):
        advice.chosen, advice.tip = best, None
        advice.verdict = (
            f"rewrite as {best.candidate.title}: measured {seconds_text(best.measured_seconds)} instead of "
            f"{seconds_text(base)}, {digits(base / (best.measured_seconds or 1.0))} × faster{needed_text(best)}"
        )
        return mine
    advice.chosen, advice.tip = advice.today, None
    if free is not now and _is_faster(free, now, weights, len(tips)):
        advice.tip = next(tip for tip in advice.tips if tip.candidate == free.option.candidate)
        advice.verdict = (
            f"keep the file and {advice.tip.what}: measured {seconds_text(least)} instead of {seconds_text(base)}, "
            f"{digits(base / least)} × faster"
        )
        return free
    advice.verdict = "keep what you have: nothing was measured to be certainly faster"
    return now


def _is_faster(mine: Verified, other: Verified, weights: list[float], choice: int) -> bool:
    """Whether Wilcoxon's exact rank-sum test says so at 5 %, of the best among so many (Bonferroni).

    Medians with intervals that do not overlap would ask for more: of six passes each, that all of one be faster.
    """
    mine_by_round = dict(enumerate(mine.trials(weights)))
    other_by_round = {-1 - number: seconds for number, seconds in enumerate(other.trials(weights))}
    ratio = ratio_of(mine_by_round, other_by_round, SIGNIFICANT / max(choice, 1))
    return ratio is not None and ratio.is_above


def _contradictions(
    advice: ArrayAdvice, verification: Verification, now: Verified, base: float, before: Option
) -> None:
    weights, said = verification.weights, advice.verified
    is_contradicted = False
    for one in verification.each:
        seconds, title = one.seconds(weights), one.option.candidate.title
        if seconds is None:
            why = one.reason or f"no pass was accepted: {one.last_rejection}"
            said.append(f"{title} was not measured: {why}")
        elif not one.low <= seconds <= one.high:
            is_contradicted = True
            said.append(
                f"contradicted: {title} took {seconds_text(seconds)}, {_compared(seconds, one.predicted)} as "
                f"predicted ({seconds_text(one.predicted)}, interval {interval_text(one.low, one.high)})"
            )
        elif one is not now and (one.predicted < now.predicted) != (seconds < base):
            is_contradicted = True
            which, other = ("slower", "faster") if seconds > base else ("faster", "slower")
            said.append(
                f"contradicted: {title} was predicted to be {other} than today's layout, but was measured to be {which}"
            )
    first = verification.first_predicted
    regret = None if first is None else verification.regret(first.candidate)
    if first is not None and regret is not None:
        said.append(
            f"regret: {first.candidate.title}, which was predicted to be the fastest, took {100 * regret:.0f} % longer "
            f"than the fastest one"
        )
    if before.candidate.key != advice.chosen.candidate.key:
        said.append(f"measuring changed the advice; by prediction it was: {_what(before)}")
    if is_contradicted:
        said.append(CONTRADICTED)


def _compared(seconds: float, predicted: float) -> str:
    factor = seconds / predicted if predicted > 0 else 0.0
    return f"{factor:.2g} times as long"


def _what(option: Option) -> str:
    return "keep the file" if option.candidate.is_today else f"rewrite as {option.candidate.title}"

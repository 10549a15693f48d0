"""What measured seconds say of the predictions, and the ranking by them."""

from __future__ import annotations

from dataclasses import replace

from hyperslab.advise.results import ArrayAdvice, Option
from hyperslab.advise.verdict import AS_GOOD, change
from hyperslab.advise.verifying import Verification, Verified
from hyperslab.report.wording import interval_text, seconds_text


def judge(advice: ArrayAdvice, found: Verification) -> None:
    """Rank the measured options by what they took, choose again, and say what measuring contradicts."""
    before = advice.chosen
    weights = found.weights
    now = next((one for one in found.each if one.option.candidate.is_today and not _is_tip(advice, one)), None)
    took = {one.option.candidate.key: one for one in found.each}
    ranked = []
    for option in advice.options:
        mine = took.get(option.candidate.key)
        seconds = None if mine is None else mine.seconds(weights)
        interval = None if mine is None else mine.interval(weights)
        ranked.append(replace(option, measured_seconds=seconds, measured_interval=interval))
    advice.options = sorted(
        ranked, key=lambda one: (one.measured_seconds is None, one.measured_seconds or 0.0, one.price.rank)
    )
    advice.today = next(one for one in advice.options if one.candidate.is_today)
    advice.verified = [f"measured on {found.words}"]
    base = None if now is None else now.seconds(weights)
    if now is None or base is None:
        reason = now.reason if now is not None and now.reason else "no pass was accepted"
        advice.verified.append(f"today's layout could not be measured ({reason}), so nothing is decided by measuring")
        return
    _choose(advice, found, now, base)
    _contradictions(advice, found, now, base, before)


def _is_tip(advice: ArrayAdvice, one: Verified) -> bool:
    return one.option.candidate.key != advice.today.candidate.key


def _choose(advice: ArrayAdvice, found: Verification, now: Verified, base: float) -> None:
    weights = found.weights
    tips = [one for one in found.each if one.option.candidate.is_today and _is_tip(advice, one)]
    free = min((one for one in [now, *tips] if one.seconds(weights)), key=lambda one: one.seconds(weights) or 0.0)
    known = [one for one in advice.options if one.measured_seconds is not None and one.can_be_advised]
    best = _simplest(known, advice.today)
    least = free.seconds(weights) or base
    if best is not None and _is_faster(best.measured_interval, free.interval(weights)):
        advice.chosen = best
        advice.verdict = (
            f"rewrite as {best.candidate.title}: measured {seconds_text(best.measured_seconds)} instead of "
            f"{seconds_text(base)}, {base / (best.measured_seconds or 1.0):.3g} × faster"
        )
        return
    advice.chosen = advice.today
    if free is not now and _is_faster(free.interval(weights), now.interval(weights)):
        what = next((tip.what for tip in advice.tips if tip.candidate == free.option.candidate), "")
        advice.verdict = (
            f"keep the file and {what}: measured {seconds_text(least)} instead of {seconds_text(base)}, "
            f"{base / least:.3g} × faster"
        )
        return
    advice.verdict = "keep what you have: no other layout was measured to be faster"


def _simplest(known: list[Option], today: Option) -> Option | None:
    """The fastest measured option, or one that cannot be told from it and changes less."""
    if not known:
        return None
    best = min(known, key=lambda one: one.measured_seconds or 0.0)
    limit = (best.measured_seconds or 0.0) * AS_GOOD
    return min((one for one in known if (one.measured_seconds or 0.0) <= limit), key=lambda one: change(one, today))


def _is_faster(mine: tuple[float, float] | None, other: tuple[float, float] | None) -> bool:
    """Whether the measured intervals do not overlap."""
    return mine is not None and other is not None and mine[1] < other[0]


def _contradictions(advice: ArrayAdvice, found: Verification, now: Verified, base: float, before: Option) -> None:
    weights, said = found.weights, advice.verified
    for one in found.each:
        seconds = one.seconds(weights)
        if seconds is None:
            said.append(f"{one.option.candidate.title} was not measured: {one.reason or 'no pass was accepted'}")
        elif not one.low <= seconds <= one.high:
            said.append(
                f"contradicted: {one.option.candidate.title} took {seconds_text(seconds)}, outside the predicted "
                f"{interval_text(one.low, one.high)}"
            )
        elif one is not now and (one.predicted < now.predicted) != (seconds < base):
            which = "slower" if seconds > base else "faster"
            said.append(f"contradicted: {one.option.candidate.title} was measured {which} than today's layout, but "
                        "predicted the other way round")  # fmt: skip
    regret = found.regret(_first_predicted(found))
    if regret is not None:
        said.append(f"regret: the layout that was predicted best took {100 * regret:.0f} % longer than the best one")
    if before.candidate.key != advice.chosen.candidate.key:
        said.append("re-ranked: measuring changed what is advised")


def _first_predicted(found: Verification) -> Option:
    """The measured option with the least prediction for the same calls."""
    known = [one for one in found.each if one.seconds(found.weights) is not None]
    return min(known, key=lambda one: one.predicted).option

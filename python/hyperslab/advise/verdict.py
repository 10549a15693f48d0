"""What to do: rewrite, help the program without rewriting, or keep what you have."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from hyperslab.advise.price import Gain
from hyperslab.advise.pricing import gain
from hyperslab.advise.reasons import touches_of
from hyperslab.advise.results import ArrayAdvice, Option
from hyperslab.model.store_profile import StoreProfile
from hyperslab.quantities import digits, seconds_text

# Layouts within this share of the best are as good: then the one that changes least is advised. No calibration tells
# predictions apart that are as near as ALIKE.
AS_GOOD, ALIKE = 1.05, 1.25
# Rewriting a file for less than this gain is not worth the trouble, however sure it is.
WORTH_REWRITING = 1.1


def choose(advice: ArrayAdvice, profile: StoreProfile) -> None:
    """Choose what to do and say why. Nothing is chosen whose gain lies inside its interval."""
    today = advice.today
    known = [one for one in advice.options if one.can_be_advised]
    tip = next((one for one in advice.tips if one.gain is not None and one.gain.is_sure), None)
    base_price, base_reader = today.price, today.candidate.reader
    if tip is not None:
        base_price, base_reader = tip.price, tip.candidate.reader if tip.candidate is not None else base_reader
    best = in_order(known, advice)[0] if known else None
    over = None if best is None else gain(profile, base_price, best.price, (base_reader, best.candidate.reader))
    if best is not None and over is not None and over.is_sure and over.factor >= WORTH_REWRITING:
        advice.chosen, advice.tip = best, None
        advice.verdict = (
            f"rewrite as {best.candidate.title}: predicted {seconds_text(best.seconds)} instead of "
            f"{seconds_text(today.seconds)}, {factor_text(best.gain)} faster{needed_text(best)}"
        )
        return
    advice.chosen, advice.tip = today, tip
    if tip is not None:
        advice.verdict = f"keep the file and {tip.what}: {factor_text(tip.gain)} faster, without rewriting anything"
        return
    advice.verdict = "keep what you have"
    if best is None or over is None or best.gain is None:
        advice.verdict += ": no other layout has a price"
    elif best.gain.factor < WORTH_REWRITING:
        advice.verdict += ": no layout is predicted to be clearly faster"
    else:
        advice.verdict += (
            f": {best.candidate.title} is predicted to be {best.gain.factor:.1f} × faster, but that gain lies inside "
            f"its interval [{best.gain.low:.2g} to {best.gain.high:.2g}]; --verify measures it"
        )


def in_order(options: Sequence[Option], advice: ArrayAdvice) -> list[Option]:
    """The fastest first. Of those that cannot be told from the best, the one that changes least comes first.

    Measured seconds count if there are any, and then predictions do not. What is never advised comes after the others.
    """
    is_measured = any(one.measured_seconds is not None for one in options)
    share = AS_GOOD if is_measured else ALIKE
    best = min((_seconds(one, is_measured) for one in options if one.can_be_advised), default=inf)

    def key(one: Option) -> tuple[Any, ...]:
        seconds = _seconds(one, is_measured)
        if one.can_be_advised and seconds <= best * share and best < inf:
            return (0, best, 0, change(one, advice))
        return (2 if seconds == inf else int(one.refused is not None), seconds, 1, one.price.rank)

    return sorted(options, key=key)


def _seconds(one: Option, is_measured: bool) -> float:
    known = one.measured_seconds if is_measured else one.seconds
    return inf if known is None else known


def change(one: Option, advice: ArrayAdvice) -> tuple[Any, ...]:
    """How much an option changes, then the chunks that its calls touch: a sort key."""
    mine, now = one.candidate, advice.today.candidate
    return (
        mine.format != now.format,
        one.needs is not None,
        mine.reader != now.reader,
        mine.cache_nbytes != now.cache_nbytes,
        touches_of(advice.demands, mine)[0],
        one.stored_nbytes,
        one.measured_seconds or one.seconds,
    )


def needed_text(option: Option) -> str:
    """What the readers of a layout need, after a verdict; nothing if they need nothing."""
    return "" if option.needs is None else f"; its readers need {option.needs}"


def factor_text(gain: Gain | None) -> str:
    """A gain with its interval in words."""
    if gain is None:
        return "an unknown number of times"
    return f"{digits(gain.factor)} × [{digits(gain.low)} to {digits(gain.high)}]"


def pareto(options: Sequence[Option]) -> list[Option]:
    """The options that no other one beats in both seconds and size, the fastest first."""
    known = [one for one in options if one.seconds is not None]
    known.sort(key=lambda one: (one.seconds, one.stored_nbytes))
    front: list[Option] = []
    for one in known:
        if not front or one.stored_nbytes < front[-1].stored_nbytes:
            front.append(one)
    return front

"""What to do: rewrite, help the program without rewriting, or keep what you have; then what `hyperslab run` adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

from hyperslab.advise.price import Gain, Price
from hyperslab.advise.pricing import gain
from hyperslab.advise.reasons import touches_of
from hyperslab.advise.results import ArrayAdvice, Option, RunAdvice
from hyperslab.advise.tip import Tip
from hyperslab.conversion.advice import FORMATS
from hyperslab.model.store_profile import StoreProfile
from hyperslab.quantities import digits, seconds_text

# Layouts within this share of the best are as good: then the one that changes least is advised. No calibration tells
# predictions apart that are as near as ALIKE.
AS_GOOD, ALIKE = 1.05, 1.25
# Rewriting a file for less than this gain is not worth the trouble, however sure it is.
WORTH_REWRITING = 1.1
WITH_RUN = "with `hyperslab run`"


class _Base(NamedTuple):
    """What an option must beat: today's price, or that of a tip, and who reads."""

    price: Price
    reader: str


def choose(advice: ArrayAdvice, profile: StoreProfile) -> None:
    """Choose what to do and say why. Nothing is chosen whose gain lies inside its interval.

    What helps the program as it is comes first. Only if nothing does, something is advised that needs `hyperslab run`.
    """
    advice.needs_run, advice.with_run = False, None
    is_chosen = _choose_plainly(advice, profile)
    with_run = _with_run(advice, profile)
    if with_run is None:
        return
    if is_chosen:
        advice.with_run = with_run
        return
    advice.needs_run, advice.verdict = True, f"{WITH_RUN}: {with_run.verdict}"
    advice.chosen = with_run.option
    advice.tip = _run_tip(advice) if with_run.option.candidate.is_today else None


def one_format(arrays: Sequence[ArrayAdvice], profile: StoreProfile) -> None:
    """Choose again where the arrays of one file would go into different formats: a file has one.

    If any of them is kept, it is today's; otherwise that of most arrays.
    """
    formats = [one.chosen.candidate.format for one in arrays if one.chosen.candidate.format in FORMATS]
    if len(set(formats)) < 2:
        return
    kept = [one.today.candidate.format for one in arrays if one.keeps and one.today.candidate.format in FORMATS]
    asked = max(kept or formats, key=(kept or formats).count)
    for advice in arrays:
        if advice.chosen.candidate.format != asked:
            why = f"the file becomes {asked}, which is better for its other arrays"
            why = f"the file stays {asked}: other arrays are best as they are" if kept else why
            refuse(advice, profile, [name for name in FORMATS if name != asked], why)


def refuse(advice: ArrayAdvice, profile: StoreProfile, formats: Sequence[str], why: str) -> None:
    """Choose again without some formats."""
    advice.options = [
        replace(one, refused=why) if one.candidate.format in formats and not one.candidate.is_today else one
        for one in advice.options
    ]
    advice.options = in_order(advice.options, advice)
    advice.today = next(one for one in advice.options if one.candidate.is_today)
    choose(advice, profile)


def _choose_plainly(advice: ArrayAdvice, profile: StoreProfile) -> bool:
    """Choose by the program's own library. Whether there is anything to do."""
    today, best = advice.today, _first(advice)
    sure = [one for one in advice.tips if one.gain is not None and one.gain.is_sure and not _is_run(one)]
    tip = next((one for one in sure if not _is_by_us(one, today)), None)
    readers = None if best is None else (today.candidate.reader, best.candidate.reader)
    over = None if best is None or readers is None else gain(profile, today.price, best.price, readers)
    advice.chosen, advice.tip = today, tip
    # A tip changes the program and spares the file, so it comes first if it helps about as much.
    is_better = best is not None and (tip is None or best.price.seconds * ALIKE < tip.price.seconds)
    if best is not None and _is_worth(over) and is_better:
        advice.chosen, advice.tip = best, None
        advice.verdict = (
            f"rewrite as {best.candidate.title}: predicted {seconds_text(best.seconds)} instead of "
            f"{seconds_text(today.seconds)}, {factor_text(best.gain)} faster{needed_text(best)}"
        )
        if sure and sure[0] is not tip:
            advice.verdict += f"; or {sure[0].what}: {factor_text(sure[0].gain)} faster, without rewriting anything"
    elif sure:
        advice.tip = tip = tip or sure[0]
        advice.verdict = f"keep the file and {tip.what}: {factor_text(tip.gain)} faster, without rewriting anything"
        if best is not None and _is_worth(over):
            advice.verdict += f"; for the program as it is, {best.candidate.title} is {factor_text(over)} faster"
    else:
        advice.verdict = _kept(best, over)
    return bool(advice.tip) or advice.chosen is not today


def _kept(best: Option | None, over: Gain | None) -> str:
    kept = "keep what you have"
    if best is None or over is None or best.gain is None:
        return f"{kept}: no other layout has a price"
    if best.gain.factor < WORTH_REWRITING:
        return f"{kept}: no layout is predicted to be clearly faster"
    return (
        f"{kept}: {best.candidate.title} is predicted to be {best.gain.factor:.1f} × faster, but that gain lies inside "
        f"its interval [{best.gain.low:.2g} to {best.gain.high:.2g}]; --verify measures it"
    )


def _with_run(advice: ArrayAdvice, profile: StoreProfile) -> RunAdvice | None:
    """What is surely faster under `hyperslab run` than what is advised without it; the file is kept if that is as good.

    A third layout is named only if it is surely faster than the advised one, both under `run`.
    """
    chosen, today = advice.chosen, advice.today
    base = _Base(chosen.price, chosen.candidate.reader)
    if chosen.candidate.is_today and advice.tip is not None:
        tip = advice.tip
        base = _Base(tip.price, base.reader if tip.candidate is None else tip.candidate.reader)
    known = [one for one in advice.options if one.run_seconds is not None and one.is_possible]
    best = min(known, key=lambda one: one.run_seconds or 0.0, default=None)
    for one in (chosen, best):
        if one is None or one.run_price is None or one.run_gain is None:
            continue
        if not _is_worth(gain(profile, base.price, one.run_price, (base.reader, "hyperslab"))):
            continue
        better = best is not None and best.run_price is not None and _is_worth(
            gain(profile, one.run_price, best.run_price, ("hyperslab", "hyperslab"))
        )  # fmt: skip
        chosen = best if better and best is not None else one
        return RunAdvice(chosen, _run_verdict(chosen, today, advice.chosen))
    return None


def _run_verdict(one: Option, today: Option, advised: Option) -> str:
    what, without = f"rewrite as {one.candidate.file_title}", ""
    if one is advised or one is today:
        what = "keep the file" if one is today else "the same layout"
    else:
        without = f"; without `run`, {seconds_text(one.seconds)}"
    return (
        f"{what}: predicted {seconds_text(one.run_seconds)} instead of {seconds_text(today.seconds)}, "
        f"{factor_text(one.run_gain)} faster{without}{needed_text(one)}"
    )


def _is_worth(over: Gain | None) -> bool:
    return over is not None and over.is_sure and over.factor >= WORTH_REWRITING


def _is_run(tip: Tip) -> bool:
    """Whether a tip is to start the program with `hyperslab run`."""
    return tip.candidate is not None and tip.candidate.is_today and tip.call.startswith("hyperslab run ")


def _is_by_us(tip: Tip, today: Option) -> bool:
    """Whether a tip is that our engine reads instead of the program's own library."""
    return tip.candidate is not None and tip.candidate.reader == "hyperslab" != today.candidate.reader


def _run_tip(advice: ArrayAdvice) -> Tip | None:
    return next((one for one in advice.tips if _is_run(one)), None)


def _first(advice: ArrayAdvice) -> Option | None:
    """The best layout that can be advised, by the program's own library."""
    return next(iter(in_order([one for one in advice.options if one.can_be_advised], advice)), None)


def in_order(options: Sequence[Option], advice: ArrayAdvice) -> list[Option]:
    """The fastest first. Of those that cannot be told from the best, the one that changes least comes first.

    The program's own library counts. Measured seconds count if there are any, and then predictions do not. What is
    never advised comes after the others.
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

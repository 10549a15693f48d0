"""The answer at the top of the page: what to do, how much faster that is, how sure it is, and the command to copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from hyperslab.advise.applying import SAVED, Application, applications
from hyperslab.advise.candidate import Candidate
from hyperslab.advise.price import Gain, Price
from hyperslab.advise.results import ArrayAdvice
from hyperslab.quantities import seconds_text

FORMATS = {"hdf5": "HDF5", "netcdf4": "netCDF4", "zarr2": "Zarr 2", "zarr3": "Zarr 3"}
STYLE = """
.card.todo { margin: 0 0 1rem; padding: 1rem 1.2rem 1.1rem; }
.card.todo .what { font-size: .86rem; color: var(--muted); }
.card.todo .do { font: 500 1.5rem/1.25 var(--serif); margin: .1rem 0 .7rem; overflow-wrap: anywhere; }
.card.todo dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem .9rem; margin: 0 0 .8rem; }
.card.todo dt { color: var(--muted); font-size: .86rem; padding-top: .1rem; }
.card.todo dd { margin: 0; }
.card.todo dd strong { font-size: 1.15rem; font-variant-numeric: tabular-nums; }
.card.todo pre { white-space: pre-wrap; overflow-wrap: anywhere; user-select: all; margin: .3rem 0 0; }
@media (max-width: 40rem) { .card.todo dl { grid-template-columns: 1fr; gap: 0; } .card.todo dt { margin-top: .4rem; } }
.card.todo .hint { font-size: .86rem; color: var(--muted); margin: .4rem 0 0; }
"""


@dataclass(frozen=True)
class Answer:
    """What to do with one array."""

    array: str
    what: str
    faster: str
    sure: str
    command: str
    hint: str = ""
    is_worth_it: bool = False
    is_rewritten: bool = False


def answer_of(advice: ArrayAdvice, advice_file: str | None = None) -> Answer:
    """The answer for one array; `advice_file` is where its layouts were written for `convert`, if they were."""
    if not advice.keeps:
        return _rewrite(advice, advice_file)
    if advice.tip is not None:
        tip = advice.tip
        what = f"Keep the file, and {tip.what.replace('`', '')}"
        gain, sure = _gain(advice, tip.gain, tip.price)
        return Answer(advice.array.name, what, gain, sure, tip.call, is_worth_it=True)
    why = advice.verdict.partition(": ")[2]
    said = "measured: no layout passed the test" if advice.verified else "by prediction"
    hint = "" if advice.verified else "To measure instead: run the same command with --verify 3."
    return Answer(advice.array.name, "Keep the file as it is", "nothing certain to gain", f"{said}; {why}", "", hint)


def _rewrite(advice: ArrayAdvice, advice_file: str | None) -> Answer:
    chosen, by_run = advice.chosen, advice.needs_run
    known, price = (chosen.run_gain, chosen.run_price) if by_run else (chosen.gain, chosen.price)
    gain, sure = _gain(advice, known, price or chosen.price)
    runs = chosen.runs_until_it_pays(advice.today, with_run=by_run)
    if runs is not None:
        gain += f"; rewriting pays after {runs:,} run{'s' if runs != 1 else ''}"
    (made,) = applications([advice], None if advice_file is None else Path(advice_file))[:1]
    command, hint = command_text([made], [advice])
    what = f"Rewrite it as {_layout(chosen.candidate)}"
    if by_run:
        what = f"With hyperslab run: rewrite it as {_layout(chosen.by_run or chosen.candidate)}"
    return Answer(advice.array.name, what, gain, sure, command, hint, True, True)


def command_text(made: Sequence[Application], arrays: Sequence[ArrayAdvice]) -> tuple[str, str]:
    """What to copy, and what has to be done before; both empty if nothing is rewritten."""
    lines = [one.command for one in made if one.command is not None]
    hint = ""
    if any(one.is_saved_first for one in made):
        hint = f"{SAVED} is what the command that made this page writes with -o {SAVED}."
    if lines and any(one.needs_run for one in arrays):
        program = next(each.program for one in arrays if one.needs_run for each in one.demands)
        lines.append(f"hyperslab run -- {program}  # which opens what was written")
    return "\n".join(lines), hint


def _layout(candidate: Candidate) -> str:
    pieces = candidate.shape_text.replace("×", "\u00a0×\u00a0")
    shape = pieces if candidate.layout.contiguous else f"in chunks of {pieces}"
    name = FORMATS.get(candidate.format, candidate.format)
    return f"{name} {shape}, {candidate.encoding.text}, read by {candidate.reader_text}"


def _gain(advice: ArrayAdvice, known: Gain | None, price: Price) -> tuple[str, str]:
    """How much faster it is, and how sure that is."""
    chosen, today = advice.chosen, advice.today
    if advice.verified and chosen.measured_seconds and today.measured_seconds and not advice.keeps:
        factor = today.measured_seconds / chosen.measured_seconds
        instead = f"{seconds_text(chosen.measured_seconds)} instead of {seconds_text(today.measured_seconds)}"
        return f"{_times(factor)} as fast: {instead}", "measured, and faster by an exact test at 5 %"
    if advice.verified:
        return advice.verdict.partition(": ")[2], "measured, and faster by an exact test at 5 %"
    if known is None or price.unknown:
        return "unknown", "not known: the calibration does not cover it"
    instead = f"{seconds_text(price.seconds)} instead of {seconds_text(today.seconds)}"
    sure = f"predicted: {_number(known.low)} to {_number(known.high)} times (95 %)"
    if price.extrapolating:
        sure += ", but it lies outside of what was calibrated; --verify 3 measures it"
    return f"{_times(known.factor)} as fast: {instead}", sure


def _times(factor: float) -> str:
    return f"{_number(factor)} times"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.2g}"


def headline(file: str, answers: Sequence[Answer]) -> str:
    """The answer for all arrays in one line."""
    if len(answers) == 1:
        (one,) = answers
        what = f"Rewrite {file.rstrip('/').rpartition('/')[2]}" if one.is_rewritten else one.what
        return f"{what}: {one.faster.partition(':')[0]}" if one.is_worth_it else what
    worth = sum(one.is_worth_it for one in answers)
    return f"{worth} of {len(answers)} arrays can be read faster" if worth else "Keep the file as it is"


def applied_card(made: Sequence[Application], arrays: Sequence[ArrayAdvice]) -> str:
    """One command for all arrays and files as HTML; nothing if an array has it already, or nothing is rewritten."""
    command, hint = command_text(made, arrays)
    if not command or len(arrays) < 2:
        return ""
    return (
        '<div class="card todo" style="--paint:var(--good)"><p class="do">Apply all of it</p>'
        f"<pre>{escape(command)}</pre>" + (f'<p class="hint">{escape(hint)}</p>' if hint else "") + "</div>"
    )


def card(place: int, answer: Answer) -> str:
    """One answer as HTML."""
    times, colon, rest = answer.faster.partition(":")
    faster = f"<strong>{escape(times)}</strong>{escape(colon + rest)}"
    paint = "var(--good)" if answer.is_worth_it else "var(--rule)"
    return (
        f'<div class="card todo" style="--paint:{paint}">'
        f'<p class="what"><a href="#array-{place}">{escape(answer.array)}</a></p>'
        f'<p class="do">{escape(answer.what)}</p>'
        f"<dl><dt>how much faster</dt><dd>{faster}</dd><dt>how sure</dt><dd>{escape(answer.sure)}</dd></dl>"
        + (f"<pre>{escape(answer.command)}</pre>" if answer.command else "")
        + (f'<p class="hint">{escape(answer.hint)}</p>' if answer.hint else "")
        + "</div>"
    )

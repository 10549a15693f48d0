"""The answer at the top of the page: what to do, how much faster that is, how sure it is, and the command to copy."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from hyperslab.advise.candidate import Candidate
from hyperslab.advise.price import Gain, Price
from hyperslab.advise.results import ArrayAdvice
from hyperslab.quantities import seconds_text

FORMATS = {"hdf5": "HDF5", "netcdf4": "netCDF4", "zarr2": "Zarr 2", "zarr3": "Zarr 3"}
SUFFIXES = {"hdf5": (".h5", ".hdf5", ".he5"), "netcdf4": (".nc", ".nc4"), "zarr2": (".zarr",), "zarr3": (".zarr",)}
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


def answer_of(file: str, advice: ArrayAdvice, advice_file: str | None) -> Answer:
    """The answer for one array; `advice_file` is where its layouts were written for `convert`, if they were."""
    if not advice.keeps:
        return _rewrite(file, advice, advice_file)
    if advice.tip is not None:
        tip = advice.tip
        what = f"Keep the file, and {tip.what.replace('`', '')}"
        gain, sure = _gain(advice, tip.gain, tip.price)
        return Answer(advice.array.name, what, gain, sure, tip.call, is_worth_it=True)
    why = advice.verdict.partition(": ")[2]
    said = "measured: no layout passed the test" if advice.verified else "by prediction"
    hint = "" if advice.verified else "To measure instead: run the same command with --verify 3."
    return Answer(advice.array.name, "Keep the file as it is", "nothing certain to gain", f"{said}; {why}", "", hint)


def _rewrite(file: str, advice: ArrayAdvice, advice_file: str | None) -> Answer:
    chosen = advice.chosen
    candidate = chosen.candidate
    gain, sure = _gain(advice, chosen.gain, chosen.price)
    runs = chosen.runs_until_it_pays(advice.today)
    if runs is not None:
        gain += f"; rewriting pays after {runs:,} run{'s' if runs != 1 else ''}"
    target = _target(file, candidate)
    words = ["hyperslab", "convert", file, target, "--like", advice_file or "advice.json"]
    command = shlex.join(words)
    if candidate.reader == "hyperslab" and candidate.format in ("hdf5", "netcdf4"):
        command += f"\nhyperslab run -- python your_program.py  # which opens {target}"
    hint = "" if advice_file is not None else (
        "advice.json is what the command that made this page writes with -o advice.json."
    )  # fmt: skip
    return Answer(advice.array.name, f"Rewrite it as {_layout(candidate)}", gain, sure, command, hint, True, True)


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


def _target(file: str, candidate: Candidate) -> str:
    """A name for the new file, with a suffix that fits its format."""
    suffixes = SUFFIXES.get(candidate.format, (".h5",))
    suffix = Path(file).suffix
    return f"better{suffix if suffix in suffixes else suffixes[0]}"


def headline(file: str, answers: Sequence[Answer]) -> str:
    """The answer for all arrays in one line."""
    if len(answers) == 1:
        (one,) = answers
        what = f"Rewrite {file.rstrip('/').rpartition('/')[2]}" if one.is_rewritten else one.what
        return f"{what}: {one.faster.partition(':')[0]}" if one.is_worth_it else what
    worth = sum(one.is_worth_it for one in answers)
    return f"{worth} of {len(answers)} arrays can be read faster" if worth else "Keep the file as it is"


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

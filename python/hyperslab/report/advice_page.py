"""One self-contained page with the advice: tips, the ranking, and the Pareto figure of seconds against size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from importlib.resources import files as package_files
from math import log10
from pathlib import Path

from hyperslab.advise.applying import Application, applications
from hyperslab.advise.results import ArrayAdvice, Option
from hyperslab.advise.verdict import pareto
from hyperslab.quantities import nbytes_text, seconds_text
from hyperslab.replacing import replace_with
from hyperslab.report.advice_answer import STYLE as ANSWER_STYLE
from hyperslab.report.advice_answer import answer_of, applied_card, card, headline
from hyperslab.report.advice_heat_map import heat_maps
from hyperslab.report.advice_rows import ranking, tip_lines
from hyperslab.report.markup import section

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
STYLE = """
pre { overflow-x: auto; background: var(--raised); border: 1px solid var(--rule); border-radius: 6px;
  padding: .5rem .8rem; font-size: .85rem; margin: .4rem 0 1rem; }
ol.todo > li { margin-bottom: .6rem; overflow-wrap: anywhere; }
svg { display: block; width: 100%; max-width: 45rem; height: auto; margin: .4rem 0; }
svg text { font: 11px var(--sans); fill: var(--muted); }
.verdict { font-size: 1.1rem; border-left: 3px solid var(--open); padding-left: .8rem; }
tr.today th, tr.today td { font-weight: 600; }
tbody th { white-space: normal; min-width: 15rem; max-width: 22rem; font-weight: 500; }
thead th, tbody td { white-space: nowrap; overflow-wrap: normal; }
.why { display: block; font-weight: 400; font-size: .8rem; color: var(--muted); }
@media (max-width: 62rem) {
  body { overflow-wrap: anywhere; } tbody th { padding-right: .6rem; min-width: 11rem; } pre { white-space: pre-wrap; }
}
"""
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 480, 280, 62, 36, 14, 14
PAINTS = {"hdf5": "#1f5fa8", "netcdf4": "#e07b1a", "zarr3": "#35a873", "zarr2": "#1d7d54"}
OTHER = "#444444"
ORDER = "Of layouts that cannot be told from the best one, the one that changes least for your program comes first."


def write_page(
    path: Path, files: Sequence[str], arrays: Sequence[ArrayAdvice], profile: str, made: Sequence[Application]
) -> None:
    """Write the page. It needs no network and runs no scripts. `made` has the same advice for `convert`."""
    replace_with(path, render(files, arrays, profile, made).encode())


def render(
    files: Sequence[str], arrays: Sequence[ArrayAdvice], profile: str, made: Sequence[Application] | None = None
) -> str:
    """The HTML of the whole page: the answers first."""
    applied = applications(arrays) if made is None else made
    answers = [answer_of(one, applied[0].path if applied else None) for one in arrays]
    shown = answers if len(arrays) < 2 else [
        replace(one, command="", hint="") if one.is_rewritten else one for one in answers
    ]  # fmt: skip
    named = files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} others"
    css = package_files("hyperslab.report").joinpath("page.css").read_text(encoding="utf-8")
    links = "".join(
        f'<li><a href="#array-{place}">{escape(one.array.name)}</a></li>' for place, one in enumerate(arrays)
    )
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>hyperslab advise: {escape(named)}</title><style>{css}{STYLE}{ANSWER_STYLE}</style></head><body>",
            f'<nav aria-label="Contents"><p class="mark">hyperslab</p><ol>{links}</ol></nav>',
            f'<main><header><p class="kicker">Which layout for your accesses: {escape(named)}</p>',
            f"<h1>{escape(headline(named, answers))}</h1></header>",
            *(card(place, one) for place, one in enumerate(shown)),
            applied_card(applied, arrays),
            f'<p class="note">Prices are those of: {escape(profile)}.</p>',
            *(_array(place, one) for place, one in enumerate(arrays)),
            "</main></body></html>",
        ]
    )


def _array(place: int, advice: ArrayAdvice) -> str:
    calls = ", ".join(f"{len(one.steps):,} calls of {one.name}" for one in advice.demands)
    items = "".join(
        f"<li>{escape(said)}{f'<pre>{escape(call)}</pre>' if call else ''}</li>" for said, call in tip_lines(advice)
    )
    tips = f'<h3>Without rewriting any data</h3><ol class="todo">{items}</ol>' if items else (
        "<h3>Without rewriting any data</h3><p>Nothing was found that helps.</p>"
    )  # fmt: skip
    said = "".join(f'<p class="note">{escape(note)}</p>' for note in [*advice.verified, *advice.notes])
    figures = f"{pareto_figure(advice)}{heat_maps(advice)}"
    run = "" if advice.with_run is None else f"<p>With hyperslab run: {escape(advice.with_run.verdict)}</p>"
    inner = f'<p class="verdict">{escape(advice.verdict)}</p>{run}<p>{escape(calls)}</p>{tips}{figures}'
    return section(f"array-{place}", advice.array.title, f"{inner}{_table(advice)}{said}")


def _table(advice: ArrayAdvice) -> str:
    """The ranking; the reason is in the first column, and columns that say nothing are left out."""
    titles, rows = ranking(advice)
    header = "".join(f'<th scope="col">{escape(title)}</th>' for title in titles[:-1])
    lines = []
    for option, row in zip(advice.options, rows, strict=True):
        why = f'<span class="why">{escape(row[-1])}</span>' if row[-1] else ""
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in row[1:-1])
        kind = ' class="today"' if option.candidate.is_today else ""
        lines.append(f'<tr{kind}><th scope="row">{escape(row[0])}{why}</th>{cells}</tr>')
    table = f"<table><thead><tr>{header}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    return f'<h3>Layouts, the fastest first</h3><p>{ORDER}</p><div class="scroll">{table}</div>'


def pareto_figure(advice: ArrayAdvice) -> str:
    """Seconds against size, both logarithmic; the front is joined by a line, and today's layout is a square."""
    known = [one for one in advice.options if one.seconds is not None and one.stored_nbytes > 0]
    if len(known) < 2:
        return ""
    xs, ys = [log10(one.seconds or 1e-9) for one in known], [log10(one.stored_nbytes) for one in known]
    x_of, y_of = _scale(xs, LEFT, WIDTH - RIGHT), _scale(ys, HEIGHT - BOTTOM, TOP)
    front = pareto(known)
    path = " ".join(f"{x_of(log10(one.seconds or 1e-9)):.1f},{y_of(log10(one.stored_nbytes)):.1f}" for one in front)
    marks = "".join(_mark(one, x_of, y_of) for one in known)
    named = {id(advice.chosen): "advised", id(advice.today): "today"}
    marks += "".join(_name(named[id(one)], one, x_of, y_of) for one in known if id(one) in named)
    caption = (
        "Predicted seconds (to the right) against the size of the file (upwards), both logarithmic. The line joins the "
        "layouts that no other one beats in both. The square is today's. Blue is HDF5, orange netCDF4, green Zarr."
    )
    return (
        f'<h3>Seconds against size</h3><figure class="pane"><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(caption)}">{_axes(xs, ys, x_of, y_of)}'
        f'<polyline points="{path}" fill="none" stroke="var(--muted)" stroke-dasharray="4 3"/>{marks}</svg>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


class _scale:  # noqa: N801 - it is called like a function
    """From a number to a place between two ends, with some room at both."""

    def __init__(self, values: Sequence[float], first: float, last: float) -> None:
        low, high = min(values), max(values)
        room = max((high - low) * 0.08, 0.05)
        self.low, self.high, self.first, self.last = low - room, high + room, first, last

    def __call__(self, value: float) -> float:
        return self.first + (value - self.low) / (self.high - self.low) * (self.last - self.first)


def _name(text: str, one: Option, x_of: _scale, y_of: _scale) -> str:
    """The name of a mark, on the side where there is room."""
    x, y = x_of(log10(one.seconds or 1e-9)), y_of(log10(one.stored_nbytes))
    is_left = x < (LEFT + WIDTH) / 2
    place = f'x="{x + 10 if is_left else x - 10:.1f}" y="{y - 8:.1f}" text-anchor="{"start" if is_left else "end"}"'
    return f"<text {place}>{text}</text>"


def _mark(one: Option, x_of: _scale, y_of: _scale) -> str:
    x, y = x_of(log10(one.seconds or 1e-9)), y_of(log10(one.stored_nbytes))
    paint = PAINTS.get(str(one.candidate.format), OTHER)
    words = f"{one.candidate.title}: {seconds_text(one.seconds)}, {nbytes_text(one.stored_nbytes)}"
    title = f"<title>{escape(words)}</title>"
    if one.candidate.is_today:
        return f'<rect x="{x - 6:.1f}" y="{y - 6:.1f}" width="12" height="12" fill="{paint}">{title}</rect>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{paint}" fill-opacity="0.75">{title}</circle>'


def _axes(xs: Sequence[float], ys: Sequence[float], x_of: _scale, y_of: _scale) -> str:
    lines = []
    for value in (min(xs), max(xs)):
        anchor = "start" if value == min(xs) else "end"
        lines.append(f'<text x="{x_of(value):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="{anchor}">'
                     f"{seconds_text(10**value)}</text>")  # fmt: skip
    for value in dict.fromkeys((min(ys), max(ys))):
        place = f'x="{LEFT - 8}" y="{y_of(value) + 4:.1f}" text-anchor="end"'
        lines += [f"<text {place}>{nbytes_text(int(10**value))}</text>"]
    rule = 'stroke="var(--rule)"'
    lines += [f'<line x1="{LEFT}" y1="{HEIGHT - BOTTOM}" x2="{WIDTH - RIGHT}" y2="{HEIGHT - BOTTOM}" {rule}/>',
              f'<line x1="{LEFT}" y1="{TOP}" x2="{LEFT}" y2="{HEIGHT - BOTTOM}" {rule}/>']  # fmt: skip
    return "".join(lines)

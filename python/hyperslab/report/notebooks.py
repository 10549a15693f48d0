"""What notebooks show of traces, advice and predictions: tables, and the figures of the pages.

The objects are defined below this layer, so they ask for these functions by name: `display_html.drawn`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape

from hyperslab.advise.results import ArrayAdvice
from hyperslab.archive.views import display_html
from hyperslab.errors import printable
from hyperslab.model.predict import Prediction
from hyperslab.needed import need
from hyperslab.report.advice_heat_map import heat_maps
from hyperslab.report.advice_page import pareto_figure
from hyperslab.report.advice_rows import ranking, tip_lines
from hyperslab.report.chunk_map import chunk_map
from hyperslab.report.costs import costs_svg
from hyperslab.report.trace_page import timeline_figure
from hyperslab.trace.summaries import summaries_of
from hyperslab.trace.trace import Trace

MOST_FIGURES = 4
# Chunk maps of longer traces would keep a notebook waiting for seconds.
MOST_ACCESSES, MOST_ARRAYS = 200_000, 200
# What the figures take from the style sheet of a page.
FRAME = (
    "--muted: #727b87; --rule: #aab1ba; --grid: #d5d9df; fill: var(--muted); font: 11px sans-serif; max-width: 45rem; "
    "white-space: normal"
)


def trace_figures(trace: Trace) -> str:
    """When a program read and wrote, and how often it touched the chunks of the arrays that took most time."""
    if not len(trace):
        return ""
    drawn = [timeline_figure(trace)]
    if len(trace) <= MOST_ACCESSES and len(trace.arrays) <= MOST_ARRAYS:
        drawn += [
            f"<h4>{escape(printable(one.array.title))}</h4>{figure}"
            for one in summaries_of(trace)[:MOST_FIGURES]
            if (figure := chunk_map(one))
        ]
    return _framed(drawn)


def advice(found: Sequence[ArrayAdvice]) -> str:
    """For each array the verdict, what helps without rewriting, the ranking, and the figures."""
    return "".join(map(_advice_on, found))


def _advice_on(one: ArrayAdvice) -> str:
    titles, cells = ranking(one)
    facts = [one.verdict, *(said for pair in tip_lines(one) for said in pair if said)]
    facts += [] if one.with_run is None else [f"With hyperslab run: {one.with_run.verdict}"]
    table = display_html.rows(
        "hyperslab.ArrayAdvice", one.array.title, titles, cells, [*facts, *one.verified, *one.notes]
    )
    return table + _framed([pareto_figure(one), heat_maps(one)])


def costs_figure(found: Sequence[Prediction]) -> str:
    """The predicted seconds by phase, as an image: what a style sheet in it says does not reach the notebook.

    Raises
    ------
    MissingLibrary
        matplotlib is not installed.
    """
    known = [one for one in found if not one.cost.unknown]
    if not known:
        return ""
    need("a figure", "matplotlib")
    svg = costs_svg(known, "What the workload costs", "predicted")
    return f'<img alt="predicted seconds by phase" src="data:image/svg+xml;base64,{b64encode(svg).decode()}"/>'


def _framed(figures: Sequence[str]) -> str:
    inside = "".join(figures)
    return f'<div style="{FRAME}">{inside}</div>' if inside else ""

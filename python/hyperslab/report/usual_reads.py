"""Draw what usual accesses to an array cost in several layouts: one line for each access, one mark for each layout."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from hyperslab.advise.usual_reads import Comparison
from hyperslab.report.figures import style
from hyperslab.report.sheet import Words, head, log_ticks, new_sheet, save_as

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TODAY, OTHERS = "#e0004d", ("#1f5fa8", "#e07b1a", "#35a873", "#7a52a8", "#6ba3dc", "#a3adba")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
WIDTH = 6.5  # inches


def draw_comparison(comparison: Comparison, path: Path) -> None:
    """Draw predicted seconds with their intervals, on a logarithmic scale, and save them as SVG or PNG."""
    from matplotlib.lines import Line2D

    paints = [
        (TODAY if position == 0 else OTHERS[(position - 1) % len(OTHERS)], MARKERS[position % len(MARKERS)])
        for position in range(len(comparison.columns))
    ]
    legend = [
        (column.title.replace("x", "×"), Line2D([], [], color=colour, marker=marker, linestyle="", markersize=5))
        for column, (colour, marker) in zip(comparison.columns, paints, strict=True)
    ]
    array = comparison.array
    shape = " × ".join(map(str, array.shape))
    caption = (
        "Marks: predicted seconds; lines: 95 % interval of the prediction. " + "; ".join(comparison.verdict()) + "."
    )
    with style():
        words = Words(
            f"What reads of {array.name} cost", f"{shape} {array.dtype}, predicted, {comparison.cache}", caption
        )
        sheet = new_sheet(1, words, legend, WIDTH)
        _draw(sheet.panels[0], comparison, paints)
        save_as(sheet, path)


def _draw(axes: Axes, comparison: Comparison, paints: list[tuple[str, str]]) -> None:
    axes.set_xscale("log")
    spread = 0.6 / max(len(paints) - 1, 1)
    for position, (colour, marker) in enumerate(paints):
        offset = (position - (len(paints) - 1) / 2) * spread
        for line, row in enumerate(comparison.rows):
            cost, seconds = row.costs[position], row.seconds[position]
            if cost is not None and seconds is not None:
                axes.hlines(line + offset, cost.cost.low, cost.cost.high, color=colour, linewidth=0.9)
                axes.plot(seconds, line + offset, marker=marker, color=colour, markersize=4.5, linestyle="")
    axes.set_yticks(range(len(comparison.rows)), [textwrap.fill(row.access, 13) for row in comparison.rows], size=7)
    axes.invert_yaxis()
    axes.grid(visible=True, axis="x")
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("seconds")
    log_ticks(axes.xaxis)
    head(axes, "Usual accesses", "left is faster")

"""A sheet of panels with a heading, a legend and a caption, laid out in inches and saved as PNG and SVG."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperslab.replacing import replace_with

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from hyperslab.bench.records import Summary

# Text stays text in the SVG: it can be searched, and an editor can change it.
STYLE: dict[str, Any] = {
    "font.size": 8.5,
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "hyperslab",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8a8f98",
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#e4e7ec",
    "grid.linewidth": 0.7,
    "xtick.color": "#3b4048",
    "ytick.color": "#3b4048",
    "xtick.major.size": 0,
    "text.color": "#15181d",
    "axes.labelcolor": "#3b4048",
}
PANEL_WIDTH, PANEL_HEIGHT = 2.7, 2.35  # inches
LEFT, RIGHT, GAP_X, GAP_Y = 0.85, 0.25, 0.85, 1.0
HEADING_HEIGHT, LINE_HEIGHT, LEGEND_LINE = 0.72, 0.155, 0.21
TICKS_HEIGHT = 0.6  # tick labels of the lowest panels
WIDEST, LEAST_WIDTH = 14.6, 6.8  # of a sheet
PNG_DPI = 160
FILE_OPTIONS: dict[str, dict[str, Any]] = {".png": {"dpi": PNG_DPI}, ".svg": {"metadata": {"Date": None}}}


@dataclass(frozen=True)
class Panel:
    """One metric of one operation, for several formats."""

    title: str
    subtitle: str
    summaries: tuple[Summary, ...]


@dataclass(frozen=True)
class Sheet:
    """A figure with its panels."""

    figure: Figure
    panels: list[Axes]


@dataclass(frozen=True)
class Words:
    """The text around the panels."""

    title: str
    subtitle: str
    caption: str


def new_sheet(
    panel_count: int, words: Words, legend: Sequence[tuple[str, Artist]], panel_width: float = PANEL_WIDTH
) -> Sheet:
    """An empty sheet with heading, legend, panels and caption, from top to bottom."""
    from matplotlib.figure import Figure

    rows = ceil(panel_count / max(2, int(WIDEST / (panel_width + GAP_X))))
    columns = ceil(panel_count / rows)
    width = max(LEAST_WIDTH, LEFT + columns * panel_width + (columns - 1) * GAP_X + RIGHT)
    lines = textwrap.wrap(words.caption, int(width * 17.5))
    per_row = max(1, int(width / 1.3))
    legend_height = ceil(len(legend) / per_row) * LEGEND_LINE
    top = HEADING_HEIGHT + legend_height + 0.5  # room for the panels' own titles
    bottom = TICKS_HEIGHT + len(lines) * LINE_HEIGHT + 0.2
    height = top + rows * PANEL_HEIGHT + (rows - 1) * GAP_Y + bottom
    figure = Figure(figsize=(width, height), facecolor="white")
    _write_words(figure, words, lines)
    if legend:
        _place_legend(figure, legend, per_row)
    return Sheet(figure, _place_panels(figure, panel_count, columns, top))


def _write_words(figure: Figure, words: Words, lines: list[str]) -> None:
    width, height = figure.get_size_inches()
    x = 0.22 / width
    figure.text(x, 1 - 0.2 / height, words.title, size=12.5, weight="bold", va="top")
    figure.text(x, 1 - 0.47 / height, words.subtitle, size=9, color="#5b626d", va="top")
    figure.text(x, 0.14 / height, "\n".join(lines), size=7, color="#5b626d", va="bottom", linespacing=1.45)


def _place_legend(figure: Figure, legend: Sequence[tuple[str, Artist]], per_row: int) -> None:
    width, height = figure.get_size_inches()
    figure.legend(
        handles=[artist for _, artist in legend],
        labels=[label for label, _ in legend],
        loc="upper left",
        bbox_to_anchor=(0.16 / width, 1 - (HEADING_HEIGHT - 0.06) / height),
        ncols=min(per_row, len(legend)),
        frameon=False,
        handlelength=1.1,
        columnspacing=1.5,
        borderaxespad=0.0,
        fontsize=8.5,
    )


def _place_panels(figure: Figure, count: int, columns: int, top: float) -> list[Axes]:
    width, height = figure.get_size_inches()
    each = (width - LEFT - RIGHT - (columns - 1) * GAP_X) / columns
    panels = []
    for position in range(count):
        row, column = divmod(position, columns)
        left = LEFT + column * (each + GAP_X)
        low = height - top - (row + 1) * PANEL_HEIGHT - row * GAP_Y
        panels.append(figure.add_axes((left / width, low / height, each / width, PANEL_HEIGHT / height)))
    return panels


def head(axes: Axes, title: str, subtitle: str) -> None:
    """Write a panel's title with its subtitle below, wrapped to the width of the panel."""
    inches = axes.bbox.width / axes.get_figure(root=True).dpi  # type: ignore[union-attr] # panels have a figure
    lines = textwrap.wrap(subtitle, int(inches * 17))
    above, grey = 6 + 11 * len(lines), "#5b626d"
    axes.annotate(title, (0, 1), (0, above), "axes fraction", "offset points", size=9, weight="bold")
    axes.annotate("\n".join(lines), (0, 1), (0, 6), "axes fraction", "offset points", size=8, color=grey)


def log_ticks(axis: Axis, unit: str = "") -> None:
    """Label an axis with plain numbers (0.01, 10, 1M) instead of powers; a short axis also has ticks at 2 and 5."""
    from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0,) if high / low > 1000 else (1.0, 2.0, 5.0), numticks=9))
    large = EngFormatter(unit, sep=" " if unit else "")
    axis.set_major_formatter(large if unit else FuncFormatter(lambda v, _: f"{v:g}" if v < 1e4 else large(v)))
    axis.set_minor_formatter(NullFormatter())


def save(sheet: Sheet, stem: Path) -> list[Path]:
    """Save as `stem`.png and `stem`.svg."""
    paths = [stem.with_name(stem.name + suffix) for suffix in FILE_OPTIONS]
    for path in paths:
        save_as(sheet, path)
    return paths


def save_as(sheet: Sheet, path: Path) -> None:
    """Save as one file; its suffix chooses .png or .svg."""
    replace_with(path, saved_bytes(sheet, path.suffix))


def saved_bytes(sheet: Sheet, suffix: str) -> bytes:
    """What a file of the sheet has: `.png` or `.svg`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(sheet.figure)
    stream = BytesIO()
    sheet.figure.savefig(stream, format=suffix[1:], **FILE_OPTIONS[suffix])
    return stream.getvalue()

"""Lines over a series of sizes, on logarithmic axes: time against size, and the speed curves of 2002."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from hyperslab.bench.rankings import headline_metric
from hyperslab.bench.records import Summary
from hyperslab.bench.results import Run
from hyperslab.report.captions import INTERVAL, caption, statistic_text
from hyperslab.report.palette import in_order, paint_of
from hyperslab.report.sheet import Panel, Words, head, log_ticks, new_sheet, save
from hyperslab.report.views import (
    arrays_of,
    case_named,
    decoded_megabytes,
    is_speed_case,
    moves_nothing_back,
    operation_name,
    panel_order,
    published_seconds,
    sizes,
    throughput,
)
from hyperslab.report.wording import cache_title, contender_title, dtype_text, metric_title

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

WRITTEN = ("create_total", "write_durable")
PANEL = 3.6  # inches wide
Dash = Literal["-", "--", ":", "-."]
DASHES: tuple[Dash, ...] = ("-", "--", ":", "-.")


class Point(NamedTuple):
    """A point on a line, with its interval if that is known."""

    x: float
    y: float
    low: float | None
    high: float | None


class Quantity(NamedTuple):
    """What the lines of a figure show: the point of a summary, and the labels of the axes."""

    x_label: str
    y_label: str
    y_unit: str  # of the ticks, where the label does not name it
    point: Callable[[Summary], Point | None]


def draw_scale_lines(run: Run, summaries: list[Summary], stem: Path) -> list[Path]:
    """Draw time against the number of elements or arrays; nothing for a case of one size."""
    if len(sizes(summaries)) < 2 or is_speed_case(summaries[0].case):
        return []
    by_count = len({arrays.elements for arrays in sizes(summaries)}) == 1
    panels = _panels(summaries, lambda s: WRITTEN if moves_nothing_back(s) else ("open_total", "read"))
    label = "arrays in the file" if by_count else "elements of one array"
    quantity = Quantity(label, "time for all arrays", "s", lambda s: _time_point(s, by_count))
    return _draw(run, panels, quantity, "Time", stem)


def draw_speed_curves(run: Run, summaries: list[Summary], stem: Path) -> list[Path]:
    """Draw throughput against size, in total and for the operation alone, as in 2002."""
    if not is_speed_case(summaries[0].case):
        return []
    panels = _panels(summaries, lambda s: (headline_metric(s.operation), bare_metric(s)))
    by_count = len({s.count for s in summaries}) > 1
    label = "arrays in the file" if by_count else "decoded MB per trial"
    quantity = Quantity(label, "decoded MB/s", "", lambda s: _speed_point(s, by_count))
    return _draw(run, panels, quantity, "Throughput", stem)


def bare_metric(summary: Summary) -> str:
    """The operation alone, without opening or creating, flushing and closing."""
    if operation_name(summary) == "append":
        return "append"
    return "write" if moves_nothing_back(summary) else "read"


def _panels(summaries: list[Summary], metrics: Callable[[Summary], tuple[str, ...]]) -> list[Panel]:
    """The panel of a summary: operations that differ only in their parameters share one, as a series."""
    groups: dict[tuple[str, str, str], list[Summary]] = defaultdict(list)
    operations = list(dict.fromkeys(s.operation for s in summaries))
    chosen = [s for s in summaries if s.metric in metrics(s)]
    for s in sorted(chosen, key=lambda s: panel_order(s, operations)):
        groups[operation_name(s), s.metric, s.cache].append(s)
    return [
        Panel(metric_title(metric, group[0].method), f"{operation}, {cache_title(cache)}", tuple(group))
        for (operation, metric, cache), group in groups.items()
    ]


def _time_point(summary: Summary, by_count: bool) -> Point:
    x = summary.count if by_count else arrays_of(summary).elements
    return Point(x, published_seconds(summary), summary.low_seconds, summary.high_seconds)


def _speed_point(summary: Summary, by_count: bool) -> Point | None:
    moved, speed = decoded_megabytes(summary), throughput(summary)
    if moved is None or speed is None:
        return None
    slow, fast = (moved / t if t else None for t in (summary.high_seconds, summary.low_seconds))
    return Point(summary.count if by_count else moved, speed, slow, fast)


def _draw(run: Run, panels: list[Panel], quantity: Quantity, title: str, stem: Path) -> list[Path]:
    panels = [panel for panel in panels if any(quantity.point(s) for s in panel.summaries)]
    if not panels:
        return []
    shown = [s for panel in panels for s in panel.summaries]
    sheet = new_sheet(len(panels), _words(run, title, quantity, shown), _legend(shown), PANEL)
    dashes = _dashes(shown)
    for axes, panel in zip(sheet.panels, panels, strict=True):
        _draw_panel(axes, panel, quantity, dashes)
    return save(sheet, stem)


def _words(run: Run, title: str, quantity: Quantity, shown: list[Summary]) -> Words:
    first = shown[0]
    case = case_named(run, first.case)
    statistic = "median of the trials" if first.method == "fair" else statistic_text(case)
    drawn = f"{quantity.y_label[0].upper()}{quantity.y_label[1:]} against {quantity.x_label}, both axes logarithmic"
    drawn += f"; lines: {statistic}"
    drawn += f"; bands: {INTERVAL}"
    name = f"{first.case}: {case.title}" if case and case.title else first.case
    return Words(
        name,
        f"{title} against size of {dtype_text(first.dtype)} arrays, {first.method} method",
        caption(run, drawn, shown),
    )


def _dashes(shown: list[Summary]) -> dict[str, Dash]:
    names = dict.fromkeys(_conditions(s) for s in shown)
    return {name: DASHES[position % len(DASHES)] for position, name in enumerate(names)}


def _conditions(summary: Summary) -> str:
    return summary.conditions + (f", {summary.processes} processes" if summary.processes > 1 else "")


def _legend(shown: list[Summary]) -> list[tuple[str, Artist]]:
    from matplotlib.lines import Line2D

    entries: list[tuple[str, Artist]] = []
    for name in in_order({s.format for s in shown}):
        paint = paint_of(name)
        entries.append((contender_title(name), Line2D([], [], color=paint.colour, marker=paint.marker, markersize=4.5)))
    dashes = _dashes(shown)
    if len(dashes) > 1:
        entries += [(name, Line2D([], [], color="#5b626d", linestyle=dash)) for name, dash in dashes.items()]
    return entries


def _draw_panel(axes: Axes, panel: Panel, quantity: Quantity, dashes: dict[str, Dash]) -> None:
    lines: dict[tuple[str, str], list[Point]] = defaultdict(list)
    for s in panel.summaries:
        point = quantity.point(s)
        if point is not None and point.y > 0:
            lines[s.format, _conditions(s)].append(point)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for (name, conditions), points in lines.items():
        _draw_line(axes, sorted(points, key=lambda p: p.x), name, dashes[conditions])
    axes.grid(visible=True, axis="both")
    head(axes, panel.title, panel.subtitle)
    axes.set_xlabel(f"{quantity.x_label}, logarithmic")
    axes.set_ylabel(f"{quantity.y_label}, logarithmic")
    log_ticks(axes.xaxis)
    log_ticks(axes.yaxis, quantity.y_unit)


def _draw_line(axes: Axes, points: list[Point], name: str, dash: Dash) -> None:
    paint = paint_of(name)
    xs, ys = [p.x for p in points], [p.y for p in points]
    axes.plot(xs, ys, dash, color=paint.colour, marker=paint.marker, markersize=3.5, linewidth=1.4)
    banded = [(p.x, p.low, p.high) for p in points if p.low is not None and p.high is not None]
    if banded:
        x, low, high = zip(*banded, strict=True)
        axes.fill_between(x, low, high, color=paint.colour, alpha=0.16, linewidth=0)

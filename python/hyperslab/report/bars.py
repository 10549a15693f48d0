"""Grouped bars for create, write, open and read: the figures 1 to 20, 22 to 27 and 31 to 33 of Ambatipudi et al."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hyperslab.bench.records import Summary
from hyperslab.bench.results import Run
from hyperslab.quantities import unit_of
from hyperslab.report.captions import INTERVAL, caption, statistic_text
from hyperslab.report.palette import in_order, paint_of
from hyperslab.report.sheet import PANEL_WIDTH, Panel, Words, head, log_ticks, new_sheet, save
from hyperslab.report.views import (
    Arrays,
    arrays_of,
    case_named,
    moves_nothing_back,
    operation_name,
    panel_order,
    published_seconds,
)
from hyperslab.report.wording import (
    arrays_text,
    cache_title,
    contender_title,
    is_per_array,
    metric_title,
    operation_title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# For a larger span the axis is logarithmic; otherwise small bars would vanish.
LINEAR_SPAN = 20.0
BAR_WIDTH = 0.12  # inches


def draw_bars(run: Run, summaries: list[Summary], arrays: Arrays, stem: Path) -> list[Path]:
    """The bars of one case, method and size; None if there is nothing to show."""
    from matplotlib.patches import Patch

    panels = bar_panels([s for s in summaries if arrays_of(s) == arrays])
    if not panels:
        return []
    shown = [s for panel in panels for s in panel.summaries]
    formats = in_order({s.format for s in shown})
    legend = [(contender_title(name), Patch(color=paint_of(name).colour)) for name in formats]
    groups = max(len({_group(s) for s in panel.summaries}) for panel in panels)
    bar_width = min(max(BAR_WIDTH * groups * (len(formats) + 1.5), PANEL_WIDTH, groups * 0.85), 6.0)
    sheet = new_sheet(len(panels), _words(run, shown, panels), legend, bar_width)
    is_log = any(_needs_log(panel) for panel in panels)  # all panels have the same kind of axis
    for axes, panel in zip(sheet.panels, panels, strict=True):
        _draw_panel(axes, panel, formats, is_log)
    return save(sheet, stem)


def bar_panels(summaries: list[Summary]) -> list[Panel]:
    """The panels: create and write for each operation that writes, one for open, and read for each that reads."""
    wanted: dict[tuple[str, str], list[Summary]] = {}
    operations = list(dict.fromkeys(s.operation for s in summaries))
    reads = [s.operation for s in summaries if not moves_nothing_back(s)]
    chosen = [s for s in summaries if s.metric in _metrics_of(s, reads[0] if reads else None)]
    for summary in sorted(chosen, key=lambda s: panel_order(s, operations)):
        wanted.setdefault((summary.operation, summary.metric), []).append(summary)
    return [
        Panel(metric_title(metric, group[0].method), operation_title(operation), tuple(group))
        for (operation, metric), group in wanted.items()
    ]


def _metrics_of(summary: Summary, first_read: str | None) -> tuple[str, ...]:
    if operation_name(summary).startswith("write"):
        return "create_total", "write_durable"
    if moves_nothing_back(summary):
        return ("write_durable",)
    return ("open_total", "read") if summary.operation == first_read else ("read",)


def _words(run: Run, shown: list[Summary], panels: list[Panel]) -> Words:
    first = shown[0]
    case = case_named(run, first.case)
    per_array = any(is_per_array(s) for s in shown)
    drawn = f"Bars: {'median of the trials' if first.method == 'fair' else statistic_text(case)}"
    drawn += f"; whiskers: {INTERVAL}"
    drawn += f"; the time axes are {'logarithmic' if any(map(_needs_log, panels)) else 'linear and begin at zero'}"
    drawn += "; times are for all arrays, or for one (total / arrays) where the panel says so" * per_array
    title = f"{first.case}: {case.title}" if case and case.title else first.case
    subtitle = f"{arrays_text(first.shape, first.count, first.dtype)}, {first.method} method"
    return Words(title, subtitle, caption(run, drawn, shown))


def _needs_log(panel: Panel) -> bool:
    heights = [height for s in panel.summaries if (height := published_seconds(s) / _divisor(s)) > 0]
    return bool(heights) and max(heights) > LINEAR_SPAN * min(heights)


def _draw_panel(axes: Axes, panel: Panel, formats: list[str], is_log: bool) -> None:
    groups = list(dict.fromkeys(_group(s) for s in panel.summaries))
    heights = [published_seconds(s) / _divisor(s) for s in panel.summaries]
    scale, unit = unit_of(max(heights))
    members = {
        g: [f for f in formats if any(s.format == f and _group(s) == g for s in panel.summaries)] for g in groups
    }
    width = 0.84 / max(map(len, members.values()))
    for summary, height in zip(panel.summaries, heights, strict=True):
        mates = members[_group(summary)]
        x = groups.index(_group(summary)) + (mates.index(summary.format) + 0.5 - len(mates) / 2) * width
        axes.bar(x, height / scale, width * 0.9, color=paint_of(summary.format).colour, linewidth=0)
        _draw_whisker(axes, summary, x, width, scale)
    axes.set_xticks(range(len(groups)), groups, size=8)
    axes.set_xlim(-0.55, len(groups) - 0.45)
    first = panel.summaries[0]
    head(axes, panel.title, panel.subtitle)
    _scale_axis(axes, [h / scale for h in heights if h > 0], is_log)
    label = f"{unit} per array" if is_per_array(first) else unit
    axes.set_ylabel(f"{label}, logarithmic" if is_log else label)


def _draw_whisker(axes: Axes, summary: Summary, x: float, width: float, scale: float) -> None:
    if summary.low_seconds is None or summary.high_seconds is None:
        return
    low, high = (value / _divisor(summary) / scale for value in (summary.low_seconds, summary.high_seconds))
    axes.vlines(x, low, high, color="#15181d", linewidth=0.9)
    axes.hlines([low, high], x - width * 0.16, x + width * 0.16, color="#15181d", linewidth=0.9)


def _scale_axis(axes: Axes, heights: list[float], is_log: bool) -> None:
    if not heights or not is_log:
        axes.set_ylim(bottom=0)
        return
    axes.set_yscale("log")
    axes.set_ylim(min(heights) / 2, max(heights) * 2)
    log_ticks(axes.yaxis)


def _group(summary: Summary) -> str:
    processes = f"\n{summary.processes} processes" if summary.processes > 1 else ""
    return f"{summary.conditions}\n{cache_title(summary.cache)}{processes}"


def _divisor(summary: Summary) -> int:
    return summary.count if is_per_array(summary) else 1

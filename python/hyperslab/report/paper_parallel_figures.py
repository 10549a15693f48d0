"""The paper's figures 6 to 8 and 10, from measurements on the striped store: times, and what two models predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hyperslab.parallel.experiments import Experiment
from hyperslab.parallel.paper_figures import PaperFigure, paper_figures
from hyperslab.parallel.session import BASELINE, OURS, ParallelEvaluation
from hyperslab.report.figures import style
from hyperslab.report.palette import paint_of
from hyperslab.report.sheet import Words, head, new_sheet, save

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

FORMAT_OF = {"hdf5": "hdf5", "zarr": "zarr3"}
LABELS = {"hdf5": "HDF5, a shared file", "zarr": "Zarr, a file per chunk"}
STYLES = {OURS: "-", BASELINE: ":"}
PANEL = 3.0  # inches wide
TITLE = "The paper's figures 6 to 8 and 10, on the striped store"


@dataclass(frozen=True)
class Point:
    """One experiment: processes or servers, the median and the extremes of its runs, and what each model predicts."""

    x: float
    seconds: float
    low: float
    high: float
    predicted: dict[str, float]


def draw_paper_figures(made: ParallelEvaluation, directory: Path) -> list[Path]:
    """Draw all panels whose experiments were measured, on one sheet, as PNG and SVG; returns their paths."""
    panels = [(figure, points) for figure in paper_figures() if (points := points_of(made, figure))]
    if not panels:
        return []
    directory.mkdir(parents=True, exist_ok=True)
    stores = f"{made.store}."
    if made.elsewhere is not None:
        stores += f" Panel 10b: {made.elsewhere.store}."
    caption = (
        "Points: medians of three runs, with the fastest and the slowest. Solid lines: predicted by formulas 9 and 10 "
        f"with turns at the servers. Dotted lines: P2, bytes only. {stores}"
    )
    with style():
        words = Words(TITLE, "seconds of the slowest process; Zarr's files are on all servers", caption)
        sheet = new_sheet(len(panels), words, _legend(), PANEL)
        for axes, (figure, points) in zip(sheet.panels, panels, strict=True):
            _draw(axes, figure, points)
        return save(sheet, directory / "paper-figures")


def points_of(made: ParallelEvaluation, figure: PaperFigure) -> dict[str, list[Point]]:
    """The measured experiments of a panel, by library; only those lines that have at least two points."""
    source = made.elsewhere if figure.elsewhere else made
    if source is None:
        return {}
    positions: dict[Experiment, int] = {each.experiment: k for k, each in enumerate(source.measured)}
    lines: dict[str, list[Point]] = {}
    for experiment in figure.experiments:
        position = positions.get(experiment)
        if position is None:
            continue
        each = source.measured[position]
        predicted = {name: source.seconds[name][position] for name in STYLES}
        x = experiment.processes if figure.along == "processes" else experiment.servers
        point = Point(float(x), each.median_seconds, min(each.seconds), max(each.seconds), predicted)
        lines.setdefault(experiment.library, []).append(point)
    return {library: sorted(points, key=lambda one: one.x) for library, points in lines.items() if len(points) > 1}


def _legend() -> list[tuple[str, Artist]]:
    from matplotlib.lines import Line2D

    entries: list[tuple[str, Artist]] = []
    for library, label in LABELS.items():
        paint = paint_of(FORMAT_OF[library])
        entries.append((label, Line2D([], [], color=paint.colour, marker=paint.marker, markersize=4.5)))
    return entries


def _draw(axes: Axes, figure: PaperFigure, lines: dict[str, list[Point]]) -> None:
    for library, points in lines.items():
        paint = paint_of(FORMAT_OF[library])
        along = [point.x for point in points]
        middle = [point.seconds for point in points]
        reach = [[p.seconds - p.low for p in points], [p.high - p.seconds for p in points]]
        axes.errorbar(
            along, middle, yerr=reach, fmt=paint.marker, color=paint.colour, markersize=4.5, elinewidth=0.8, capsize=1.5
        )
        for name, line in STYLES.items():
            axes.plot(along, [p.predicted[name] for p in points], line, color=paint.colour, linewidth=1)
    ticks = sorted({point.x for points in lines.values() for point in points})
    axes.set_xscale("log", base=2)
    _label(axes, ticks)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("seconds")
    axes.set_xlabel("processes" if figure.along == "processes" else "data servers of the file")
    head(axes, f"Figure {figure.number}", figure.title)


def _label(axes: Axes, ticks: Sequence[float]) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    axes.xaxis.set_major_locator(FixedLocator(list(ticks)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(list(ticks), [f"{tick:g}" for tick in ticks])

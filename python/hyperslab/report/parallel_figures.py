"""Figures of an evaluation on the striped store: speed-up against processes and servers (figures 6, 7 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hyperslab.parallel.session import OURS, ParallelEvaluation
from hyperslab.report.figures import style
from hyperslab.report.palette import paint_of
from hyperslab.report.sheet import Words, head, new_sheet, save

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

FORMAT_OF = {"zarr": "zarr3", "hdf5": "hdf5"}
PANEL = 3.0  # inches wide
Series = dict[tuple[str, int], list[tuple[float, float, float]]]  # x, measured and predicted, by library and servers


def draw_parallel(made: ParallelEvaluation, directory: Path) -> list[Path]:
    """Draw both figures as PNG and SVG, and return their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    against_processes = _panels(made, by_servers=False)
    against_servers = _panels(made, by_servers=True)
    caption = f"Points are measured, lines are predicted by {OURS}. {made.store}."
    paths = []
    for stem, panels, title, x in (
        ("speedup-processes", against_processes, "Speed-up against processes", "processes"),
        ("speedup-servers", against_servers, "Speed-up against the stripe count", "data servers of the file"),
    ):
        if not panels:
            continue
        with style():
            words = Words(title, "striped store; Zarr has a file per chunk on all servers", caption)
            sheet = new_sheet(len(panels), words, _legend(), PANEL)
            for axes, (name, series) in zip(sheet.panels, panels.items(), strict=True):
                _draw(axes, name, series, x)
            paths += save(sheet, directory / stem)
    return paths


def _panels(made: ParallelEvaluation, *, by_servers: bool) -> dict[str, Series]:
    """What each panel shows. The speed-up is that against the fewest processes, or servers, of the same line."""
    panels: dict[str, dict[tuple[str, int], list[tuple[int, float, float]]]] = {}
    for each, predicted in zip(made.measured, made.seconds[OURS], strict=True):
        one = each.experiment
        if by_servers and one.library != "hdf5":
            continue
        name = f"{one.direction} {'x'.join(map(str, one.shape))}, {one.partition}"
        line, x = ("hdf5", one.processes), one.servers
        if not by_servers:
            line, x = (one.library, one.servers), one.processes
        panels.setdefault(name, {}).setdefault(line, []).append((x, each.median_seconds, predicted))
    return {
        name: {line: _speedups(sorted(points)) for line, points in lines.items() if len(points) > 1}
        for name, lines in panels.items()
    }


def _speedups(points: Sequence[tuple[int, float, float]]) -> list[tuple[float, float, float]]:
    _, measured, predicted = points[0]
    return [(float(x), measured / a, predicted / b) for x, a, b in points]


def _legend() -> list[tuple[str, Artist]]:
    from matplotlib.lines import Line2D

    entries: list[tuple[str, Artist]] = []
    for library, name in FORMAT_OF.items():
        paint = paint_of(name)
        entries.append((library, Line2D([], [], color=paint.colour, marker=paint.marker, markersize=4.5)))
    return entries


def _draw(axes: Axes, name: str, series: Series, x: str) -> None:
    for (library, count), points in series.items():
        paint = paint_of(FORMAT_OF[library])
        along = [point[0] for point in points]
        axes.plot(along, [p[1] for p in points], linestyle="", marker=paint.marker, color=paint.colour, markersize=4)
        axes.plot(along, [p[2] for p in points], color=paint.colour, linewidth=1)
        axes.annotate(str(count), (along[-1], points[-1][2]), xytext=(3, 0), textcoords="offset points", size=7)
    head(axes, name, "numbers: servers of the file" if x == "processes" else "numbers: processes")
    axes.set_xlabel(x)

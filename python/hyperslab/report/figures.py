"""Every figure of a run, as in the papers: grouped bars, log-log scale lines, the speed curves of 2002."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from hyperslab.bench.records import Summary
from hyperslab.bench.results import Run
from hyperslab.report.bars import draw_bars
from hyperslab.report.lines import draw_scale_lines, draw_speed_curves
from hyperslab.report.sheet import STYLE
from hyperslab.report.views import by_case_and_method, sizes

DIRECTORY = "figures"


def draw(run: Run) -> list[Path]:
    """Draw all figures as PNG and SVG into the run's directory `figures`, and return their paths.

    Bars show the largest arrays of a series. Lines show the whole series, and the page shows everything.
    """
    directory = run.directory / DIRECTORY
    directory.mkdir(exist_ok=True)
    paths: list[Path] = []
    with style():
        for (case, method), summaries in by_case_and_method(run).items():
            paths += _figures_of(run, summaries, directory / f"{case}-{method}")
    return paths


def _figures_of(run: Run, summaries: list[Summary], stem: Path) -> list[Path]:
    return [
        *draw_bars(run, summaries, sizes(summaries)[-1], stem.with_name(f"{stem.name}-bars")),
        *draw_scale_lines(run, summaries, stem.with_name(f"{stem.name}-scale")),
        *draw_speed_curves(run, summaries, stem.with_name(f"{stem.name}-speed")),
    ]


def style() -> AbstractContextManager[None]:
    """A context with the matplotlib settings of every figure."""
    import matplotlib

    # Saving names a file canvas, so no window system is ever needed.
    return matplotlib.rc_context(STYLE)  # type: ignore[arg-type] # its keys are a Literal of 300 names

"""Figures of an evaluation: predicted against measured time (figure 11 of the paper), and accuracies (figure 12)."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hyperslab.model.accuracy import PAPER_EXPERIMENTS, PAPER_RIGHT, Accuracy, Outcome
from hyperslab.report.figures import style
from hyperslab.report.palette import paint_of
from hyperslab.report.sheet import Words, head, log_ticks, new_sheet, save

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

# For each library of the model, the format whose colour it has.
FORMAT_OF = {"zarr": "zarr3", "flat": "npy"}
OURS, OTHERS = "#e0004d", "#a3adba"
PANEL = 3.4  # inches wide


def draw_scatter(outcomes: Sequence[Outcome], models: Sequence[str], caption: str, stem: Path) -> list[Path]:
    """Draw predicted against measured seconds, one panel per model; the diagonal is a perfect prediction."""
    with style():
        sheet = new_sheet(len(models), _words("Predicted against measured time", caption), _legend(outcomes), PANEL)
        for axes, model in zip(sheet.panels, models, strict=True):
            _draw_cloud(axes, outcomes, model)
        return save(sheet, stem)


def draw_accuracy_bars(accuracies: Mapping[str, Accuracy], caption: str, stem: Path) -> list[Path]:
    """Draw the share of experiments for which each model predicts the faster library, and the regret of its choices."""
    with style():
        sheet = new_sheet(2, _words("Choosing by prediction", caption), [], PANEL + 0.8)
        names = list(accuracies)
        shares = [accuracies[name].fastest_accuracy or 0.0 for name in names]
        _draw_bars(sheet.panels[0], names, [100 * share for share in shares], "%")
        paper = 100 * PAPER_RIGHT / PAPER_EXPERIMENTS
        sheet.panels[0].axvline(paper, color="#15181d", linewidth=0.9, linestyle="--")
        sheet.panels[0].set_xlim(0, 100)
        head(sheet.panels[0], "Faster library predicted", f"% of experiments; dashed: {paper:.0f} % in the paper")
        regrets = [100 * (accuracies[name].regret_worst or 0.0) for name in names]
        _draw_bars(sheet.panels[1], names, regrets, "%")
        head(sheet.panels[1], "Worst regret", "% more time than the fastest layout and library")
        return save(sheet, stem)


def _words(title: str, caption: str) -> Words:
    return Words(title, "serial, HDF5 and Zarr, the paper's experiments scaled to this machine", caption)


def _legend(outcomes: Sequence[Outcome]) -> list[tuple[str, Artist]]:
    from matplotlib.lines import Line2D

    entries: list[tuple[str, Artist]] = []
    for library in dict.fromkeys(outcome.library for outcome in outcomes):
        paint = paint_of(FORMAT_OF.get(library, library))
        entries.append((library, Line2D([], [], color=paint.colour, marker=paint.marker, linestyle="", markersize=4.5)))
    return entries


def _draw_cloud(axes: Axes, outcomes: Sequence[Outcome], model: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    for library in dict.fromkeys(outcome.library for outcome in outcomes):
        mine = [outcome for outcome in outcomes if outcome.library == library]
        paint = paint_of(FORMAT_OF.get(library, library))
        x, y = [outcome.seconds for outcome in mine], [outcome.predicted[model] for outcome in mine]
        axes.plot(x, y, linestyle="", marker=paint.marker, color=paint.colour, markersize=3.2, alpha=0.75)
    ends = [outcome.seconds for outcome in outcomes]
    low, high = min(ends) / 2, max(ends) * 2
    axes.plot([low, high], [low, high], color="#8a8f98", linewidth=0.8, zorder=0)
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.grid(visible=True, axis="both")
    head(axes, model, f"{len(outcomes)} cells")
    axes.set_xlabel("measured, s")
    axes.set_ylabel("predicted, s")
    log_ticks(axes.xaxis)
    log_ticks(axes.yaxis)


def _draw_bars(axes: Axes, names: Sequence[str], lengths: Sequence[float], unit: str) -> None:
    positions = range(len(names))
    axes.barh(positions, lengths, color=[OURS if name == names[0] else OTHERS for name in names], height=0.7)
    axes.set_yticks(positions, [textwrap.fill(name, 11) for name in names], size=7)
    axes.invert_yaxis()
    axes.grid(visible=True, axis="x")
    axes.grid(visible=False, axis="y")
    for position, length in zip(positions, lengths, strict=True):
        axes.annotate(f" {length:.3g} {unit}", (length, position), va="center", size=7, annotation_clip=False)

"""Stacked bars of predicted costs by phase, as in figures 4, 5 and 9 of the cost model's paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hyperslab.model.predict import Prediction
from hyperslab.model.terms import PHASES, Phase
from hyperslab.quantities import unit_of
from hyperslab.report.sheet import PANEL_WIDTH, STYLE, Sheet, Words, head, new_sheet, save_as, saved_bytes

COLOURS: dict[Phase, str] = {
    "memory_copy": "#1f5fa8",
    "cache_read": "#6ba3dc",
    "device_read": "#e07b1a",
    "device_write": "#b5534b",
    "codec": "#7a52a8",
    "per_chunk": "#35a873",
    "per_call": "#a3adba",
    "computing": "#e4e7ec",
}
INK = "#15181d"


def draw_costs(found: Sequence[Prediction], what: str, cache: str, path: Path) -> None:
    """Draw one bar per prediction, stacked by phase and with its interval, and save it as SVG or PNG."""
    with _drawn(found, what, f"predicted, {cache}") as sheet:
        save_as(sheet, path)


def costs_svg(found: Sequence[Prediction], what: str, subtitle: str) -> bytes:
    """The same figure as an SVG file in memory."""
    with _drawn(found, what, subtitle) as sheet:
        return saved_bytes(sheet, ".svg")


@contextmanager
def _drawn(found: Sequence[Prediction], what: str, subtitle: str) -> Iterator[Sheet]:
    """The figure, while matplotlib's settings are ours."""
    import matplotlib
    from matplotlib.patches import Patch

    shown = [phase for phase in PHASES if any(prediction.cost.phases[phase] > 0 for prediction in found)]
    legend = [(phase.replace("_", " "), Patch(color=COLOURS[phase])) for phase in shown]
    libraries = list(dict.fromkeys(prediction.library for prediction in found))
    caption = "Bars: predicted seconds by phase; whiskers: 95 % interval of the prediction."
    extrapolating = [str(prediction.layout) for prediction in found if prediction.cost.extrapolating]
    if extrapolating:
        caption += f" Outside the range of the training: {', '.join(dict.fromkeys(extrapolating))}."
    with matplotlib.rc_context(STYLE):  # type: ignore[arg-type] # its keys are a Literal of 300 names
        width = max(PANEL_WIDTH, 0.55 * len({str(prediction.layout) for prediction in found}))
        sheet = new_sheet(len(libraries), Words(what, subtitle, caption), legend, min(width, 6.0))
        scale, unit = unit_of(max(prediction.cost.seconds for prediction in found))
        for axes, library in zip(sheet.panels, libraries, strict=True):
            mine = [prediction for prediction in found if prediction.library == library]
            for position, prediction in enumerate(mine):
                _draw_bar(axes, position, prediction, scale)
            names = [str(prediction.layout).replace("x", "×") for prediction in mine]
            axes.set_xticks(range(len(mine)), names, size=7, rotation=25 if len(mine) > 2 else 0)
            axes.set_xlim(-0.6, len(mine) - 0.4)
            axes.set_ylabel(unit)
            head(axes, library, "seconds by layout")
        yield sheet


def _draw_bar(axes: object, position: int, prediction: Prediction, scale: float) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
    low = 0.0
    for phase in PHASES:
        height = prediction.cost.phases[phase] / scale
        axes.bar(position, height, 0.7, bottom=low, color=COLOURS[phase], linewidth=0)
        low += height
    axes.vlines(position, prediction.cost.low / scale, prediction.cost.high / scale, color=INK, linewidth=0.9)

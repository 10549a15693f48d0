"""`BlameMap`: which version last changed what, as a map with one colour for each version: for a terminal, or a file."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import UsageError
from hyperslab.replacing import replace_with
from hyperslab.report.figures import style
from hyperslab.report.sheet import FILE_OPTIONS, Words, head, new_sheet, save_as

if TYPE_CHECKING:
    from hyperslab.versions.branching.blaming import Blame, Change
    from hyperslab.versions.branching.element_blame import ElementBlame

ENDINGS = (*FILE_OPTIONS, ".html")
CELLS = 480  # along an axis of a figure
PANEL_WIDTH = 6.4  # inches
MOST_LISTED = 24  # versions in the legend
TURN = 0.381966  # of the circle of colours, so that neighbours in time differ
NOT_ASKED = -1


@dataclass(frozen=True)
class BlameMap:
    """A map of one or two axes: for each cell the position in `changes` of the version that last changed it, or -1."""

    path: str
    version: str
    unit: str
    numbers: npt.NDArray[np.int64]
    changes: tuple[Change, ...]

    @classmethod
    def of(cls, blame: Blame | ElementBlame) -> BlameMap:
        """The map of what `VersionedFile.blame` or `blame_elements` found.

        Raises
        ------
        UsageError
            More than two axes have several chunks or elements.
        """
        numbers, unit = blame.numbers, "elements"
        indices: npt.NDArray[np.int64] | None = getattr(blame, "indices", None)
        if indices is not None:
            unit = "chunks"
            first = indices.min(axis=0, initial=np.iinfo(np.int64).max)
            shape = indices.max(axis=0, initial=-1) + 1 - first if len(indices) else (0,) * indices.shape[1]
            numbers = np.full(shape, NOT_ASKED, np.int64)
            numbers[tuple((indices - first).T)] = blame.numbers
        numbers = numbers.reshape([length for length in numbers.shape if length != 1])
        if numbers.ndim > 2:
            said = f"a map has two axes, and this selection of {blame.path} has {numbers.ndim} with several {unit}"
            raise UsageError(f"{said}: give an index for the others")
        return cls(blame.path, blame.version, unit, np.atleast_2d(numbers), blame.changes)

    def cells(self, rows: int, columns: int) -> npt.NDArray[np.int64]:
        """The map with at most so many cells along each axis; of several versions in a cell, the latest counts."""
        found = self.numbers
        for axis, most in ((0, rows), (1, columns)):
            length = found.shape[axis]
            if length > most:
                found = np.maximum.reduceat(found, ceil_div(np.arange(most) * length, most), axis=axis)
        return found


def colour(number: int) -> str:
    """The colour of the version at a position in the changes."""
    shade = 0.92 if number % 2 else 0.72
    return "#" + "".join(f"{round(255 * one):02x}" for one in colorsys.hsv_to_rgb(number * TURN % 1.0, 0.72, shade))


def draw_blame(found: BlameMap, target: Path) -> None:
    """Draw a map as .png, .svg or .html.

    Raises
    ------
    UsageError
        The target has another ending, or nothing can be drawn.
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    if target.suffix not in ENDINGS:
        raise UsageError(f"the name {target} does not say which format to draw: end it with {', '.join(ENDINGS)}")
    if not found.numbers.size:
        raise UsageError(f"the selection of {found.path} is empty: there is nothing to draw")
    latest = list(enumerate(found.changes))[-MOST_LISTED:]
    words = Words(
        f"{found.path} in {found.version}",
        f"{len(found.changes)} versions" + (f", the latest {MOST_LISTED} are listed" if latest[0][0] else ""),
        f"The version that last changed each of the {found.unit}; of several in one cell of the picture, the latest.",
    )
    with style():
        sheet = new_sheet(1, words, [(one.name, Patch(color=colour(at))) for at, one in latest], PANEL_WIDTH)
        [axes] = sheet.panels
        head(axes, found.path, f"{found.numbers.size:,} {found.unit}")
        axes.grid(visible=False)
        cells = np.ma.masked_equal(found.cells(CELLS, CELLS), NOT_ASKED)
        rows, columns = found.numbers.shape
        colours = ListedColormap([colour(at) for at in range(len(found.changes))])
        bounds = (-0.5, len(found.changes) - 0.5)
        axes.imshow(
            cells, cmap=colours, vmin=bounds[0], vmax=bounds[1], extent=(0, columns, rows, 0), aspect="auto",
            interpolation="nearest",
        )  # fmt: skip
        axes.set_xlabel(f"{found.unit} along the last axis")
        if rows == 1:
            axes.set_yticks([])
        if target.suffix != ".html":
            save_as(sheet, target)
            return
        drawn = BytesIO()
        sheet.figure.savefig(drawn, format="svg", **FILE_OPTIONS[".svg"])
    replace_with(target, _page(found, drawn.getvalue().decode()).encode())


def _page(found: BlameMap, drawn: str) -> str:
    """A page with the map and a table of the versions."""
    title = escape(f"{found.path} in {found.version}")
    rows = "".join(
        f'<tr><td style="background:{colour(at)}">&nbsp;</td>'
        + "".join(
            f"<td>{escape(text)}</td>"
            for text in (one.name, f"{one.version.time:%Y-%m-%d %H:%M:%S}", one.author or "", one.message or "")
        )
        + "</tr>\n"
        for at, one in reversed(list(enumerate(found.changes)))
    )
    head = "<tr><th></th><th>version</th><th>time (UTC)</th><th>author</th><th>message</th></tr>"
    return (
        f'<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title>\n'
        "<style>body{font-family:sans-serif;margin:2em}td,th{padding:.2em .8em;text-align:left}</style>\n"
        f"{drawn[drawn.index('<svg') :]}\n<table>{head}\n{rows}</table></html>\n"
    )

"""A picture of the difference between two versions: where elements of 1-D and 2-D arrays changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import UsageError
from hyperslab.report.figures import style
from hyperslab.report.sheet import FILE_OPTIONS, Words, head, new_sheet, save_as

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hyperslab.versions.inspect.diff import ArrayDiff, VersionDiff

CHANGED, ADDED, REMOVED, CHUNKS = "#e0004d", "#bfe3cf", "#d5dae1", "#c3cad4"
LINE_CELLS, IMAGE_CELLS = 360, 120  # along an axis
MOST_PANELS = 12
MOST_CHUNK_LINES = 64
LEAST_SHARE = 0.5  # the smallest share is drawn as this one, so that one element among millions is visible
PANEL_WIDTH = 3.6  # inches


def draw_difference(found: VersionDiff, target: Path) -> list[str]:
    """Draw where elements changed. This reads the chunks that differ.

    Parameters
    ----------
    found : VersionDiff
        The difference.
    target : Path
        The path of a .png or .svg file.

    Returns
    -------
    list[str]
        The arrays that differ but were not drawn: arrays with more than two axes, arrays in only one version, and
        arrays for which there was no room.

    Raises
    ------
    UsageError
        The target has another ending, or no array can be drawn.
    DamagedFile
        Chunks cannot be read.
    """
    from matplotlib.patches import Patch

    if target.suffix not in FILE_OPTIONS:
        raise UsageError(f"the name {target} does not say which format to draw: end it with {', '.join(FILE_OPTIONS)}")
    drawn = [array for array in found.arrays.values() if _can_be_drawn(array)][:MOST_PANELS]
    if not drawn:
        raise UsageError(f"{found.before} and {found.after}: no array with one or two axes is in both and differs")
    left_out = [array.path for array in found.arrays.values() if array not in drawn]
    words = Words(
        f"{found.before} → {found.after}",
        f"{len(found.arrays)} arrays differ" + (f", {len(drawn)} are shown" if left_out else ""),
        "Share of the elements in each cell of the picture that differ; even the smallest share is drawn strong enough"
        " to be visible. If there are few chunks, thin lines show their boundaries.",
    )
    colours = {"changed": CHANGED, "only after": ADDED, "only before": REMOVED}
    with style():
        sheet = new_sheet(
            len(drawn), words, [(name, Patch(color=colour)) for name, colour in colours.items()], PANEL_WIDTH
        )
        for axes, array in zip(sheet.panels, drawn, strict=True):
            count = array.elements().count
            head(axes, array.path, f"{array.chunk_count:,} chunks differ, elements: {count:,}")
            axes.grid(visible=False)
            (_draw_line if len(array.chunk_shape) == 1 else _draw_image)(axes, array)
        save_as(sheet, target)
    return left_out


def _can_be_drawn(array: ArrayDiff) -> bool:
    shapes = [shape for shape in array.shape if shape is not None]
    is_drawable = array.problem is None and len(array.chunk_shape) in (1, 2) and all(map(all, shapes))
    return array.status == "changed" and is_drawable


def shares(array: ArrayDiff, cells: int) -> npt.NDArray[np.float64]:
    """The share of elements that differ in each cell of a grid with at most `cells` cells along each axis."""
    lengths = np.asarray([max(pair) for pair in zip(*array.shape, strict=True)])
    counts = np.minimum(lengths, cells)
    changed_counts = np.zeros(counts, np.int64)
    for coordinates in array.coordinates():
        np.add.at(changed_counts, tuple((coordinates * counts // lengths).T), 1)
    sizes = np.ones((), np.int64)
    for length, count in zip(lengths.tolist(), counts.tolist(), strict=True):
        bounds = ceil_div(np.arange(count + 1) * length, count)  # the first element of each cell
        sizes = np.multiply.outer(sizes, np.diff(bounds))
    return changed_counts / sizes


def _seen(share: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.where(share > 0, LEAST_SHARE + (1 - LEAST_SHARE) * share, 0)


def _draw_line(axes: Axes, array: ArrayDiff) -> None:
    (before,), (after,) = array.shape
    length, seen = max(before, after), _seen(shares(array, LINE_CELLS))
    _draw_outside(axes, [(before, after)])
    axes.stairs(seen, np.linspace(0, length, len(seen) + 1), fill=True, color=CHANGED)
    for position in _bounds_of_chunks(length, array.chunk_shape[0]):
        axes.axvline(position, color=CHUNKS, linewidth=0.4, zorder=0)
    axes.set_xlim(0, length)
    axes.set_ylim(0, 1.04)
    axes.set_yticks([])
    axes.set_xlabel("index")


def _draw_image(axes: Axes, array: ArrayDiff) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    (rows, columns) = (max(pair) for pair in zip(*array.shape, strict=True))
    seen = np.ma.masked_equal(_seen(shares(array, IMAGE_CELLS)), 0)
    _draw_outside(axes, list(zip(*array.shape, strict=True)))
    colours = LinearSegmentedColormap.from_list("changed", ["#ffffff", CHANGED])
    bounds: Any = (0, columns, rows, 0)
    axes.imshow(seen, cmap=colours, vmin=0, vmax=1, extent=bounds, aspect="auto", interpolation="nearest", zorder=2)
    for at in _bounds_of_chunks(columns, array.chunk_shape[1]):
        axes.axvline(at, color=CHUNKS, linewidth=0.4, zorder=0)
    for at in _bounds_of_chunks(rows, array.chunk_shape[0]):
        axes.axhline(at, color=CHUNKS, linewidth=0.4, zorder=0)
    axes.set_xlim(0, columns)
    axes.set_ylim(rows, 0)
    axes.set_xlabel("index of the last axis")
    axes.set_ylabel("index of the first axis")


def _draw_outside(axes: Axes, lengths: list[tuple[int, int]]) -> None:
    """Mark what only one version has: columns along the last axis, rows along the first."""
    for position, (before, after) in enumerate(reversed(lengths)):
        if before != after:
            span: Any = axes.axhspan if position else axes.axvspan
            colour = ADDED if after > before else REMOVED
            span(min(before, after), max(before, after), color=colour, linewidth=0, zorder=0)


def _bounds_of_chunks(length: int, chunk: int) -> range:
    bounds = range(chunk, length, chunk)
    return bounds if len(bounds) <= MOST_CHUNK_LINES else range(0)

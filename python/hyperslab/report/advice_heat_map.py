"""Which chunks the calls touch, and how often, in today's layout and in the advised one: a figure for the page."""

from __future__ import annotations

from html import escape
from math import log1p

import numpy as np
import numpy.typing as npt

from hyperslab.advise.candidate import Candidate
from hyperslab.advise.demand import Demand
from hyperslab.advise.results import ArrayAdvice
from hyperslab.chunk_grid import ceil_div

SIDE, GAP, TOP, WIDTH = 220, 24, 22, 480
MOST_CELLS = 32  # along an axis of the figure
MOST_COUNTED = 4_000_000  # chunks of the two axes that are shown
PAINT = "#c2410c"

Counts = npt.NDArray[np.float64]


def heat_maps(advice: ArrayAdvice) -> str:
    """The figure; empty if nothing is rewritten, or if there is nothing to show."""
    today, chosen = advice.today.candidate, advice.chosen.candidate
    shape = advice.array.shape
    if chosen.is_today or len(shape) < 2:
        return ""
    chunks = [_chunk_of(one, shape) for one in (today, chosen)]
    axes = _axes(shape, chunks)
    counted = [_counts(advice.demands, shape, chunk, axes) for chunk in chunks]
    if counted[0] is None or counted[1] is None:
        return ""
    most = max(float(one.max()) for one in counted if one is not None)
    if most <= 0:
        return ""
    names = [f"axis {axis}" if advice.array.dims is None else advice.array.dims[axis] for axis in axes]
    parts, said = [], []
    for place, (title, counts, chunk) in enumerate(zip(("today", "advised"), counted, chunks, strict=True)):
        assert counts is not None
        left = place * (SIDE + GAP)
        parts.append(f'<text x="{left}" y="14">{title}: chunks of {escape(" × ".join(map(str, chunk)))}</text>')
        parts.append(_cells(counts, left, most))
        total = sum(float(one.touches(chunk).sum()) * one.weight for one in advice.demands)
        said.append(f"{title}, {total:,.0f} chunks are read or written")
    caption = (
        f"Each rectangle is a chunk, along {names[0]} (downwards) and {names[1]} (to the right); the darker it is, the "
        f"more often your calls touch it. {said[0][0].upper()}{said[0][1:]}; {said[1]}."
    )
    height = TOP + SIDE + 4
    return (
        f'<h3>Chunks that your calls touch</h3><figure class="pane"><svg viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(caption)}">{"".join(parts)}</svg><figcaption>{escape(caption)}</figcaption></figure>'
    )


def _chunk_of(one: Candidate, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The chunk shape along today's axes; the rows of an array in one piece."""
    chunk = shape if one.layout.contiguous else one.layout.chunk_shape
    if one.order is not None:
        chunk = tuple(chunk[one.order.index(axis)] for axis in range(len(chunk)))
    return tuple(max(1, min(pair)) for pair in zip(chunk, shape, strict=True))


def _axes(shape: tuple[int, ...], chunks: list[tuple[int, ...]]) -> tuple[int, int]:
    """The two axes that are cut most, in either layout."""
    cuts = [max(ceil_div(length, chunk[axis]) for chunk in chunks) for axis, length in enumerate(shape)]
    first, second = sorted(sorted(range(len(shape)), key=lambda axis: -cuts[axis])[:2])
    return first, second


def _counts(
    demands: list[Demand], shape: tuple[int, ...], chunk: tuple[int, ...], axes: tuple[int, int]
) -> Counts | None:
    """How often each chunk is touched along two axes; all chunks of the other axes together."""
    rows, columns = (ceil_div(shape[axis], chunk[axis]) for axis in axes)
    if rows * columns > MOST_COUNTED:
        return None
    corners = np.zeros((rows + 1, columns + 1))
    for demand in demands:
        boxes, size = demand.boxes, np.array(chunk, np.int64)
        first, last = boxes.starts // size, (boxes.starts + boxes.lengths - 1) // size
        others = [axis for axis in range(len(shape)) if axis not in axes]
        weight = (last - first + 1)[:, others].prod(axis=1) * demand.weight
        (a, b), (c, d) = ((first[:, axis], last[:, axis] + 1) for axis in axes)
        for row, column, sign in ((a, c, 1), (a, d, -1), (b, c, -1), (b, d, 1)):
            np.add.at(corners, (row, column), sign * weight)
    touches: Counts = corners.cumsum(axis=0).cumsum(axis=1)[:rows, :columns]
    return touches


def _cells(counts: Counts, left: int, most: float) -> str:
    """One map: several chunks share a cell if there are many, and neighbours of one shade share a rectangle."""
    for axis in (0, 1):
        width = ceil_div(counts.shape[axis], MOST_CELLS)
        counts = np.maximum.reduceat(counts, np.arange(0, counts.shape[axis], width), axis=axis)
    rows, columns = counts.shape
    high, wide = SIDE / rows, SIDE / columns
    shapes = [f'<rect x="{left}" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="var(--rule)"/>']
    for row in range(rows):
        shades = [round(log1p(value) / log1p(most), 2) for value in counts[row].tolist()]
        start = 0
        while start < columns:
            stop = start + 1
            while stop < columns and shades[stop] == shades[start]:
                stop += 1
            if shades[start] > 0:
                place = f'x="{left + start * wide:.1f}" y="{TOP + row * high:.1f}"'
                size = f'width="{(stop - start) * wide:.1f}" height="{high:.1f}"'
                shapes.append(f'<rect {place} {size} fill="{PAINT}" fill-opacity="{shades[start]}"/>')
            start = stop
    grid = 'stroke="var(--rule)" stroke-width="0.4"'
    shapes += [f'<line x1="{left}" y1="{TOP + row * high:.1f}" x2="{left + SIDE}" y2="{TOP + row * high:.1f}" {grid}/>'
              for row in range(1, rows)]  # fmt: skip
    shapes += [f'<line x1="{left + n * wide:.1f}" y1="{TOP}" x2="{left + n * wide:.1f}" y2="{TOP + SIDE}" {grid}/>'
              for n in range(1, columns)]  # fmt: skip
    return "".join(shapes)

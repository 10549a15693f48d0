"""The chunk grid of a traced array as a figure: bars along one axis, or a map of two, with counts and a legend."""

from __future__ import annotations

from html import escape
from math import log1p, prod

from hyperslab.chunk_grid import ceil_div
from hyperslab.quantities import names_text
from hyperslab.trace.summaries import ArraySummary

WIDTH, LEFT, RIGHT, TOP = 480, 40, 12, 20
ROOM = WIDTH - LEFT - RIGHT
BARS_HEIGHT, LEAST_HEIGHT, MOST_HEIGHT, MOST_CELL = 110, 60, 300, 26
PAINT, NEVER = "#1f5fa8", "var(--grid)"
FAINT = 0.18

Cells = list[list[int]]


def chunk_map(one: ArraySummary) -> str:
    """The figure; empty if there is one chunk only, or no grid."""
    if not one.heat or not one.heat[0] or (one.chunk_count or 0) < 2 or not one.array.chunks:
        return ""
    # The longer axis goes to the right, where there is room.
    is_turned = len(one.heat_axes) == 2 and len(one.heat) > len(one.heat[0])
    cells = [list(column) for column in zip(*one.heat, strict=True)] if is_turned else one.heat
    axes = one.heat_axes[::-1] if is_turned else one.heat_axes
    drawn, height = _bars(cells[0]) if len(cells) == 1 else _grid(cells, one, axes)
    below, right = TOP + height, axes[-1]
    drawn += _ticks_below(_chunk_count(one, right), below)
    drawn += f'<text x="{LEFT}" y="{below + 30}">{escape(_axis_text(one, right))} →</text>'
    if len(cells) > 1:
        drawn += f'<text x="{LEFT}" y="{TOP - 7}">{escape(_axis_text(one, axes[0]))} ↓</text>'
    legend, most = "", max(map(max, cells))
    full = below + 36
    if len(cells) > 1:
        legend, full = _legend(most, below + 44), below + 66
    caption = _caption(one, cells, axes, most)
    return (
        f'<figure class="pane"><svg class="map" viewBox="0 0 {WIDTH} {full}" role="img" aria-label="{escape(caption)}">'
        f"{drawn}{legend}</svg><figcaption>{escape(caption)}</figcaption></figure>"
    )


def _chunk_count(one: ArraySummary, axis: int) -> int:
    return ceil_div(one.array.shape[axis], (one.array.chunks or one.array.shape)[axis])


def _axis_text(one: ArraySummary, axis: int) -> str:
    count, length = _chunk_count(one, axis), (one.array.chunks or one.array.shape)[axis]
    return f"axis {axis}: {count:,} chunk{'s' if count != 1 else ''} of {length:,}"


def _caption(one: ArraySummary, cells: Cells, axes: tuple[int, ...], most: int) -> str:
    lengths = [len(cells[0])] if len(axes) == 1 else [len(cells), len(cells[0])]
    each = prod(ceil_div(_chunk_count(one, axis), length) for axis, length in zip(axes, lengths, strict=True))
    others = [axis for axis in range(len(one.array.shape)) if axis not in axes and _chunk_count(one, axis) > 1]
    each *= prod(_chunk_count(one, axis) for axis in others)
    if each == 1:
        return f"How often the program touched each chunk: at most {most:,} times."
    noun = "bar" if len(cells) == 1 else "cell"
    along = f", with all along {names_text(f'axis {axis}' for axis in others)}" if others else ""
    said = f"How often the program touched chunks: a {noun} stands for {each:,} of them{along}"
    return f"{said}; the most were {most:,} touches."


def _bars(counts: list[int]) -> tuple[str, int]:
    """Bars as high as the counts, with the highest count at the side."""
    most, wide = max(max(counts), 1), ROOM / len(counts)
    base = TOP + BARS_HEIGHT
    shapes = [
        _rule(LEFT, base, WIDTH - RIGHT, base),
        f'<text x="{LEFT - 5}" y="{TOP + 9}" text-anchor="end">{most:,}</text>',
    ]
    shapes.append(f'<text x="{LEFT - 5}" y="{base}" text-anchor="end">0</text>')
    for place, count in enumerate(counts):
        high = BARS_HEIGHT * count / most
        box = f'x="{LEFT + place * wide:.2f}" y="{base - high:.2f}" width="{wide - 0.6:.2f}" height="{high:.2f}"'
        shapes.append(f'<rect {box} fill="{PAINT}"><title>touched {count:,} times</title></rect>')
    return "".join(shapes), BARS_HEIGHT


def _grid(cells: Cells, one: ArraySummary, axes: tuple[int, ...]) -> tuple[str, int]:
    """A cell for each chunk, or for several."""
    rows, columns = len(cells), len(cells[0])
    wide = ROOM / columns
    high = min(max(min(wide, MOST_CELL), LEAST_HEIGHT / rows), MOST_HEIGHT / rows)
    most = max(map(max, cells))
    shapes = []
    for y, row in enumerate(cells):
        for x, count in enumerate(row):
            box = (
                f'x="{LEFT + x * wide:.2f}" y="{TOP + y * high:.2f}" width="{wide - 0.6:.2f}" height="{high - 0.6:.2f}"'
            )
            shapes.append(f"<rect {box} {_fill(count, most)}><title>touched {count:,} times</title></rect>")
    last = _chunk_count(one, axes[0]) - 1
    shapes.append(f'<text x="{LEFT - 5}" y="{TOP + 9}" text-anchor="end">0</text>')
    shapes.append(f'<text x="{LEFT - 5}" y="{TOP + rows * high - 1:.1f}" text-anchor="end">{last:,}</text>')
    return "".join(shapes), round(rows * high)


def _fill(count: int, most: int) -> str:
    """The paint of a count: by its logarithm, so that few touches are seen beside many."""
    if not count:
        return f'fill="{NEVER}"'
    shade = FAINT + (1 - FAINT) * (log1p(count) / log1p(most) if most > 1 else 1)
    return f'fill="{PAINT}" fill-opacity="{min(shade, 1.0):.2f}"'


def _ticks_below(count: int, base: float) -> str:
    ends = ((LEFT, 0, "start"), (WIDTH - RIGHT, count - 1, "end"))
    return "".join(f'<text x="{x}" y="{base + 14}" text-anchor="{anchor}">{n:,}</text>' for x, n, anchor in ends)


def _legend(most: int, top: float) -> str:
    """Samples of the paint with their counts."""
    counts = dict.fromkeys((0, 1, round(most**0.5), most))
    shapes, x = [f'<text x="{LEFT}" y="{top + 10}">touches</text>'], LEFT + 54
    for count in sorted(counts):
        shapes.append(f'<rect x="{x}" y="{top}" width="12" height="12" {_fill(count, most)}/>')
        shapes.append(f'<text x="{x + 17}" y="{top + 10}">{count:,}</text>')
        x += 34 + 7 * len(f"{count:,}")
    return "".join(shapes)


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="var(--rule)"/>'

"""Draws versions with their parents as lines, newest first: for `hyperslab versions log --graph`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

NODE, LINE = "●", "│"


def drawn(order: Iterable[str], parents: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str | None]]:
    """Lines of a drawing, each with the version that it shows, or None.

    Parameters
    ----------
    order : iterable of str
        The versions, children first.
    parents : mapping of str to sequence of str
        The parents of each version.
    """
    lanes: list[str | None] = []  # the version that each lane leads down to
    for name in order:
        own = lanes.index(name) if name in lanes else _free(lanes, name)
        for lane in [lane for lane, to in enumerate(lanes) if to == name and lane != own]:
            yield _joint(lanes, own, lane, "╯"), None
            lanes[lane] = None
        yield _row([NODE if lane == own else LINE if to else " " for lane, to in enumerate(lanes)]), name
        above = parents.get(name, ())
        lanes[own] = above[0] if above else None
        for other in above[1:]:
            is_known = other in lanes
            lane = lanes.index(other) if is_known else _free(lanes, other)
            yield _joint(lanes, own, lane, "┤" if is_known else "╮"), None
        while lanes and lanes[-1] is None:
            lanes.pop()


def _free(lanes: list[str | None], name: str | None) -> int:
    """Put a version into the first lane that is free."""
    if None in lanes:
        lane = lanes.index(None)
        lanes[lane] = name
        return lane
    lanes.append(name)
    return len(lanes) - 1


def _joint(lanes: Sequence[str | None], own: int, other: int, end: str) -> str:
    """A line from one lane to another."""
    left, right = min(own, other), max(own, other)
    cells = [LINE if to else " " for to in lanes]
    for lane in range(left + 1, right):
        cells[lane] = "┼" if lanes[lane] else "─"
    mirrored = {"╯": "╰", "╮": "╭", "┤": "├"}
    cells[own] = "├" if own == left else "┤"
    cells[other] = end if other == right else mirrored[end]
    return "".join(cell + ("─" if left <= lane < right else " ") for lane, cell in enumerate(cells)).rstrip()


def _row(cells: Sequence[str]) -> str:
    return " ".join(cells).rstrip()

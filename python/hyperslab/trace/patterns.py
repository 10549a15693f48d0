"""Recognise patterns in the accesses to an array, and say them in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hyperslab.trace.recording.log import ALL, BOUNDS, BOXES, HYPERSLAB, LISTS, NOTHING, POINTS
from hyperslab.trace.selection import Numbers
from hyperslab.trace.table import OPERATIONS
from hyperslab.trace.trace import Trace

MOST_PATTERNS = 5
IN_ORDER = 0.8
"""If this share of the accesses follows the one before it, they are in order."""
_LISTS = {BOXES: "several boxes", POINTS: "points", LISTS: "lists of indices", BOUNDS: "irregular", NOTHING: "nothing"}


@dataclass(frozen=True)
class Pattern:
    """Accesses of one kind: `count` of them, in words."""

    operation: str
    name: str
    lengths: tuple[int, ...]
    count: int
    order: str
    """"in order", "in order along axis k", "random", "always the same", or "" for a single one."""
    repeat_count: int
    """How many select what an earlier one selected."""

    @property
    def words(self) -> str:
        """The pattern as a phrase, such as `100 reads of rows (1 × 50), in order along axis 0`."""
        verb = f"{self.count:,} {self.operation}{'s' if self.count > 1 else ''}"
        shape = f" ({' × '.join(map(str, self.lengths))})" if self.lengths and self.name != "the whole array" else ""
        order = f", {self.order}" if self.order else ""
        repeats = self.repeat_count and self.order != "always the same"
        again = f"; {self.repeat_count:,} repeat an earlier one" if repeats else ""
        return f"{verb} of {self.name}{shape}{order}{again}"


def patterns_of(trace: Trace, rows: Sequence[int], shape: Sequence[int]) -> list[Pattern]:
    """The most frequent patterns of some accesses to one array, the most frequent first."""
    groups: dict[tuple[str, str, tuple[int, ...]], list[int]] = {}
    for row in rows:
        kind, numbers = trace.selection(row)
        name, lengths = classified(kind, numbers, shape)
        operation = OPERATIONS[int(trace.columns["operation"][row] != 0)]
        groups.setdefault((operation, name, lengths), []).append(row)
    groups = _merged(groups)
    largest = sorted(groups.items(), key=lambda item: -len(item[1]))[:MOST_PATTERNS]
    return [
        Pattern(operation, name, lengths, len(mine), *_ordered(trace, mine, len(shape)))
        for (operation, name, lengths), mine in largest
    ]


def _merged(
    groups: dict[tuple[str, str, tuple[int, ...]], list[int]],
) -> dict[tuple[str, str, tuple[int, ...]], list[int]]:
    """If a kind of selection comes in very many shapes, say it without them."""
    counts = Counter((operation, name) for operation, name, _ in groups)
    found: dict[tuple[str, str, tuple[int, ...]], list[int]] = {}
    for (operation, name, lengths), rows in groups.items():
        is_varied = counts[operation, name] > MOST_PATTERNS
        found.setdefault((operation, name, () if is_varied else lengths), []).extend(rows)
    return {key: sorted(rows) for key, rows in found.items()}


def classified(kind: int, numbers: Numbers, shape: Sequence[int]) -> tuple[str, tuple[int, ...]]:
    """The name of what a selection is, and its lengths along the axes if they are regular."""
    if kind == ALL:
        return "the whole array", tuple(shape)
    if kind != HYPERSLAB:
        return _LISTS[kind], ()
    axes = numbers.reshape(-1, 4).tolist()
    lengths = tuple(count * block for _, _, count, block in axes)
    if any(count > 1 and stride > block for _, stride, count, block in axes):
        return "strided boxes", lengths
    is_full = [length == n for length, n in zip(lengths, shape, strict=True)]
    if all(is_full):
        return "the whole array", lengths
    if all(length == 1 for length in lengths):
        return "single elements", lengths
    if len(shape) == 1:
        return "ranges", lengths
    if all(is_full[1:]):
        return "rows", lengths
    if is_full[0] and not any(is_full[1:]):
        return "columns", lengths
    return "boxes", lengths


def _ordered(trace: Trace, rows: Sequence[int], ndim: int) -> tuple[str, int]:
    """How accesses of one kind follow each other, and how many repeat an earlier one."""
    seen: Counter[bytes] = Counter()
    starts = []
    for row in rows:
        kind, numbers = trace.selection(row)
        seen[bytes([kind]) + numbers.tobytes()] += 1
        if kind == HYPERSLAB:
            starts.append(numbers[::4])
    repeat_count = len(rows) - len(seen)
    if len(rows) < 2:
        return "", 0
    if len(seen) == 1:
        return "always the same", repeat_count
    if len(starts) < len(rows) or ndim == 0:
        return "", repeat_count
    first_indices: Numbers = np.array(starts, np.int64)
    steps: Numbers = first_indices[1:] - first_indices[:-1]
    moved: Numbers = steps[np.any(steps != 0, axis=1)]
    first = np.argmax(moved != 0, axis=1)
    forward = np.take_along_axis(moved, first[:, None], axis=1)[:, 0] > 0
    axes = [axis for axis in range(ndim) if np.any(moved[:, axis] != 0)]
    # A loop inside another goes back to its beginning, while the outer one advances.
    if forward.mean() >= IN_ORDER:
        return f"in order along axis {axes[0]}" if len(axes) == 1 else _loops(moved, axes), repeat_count
    back = np.array([step[np.flatnonzero(step)[-1]] > 0 for step in moved])
    return (_loops(moved, axes) if back.mean() >= IN_ORDER else "in random order"), repeat_count


def _loops(moved: Numbers, axes: Sequence[int]) -> str:
    """The axes from the one that changes least often to the one that changes most often."""
    often = sorted(axes, key=lambda axis: int(np.count_nonzero(moved[:, axis])))
    return "in order, in loops over axes " + ", ".join(map(str, often)) + " (the innermost last)"

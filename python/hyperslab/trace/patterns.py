"""Recognise patterns in the accesses to an array, and say them in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hyperslab.trace.recording.log import ALL, BOUNDS, BOXES, HYPERSLAB, LISTS, NOTHING, POINTS
from hyperslab.trace.selection import Numbers
from hyperslab.trace.table import OPERATIONS
from hyperslab.trace.trace import Trace

MOST_PATTERNS = 5
IN_ORDER = 0.8
"""If this share of the accesses follows the one before it, they are in order."""
MOST_CODES = 1 << 62
BLOCK = 1 << 14
"""So many rows are looked at together: what they need then stays in the processor's caches."""
_FORMS = ("the whole array", "strided boxes", "single elements", "ranges", "rows", "columns", "boxes")
_LISTS = {BOXES: "several boxes", POINTS: "points", LISTS: "lists of indices", BOUNDS: "irregular", NOTHING: "nothing"}
_NAMES = (*_FORMS, *_LISTS.values())


_Form = tuple[str, str, tuple[int, ...]]
"""The operation, the name of what is selected, and its lengths."""


@dataclass(frozen=True)
class Pattern:
    """Accesses of one kind: `count` of them, in words."""

    operation: str
    name: str
    lengths: tuple[int, ...]
    count: int
    order: str
    """"in order", "in order along axis k", "random", "always the same", or "" where there is nothing to say."""
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


def patterns_of(trace: Trace, rows: Sequence[int] | npt.NDArray[np.intp], shape: Sequence[int]) -> list[Pattern]:
    """The most frequent patterns of some accesses to one array, the most frequent first."""
    groups = _groups(trace, np.asarray(rows, np.intp), shape)
    largest = sorted(groups, key=lambda group: (-len(group[1]), group[1][0]))[:MOST_PATTERNS]
    return [
        Pattern(operation, name, lengths, len(mine), *_ordered(trace, mine, len(shape)))
        for (operation, name, lengths), mine in largest
    ]


def _groups(
    trace: Trace, rows: npt.NDArray[np.intp], shape: Sequence[int]
) -> Iterator[tuple[_Form, npt.NDArray[np.intp]]]:
    """Rows that do the same to parts of the same form. What comes in very many lengths is said without them."""
    names, lengths = _forms(trace, rows, shape)
    kinds = names + len(_NAMES) * (trace.columns["operation"][rows] != 0)
    for kind in np.unique(kinds).tolist():
        is_write, name = divmod(kind, len(_NAMES))
        said = (OPERATIONS[is_write], _NAMES[name])
        mine = np.flatnonzero(kinds == kind)
        distinct, places = np.unique(_codes(lengths[mine]), return_inverse=True)
        if len(distinct) > MOST_PATTERNS or name >= len(_FORMS):
            yield (*said, ()), rows[mine]
            continue
        for place in range(len(distinct)):
            same = mine[places == place]
            yield (*said, tuple(lengths[same[0]].tolist())), rows[same]


def _forms(
    trace: Trace, rows: npt.NDArray[np.intp], shape: Sequence[int]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """For each row, which of `_NAMES` is the name of what it selects, and its lengths along the axes."""
    kinds = trace.columns["kind"][rows]
    names = np.zeros(len(rows), np.int64)
    lengths = np.tile(np.array(shape, np.int64), (len(rows), 1))
    for kind, name in _LISTS.items():
        names[kinds == kind] = _NAMES.index(name)
    slabs = np.flatnonzero(kinds == HYPERSLAB)
    for first in range(0, len(slabs), BLOCK):
        some = slabs[first : first + BLOCK]
        names[some], lengths[some] = _forms_of_slabs(_numbers(trace, rows[some], len(shape)), shape)
    return names, lengths


def _forms_of_slabs(
    slabs: npt.NDArray[np.int64], shape: Sequence[int]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    stride, count, block = np.moveaxis(slabs, 2, 0)[1:]
    long: npt.NDArray[np.int64] = count * block
    is_full = long == np.array(shape, np.int64)
    rules = {
        "strided boxes": ((count > 1) & (stride > block)).any(axis=1),
        "the whole array": is_full.all(axis=1),
        "single elements": (long == 1).all(axis=1),
        "ranges": np.full(len(slabs), len(shape) == 1),
        "rows": is_full[:, 1:].all(axis=1),
        "columns": is_full[:, :1].all(axis=1) & ~is_full[:, 1:].any(axis=1),
    }
    numbers = [_NAMES.index(name) for name in rules]
    return np.select(list(rules.values()), numbers, _NAMES.index("boxes")), long


def _numbers(trace: Trace, rows: npt.NDArray[np.intp], ndim: int) -> npt.NDArray[np.int64]:
    """The start, stride, count and block on each axis of rows that select hyperslabs."""
    places = trace.offsets[rows][:, None] + np.arange(4 * ndim)
    result: npt.NDArray[np.int64] = trace.numbers[places].reshape(len(rows), ndim, 4)
    return result


def _codes(table: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """A number for each row of a table: the same for equal rows, and for no others."""
    codes = np.zeros(len(table), np.int64)
    if not table.size:
        return codes
    least = table.min(axis=0)
    spans = [int(most) - int(low) + 1 for low, most in zip(least, table.max(axis=0), strict=True)]
    if math.prod(spans) < MOST_CODES:
        for axis, span in enumerate(spans):
            if span > 1:
                codes = codes * span + (table[:, axis] - least[axis])
        return codes
    order = np.lexsort(table.T[::-1])
    ordered = table[order]
    codes[order[1:]] = np.cumsum((ordered[1:] != ordered[:-1]).any(axis=1))
    return codes


def _ordered(trace: Trace, rows: npt.NDArray[np.intp], ndim: int) -> tuple[str, int]:
    """How accesses of one kind follow each other, and how many repeat an earlier one."""
    kinds = trace.columns["kind"][rows]
    is_slab, is_empty = kinds == HYPERSLAB, np.isin(kinds, (ALL, NOTHING))
    slabs = _numbers(trace, rows[is_slab], ndim)
    others = {_content(trace, row) for row in rows[~is_slab & ~is_empty].tolist()}
    distinct_count = len(np.unique(_codes(slabs.reshape(len(slabs), 4 * ndim)))) + len(others)
    distinct_count += len(np.unique(kinds[is_empty]))
    repeat_count = len(rows) - distinct_count
    if len(rows) < 2:
        return "", 0
    if distinct_count == 1:
        return "always the same", repeat_count
    if not is_slab.all() or ndim == 0:
        return "", repeat_count
    first_indices: Numbers = slabs[:, :, 0]
    steps: Numbers = first_indices[1:] - first_indices[:-1]
    moved: Numbers = steps[np.any(steps != 0, axis=1)]
    if not len(moved):  # they begin at the same place, and differ in their lengths
        return "", repeat_count
    axes = [axis for axis in range(ndim) if np.any(moved[:, axis] != 0)]
    # A loop inside another goes back to its beginning, while the outer one advances.
    if _share_forward(moved) >= IN_ORDER:
        return f"in order along axis {axes[0]}" if len(axes) == 1 else _loops(moved, axes), repeat_count
    is_back = _share_forward(moved[:, ::-1]) >= IN_ORDER
    return (_loops(moved, axes) if is_back else "in random order"), repeat_count


def _content(trace: Trace, row: int) -> bytes:
    kind, numbers = trace.selection(row)
    return bytes([kind]) + numbers.tobytes()


def _share_forward(moved: Numbers) -> float:
    """The share of steps that lead forward along the first axis on which they lead anywhere."""
    first = np.argmax(moved != 0, axis=1)
    return float((np.take_along_axis(moved, first[:, None], axis=1)[:, 0] > 0).mean())


def _loops(moved: Numbers, axes: Sequence[int]) -> str:
    """The axes from the one that changes least often to the one that changes most often."""
    often = sorted(axes, key=lambda axis: int(np.count_nonzero(moved[:, axis])))
    return "in order, in loops over axes " + ", ".join(map(str, often)) + " (the innermost last)"

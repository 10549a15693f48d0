"""Recognise patterns in the accesses to an array, and say them in words."""

from __future__ import annotations

from collections import Counter
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
_LISTS = {BOXES: "several boxes", POINTS: "points", LISTS: "lists of indices", BOUNDS: "irregular", NOTHING: "nothing"}


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
    all_rows = np.asarray(rows, np.intp)
    groups: dict[_Form, npt.NDArray[np.intp]] = {}
    for form, mine in _by_form(trace, all_rows, shape):
        before = groups.get(form)
        groups[form] = mine if before is None else np.sort(np.concatenate([before, mine]))
    largest = sorted(_merged(groups).items(), key=lambda item: -len(item[1]))[:MOST_PATTERNS]
    return [
        Pattern(operation, name, lengths, len(mine), *_ordered(trace, mine, len(shape)))
        for (operation, name, lengths), mine in largest
    ]


def _by_form(
    trace: Trace, rows: npt.NDArray[np.intp], shape: Sequence[int]
) -> Iterator[tuple[_Form, npt.NDArray[np.intp]]]:
    """Rows that do the same to parts of the same form, in the order of their first rows."""
    kinds, is_write = trace.columns["kind"][rows], trace.columns["operation"][rows] != 0
    keys = np.zeros((len(rows), 3 + len(shape)), np.int64)
    keys[:, 0], keys[:, 1] = is_write, kinds
    slabs = np.flatnonzero(kinds == HYPERSLAB)
    stride, count, block = np.moveaxis(_numbers(trace, rows[slabs], len(shape)), 2, 0)[1:]
    keys[slabs, 2] = ((count > 1) & (stride > block)).any(axis=1)
    keys[slabs, 3:] = count * block
    groups = _equal(keys)
    for places in sorted(groups, key=lambda places: int(places[0])):
        mine = rows[places]
        name, lengths = classified(*trace.selection(int(mine[0])), shape)
        yield (OPERATIONS[int(is_write[places[0]])], name, lengths), mine


def _numbers(trace: Trace, rows: npt.NDArray[np.intp], ndim: int) -> npt.NDArray[np.int64]:
    """The start, stride, count and block on each axis of rows that select hyperslabs."""
    places = trace.offsets[rows][:, None] + np.arange(4 * ndim)
    result: npt.NDArray[np.int64] = trace.numbers[places].reshape(len(rows), ndim, 4)
    return result


def _equal(keys: npt.NDArray[np.int64]) -> list[npt.NDArray[np.intp]]:
    """The rows of a table in groups of equal ones, each ascending."""
    if not len(keys):
        return []
    order = np.lexsort(keys.T[::-1])
    ordered = keys[order]
    return np.split(order, np.flatnonzero((ordered[1:] != ordered[:-1]).any(axis=1)) + 1)


def _merged(groups: dict[_Form, npt.NDArray[np.intp]]) -> dict[_Form, npt.NDArray[np.intp]]:
    """If a kind of selection comes in very many forms, say it without them."""
    counts = Counter((operation, name) for operation, name, _ in groups)
    parts: dict[_Form, list[npt.NDArray[np.intp]]] = {}
    for (operation, name, lengths), rows in groups.items():
        is_varied = counts[operation, name] > MOST_PATTERNS
        parts.setdefault((operation, name, () if is_varied else lengths), []).append(rows)
    return {form: np.sort(np.concatenate(rows)) for form, rows in parts.items()}


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


def _ordered(trace: Trace, rows: npt.NDArray[np.intp], ndim: int) -> tuple[str, int]:
    """How accesses of one kind follow each other, and how many repeat an earlier one."""
    is_slab = trace.columns["kind"][rows] == HYPERSLAB
    slabs = _numbers(trace, rows[is_slab], ndim)
    others = {_content(trace, row) for row in rows[~is_slab].tolist()}
    distinct_count = len(_equal(slabs.reshape(len(slabs), 4 * ndim))) + len(others)
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

"""Check the rows of a trace: a file that was damaged, or made to harm, must not make us reach outside an array."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hyperslab.trace.recording.log import ALL, BOUNDS, BOXES, HYPERSLAB, LISTS, NOTHING, POINTS
from hyperslab.trace.selection import NAMES, list_axes
from hyperslab.trace.table import OPERATIONS, AccessTable, is_held_once

MOST = 1 << 62
BLOCK = 1 << 14
"""Of a long trace, so many rows are checked at a time: what they need then stays in the processor's caches."""


def valid_rows(table: AccessTable) -> npt.NDArray[np.bool_]:
    """Which rows name an array, and select elements inside of it."""
    is_valid = np.zeros(len(table), bool)
    ndims = np.array([len(array.shape) for array in table.arrays], np.int64)
    shapes = {ndim: _shapes(table, ndim) for ndim in set(ndims.tolist())}
    for first in range(0, len(table), BLOCK):
        stop = min(first + BLOCK, len(table))
        rows = np.arange(first, stop)[_are_known(table, slice(first, stop))]
        numbers = table.columns["array"][rows]
        for ndim in np.unique(ndims[numbers]).tolist():  # a program may read thousands of arrays, in turns
            same = ndims[numbers] == ndim
            is_valid[rows[same]] = _select_inside(table, rows[same], shapes[ndim][numbers[same]])
    return is_valid


def _shapes(table: AccessTable, ndim: int) -> npt.NDArray[np.int64]:
    """The shapes of the arrays with so many axes; those of others are zeros."""
    rows = [array.shape if len(array.shape) == ndim else (0,) * ndim for array in table.arrays]
    return np.array([[min(max(n, 0), MOST) for n in shape] for shape in rows], np.int64).reshape(len(rows), ndim)


def _are_known(table: AccessTable, rows: slice) -> npt.NDArray[np.bool_]:
    """Which rows have an array, a memory type, an operation, a kind and times that there are."""
    # A column whose rows are all the same is held once, and looked at once.
    columns = {name: column[:1] if is_held_once(column) else column[rows] for name, column in table.columns.items()}
    begins, ends = table.offsets[rows], table.offsets[rows.start + 1 : rows.stop + 1]
    is_known: npt.NDArray[np.bool_] = ends >= begins
    is_known &= (columns["array"] >= 0) & (columns["array"] < len(table.arrays))
    is_known &= (columns["memory_type"] >= 0) & (columns["memory_type"] < len(table.memory_types))
    is_known &= columns["operation"] < len(OPERATIONS)
    is_known &= (columns["nbytes"] >= 0) & (columns["duration_ns"] >= 0) & np.isin(columns["kind"], list(NAMES))
    is_known &= (np.abs(columns["start_ns"]) < MOST) & (columns["duration_ns"] < MOST)
    return is_known


def _select_inside(
    table: AccessTable, rows: npt.NDArray[np.intp], shapes: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Which of some rows select elements inside their arrays, which have these shapes."""
    ndim = shapes.shape[1]
    kinds, lengths = table.columns["kind"][rows], table.offsets[rows + 1] - table.offsets[rows]
    are_slabs = (kinds == HYPERSLAB) & (lengths == 4 * ndim)
    if are_slabs.all():  # as of nearly all programs
        return _are_inside(_numbers(table, rows, 4 * ndim).reshape(len(rows), ndim, 4), shapes)
    is_inside: npt.NDArray[np.bool_] = np.isin(kinds, (ALL, NOTHING)) & (lengths == 0)
    slabs = np.flatnonzero(are_slabs)
    is_inside[slabs] = _are_inside(_numbers(table, rows[slabs], 4 * ndim).reshape(len(slabs), ndim, 4), shapes[slabs])
    for place in np.flatnonzero(np.isin(kinds, (BOXES, POINTS, LISTS, BOUNDS))).tolist():
        is_inside[place] = _is_inside(*table.selection(int(rows[place])), shapes[place])
    return is_inside


def _numbers(table: AccessTable, rows: npt.NDArray[np.intp], count: int) -> npt.NDArray[np.int64]:
    """The numbers of rows that have so many each. Those of rows that follow each other are not copied."""
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return table.numbers[table.offsets[rows[0]] : table.offsets[rows[-1] + 1]]
    result: npt.NDArray[np.int64] = table.numbers[table.offsets[rows][:, None] + np.arange(count)]
    return result


def _are_inside(slabs: npt.NDArray[np.int64], shape: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    start, stride, count, block = (slabs[:, :, place].astype(float) for place in range(4))
    last = start + (count - 1) * stride + block
    is_right = (start >= 0) & (count >= 1) & (block >= 1) & ((stride >= block) | (count == 1)) & (stride >= 0)
    is_right &= last <= shape
    result: npt.NDArray[np.bool_] = np.ones(len(slabs), bool) if is_right.all() else is_right.all(axis=1)
    return result


def _is_inside(kind: int, numbers: npt.NDArray[np.int64], shape: npt.NDArray[np.int64]) -> bool:
    ndim = len(shape)
    if ndim == 0 or not len(numbers):
        return False
    if kind == LISTS:
        return _are_lists_inside(numbers, shape)
    if len(numbers) % (ndim if kind == POINTS else 2 * ndim):
        return False
    rows = numbers.reshape(-1, 1 if kind == POINTS else 2, ndim)
    first = rows[:, 0]
    counts = np.ones_like(first) if kind == POINTS else rows[:, 1]
    return bool(((first >= 0) & (counts >= 1) & (counts <= shape) & (first <= shape - counts)).all())


def _are_lists_inside(numbers: npt.NDArray[np.int64], shape: npt.NDArray[np.int64]) -> bool:
    try:
        axes = list_axes(numbers, len(shape))
    except (IndexError, ValueError):
        return False
    for axis, length in zip(axes, shape.tolist(), strict=True):
        if isinstance(axis, np.ndarray):
            if not len(axis) or axis.min() < 0 or axis.max() >= length:
                return False
        else:
            start, step, count = axis
            if start < 0 or step < 1 or count < 1 or start + (count - 1) * step >= length:
                return False
    return True


def without_invalid(table: AccessTable) -> AccessTable:
    """The table without rows that make no sense; its notes say how many."""
    is_valid = valid_rows(table)
    if is_valid.all():
        return table
    rows = np.flatnonzero(is_valid)
    parts = [table.numbers[table.offsets[row] : table.offsets[row + 1]] for row in rows.tolist()]
    return AccessTable(
        table.arrays,
        {name: column[rows] for name, column in table.columns.items()},
        np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64),
        np.concatenate([*parts, np.empty(0, np.int64)]).astype(np.int64),
        table.memory_types,
        [*table.notes, f"{len(table) - len(rows)} accesses make no sense and are left out: the trace is damaged"],
        table.program,
    )

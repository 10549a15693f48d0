"""Check the rows of a trace: a file that was damaged, or made to harm, must not make us reach outside an array."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hyperslab.trace.recording.log import ALL, BOUNDS, BOXES, HYPERSLAB, LISTS, NOTHING, POINTS
from hyperslab.trace.selection import NAMES, list_axes
from hyperslab.trace.table import OPERATIONS, AccessTable

MOST = 1 << 62
BLOCK = 1 << 14
"""Of a long trace, so many rows are checked at a time: what they need then stays in the processor's caches."""


def valid_rows(table: AccessTable) -> npt.NDArray[np.bool_]:
    """Which rows name an array, and select elements inside of it."""
    is_valid = np.zeros(len(table), bool)
    columns = table.columns
    lengths = np.diff(table.offsets)
    is_known = (columns["array"] >= 0) & (columns["array"] < len(table.arrays))
    is_known &= (columns["memory_type"] >= 0) & (columns["memory_type"] < len(table.memory_types))
    is_known &= columns["operation"] < len(OPERATIONS)
    is_known &= (columns["nbytes"] >= 0) & (columns["duration_ns"] >= 0) & np.isin(columns["kind"], list(NAMES))
    is_known &= (np.abs(columns["start_ns"]) < MOST) & (columns["duration_ns"] < MOST) & (lengths >= 0)
    for rows in _by_array(columns["array"], np.flatnonzero(is_known)):
        shape = np.array([min(max(n, 0), MOST) for n in table.arrays[columns["array"][rows[0]]].shape], np.int64)
        kinds = columns["kind"][rows]
        is_valid[rows] = np.isin(kinds, (ALL, NOTHING)) & (lengths[rows] == 0)
        slabs = rows[(kinds == HYPERSLAB) & (lengths[rows] == 4 * len(shape))]
        for first in range(0, len(slabs), BLOCK):
            some = slabs[first : first + BLOCK]
            places = table.offsets[some][:, None] + np.arange(4 * len(shape))
            is_valid[some] = _are_inside(table.numbers[places].reshape(len(some), len(shape), 4), shape)
        for row in rows[np.isin(kinds, (BOXES, POINTS, LISTS, BOUNDS))].tolist():
            is_valid[row] = _is_inside(*table.selection(row), shape)
    return is_valid


def _by_array(arrays: npt.NDArray[np.int32], rows: npt.NDArray[np.intp]) -> list[npt.NDArray[np.intp]]:
    """Rows in groups of the same array. A program may read thousands of arrays, once each."""
    if not len(rows):
        return []
    ordered = rows[np.argsort(arrays[rows], kind="stable")]
    return np.split(ordered, np.flatnonzero(np.diff(arrays[ordered])) + 1)


def _are_inside(slabs: npt.NDArray[np.int64], shape: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    start, stride, count, block = (slabs[:, :, place].astype(float) for place in range(4))
    last = start + (count - 1) * stride + block
    is_right = (start >= 0) & (count >= 1) & (block >= 1) & ((stride >= block) | (count == 1)) & (stride >= 0)
    result: npt.NDArray[np.bool_] = (is_right & (last <= shape)).all(axis=1)
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

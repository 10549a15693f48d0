"""Decode the selections of a trace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from hyperslab.trace.recording.log import ALL, BOUNDS, BOXES, HYPERSLAB, LISTS, NOTHING, POINTS

Numbers = npt.NDArray[np.int64]
Slabs = tuple[tuple[int, int, int, int], ...]  # start, stride, count, block of each axis
NAMES = {ALL: "all", HYPERSLAB: "hyperslab", BOXES: "boxes", POINTS: "points", LISTS: "lists", BOUNDS: "bounds",
         NOTHING: "nothing"}  # fmt: skip


def hyperslabs(kind: int, numbers: Numbers, shape: Sequence[int], most: int | None = None) -> list[Slabs]:
    """The hyperslabs that make up a selection, at most `most`; those of `bounds` are the box around it."""
    ndim = len(shape)
    if kind == NOTHING:
        return []
    if kind == ALL:
        return [tuple((0, 1, length, 1) for length in shape)]
    if kind == HYPERSLAB:
        return [tuple((a, s, c, b) for a, s, c, b in numbers.reshape(ndim, 4).tolist())]
    if kind in (BOXES, BOUNDS):
        rows = numbers.reshape(-1, 2, ndim)[:most].tolist()
        return [tuple((a, 1, n, 1) for a, n in zip(start, count, strict=True)) for start, count in rows]
    if kind == POINTS:
        return [tuple((a, 1, 1, 1) for a in point) for point in numbers.reshape(-1, ndim)[:most].tolist()]
    return _of_lists(numbers, ndim, most)


def _of_lists(numbers: Numbers, ndim: int, most: int | None) -> list[Slabs]:
    axes = [runs(axis) if isinstance(axis, np.ndarray) else [(*axis, 1)] for axis in list_axes(numbers, ndim)]
    slabs_of_lists: list[Slabs] = []
    for combined in product(*axes):
        if most is not None and len(slabs_of_lists) >= most:
            break
        slabs_of_lists.append(combined)
    return slabs_of_lists


def list_axes(numbers: Numbers, ndim: int) -> list[tuple[int, int, int] | Numbers]:
    """The axes of a selection of kind `lists`: start, step and count, or indices."""
    axes: list[tuple[int, int, int] | Numbers] = []
    place = 0
    for _ in range(ndim):
        if numbers[place] == 0:
            start, step, count = numbers[place + 1 : place + 4].tolist()
            axes.append((start, step, count))
            place += 4
        else:
            length = int(numbers[place + 1])
            axes.append(numbers[place + 2 : place + 2 + length])
            place += 2 + length
    return axes


def runs(indices: Numbers) -> list[tuple[int, int, int, int]]:
    """Consecutive indices, each in the form start, stride, count, block."""
    ordered = np.unique(indices)
    breaks = np.flatnonzero(np.diff(ordered) != 1) + 1
    return [(int(part[0]), 1, len(part), 1) for part in np.split(ordered, breaks) if len(part)]


def size(kind: int, numbers: Numbers, shape: Sequence[int]) -> int | None:
    """The number of elements; None if it is not known."""
    if kind == BOUNDS:
        return None
    if kind == LISTS:
        axes = list_axes(numbers, len(shape))
        return math.prod(len(axis) if isinstance(axis, np.ndarray) else axis[2] for axis in axes)
    all_slabs = hyperslabs(kind, numbers, shape)
    return sum(math.prod(count * block for _, _, count, block in slabs) for slabs in all_slabs)


def mask(kind: int, numbers: Numbers, shape: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Which elements of an array are selected. Needs as much memory as the array has elements."""
    is_selected = np.zeros(tuple(shape), bool)
    for slabs in hyperslabs(kind, numbers, shape):
        is_selected[np.ix_(*(_indices(axis) for axis in slabs)) if slabs else ...] = True
    return is_selected


def _indices(axis: tuple[int, int, int, int]) -> Any:
    start, stride, count, block = axis
    return (start + stride * np.arange(count)[:, None] + np.arange(block)).ravel()


def bounds(kind: int, numbers: Numbers, shape: Sequence[int]) -> tuple[list[int], list[int]] | None:
    """The first and the last index along each axis; None if nothing is selected."""
    ndim = len(shape)
    if kind == NOTHING or 0 in shape:
        return None
    if kind == ALL:
        return [0] * ndim, [length - 1 for length in shape]
    if kind == HYPERSLAB:
        axes = numbers.reshape(ndim, 4)
        return axes[:, 0].tolist(), (axes[:, 0] + (axes[:, 2] - 1) * axes[:, 1] + axes[:, 3] - 1).tolist()
    if kind in (BOXES, BOUNDS):
        rows = numbers.reshape(-1, 2, ndim)
        return rows[:, 0].min(axis=0).tolist(), (rows[:, 0] + rows[:, 1] - 1).max(axis=0).tolist()
    if kind == POINTS:
        points = numbers.reshape(-1, ndim)
        return points.min(axis=0).tolist(), points.max(axis=0).tolist()
    first, last = [], []
    for axis in list_axes(numbers, ndim):
        listed = isinstance(axis, np.ndarray)
        first.append(int(axis.min()) if listed else int(axis[0]))  # type: ignore[union-attr]
        last.append(int(axis.max()) if listed else int(axis[0] + (axis[2] - 1) * axis[1]))  # type: ignore[union-attr]
    return first, last

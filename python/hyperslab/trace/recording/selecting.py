"""Selections as the raw log has them: a kind, and a list of numbers."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from .log import ALL, BOUNDS, BOXES, HYPERSLAB, LISTS, MOST_NUMBERS, NOTHING, POINTS

Encoded = tuple[int, list[int]]


class NotPlain(Exception):
    """A key is more than integers, slices and an ellipsis."""


def plain_key(key: Any, shape: Sequence[int]) -> tuple[Encoded, int]:
    """The selection of integers, slices and an ellipsis, and its number of elements."""
    items = key if type(key) is tuple else (key,)
    ndim = len(shape)
    for place, item in enumerate(items):
        if item is ...:
            items = (*items[:place], *(slice(None),) * (ndim - len(items) + 1), *items[place + 1 :])
            break
    if len(items) < ndim:
        items = (*items, *(slice(None),) * (ndim - len(items)))
    elif len(items) > ndim:
        raise NotPlain
    axes = []
    for item, length in zip(items, shape, strict=True):
        if type(item) is int and 0 <= item < length:  # checked first: most small reads have nothing else
            axes.append((item, 1, 1))
        elif type(item) is slice:
            start, stop, step = item.indices(length)
            if step < 1:
                raise NotPlain
            axes.append((start, step, max(0, -((start - stop) // step))))
        else:
            axes.append((_index(item, length), 1, 1))
    return slices(axes, shape)


def _index(item: Any, length: int) -> int:
    try:
        index = operator.index(item)
    except TypeError:
        raise NotPlain from None
    if item is True or item is False or not -length <= index < length:
        raise NotPlain
    return index % length


def slices(axes: Sequence[tuple[int, int, int]], shape: Sequence[int]) -> tuple[Encoded, int]:
    """The selection of a start, a step and a count along each axis, and its number of elements."""
    size, is_all = 1, True
    numbers: list[int] = []
    for (start, step, count), length in zip(axes, shape, strict=True):
        size *= count
        is_all = is_all and start == 0 and step == 1 and count == length
        numbers += (start, step, count, 1)
    if size == 0:
        return (NOTHING, []), 0
    return ((ALL, []) if is_all else (HYPERSLAB, numbers)), size


def hyperslab(axes: Iterable[tuple[int, int, int, int]]) -> Encoded:
    """Start, stride, count and block of each axis."""
    return HYPERSLAB, [number for axis in axes for number in axis]


def lists(axes: Sequence[tuple[int, int, int] | Sequence[int]]) -> tuple[Encoded, int]:
    """The outer product of slices (tuples) and lists of indices, and its number of elements."""
    numbers: list[int] = []
    size = 1
    for axis in axes:
        if isinstance(axis, tuple):
            numbers += [0, *axis]
            size *= axis[2]
        else:
            numbers += [1, len(axis), *axis]
            size *= len(axis)
    if size == 0:
        return (NOTHING, []), 0
    if len(numbers) > MOST_NUMBERS:
        starts = [axis[0] if isinstance(axis, tuple) else min(axis) for axis in axes]
        lasts = [a[0] + (a[2] - 1) * a[1] if isinstance(a, tuple) else max(a) for a in axes]
        return (BOUNDS, [*starts, *(last - start + 1 for start, last in zip(starts, lasts, strict=True))]), size
    return (LISTS, numbers), size


def points(coordinates: Any) -> Encoded:
    """Points, given as an array with a row of indices for each."""
    if len(coordinates) == 0:
        return NOTHING, []
    if coordinates.size > MOST_NUMBERS:
        return _bounds(coordinates.min(axis=0).tolist(), coordinates.max(axis=0).tolist())
    return POINTS, coordinates.ravel().tolist()


def boxes(first: Any, last: Any) -> Encoded:
    """Boxes, given as arrays with a row for each: first and last indices."""
    if first.size * 2 > MOST_NUMBERS:
        return _bounds(first.min(axis=0).tolist(), last.max(axis=0).tolist())
    return BOXES, [n for a, b in zip(first.tolist(), last.tolist(), strict=True) for n in (*a, *_lengths(a, b))]


def _bounds(first: list[int], last: list[int]) -> Encoded:
    return BOUNDS, [*first, *_lengths(first, last)]


def _lengths(first: list[int], last: list[int]) -> list[int]:
    return [int(b) - int(a) + 1 for a, b in zip(first, last, strict=True)]

"""The boxes in which elements differ."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hyperslab.versions.layout.names import Array
from hyperslab.versions.layout.padding import cleared

Boxes: TypeAlias = npt.NDArray[np.int64]  # box × axis × start and stop
WORDS: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def unequal(one: Array, other: Array) -> npt.NDArray[np.bool_]:
    """Where two arrays of chunks differ in the bits that mean something, so that NaN equals itself."""
    if one.dtype != other.dtype or one.dtype.hasobject:
        return np.asarray(one != other, bool)
    one, other = np.ascontiguousarray(cleared(one)), np.ascontiguousarray(cleared(other))
    word = WORDS.get(one.dtype.itemsize)
    if word is not None:
        return np.asarray(one.view(word) != other.view(word))
    shape = (*one.shape, one.dtype.itemsize)
    differ = one.view(np.uint8).reshape(shape) != other.view(np.uint8).reshape(shape)
    return np.asarray(differ.any(axis=-1))


def within(differ: npt.NDArray[np.bool_], origins: npt.NDArray[np.int64]) -> Boxes:
    """Boxes around the true elements: exact with one axis, otherwise the smallest box in each chunk.

    Parameters
    ----------
    differ : npt.NDArray[np.bool_]
        The chunks, stacked along a new first axis.
    origins : npt.NDArray[np.int64]
        The first index of each chunk in its array (chunk × axis).
    """
    if differ.ndim == 2:
        rows, columns = np.nonzero(differ)
        return runs(origins[rows, 0] + columns)[:, None, :]
    some = differ.reshape(len(differ), -1).any(axis=1)
    differ, origins = differ[some], origins[some]
    axes = []
    for axis in range(1, differ.ndim):
        along = np.asarray(differ.any(axis=tuple(other for other in range(1, differ.ndim) if other != axis)))
        first = along.argmax(axis=1)
        last = along.shape[1] - along[:, ::-1].argmax(axis=1)
        axes.append(origins[:, axis - 1, None] + np.stack([first, last], axis=1))
    return np.stack(axes, axis=1)


def runs(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Start and stop of each run of consecutive numbers, which must be ascending."""
    ends = np.flatnonzero(np.diff(numbers) != 1)
    starts = np.concatenate([numbers[:1], numbers[ends + 1]])
    return np.stack([starts, np.concatenate([numbers[ends], numbers[-1:]]) + 1], axis=1)


def joined(boxes: Boxes) -> Boxes:
    """Join boxes that together make a box along an axis, and sort them by their starts, in C order."""
    for axis in reversed(range(boxes.shape[1])):
        others = np.delete(boxes, axis, axis=1).reshape(len(boxes), 2 * (boxes.shape[1] - 1))
        order = np.lexsort((boxes[:, axis, 0], *others.T))
        boxes, others = boxes[order], others[order]
        goes_on = (others[1:] == others[:-1]).all(axis=1) & (boxes[1:, axis, 0] == boxes[:-1, axis, 1])
        firsts = np.flatnonzero(np.concatenate([np.ones(min(1, len(boxes)), bool), ~goes_on]))
        lasts = np.concatenate([firsts[1:] - 1, [len(boxes) - 1]]).astype(np.int64)[: len(firsts)]
        stops = boxes[lasts, axis, 1]
        boxes = boxes[firsts].copy()
        boxes[:, axis, 1] = stops
    return boxes[np.lexsort(boxes[:, ::-1, 0].T)]

"""Arrays that grow while a program runs: the recorder sees another shape after each step, and we show one array."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from hyperslab.trace.recording.log import ALL, HYPERSLAB
from hyperslab.trace.table import TracedArray
from hyperslab.trace.trace import Trace


def with_largest_shapes(trace: Trace) -> Trace:
    """The trace with one array for all that differ only in their shape: that of their greatest lengths."""
    same: dict[tuple[TracedArray, int], list[int]] = {}
    for number, array in enumerate(trace.arrays):
        key = replace(array, shape=(), stored_nbytes=None, decodes=None)
        same.setdefault((key, len(array.shape)), []).append(number)
    if len(same) == len(trace.arrays):
        return trace
    arrays = [_largest([trace.arrays[number] for number in numbers]) for numbers in same.values()]
    number_of = np.empty(len(trace.arrays), np.int32)
    for place, numbers in enumerate(same.values()):
        number_of[numbers] = place
    return _with_arrays(trace, arrays, number_of)


def _largest(arrays: list[TracedArray]) -> TracedArray:
    shape = tuple(map(max, zip(*(array.shape for array in arrays), strict=True)))
    last = max(arrays, key=lambda array: math.prod(array.shape))
    return replace(last, shape=shape)


def _with_arrays(trace: Trace, arrays: list[TracedArray], number_of: npt.NDArray[np.int32]) -> Trace:
    """The same accesses to other arrays. What was the whole of an array that grew later is a box now."""
    before = trace.columns["array"]
    grew = np.array([arrays[number_of[k]].shape != array.shape for k, array in enumerate(trace.arrays)], bool)
    is_box = (trace.columns["kind"] == ALL) & grew[before]
    lengths = np.diff(trace.offsets)
    ndims = np.array([len(array.shape) for array in trace.arrays], np.int64)
    offsets = np.concatenate([[0], np.cumsum(np.where(is_box, 4 * ndims[before], lengths))]).astype(np.int64)
    numbers = np.empty(offsets[-1], np.int64)
    numbers[np.arange(len(trace.numbers)) + np.repeat(offsets[:-1] - trace.offsets[:-1], lengths)] = trace.numbers
    for number in np.unique(before[is_box]).tolist():
        rows = np.flatnonzero(is_box & (before == number))
        box = [value for length in trace.arrays[number].shape for value in (0, 1, length, 1)]
        numbers[offsets[rows][:, None] + np.arange(len(box))] = box
    columns = {**trace.columns, "array": number_of[before]}
    columns["kind"] = np.where(is_box, HYPERSLAB, trace.columns["kind"]).astype(trace.columns["kind"].dtype)
    return Trace(arrays, columns, offsets, numbers, trace.memory_types, trace.notes, trace.program)

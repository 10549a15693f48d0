"""Scale an experiment: as its study says, or by a rule that keeps its question.

What a chunk costs depends on how much of it a read asks for. So the rule shrinks the array and keeps the chunks: each
read decodes as many elements per element asked for as at full size. Where a study's own scales change that, or where
one chunk is larger than the scale allows, `scale_note` says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from hyperslab._core import ChunkGrid
from hyperslab.bench.layouts import auto_chunks, given_chunks
from hyperslab.bench.operations import OPERATIONS, Operation, selections
from hyperslab.bench.study import Case, Conditions, Scale

# scale -> most bytes of all arrays in one file, and most arrays
LIMITS: dict[str, tuple[int, int]] = {"quick": (4 << 20, 32), "small": (128 << 20, 256)}
# To keep whole chunks, a file may be this many times as large.
MORE_FOR_CHUNKS = 4
# Ratios of chunk to access that differ by less than this factor count as the same.
ALIKE = 1.1


def scaled(case: Case, scale: Scale) -> Case:
    """A case at a scale: as its study says, else by the automatic rule."""
    said = case.scales.get(scale)
    if said is not None:
        update = {key: value for key, value in said if value is not None}
        if case.data_file:  # your own arrays keep their size
            update = {key: value for key, value in update.items() if key not in ("shapes", "counts")}
        return case.model_copy(update=update)
    return case if scale == "paper" or case.data_file else shrink(case, scale)


def shrink(case: Case, scale: Literal["quick", "small"]) -> Case:
    """Reduce the number of arrays (not below 4), then halve the longest axis, until the file fits the scale's limit.

    Axes stay as long as the chunks, if the file then is at most four times as large as the limit. Sizes of a series
    keep their ratios: all of them are reduced as much as the largest one.
    """
    limit, most = LIMITS[scale]
    itemsize = np.dtype(case.dtype).itemsize * (case.properties or 1)
    counts = [max(1, min(count, most)) for count in case.counts]
    largest = max(case.shapes, key=_elements)
    room = max(min(4, min(counts)), int(limit // max(_elements(largest) * itemsize, 1)))
    counts = sorted({min(count, room) for count in counts})
    least = _longest_chunks(case, largest, itemsize)
    kept = _halvings(largest, least, limit // itemsize // counts[-1])
    if _elements(_halved(largest, kept, least)) * itemsize * counts[-1] > limit * MORE_FOR_CHUNKS:
        least = [1] * len(largest)
        kept = _halvings(largest, least, limit // itemsize // counts[-1])
    shapes = [_halved(shape, kept, least if len(shape) == len(least) else [1] * len(shape)) for shape in case.shapes]
    return case.model_copy(update={"counts": counts, "shapes": shapes})


def _elements(shape: Sequence[int]) -> int:
    return int(np.prod(shape, dtype=np.float64))


def _longest_chunks(case: Case, shape: Sequence[int], itemsize: int) -> list[int]:
    """The length of the longest chunk along each axis, over all conditions."""
    shapes = [chunks for said in case.conditions.values() if (chunks := _chunks(case, said, shape, itemsize))]
    return [max(lengths) for lengths in zip(*shapes, strict=True)] if shapes else [1] * len(shape)


def _chunks(
    case: Case, said: Conditions | Literal["default"], shape: Sequence[int], itemsize: int
) -> tuple[int, ...] | None:
    if said == "default" or said.chunks == "contiguous":
        return None
    if said.chunks == "auto":
        return auto_chunks(tuple(shape), itemsize)
    return given_chunks(case.name, said.chunks, tuple(shape))


def _halvings(shape: list[int], least: list[int], most_elements: int) -> int:
    """How often an axis must be halved until the array has at most so many elements, or no axis can be halved."""
    times, lengths = 0, list(shape)
    while _elements(lengths) > max(1, most_elements):
        halved = _halved(lengths, 1, least)
        if halved == lengths:
            break
        times, lengths = times + 1, halved
    return times


def _halved(shape: list[int], times: int, least: list[int]) -> list[int]:
    lengths = list(shape)
    for _ in range(times):
        free = [axis for axis, length in enumerate(lengths) if length >= 2 * least[axis]]
        if not free:
            break
        axis = max(free, key=lambda axis: lengths[axis])
        # A whole number of chunks, because a chunk that the array only begins is decoded all the same.
        lengths[axis] = max(1, lengths[axis] // 2 // least[axis] * least[axis])
    return lengths


def amplification(operation: Operation, shape: Sequence[int], chunks: Sequence[int]) -> float:
    """How many elements a read decodes for each element that it asks for: the ratio of chunk to access."""
    grid = ChunkGrid(list(shape), list(chunks))
    asked = selections(operation, tuple(shape))
    elements = sum(selection.size for selection in asked)
    return sum(grid.totals(selection).decoded_element_count for selection in asked) / max(elements, 1)


def scale_note(full: Case, here: Case, scale: Scale) -> str:
    """How a scale differs from the study in full, for captions: whether its reads still ask the same question."""
    if scale == "paper" or here.data_file:
        return ""
    share = _elements(full.shapes[-1]) * full.counts[-1] / (_elements(here.shapes[-1]) * here.counts[-1])
    size = f"Scale {scale}: 1/{share:,.0f} of the study's elements" if share > 1.5 else f"Scale {scale}"
    changed = list(_changed(full, here))
    if changed:
        return f"{size}. Unlike the study in full, {'; '.join(changed)}."
    if not any(_reads_parts(operation) for operation in here.operations):
        return f"{size}."
    return f"{size}; each read decodes as many elements for each element that it asks for as in the study in full."


def _reads_parts(operation: Operation) -> bool:
    kind = OPERATIONS[operation.name]
    return kind.verb == "read" and kind.pattern is not None and kind.slices


def _changed(full: Case, here: Case) -> Iterator[str]:
    before = {operation.name: operation for operation in full.operations}
    itemsize = np.dtype(here.dtype).itemsize * (here.properties or 1)
    for operation in here.operations:
        if not _reads_parts(operation) or operation.name not in before:
            continue
        for name, said in here.conditions.items():
            if name not in full.conditions:
                continue
            old = _chunks(full, full.conditions[name], full.shapes[-1], itemsize)
            new = _chunks(here, said, here.shapes[-1], itemsize)
            if old is None or new is None:
                continue
            was = amplification(before[operation.name], full.shapes[-1], old)
            now = amplification(operation, here.shapes[-1], new)
            if not 1 / ALIKE <= now / was <= ALIKE:
                yield f"{operation.name}, {name}, decodes {now:,.0f} instead of {was:,.0f} elements for each one asked"

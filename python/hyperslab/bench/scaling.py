"""Scale an experiment: as its study says, or by a rule that keeps its shape."""

from __future__ import annotations

from typing import Literal

import numpy as np

from hyperslab.bench.study import Case, Scale

# scale -> most bytes of all arrays in one file, and most arrays
LIMITS: dict[str, tuple[int, int]] = {"quick": (4 << 20, 32), "small": (128 << 20, 256)}


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

    Sizes of a series keep their ratios: all of them are reduced as much as the largest one.
    """
    limit, most = LIMITS[scale]
    itemsize = np.dtype(case.dtype).itemsize * (case.properties or 1)
    counts = [max(1, min(count, most)) for count in case.counts]
    largest = max(int(np.prod(shape, dtype=np.float64)) for shape in case.shapes) * itemsize
    room = max(min(4, min(counts)), int(limit // max(largest, 1)))
    counts = sorted({min(count, room) for count in counts})
    halvings = 0
    while (largest >> halvings) * counts[-1] > limit and (largest >> halvings) > itemsize:
        halvings += 1
    shapes = [_halved(shape, halvings) for shape in case.shapes]
    return case.model_copy(update={"counts": counts, "shapes": shapes})


def _halved(shape: list[int], times: int) -> list[int]:
    lengths = list(shape)
    for _ in range(times):
        axis = lengths.index(max(lengths))
        lengths[axis] = max(1, lengths[axis] // 2)
    return lengths

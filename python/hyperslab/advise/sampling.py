"""A part of an array with the same calls, for verifying: small enough to be written and read several times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from hyperslab._core import Hyperslab, Points
from hyperslab.advise.demand import Demand
from hyperslab.model.workload import Step

CALL_TOUCHES = 4000.0
"""Chunks of today's layout that the calls of one pass touch, at most."""


@dataclass(frozen=True)
class Sample:
    """The shape of the part, the calls to it, and in words what it is."""

    shape: tuple[int, ...]
    demands: tuple[Demand, ...]
    words: str

    @property
    def slices(self) -> tuple[slice, ...]:
        """The part: the first elements along each axis."""
        return tuple(slice(0, length) for length in self.shape)


def sample_for(demands: Sequence[Demand], chunk_shape: Sequence[int], most_nbytes: int) -> Sample:
    """The whole array if it is small enough, or its beginning along the axes that the calls select least of."""
    shape = _cut(demands, chunk_shape, most_nbytes)
    whole = demands[0].shape
    said = []
    if shape != whole:
        said.append(f"the first {' × '.join(map(str, shape))} elements of {' × '.join(map(str, whole))}")
    made = []
    for demand in (one.in_boxes for one in demands):
        steps, _ = demand.sample(chunk_shape, CALL_TOUCHES)
        if len(steps) < len(demand.steps):
            said.append(f"{len(steps):,} of the {len(demand.steps):,} calls of {demand.name}")
        moved = [_moved(step, shape) for step in steps]
        made.append(replace(demand, shape=shape, steps=moved))
    return Sample(shape, tuple(made), "; ".join(said) or "the whole array and all calls")


def _cut(demands: Sequence[Demand], chunk_shape: Sequence[int], most_nbytes: int) -> tuple[int, ...]:
    shape, width = list(demands[0].shape), demands[0].element_nbytes
    shares = np.mean([demand.boxes.lengths.mean(axis=0) for demand in demands], axis=0) / np.array(shape)
    for axis in np.argsort(shares, kind="stable").tolist():
        nbytes = prod(shape) * width
        if nbytes <= most_nbytes:
            break
        # At least four chunks remain, so that a layout still has something to cut.
        least = min(shape[axis], 4 * chunk_shape[axis])
        shape[axis] = max(1, min(shape[axis], max(least, int(shape[axis] * most_nbytes / nbytes))))
    for axis in range(len(shape)):
        nbytes = prod(shape) * width
        if nbytes > most_nbytes:
            shape[axis] = max(1, int(shape[axis] * most_nbytes / nbytes))
    return tuple(shape)


def _moved(step: Step, shape: Sequence[int]) -> Step:
    """The same call inside the part: moved towards the beginning, and shortened where it does not fit."""
    asked = step.selection
    if isinstance(asked, Points):
        return step._replace(selection=Points(asked.coordinates % np.array(shape)))
    starts, counts, blocks = [], [], []
    for start, stride, count, block, length in zip(
        asked.start, asked.stride, asked.count, asked.block, shape, strict=True
    ):
        kept_block = min(block, length)
        kept = max(1, min(count, (length - kept_block) // stride + 1))
        room = length - ((kept - 1) * stride + kept_block) + 1
        starts.append(start % room)
        counts.append(kept)
        blocks.append(kept_block)
    return step._replace(selection=Hyperslab(starts, list(asked.stride), counts, blocks))

"""Divide the accesses of a workload among processes, each of which owns chunks of the array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from hyperslab._core import Hyperslab
from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import UsageError
from hyperslab.model.libraries import Layout
from hyperslab.model.workload import Access, Box, Step, Workload

# rows, columns   neighbouring chunks along the first or the last axis
# blocks          chunks that follow each other in row-major order
# round-robin     every p-th chunk
# random          chunks drawn without replacement, from the workload's seed
Partition: TypeAlias = Literal["rows", "columns", "blocks", "round-robin", "random"]
PARTITIONS: tuple[Partition, ...] = ("rows", "columns", "blocks", "round-robin", "random")
# Chunks that are owned one by one, and boxes of all processes together.
MOST_CHUNKS, MOST_BOXES = 10_000_000, 2_000_000

Range: TypeAlias = tuple[int, int]
ChunkBox: TypeAlias = tuple[Range, ...]  # of chunk indices, along each axis


def owned_boxes(counts: Sequence[int], processes: int, partition: Partition, seed: int = 0) -> Iterator[list[ChunkBox]]:
    """The chunks of each process in turn, as boxes of chunk indices. `counts` are the chunks along each axis.

    Raises
    ------
    UsageError
        There are fewer chunks, or rows or columns of chunks, than processes.
    """
    axis = {"rows": 0, "columns": len(counts) - 1}.get(partition)
    most = prod(counts) if axis is None else counts[axis]
    if processes > most:
        unit = "chunks" if axis is None else f"{partition} of chunks"
        raise UsageError(
            f"{processes} processes cannot share {most} {unit}: some would have nothing to do. Use at most {most} "
            "processes, smaller chunks, or another partition"
        )
    if axis is not None:
        for start, stop in _shares(most, processes):
            yield [tuple((start, stop) if at == axis else (0, count) for at, count in enumerate(counts))]
    elif partition == "blocks":
        for start, stop in _shares(most, processes):
            yield list(_boxes_of_range(counts, start, stop))
    else:
        if most > MOST_CHUNKS:
            raise UsageError(f"{most} chunks cannot be dealt out one by one: at most {MOST_CHUNKS}; use blocks")
        order = np.arange(most) if partition == "round-robin" else np.random.default_rng(seed).permutation(most)
        for process in range(processes):
            yield [_one(index) for index in _indices(np.sort(order[process::processes]), counts)]


def _shares(count: int, processes: int) -> Iterator[Range]:
    for process in range(processes):
        yield count * process // processes, count * (process + 1) // processes


def _indices(linear: npt.NDArray[np.int64], counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return zip(*(axis.tolist() for axis in np.unravel_index(linear, tuple(counts))), strict=True)


def _one(index: tuple[int, ...]) -> ChunkBox:
    return tuple((each, each + 1) for each in index)


def _boxes_of_range(counts: Sequence[int], start: int, stop: int) -> Iterator[ChunkBox]:
    """The chunks from `start` to `stop` in row-major order, as few boxes, in order."""
    if start >= stop:
        return
    if len(counts) == 1:
        yield ((start, stop),)
        return
    row = prod(counts[1:])
    first, last = ceil_div(start, row), stop // row
    if first > last:  # all in one row
        yield from _within(start // row, counts, start % row, stop % row)
        return
    if start % row:
        yield from _within(first - 1, counts, start % row, row)
    if first < last:
        yield ((first, last), *((0, count) for count in counts[1:]))
    if stop % row:
        yield from _within(last, counts, 0, stop % row)


def _within(row: int, counts: Sequence[int], start: int, stop: int) -> Iterator[ChunkBox]:
    for box in _boxes_of_range(counts[1:], start, stop):
        yield ((row, row + 1), *box)


def divided(workload: Workload, layout: Layout, processes: int, partition: Partition) -> list[Workload]:
    """The workload of each process: the parts of all accesses that lie in its chunks, in the same order.

    Raises
    ------
    UsageError
        There are fewer chunks than processes, or an access cannot be divided.
    """
    if processes == 1:
        return [workload]
    shape, chunks = workload.array.shape, layout.shard_shape or layout.chunk_shape
    counts = [ceil_div(length, chunk) for length, chunk in zip(shape, chunks, strict=True)]
    steps = workload.steps()
    asked = [(step.operation, _slices(step)) for step in steps]
    parts, boxes_made = [], 0
    for owned in owned_boxes(counts, processes, partition, workload.seed):
        regions = [[(a * c, min(b * c, n)) for (a, b), c, n in zip(box, chunks, shape, strict=True)] for box in owned]
        accesses: list[Access] = []
        for operation, slices in asked:
            boxes = [box for region in regions if (box := _common(slices, region)) is not None]
            boxes_made += len(boxes)
            if boxes_made > MOST_BOXES:
                raise UsageError(f"the processes make more than {MOST_BOXES} calls: too many to count")
            if boxes and accesses and accesses[-1].operation == operation:
                accesses[-1].boxes.extend(boxes)  # type: ignore[union-attr]
            elif boxes:
                accesses.append(Access(select="list", boxes=boxes, operation=operation))
        if accesses:
            part = workload.in_file([])  # each process opens the file for itself
            parts.append(part.model_copy(update={"accesses": accesses, "order": "listed", "repeat": 1}))
    return parts


def _slices(step: Step) -> tuple[slice, ...]:
    selection = step.selection
    if not isinstance(selection, Hyperslab) or step.length is not None:
        raise UsageError("processes can share boxes and steps, but not listed points or appended rows")
    try:
        return tuple(selection.slices)
    except ValueError as error:
        raise UsageError(f"processes cannot share this access: {error}") from error


def _common(slices: Sequence[slice], region: Sequence[Range]) -> Box | None:
    """The part of a selection that lies in a region of the array."""
    start, shape, step = [], [], []
    for along, (low, high) in zip(slices, region, strict=True):
        stride = along.step or 1
        first = along.start + max(0, ceil_div(low - along.start, stride)) * stride
        count = ceil_div(min(high, along.stop) - first, stride)
        if count < 1:
            return None
        start.append(first)
        shape.append(count)
        step.append(stride)
    return Box(start=start, shape=shape, step=None if set(step) == {1} else step)

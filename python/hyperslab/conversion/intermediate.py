"""`Intermediate`: a file between two passes over an array, cut along the slabs of the source and of the target."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from hyperslab.conversion.encoding import Box, Bytes
from hyperslab.conversion.slabs import SlabPlan


class Intermediate:
    """The elements of an array as parts that each lie in one slab of the source and in one of the target.

    Parameters
    ----------
    descriptor : int
        An open file.
    target, source : SlabPlan
        The slabs that are read back, and those that are put in.
    width : int
        Bytes of an element.
    """

    def __init__(self, descriptor: int, target: SlabPlan, source: SlabPlan, width: int) -> None:
        self._descriptor = descriptor
        self._target = target
        self._source = source
        self._width = width
        self._offsets = _offsets(list(target.boxes()), source, width)

    def put(self, box: Box, data: Bytes) -> None:
        """Put in a slab of the source."""
        slab = data.reshape(*(one.stop - one.start for one in box), self._width)
        for part in _parts(box, self._target):
            _write_at(self._descriptor, np.ascontiguousarray(slab[_within(part, box)]), self._offsets[_key(part)])

    def read(self, box: Box, data: Bytes) -> None:
        """Read a slab of the target."""
        slab = data.reshape(*(one.stop - one.start for one in box), self._width)
        for part in _parts(box, self._source):
            piece = np.empty((*(one.stop - one.start for one in part), self._width), np.uint8)
            _read_at(self._descriptor, piece, self._offsets[_key(part)])
            slab[_within(part, box)] = piece


def _key(box: Box) -> tuple[int, ...]:
    return tuple(one.start for one in box)


def _parts(box: Box, plan: SlabPlan) -> Iterator[Box]:
    """The parts of a box that the slabs of a plan hold, in C order."""
    axes = []
    for one, slab in zip(box, plan.slab_shape, strict=True):
        cuts = range(one.start // slab * slab, one.stop, slab)
        axes.append([slice(max(cut, one.start), min(cut + slab, one.stop)) for cut in cuts])
    yield from itertools.product(*axes)


def _offsets(boxes: list[Box], source: SlabPlan, width: int) -> dict[tuple[int, ...], int]:
    """Where each part lies in the intermediate file, by its start: those of a slab of the target follow one another."""
    offset, offsets = 0, {}
    for box in boxes:
        for part in _parts(box, source):
            offsets[_key(part)] = offset
            offset += math.prod(one.stop - one.start for one in part) * width
    return offsets


def _within(part: Box, box: Box) -> Box:
    return tuple(slice(a.start - b.start, a.stop - b.start) for a, b in zip(part, box, strict=True))


def _write_at(descriptor: int, data: npt.NDArray[np.uint8], offset: int) -> None:
    view, done = data.reshape(-1).data, 0
    while done < len(view):
        done += os.pwrite(descriptor, view[done:], offset + done)


def _read_at(descriptor: int, data: npt.NDArray[np.uint8], offset: int) -> None:
    view, done = data.reshape(-1).data, 0
    while done < len(view):
        done += os.preadv(descriptor, [view[done:]], offset + done)

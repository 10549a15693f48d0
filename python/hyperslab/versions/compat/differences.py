"""What differs between an array of two versions, chunk by chunk."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from hyperslab._core import chunk_places_of
from hyperslab.archive.array import Array as ArchiveArray
from hyperslab.versions.compat.opened import Opened
from hyperslab.versions.compat.text import as_h5py


@dataclass(frozen=True)
class Box:
    """A part of an array: the start and stop of each axis. `raw` indexes it."""

    bounds: tuple[tuple[int, int], ...]

    @property
    def raw(self) -> tuple[slice, ...]:
        """The part, as slices."""
        return tuple(slice(start, stop, 1) for start, stop in self.bounds)


def differences(opened: Opened, name: str, first: str, second: str) -> dict[Box, tuple[Any, Any]]:
    """The chunks that differ, with their elements in both versions; None where one has no such part.

    Raises:
        KeyError: One of them has no such array.
    """
    arrays = [opened.array(version, name) for version in (first, second)]
    before, after = (_places(array) for array in arrays)
    found: dict[Box, tuple[Any, Any]] = {}
    for box in [*after, *(box for box in before if box not in after)]:
        if before.get(box) == after.get(box) and box in before:
            continue
        parts = [
            as_h5py(array[box.raw], array.dtype) if box in places else None
            for array, places in zip(arrays, (before, after), strict=True)
        ]
        found[box] = (parts[0], parts[1])
    return found


def _places(array: ArchiveArray) -> dict[Box, int]:
    """The place of each chunk among all that the array ever had, by the part of the array that it is; -1 for none."""
    chunk_shape = tuple(int(length) for length in array.attrs["chunks"])
    places = chunk_places_of(array._stored, chunk_shape)
    axes = [
        [(start, min(start + chunk, length)) for start in range(0, length, chunk)]
        for length, chunk in zip(array.shape, chunk_shape, strict=True)
    ]
    boxes = [Box(bounds) for bounds in itertools.product(*axes)]
    if places is None:  # mappings of another library's making: nothing is known of them
        return {box: -2 - number for number, box in enumerate(boxes)}
    return dict(zip(boxes, np.asarray(places).reshape(-1).tolist(), strict=True))

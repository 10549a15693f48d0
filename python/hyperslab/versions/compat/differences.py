"""The differences between an array of two versions, chunk by chunk, from `VersionedFile.diff`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hyperslab.versions.compat.opened import Opened
from hyperslab.versions.compat.text import as_h5py


@dataclass(frozen=True)
class Box:
    """A part of an array: start and stop on each axis. Index the array with `raw`."""

    bounds: tuple[tuple[int, int], ...]

    @property
    def raw(self) -> tuple[slice, ...]:
        """The part as slices."""
        return tuple(slice(start, stop, 1) for start, stop in self.bounds)


def differences(opened: Opened, name: str, first: str, second: str) -> dict[Box, tuple[Any, Any]]:
    """The chunks that differ, with their elements in both versions; None where a version has no such part.

    Raises
    ------
    KeyError
        A version does not have the array.
    """
    dtypes = [opened.array(version, name).dtype for version in (first, second)]
    changed = opened.native.diff(first, second).arrays.get(name)
    found: dict[Box, tuple[Any, Any]] = {}
    if changed is None:
        return found
    for chunk in changed.changed_chunks():
        starts = [position * length for position, length in zip(chunk.chunk_index, changed.chunk_shape, strict=True)]
        boxes, parts = [], []
        for part, dtype in zip((chunk.before, chunk.after), dtypes, strict=True):
            shape = () if part is None else part.shape
            boxes.append(Box(tuple((start, start + length) for start, length in zip(starts, shape, strict=False))))
            parts.append(None if part is None else as_h5py(part, dtype))
        if boxes[0] == boxes[1]:
            found[boxes[0]] = (parts[0], parts[1])
            continue
        if parts[0] is not None:
            found[boxes[0]] = (parts[0], None)
        if parts[1] is not None:
            found[boxes[1]] = (None, parts[1])
    return found

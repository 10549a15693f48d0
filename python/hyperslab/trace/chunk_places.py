"""Where in a file the chunks of its arrays lie."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from hyperslab.archive.opening import open as open_archive
from hyperslab.chunk_grid import ceil_div, chunk_counts
from hyperslab.trace.table import TracedArray

if TYPE_CHECKING:
    from hyperslab._core import Segment
    from hyperslab.archive.tree.array import Array

Box = tuple[tuple[int, ...], tuple[int, ...]]
"""The first index and the length along each axis."""


class TouchedChunk(NamedTuple):
    """What a range of bytes touches of one chunk."""

    array: int
    boxes: list[Box]
    touched_nbytes: int


class _Part(NamedTuple):
    """Chunks of one array that are encoded alike."""

    array: int
    chunk_shape: tuple[int, ...]
    grid_shape: tuple[int, ...]
    box: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    element_nbytes: int
    has_codecs: bool


@dataclass
class ChunkPlaces:
    """The chunks of all arrays of a file, in the order of their bytes."""

    starts: npt.NDArray[np.int64]
    stops: npt.NDArray[np.int64]
    owners: npt.NDArray[np.int64]
    """The part that each chunk belongs to."""
    indices: npt.NDArray[np.int64]
    """Linear indices of the chunks in the grids of their parts."""
    parts: list[_Part]
    arrays: list[TracedArray]

    @classmethod
    def of_file(cls, path: str) -> Self:
        """Look up the chunks of a file.

        Raises
        ------
        ReadError
            The file cannot be read, or is not one that hyperslab knows.
        """
        with open_archive(path) as root:
            # A virtual array shows chunks of others: these have them.
            intact_arrays = [array for array in root.walk() if array.is_variable and not array.damaged]
            real = [array for array in intact_arrays if not array.virtual_sources()]
            parts: list[_Part] = []
            columns: list[tuple[npt.NDArray[np.int64], ...]] = []
            for number, array in enumerate(real):
                for segment in array.segments():
                    _put(parts, columns, number, segment, array.dtype.itemsize)
            described = [_described(array) for array in real]
        joined = [np.concatenate([np.empty(0, np.int64), *(one[k] for one in columns)]) for k in range(4)]
        order = np.argsort(joined[0], kind="stable")
        starts, stops, owners, indices = (column[order] for column in joined)
        return cls(starts, stops, owners, indices, parts, described)

    def described(self, number: int, library: str) -> TracedArray:
        """An array, for a trace of a recorder."""
        return TracedArray(**{**vars(self.arrays[number]), "library": library})

    def is_within_encoded(self, at: int) -> bool:
        """Whether a byte lies in a chunk with codecs, and does not begin it."""
        place = int(np.searchsorted(self.starts, at)) - 1
        if place < 0 or at >= self.stops[place]:
            return False
        return bool(self.parts[self.owners[place]].has_codecs)

    def touched(self, start: int, stop: int) -> list[TouchedChunk]:
        """What a range of bytes touches."""
        first = int(np.searchsorted(self.stops, start, side="right"))
        last = int(np.searchsorted(self.starts, stop, side="left"))
        touched_chunks = []
        for place in range(first, last):
            part = self.parts[self.owners[place]]
            low, high = max(start, int(self.starts[place])), min(stop, int(self.stops[place]))
            inside = (low - int(self.starts[place]), high - int(self.starts[place]))
            boxes = _boxes(part, int(self.indices[place]), inside)
            if boxes:
                touched_chunks.append(TouchedChunk(part.array, boxes, high - low))
        return touched_chunks


def _put(
    parts: list[_Part], columns: list[tuple[npt.NDArray[np.int64], ...]], array: int, segment: Segment, width: int
) -> None:
    """Note the chunks of a segment that lie in the file itself."""
    if segment.box is None:
        return
    offsets, lengths = segment.offsets().astype(np.int64), segment.lengths().astype(np.int64)
    is_own = (segment.files() == 0) & (lengths > 0) & (offsets >= 0)
    count = int(np.count_nonzero(is_own))
    indices = segment.indices().astype(np.int64)[is_own]
    starts, stops = offsets[is_own], (offsets + lengths)[is_own]
    grid_shape = tuple(chunk_counts(segment.source_shape, segment.chunk_shape))
    has_codecs = bool(segment.codecs) or segment.dtype.hasobject
    columns.append((starts, stops, np.full(count, len(parts)), indices))
    parts.append(_Part(array, segment.chunk_shape, grid_shape, segment.box, width, has_codecs))


def _boxes(part: _Part, index: int, inside: tuple[int, int]) -> list[Box]:
    """The elements of a chunk that need these of its bytes, as boxes of the array."""
    axes = np.unravel_index(index, part.grid_shape) if part.grid_shape else ()
    origin = [int(axis) * length for axis, length in zip(axes, part.chunk_shape, strict=True)]
    whole = math.prod(part.chunk_shape)
    if part.has_codecs:
        runs: list[Box] = [((0,) * len(origin), part.chunk_shape)]
    else:
        width = max(part.element_nbytes, 1)
        runs = boxes_of_run(min(inside[0] // width, whole), min(ceil_div(inside[1], width), whole), part.chunk_shape)
    array_boxes = []
    for starts, lengths in runs:
        moved = [
            _shown(first + start, length, *axis)
            for first, start, length, axis in zip(origin, starts, lengths, zip(*part.box, strict=True), strict=True)
        ]
        if all(length > 0 for _, length in moved):
            array_boxes.append((tuple(start for start, _ in moved), tuple(length for _, length in moved)))
    return array_boxes


def _shown(start: int, length: int, at: int, shown: int, source: int) -> tuple[int, int]:
    """An interval of the source along an axis, as far as it is shown, in the array: its start and its length."""
    low, high = max(start, source), min(start + length, source + shown)
    return low - source + at, high - low


def boxes_of_run(first: int, last: int, shape: Sequence[int]) -> list[Box]:
    """The elements from `first` to before `last` of a shape in C order, as few boxes."""
    if first >= last:
        return []
    if not shape:
        return [((), ())]
    row = math.prod(shape[1:])
    top, bottom = ceil_div(first, row), last // row
    if top > bottom:  # within one row
        return _of_row(first // row, first % row, last - first // row * row, shape)
    boxes = []
    if first % row:
        boxes += _of_row(first // row, first % row, row, shape)
    if top < bottom:
        rest = tuple(shape[1:])
        boxes.append(((top, *(0 for _ in rest)), (bottom - top, *rest)))
    if last % row:
        boxes += _of_row(bottom, 0, last % row, shape)
    return boxes


def _of_row(index: int, first: int, last: int, shape: Sequence[int]) -> list[Box]:
    inner = boxes_of_run(first, last, shape[1:])
    return [((index, *starts), (1, *lengths)) for starts, lengths in inner]


def _described(array: Array) -> TracedArray:
    chunks, dtype = array.chunks, array.dtype
    return TracedArray(
        library="",
        file=os.path.abspath(array.filename),  # noqa: PTH100
        array="/" + array.name.strip("/"),
        shape=array.shape,
        chunks=chunks,
        dtype=dtype.str if dtype.names is None and dtype.kind != "O" else str(dtype),
        element_nbytes=dtype.itemsize,
        filters=array.codecs,
        layout="contiguous" if chunks is None else "chunked",
        stored_nbytes=array.stored_nbytes,
    )

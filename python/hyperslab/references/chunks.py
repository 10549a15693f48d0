"""The chunks of an array as one grid, with the byte range of each; this is all that Zarr and kerchunk can express."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hyperslab.archive.far.remote import shown
from hyperslab.chunk_grid import ceil_div, chunk_counts
from hyperslab.errors import Refused

if TYPE_CHECKING:
    from hyperslab._core import Segment
    from hyperslab.archive.tree.array import Array

BLOCK = 100_000  # number of chunks whose names are made at a time

# numcodecs' framings of values of variable length that need no parameter.
FRAMINGS = ("vlen-utf8", "vlen-bytes", "json2")


@dataclass(frozen=True)
class ChunkTable:
    """The stored chunks of a regular grid, as columns of equal length, sorted by their linear index in the grid."""

    grid_shape: tuple[int, ...]
    positions: npt.NDArray[np.int64]  # linear indices in the grid
    paths: list[str]  # of the files; `files` holds indices into this list
    files: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    inline: dict[int, bytes] = field(default_factory=dict)  # encoded bytes of further chunks, by linear index

    @property
    def chunk_count(self) -> int:
        """The number of chunks in the grid, stored or not."""
        return math.prod(self.grid_shape)

    @property
    def is_full(self) -> bool:
        """Whether every chunk of the grid is stored."""
        return len(self.positions) + len(self.inline) == self.chunk_count

    def used_paths(self) -> set[str]:
        """The paths of the files that hold chunks."""
        return {self.paths[file] for file in np.unique(self.files).tolist()}

    def key(self, position: int) -> str:
        """A chunk's name in Zarr 2: its indices with dots in between; the only chunk of a scalar is "0"."""
        index = np.unravel_index(position, self.grid_shape) if self.grid_shape else (0,)
        return ".".join(str(int(number)) for number in index)

    def named(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield name, path, offset and length of each stored chunk that is not inline."""
        for start in range(0, len(self.positions), BLOCK):
            block = slice(start, start + BLOCK)
            axes = np.unravel_index(self.positions[block], self.grid_shape) if self.grid_shape else ([0],)
            names = map(".".join, zip(*(map(str, np.asarray(axis).tolist()) for axis in axes), strict=True))
            paths = (self.paths[file] for file in self.files[block].tolist())
            yield from zip(names, paths, self.offsets[block].tolist(), self.lengths[block].tolist(), strict=True)


@dataclass(frozen=True)
class Stored:
    """An array that is one grid of chunks with one codec chain."""

    chunk_shape: tuple[int, ...]
    codecs: list[dict[str, Any]]  # in the order of encoding
    table: ChunkTable
    fills: frozenset[bytes]  # the fill values, one element each, that missing chunks may stand for


def stored(array: Array, *, are_values_expressible: bool = False) -> Stored:
    """The chunks of an array, if all of them are encoded in the same way.

    Parameters
    ----------
    array : Array
        The array.
    are_values_expressible : bool
        Whether chunks may hold values of variable length in one of numcodecs' framings.

    Raises
    ------
    Refused
        They are not; the message has the reason.
    """
    if array.unsupported:
        raise Refused(array.unsupported)
    segments = array.segments()
    if array.dtype.hasobject and not (are_values_expressible and _hold_values(segments)):
        raise Refused("its elements have variable length, and this format cannot say how its chunks hold them")
    chunk_shape = one_grid(array, segments)
    if segments and segments[0].dtype != array.dtype:
        raise Refused(f"its elements must be converted from {segments[0].dtype} to {array.dtype}")
    fills = {segment.fill or bytes(array.dtype.itemsize) for segment in segments} | {array.fill_bytes}
    codecs = _with_one_transpose(segments[0].codecs) if segments else []
    return Stored(chunk_shape, codecs, table(array, segments, chunk_shape), frozenset(fills))


def _with_one_transpose(codecs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same codecs, with transpositions that follow each other as one: readers expect one at most."""
    kept: list[dict[str, Any]] = []
    for codec in codecs:
        if codec["name"] == "transpose" and kept and kept[-1]["name"] == "transpose":
            before = kept.pop()["order"]
            codec = {**codec, "order": [before[axis] for axis in codec["order"]]}
        if codec["name"] != "transpose" or list(codec["order"]) != sorted(codec["order"]):
            kept.append(codec)
    if sum(codec["name"] == "transpose" for codec in kept) > 1:
        raise Refused("it is transposed twice, with another codec in between")
    return kept


def _hold_values(segments: list[Segment]) -> bool:
    """Whether the chunks hold values of variable length themselves, as Zarr's do."""
    names = [codec["name"] for segment in segments for codec in segment.codecs]
    return any(name in FRAMINGS for name in names)


def of_bytes(encoded: bytes, ndim: int) -> ChunkTable:
    """A table of one chunk, which is given as bytes."""
    none = np.empty(0, np.int64)
    return ChunkTable((1,) * ndim, none, [], none, none, none, {0: encoded})


def one_grid(array: Array, segments: list[Segment]) -> tuple[int, ...]:
    """The common chunk shape of all segments, if one grid and one codec chain can describe them all.

    Raises
    ------
    Refused
        They differ; the message says how.
    """
    if not segments:
        return tuple(max(length, 1) for length in array.shape)  # nothing was ever written
    first = segments[0]
    for segment in segments:
        if segment.chunk_shape != first.chunk_shape:
            raise Refused(f"its parts are chunked differently: {first.chunk_shape} and {segment.chunk_shape}")
        if segment.codecs != first.codecs:
            raise Refused("its parts are encoded differently")
        if segment.dtype != first.dtype:
            raise Refused(f"its parts have different dtypes: {first.dtype} and {segment.dtype}")
        if segment.plain_edge_chunks and _has_edge(segment):
            raise Refused("its chunks at the edge are stored without their codecs (HDF5's partial-edge-chunk flag)")
        if not segment.is_tidy:
            raise Refused("its elements are not plain numbers or strings: they must be converted after decoding")
        _check_box(array, segment)
    return first.chunk_shape


def _has_edge(segment: Segment) -> bool:
    return any(length % chunk for length, chunk in zip(segment.source_shape, segment.chunk_shape, strict=True))


def _check_box(array: Array, segment: Segment) -> None:
    """Check that a segment takes whole chunks of its source and puts them at chunk boundaries of the array."""
    if segment.box is None:
        raise Refused("it maps its source with steps, or with different axes")
    for start, length, source, chunk, whole in zip(*segment.box, segment.chunk_shape, array.shape, strict=True):
        ends_well = length % chunk == 0 or start + length == whole
        if start % chunk or source % chunk or not ends_well:
            raise Refused(f"its part at {segment.box[0]} does not lie at boundaries of chunks {segment.chunk_shape}")


def table(array: Array, segments: list[Segment], chunk_shape: tuple[int, ...]) -> ChunkTable:
    """The chunks of all segments in the array's own grid.

    Raises
    ------
    NotAllowed
        The chunks lie in a file to which the archive may not lead.
    Refused
        A chunk skips a codec, or its file is missing or ends before it, or two segments have the same chunk.
    """
    grid_shape = chunk_counts(array.shape, chunk_shape)
    if 0 in grid_shape:  # HDF5 stores a piece of no bytes even for these
        none = np.empty(0, np.int64)
        return ChunkTable(grid_shape, none, [], none, none, none)
    parts = [_part(segment, grid_shape) for segment in segments]
    inline = {position: encoded for *_, inside in parts for position, encoded in inside.items()}
    columns = [np.concatenate([np.empty(0, np.int64), *(part[k] for part in parts)]) for k in range(4)]
    order = np.argsort(columns[0], kind="stable")
    positions, numbers, offsets, lengths = (column[order] for column in columns)
    if len(positions) > 1 and (positions[1:] == positions[:-1]).any():
        raise Refused("its parts overlap")
    listed = array.file_paths() if len(numbers) else []
    array.check_files([listed[number] for number in np.unique(numbers).tolist()])
    paths = [_absolute(path, array.filename) for path in listed]
    _check_ends(paths, numbers, offsets + lengths)
    if not lengths.all():
        raise Refused("one of its chunks has zero bytes, which readers of references take for a whole file")
    return ChunkTable(grid_shape, positions, paths, numbers, offsets, lengths, inline)


def _part(segment: Segment, grid_shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Columns of a segment's chunks (index in the array's grid, file, offset, length), and its inline chunks."""
    if segment.filter_masks().any():
        raise Refused("some of its chunks skip some of its codecs (HDF5's filter masks)")
    indices = segment.indices().astype(np.int64)
    positions, is_shown = _moved(segment, indices, grid_shape)
    columns = (segment.files(), segment.offsets(), segment.lengths())
    if any(column.dtype == np.uint64 and (column >> np.uint64(63)).any() for column in columns):
        raise Refused("some of its chunks have an offset of 2**63 or more")
    inside = segment.inline()
    moved, are_shown = _moved(segment, np.fromiter(inside, np.int64, len(inside)), grid_shape)
    kept = {
        int(position): chunk for position, is_in, chunk in zip(moved, are_shown, inside.values(), strict=True) if is_in
    }
    return (positions[is_shown], *(column.astype(np.int64)[is_shown] for column in columns), kept)


def _moved(segment: Segment, indices: npt.NDArray[np.int64], grid_shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Convert linear indices from a segment's grid to the array's, and say which of them the segment includes."""
    assert segment.box is not None
    if not grid_shape:
        return indices, np.ones(len(indices), bool)
    chunk = segment.chunk_shape
    own = chunk_counts(segment.source_shape, chunk)
    axes, is_shown = [], np.ones(len(indices), bool)
    for axis, start, length, source, size in zip(np.unravel_index(indices, own), *segment.box, chunk, strict=True):
        moved = axis - source // size
        is_shown &= (moved >= 0) & (moved < ceil_div(length, size))
        axes.append(np.where(is_shown, moved + start // size, 0))
    return np.ravel_multi_index(tuple(axes), grid_shape, mode="clip"), is_shown


def _absolute(path: str | None, beside: str) -> str:
    """A file's URL or absolute path; a path that a remote file names is relative to that file."""
    if path is None or "://" in path:
        return shown(path or "")
    if "://" in beside:
        return f"{beside.rpartition('/')[0]}/{path}"
    return os.path.abspath(path)  # noqa: PTH100 -- links are not resolved


def _check_ends(paths: list[str], numbers: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> None:
    """Refuse external files that are missing or too short: HDF5 pads short ones with zeros, other readers do not."""
    if len(numbers) == 0 or not (numbers != 0).any():
        return
    for number in np.unique(numbers[numbers != 0]).tolist():
        path = paths[number]
        if "://" not in path and _nbytes(path) < ends[numbers == number].max():
            raise Refused(f"the file {path} ends before some of its chunks")


def _nbytes(path: str) -> int:
    try:
        return os.path.getsize(path)  # noqa: PTH202
    except OSError as error:
        raise Refused(f"its elements are in {path}, which cannot be read: {error.strerror}") from error

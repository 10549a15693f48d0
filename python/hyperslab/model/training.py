"""The training: which cells are measured so that every coefficient can be told from every other.

The paper's design: an array of 8,388,608 × 128 int32, chunks of 65,536 × 1 doubled along one axis or the other seven
times, all of it, a column, and random rows, read and written. Here the rows are as many as the machine and the time
allow, chunks have as large a share of them, and each read is measured cold, page-warm and library-warm, which leaves
out one phase after the other. What identifies our extensions is added: boxes, codecs, small chunks, three axes.

No cell is one of an evaluation's: other arrays, other chunk shapes, other boxes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from hyperslab._core import ChunkGrid, Hyperslab
from hyperslab.model.cells import Cell, CellCache
from hyperslab.model.libraries import Flat, Hdf5, Layout, Library, Own, Zarr
from hyperslab.model.measuring import Repeats
from hyperslab.model.workload import Workload

Scale = Literal["quick", "full"]
COLUMN_COUNT = 128
PAPER_ROW_COUNT, PAPER_CHUNK_ROW_COUNT = 8_388_608, 65_536
LIBRARIES: dict[str, Library] = {library.name: library for library in (Hdf5(), Zarr(), Own(), Flat())}
WRITING = ("hdf5", "zarr")  # what the paper compares; the others are read


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    row_count: int
    chunk_row_count: int  # of the smallest chunk
    doublings: tuple[int, ...]  # of it, along each axis in turn
    small_shape: tuple[int, int, int]
    small_chunks: tuple[tuple[int, int, int], ...]
    encoded_chunks: tuple[tuple[int, int], ...]  # times `chunk_row_count`, and columns
    most_touches: int  # chunks that the calls of one cell may touch
    repeats: Repeats


SIZES: dict[Scale, Size] = {
    # As many chunks as the paper's array has; a 16th of its rows.
    "full": Size(
        524_288,
        4096,
        tuple(range(8)),
        (96, 256, 256),
        ((8, 32, 32), (32, 32, 64), (16, 128, 128), (4, 16, 256)),
        ((1, 16), (1, 128), (4, 4)),
        3000,
        Repeats(3, 5, 1.0),
    ),
    "quick": Size(
        65_536,
        2048,
        (0, 2, 4, 7),
        (32, 128, 128),
        ((8, 32, 32), (16, 32, 64)),
        ((1, 16), (2, 128)),
        500,
        Repeats(2, 3, 0.3),
    ),
}


def smaller(size: Size, divisor: int) -> Size:
    """The same design for a smaller array: with little room, or in a test."""
    rows = max(1024, size.row_count // divisor)
    return replace(size, row_count=rows, chunk_row_count=max(1, size.chunk_row_count * rows // size.row_count))


def nbytes(size: Size) -> int:
    """Bytes of the largest array."""
    return size.row_count * COLUMN_COUNT * 4


def design(size: Size, libraries: Iterable[str] = tuple(LIBRARIES)) -> list[Cell]:
    """The cells, those that share files next to each other."""
    chosen = [name for name in LIBRARIES if name in set(libraries)]
    return [cell for layout in _layouts(size) for cell in _cells_of(size, layout, chosen)]


@dataclass(frozen=True)
class _Stored:
    """An array in a layout, what boxes are asked of it, and which libraries beside those that write."""

    array: dict[str, Any]
    layout: Layout
    box: tuple[int, ...]
    readers: bool = False
    caches: tuple[CellCache, ...] = ("cold", "page-warm", "library-warm")


def _layouts(size: Size) -> Iterator[_Stored]:
    long = {"shape": [size.row_count, COLUMN_COUNT], "dtype": "int32"}
    rows = size.chunk_row_count
    shapes = [(min(rows << k, size.row_count), 1) for k in size.doublings]
    shapes += [(rows, 1 << k) for k in size.doublings[1:]]
    boxes = ((300, 4), (64, 48), (2000, 16))
    for place, shape in enumerate(shapes):
        yield _Stored(long, Layout(shape), boxes[place % 3], readers=place % 2 == 0)
    # Few and large: HDF5 reads runs of what its cache does not hold.
    yield _Stored(long, Layout((size.row_count // 2, 64)), (300, 4), caches=("cold", "page-warm"))
    small = {"shape": list(size.small_shape), "dtype": "float32"}
    for chunk in size.small_chunks:
        yield _Stored(small, Layout(chunk), (10, 20, 30), readers=True)
    for codec in ("deflate:4", "zstd:3"):
        for factor, columns in size.encoded_chunks:
            layout = Layout((rows * factor, columns), ratio=1.0, codec=codec)  # the ratio is found when it is written
            yield _Stored(long, layout, (300, 4), True, ("cold", "page-warm"))


def _cells_of(size: Size, stored: _Stored, libraries: list[str]) -> Iterator[Cell]:
    reads = [_workload(stored, "read", access) for access in _accesses(size, stored, "read")]
    whole, _, *parts = [_workload(stored, "write", access) for access in _accesses(size, stored, "write")]
    for name in libraries:
        library = LIBRARIES[name]
        if name not in WRITING and not (stored.readers and (library != Flat() or stored.layout.codec is None)):
            continue
        caches = stored.caches if name in WRITING else ("cold", "page-warm")
        for workload in reads:
            for cache in caches:
                yield Cell(workload, stored.layout, library, cache)
        if name in WRITING:
            yield Cell(whole, stored.layout, library, "new")
            for workload in parts:
                yield Cell(workload, stored.layout, library, "page-warm")
            yield Cell(parts[-1], stored.layout, library, "cold")


def _accesses(size: Size, stored: _Stored, operation: str) -> Iterator[dict[str, Any]]:
    """All of it, columns, random rows, boxes: as often as chunks may be touched. A write of a chunk costs more."""
    shape, chunk = stored.array["shape"], stored.layout.chunk_shape
    most = size.most_touches if operation == "read" else max(1, size.most_touches // 4)
    yield {"select": "all"}
    for select, box in (
        ("columns", [*shape[:-1], 1]),
        ("random-rows", [1, *shape[1:]]),
        ("random-boxes", list(stored.box)),
    ):
        touched = ChunkGrid(shape, chunk).totals(_middle(shape, box)).chunk_count
        count = int(np.clip(most // max(touched, 1), 1, 2 if select == "columns" else 300))
        yield {"select": select, "count": count, **({"shape": box} if select == "random-boxes" else {})}


def _middle(shape: list[int], box: list[int]) -> Hyperslab:
    start = [max(0, (n - b) // 2 - 1) for n, b in zip(shape, box, strict=True)]
    return Hyperslab(start, None, None, [min(n - a, b) for a, n, b in zip(start, shape, box, strict=True)])


def _workload(stored: _Stored, operation: str, access: dict[str, Any]) -> Workload:
    return Workload.model_validate(
        {"array": stored.array, "accesses": [{**access, "operation": operation}], "seed": 20200615}
    )

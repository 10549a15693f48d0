"""The training design: which cells to measure so that every coefficient can be determined.

The paper's design is an array of 8,388,608 × 128 int32 in chunks of 65,536 × 1, which are doubled along one axis or the
other seven times. The whole array, a column, and random rows are read and written. Here the machine and the time decide
the number of rows. Reads are measured cold, page-warm and library-warm, which leaves out one phase after the other. We
add what our extensions need: boxes, codecs, a wide array with longer runs in its chunks, and a short array.

No cell is also in an evaluation: its arrays, chunk shapes and boxes are different.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from hyperslab._core import ChunkGrid, Hyperslab
from hyperslab.lab.rounds import StopRule
from hyperslab.model.cells import CellCache, ModelCell
from hyperslab.model.libraries import Flat, Hdf5, HyperslabEngine, Layout, Library, Zarr
from hyperslab.model.workload import Workload

Scale = Literal["quick", "full"]
COLUMN_COUNT = 128
PAPER_ROW_COUNT, PAPER_CHUNK_ROW_COUNT = 8_388_608, 65_536
LIBRARIES: dict[str, Library] = {library.name: library for library in (Hdf5(), Zarr(), HyperslabEngine(), Flat())}
WRITING = ("hdf5", "zarr")  # the paper compares their writes; the other libraries only read


@dataclass(frozen=True)
class TrainingSize:
    """How much is measured."""

    row_count: int
    chunk_row_count: int  # of the smallest chunk
    doublings: tuple[int, ...]  # of the smallest chunk, along each axis in turn
    wide_shape: tuple[int, int]  # of an array with longer runs in its chunks
    wide_chunks: tuple[tuple[int, int], ...]
    encoded_chunks: tuple[tuple[int, int], ...]  # rows in units of `chunk_row_count`, and columns
    most_touches: int  # chunks that the calls of one cell may touch
    most_nbytes: int  # bytes of the touched chunks
    repeats: StopRule


SIZES: dict[Scale, TrainingSize] = {
    # A 64th of the paper's rows, in chunks an eighth as long.
    "full": TrainingSize(
        131_072,
        8192,
        tuple(range(8)),
        (8192, 2048),
        ((64, 256), (1024, 64), (256, 1024), (32, 2048)),
        ((1, 4), (1, 32), (1, 128)),
        2000,
        2 << 30,
        StopRule(2, 5, 1.0),
    ),
    "quick": TrainingSize(
        65_536, 8192, (0, 3, 7), (2048, 2048), ((64, 256), (256, 1024)), ((1, 16),), 250, 1 << 30, StopRule(2, 3, 0.1)
    ),
}


def smaller(size: TrainingSize, divisor: int) -> TrainingSize:
    """The same design for a smaller array, for a small disk or for a test."""
    rows = max(1024, size.row_count // divisor)
    return replace(size, row_count=rows, chunk_row_count=max(1, size.chunk_row_count * rows // size.row_count))


def nbytes(size: TrainingSize) -> int:
    """Bytes of the largest array."""
    return size.row_count * COLUMN_COUNT * 4


def design(size: TrainingSize, libraries: Iterable[str] = tuple(LIBRARIES)) -> list[ModelCell]:
    """The cells to measure. Cells that share files are next to each other."""
    chosen = [name for name in LIBRARIES if name in set(libraries)]
    return [cell for layout in _layouts(size) for cell in _cells_of(size, layout, chosen)]


@dataclass(frozen=True)
class _Stored:
    """An array in a layout, the boxes to read from it, and the libraries that read it besides those that write it."""

    array: dict[str, Any]
    layout: Layout
    box: tuple[int, ...]
    readers: bool = False
    caches: tuple[CellCache, ...] = ("cold", "page-warm", "library-warm")


def _layouts(size: TrainingSize) -> Iterator[_Stored]:
    long = {"shape": [size.row_count, COLUMN_COUNT], "dtype": "int32"}
    rows = size.chunk_row_count
    shapes = list(dict.fromkeys((min(rows << k, size.row_count), 1) for k in size.doublings))
    shapes += [(rows, 1 << k) for k in size.doublings[1:]]
    boxes = ((300, 4), (64, 48), (2000, 16))
    for position, shape in enumerate(shapes):
        yield _Stored(long, Layout(shape), boxes[position % 3], readers=position % 2 == 0)
    # Few and large chunks: HDF5 reads the runs of chunks that do not fit into its cache.
    yield _Stored(long, Layout((size.row_count, 64)), (300, 4), caches=("cold", "page-warm"))
    # An array with few elements shows what opening and creating cost.
    short = {"shape": [max(1, size.row_count // 16), COLUMN_COUNT], "dtype": "int32"}
    for columns in (8, 64)[: len(size.encoded_chunks)]:
        yield _Stored(short, Layout((max(1, size.row_count // 64), columns)), (100, 6), readers=True)
    wide = {"shape": list(size.wide_shape), "dtype": "int32"}
    for chunk in size.wide_chunks:
        yield _Stored(wide, Layout(chunk), (100, 300), readers=True)
    for codec in ("deflate:4", "zstd:3"):
        for factor, columns in size.encoded_chunks:
            # the ratio is measured when the array is written
            layout = Layout((rows * factor, columns), ratio=1.0, codec=codec)
            yield _Stored(long, layout, (300, 4), True, ("cold", "page-warm"))


def _cells_of(size: TrainingSize, stored: _Stored, libraries: list[str]) -> Iterator[ModelCell]:
    reads = [_workload(stored, "read", access) for access in _accesses(size, stored, "read")]
    whole, *parts = [_workload(stored, "write", access) for access in _accesses(size, stored, "write")]
    for name in libraries:
        library = LIBRARIES[name]
        if name not in WRITING and not (stored.readers and (library != Flat() or stored.layout.codec is None)):
            continue
        for position, workload in enumerate(reads):
            # Library-warm reads of columns and rows add nothing to those of everything and of boxes.
            caches = stored.caches if name in WRITING and position in (0, len(reads) - 1) else ("cold", "page-warm")
            for cache in caches:
                yield ModelCell(workload, stored.layout, library, cache)
        if name in WRITING:
            yield ModelCell(whole, stored.layout, library, "new")
            for workload in parts:
                yield ModelCell(workload, stored.layout, library, "page-warm")
            yield ModelCell(parts[-1], stored.layout, library, "cold")


def _accesses(size: TrainingSize, stored: _Stored, operation: str) -> Iterator[dict[str, Any]]:
    """The whole array, columns, random rows and boxes, as often as the limit on touched chunks allows.

    Writes touch fewer.
    """
    shape, chunk = stored.array["shape"], stored.layout.chunk_shape
    most = min(size.most_touches, size.most_nbytes // _chunk_nbytes(stored)) // (1 if operation == "read" else 4)
    yield {"select": "all"}
    for select, box in (
        ("columns", [*shape[:-1], 1]),
        ("random-rows", [1, *shape[1:]]),
        ("random-boxes", list(stored.box)),
    ):
        touched = ChunkGrid(shape, chunk).totals(_middle(shape, box)).chunk_count
        count = int(np.clip(most // max(touched, 1), 1, 2 if select == "columns" else 300))
        yield {"select": select, "count": count, **({"shape": box} if select == "random-boxes" else {})}


def _chunk_nbytes(stored: _Stored) -> int:
    return int(np.prod(stored.layout.chunk_shape) * np.dtype(stored.array["dtype"]).itemsize)


def _middle(shape: list[int], box: list[int]) -> Hyperslab:
    start = [max(0, (n - b) // 2 - 1) for n, b in zip(shape, box, strict=True)]
    return Hyperslab(start, None, None, [min(n - a, b) for a, n, b in zip(start, shape, box, strict=True)])


def _workload(stored: _Stored, operation: str, access: dict[str, Any]) -> Workload:
    return Workload.model_validate(
        {"array": stored.array, "accesses": [{**access, "operation": operation}], "seed": 20200615}
    )

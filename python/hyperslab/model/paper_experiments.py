"""The serial evaluation of Kang et al., section V, scaled to one machine: arrays, accesses and libraries.

Scaling keeps the shape of every experiment. Along the long axes, chunks have a whole fraction of their published
length, and the array has as many chunks as time allows. Random selections are fewer but have the published shape. So
chunks stay far larger than a page, and their sizes differ as much as published. The training has none of these arrays,
chunk shapes, box shapes, partitions or planes, and no array with three axes: everything here is held out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from hyperslab.model.cells import CellCache, ModelCell
from hyperslab.model.installed import installed_hdf5, installed_zarr
from hyperslab.model.libraries import Layout, Library
from hyperslab.model.workload import Workload

ScaleName = Literal["tiny", "quick", "full"]
DTYPE = "float32"
NEUROSCIENCE, NEUROSCIENCE_CHUNK = (35_660_170, 64), (69_649, 1)
VORPAL, VORPAL_CHUNK = (2400, 2000, 3000), (60, 100, 300)


@dataclass(frozen=True)
class Scale:
    """How large the experiments are."""

    divisor: int  # published chunk length / ours, along the first axis of the neuroscience array
    chunk_rows: int  # chunks of the first shape along that axis
    extensions: tuple[int, ...]  # of the first chunk shape, along the first axis
    widths: tuple[int, ...]  # and along the second
    row_count: int
    box_count: int
    vorpal_divisor: int  # of every axis of VORPAL's chunks
    vorpal_grid: tuple[int, int, int]
    caches: tuple[CellCache, ...]  # of reads
    written: tuple[str, ...]  # patterns that are written as well


WIDTHS = (4, 16, 64)
EVERY = ("all", "rows", "column", "boxes")
SCALES: dict[ScaleName, Scale] = {
    "tiny": Scale(256, 4, (4,), (16,), 3, 3, 10, (2, 2, 2), ("cold", "page-warm"), ("all",)),
    "quick": Scale(8, 16, (4, 16), WIDTHS, 20, 20, 2, (2, 2, 4), ("cold", "page-warm"), ("all", "boxes")),
    "full": Scale(8, 64, (4, 16, 64), WIDTHS, 20, 50, 2, (4, 4, 4), ("cold", "page-warm", "library-warm"), EVERY),
}


@dataclass(frozen=True)
class PaperArray:
    """An array of the paper, scaled, with the chunk shapes and patterns of its experiments."""

    name: str
    shape: tuple[int, ...]
    chunk_shapes: dict[str, tuple[int, ...]]
    patterns: dict[str, dict[str, Any]]  # arguments of `Access`
    written: dict[str, CellCache]  # by pattern: into a new array, or into an existing one
    note: str  # how it was scaled


@dataclass(frozen=True)
class Candidate:
    """One cell, with the question and layout it belongs to in the evaluation."""

    question: str
    layout: str
    cell: ModelCell


def arrays(scale: Scale) -> list[PaperArray]:
    """The paper's arrays at a scale."""
    return [_neuroscience(scale), _vorpal(scale)]


def candidates(scale: Scale, libraries: tuple[Library, ...] | None = None) -> Iterator[Candidate]:
    """Every cell of the evaluation. By default it compares the installed HDF5 with the installed zarr-python."""
    for array in arrays(scale):
        for operation, pattern, cache in _asked(array, scale):
            access = {**array.patterns[pattern], "operation": operation}
            given = {"array": {"shape": list(array.shape), "dtype": DTYPE}, "accesses": [access], "seed": 1}
            workload = Workload.model_validate(given)
            for name, chunk_shape in array.chunk_shapes.items():
                for library in libraries or (installed_hdf5(), installed_zarr()):
                    cell = ModelCell(workload, Layout(chunk_shape), library, cache)
                    yield Candidate(f"{array.name} {operation} {pattern} {cache}", name, cell)


def _asked(array: PaperArray, scale: Scale) -> Iterator[tuple[Literal["read", "write"], str, CellCache]]:
    for pattern in array.patterns:
        for cache in scale.caches:
            yield "read", pattern, cache
        if pattern in array.written:
            yield "write", pattern, array.written[pattern]


def _neuroscience(scale: Scale) -> PaperArray:
    rows = NEUROSCIENCE_CHUNK[0] // scale.divisor
    shape = (rows * scale.chunk_rows, NEUROSCIENCE[1])
    chunk_shapes: dict[str, tuple[int, ...]] = {"1x1": (rows, 1)}
    chunk_shapes |= {f"{k}x1": (rows * k, 1) for k in scale.extensions}
    chunk_shapes |= {f"1x{k}": (rows, k) for k in scale.widths}
    boxes = {"select": "random-boxes", "count": scale.box_count, "shape": [1000, 8], "within": [None, 8]}
    patterns: dict[str, dict[str, Any]] = {
        "all": {"select": "all"},
        "rows": {"select": "random-rows", "count": scale.row_count},
        "column": {"select": "columns", "count": 1},
        "boxes": boxes,
    }
    smallest, largest = (4 * rows * k for k in (1, max(*scale.extensions, *scale.widths)))
    note = (
        f"neuroscience: {shape[0]:,} of {NEUROSCIENCE[0]:,} rows × {shape[1]}; chunks 1/{scale.divisor} as long as "
        f"published, {rows:,} rows, extended as published ({smallest / 1e6:.3g} to {largest / 1e6:.3g} MB); "
        f"{scale.row_count} rows and {scale.box_count} boxes of 1000 × 8 instead of 1000 each"
    )
    caches: dict[str, CellCache] = {pattern: "new" if pattern == "all" else "cold" for pattern in scale.written}
    return PaperArray("neuroscience", shape, chunk_shapes, patterns, caches, note)


def _vorpal(scale: Scale) -> PaperArray:
    chunk = tuple(length // scale.vorpal_divisor for length in VORPAL_CHUNK)
    shape = tuple(length * count for length, count in zip(chunk, scale.vorpal_grid, strict=True))
    part = [*shape[:2], shape[2] // 2]
    patterns: dict[str, dict[str, Any]] = {
        "all": {"select": "all"},
        "partition": {"select": "list", "boxes": [{"start": [0, 0, part[2]], "shape": part}]},
        "planes": {"select": "map", "count": min(5, shape[0])},
    }
    chunk_shapes: dict[str, tuple[int, ...]] = {
        "1x1x1": (chunk[0], chunk[1], chunk[2]),
        "2x1x1": (2 * chunk[0], chunk[1], chunk[2]),
        "1x1x2": (chunk[0], chunk[1], 2 * chunk[2]),
    }
    scaled, published, its_chunk, their_chunk = (
        "×".join(map(str, lengths)) for lengths in (shape, VORPAL, chunk, VORPAL_CHUNK)
    )
    note = (
        f"VORPAL: {scaled} of {published}; chunks {its_chunk} of {their_chunk} "
        f"({4 * chunk[0] * chunk[1] * chunk[2] / 1e6:.3g} MB), and twice as long along the first or the last axis; "
        "one process reads everything, the last half along the fast axis, or five planes"
    )
    return PaperArray("VORPAL", shape, chunk_shapes, patterns, {"all": "new", "partition": "new"}, note)

"""The training design: which cells to measure so that every coefficient can be determined.

The paper's design is an array of 8,388,608 × 128 int32 in chunks of 65,536 × 1, which are doubled along one axis or the
other seven times. The whole array, a column, and random rows are read and written. Here the machine and the time decide
the number of rows. Reads are measured cold, page-warm and library-warm, which leaves out one phase after the other. We
add what our extensions need: boxes, steps and points, every codec with data that compress and with noise, a wide array
with longer runs in its chunks, a short array, and a large one. The large array has chunks of 1 and 4 MiB, which are
read one here and one there, and chunks larger than HDF5's cache, which are read and written in parts.

No cell is also in an evaluation: its arrays, chunk shapes and boxes are different.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from typing import Any, Literal

import numpy as np

from hyperslab._core import ChunkGrid, Hyperslab
from hyperslab.formats import make_format
from hyperslab.formats.contract import ArraySpec, Need
from hyperslab.lab.rounds import StopRule
from hyperslab.model.cells import CellCache, Elements, ModelCell
from hyperslab.model.generated.drawing import DrawnSize, draw_on_arrays
from hyperslab.model.installed import installed_library
from hyperslab.model.libraries import LIBRARIES, Flat, Layout, Library
from hyperslab.model.workload import Workload
from hyperslab.storage.chain import CodecChain
from hyperslab.storage.layout import StoredLayout

Scale = Literal["quick", "full"]
COLUMN_COUNT = 128
LARGEST_CACHE_NBYTES = 8 << 20  # HDF5's chunk cache since version 2.0
PAPER_ROW_COUNT, PAPER_CHUNK_ROW_COUNT = 8_388_608, 65_536
# What the small arrays with codecs hold: noise, data that compress about twofold, and small integers.
ELEMENTS: tuple[Elements, ...] = ("uniform", "waves", "integers")
WRITING = ("hdf5", "zarr")  # the paper compares their writes; the other libraries only read


@dataclass(frozen=True)
class DrawnTraining:
    """How many arrays are drawn, and how many patterns and layouts for each of them."""

    arrays: int
    patterns: int
    layouts: int
    size: DrawnSize


@dataclass(frozen=True)
class TrainingSize:
    """How much is measured."""

    row_count: int
    chunk_row_count: int  # of the smallest chunk
    doublings: tuple[int, ...]  # of the smallest chunk, along each axis in turn
    wide_shape: tuple[int, int]  # of an array with longer runs in its chunks
    wide_chunks: tuple[tuple[int, int], ...]
    encoded_chunks: tuple[tuple[int, int], ...]  # rows in units of `chunk_row_count`, and columns
    large_chunks: tuple[tuple[int, int], ...]  # of the large array, as shares of its rows and columns
    most_elements: int  # that one cell may handle one by one
    most_touches: int  # chunks that the calls of one cell may touch
    most_nbytes: int  # bytes of the touched chunks
    repeats: StopRule
    drawn: DrawnTraining


# Of drawn arrays, which are smaller than those of an evaluation.
DRAWN = DrawnSize((2e6, 64e6), ((16e3, 1e6), (1e6, 8e6), (8.5e6, 24e6)), 0, 120e6, 400, 100, 300_000, 300, 300_000)
DRAWN_SEED = 19_690_720
# That a program computes between its calls; the device brings half a megabyte meanwhile.
PAUSE_SECONDS = 4e-4
SIZES: dict[Scale, TrainingSize] = {
    # A 64th of the paper's rows, in chunks an eighth as long.
    "full": TrainingSize(
        131_072,
        8192,
        (0, 2, 4, 5, 7),
        (8192, 2048),
        ((64, 256), (1024, 64), (256, 1024), (32, 2048)),
        ((1, 4), (1, 32), (1, 128)),
        ((32, 4), (16, 2), (16, 1), (4, 1), (1, 4)),
        500_000,
        2000,
        2 << 30,
        StopRule(2, 4, 0.3),
        DrawnTraining(24, 5, 3, DRAWN),
    ),
    "quick": TrainingSize(
        65_536,
        8192,
        (0, 3, 7),
        (2048, 2048),
        ((64, 256), (256, 1024)),
        ((1, 16),),
        ((16, 4), (8, 2), (4, 1), (1, 4)),
        100_000,
        250,
        1 << 30,
        StopRule(2, 3, 0.1, run_seconds=165),
        DrawnTraining(12, 5, 2, DRAWN),
    ),
}


def smaller(size: TrainingSize, divisor: int) -> TrainingSize:
    """The same design for a smaller array, for a small disk or for a test."""
    rows = max(1024, size.row_count // divisor)
    drawn = size.drawn.size
    scaled = replace(
        drawn,
        array_nbytes=(drawn.array_nbytes[0] / divisor, drawn.array_nbytes[1] / divisor),
        chunk_nbytes=tuple((low / divisor, high / divisor) for low, high in drawn.chunk_nbytes),
        most_moved_nbytes=drawn.most_moved_nbytes / divisor,
    )
    return replace(
        size,
        row_count=rows,
        chunk_row_count=max(1, size.chunk_row_count * rows // size.row_count),
        drawn=replace(size.drawn, size=scaled),
    )


def nbytes(size: TrainingSize) -> int:
    """Bytes of the largest array."""
    return prod(_large_shape(size) if size.large_chunks else (size.row_count, COLUMN_COUNT)) * 4


def _large_shape(size: TrainingSize) -> tuple[int, int]:
    """The shape of the large array: nearly twice the bytes of the long one, in an eighth of its rows."""
    return size.row_count // 8, COLUMN_COUNT * 15


def design(size: TrainingSize, libraries: Iterable[str] = tuple(LIBRARIES)) -> list[ModelCell]:
    """The cells to measure. Cells that share files are next to each other."""
    chosen = [name for name in LIBRARIES if name in set(libraries)]
    designed = [cell for layout in _layouts(size) for cell in _cells_of(size, layout, chosen)]
    return [*designed, *_drawn(size.drawn, chosen)]


def _drawn(asked: DrawnTraining, libraries: list[str]) -> Iterator[ModelCell]:
    """Drawn accesses to drawn arrays: shapes, element sizes, chunks and orders that no design thinks of."""
    shared: dict[tuple[str, str], list[ModelCell]] = {}
    for each in draw_on_arrays(asked.arrays, DRAWN_SEED, asked.size, asked.patterns, asked.layouts):
        for layout in each.layouts:
            files = shared.setdefault((repr(each.workload.array), str(layout)), [])
            for name in filter(WRITING.__contains__, libraries):
                library = installed_library(name)
                files.append(ModelCell(each.workload, layout, library, each.cache))
    return chain.from_iterable(shared.values())


@dataclass(frozen=True)
class _Stored:
    """An array in a layout, the boxes to read from it, and the libraries that read it besides those that write it.

    With `steps`, elements are also read with steps, and one by one. `kind` chooses what is done with a small or large
    array; the usual ones are read and written in all ways. With `slabs`, a new array is written in so many calls.
    """

    array: dict[str, Any]
    layout: Layout
    box: tuple[int, ...]
    readers: bool = False
    caches: tuple[CellCache, ...] = ("cold", "page-warm", "library-warm")
    steps: bool = False
    kind: Literal["usual", "codec", "large", "piece", "many"] = "usual"
    elements: Elements | None = None
    slabs: int = 0


def _layouts(size: TrainingSize) -> Iterator[_Stored]:
    long = {"shape": [size.row_count, COLUMN_COUNT], "dtype": "int32"}
    rows = size.chunk_row_count
    shapes = list(dict.fromkeys((min(rows << k, size.row_count), 1) for k in size.doublings))
    shapes += [(rows, 1 << k) for k in size.doublings[1:]]
    boxes = ((300, 4), (64, 48), (2000, 16))
    for position, shape in enumerate(shapes):
        yield _Stored(long, Layout(shape), boxes[position % 3], position % 2 == 0, steps=position % 3 == 0)
    # Few and large chunks: HDF5 reads the runs of chunks that do not fit into its cache.
    yield _Stored(long, Layout((size.row_count, 64)), (300, 4), caches=("cold", "page-warm"))
    # An array with few elements shows what opening and creating cost.
    short = {"shape": [max(1, size.row_count // 16), COLUMN_COUNT], "dtype": "int32"}
    for columns in (8, 64)[: len(size.encoded_chunks)]:
        yield _Stored(short, Layout((max(1, size.row_count // 64), columns)), (100, 6), readers=True)
    wide = {"shape": list(size.wide_shape), "dtype": "int32"}
    for chunk in size.wide_chunks:
        yield _Stored(wide, Layout(chunk), (100, 300), readers=True, steps=True)
    for codec in ("deflate:4", "zstd:3"):
        for factor, columns in size.encoded_chunks:
            # the ratio is measured when the array is written
            layout = Layout((rows * factor, columns), ratio=1.0, codec=codec)
            yield _Stored(long, layout, (300, 4), True, ("cold", "page-warm"))
    # Programs that read an array in one piece row by row compute while the system reads ahead.
    piece = Layout(size.wide_shape, contiguous=True)
    yield _Stored(wide, piece, (4, size.wide_shape[1]), caches=("cold", "page-warm"), kind="piece")
    # Calls that touch thousands of chunks: HDF5 makes a selection of each before it reads the first.
    tiny = Layout((1, COLUMN_COUNT // 2))
    yield _Stored(short, tiny, (300, COLUMN_COUNT), caches=("page-warm", "library-warm"), kind="many")
    yield from _codecs(size, short)
    yield from _large(size)


def _codecs(size: TrainingSize, short: dict[str, Any]) -> Iterator[_Stored]:
    """Every codec on a small array, with noise and with data that compress: a codec's time depends on both sides."""
    rows, columns = short["shape"]
    for codec in ("deflate:4", "zstd:3", "lzf", "blosc-lz4:5", "blosc-zstd:5") if size.encoded_chunks else ():
        for elements in ELEMENTS[: 1 + len(size.encoded_chunks)]:
            layout = Layout((max(1, rows // 8), columns), ratio=1.0, codec=codec)
            yield _Stored(short, layout, (100, 6), True, ("page-warm",), kind="codec", elements=elements)
        # Many small chunks: each is handed to a codec by itself, which takes longer than its bytes.
        small = Layout((max(1, rows // 64), columns // 8), ratio=1.0, codec=codec)
        yield _Stored(short, small, (100, 6), True, ("cold", "page-warm"), kind="codec", elements="waves")


def _large(size: TrainingSize) -> Iterator[_Stored]:
    shape = _large_shape(size)
    for shares in size.large_chunks:
        chunk = tuple(max(1, length // share) for length, share in zip(shape, shares, strict=True))
        array = {"shape": list(shape), "dtype": "int32"}
        slabs = 4 * shares[0] if chunk[1] == shape[1] or prod(chunk) * 4 > LARGEST_CACHE_NBYTES else 0
        yield _Stored(array, Layout(chunk), (16, 16), caches=("cold", "page-warm"), kind="large", slabs=slabs)
    if size.large_chunks:  # each slab decodes and encodes its chunk again, if the chunk does not fit into the cache
        array = {"shape": [shape[0] // 2, shape[1]], "dtype": "int32"}
        layout = Layout((max(1, shape[0] // 8), shape[1]), ratio=1.0, codec="blosc-lz4:5")
        yield _Stored(array, layout, (16, 16), caches=("page-warm",), kind="large", slabs=8)


def _cells_of(size: TrainingSize, stored: _Stored, libraries: list[str]) -> Iterator[ModelCell]:
    reads = [_workload(stored, "read", access) for access in _accesses(size, stored, "read")]
    whole, *parts = [_workload(stored, "write", access) for access in _accesses(size, stored, "write")]
    for name in libraries:
        library = installed_library(name)
        if name not in WRITING and not (stored.readers and (library != Flat() or stored.layout.codec is None)):
            continue
        if not _has_codec(name, stored.layout.codec):
            continue
        if stored.kind != "usual":
            yield from _special_cells(stored, library, reads[0], reads[-1], whole)
            continue
        if stored.steps and name in WRITING:
            yield from _stepped_cells(size, stored, library)
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


def _has_codec(library: str, codec: str | None) -> bool:
    """Whether a library writes a codec. If its plug-in is missing, the codec is not trained."""
    if codec is None or library == "flat":
        return codec is None
    spec = ArraySpec((2,), np.dtype("int32"), StoredLayout((2,), codecs=CodecChain.read(codec)))
    return make_format("zarr3" if library == "zarr" else "hdf5").refusal(spec, Need()) is None


def _special_cells(
    stored: _Stored, library: Library, whole: Workload, boxes: Workload, writes: Workload
) -> Iterator[ModelCell]:
    """Cells that a small array with a codec, the large array, or an array in one piece or in tiny chunks adds."""
    if stored.kind in ("piece", "many") and library.name != "hdf5":
        return
    if stored.kind == "piece":
        yield from _cells_in_order(stored, library)
        return
    made = stored.elements
    for cache in stored.caches:
        yield ModelCell(whole, stored.layout, library, cache, made)
        if stored.kind in ("large", "many"):
            yield ModelCell(boxes, stored.layout, library, cache, made)
    if library.name not in WRITING:
        return
    if stored.kind == "codec":
        yield ModelCell(writes, stored.layout, library, "new", made)
    if stored.slabs:
        rows, columns = stored.array["shape"]
        length = max(1, rows // stored.slabs)
        starts = range(0, rows - length + 1, length)
        listed = [{"start": [start, 0], "shape": [length, columns]} for start in starts]
        asked = _workload(stored, "write", {"select": "list", "boxes": listed})
        caches: tuple[CellCache, ...] = ("new", "page-warm")
        for cache in caches:
            yield ModelCell(asked, stored.layout, library, cache, made)


def _cells_in_order(stored: _Stored, library: Library) -> Iterator[ModelCell]:
    """Boxes of rows that follow each other, of one size and another, in calls of their own: few of them, and all.

    Then all, and some in another order, of a program that computes between its calls: nobody waits for most bytes.
    """
    rows, columns = stored.array["shape"]
    for length in (stored.box[0], 16 * stored.box[0]):
        starts = list(range(0, rows - length + 1, length))
        few = max(1, len(starts) // 16)
        scattered = starts[:: max(1, len(starts) // 24)][::-2]
        for chosen, pause in (
            (starts, 0.0),
            (starts[:few], 0.0),
            (starts[len(starts) // 2 :][:few], 0.0),
            (scattered, 0.0),
            (starts, PAUSE_SECONDS),
            (scattered, PAUSE_SECONDS),
        ):
            listed = [{"start": [start, 0], "shape": [length, columns]} for start in chosen]
            access = {"select": "list", "boxes": listed, **({"compute_seconds": pause} if pause else {})}
            for cache in stored.caches if not pause else stored.caches[:1]:
                yield ModelCell(_workload(stored, "read", access), stored.layout, library, cache)


def _stepped_cells(size: TrainingSize, stored: _Stored, library: Library) -> Iterator[ModelCell]:
    """Reads with a step along one axis, along both, and of points that one call lists."""
    shape = stored.array["shape"]
    for step in ([3, 1], [2, 4]):
        most = [max(1, length // each) for length, each in zip(shape, step, strict=True)]
        columns = min(most[1], 1 << (size.most_elements.bit_length() // 2))
        box = {"start": [0, 0], "shape": [min(most[0], max(1, size.most_elements // columns)), columns], "step": step}
        for operation in ("read", "write") if step == [2, 4] else ("read",):
            asked = _workload(stored, operation, {"select": "list", "boxes": [box]})
            yield ModelCell(asked, stored.layout, library, "page-warm")
    touched = min(size.most_touches, size.most_nbytes // _chunk_nbytes(stored))
    counts = [length // chunk + 1 for length, chunk in zip(shape, stored.layout.chunk_shape, strict=True)]
    count = size.most_elements // 50 if prod(counts) <= touched else touched
    yield ModelCell(
        _workload(stored, "read", {"select": "points", "count": count}), stored.layout, library, "page-warm"
    )


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

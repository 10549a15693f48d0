"""Count the variables of a workload for a layout and a library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hyperslab._core import CacheState, ChunkGrid
from hyperslab.model.call_counts import device_bytes, direct_nbytes, facts_of, far, fresh_nbytes, touched_chunk_count
from hyperslab.model.cells import ModelCell
from hyperslab.model.libraries import Caches, Hdf5, HyperslabEngine, Layout, Library, Zarr, options_of
from hyperslab.model.step_forms import columns_of, taken_apart
from hyperslab.model.workload import Step, Workload


class Variables(NamedTuple):
    """What a workload makes a library and its device do, by the paper's symbols. Sizes are in bytes.

    Each value is a sum over the accesses. `n_cache` and `s_cache` are reads that the page
    cache serves. `n_rdisk` and `s_rdisk` are reads from the device; `n_rseek` and `s_rseek` are those of them that the
    reader waits for. `n_open`, `n_absent` and `n_create` are files opened, not found, and created. `s_decode` and
    `s_encode` are decoded bytes that pass through codecs. All other symbols are the paper's, except these, which follow
    from the selections alone:

    `n_array` is how often the array is opened, `n_again` how many of these times its file is open already, `n_cold`
    how many of them find nothing of the file in memory, `n_made` how often opening creates it, and `n_call` the calls
    of the library. `n_far` counts copies of runs shorter than a cache
    line, if the processor's caches have lost the neighbouring memory by the time it is touched again; each copy is
    multiplied by the doublings beyond these caches. Zarr reads several files at the same time: its `s_rseek` is the
    bytes of a call divided by the number of files read at a time.

    `s_rshort` is the part of `s_rseek` in the first bytes of each request. `s_rneed` is the part of the other device
    reads that a call needs, or waits behind. `s_covered` is the part of them that arrives while the same call copies
    and decodes, `s_later` what arrives between calls and in later ones, or is never needed, and `s_exposed` is the rest
    of `s_rdisk`: a call waits for it.
    `n_element` is the number of elements that a library handles one by one: HDF5 if a selection has steps along any
    of several axes, or lists points; Zarr if it has steps along the last axis, or lists points. `n_line` is the
    number of lines along the last axis that these elements form, counted in each chunk, and `n_apart` the number of
    those that do not follow each other: half for the memory, half for the file. `n_run` is the number of runs that
    selections with gaps have. These three are for HDF5. `s_decode_in` and `s_encode_out` are the stored bytes on the
    other side of the codecs.

    `s_direct` is the bytes that requests bring into the caller's memory: no copy of them is counted.
    `s_mshort` is the part of `s_memcpy` in the first kibibyte of each copy, and `s_spread` the bytes of the memory
    lines that are touched by selections with a step along the last axis, and by NumPy's copies of columns.
    `s_fresh` is the bytes of results, and `s_kept` those of HDF5's chunk cache, in memory that the process has not
    touched before. `s_unique` is the part of `s_cache` that the page cache has from before, `s_dirty` the part of
    `s_wdisk` that is not written over again, and `s_grown` the part of that which a new file needs room for; no
    more than the touched chunks can be new. `n_decode` and `n_encode` are how often a chunk
    is decoded and encoded. `s_decode_filler` and `s_encode_filler` are the parts of `s_decode` and
    `s_encode` in elements that hold the fill value: those of a chunk beyond the end of the array, and those of a
    new array that nobody has written. `s_decode_alone` and `s_encode_alone` are the parts in calls that touch a
    single chunk, of libraries that otherwise use several threads.
    """

    n_memcpy: float
    s_memcpy: float
    n_cache: float
    s_cache: float
    n_rdisk: float
    s_rdisk: float
    n_rseek: float
    s_rseek: float
    n_rindex: float
    s_rindex: float
    n_wdisk: float
    s_wdisk: float
    n_wseek: float
    n_windex: float
    n_rrequest: float
    s_rrequest: float
    n_wrequest: float
    s_wrequest: float
    n_chunk: float
    n_open: float
    n_absent: float
    n_create: float
    s_decode: float
    s_encode: float
    s_rneed: float = 0.0
    n_array: float = 1.0
    n_made: float = 0.0
    n_call: float = 0.0
    n_far: float = 0.0
    n_element: float = 0.0
    s_rshort: float = 0.0
    s_covered: float = 0.0
    s_later: float = 0.0
    s_exposed: float = 0.0
    s_decode_in: float = 0.0
    s_encode_out: float = 0.0
    n_line: float = 0.0
    n_run: float = 0.0
    n_apart: float = 0.0
    s_fresh: float = 0.0
    s_kept: float = 0.0
    s_mshort: float = 0.0
    s_spread: float = 0.0
    s_unique: float = 0.0
    s_dirty: float = 0.0
    s_grown: float = 0.0
    s_decode_filler: float = 0.0
    s_encode_filler: float = 0.0
    n_decode: float = 0.0
    n_encode: float = 0.0
    s_decode_alone: float = 0.0
    s_encode_alone: float = 0.0
    n_again: float = 0.0
    n_cold: float = 0.0
    s_direct: float = 0.0


# These are simulated; the others follow from the selections.
COUNTED = Variables._fields[: len(CacheState.variable_names())]
# The processor fetches memory ahead, so the first bytes of a copy take longer than the rest.
SHORT_COPY_NBYTES = 1024
State = Literal["row_major", "missing"]
Direction = Literal["read", "write"]


def count_each(
    workload: Workload, layout: Layout, library: Library, caches: Caches | None = None, chunks: State = "row_major"
) -> npt.NDArray[np.uint64]:
    """The variables of each call, and of closing the array, whenever it is closed, in the last row.

    Parameters
    ----------
    workload : Workload
        The array and its accesses.
    layout : Layout
        How the array is stored.
    library : Library
        The library that makes the calls.
    caches : Caches | None
        The page cache; None means one that is unlimited and never reads ahead.
    chunks : State
        What exists before: the whole array, written in row-major order, or nothing.

    Returns
    -------
    npt.NDArray[np.uint64]
        Shape `(calls + 1, variables)`.

    Raises
    ------
    ValueError
        The layout or an option is invalid, or the library cannot make one of the accesses.
    """
    return _rows(workload.steps(), workload, layout, library, caches, chunks)


def _rows(
    steps: Sequence[Step],
    workload: Workload,
    layout: Layout,
    library: Library,
    caches: Caches | None,
    chunks: State = "row_major",
) -> npt.NDArray[np.uint64]:
    caches = caches or Caches()
    # Only libraries that read an existing file as it is can use what is known of that file.
    listed = layout.manifest if chunks == "row_major" and isinstance(library, Hdf5 | HyperslabEngine) else None
    state = CacheState(
        ChunkGrid(workload.array.shape, layout.chunk_shape),
        workload.array.element_nbytes,
        library.name,
        chunks=chunks if listed is None else "listed",
        manifest=None if listed is None else list(listed),
        ratio=layout.ratio,
        page_cache_nbytes=caches.page_cache_nbytes,
        read_ahead_nbytes=caches.read_ahead_nbytes,
        options=options_of(library, layout),
    )
    rows, written = [], np.zeros(len(COUNTED), np.uint64)
    steps = taken_apart(steps)
    again = steps.columns.reopens_array
    for start, stop in _runs(steps):
        first = steps[start]
        if first.reopens:
            written = written + state.reopen()[0]
        elif first.reopens_array:
            written = written + state.reopen_array()[0]
        grown = state.resize(first.length)[0] if first.length is not None else 0
        reopened = (np.flatnonzero(again[start + 1 : stop]) + 1).tolist()
        rows.append(state.access(first.operation, [step.selection for step in steps[start:stop]], reopened))
        rows[-1][0] += grown
    closing, _ = state.close()
    return np.concatenate([*rows, (closing + written)[np.newaxis]])


def _runs(steps: Sequence[Step]) -> Iterator[tuple[int, int]]:
    """Where steps begin and end that can be counted together: the file stays open, and all read, or all write."""
    columns = columns_of(steps)
    begins = columns.reopens | columns.grows
    if columns.is_write.any():  # what closing writes is no read's
        begins = begins | columns.reopens_array
    begins[1:] |= columns.is_write[1:] != columns.is_write[:-1]
    begins[:1] = True
    edges = [*np.flatnonzero(begins).tolist(), len(steps)]
    return pairwise(edges)


def count(
    workload: Workload, layout: Layout, library: Library, caches: Caches | None = None, chunks: State = "row_major"
) -> Variables:
    """The variables of a workload: the sum over its calls, and closing the array.

    The parameters are those of `count_each`.

    Raises
    ------
    ValueError
        The layout or an option is invalid, or the library cannot make one of the accesses.
    """
    steps = workload.steps()
    rows = _rows(steps, workload, layout, library, caches, chunks)
    return _summed(workload, layout, library, steps, rows, chunks)._replace(**openings(steps, library))


def count_operations(cell: ModelCell, caches: Caches | None = None) -> dict[Direction, Variables]:
    """The variables of a cell's reads and of its writes. The cell's `cache` says what exists and is cached beforehand.

    If the cell writes, then opening and what is written while closing count as writes.

    Raises
    ------
    ValueError
        The layout or an option is invalid, or the library cannot make one of the accesses.
    """
    steps = cell.workload.steps()
    chunks: State = "missing" if cell.cache == "new" else "row_major"
    is_kept = cell.cache == "library-warm" and isinstance(cell.library, Hdf5)
    made = [*steps, *steps] if is_kept else steps
    # The system does not read ahead what is cached already.
    caches = caches if cell.cache == "cold" else replace(caches or Caches(), read_ahead_nbytes=0)
    rows = _rows(made, cell.workload, cell.layout, cell.opened, caches, chunks)[len(made) - len(steps) :]
    names: tuple[Direction, ...] = ("read", "write")
    is_write = columns_of(steps).is_write
    positions = {"read": np.flatnonzero(~is_write).tolist(), "write": np.flatnonzero(is_write).tolist()}
    by_operation: dict[Direction, Variables] = {}
    for name in names:
        if positions[name]:
            closes = name == "write" or not positions["write"]
            mine = [*positions[name], len(steps)] if closes else positions[name]
            chosen = steps if len(positions[name]) == len(steps) else [steps[k] for k in positions[name]]
            variables = _summed(cell.workload, cell.layout, cell.library, chosen, rows[mine], chunks)
            variables = variables._replace(**(openings(steps, cell.library) if closes else {"n_array": 0.0}))
            by_operation[name] = _with_cache(variables, cell, is_kept)
    return by_operation


def openings(steps: Sequence[Step], library: Library) -> dict[str, float]:
    """How often the array is opened, and how many of these times in a file that is open already.

    Before the first call, all is opened anyway. Our engine knows all arrays of an open file that is on a server.
    """
    columns = columns_of(steps)
    again = columns.reopens[1:]
    shared = columns.shared[0] + sum(columns.shared[1:][again].tolist())
    files = 1 + int(again.sum()) - shared
    knows = isinstance(library, HyperslabEngine) and library.far
    arrays = 0 if knows else shared + int((columns.reopens_array[1:] & ~again).sum())
    return {"n_array": float(files + arrays), "n_again": float(arrays)}


def _kept(variables: Variables, layout: Layout, library: Library, chunk_nbytes: float) -> float:
    """The bytes of memory that HDF5's chunk cache takes from the system."""
    if not isinstance(library, Hdf5) or layout.contiguous or chunk_nbytes > library.chunk_cache_nbytes:
        return 0.0
    return min(float(library.chunk_cache_nbytes), variables.n_chunk * chunk_nbytes)


def _alone(nbytes: npt.NDArray[np.float64], chunk_nbytes: float) -> float:
    """The bytes of those calls that decode or encode a single chunk."""
    return float(nbytes[nbytes <= chunk_nbytes].sum())


def _last_shape(workload: Workload, steps: Sequence[Step]) -> list[int]:
    """The shape of the array after it has grown."""
    first, *others = workload.array.shape
    grown = [steps[place].length or 0 for place in np.flatnonzero(columns_of(steps).grows).tolist()]
    return [max([first, *grown]), *others]


def _with_cache(variables: Variables, cell: ModelCell, is_kept: bool) -> Variables:
    if is_kept:
        return variables._replace(n_array=0.0, n_again=0.0)
    if cell.cache == "cold" and variables.n_array:
        return variables._replace(n_cold=1.0 - cell.workload.steps()[0].shared)
    if cell.cache in ("cold", "new"):
        return variables
    # Nothing comes from the device. If the store is memory, nothing comes from the page cache either.
    gone = (
        *("n_rdisk", "s_rdisk", "n_rseek", "s_rseek", "n_rindex", "s_rindex"),
        *("s_rshort", "s_rneed", "s_covered", "s_later", "s_exposed"),
    )
    reads = dict.fromkeys(gone, 0.0)
    if cell.cache == "library-warm":
        return variables._replace(
            **reads,
            n_cache=0.0,
            s_cache=0.0,
            s_unique=0.0,
            s_kept=0.0,
            n_open=0.0,
            n_absent=0.0,
            n_array=0.0,
            n_again=0.0,
        )
    n_cache = variables.n_cache + variables.n_rdisk + variables.n_rindex
    s_cache = variables.s_cache + variables.s_rdisk + variables.s_rindex
    return variables._replace(
        **reads, n_cache=n_cache, s_cache=s_cache, s_unique=variables.s_rdisk + variables.s_rindex
    )


def _summed(
    workload: Workload,
    layout: Layout,
    library: Library,
    steps: Sequence[Step],
    rows: npt.NDArray[np.uint64],
    chunks: State,
) -> Variables:
    """Sum the rows of the steps (and a last row for closing, if there is one), and add what follows from the
    selections.
    """
    sums = rows.astype(np.float64)
    elements, lines, pauses = np.zeros(len(sums)), np.zeros(len(sums)), np.zeros(len(sums))
    columns = columns_of(steps)
    pauses[: len(steps)] = columns.compute_seconds
    chunk = layout.chunk_shape
    is_zarr = isinstance(library, Zarr)
    width = workload.array.element_nbytes
    apart = np.zeros(len(sums))
    rows_nbytes = np.zeros(len(sums))  # of the selections' last axis
    facts = facts_of(steps, chunk, library, width, in_one_piece=layout.contiguous)
    lines[: len(steps)], apart[: len(steps)], elements[: len(steps)], runs, spread, last, nbytes = facts.T
    rows_nbytes[: len(steps)] = last
    if is_zarr:  # NumPy copies a line at once, with a step or not
        copies = COUNTED.index("n_memcpy")
        sums[: len(steps), copies] = np.minimum(sums[: len(steps), copies], lines[: len(steps)])
    is_hdf5 = isinstance(library, Hdf5)
    column = {name: sums[:, position] for position, name in enumerate(COUNTED)}
    device = device_bytes(column, elements, pauses, reads_side_by_side=is_zarr)
    direct = direct_nbytes(column, prod(workload.array.shape) * width) if is_hdf5 and layout.contiguous else 0.0
    variables = Variables(*sums.sum(axis=0).tolist())
    ratio = layout.ratio or 1.0
    chunk_nbytes = float(prod(layout.chunk_shape) * width)
    touched_chunks, inside = touched_chunk_count(steps, _last_shape(workload, steps), layout.chunk_shape)
    touched = touched_chunks * chunk_nbytes
    dirty = min(variables.s_wdisk, touched / ratio)
    written = float(nbytes[columns.is_write].sum())
    is_new = chunks == "missing"
    filler = max(0.0, 1.0 - (written if is_new else inside * width) / touched) if touched else 0.0
    return variables._replace(
        n_made=float(is_new),
        n_call=float(len(steps)),
        n_far=far(column, rows_nbytes),
        n_element=float(elements.sum()),
        n_line=float(lines[elements > 0].sum()) if is_hdf5 else 0.0,
        n_apart=float((lines * apart)[elements > 0].sum()) if is_hdf5 else 0.0,
        n_run=float(runs.sum()),
        s_fresh=float(fresh_nbytes(nbytes[~columns.is_write].astype(np.int64))),
        s_mshort=float(np.minimum(column["s_memcpy"], column["n_memcpy"] * SHORT_COPY_NBYTES).sum()),
        s_dirty=dirty,
        s_grown=dirty if is_new else 0.0,
        n_decode=variables.s_decode / chunk_nbytes,
        n_encode=variables.s_encode / chunk_nbytes,
        s_decode_filler=variables.s_decode * filler,
        s_encode_filler=variables.s_encode * filler,
        s_decode_alone=0.0 if is_hdf5 else _alone(column["s_decode"], chunk_nbytes),
        s_encode_alone=0.0 if is_hdf5 else _alone(column["s_encode"], chunk_nbytes),
        s_kept=_kept(variables, layout, library, chunk_nbytes),
        s_spread=float(spread.sum()),
        s_decode_in=variables.s_decode / ratio,
        s_encode_out=variables.s_encode / ratio,
        s_direct=direct,
        **device,
    )

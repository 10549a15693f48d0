"""The variables of a workload in a layout, by a library."""

from __future__ import annotations

from itertools import groupby
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hyperslab._core import CacheState, ChunkGrid
from hyperslab.model.libraries import Caches, Layout, Library, options_of
from hyperslab.model.workload import Workload


class Variables(NamedTuple):
    """What a workload makes a library and its device do, by the symbols of the paper; sizes are bytes.

    Sums over the accesses, each times its weight. `n_cache` and `s_cache` are reads that the page cache serves,
    `n_rdisk` and `s_rdisk` those of the device; `n_open`, `n_absent` and `n_create` are files opened, not found, and
    written anew; `s_decode` and `s_encode` are decoded bytes that pass through codecs. The rest is the paper's.
    """

    n_memcpy: float
    s_memcpy: float
    n_cache: float
    s_cache: float
    n_rdisk: float
    s_rdisk: float
    n_rseek: float
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


State = Literal["row_major", "missing"]


def count_each(
    workload: Workload, layout: Layout, library: Library, caches: Caches | None = None, chunks: State = "row_major"
) -> npt.NDArray[np.uint64]:
    """The variables of each call, and of closing the array at last: uint64, shape `(calls + 1, variables)`.

    `chunks` says what exists before: the whole array, written in row-major order, or nothing.

    Raises:
        ValueError: The layout or a number has no meaning, or the library cannot do what is asked.
    """
    caches = caches or Caches()
    state = CacheState(
        ChunkGrid(workload.array.shape, layout.chunk_shape),
        workload.array.element_nbytes,
        library.name,
        chunks=chunks,
        ratio=layout.ratio,
        page_cache_nbytes=caches.page_cache_nbytes,
        read_ahead_nbytes=caches.read_ahead_nbytes,
        options=options_of(library, layout),
    )
    steps = workload.steps()
    rows = [
        state.access(operation, [step.selection for step in run])
        for operation, run in groupby(steps, key=lambda step: step.operation)
    ]
    closing, _ = state.close()
    return np.concatenate([*rows, closing[np.newaxis]])


def count(
    workload: Workload, layout: Layout, library: Library, caches: Caches | None = None, chunks: State = "row_major"
) -> Variables:
    """The variables of a workload: those of its calls, each times its weight, and of closing the array.

    Raises:
        ValueError: The layout or a number has no meaning, or the library cannot do what is asked.
    """
    rows = count_each(workload, layout, library, caches, chunks)
    weights = np.array([*(step.weight for step in workload.steps()), 1.0])
    return Variables(*(weights @ rows.astype(np.float64)).tolist())

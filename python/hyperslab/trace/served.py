"""Which reads of a trace `hyperslab run` would serve rather than leave to libhdf5.

The rule is that of `crates/hyperslab-preload/src/serving.rs`; docs/run.md has it in words. Tests compare the numbers
with that file, and the rule with what `hyperslab run` serves.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from hyperslab.trace.chunk_touches import grid_shape
from hyperslab.trace.summaries import ArraySummary
from hyperslab.trace.table import TracedArray
from hyperslab.trace.trace import Trace

FEW_ELEMENTS, FEWEST_ELEMENTS = 1 << 10, 2
FEW_NBYTES, FEW_PLAIN_NBYTES = 32 << 10, 1 << 20
NBYTES_PER_CHUNK = 64
DEFAULT_CACHE_NBYTES = 1 << 20

Flags = npt.NDArray[np.bool_]


def served_reads(trace: Trace, one: ArraySummary) -> Flags:
    """For each of the analysed accesses to an array, in order, whether it is a read that would be served."""
    rows = one.rows[: one.analysed_count]
    if not _may_be_served(one.array) or one.write_count or not len(rows):
        return np.zeros(len(rows), bool)
    nbytes = trace.columns["nbytes"][rows]
    touched = one.touch_counts if len(one.touch_counts) == len(rows) else np.zeros(len(rows), np.int64)
    return worth_serving(one.array, nbytes // max(one.array.element_nbytes, 1), nbytes, touched)


def served_share(trace: Trace, one: ArraySummary) -> float:
    """The share of the time of the analysed accesses that those take which would be served."""
    served = served_reads(trace, one)
    spent = one.durations[: len(served)].astype(float)
    total = float(spent.sum())
    return float(spent[served].sum()) / total if total else float(served.mean()) if len(served) else 0.0


def _may_be_served(array: TracedArray) -> bool:
    """Whether anything of the array is: a local file, stored in a way and with elements that our engine reads."""
    return array.is_local and array.layout in ("chunked", "contiguous", "unknown") and array.dtype != "object"


def worth_serving(
    array: TracedArray, counts: npt.NDArray[np.int64], nbytes: npt.NDArray[np.int64], touched: npt.NDArray[np.int64]
) -> Flags:
    """Which reads would be served, by the elements, bytes and chunks of each."""
    chunk_nbytes = array.chunk_nbytes or 0
    is_filtered = bool(array.filters) and chunk_nbytes > 0
    cache_nbytes = DEFAULT_CACHE_NBYTES if array.cache_nbytes is None else array.cache_nbytes
    chunk_count = math.prod(grid_shape(array.shape, array.chunks)) if array.chunks else 1
    uncached_nbytes = chunk_nbytes if is_filtered and chunk_nbytes > cache_nbytes else 0
    spread = np.minimum(touched, counts) * chunk_nbytes
    keeps = not is_filtered or chunk_count * chunk_nbytes <= cache_nbytes
    spread = np.where(keeps | (counts < FEWEST_ELEMENTS) | (spread <= cache_nbytes), 0, spread)
    is_small = ((counts < FEW_ELEMENTS) | (nbytes < FEW_NBYTES)) & (spread == 0) & (uncached_nbytes == 0)
    size = np.maximum(nbytes, spread)
    asked = np.cumsum(np.where(is_small, 0, np.maximum(size, uncached_nbytes)))
    is_large = (size >= (FEW_NBYTES if is_filtered else FEW_PLAIN_NBYTES)) | (uncached_nbytes > 0)
    is_worth_serving: Flags = ~is_small & is_large & (asked // NBYTES_PER_CHUNK >= chunk_count)
    return is_worth_serving

"""Memory for reads: arrays aligned so that the kernel copies fast, and free memory that is really available."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

# Memory for decoded chunks, the default of every function that opens archives; Rust has it in `plan::defaults`.
CHUNK_CACHE_NBYTES = 32 << 20
CACHE_LINE = 64
# Extra memory to make ready, because libraries have their own buffers.
MARGIN, MARGIN_NBYTES = 1.25, 8 << 20
PAGE = 4096


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A new C-contiguous array of `shape` and `dtype` that starts on a cache line; its elements are undefined.

    malloc puts a large block 16 bytes into its first page. File data are page-aligned in the page cache, so each store
    of a copy into such a block is followed by a load with the same low 12 address bits, which the processor takes for
    the same address ("4K aliasing"). On our machine, pread of 32 MiB took 6.4 ms into such a block and 4.5 ms into an
    aligned one.
    """
    nbytes = math.prod(shape) * dtype.itemsize
    if dtype.hasobject or nbytes < 1 << 16:  # too small to matter
        return np.empty(shape, dtype)
    block = np.empty(nbytes + CACHE_LINE, np.uint8)
    start = -block.ctypes.data % CACHE_LINE
    aligned: np.ndarray[Any, Any] = block[start : start + nbytes].view(dtype.base).reshape(*shape, *dtype.shape)
    return aligned


def make_ready(nbytes: int) -> None:
    """Allocate and free this much memory before a timer starts, so that later allocations are fast.

    A virtual machine returns free memory to its host (free page reporting), and the host must find a new page for each
    page that is used again. On our machine, reading 36 MB into a new array took 21 ms, but 60 to 140 ms if the host had
    taken the memory; which of the two happens in a trial is chance. This function touches `nbytes` plus a margin, and
    at most a quarter of the free memory.
    """
    wanted = min(int(nbytes * MARGIN) + MARGIN_NBYTES, os.sysconf("SC_AVPHYS_PAGES") * PAGE // 4)
    np.empty(wanted, np.uint8)[::PAGE] = 1

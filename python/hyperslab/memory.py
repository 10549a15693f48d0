"""Memory for reads: arrays aligned so that the kernel copies fast, and free memory that is really available."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path
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


def return_memory() -> None:
    """Give what this process has freed back to the system, so that the next work meets new pages, as in a new process.

    glibc keeps freed memory for the next allocations: of the 41 MB that netCDF4's chunk cache took for each of several
    reads in one process, the reads after the first touched 0.5 to 45 MB anew, by chance. Without glibc nothing happens.
    """
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def available_nbytes(root: Path = Path("/")) -> int:
    """The memory that this process may still use: what the machine has available, within the limits of control groups.

    A job of a batch system or a container is killed above its limit, however much memory the machine has.

    Parameters
    ----------
    root : Path
        Where /proc and /sys are.
    """
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError, StopIteration):
        lines = (root / "proc/meminfo").read_text().splitlines()
        free = int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]) * 1024
    with suppress(OSError, ValueError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if not controllers or "memory" in controllers.split(","):
                free = min(free, _left_in_groups(root / "sys/fs/cgroup", group, is_first="memory" in controllers))
    return max(free, 0)


def _left_in_groups(mount: Path, group: str, *, is_first: bool) -> int:
    """What the limits of a control group, and of those around it, leave; files in the page cache make room."""
    mount = mount / "memory" if is_first else mount
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes") if is_first else ("memory.max", "memory.current")
    left = 1 << 62
    inner = mount / group.lstrip("/")
    for folder in (inner, *inner.parents):
        if not folder.is_relative_to(mount):
            break
        with suppress(OSError, ValueError):
            limit, used = (int((folder / name).read_text()) for name in names)
            counted = [line.split() for line in (folder / "memory.stat").read_text().splitlines()]
            files = sum(int(value) for name, value in counted if name in ("inactive_file", "total_inactive_file"))
            left = min(left, limit - used + files)
    return left

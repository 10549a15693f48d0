"""How the chunks of an array suit reading from a cloud. It imports little: `hyperslab info` must start at once.

`hyperslab info` says it of each array, and `hyperslab audit` of many files: both ask here.
"""

from __future__ import annotations

from collections.abc import Iterator

from hyperslab.advise.tip import Tip
from hyperslab.chunk_grid import ENOUGH_NBYTES
from hyperslab.quantities import nbytes_text

# In stored bytes. For smaller chunks, latency costs more than transfer; for larger ones, a worker waits long and needs
# much memory.
LEAST_CHUNK_NBYTES, MOST_CHUNK_NBYTES = 1 << 20, 100 << 20


def are_too_small(stored_count: int | None, stored_nbytes: int | None, chunk_nbytes: int | None = None) -> bool:
    """Whether an array has several stored chunks that are too small. `chunk_nbytes` is the size of one in memory."""
    if not stored_count or not stored_nbytes or stored_count == 1:
        return False
    return stored_nbytes / stored_count < LEAST_CHUNK_NBYTES and (chunk_nbytes or 0) < ENOUGH_NBYTES


def are_too_large(stored_count: int | None, stored_nbytes: int | None) -> bool:
    """Whether reading any part of a stored chunk fetches too much."""
    return bool(stored_count and stored_nbytes and stored_nbytes / stored_count > MOST_CHUNK_NBYTES)


def cloud_tips(stored_count: int | None, stored_nbytes: int | None, chunk_nbytes: int | None = None) -> Iterator[Tip]:
    """What you should know before you read an array of so many stored chunks and bytes from a cloud."""
    if not stored_count or not stored_nbytes:
        return
    mean = stored_nbytes / stored_count
    if are_too_small(stored_count, stored_nbytes, chunk_nbytes):
        said = f"{stored_count} stored chunks of {nbytes_text(mean)} on average are too small"
        yield Tip(f"{said} for reading from a cloud: {_larger(stored_count, stored_nbytes)}")
    if are_too_large(stored_count, stored_nbytes):
        said = f"stored chunks of {nbytes_text(mean)} on average are too large for reading from a cloud"
        times = f"{mean / MOST_CHUNK_NBYTES * 10:.0f}"
        yield Tip(f"{said}: reading any part of a chunk fetches the whole chunk; make them about {times} times smaller")


def _larger(count: int, nbytes: int) -> str:
    if nbytes < LEAST_CHUNK_NBYTES:
        return "one chunk would hold them all"
    times = LEAST_CHUNK_NBYTES * 10 / (nbytes / count)
    return f"make them about {min(times, count):.0f} times larger (1 to 100 MiB stored)"

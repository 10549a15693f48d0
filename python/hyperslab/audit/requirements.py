"""What a file must be like for a purpose: `cloud`, or the archive of `cmip7`. Each rule says precisely what it asks.

cloud
    1. Every array can be read by hyperslab, and none is damaged.
    2. An HDF5 file has its metadata in front: in its first 512 KiB, or with at most as many other bytes between them.
    3. Each array has one stored chunk, or stored chunks of 1 to 100 MiB on average; chunks that have 4 MiB in memory
       are never too small.
    4. Coordinates have one chunk each.

cmip7
    1. The file is HDF5, and all its chunk indexes start before its first chunk.
    2. `time` has one chunk, and so have the bounds that its attribute `bounds` names.
    3. The variable that the attribute `variable_id` names has one chunk, or chunks of at least 4 MiB in memory. Chunks
       that have 4 MiB with one more step along the first axis are large enough.

A contiguous array counts as one chunk. The rules of `cmip7` are those of `check_cmip7_packing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from hyperslab.archive.tree.group import Group
from hyperslab.archive.views import display
from hyperslab.audit.facts import ArrayFacts
from hyperslab.audit.faults import (
    Judged,
    cut_coordinates,
    large_chunks,
    scattered_metadata,
    small_chunks,
    unsupported_arrays,
)
from hyperslab.errors import HyperslabError

CMIP7_NBYTES = 4 << 20


def cloud(judged: Judged) -> Iterator[str]:
    """What a file lacks for reading from a cloud."""
    for rule in (unsupported_arrays, scattered_metadata, small_chunks, large_chunks, cut_coordinates):
        yield from (fault.said for fault in rule(judged))


def cmip7(judged: Judged) -> Iterator[str]:
    """What a file lacks for the archive of CMIP7, as `check_cmip7_packing` says it."""
    facts = judged.facts
    if facts.format != "hdf5" or facts.opening is None or facts.root is None:
        yield "it is not an HDF5 file"
        return
    last, first = facts.opening.last_index_offset, facts.first_chunk_offset
    if last is not None and first is not None and last > first:
        yield f"its metadata are not in front: a chunk index is at byte {last:,}, and the first chunk at byte {first:,}"
    time = facts.array("time")
    bounds = None if time is None else facts.array(_text(time.array, "bounds"))
    for one in (time, bounds):
        if one is not None and one.is_cut:
            yield f"{one.name} has {one.stored_chunk_count:,} chunks, and must have one"
    data = facts.array(_text(facts.root, "variable_id"))
    if data is not None and data.is_cut and not _is_large(data):
        size = display.nbytes(data.chunk_nbytes or 0)
        yield f"{data.name} has chunks of {size} in memory, and must have one, or chunks of at least 4 MiB"


def _is_large(data: ArrayFacts) -> bool:
    nbytes, chunks = data.chunk_nbytes or 0, data.chunks or (1,)
    one_more = nbytes // max(chunks[0], 1) if len(chunks) > 1 else 0
    return nbytes + one_more >= CMIP7_NBYTES


def _text(holder: Any, name: str) -> str:
    """A text attribute; empty if there is none."""
    try:
        value = holder.attrs.get(name) if isinstance(holder, Group) or holder is not None else None
    except (HyperslabError, OSError):
        return ""
    value = value.decode(errors="replace") if isinstance(value, bytes) else value
    return value if isinstance(value, str) else ""


REQUIREMENTS: dict[str, Callable[[Judged], Iterator[str]]] = {"cloud": cloud, "cmip7": cmip7}

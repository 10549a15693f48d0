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

A contiguous array counts as one chunk. The rules of `cmip7` are those of `check_cmip7_packing`; `conversion/cmip7.py`
has what they ask of chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hyperslab.audit.faults import (
    Judged,
    cut_coordinates,
    large_chunks,
    scattered_metadata,
    small_chunks,
    unsupported_arrays,
)
from hyperslab.conversion.cmip7 import are_large_enough, data_variable, time_arrays
from hyperslab.quantities import nbytes_text


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
    for array, _ in time_arrays(facts.root):
        one = facts.array(array.name.strip("/"))
        if one is not None and one.is_cut:
            yield f"{one.name} has {one.stored_chunk_count:,} chunks, and must have one"
    variable = data_variable(facts.root)
    data = None if variable is None else facts.array(variable.name.strip("/"))
    if data is not None and data.is_cut and not are_large_enough(data.chunks or (), data.element_nbytes):
        size = nbytes_text(data.chunk_nbytes or 0)
        yield f"{data.name} has chunks of {size} in memory, and must have one, or chunks of at least 4 MiB"


REQUIREMENTS: dict[str, Callable[[Judged], Iterator[str]]] = {"cloud": cloud, "cmip7": cmip7}

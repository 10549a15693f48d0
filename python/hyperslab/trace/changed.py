"""What is known of the files of a trace when its program has ended, and whether they are still those."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

from hyperslab.archive.opening import open as open_archive
from hyperslab.archive.tree.array import Array
from hyperslab.chunk_grid import chunk_counts
from hyperslab.errors import HyperslabError
from hyperslab.trace.table import AccessTable, TracedArray

MOST_FILES = 1000
"""Of more files, the first ones are known."""
MOST_COUNTED = 1 << 14
"""The chunks of an array whose stored bytes are counted."""


def known_files(trace: AccessTable) -> dict[str, list[int]]:
    """The bytes of each file of a trace and when it was last changed, in nanoseconds: as they are now."""
    paths = dict.fromkeys(one.file for one in trace.arrays if one.is_local)
    return {path: stamp for path in list(paths)[:MOST_FILES] if (stamp := stamp_of(path)) is not None}


def with_stored_nbytes(arrays: list[TracedArray]) -> list[TracedArray]:
    """The arrays with the bytes that they have in their files now: who advises on files that are gone needs to know.

    While the program ran, to ask would have read the indices of all chunks before the program did.
    """
    asked: dict[str, list[int]] = defaultdict(list)
    for number, one in enumerate(arrays):
        is_encoded = one.filters and one.chunks and one.stored_nbytes is None
        if is_encoded and one.is_local and prod(chunk_counts(one.shape, one.chunks or one.shape)) <= MOST_COUNTED:
            asked[one.file].append(number)
    known = list(arrays)
    for path, numbers in list(asked.items())[:MOST_FILES]:
        for number, nbytes in _stored_nbytes(path, {number: arrays[number].array for number in numbers}).items():
            known[number] = replace(arrays[number], stored_nbytes=nbytes)
    return known


def _stored_nbytes(path: str, names: dict[int, str]) -> dict[int, int | None]:
    found: dict[int, int | None] = {}
    try:
        with open_archive(path) as archive:
            for number, name in names.items():
                array = archive.get(name)
                if isinstance(array, Array):
                    found[number] = array.stored_nbytes
    except (HyperslabError, OSError, ValueError):  # it is gone, or our engine cannot read it
        pass
    return found


def stamp_of(path: str | Path) -> list[int] | None:
    """The bytes of a file and when it was last changed; of a folder, only the latter. None if it is not there."""
    try:
        now = Path(path).stat()
    except (OSError, ValueError):
        return None
    return [0 if Path(path).is_dir() else now.st_size, now.st_mtime_ns]


def has_changed(program: dict[str, Any], path: str) -> bool:
    """Whether a file is not as it was when the program had ended; one that is gone has not changed."""
    known, now = (program.get("files") or {}).get(path), stamp_of(path)
    return known is not None and now is not None and now != list(known)

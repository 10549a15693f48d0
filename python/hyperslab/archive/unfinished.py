"""HDF5 files beside which the journal of a commit lies, which was cut short maybe (`hyperslab.versions.journal`)."""

from __future__ import annotations

import os

from hyperslab._core import ArchiveFile, Reach
from hyperslab.errors import DamagedFile


def has_journal(path: str) -> bool:
    """Whether something has the name of a file's journal: beside the file itself, not beside a link to it."""
    if os.path.exists(f"{path}.journal"):  # noqa: PTH110 -- several times as fast
        return True
    return os.path.islink(path) and os.path.exists(f"{os.path.realpath(path)}.journal")  # noqa: PTH110, PTH114


def opened(path: str, chunk_cache_nbytes: int, reach: Reach) -> ArchiveFile:
    """A file; one beside which a journal lies when its commit is finished: what is half overwritten may look damaged.

    Raises:
        StaleJournal: The journal is not of this file as it is now.
        ReadError: The commit cannot be finished here.
    """
    try:
        found = ArchiveFile(path, chunk_cache_nbytes, reach)
    except DamagedFile:
        if not has_journal(path):
            raise
    else:
        if found.format != "hdf5" or not has_journal(path):
            return found
    from hyperslab.versions.reading import settled

    with settled(path):
        return ArchiveFile(path, chunk_cache_nbytes, reach)

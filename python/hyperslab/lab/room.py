"""Whether what is measured fits the disk and the memory: known before anything runs."""

from __future__ import annotations

import shutil
from pathlib import Path

from hyperslab.errors import UsageError

GB = 1e9


def check_room(
    what: str, files_nbytes: float, array_nbytes: float, directory: Path, memory_nbytes: int | None, hint: str
) -> None:
    """Raise UsageError with figures where files do not fit below `directory`, or an array does not fit into memory.

    Args:
        what: What is measured, in words.
        files_nbytes: Bytes of all files that are on disk at one time.
        array_nbytes: Bytes of the largest array, which is held three times.
        directory: Where the files go.
        memory_nbytes: Memory of the machine; None where it is not known.
        hint: What the user can do about it.
    """
    free = shutil.disk_usage(directory).free
    if files_nbytes > free:
        raise UsageError(
            f"{what} needs {files_nbytes / GB:.1f} GB of disk below {directory}, which has {free / GB:.1f} GB; {hint}"
        )
    if memory_nbytes is not None and 3 * array_nbytes > memory_nbytes:
        raise UsageError(
            f"{what}: an array of {array_nbytes / GB:.1f} GB is held three times (written, read, compared), "
            f"memory is {memory_nbytes / GB:.1f} GB; {hint}"
        )

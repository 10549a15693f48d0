"""Check before a run whether its files fit on the disk and its arrays into memory."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hyperslab.errors import HyperslabError, NoSpace, UsageError
from hyperslab.quantities import nbytes_text
from hyperslab.replacing import FULL


def disk_full(directory: Path, what: str, error: NoSpace, kept: str) -> NoSpace:
    """The error to raise when the disk below `directory` fills up while `what` is measured; it says what is `kept`."""
    free = shutil.disk_usage(directory).free
    return NoSpace(
        f"the disk below {directory} is full ({nbytes_text(free)} left) in {what}: {error}; free some space or give "
        f"another --scratch, then --resume; finished {kept} are kept"
    )


@contextmanager
def says_if_full(directory: Path, what: str) -> Iterator[None]:
    """Say which disk it is that fills up while `what` is done.

    Raises
    ------
    NoSpace
        The disk is full.
    """
    try:
        yield
    except OSError as error:
        is_short = error.errno is None and "requested and" in str(error)  # of NumPy, which gives no number
        if isinstance(error, HyperslabError) or not (error.errno in FULL or is_short):
            raise
        raise full(directory, what) from error


def full(directory: Path, what: str) -> NoSpace:
    """The error to raise when the disk below `directory` fills up while `what` is done, of which nothing is kept."""
    return NoSpace(f"the disk below {directory} is full, in {what}: free some space, or give another --scratch")


def check_room(
    what: str, files_nbytes: float, array_nbytes: float, directory: Path, memory_nbytes: int | None, hint: str
) -> None:
    """Raise UsageError if the files do not fit below `directory`, or an array does not fit into memory.

    Parameters
    ----------
    what : str
        A name for what is measured.
    files_nbytes : float
        Bytes of all files that exist at the same time.
    array_nbytes : float
        Bytes of the largest array. It is held three times.
    directory : Path
        Where the files are written.
    memory_nbytes : int | None
        The machine's memory; None if unknown.
    hint : str
        What the user can do about it.
    """
    free = shutil.disk_usage(directory).free
    if files_nbytes > free:
        raise UsageError(
            f"{what} needs {nbytes_text(files_nbytes)} of disk below {directory}, which has {nbytes_text(free)}; {hint}"
        )
    if memory_nbytes is not None and 3 * array_nbytes > memory_nbytes:
        raise UsageError(
            f"{what}: an array of {nbytes_text(array_nbytes)} is held three times (written, read, compared), but "
            f"memory is {nbytes_text(memory_nbytes)}; {hint}"
        )

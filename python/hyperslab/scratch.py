"""Directories for measured files. They are removed at the end of their session, or after a kill by the next session.

Each has a marker file that its session keeps locked. The system releases the lock however the session ends. A directory
is never removed if it has no marker or the marker is locked.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = ".hyperslab-scratch-"
NOTE_FILE = "scratch.txt"  # in a run's directory: the path of its scratch directory
MARK_FILE = "made-by-hyperslab"


def remove(path: Path) -> None:
    """Remove a file or a tree, if it exists."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def scratch_below(parent: Path, run: Path | None = None) -> Iterator[Path]:
    """A new directory below `parent`, for the run in `run` if there is one.

    First, directories that killed sessions left below `parent` are removed, and the earlier one of this run wherever it
    is.
    """
    for left in parent.glob(f"{PREFIX}*"):
        remove_if_left(left)
    if run is not None:
        remove_leftover(run)
    # It is named before it is made: Ctrl-C may come as soon as it is there.
    scratch = parent.resolve() / f"{PREFIX}{os.urandom(8).hex()}"
    try:
        scratch.mkdir(mode=0o700)
        with open(scratch / f".{MARK_FILE}", "w") as mark:
            # If nothing can be locked there is no marker, and no other session removes the directory.
            with suppress(OSError):
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
                Path(mark.name).rename(scratch / MARK_FILE)
            if run is not None:
                (run / NOTE_FILE).write_text(f"{scratch}\n")
            yield scratch
    finally:
        try:
            shutil.rmtree(scratch, ignore_errors=True)
        except BaseException:  # Ctrl-C in the middle of it
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        finally:
            if run is not None:
                (run / NOTE_FILE).unlink(missing_ok=True)


def remove_leftover(run: Path) -> None:
    """Remove the scratch directory of a run's killed session."""
    note = run / NOTE_FILE
    if note.exists():
        remove_if_left(Path(note.read_text().partition("\n")[0]))
        note.unlink()


def remove_if_left(directory: Path) -> None:
    """Remove one of our scratch directories if its session is over."""
    with suppress(OSError), open(directory / MARK_FILE, "r+") as mark:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if directory.name.startswith(PREFIX) and os.fstat(mark.fileno()).st_uid == os.geteuid():
            shutil.rmtree(directory, ignore_errors=True)

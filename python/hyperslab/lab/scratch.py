"""Directories of measured files: made for one session, removed with it, and after a kill by the next session there.

Each has a mark that its session holds locked, and the system lets go of the lock however the session ends. Nothing is
ever removed that has no such mark, or whose mark somebody holds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = ".hyperslab-scratch-"
NOTE_FILE = "scratch.txt"  # in a run's directory: where its scratch is
MARK_FILE = "made-by-hyperslab"


@contextmanager
def scratch_below(parent: Path, run: Path | None = None) -> Iterator[Path]:
    """A fresh directory below `parent`, for the run in `run` if there is one.

    What killed sessions left below `parent`, and the one that began this run anywhere, is removed first.
    """
    for left in parent.glob(f"{PREFIX}*"):
        remove_if_left(left)
    if run is not None:
        remove_leftover(run)
    scratch = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent)).resolve()
    try:
        with open(scratch / f".{MARK_FILE}", "w") as mark:
            # Where nothing can be locked there is no mark: then nobody else removes it.
            with suppress(OSError):
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
                Path(mark.name).rename(scratch / MARK_FILE)
            if run is not None:
                (run / NOTE_FILE).write_text(f"{scratch}\n")
            yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        if run is not None:
            (run / NOTE_FILE).unlink(missing_ok=True)


def remove_leftover(run: Path) -> None:
    """Remove the scratch directory of a killed session of a run."""
    note = run / NOTE_FILE
    if note.exists():
        remove_if_left(Path(note.read_text().partition("\n")[0]))
        note.unlink()


def remove_if_left(directory: Path) -> None:
    """Remove a scratch directory of ours whose session is over."""
    with suppress(OSError), open(directory / MARK_FILE, "r+") as mark:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if directory.name.startswith(PREFIX) and os.fstat(mark.fileno()).st_uid == os.geteuid():
            shutil.rmtree(directory, ignore_errors=True)

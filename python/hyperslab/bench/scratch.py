"""The directory of measured files: made for one session, removed with it, and after a kill by the next session.

Nothing is ever removed that does not carry the mark which this run wrote into it.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = ".hyperslab-scratch-"
NOTE_FILE = "scratch.txt"  # in the run's directory: where its scratch is, and the mark that it carries
MARK_FILE = "made-by-hyperslab"


@contextmanager
def scratch_below(parent: Path, run: Path) -> Iterator[Path]:
    """A fresh directory below `parent` for the run in `run`; what a killed session left is removed first."""
    remove_leftover(run)
    scratch = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent)).resolve()
    mark = secrets.token_hex(16)
    (scratch / MARK_FILE).write_text(mark)
    (run / NOTE_FILE).write_text(f"{scratch}\n{mark}\n")
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        (run / NOTE_FILE).unlink(missing_ok=True)


def remove_leftover(run: Path) -> None:
    """Remove the scratch directory of a session that was killed, if it still is the one which that session made."""
    note = run / NOTE_FILE
    if not note.exists():
        return
    where, _, mark = note.read_text().strip().partition("\n")
    marked = Path(where) / MARK_FILE
    if mark and marked.is_file() and marked.read_text() == mark:
        shutil.rmtree(where, ignore_errors=True)
    note.unlink()

"""Between two commits: waiting for one that goes on, and finishing one that was cut short, before a file is read."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from hyperslab.errors import ReadError, UsageError
from hyperslab.journal.journal import Journal, contradiction, found_journal, is_done, journal_path, stale
from hyperslab.journal.journaled_file import JournaledFile
from hyperslab.journal.locks import shared

MOST_ATTEMPTS = 1000
PAUSE_SECONDS = 0.01


@contextmanager
def between_commits(path: str) -> Iterator[None]:
    """Between commits: one that is going on is waited for, one that was cut short is finished, the next has to wait.

    Raises:
        StaleJournal: A journal lies beside the file that is not of it as it is now.
        ReadError: A commit was cut short, and this cannot finish it.
    """
    for _ in range(MOST_ATTEMPTS):
        with shared(path):
            if not os.path.exists(_journal(path)) or is_readable(path):  # noqa: PTH110 -- several times as fast
                yield
                return
        _finish(path)
    raise ReadError(
        f"a commit to {path} was cut short, and cannot be finished while somebody has the file open: close it there"
    )


def _journal(path: str) -> str:
    """`journal_path`, without asking of every folder on the way whether it is a link."""
    return journal_path(path) if os.path.islink(path) else f"{path}.journal"  # noqa: PTH114


def is_readable(path: str) -> bool:
    """Whether a file is between two commits, whatever lies beside it. For who holds off commits.

    Raises:
        StaleJournal: A journal lies beside it that is not of it.
    """
    found = found_journal(path)
    if not isinstance(found, Journal):
        return True  # somebody else's file; or a torn journal, whose commit did not begin to overwrite
    descriptor = os.open(path, os.O_RDONLY)
    try:
        why = contradiction(found, descriptor)
        if why is not None:
            raise stale(path, why)
        return is_done(found, descriptor)
    finally:
        os.close(descriptor)


def between_commits_later(path: str) -> AbstractContextManager[None]:
    """The same for a file that is open, which may have lost its name: then nobody writes to it."""
    return between_commits(path) if os.path.exists(path) else nullcontext()  # noqa: PTH110


def _finish(path: str) -> None:
    """Finish the commit that a journal is of, unless its writer lives, who will."""
    try:
        JournaledFile(path).close()
    except UsageError:
        time.sleep(PAUSE_SECONDS)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        raise ReadError(
            f"a commit to {path} was cut short; the next who opens it for writing finishes it, which you may not "
            f"({error.strerror}): its journal lies beside it, in the same folder"
        ) from None

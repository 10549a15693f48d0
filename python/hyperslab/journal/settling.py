"""Read a file between two commits: wait for a running commit, and finish an interrupted one."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

from hyperslab.errors import ReadError, UsageError
from hyperslab.journal.journal import Journal, contradiction, found_journal, is_done, journal_path, stale
from hyperslab.journal.journaled_file import JournaledFile, failure_here
from hyperslab.journal.locks import shared

MOST_WAITS = 6000  # for a writer whose journal is there: its disk may take many seconds to sync it
PAUSE_SECONDS = 0.01


@contextmanager
def between_commits(path: str) -> Iterator[None]:
    """Wait for a running commit or finish an interrupted one, then keep others from starting during the context.

    Raises
    ------
    StaleJournal
        The journal beside the file does not match its present content.
    ReadError
        A commit was interrupted, and this process cannot finish it.
    """
    for attempt in range(MOST_WAITS):
        with shared(path):
            is_there = os.path.exists(_journal(path))  # noqa: PTH110 -- several times as fast
            is_ready = not is_there or is_readable(path)
            if is_ready and (attempt or not (is_there and isinstance(found_journal(path), Journal))):
                yield
                return
        # A journal that is written to the file already does no harm until another program writes there, which would
        # make it contradict the file: who may remove it does.
        with suppress(*(ReadError, UsageError, OSError) if is_ready else ()):
            _finish(path)
    raise ReadError(
        f"a commit to {path} was interrupted, and cannot be finished while the file is open for writing elsewhere: "
        "close it there"
    )


def _journal(path: str) -> str:
    """The same as `journal_path`, but fast: folders of the path are not checked for links."""
    return journal_path(path) if os.path.islink(path) else f"{path}.journal"  # noqa: PTH114


def is_readable(path: str) -> bool:
    """Whether a file is between two commits. Call this only while you hold `shared`.

    Raises
    ------
    StaleJournal
        The journal beside the file does not belong to it.
    """
    journal = found_journal(path)
    if not isinstance(journal, Journal):
        return True  # not a journal, or an incomplete one, whose commit had not begun to overwrite
    descriptor = os.open(path, os.O_RDONLY)
    try:
        why = contradiction(journal, descriptor)
        if why is not None:
            raise stale(path, why)
        return is_done(journal, descriptor)
    finally:
        os.close(descriptor)


def between_commits_later(path: str) -> AbstractContextManager[None]:
    """`between_commits` for a file that is open already. If the file has no name any more, nobody can write to it."""
    return between_commits(path) if os.path.exists(path) else nullcontext()  # noqa: PTH110


def _finish(path: str) -> None:
    """Finish an interrupted commit; if its writer still runs, leave it to the writer."""
    failure = failure_here(path)
    if failure is not None:
        raise ReadError(
            f"a commit to {path} failed ({failure}), and this process still has the file open for writing: when the "
            "disk works again, use that object again, or close it"
        ) from failure
    try:
        JournaledFile(path).close()
    except UsageError:
        time.sleep(PAUSE_SECONDS)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        raise ReadError(
            f"a commit to {path} was interrupted, and you have no permission to finish it ({error.strerror}): open the "
            "file once for writing, as a user who may write to it and to its folder, where the journal lies"
        ) from None

"""Versions as groups of an archive, read by the engine: a version is one more table of chunks.

Only what a version needs is parsed, and where the chunks of an array are only when it is first read. What is parsed
stays good while others commit: chunks are never overwritten.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial

from hyperslab.archive.allowed import Allowed
from hyperslab.archive.array import Array
from hyperslab.archive.remote import Remote, Sources, is_url, shown
from hyperslab.archive.tree import CHUNK_CACHE_NBYTES, Group, OpenFile
from hyperslab.errors import DamagedFile, FileChanged, ReadError, UsageError
from hyperslab.versions.fingerprint_log import LOG, Recorded
from hyperslab.versions.journal import Journal, contradiction, found_journal, is_done, journal_path, stale
from hyperslab.versions.journaled_file import JournaledFile
from hyperslab.versions.layout import DATA, VERSIONS
from hyperslab.versions.locks import shared
from hyperslab.versions.table import VersionTable

MOST_ATTEMPTS = 1000
PAUSE_SECONDS = 0.01


def local_path(file: str | os.PathLike[str]) -> str:
    """The absolute path of a file with versions.

    Raises:
        UsageError: It is a URL.
    """
    path = os.fspath(file)
    if is_url(path):
        said = "hyperslab.open(URL, version=...) reads one of its versions; for all else, work on a copy"
        raise UsageError(f"{shown(path)} is far away: {said}")
    return os.path.abspath(path)  # noqa: PTH100 -- resolve() would follow links


def version_table(place: str | Remote, within: str = "", sources: Sources | None = None) -> VersionTable:
    """All versions of a file, or of the group `within` it, whose path then ends with "/".

    Raises:
        Unsupported: It has none.
    """
    found = parsed(place, 0, (f"{within}{VERSIONS}/*",), sources=sources).root[f"/{within}"]
    assert isinstance(found, Group)
    return VersionTable.of(found)


def check_given_up(place: str | Remote, table: VersionTable, within: str = "", sources: Sources | None = None) -> None:
    """Refuse to take versions for uncommitted of which there are fingerprints, made when they were committed.

    Raises:
        DamagedFile: There is such a version.
    """
    if not table.given_up:
        return
    array = parsed(place, 0, (f"{within}{LOG}",), sources=sources).root.get(f"{within}{LOG}")
    known = Recorded.of(array[...].tobytes()).versions if isinstance(array, Array) else {}
    for name, timestamp in table.given_up.items():
        if name in known and known[name].timestamp == timestamp:
            raise DamagedFile(
                f"version {name!r} of {table.path} was committed, and says that it was not: file.verify() tells what"
                " else is damaged; hyperslab.versions.repair may help"
            )


def version_group(
    place: str | Remote,
    name: str,
    chunk_cache_nbytes: int = CHUNK_CACHE_NBYTES,
    within: str = "",
    *,
    is_lazy: bool = True,
    sources: Sources | None = None,
) -> Group:
    """The group of a version, with its arrays.

    Args:
        place: The file; a far one too.
        name: The version's.
        chunk_cache_nbytes: Memory for decoded chunks.
        within: The path of the group that versions are in.
        is_lazy: Look up chunks when arrays are read: only of files that nobody writes to without our journal.
        sources: What it may lead to.

    Raises:
        DamagedFile: It is not there.
    """
    patterns = (f"{within}{VERSIONS}/{name}/**", f"{within}{DATA}/**/raw_data")
    path = f"{within}{VERSIONS}/{name}"
    group = parsed(place, chunk_cache_nbytes, patterns, is_lazy=is_lazy, sources=sources).root[path]
    if not isinstance(group, Group):
        raise DamagedFile(f"{place}: version {name!r} is no group")
    return group


def parsed(
    place: str | Remote,
    chunk_cache_nbytes: int,
    patterns: tuple[str, ...],
    *,
    is_lazy: bool = False,
    sources: Sources | None = None,
) -> OpenFile:
    """A part of a file, as it is between commits. Of a far file as it is: nobody commits to one, and to ask for the
    journal of a commit that was cut short before the file was copied there would take a request each time.

    Raises:
        ReadError: A commit was cut short, and the file may not be written to.
    """
    if isinstance(place, Remote):
        return OpenFile(place, chunk_cache_nbytes, sources or Sources(place.options, near=place.url), patterns)
    path = place
    own = sources or Sources(allowed=Allowed.of((), path))
    late = partial(_settled_late, path) if is_lazy else None
    for _ in range(MOST_ATTEMPTS):
        with settled(path), suppress(FileChanged):
            return OpenFile(path, chunk_cache_nbytes, own, patterns, settled=late)
        time.sleep(PAUSE_SECONDS)  # somebody appended, or writes without our journal
    raise FileChanged(f"{path} changes all the time: try again later")


@contextmanager
def settled(path: str) -> Iterator[None]:
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


def _settled_late(path: str) -> AbstractContextManager[None]:
    """The same for a file that is open, which may have lost its name: then nobody writes to it."""
    return settled(path) if os.path.exists(path) else nullcontext()  # noqa: PTH110


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

"""Versions as groups of an archive, read by the engine: a version is one more table of chunks.

Only what a version needs is parsed, and where the chunks of an array are only when it is first read. What is parsed
stays good while others commit: chunks are never overwritten.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial

from hyperslab.archive.remote import Sources
from hyperslab.archive.tree import CHUNK_CACHE_NBYTES, Group, OpenFile
from hyperslab.errors import DamagedFile, FileChanged, ReadError, UsageError
from hyperslab.versions.journal import JournaledFile, journal_path, shared
from hyperslab.versions.layout import DATA, VERSIONS
from hyperslab.versions.table import VersionTable

MOST_ATTEMPTS = 1000
PAUSE_SECONDS = 0.01


def version_table(path: str, within: str = "") -> VersionTable:
    """All versions of a file, or of the group `within` it, whose path then ends with "/".

    Raises:
        Unsupported: It has none.
    """
    found = parsed(path, 0, (f"{within}{VERSIONS}/*",)).root[f"/{within}"]
    assert isinstance(found, Group)
    return VersionTable.of(found)


def version_group(
    path: str, name: str, chunk_cache_nbytes: int = CHUNK_CACHE_NBYTES, within: str = "", *, is_lazy: bool = True
) -> Group:
    """The group of a version, with its arrays.

    Args:
        path: The file.
        name: The version's.
        chunk_cache_nbytes: Memory for decoded chunks.
        within: The path of the group that versions are in.
        is_lazy: Look up chunks when arrays are read: only of files that nobody writes to without our journal.

    Raises:
        DamagedFile: It is not there.
    """
    patterns = (f"{within}{VERSIONS}/{name}/**", f"{within}{DATA}/**/raw_data")
    group = parsed(path, chunk_cache_nbytes, patterns, is_lazy=is_lazy).root[f"{within}{VERSIONS}/{name}"]
    if not isinstance(group, Group):
        raise DamagedFile(f"{path}: version {name!r} is no group")
    return group


def parsed(path: str, chunk_cache_nbytes: int, patterns: tuple[str, ...], *, is_lazy: bool = False) -> OpenFile:
    """A part of a file, as it is between commits.

    Raises:
        ReadError: A commit was cut short, and the file may not be written to.
    """
    late = partial(_settled_late, path) if is_lazy else None
    for _ in range(MOST_ATTEMPTS):
        with settled(path), suppress(FileChanged):
            return OpenFile(path, chunk_cache_nbytes, Sources(), patterns, settled=late)
        time.sleep(PAUSE_SECONDS)  # somebody appended, or writes without our journal
    raise FileChanged(f"{path} changes all the time: try again later")


@contextmanager
def settled(path: str) -> Iterator[None]:
    """Between commits: one that is going on is waited for, one that was cut short is finished, the next has to wait."""
    for _ in range(MOST_ATTEMPTS):
        with shared(path):
            if not os.path.exists(_journal(path)):  # noqa: PTH110 -- several times as fast
                yield
                return
        _finish(path)
    raise FileChanged(f"{path} changes all the time: try again later")


def _journal(path: str) -> str:
    """`journal_path`, without asking of every folder on the way whether it is a link."""
    return journal_path(path) if os.path.islink(path) else f"{path}.journal"  # noqa: PTH114


def _settled_late(path: str) -> AbstractContextManager[None]:
    """The same for a file that is open, which may have lost its name: then nobody writes to it."""
    return settled(path) if os.path.exists(path) else nullcontext()  # noqa: PTH110


def _finish(path: str) -> None:
    """Finish the commit that a journal is of, unless its writer lives, who will."""
    try:
        JournaledFile(path).close()
    except UsageError:
        time.sleep(PAUSE_SECONDS)
    except PermissionError:
        raise ReadError(
            f"a commit to {path} was cut short; the next who opens it for writing finishes it, which you may not"
        ) from None

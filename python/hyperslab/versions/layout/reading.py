"""Versions as groups of an archive, read by the engine: each array of a version is another table of chunks.

Only what a version needs is parsed, and the chunks of an array are looked up when you first read it. Parsed metadata
stay valid while others commit, because chunks are never overwritten.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from functools import partial
from typing import Any

from hyperslab.archive.far.allowed import Allowed
from hyperslab.archive.far.remote import Remote, SourceResolver, is_url, shown
from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.group import Group, root_of
from hyperslab.archive.tree.open_file import OpenFile
from hyperslab.errors import DamagedFile, FileChanged, UsageError
from hyperslab.journal.settling import PAUSE_SECONDS, between_commits, between_commits_later
from hyperslab.memory import CHUNK_CACHE_NBYTES
from hyperslab.versions.layout.fingerprint_log import LOG, Recorded
from hyperslab.versions.layout.names import DATA, VERSIONS
from hyperslab.versions.layout.table import VersionTable

MOST_ATTEMPTS = 1000  # to parse a file that others write to


def local_path(file: str | os.PathLike[str]) -> str:
    """The absolute path of a file with versions.

    Raises
    ------
    UsageError
        The file is a URL, a folder, or a pipe.
    """
    path = os.fspath(file)
    if is_url(path):
        said = "hyperslab.open(URL, version=...) reads one version; for anything else, work on a local copy"
        raise UsageError(f"{shown(path)} is not a local file: {said}")
    check_is_file(path)
    return os.path.abspath(path)  # noqa: PTH100 -- resolve() would follow links


def check_is_file(path: str) -> None:
    """Refuse folders, pipes and devices. A file that does not exist is not refused.

    Raises
    ------
    UsageError
        It is one of them.
    """
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except OSError:
        return  # whoever opens it says why it cannot be opened
    if stat.S_ISDIR(mode):
        raise UsageError(f"{path} is a folder: versions are in an HDF5 file, so name one in it")
    if not stat.S_ISREG(mode):
        raise UsageError(f"{path} is a pipe or a device: versions are in an HDF5 file on a disk")


def version_table(location: str | Remote, within: str = "", resolver: SourceResolver | None = None) -> VersionTable:
    """All versions of a file, or of the group `within` it (a path that ends with "/").

    Raises
    ------
    Unsupported
        There are no versions.
    """
    root = parsed(location, 0, (f"{within}{VERSIONS}/*",), resolver=resolver)[f"/{within}"]
    assert isinstance(root, Group)
    return VersionTable.of(root)


def stored_log(location: str | Remote, within: str = "", resolver: SourceResolver | None = None) -> bytes:
    """The bytes of the list of fingerprints; none if the file has no such list."""
    array = parsed(location, 0, (f"{within}{LOG}",), resolver=resolver).get(f"{within}{LOG}")
    if not isinstance(array, Array) or array.dtype != "u1" or array.ndim != 1:
        return b""
    return bytes(array[...].tobytes())


def check_given_up(
    location: str | Remote, table: VersionTable, within: str = "", resolver: SourceResolver | None = None
) -> None:
    """Refuse to treat versions as uncommitted if their fingerprints say that they were committed.

    Raises
    ------
    DamagedFile
        One of them was committed.
    """
    if not table.given_up:
        return
    known = Recorded.of(stored_log(location, within, resolver)).versions
    for name, timestamp in table.given_up.items():
        if name in known and known[name].timestamp == timestamp:
            raise DamagedFile(
                f"version {name!r} of {table.path} was committed, but its attributes say that it was not: file.verify()"
                " reports all damage; hyperslab.versions.repair may help"
            )


def version_group(
    location: str | Remote,
    name: str,
    chunk_cache_nbytes: int = CHUNK_CACHE_NBYTES,
    within: str = "",
    *,
    is_lazy: bool = True,
    resolver: SourceResolver | None = None,
) -> Group:
    """The group of a version, with its arrays.

    Parameters
    ----------
    location : str | Remote
        The file, local or remote.
    name : str
        The name of the version.
    chunk_cache_nbytes : int
        Memory in bytes for decoded chunks.
    within : str
        The path of the group that holds the versions.
    is_lazy : bool
        Look up chunks only when an array is read. Use this only if nobody writes to the file without our journal.
    resolver : SourceResolver | None
        The files that it may lead to.

    Raises
    ------
    DamagedFile
        The version is not a group.
    """
    patterns = (f"{within}{VERSIONS}/{name}/**", f"{within}{DATA}/**/raw_data")
    path = f"{within}{VERSIONS}/{name}"
    group = parsed(location, chunk_cache_nbytes, patterns, is_lazy=is_lazy, resolver=resolver)[path]
    if not isinstance(group, Group):
        raise DamagedFile(f"{location}: version {name!r} is not a group")
    return group


class PartOfFile(OpenFile):
    """The part of a file with versions whose names match the patterns."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (_part, (self.location, self.chunk_cache_nbytes, self.patterns, self.resolver))


def parsed(
    location: str | Remote,
    chunk_cache_nbytes: int,
    patterns: tuple[str, ...],
    *,
    is_lazy: bool = False,
    resolver: SourceResolver | None = None,
) -> Group:
    """The root of a part of a file, which is parsed between commits.

    A remote file is read without looking for a journal. Nobody commits to a remote file, and looking for the journal of
    a commit that was interrupted before the file was copied there would cost a request each time.

    Raises
    ------
    ReadError
        A commit was cut short, and the file cannot be opened for writing to finish it.
    """
    return root_of(_part(location, chunk_cache_nbytes, patterns, resolver, is_lazy=is_lazy))


def _part(
    location: str | Remote,
    chunk_cache_nbytes: int,
    patterns: tuple[str, ...],
    resolver: SourceResolver | None,
    *,
    is_lazy: bool = False,
) -> PartOfFile:
    if isinstance(location, Remote):
        return PartOfFile(
            location, chunk_cache_nbytes, resolver or SourceResolver(location.options, near=location.url), patterns
        )
    path = location
    own = resolver or SourceResolver(allowed=Allowed.of((), path))
    late = partial(between_commits_later, path) if is_lazy else None
    for _ in range(MOST_ATTEMPTS):
        with between_commits(path), suppress(FileChanged):
            return PartOfFile(path, chunk_cache_nbytes, own, patterns, between_commits=late)
        time.sleep(PAUSE_SECONDS)  # another process appended, or writes without our journal
    raise FileChanged(f"{path} keeps changing: try again later")

"""Versions as groups of an archive, read by the engine: a version is one more table of chunks.

Only what a version needs is parsed, and where the chunks of an array are only when it is first read. What is parsed
stays good while others commit: chunks are never overwritten.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import partial
from typing import Any

from hyperslab.archive.allowed import Allowed
from hyperslab.archive.array import Array
from hyperslab.archive.open_file import CHUNK_CACHE_NBYTES
from hyperslab.archive.remote import Remote, SourceResolver, is_url, shown
from hyperslab.archive.tree import Group, OpenFile
from hyperslab.errors import DamagedFile, FileChanged, UsageError
from hyperslab.journal.settling import MOST_ATTEMPTS, PAUSE_SECONDS, between_commits, between_commits_later
from hyperslab.versions.layout.fingerprint_log import LOG, Recorded
from hyperslab.versions.layout.names import DATA, VERSIONS
from hyperslab.versions.layout.table import VersionTable


def local_path(file: str | os.PathLike[str]) -> str:
    """The absolute path of a file with versions.

    Raises
    ------
    UsageError
        It is a URL.
    """
    path = os.fspath(file)
    if is_url(path):
        said = "hyperslab.open(URL, version=...) reads one of its versions; for all else, work on a copy"
        raise UsageError(f"{shown(path)} is far away: {said}")
    return os.path.abspath(path)  # noqa: PTH100 -- resolve() would follow links


def version_table(location: str | Remote, within: str = "", resolver: SourceResolver | None = None) -> VersionTable:
    """All versions of a file, or of the group `within` it, whose path then ends with "/".

    Raises
    ------
    Unsupported
        It has none.
    """
    found = parsed(location, 0, (f"{within}{VERSIONS}/*",), resolver=resolver).root[f"/{within}"]
    assert isinstance(found, Group)
    return VersionTable.of(found)


def check_given_up(
    location: str | Remote, table: VersionTable, within: str = "", resolver: SourceResolver | None = None
) -> None:
    """Refuse to take versions for uncommitted of which there are fingerprints, made when they were committed.

    Raises
    ------
    DamagedFile
        There is such a version.
    """
    if not table.given_up:
        return
    array = parsed(location, 0, (f"{within}{LOG}",), resolver=resolver).root.get(f"{within}{LOG}")
    known = Recorded.of(array[...].tobytes()).versions if isinstance(array, Array) else {}
    for name, timestamp in table.given_up.items():
        if name in known and known[name].timestamp == timestamp:
            raise DamagedFile(
                f"version {name!r} of {table.path} was committed, and says that it was not: file.verify() tells what"
                " else is damaged; hyperslab.versions.repair may help"
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
        The file; a far one too.
    name : str
        The version's.
    chunk_cache_nbytes : int
        Memory for decoded chunks.
    within : str
        The path of the group that versions are in.
    is_lazy : bool
        Look up chunks when arrays are read: only of files that nobody writes to without our journal.
    resolver : SourceResolver | None
        What it may lead to.

    Raises
    ------
    DamagedFile
        It is not there.
    """
    patterns = (f"{within}{VERSIONS}/{name}/**", f"{within}{DATA}/**/raw_data")
    path = f"{within}{VERSIONS}/{name}"
    group = parsed(location, chunk_cache_nbytes, patterns, is_lazy=is_lazy, resolver=resolver).root[path]
    if not isinstance(group, Group):
        raise DamagedFile(f"{location}: version {name!r} is no group")
    return group


class PartOfFile(OpenFile):
    """What patterns of names lead to in a file with versions."""

    def reopening(self, name: str) -> tuple[Any, ...]:
        """How to pickle a group or array: as what finds it again, between commits."""
        return (found_again, (self.location, self.chunk_cache_nbytes, self.patterns, self.resolver, name))


def found_again(
    location: str | Remote, chunk_cache_nbytes: int, patterns: tuple[str, ...], resolver: SourceResolver, name: str
) -> Group | Array:
    """What pickled groups and arrays become."""
    root = parsed(location, chunk_cache_nbytes, patterns, resolver=resolver).root
    return root if name == "/" else root[name]


def parsed(
    location: str | Remote,
    chunk_cache_nbytes: int,
    patterns: tuple[str, ...],
    *,
    is_lazy: bool = False,
    resolver: SourceResolver | None = None,
) -> OpenFile:
    """A part of a file, as it is between commits. Of a far file as it is: nobody commits to one, and to ask for the
    journal of a commit that was cut short before the file was copied there would take a request each time.

    Raises
    ------
    ReadError
        A commit was cut short, and the file may not be written to.
    """
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
        time.sleep(PAUSE_SECONDS)  # somebody appended, or writes without our journal
    raise FileChanged(f"{path} changes all the time: try again later")

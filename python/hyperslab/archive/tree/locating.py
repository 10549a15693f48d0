"""Locate what the user named, and open it in the compiled part: a file, a Zarr folder, or a URL."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from stat import S_ISDIR
from typing import Any

from hyperslab._core import ArchiveFile, DocumentResolver
from hyperslab.archive.far.allowed import Allowed, Locations
from hyperslab.archive.far.remote import Remote, SourceResolver, is_url, shown
from hyperslab.archive.far.store_options import configured
from hyperslab.archive.far.url_prefix import HTTP
from hyperslab.archive.given import foreign_stores
from hyperslab.archive.given.files import ACCEPTED, Given
from hyperslab.archive.given.references import (
    GivenReferences,
    are_references,
    location_of_references,
    named_by_options,
)
from hyperslab.errors import DamagedFile, NoSuchFile, NoSuchRemoteFile, NotAllowed, Unsupported, UsageError
from hyperslab.journal.settling import between_commits

# The root of every Zarr hierarchy has one of these.
ZARR_METADATA = ("zarr.json", ".zgroup", ".zarray", ".zmetadata")


def locate(
    path: Any, options: Mapping[str, Any], cache_nbytes: int = 0, allowed: Locations | None = None
) -> tuple[foreign_stores.Location, SourceResolver]:
    """The absolute path of a local file, or a URL with its options, and how to reach what it leads to.

    `OpenFile` opens these in any process. Both pickle without credentials.
    """
    path, options = _taken_over(path, options)
    if isinstance(path, GivenReferences):
        if path.asks_fsspec and allowed is not None:
            raise NotAllowed("these references lead to files that only fsspec can read, so allowed= cannot be obeyed")
        options = {**path.options, **options}
    if isinstance(path, Given):
        is_for_urls = {"cache_nbytes": cache_nbytes, "storage_options": None if path.takes_options else options}
        given = [name for name, value in is_for_urls.items() if value]
        if given:
            raise UsageError(f"{given[0]}= is for URLs, {path.name} is an object")
        return path, SourceResolver(options, allowed=Allowed.of(allowed, path.name))
    path = os.fspath(path)
    if isinstance(path, str) and path.startswith("file://"):
        from urllib.request import url2pathname  # 25 ms to import

        path = url2pathname(path.removeprefix("file://").removeprefix("localhost"))
    if isinstance(path, str) and is_url(path):
        kind, own = path.partition("://")[0].lower(), Allowed.of(allowed, shown(path))
        if kind in HTTP:
            options = {**configured(kind), **options}
        return Remote(path, options, cache_nbytes=cache_nbytes), SourceResolver(options, near=path, allowed=own)
    if cache_nbytes:
        raise UsageError(f"cache_nbytes= is for URLs, but {path} is a local path")
    path = str(os.path.abspath(path))  # noqa: PTH100 -- resolve() would follow links
    return path, SourceResolver(options, allowed=Allowed.of(allowed, path))


def _taken_over(path: Any, options: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
    """What a store, an open file or a URL of fsspec leads to, with the options that it has itself."""
    named = named_by_options(path, options)
    if named is not None:
        location: foreign_stores.Location = location_of_references(*named)
        return (location.url, location.options) if isinstance(location, Remote) else (location, {})
    is_chained = isinstance(path, str) and foreign_stores.is_chained(path)
    if is_chained or foreign_stores.is_foreign(path):
        takes_options = is_chained or are_references(path)
        location = foreign_stores.location_of(path, options if takes_options else None)
        own = location.options if isinstance(location, Remote) else {}
        given = {} if takes_options else options
        return location.url if isinstance(location, Remote) else location, {**own, **given}
    if not isinstance(path, str | os.PathLike):
        raise UsageError(f"hyperslab cannot open an object of type {type(path).__name__}: {ACCEPTED}")
    return path, options


def has_journal(path: str) -> bool:
    """Whether a journal lies beside a file (beside the file itself, not beside a link to it)."""
    if os.path.exists(f"{path}.journal"):  # noqa: PTH110 -- several times as fast
        return True
    return os.path.islink(path) and os.path.exists(f"{os.path.realpath(path)}.journal")  # noqa: PTH110, PTH114


def local_file(path: str, chunk_cache_nbytes: int, resolver: DocumentResolver) -> ArchiveFile:
    """Open a local file. If a journal lies beside it, finish the commit first: a half-written file may look damaged.

    Raises
    ------
    StaleJournal
        The journal does not match the present content of the file.
    ReadError
        This process cannot finish the commit.
    """
    try:
        opened = ArchiveFile(path, chunk_cache_nbytes, resolver)
    except DamagedFile:
        if not has_journal(path):
            raise
    else:
        if opened.format != "hdf5" or not has_journal(path):
            return opened
    with between_commits(path):
        return ArchiveFile(path, chunk_cache_nbytes, resolver)


def far_file(
    location: Remote, chunk_cache_nbytes: int, resolver: SourceResolver, patterns: tuple[str, ...]
) -> tuple[str, ArchiveFile]:
    """Open a remote file, or a Zarr hierarchy. The URL tells which; if it does not, a missing file means Zarr."""
    if location.names_file:
        file = location.file(resolver.allowed.redirects())
        try:
            return file.name, ArchiveFile.remote(
                file, chunk_cache_nbytes, resolver.for_document(file.name), list(patterns)
            )
        except NoSuchRemoteFile:
            if location.has_suffix:
                raise
    folder = location.folder().file(resolver.allowed.redirects())
    return folder.name, ArchiveFile.remote_zarr(folder, chunk_cache_nbytes)


def is_zarr_folder(path: str) -> bool:
    """Whether a local path is a Zarr folder.

    Raises
    ------
    NoSuchFile
        There is nothing at the path.
    Unsupported
        The path is a folder without Zarr metadata.
    """
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except FileNotFoundError:
        raise NoSuchFile.at(path) from None
    if not S_ISDIR(mode):
        return False
    if not any((Path(path) / name).exists() for name in ZARR_METADATA):
        hint = f"name a file in it, or several with a pattern in quotes, such as '{Path(path) / '*.nc'}'"
        raise Unsupported(f"{path} is a folder without Zarr metadata ({', '.join(ZARR_METADATA)}): {hint}")
    return True

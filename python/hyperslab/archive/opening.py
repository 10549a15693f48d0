"""`open`: open an archive, several archives as one, or a version of an archive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from hyperslab.archive.collections.source_files import are_many
from hyperslab.archive.far.allowed import Locations
from hyperslab.archive.far.listing import is_pattern
from hyperslab.archive.far.remote import Remote
from hyperslab.archive.far.store_options import OF_READING
from hyperslab.archive.given.files import Given
from hyperslab.archive.tree.group import Group, root_of
from hyperslab.archive.tree.locating import locate
from hyperslab.archive.tree.open_file import REFERENCES, OpenFile
from hyperslab.errors import NoSuchRemoteFile, UsageError
from hyperslab.memory import CHUNK_CACHE_NBYTES

if TYPE_CHECKING:
    from hyperslab.archive.collections.combining import Combining
    from hyperslab.versions.layout.table import VersionKey


def open(
    path: Any,
    mode: str = "r",
    *,
    storage_options: Mapping[str, Any] | None = None,
    chunk_cache_nbytes: int = CHUNK_CACHE_NBYTES,
    cache_nbytes: int = 0,
    version: VersionKey = None,
    allowed: Locations | None = None,
    **combining: Unpack[Combining],
) -> Group:
    """Open an HDF5, NetCDF, FITS or HDF4 file, a Zarr folder, or references, for reading; or several of them as one.

    Parameters
    ----------
    path : str | os.PathLike | Group | Iterable | a store or file of obstore or fsspec
        A file or folder, or its URL: `https://`, `s3://`, `gs://`, `az://`, `abfs://`, `file://`. A URL that ends in
        `.zarr` or `/` means a Zarr hierarchy. You can also pass a store of obstore, or a file, mapper or file system of
        fsspec, alone or as `(store, path)`: hyperslab uses its configuration. References are our own (`.hs`),
        Kerchunk's JSON, folder of Parquet or dict, a `.zmetadata` with `.zchunkstore`s, or a DMR++ document; files that
        they name are URLs, or relative to their folder. Several: a list of these and of open root groups, or a pattern
        (`"2019-*.nc"`, `"s3://bucket/2019-*.nc"`): docs/collections.md.
    mode : str
        `"r"`, the only mode: files are opened for reading.
    storage_options : Mapping[str, Any] | None
        The options for URLs: credentials, endpoint, headers and limits, with the names that fsspec's file systems use
        (docs/remote.md). For references, they also apply to the URLs that the references name.
    chunk_cache_nbytes : int
        Memory for decoded chunks, in bytes, shared by all arrays of the file. If you read a part of a chunk and then
        another part, it is decoded only once.
    cache_nbytes : int
        Memory for bytes that were fetched from a URL, so that another read does not fetch them again. The least
        recently used bytes are dropped first. Each of several files has its own cache of this size.
    version : VersionKey
        For files of versioned-hdf5 or `VersionedFile`, the version to open: its name; a time in UTC, which means the
        last version up to then; 0 for the current version, -1 for its parent, and so on.
    allowed : Locations | None
        Folders and URLs that the file may lead to, through references, links, virtual arrays and external raw files.
        Everything below them is allowed too; `()` allows the file alone. By default a local file may lead anywhere, and
        a remote file to its own folder: docs/security.md.
    combining : Unpack[Combining]
        How to combine several files. `concat`: the name of the dimension, or the number of the axis, to concatenate
        along; without it, each array must be in one file only, or equal in all files. `differing="first"`: use the
        first file's version of arrays without that dimension, even if they differ. `missing="drop"`: leave out arrays
        that are not in all files. `order="sort"`: sort the files by their coordinates along the dimension;
        `order="any"`: allow coordinates that overlap or are out of order. `leave_out`: paths of arrays to leave out.

    Returns
    -------
    Group
        The root group, or the group of the version. `file["group/array"][0, ::4, 10:20]` reads. You can use it in a
        `with` statement.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    RemoteError
        A server did not deliver the file.
    DamagedFile
        The file contradicts its format.
    Unsupported
        The format is unknown, or the file has no versions.
    KeyError
        There is no such version.
    NotAllowed
        The file leads to a location that is not allowed. Mostly this is raised when you use an array or link.
    NotCombinable
        Two of the files cannot be combined safely; the message names them and the difference.
    """
    _check(mode, chunk_cache_nbytes=chunk_cache_nbytes, cache_nbytes=cache_nbytes)
    options = dict(storage_options or {})
    if are_many(path) or combining:
        from hyperslab.archive.collections import collection

        if version is not None:
            raise UsageError("version= works with one file only: open one file at a time")
        return collection.opened(path, options, chunk_cache_nbytes, combining, cache_nbytes, allowed)
    location, resolver = locate(path, options, cache_nbytes, allowed)
    if version is not None:
        if isinstance(location, Given):
            raise UsageError(f"version= is for files with a path or a URL, but {location.name} has neither")
        from hyperslab.versions.layout.seen import opened_version

        return opened_version(location, version, chunk_cache_nbytes, resolver)
    try:
        opened = OpenFile(location, chunk_cache_nbytes, resolver)
    except NoSuchRemoteFile:
        if not isinstance(location, Remote) or not is_pattern(location.url):
            raise
        from hyperslab.archive.collections import collection

        return collection.opened(path, options, chunk_cache_nbytes, combining, cache_nbytes, allowed)
    if set(options) - OF_READING and not opened.is_remote and opened.core.format not in REFERENCES:
        raise UsageError(f"storage_options= is for URLs, {opened.path} is a local path")
    return root_of(opened)


def _check(mode: str, **sizes: int) -> None:
    if mode != "r":
        raise UsageError(
            f"mode {mode!r}: hs.open only reads; write with h5py, netCDF4 or zarr, versions with hs.VersionedFile"
        )
    for name, nbytes in sizes.items():
        if nbytes < 0:
            raise ValueError(f"{name} is {nbytes}: use a number from 0, which means no cache")

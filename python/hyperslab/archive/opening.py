"""`open`: an archive, several as one, or a version, by whatever names it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from hyperslab.archive import collection
from hyperslab.archive.allowed import Locations
from hyperslab.archive.combining import Combining
from hyperslab.archive.open_file import locate
from hyperslab.archive.tree import REFERENCES, Group, OpenFile
from hyperslab.errors import UsageError
from hyperslab.memory import CHUNK_CACHE_NBYTES

if TYPE_CHECKING:
    from hyperslab.versions.layout.table import VersionKey


def open(
    path: Any,
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
    path : Any
        The file or folder, or its URL: `https://`, `s3://`, `gs://`, `az://`, `abfs://`, `file://`. A URL that ends in
        `.zarr` or `/` is of a Zarr hierarchy. Or a store of obstore, or a file, mapper or file system of fsspec, the
        stores also as `(store, path)`: what they were configured with is taken over. Of references, our own (`.hs`),
        Kerchunk's JSON or folder of Parquet, a `.zmetadata` with `.zchunkstore`s, or a DMR++ document; files that they
        name are URLs, or relative to their folder. Several: a list of these and of open root groups, or a pattern
        (`"2019-*.nc"`): docs/collections.md.
    storage_options : Mapping[str, Any] | None
        How to reach a URL: credentials, endpoint, headers, limits, named as fsspec's file systems name them
        (docs/remote.md). Of references also how to reach the URLs that they name.
    chunk_cache_nbytes : int
        Memory for decoded chunks of which only a part was read, so that reading another part need not decode them
        again; for all arrays of the file together.
    cache_nbytes : int
        Memory for bytes that were fetched from a URL, so that what another read needs of them is not fetched again;
        those used longest ago go first. Of several files, each has as much.
    version : VersionKey
        Of a file of versioned-hdf5 or `VersionedFile`, the version to open: its name, a time in UTC (the last version
        then or before), or -1 for the parent of the current version, 0 for that itself, and so on.
    allowed : Locations | None
        Folders and URLs that the file may lead to, with all below them: by references, links, virtual arrays and
        external raw files; `()` for the file alone. Without it a file of this machine may lead anywhere, one far away
        to its own folder there: docs/security.md.
    combining : Unpack[Combining]
        How several files are combined. `concat`: the name of the dimension, or the number of the axis, along which
        arrays are concatenated; without it each array is in one file, or equal in all. `differing="first"`: arrays
        without that dimension need not be equal, the first file's are taken. `missing="drop"`: arrays that are not in
        all files are left out. `order="sort"`: files are put in order by their coordinates along the dimension;
        `order="any"`: these may overlap or go back. `leave_out`: paths of arrays to leave out.

    Returns
    -------
    Group
        The root group, or that of the version: `file["group/array"][0, ::4, 10:20]` reads. It can be used in a `with`
        statement.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    RemoteError
        A server did not give what was asked for.
    DamagedFile
        The file contradicts its format.
    Unsupported
        The file is of no format that we know, or has no versions.
    KeyError
        There is no such version.
    NotAllowed
        The file leads to where it may not; mostly that is said when an array or link is used.
    NotCombinable
        Two of the files cannot be combined safely; the message names them and what differs.
    """
    for name, nbytes in (("chunk_cache_nbytes", chunk_cache_nbytes), ("cache_nbytes", cache_nbytes)):
        if nbytes < 0:
            raise ValueError(f"{name} is {nbytes}: use 0 for no cache")
    options = dict(storage_options or {})
    if collection.are_many(path) or combining:
        if version is not None:
            raise UsageError("one file at a time is opened at a version")
        return collection.opened(path, options, chunk_cache_nbytes, combining, cache_nbytes, allowed)
    location, resolver = locate(path, options, cache_nbytes, allowed)
    if version is not None:
        from hyperslab.versions.layout.seen import opened_version

        return opened_version(location, version, chunk_cache_nbytes, resolver)
    opened = OpenFile(location, chunk_cache_nbytes, resolver)
    if options and not opened.is_remote and opened.core.format not in REFERENCES:
        raise UsageError(f"storage_options= is for URLs, {opened.path} is a local path")
    return opened.root

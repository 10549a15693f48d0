"""Open stores of other libraries (obstore, fsspec, zarr-python, UPath).

hyperslab takes over the location and the configuration of a store and makes its own requests, without using the
connections of the store. If it cannot take over everything that affects what you read, the store itself does the
reading.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeAlias

from hyperslab.archive.far.remote import Remote, is_url, shown
from hyperslab.archive.far.store_options import OF_READING, client_options, provided
from hyperslab.archive.given.files import ACCEPTED, Given, GivenOfFsspec, GivenOfObstore, given_of, is_given
from hyperslab.archive.given.keys import GivenKeys
from hyperslab.archive.given.references import (
    are_references,
    is_reference_file_system,
    location_of_references,
    of_file_system,
)
from hyperslab.errors import UsageError
from hyperslab.needed import advice

Location: TypeAlias = str | Remote | Given
CACHES = ("simplecache", "filecache", "blockcache", "cached")  # file systems of fsspec that cache another one
OBSTORE_URLS = {"S3Store": ("s3", "bucket"), "GCSStore": ("gs", "bucket"), "AzureStore": ("az", "container_name")}


def is_foreign(source: object) -> bool:
    """Whether `source` is a store, file or mapper of another library, a pair (store, path), bytes, or an open file."""
    if isinstance(source, tuple):
        return len(source) == 2 and _library(source[0]) is not None
    return _library(source) is not None or is_given(source) or are_references(source)


def is_chained(path: str) -> bool:
    """Whether only fsspec can open the URL, such as `memory://a`, `simplecache::https://h/a` or `zip://a::b.zip`."""
    is_other = "://" in path or "::" in path
    return is_other and not is_url(path) and not path.startswith("file://") and not os.path.exists(path)  # noqa: PTH110


def location_of(source: Any, options: Mapping[str, Any] | None = None) -> Location:
    """Find out where a foreign object leads.

    Parameters
    ----------
    source : store, file object, bytes, dict, or str
        An object for which `is_foreign` is true, or a URL that only fsspec can open.
    options : Mapping[str, Any] or None
        The options for such a URL, or for references.

    Returns
    -------
    str, Remote or Given
        A local path; a URL with its options; or an object that reads the file itself.

    Raises
    ------
    UsageError
        hyperslab cannot read from it.
    """
    if isinstance(source, str):
        return _of_chained(source, dict(options or {}))
    if are_references(source):
        return location_of_references(source, options or {})
    store, path = source if isinstance(source, tuple) else (source, None)
    library = _library(store)
    if library == "zarr":
        return location_of_zarr(store, "" if path is None else os.fspath(path))
    if library == "obstore":
        return _of_store(store, "" if path is None else os.fspath(path))
    if path is None and is_reference_file_system(store):
        return of_file_system(store)
    if library == "upath" and isinstance(store, os.PathLike) and not hasattr(store, "fs"):
        return str(os.path.abspath(store))  # noqa: PTH100
    if library is None and not (hasattr(store, "fs") and isinstance(getattr(store, "path", None), str)):
        return given_of(store)
    if path is None:
        if getattr(store, "compression", None):  # a file that fsspec unpacks
            return given_of(store.open())
        store, path = _of_file(store)
    return _of_fsspec(store, os.fspath(path))


def location_of_zarr(store: Any, path: str) -> Location:
    """Find out where a path of a zarr-python store leads: to a folder, a URL, or keys that only the store can read."""
    kind = type(store).__name__
    if kind == "LocalStore":
        return os.path.join(os.path.abspath(store.root), path)  # noqa: PTH100, PTH118
    if kind == "FsspecStore":
        return _of_fsspec(store.fs, "/".join(part for part in (store.path.rstrip("/"), path) if part))
    if kind == "ObjectStore" and type(store.store).__name__ != "MemoryStore":
        return _of_obstore(store.store, path)
    return GivenKeys.of_zarr(store, path)


def _library(source: object) -> str | None:
    """Name the library of an object: "upath", "obstore", "fsspec", "zarr", or None for others.

    The modules of its classes tell, so no library is imported for this.
    """
    modules = {kind.__module__.partition(".")[0] for kind in type(source).__mro__}
    library = next((name for name in ("upath", "obstore", "fsspec") if name in modules), None)
    if library is None and "zarr" in modules and hasattr(source, "list_prefix"):
        return "zarr"
    return library


def _of_file(source: Any) -> tuple[Any, str]:
    """Return the file system and the path of fsspec's open file, `OpenFile` or mapper."""
    path = getattr(source, "path", None) or getattr(source, "root", None)
    if not hasattr(source, "fs") or not isinstance(path, str):
        raise UsageError(f"this {type(source).__name__} of fsspec has no path: give (file system, path)")
    return source.fs, path


def _of_chained(url: str, options: dict[str, Any]) -> Location:
    """Find out where a URL of fsspec leads.

    If the library for the innermost part of the URL is not installed, and the outer part is only a cache, hyperslab
    reads the innermost URL itself.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise UsageError(f"only fsspec can open {shown(url)}: {advice('fsspec')}, or {ACCEPTED}") from None
    try:
        fs, path = url_to_fs(url, **options)
    except ImportError as error:
        cache, _, inner = url.partition("::")
        if cache in CACHES and is_url(inner):
            inmost = options.get(inner.partition("://")[0], options)
            return Remote(inner, {name: value for name, value in inmost.items() if name not in CACHES})
        raise UsageError(f"{shown(url)}: fsspec cannot open it ({error})") from None
    except ValueError as error:
        raise UsageError(f"{shown(url)}: fsspec does not know such a URL ({error}); {ACCEPTED}") from None
    return _of_fsspec(fs, path)


def _of_fsspec(fs: Any, path: str) -> Location:
    from fsspec.implementations.local import LocalFileSystem

    fs = getattr(fs, "sync_fs", fs)
    if type(fs) is LocalFileSystem:
        return str(os.path.abspath(fs._strip_protocol(path)))  # noqa: PTH100 -- resolve() would follow links
    if is_reference_file_system(fs) and not path.strip("/"):
        return of_file_system(fs)
    url = fs.unstrip_protocol(path)
    if is_url(url) and not type(fs).__module__.startswith("fsspec.implementations.cached"):
        return Remote(url, {name: value for name, value in fs.storage_options.items() if name not in OF_READING})
    if fs.isdir(path):
        return GivenKeys.of_fsspec(fs, path)
    return GivenOfFsspec(fs, path)


def _of_store(store: Any, path: str) -> Location:
    """Return the URL of a file of obstore. If hyperslab cannot take over the configuration, obstore reads the file."""
    try:
        return _of_obstore(store, path)
    except UsageError:
        if not path:
            raise
        return GivenOfObstore(store, path)


def _of_obstore(store: Any, path: str) -> str | Remote:
    kind = type(store).__name__
    if kind == "LocalStore":
        return os.path.join(_known(store.prefix, kind), path) if path else str(_known(store.prefix, kind))  # noqa: PTH118
    if kind == "HTTPStore":
        options = client_options(store.client_options, ("default_headers",))
        return Remote("/".join((store.url.rstrip("/"), path)).rstrip("/") if path else store.url, options)
    if kind not in OBSTORE_URLS:
        raise UsageError(f"hyperslab cannot take over obstore's {kind}: give a path or a URL")
    kind_of_url, container = OBSTORE_URLS[kind]
    config = dict(store.config)
    root = f"{kind_of_url}://{config.pop(container)}"
    if config.pop("skip_signature", None) == "true":
        config["anon"] = True
    parts = [part for part in (store.prefix, path) if part]
    options = {**config, **provided(store.credential_provider), **client_options(store.client_options)}
    return Remote("/".join((root, *map(str, parts))), options)


def _known(prefix: Any, kind: str) -> Any:
    if prefix is None:
        raise UsageError(f"this {kind} of obstore has no prefix: give a path")
    return prefix

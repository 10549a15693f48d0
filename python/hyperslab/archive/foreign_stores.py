"""Stores of other libraries, obstore's and fsspec's: where they lead, said as hyperslab says it.

Their connections stay theirs: what they were configured with is taken over, so that files are read by our own requests.
A configuration that cannot be taken over is refused, never left out.
"""

from __future__ import annotations

import os
from typing import Any

from hyperslab.archive.remote import Remote, is_url
from hyperslab.archive.store_options import OF_READING, client_options, provided
from hyperslab.errors import UsageError

OBSTORE_URLS = {"S3Store": ("s3", "bucket"), "GCSStore": ("gs", "bucket"), "AzureStore": ("az", "container_name")}


def is_foreign(source: object) -> bool:
    """Whether it is a store, a file or a mapper of obstore or fsspec, or a store with a path in it."""
    if isinstance(source, tuple):
        return len(source) == 2 and _library(source[0]) is not None
    return _library(source) is not None


def place_of(source: Any) -> str | Remote:
    """The local path, or the URL with its options, that such a source leads to.

    Raises
    ------
    UsageError
        It leads nowhere that hyperslab reads, or was configured with something that cannot be taken over.
    """
    store, path = source if isinstance(source, tuple) else (source, None)
    if _library(store) == "obstore":
        return _of_obstore(store, "" if path is None else os.fspath(path))
    if path is None:
        store, path = _of_file(store)
    return _of_fsspec(store, path)


def _library(source: object) -> str | None:
    """obstore or fsspec, by the classes that it is made of: neither is imported for that."""
    modules = {kind.__module__.partition(".")[0] for kind in type(source).__mro__}
    return next((name for name in ("obstore", "fsspec") if name in modules), None)


def _of_file(source: Any) -> tuple[Any, str]:
    """File system and path of an open file, of a file to be opened, or of a mapper."""
    path = getattr(source, "path", None) or getattr(source, "root", None)
    if not hasattr(source, "fs") or not isinstance(path, str):
        raise UsageError(f"{type(source).__name__} of fsspec without a path: give (file system, path)")
    return source.fs, path


def _of_fsspec(fs: Any, path: str) -> str | Remote:
    from fsspec.implementations.local import LocalFileSystem

    fs = getattr(fs, "sync_fs", fs)
    if type(fs) is LocalFileSystem:
        return str(os.path.abspath(fs._strip_protocol(path)))  # noqa: PTH100 -- resolve() would follow links
    url = fs.unstrip_protocol(path)
    if not is_url(url) or type(fs).__module__.startswith("fsspec.implementations.cached"):
        raise UsageError(f"{type(fs).__name__} of fsspec leads nowhere that hyperslab reads: give a path or a URL")
    return Remote(url, {name: value for name, value in fs.storage_options.items() if name not in OF_READING})


def _of_obstore(store: Any, path: str) -> str | Remote:
    kind = type(store).__name__
    if kind == "LocalStore":
        return os.path.join(_known(store.prefix, kind), path) if path else str(_known(store.prefix, kind))  # noqa: PTH118
    if kind == "HTTPStore":
        options = client_options(store.client_options, ("default_headers",))
        return Remote("/".join((store.url.rstrip("/"), path)).rstrip("/") if path else store.url, options)
    if kind not in OBSTORE_URLS:
        raise UsageError(f"{kind} of obstore leads nowhere that hyperslab reads: give a path or a URL")
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
        raise UsageError(f"{kind} of obstore without a prefix: give a path")
    return prefix

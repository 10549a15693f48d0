"""Open stores of other libraries, obstore and fsspec: convert their locations and options to those of hyperslab.

hyperslab reads with its own requests, configured like the store. It refuses a configuration that it cannot convert, and
never ignores a part of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from hyperslab.archive.remote import Remote, is_url
from hyperslab.errors import UsageError

# Options of fsspec's file systems that only affect how these read, list and cache.
OF_READING = frozenset((
    "asynchronous", "loop", "skip_instance_cache", "use_listings_cache", "listings_expiry_time", "max_paths",
    "block_size", "default_block_size", "default_fill_cache", "default_cache_type", "cache_type", "cache_options",
    "cache_regions", "batch_size", "fill_cache", "max_concurrency", "auto_mkdir", "simple_links", "same_names",
    "size_policy", "get_client",
))  # fmt: skip
# Options of obstore's clients that our own requests do not need.
OF_CLIENTS = frozenset((
    "allow_http", "http1_only", "http2_only", "http2_keep_alive_interval", "http2_keep_alive_timeout",
    "http2_keep_alive_while_idle", "http2_max_frame_size", "pool_idle_timeout", "pool_max_idle_per_host", "user_agent",
    "randomize_addresses",
))  # fmt: skip
SECONDS = {"timeout": "timeout", "connect_timeout": "connect_timeout"}
OBSTORE_URLS = {"S3Store": ("s3", "bucket"), "GCSStore": ("gs", "bucket"), "AzureStore": ("az", "container_name")}


def is_foreign(source: object) -> bool:
    """Whether this is a store, file or mapper of obstore or fsspec, or a pair of a store and a path."""
    if isinstance(source, tuple):
        return len(source) == 2 and _library(source[0]) is not None
    return _library(source) is not None


def location_of(source: Any) -> str | Remote:
    """The local path of such a source, or its URL with options.

    Raises
    ------
    UsageError
        hyperslab cannot read this kind of store, or cannot convert its configuration.
    """
    store, path = source if isinstance(source, tuple) else (source, None)
    if _library(store) == "obstore":
        return _of_obstore(store, "" if path is None else os.fspath(path))
    if path is None:
        store, path = _of_file(store)
    return _of_fsspec(store, path)


def _library(source: object) -> str | None:
    """The library of an object, obstore or fsspec, by the modules of its classes; neither is imported."""
    modules = {kind.__module__.partition(".")[0] for kind in type(source).__mro__}
    return next((name for name in ("obstore", "fsspec") if name in modules), None)


def _of_file(source: Any) -> tuple[Any, str]:
    """The file system and path of an open file, an `OpenFile` of fsspec, or a mapper."""
    path = getattr(source, "path", None) or getattr(source, "root", None)
    if not hasattr(source, "fs") or not isinstance(path, str):
        raise UsageError(f"{type(source).__name__} of fsspec has no path: give (file system, path)")
    return source.fs, path


def _of_fsspec(fs: Any, path: str) -> str | Remote:
    from fsspec.implementations.local import LocalFileSystem

    fs = getattr(fs, "sync_fs", fs)
    if type(fs) is LocalFileSystem:
        return str(os.path.abspath(fs._strip_protocol(path)))  # noqa: PTH100 -- resolve() would follow links
    url = fs.unstrip_protocol(path)
    if not is_url(url) or type(fs).__module__.startswith("fsspec.implementations.cached"):
        raise UsageError(f"hyperslab cannot read through {type(fs).__name__} of fsspec: give a path or a URL")
    return Remote(url, {name: value for name, value in fs.storage_options.items() if name not in OF_READING})


def _of_obstore(store: Any, path: str) -> str | Remote:
    kind = type(store).__name__
    if kind == "LocalStore":
        return os.path.join(_known(store.prefix, kind), path) if path else str(_known(store.prefix, kind))  # noqa: PTH118
    if kind == "HTTPStore":
        headers = _headers((store.client_options or {}).get("default_headers"))
        options = {**_client_options(store, ("default_headers",)), **({"headers": headers} if headers else {})}
        return Remote("/".join((store.url.rstrip("/"), path)).rstrip("/") if path else store.url, options)
    if kind not in OBSTORE_URLS:
        raise UsageError(f"hyperslab cannot read through {kind} of obstore: give a path or a URL")
    kind_of_url, container = OBSTORE_URLS[kind]
    config = dict(store.config)
    root = f"{kind_of_url}://{config.pop(container)}"
    if config.pop("skip_signature", None) == "true":
        config["anon"] = True
    parts = [part for part in (store.prefix, path) if part]
    options = {**config, **_credentials(store), **_client_options(store, ())}
    return Remote("/".join((root, *map(str, parts))), options)


def _known(prefix: Any, kind: str) -> Any:
    if prefix is None:
        raise UsageError(f"{kind} of obstore has no prefix: give a path")
    return prefix


def _headers(given: Mapping[Any, Any] | None) -> dict[str, str]:
    return {_text(name): _text(value) for name, value in (given or {}).items()}


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _client_options(store: Any, handled: tuple[str, ...]) -> dict[str, Any]:
    """The timeouts of a client. Any other option must be one that our requests do not need."""
    given = dict(store.client_options or {})
    unknown = sorted(set(given) - OF_CLIENTS - set(SECONDS) - set(handled))
    if unknown:
        raise UsageError(f"hyperslab cannot use these client_options of an obstore store: {', '.join(unknown)}")
    return {SECONDS[name]: _seconds(value) for name, value in given.items() if name in SECONDS}


def _seconds(value: Any) -> float:
    """Seconds from a duration of obstore: a timedelta, or text such as "30s", "2m" or "500ms"."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    text = str(value).replace(" ", "")
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    units = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
    unit = units.get(text[len(number) :])
    if unit is None or not number.replace(".", "", 1).isdecimal():
        raise UsageError("a timeout of the obstore store has an unknown form: use a timedelta")
    return float(number) * unit


def _credentials(store: Any) -> dict[str, str]:
    """The present answer of a credential provider; it is not asked again."""
    provider = store.credential_provider
    if provider is None:
        return {}
    given = provider()
    if not isinstance(given, Mapping):
        raise UsageError("hyperslab cannot use an asynchronous credential provider of an obstore store")
    return {name: str(value) for name, value in given.items() if name != "expires_at" and value is not None}

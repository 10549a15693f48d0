"""URLs in the form that the compared libraries need: fsspec's files, and obstore's stores for zarr-python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyperslab.needed import missing


def fsspec_file(url: str, storage_options: Mapping[str, Any]) -> Any:
    """Open a file through fsspec, with obstore's file system for S3.

    Raises MissingLibrary, which says what to install.
    """
    try:
        if url.startswith("s3://"):
            from obstore.fsspec import FsspecStore

            files = FsspecStore("s3", **_s3_configuration(storage_options), client_options={"allow_http": True})
            return files.open(url, "rb")
        import fsspec

        return fsspec.filesystem("http", skip_instance_cache=True).open(url)
    except ImportError as error:
        raise missing(error.name or "fsspec", "reading URLs through fsspec") from error


def obstore_store(url: str, storage_options: Mapping[str, Any]) -> Any:
    """An obstore store of everything below a URL. Raises MissingLibrary, which says what to install."""
    try:
        from obstore.store import HTTPStore, S3Store
    except ImportError as error:
        raise missing("obstore", "reading URLs by zarr-python") from error
    said: dict[str, Any] = {"client_options": {"allow_http": True}}
    if url.startswith("s3://"):
        return S3Store.from_url(url, **_s3_configuration(storage_options), **said)
    return HTTPStore.from_url(url, **said)


def _s3_configuration(given: Mapping[str, Any]) -> dict[str, Any]:
    """s3fs options under the names that obstore uses."""
    words = {"key": "access_key_id", "secret": "secret_access_key", "endpoint_url": "endpoint"}
    return {"region": "us-east-1", **{words.get(name, name): value for name, value in given.items()}}

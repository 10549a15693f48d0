"""URLs as the contender libraries want them: fsspec's files, and obstore's stores for zarr-python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyperslab.errors import MissingLibrary

_ADVICE = "pip install 'hyperslab[far]'"


def fsspec_file(url: str, storage_options: Mapping[str, Any]) -> Any:
    """An open file of fsspec's: its own over HTTP, obstore's on S3. Raises MissingLibrary with what to install."""
    try:
        if url.startswith("s3://"):
            from obstore.fsspec import FsspecStore

            files = FsspecStore("s3", **_s3_configuration(storage_options), client_options={"allow_http": True})
            return files.open(url, "rb")
        import fsspec

        return fsspec.filesystem("http", skip_instance_cache=True).open(url)
    except ImportError as error:
        raise MissingLibrary(f"reading URLs through fsspec needs {error.name}: {_ADVICE}") from error


def obstore_store(url: str, storage_options: Mapping[str, Any]) -> Any:
    """A store of obstore's for all that is below a URL. Raises MissingLibrary with what to install."""
    try:
        from obstore.store import HTTPStore, S3Store
    except ImportError as error:
        raise MissingLibrary(f"zarr-python reads URLs through obstore: {_ADVICE}") from error
    said: dict[str, Any] = {"client_options": {"allow_http": True}}
    if url.startswith("s3://"):
        return S3Store.from_url(url, **_s3_configuration(storage_options), **said)
    return HTTPStore.from_url(url, **said)


def _s3_configuration(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of s3fs in obstore's words."""
    words = {"key": "access_key_id", "secret": "secret_access_key", "endpoint_url": "endpoint"}
    return {"region": "us-east-1", **{words.get(name, name): value for name, value in given.items()}}

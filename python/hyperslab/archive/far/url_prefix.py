"""Compare URLs with prefixes, by kind of store, server or bucket, and the parts of the path.

The compiled part parses URLs with the code that also sends requests, so the URL that is checked is the URL that is
requested.
"""

from __future__ import annotations

from typing import NamedTuple

from hyperslab._core import url_parts, web_url

HTTP = ("http", "https")
S3 = ("s3", "s3a")
GCS = ("gs", "gcs")
AZURE = ("az", "azure", "abfs", "abfss", "adl")


class UrlParts(NamedTuple):
    """The parts of a URL. Schemes for the same store are one kind."""

    kind: str
    server: str  # with its port unless that is the default; for object stores the bucket, or "" for all buckets
    path: tuple[bytes, ...]
    is_straight: bool  # the path has no `..`, not even one that leads back to the same folder

    def is_below(self, prefix: UrlParts) -> bool:
        """Whether this URL is at or below another one."""
        is_same = self.kind == prefix.kind and prefix.server in (self.server, "")
        return is_same and self.path[: len(prefix.path)] == prefix.path


def parts_of(url: str) -> UrlParts | None:
    """Parse a URL; None if it names no server, or its path is ambiguous."""
    parts = url_parts(url)
    return None if parts is None else UrlParts(parts[0], parts[1], tuple(parts[2]), parts[3])


def is_below(url: str, prefix: str) -> bool:
    """Whether a URL that a document names is at or below a prefix. A URL with `..` in its path is below none."""
    parts, wanted = parts_of(url), parts_of(prefix)
    return parts is not None and wanted is not None and parts.is_straight and parts.is_below(wanted)


def folder_of(url: str) -> str:
    """The URL of the folder of a file, without user and query."""
    kind, _, rest = url.partition("://")
    parts = web_url(url) if kind.lower() in HTTP else None
    server, slash, path = (parts[3], "/", parts[4].removeprefix("/")) if parts else rest.partition("/")
    if kind.lower() not in HTTP:
        path = path.partition("?")[0].partition("#")[0]
    return f"{kind}://{server}/{path.rpartition('/')[0]}" if slash else f"{kind}://{server}"

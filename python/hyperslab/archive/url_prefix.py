"""Where a URL leads: the kind of store, the server or bucket, the parts of the path. Prefixes are compared by these.

The compiled part takes URLs apart, with the code that makes requests of them: what is judged is what is asked for.
"""

from __future__ import annotations

from typing import NamedTuple

from hyperslab._core import url_parts, web_url

HTTP = ("http", "https")
S3 = ("s3", "s3a")
GCS = ("gs", "gcs")
AZURE = ("az", "azure", "abfs", "abfss", "adl")


class UrlParts(NamedTuple):
    """A URL, taken apart. Schemes that mean the same store are one kind."""

    kind: str
    server: str  # with its port if that is not the usual one; of object stores the bucket, "" for all of them
    path: tuple[bytes, ...]
    is_straight: bool  # nothing in it goes up, not even where that leads back to the same

    def is_below(self, prefix: UrlParts) -> bool:
        """Whether this is at or below another one."""
        is_same = self.kind == prefix.kind and prefix.server in (self.server, "")
        return is_same and self.path[: len(prefix.path)] == prefix.path


def parts_of(url: str) -> UrlParts | None:
    """A URL, taken apart; None if it names no server, or its path can be read in two ways."""
    found = url_parts(url)
    return None if found is None else UrlParts(found[0], found[1], tuple(found[2]), found[3])


def is_below(url: str, prefix: str) -> bool:
    """Whether a URL that a document names is at or below another one. One that goes up anywhere is below none."""
    found, wanted = parts_of(url), parts_of(prefix)
    return found is not None and wanted is not None and found.is_straight and found.is_below(wanted)


def folder_of(url: str) -> str:
    """The URL of the folder that a file is in, without user and query."""
    kind, _, rest = url.partition("://")
    found = web_url(url) if kind.lower() in HTTP else None
    server, slash, path = (found[3], "/", found[4].removeprefix("/")) if found else rest.partition("/")
    if kind.lower() not in HTTP:
        path = path.partition("?")[0].partition("#")[0]
    return f"{kind}://{server}/{path.rpartition('/')[0]}" if slash else f"{kind}://{server}"

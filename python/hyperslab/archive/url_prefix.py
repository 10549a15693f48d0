"""Where a URL leads: the kind of store, the server or bucket, the parts of the path. Prefixes are compared by these.

URLs of the web are parsed by the code that makes requests of them, so that what is judged is what is asked for.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from hyperslab._core import web_url

HTTP = ("http", "https")
S3 = ("s3", "s3a")
GCS = ("gs", "gcs")
AZURE = ("az", "azure", "abfs", "abfss", "adl")
STORES = {scheme: schemes[0] for schemes in (S3, GCS, AZURE) for scheme in schemes}
MOST_ENCODINGS = 8


class UrlParts(NamedTuple):
    """A URL, taken apart. Schemes that mean the same store are one kind."""

    kind: str
    server: str  # with its port if that is not the usual one; of object stores the bucket, "" for all of them
    path: tuple[str, ...]

    def is_below(self, prefix: UrlParts) -> bool:
        """Whether this is at or below another one."""
        is_same = self.server == prefix.server or (not prefix.server and prefix.kind not in HTTP)
        return self.kind == prefix.kind and is_same and self.path[: len(prefix.path)] == prefix.path


def parts_of(url: str) -> UrlParts | None:
    """A URL, taken apart; None if it names no server, or its path can be read in two ways."""
    kind, separator, rest = url.partition("://")
    kind = kind.lower()
    if not separator:
        return None
    if kind not in HTTP:
        server, _, key = rest.partition("/")
        path = tuple(key.removesuffix("/").split("/")) if key else ()
        return UrlParts(STORES.get(kind, kind), server, path) if _is_plain(url) and not _is_hidden(key) else None
    found = web_url(url)
    if found is None or not found[3] or _is_hidden(found[4]):
        return None
    name, colon, port = found[3].rpartition(":") if not found[3].endswith("]") else (found[3], "", "")
    server = (name or port).removesuffix(".") + (colon + port if name else "")
    written = found[4].removeprefix("/").removesuffix("/")
    return UrlParts(kind, server, tuple(map(unquote, written.split("/"))) if written else ())


def is_below(url: str, prefix: str) -> bool:
    """Whether a URL that a document names is at or below another one. One that goes up anywhere is below none."""
    found, wanted = parts_of(url), parts_of(prefix)
    if found is None or wanted is None:
        return False
    return _is_plain(url) and not _is_hidden(url.partition("?")[0].partition("#")[0]) and found.is_below(wanted)


def folder_of(url: str) -> str:
    """The URL of the folder that a file is in, without user and query."""
    kind, _, rest = url.partition("://")
    found = web_url(url) if kind.lower() in HTTP else None
    server, slash, path = (found[3], "/", found[4].removeprefix("/")) if found else rest.partition("/")
    if kind.lower() not in HTTP:
        path = path.partition("?")[0].partition("#")[0]
    return f"{kind}://{server}/{path.rpartition('/')[0]}" if slash else f"{kind}://{server}"


def _is_plain(url: str) -> bool:
    return all(" " <= sign not in "\\\x7f" for sign in url)


def _is_hidden(path: str) -> bool:
    """Whether a path goes up or nowhere, as it is written or decoded once or several times."""
    for _ in range(MOST_ENCODINGS):
        if any(part in (".", "..") for part in path.replace("\\", "/").split("/")):
            return True
        decoded = unquote(path)
        if decoded == path:
            return False
        path = decoded
    return True

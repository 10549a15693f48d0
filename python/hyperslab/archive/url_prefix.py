"""Whether a URL lies at or below another one: by scheme, server with its port, and the parts of the path."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

PORTS = {"http": 80, "https": 443}
# Schemes that mean the same store.
KINDS = {"s3a": "s3", "gcs": "gs", "azure": "az", "abfs": "az", "abfss": "az", "adl": "az"}
MOST_ENCODINGS = 8
Parts = tuple[str, str, tuple[str, ...]]  # the kind, the server or bucket, the parts of the path


def is_below(url: str, prefix: str) -> bool:
    """Whether a URL is at or below another one. What hides its way, or can be read in two ways, is below none."""
    found, wanted = _parts(url), _parts(prefix)
    if found is None or wanted is None or found[0] != wanted[0]:
        return False
    is_same = found[1] == wanted[1] or (not wanted[1] and wanted[0] not in PORTS)  # "s3://" is for all buckets
    return is_same and found[2][: len(wanted[2])] == wanted[2]


def folder_of(url: str) -> str:
    """The URL of the folder that a file is in, without its query."""
    start, _, rest = url.partition("://")
    server, slash, path = rest.partition("?")[0].partition("#")[0].partition("/")
    server = server.rpartition("@")[2] if start.lower() in PORTS else server
    return f"{start}://{server}/{path.rpartition('/')[0]}" if slash else f"{start}://{server}"


def _parts(url: str) -> Parts | None:
    kind, separator, rest = url.partition("://")
    kind = kind.lower()
    if not separator or any(sign < " " or sign in "\\\x7f" for sign in url):
        return None
    if kind not in PORTS:
        server, _, key = rest.partition("/")
        parts = tuple(key.removesuffix("/").split("/")) if key else ()
        return None if _is_hidden(key) else (KINDS.get(kind, kind), server, parts)
    try:
        split = urlsplit(url)
        server, port = split.hostname or "", split.port or PORTS[kind]
    except ValueError:
        return None
    if not server or not server.isascii() or "%" in server or " " in split.netloc or _is_hidden(split.path):
        return None
    path = split.path.removeprefix("/").removesuffix("/")
    return kind, f"{server}:{port}", tuple(map(unquote, path.split("/"))) if path else ()


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

"""Match patterns against the keys of an object store, by listing it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hyperslab.archive.far.objects import obstore_of, said_by
from hyperslab.archive.far.remote import Remote, is_url, shown
from hyperslab.archive.far.url_prefix import HTTP
from hyperslab.errors import RemoteError
from hyperslab.needed import need
from hyperslab.panics import panics_named


def is_pattern(url: Any) -> bool:
    """Whether a URL of an object store has `*` in its key. No other wildcards count, as keys may contain them."""
    kind, _, rest = str(url).partition("://")
    return is_url(url) and kind.lower() not in HTTP and "*" in rest.partition("/")[2]


def matching(pattern: Remote) -> list[str]:
    """The URLs of the objects whose keys a pattern matches: `each_matching` in a list."""
    return list(each_matching(pattern))


def each_matching(pattern: Remote) -> Iterator[str]:
    """Yield the URL of each object whose key a pattern matches.

    `*` stands for anything within a name, `**` between slashes for any folders.

    Raises
    ------
    MissingLibrary
        obstore is not installed.
    RemoteError
        The store cannot be listed.
    """
    kind, _, rest = pattern.url.partition("://")
    server, _, key = rest.partition("/")
    folder, expression = key[: key.index("*")].rpartition("/")[0], _expression(key)
    yield from (f"{kind}://{server}/{name}" for name in _keys(pattern, folder) if expression.fullmatch(name))


def _keys(pattern: Remote, folder: str) -> Iterator[str]:
    """The keys of all objects below a folder."""
    need("a pattern of URLs", "obstore")
    import obstore
    from obstore.exceptions import BaseError

    try:
        with panics_named(f"listing {shown(pattern.url)} with obstore"):
            for batch in obstore.list(obstore_of(pattern, "a pattern of URLs"), prefix=folder or None):
                yield from (one["path"] for one in batch)
    except BaseError as error:
        said = said_by(error)
        raise RemoteError(f"{shown(pattern.url)} cannot be listed: {said}; give the URLs one by one") from error


def _expression(key: str) -> re.Pattern[str]:
    known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
    parts = re.split(r"(\*\*/|\*\*|\*)", key)
    return re.compile("".join(known.get(part) or re.escape(part) for part in parts), re.DOTALL)

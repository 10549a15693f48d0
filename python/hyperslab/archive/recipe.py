"""`recipe`: a place that a user names, as what opens it in any process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.request import url2pathname

from hyperslab.archive import foreign_stores
from hyperslab.archive.allowed import Allowed, Places
from hyperslab.archive.remote import Remote, Sources, is_url, shown
from hyperslab.errors import UsageError


def recipe(
    path: Any, options: Mapping[str, Any], cache_nbytes: int = 0, allowed: Places | None = None
) -> tuple[str | Remote, Sources]:
    """The absolute path of a local file, or a URL with its options, and how to reach what it leads to.

    Both pickle without what may be secret: `OpenFile` opens them in any process.
    """
    if foreign_stores.is_foreign(path):
        path = foreign_stores.place_of(path)
        if isinstance(path, Remote):
            path, options = path.url, {**path.options, **options}
    path = os.fspath(path)
    if isinstance(path, str) and path.startswith("file://"):
        path = url2pathname(path.removeprefix("file://").removeprefix("localhost"))
    if isinstance(path, str) and is_url(path):
        own = Allowed.of(allowed, shown(path))
        return Remote(path, options, cache_nbytes=cache_nbytes), Sources(options, near=path, allowed=own)
    if cache_nbytes:
        raise UsageError(f"cache_nbytes= is for URLs, {path} is a local path")
    path = str(os.path.abspath(path))  # noqa: PTH100 -- resolve() would follow links
    return path, Sources(options, allowed=Allowed.of(allowed, path))

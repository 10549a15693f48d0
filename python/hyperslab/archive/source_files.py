"""The files of a collection: found, put in order, and opened side by side."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from hyperslab.archive.remote import Remote, Sources, is_url
from hyperslab.archive.tree import Group, OpenFile, recipe
from hyperslab.errors import UsageError

Place: TypeAlias = tuple[str | Remote, Sources] | Group
Paths: TypeAlias = str | os.PathLike[str] | Group | Iterable[str | os.PathLike[str] | Group]
# Files opened at a time: parsing is bound by processors, fetching by waiting.
LOCAL_THREADS, REMOTE_THREADS = os.cpu_count() or 1, 32


def are_many(paths: Paths) -> bool:
    """Whether these are several files: a list, or a pattern that is no file's name."""
    if isinstance(paths, str):
        return not is_url(paths) and glob.has_magic(paths) and not os.path.exists(paths)  # noqa: PTH110
    return not isinstance(paths, os.PathLike | Group)


def places(paths: Paths, options: Mapping[str, Any]) -> list[Place]:
    """Where the files are, in the order given; those of one pattern by their names, numbers in these by value.

    Raises:
        FileNotFoundError: A pattern matches no file.
        UsageError: There is no file at all, or a group is not the root of its file.
    """
    listed = [paths] if isinstance(paths, str | os.PathLike | Group) else list(paths)
    found = [place for one in listed for place in _places(one, options)]
    if not found:
        raise UsageError("no file is given: give a list of paths and URLs, or a pattern")
    return found


def _places(one: str | os.PathLike[str] | Group, options: Mapping[str, Any]) -> list[Place]:
    if isinstance(one, Group):
        if one.name != "/":
            raise UsageError(f"{one.name} of {one.filename} is not the root of its file: only whole files are combined")
        return [one]
    path = os.fspath(one)
    if not is_url(path) and are_many(path):
        matching = glob.glob(path, recursive=True)  # noqa: PTH207
        if not matching:
            raise FileNotFoundError(f"no file matches {path}")
        return [recipe(name, options) for name in sorted(matching, key=natural)]
    return [recipe(path, options)]


def natural(name: str) -> list[tuple[int, str | int]]:
    """What puts names in the order that people expect: part-2 before part-10."""
    parts = re.split(r"(\d+)", name)
    return [(1, int(part)) if part.isdecimal() else (0, part) for part in parts]


def opened(places: list[Place]) -> list[OpenFile]:
    """What is in each file. Local files are closed again, so that there may be more of them than may be open.

    Raises:
        HyperslabError: As of `hyperslab.open`, for the first file that fails.
    """
    are_remote = any(not isinstance(place, Group) and isinstance(place[0], Remote) for place in places)
    pool = ThreadPoolExecutor(REMOTE_THREADS if are_remote else LOCAL_THREADS)
    try:
        return list(pool.map(_opened, places))
    finally:
        pool.shutdown(cancel_futures=True)


def _opened(place: Place) -> OpenFile:
    return place.opened if isinstance(place, Group) else OpenFile(place[0], 0, place[1], is_held=False)

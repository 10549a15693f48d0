"""The files of a collection: found, put in order, and opened side by side."""

from __future__ import annotations

import errno
import glob
import os
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias, TypeGuard

from hyperslab.archive import far_listing
from hyperslab.archive.allowed import Places
from hyperslab.archive.foreign_stores import is_foreign
from hyperslab.archive.open_file import locate
from hyperslab.archive.remote import Remote, Sources, is_url, shown
from hyperslab.archive.tree import Group, OpenFile
from hyperslab.errors import UsageError

Place: TypeAlias = tuple[str | Remote, Sources] | Group
Paths: TypeAlias = str | os.PathLike[str] | Group | Iterable[str | os.PathLike[str] | Group]


def are_many(paths: Paths) -> bool:
    """Whether these are several files: a list, or a pattern that is no file's name."""
    if isinstance(paths, str):
        return not is_url(paths) and glob.has_magic(paths) and not os.path.exists(paths)  # noqa: PTH110
    return is_listed(paths)


def is_listed(paths: Any) -> TypeGuard[Iterable[Any]]:
    """Whether it is a list, and no single file, group or store of another library."""
    return not (isinstance(paths, str | os.PathLike | Group) or is_foreign(paths))


def places(
    paths: Paths, options: Mapping[str, Any], cache_nbytes: int = 0, allowed: Places | None = None
) -> list[Place]:
    """Where the files are, in the order given; those of one pattern by their names, numbers in these by value.

    Raises
    ------
    FileNotFoundError
        A pattern matches no file.
    UsageError
        There is no file at all, or a group is not the root of its file.
    """
    listed = list(paths) if is_listed(paths) else [paths]
    allowed = allowed if allowed is None or isinstance(allowed, str) else list(allowed)
    found = [place for one in listed for place in _places(one, options, cache_nbytes, allowed)]
    if not found:
        raise UsageError("no file is given: give a list of paths and URLs, or a pattern")
    return found


def _places(one: Any, options: Mapping[str, Any], cache_nbytes: int, allowed: Places | None) -> list[Place]:
    if isinstance(one, Group):
        if one.name != "/":
            raise UsageError(f"{one.name} of {one.filename} is not the root of its file: only whole files are combined")
        return [one]
    path = one if is_foreign(one) else os.fspath(one)
    if is_foreign(one) or not (are_many(path) or far_listing.is_pattern(path)):
        return [locate(path, options, cache_nbytes, allowed)]
    return [locate(name, options, cache_nbytes, allowed) for name in matching(path, options)]


def matching(pattern: str, options: Mapping[str, Any] | None = None) -> list[str]:
    """The files or objects that a pattern matches, in order of their names, numbers in these by value.

    Raises
    ------
    FileNotFoundError
        There is none.
    """
    if is_url(pattern):
        found = far_listing.matching(Remote(pattern, options or {}))
    else:
        found = glob.glob(pattern, recursive=True)  # noqa: PTH207 -- Path.glob takes no absolute patterns
    if not found:
        raise FileNotFoundError(errno.ENOENT, "no file matches", shown(pattern) if is_url(pattern) else pattern)
    return sorted(found, key=natural)


def threads_for(are_far: bool) -> int:
    """How many files are opened at a time: parsing is bound by processors, fetching by waiting."""
    return 32 if are_far else os.cpu_count() or 1


def natural(name: str) -> list[tuple[int, str | int]]:
    """What puts names in the order that people expect: part-2 before part-10."""
    parts = re.split(r"(\d+)", name)
    return [(1, int(part)) if part.isdecimal() else (0, part) for part in parts]


def opened(places: list[Place]) -> list[OpenFile]:
    """What is in each file. Local files are closed again, so that there may be more of them than may be open.

    Raises
    ------
    HyperslabError
        As of `hyperslab.open`, for the first file that fails.
    """
    are_remote = any(not isinstance(place, Group) and isinstance(place[0], Remote) for place in places)
    pool = ThreadPoolExecutor(threads_for(are_remote))
    try:
        return list(pool.map(_opened, places))
    finally:
        pool.shutdown(cancel_futures=True)


def _opened(place: Place) -> OpenFile:
    return place.opened if isinstance(place, Group) else OpenFile(place[0], 0, place[1], is_held=False)

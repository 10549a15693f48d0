"""Find the files of a collection, put them in order, and open them in parallel."""

from __future__ import annotations

import errno
import glob
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, TypeGuard

from hyperslab.archive.far import listing as far_listing
from hyperslab.archive.far.allowed import Locations
from hyperslab.archive.far.remote import Remote, SourceResolver, is_url, shown
from hyperslab.archive.given.foreign_stores import Location, is_chained, is_foreign
from hyperslab.archive.tree.group import Group
from hyperslab.archive.tree.locating import locate
from hyperslab.archive.tree.open_file import OpenFile
from hyperslab.errors import NoSuchFile, UsageError

Located: TypeAlias = tuple[Location, SourceResolver] | Group
Paths: TypeAlias = str | os.PathLike[str] | Group | Iterable[str | os.PathLike[str] | Group]
# Remote files opened at a time: as many as the requests that a new host gets at first.
MOST_OPENED_FAR = 32


def are_many(paths: Paths) -> bool:
    """Whether these are several files: a list, or a pattern that is not the name of a file."""
    if isinstance(paths, str):
        return not is_url(paths) and not is_chained(paths) and glob.has_magic(paths) and not os.path.exists(paths)  # noqa: PTH110
    return is_listed(paths)


def is_listed(paths: Any) -> TypeGuard[Iterable[Any]]:
    """Whether it is a list, and no single file, group or store of another library."""
    is_one = isinstance(paths, str | os.PathLike | Group) or is_foreign(paths)
    return isinstance(paths, Iterable) and not is_one


def located(
    paths: Paths, options: Mapping[str, Any], cache_nbytes: int = 0, allowed: Locations | None = None
) -> list[Located]:
    """Locate the files, in the order given. The files of a pattern are sorted by name, with numbers by value.

    Raises
    ------
    FileNotFoundError
        A pattern matches no file.
    UsageError
        The list is empty, or a group is not the root of its file.
    """
    listed = list(paths) if is_listed(paths) else [paths]
    allowed = allowed if allowed is None or isinstance(allowed, str) else list(allowed)
    places = [file for one in listed for file in _located(one, options, cache_nbytes, allowed)]
    if not places:
        raise UsageError("the list of files is empty: give paths, URLs or a pattern")
    return places


def _located(one: Any, options: Mapping[str, Any], cache_nbytes: int, allowed: Locations | None) -> list[Located]:
    if isinstance(one, Group):
        if one.name != "/":
            raise UsageError(f"{one.name} of {one.filename} is not a root group: only whole files can be combined")
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
        No file matches.
    """
    if is_url(pattern):
        matches = far_listing.matching(Remote(pattern, options or {}))
    else:
        matches = glob.glob(pattern, recursive=True)  # noqa: PTH207 -- Path.glob takes no absolute patterns
    if not matches:
        raise NoSuchFile(errno.ENOENT, "no file matches", shown(pattern) if is_url(pattern) else pattern)
    return sorted(matches, key=natural)


def threads_for(are_far: bool) -> int:
    """How many files to open at a time: parsing local files is bound by processors, fetching remote ones by latency."""
    return MOST_OPENED_FAR if are_far else os.cpu_count() or 1


def natural(name: str) -> list[tuple[int, str | int]]:
    """A key that sorts names as people expect: part-2 before part-10."""
    parts = re.split(r"(\d+)", name)
    return [(1, int(part)) if part.isdecimal() else (0, part) for part in parts]


def opened(located: list[Located]) -> list[OpenFile]:
    """Open the files in parallel. Local files are not held open, so you can have more files than the system can open.

    Raises
    ------
    HyperslabError
        The error of `hyperslab.open` for the first file that fails.
    """
    are_remote = any(not isinstance(file, Group) and isinstance(file[0], Remote) for file in located)
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(threads_for(are_remote))
    try:
        return list(pool.map(_opened, located))
    finally:
        pool.shutdown(cancel_futures=True)


def _opened(file: Located) -> OpenFile:
    return file.opened if isinstance(file, Group) else OpenFile(file[0], 0, file[1], is_held=False)

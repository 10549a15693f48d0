"""The names of the files to audit, one after the other: a million names never stand in memory at once."""

from __future__ import annotations

import errno
import fnmatch
import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hyperslab.archive.collections.source_files import are_many
from hyperslab.archive.far import listing
from hyperslab.archive.far.remote import Remote, is_url, shown
from hyperslab.audit.facts import is_zarr
from hyperslab.errors import NoSuchFile, printable

# What counts as an array file in a folder. A pattern or a name may have any other ending.
SUFFIXES = (
    ".nc", ".nc4", ".cdf", ".h5", ".hdf5", ".he5", ".hdf", ".h4", ".fits", ".fit", ".fts", ".zarr", ".hs", ".nwb",
    ".mat", ".hdf4",
)  # fmt: skip


def file_names(given: Sequence[str], options: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Every file that is named: patterns and folders are replaced by the files in them, each file once.

    Parameters
    ----------
    given : Sequence[str]
        Files, folders, patterns and URLs. A folder stands for the array files in it, at any depth.
    options : Mapping[str, Any] | None
        How to reach URLs.

    Raises
    ------
    NoSuchFile
        A pattern matches nothing, or a folder has no array file.
    """
    seen: set[int] | None = set() if len(given) > 1 else None
    for one in given:
        is_empty = True
        for name in _names(one, options or {}):
            is_empty = False
            if seen is not None:
                key = hash(name)
                if key in seen:
                    continue
                seen.add(key)
            yield name
        if is_empty:
            said = "no file matches" if not os.path.isdir(one) else "the folder has no array file"  # noqa: PTH112
            raise NoSuchFile(errno.ENOENT, said, shown(one) if is_url(one) else one)


def _names(one: str, options: Mapping[str, Any]) -> Iterator[str]:
    if is_url(one):
        yield from listing.each_matching(Remote(one, options)) if listing.is_pattern(one) else [one]
    elif os.path.isdir(one) and not is_zarr(one):  # noqa: PTH112
        yield from _in_folder(one)
    elif are_many(one):
        yield from _matching(one)
    else:
        yield one


def _matching(pattern: str) -> Iterator[str]:
    """The files of a pattern. If only its last part is one, the folder is never listed as a whole."""
    folder, last = os.path.split(pattern)
    if glob.has_magic(folder) or "**" in last:
        for name in glob.iglob(pattern, recursive=True):  # noqa: PTH207 -- Path.glob takes no absolute patterns
            if not os.path.isdir(name) or is_zarr(name):  # noqa: PTH112
                yield name
        return
    try:
        with os.scandir(folder or ".") as entries:
            for entry in entries:
                if fnmatch.fnmatchcase(entry.name, last) and (last.startswith(".") or not entry.name.startswith(".")):
                    name = os.path.join(folder, entry.name)  # noqa: PTH118
                    if not entry.is_dir() or is_zarr(name):
                        yield name
    except OSError as error:
        raise NoSuchFile(error.errno, error.strerror, printable(folder)) from error


def _in_folder(folder: str) -> Iterator[str]:
    """The array files below a folder. Links to folders are not followed; folders that cannot be listed are left out."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            entries = os.scandir(here)
        except OSError:
            continue
        with entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if is_zarr(entry.path):
                        yield entry.path
                    else:
                        waiting.append(entry.path)
                elif entry.name.lower().endswith(SUFFIXES):
                    yield entry.path

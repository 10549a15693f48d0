"""The versions of a damaged file, and what is in each of them, as far as it can be read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from hyperslab.archive.tree.array import Array as ArchiveArray
from hyperslab.archive.tree.group import Group
from hyperslab.errors import UsageError
from hyperslab.versions.layout.names import DATA
from hyperslab.versions.rewrite.evidence import READING

# versioned-hdf5 gives a new virtual array this prefix until it replaces the old one.
TEMPORARY = "_tmp_"

Child = Group | ArchiveArray | str  # text says why something cannot be read


class Found(NamedTuple):
    """A version of the damaged file."""

    name: str
    group: Group
    parent: str
    time: dt.datetime


@contextmanager
def if_readable() -> Iterator[None]:
    """Go on if something cannot be read."""
    try:
        yield
    except UsageError:
        raise
    except READING:
        pass


def below(group: Group, prefix: str) -> Iterator[tuple[str, Child]]:
    """Everything below a version, with its path; or the reason why it cannot be read."""
    for name in group:
        path = f"{prefix}{name}"
        try:
            child = group[name]
        except UsageError:
            raise
        except READING as error:
            yield path, str(error)
            continue
        yield path, child
        if isinstance(child, Group):
            yield from below(child, f"{path}/")


def children(root: Group, one: Found) -> list[tuple[str, Child]]:
    """Everything in a version as it would be if a deletion had not been stopped between two arrays."""
    found = dict(below(one.group, ""))
    paths = {path: replaced(root, path) or path for path in found}
    return [(paths[path], child) for path, child in found.items() if paths[path] == path or paths[path] not in found]


def replaced(root: Group, path: str) -> str | None:
    """The path of the array that an array was to replace, which versioned-hdf5 had not yet moved; None if it is no such
    array.
    """
    folder, _, name = path.rpartition("/")
    if not name.startswith(TEMPORARY) or f"{DATA}/{path}" in root:
        return None
    old = f"{folder}/{name.removeprefix(TEMPORARY)}".lstrip("/")
    return old if f"{DATA}/{old}" in root else None


def parents_first(versions: list[Found]) -> Iterator[Found]:
    """Versions in the order of their times, but each after its parent."""
    waiting = {one.name: one for one in versions}
    for one in versions:
        line = []
        name = one.name
        while name in waiting:
            line.append(waiting.pop(name))
            name = line[-1].parent
        yield from reversed(line)

"""`VersionTable`: all versions of a file, read at once, and found by name, ancestry or time."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from hyperslab.archive.tree.group import Group
from hyperslab.cached import cached_property
from hyperslab.errors import DamagedFile, ReadError, Unsupported
from hyperslab.meant import meant
from hyperslab.versions.layout.names import DATA, FIRST_VERSION, Time, as_datetime, parsed_time

VersionKey: TypeAlias = "str | int | Time | None"


@dataclass(frozen=True)
class Version:
    """A committed version: its name, the name of its parent (None for the first) and the time of its commit (UTC)."""

    name: str
    parent: str | None
    time: dt.datetime


class VersionTable(Mapping[str, Version]):
    """Versions by name, in the order of their times. `current` is None if there is no current version."""

    def __init__(self, versions: list[Version], current: str | None, data_version: int, path: str) -> None:
        self._versions = {version.name: version for version in sorted(versions, key=_order)}
        self.current: str | None = current if current in self._versions else None
        self.data_version = data_version
        self.path = path
        self.given_up: dict[str, str] = {}  # the times of versions whose attributes say that they were not committed

    @classmethod
    def of(cls, root: Group) -> VersionTable:
        """The table of a file. Versions whose attributes say that they were not committed are left out.

        Raises
        ------
        Unsupported
            The file has no versions.
        DamagedFile
            A version does not say when it was committed.
        """
        versions = group_of_versions(root)
        number = data_version_of(versions.attrs)
        listed: list[Version] = []
        given_up: dict[Any, Any] = {}
        times: dict[str, str] = {}
        for name, group in versions.groups.items():
            attributes = group.attrs
            if name == FIRST_VERSION or not is_committed(attributes, name, root.filename, number):
                given_up[name] = attributes.get("prev_version")
                if name != FIRST_VERSION:
                    with suppress(ReadError, KeyError):
                        times[name] = str(attributes["timestamp"])
                continue
            if "prev_version" not in attributes:
                raise DamagedFile(f"version {name!r} of {root.filename} does not say which version it was made from")
            parent = str(attributes["prev_version"])
            time = _time(attributes.get("timestamp"), name, root.filename)
            listed.append(Version(name, None if parent == FIRST_VERSION else parent, time))
        current = versions.attrs.get("current_version")
        for _ in given_up:  # versioned-hdf5 sets the current version before it commits: the one before is the parent
            current = given_up.get(current, current)
        table = cls(listed, current, number, root.filename)
        table.given_up = times
        return table

    def __getitem__(self, name: str) -> Version:
        try:
            return self._versions[name]
        except (KeyError, TypeError):
            if not isinstance(name, str):
                raise TypeError(f"{name!r} is not the name of a version: names are text") from None
            if not self._versions:
                raise KeyError(f"{self.path} holds no versions yet, so none is called {name!r}: stage one") from None
            raise KeyError(f"there is no version {name!r} in {self.path}{meant(name, self._versions)}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._versions  # without the message of __getitem__, which looks for names that are alike

    def __iter__(self) -> Iterator[str]:
        return iter(self._versions)

    def __len__(self) -> int:
        return len(self._versions)

    def find(self, key: VersionKey) -> str:
        """The name of the version that a key means: a name, a time, None, or 0 and -n (ancestors of the current one).

        Raises
        ------
        KeyError
            The version does not exist.
        IndexError
            There are fewer ancestors, or the number is positive.
        """
        if key is None:
            return self._current()
        if isinstance(key, str):
            return self[key].name
        if isinstance(key, int | np.integer) and not isinstance(key, bool):
            return self.ancestor(self._current(), -int(key))
        return self.at(as_datetime(key)).name  # type: ignore[arg-type]

    def ancestor(self, name: str, steps: int) -> str:
        """The version that many steps before another.

        Raises
        ------
        IndexError
            There are fewer ancestors.
        KeyError
            A version on the way was deleted.
        """
        if steps < 0:
            raise IndexError(f"{-steps} is not an ancestor: 0 is the current version, -1 its parent")
        at = name
        for _ in range(steps):
            parent = self[at].parent
            if parent is None:
                raise IndexError(f"{name!r} has fewer than {steps} versions before it")
            at = parent
        return at

    def at(self, time: dt.datetime) -> Version:
        """The last version committed at or before a time.

        Raises
        ------
        KeyError
            There is none.
        """
        position = bisect_right(self._times, time)
        if not position:
            raise KeyError(f"no version in {self.path} was committed at or before {time}")
        return self._ordered[position - 1]

    @cached_property
    def _ordered(self) -> list[Version]:
        return list(self._versions.values())

    @cached_property
    def _times(self) -> list[dt.datetime]:
        return [version.time for version in self._ordered]

    def _current(self) -> str:
        if self.current is None:
            said = "has no current version: set one" if self._versions else "holds no versions yet: stage one"
            raise KeyError(f"{self.path} {said}")
        return self.current

    def changed(self, added: Version | None, current: str | None) -> VersionTable:
        """A table with one more version, or with another current version."""
        table = VersionTable([], None, self.data_version, self.path)
        table._versions = dict(self._versions)
        if added is not None:
            last = next(reversed(table._versions.values()), added)
            table._versions[added.name] = added
            if _order(added) < _order(last):
                return VersionTable(list(table._versions.values()), current, self.data_version, self.path)
        table.current = current if current in table._versions else None
        return table

    def rewritten(self, kept: Container[str], parents: Mapping[str, str], current: str) -> VersionTable:
        """A table of some of these versions, some of them with new parents."""
        versions = [
            replace(one, parent=None if parents[one.name] == FIRST_VERSION else parents[one.name])
            if one.name in parents
            else one
            for one in self._ordered
            if one.name in kept
        ]
        return VersionTable(versions, current, self.data_version, self.path)


def is_committed(attributes: Mapping[str, Any], name: str, path: str, data_version: int) -> bool:
    """Whether a version was committed, according to its attributes. Unreadable attributes do not count as "no".

    Raises
    ------
    DamagedFile
        The attributes do not say.
    """
    where = f"version {name!r} of {path}"
    if "committed" not in attributes:
        # In files of data_version 1 the attribute may be missing: every version there is committed. Later layouts write
        # it before the time.
        if data_version == 1 and "prev_version" in attributes:
            return True
        if "timestamp" not in attributes:
            return False
        raise DamagedFile(f"{where} does not say whether it was committed: hyperslab.versions.repair may help")
    try:
        flag = attributes["committed"]
    except (ReadError, OSError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise DamagedFile(f"whether {where} was committed cannot be read: {error}") from None
    if not isinstance(flag, bool | np.bool_):
        raise DamagedFile(f"{where} has {flag!r} as its attribute 'committed', which is neither true nor false")
    return bool(flag)


def data_version_of(attributes: Mapping[str, Any]) -> int:
    """The number of the layout, from the attributes of the group that holds all versions.

    Raises
    ------
    DamagedFile
        It is not a number.
    """
    said = attributes.get("data_version", 1)
    if isinstance(said, bool | np.bool_) or not isinstance(said, int | np.integer):
        raise DamagedFile(f"the data_version of the file is {said!r}, which is not a whole number")
    return int(said)


def group_of_versions(root: Group) -> Group:
    """The group that holds the groups of all versions.

    Raises
    ------
    Unsupported
        The file has no versions.
    DamagedFile
        It is not a group.
    """
    if DATA not in root:
        how = "hyperslab.VersionedFile(path, 'a') makes them, beside what is in it"
        raise Unsupported(f"{root.filename} holds no versions: {how}")
    versions = root[f"{DATA}/versions"]
    if not isinstance(versions, Group):
        raise DamagedFile(f"{root.filename}: {DATA}/versions is not a group")
    return versions


def _order(version: Version) -> tuple[dt.datetime, str]:
    return version.time, version.name


def _time(stored: object, name: str, path: str) -> dt.datetime:
    try:
        return parsed_time(str(stored))
    except ValueError:
        raise DamagedFile(f"version {name!r} of {path} has an unreadable time: {stored!r}") from None

"""`VersionTable`: all versions of a file, from one scan; found by name, ancestry and time."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from hyperslab.archive.tree import Group
from hyperslab.cached import cached_property
from hyperslab.errors import DamagedFile, ReadError, Unsupported
from hyperslab.versions.layout.names import DATA, FIRST_VERSION, Time, as_datetime, parsed_time

VersionKey: TypeAlias = "str | int | Time | None"


@dataclass(frozen=True)
class Version:
    """A committed version: its name, its parent's (None for the first), and when it was committed (UTC)."""

    name: str
    parent: str | None
    time: dt.datetime


class VersionTable(Mapping[str, Version]):
    """Versions by name, in the order of their times. `current` is None while there is none."""

    def __init__(self, versions: list[Version], current: str | None, data_version: int, path: str) -> None:
        self._versions = {version.name: version for version in sorted(versions, key=_order)}
        self.current = current if current in self._versions else None
        self.data_version = data_version
        self.path = path
        self.given_up: dict[str, str] = {}  # versions that say that they were not committed, and when they were

    @classmethod
    def of(cls, root: Group) -> VersionTable:
        """The table of a file; what says that it was never committed is not in it.

        Raises
        ------
        Unsupported
            The file has no versions.
        DamagedFile
            A version does not say when it was committed.
        """
        versions = group_of_versions(root)
        number = data_version_of(versions.attrs)
        found: list[Version] = []
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
                raise DamagedFile(f"version {name!r} of {root.filename} does not say which it was made from")
            parent = str(attributes["prev_version"])
            time = _time(attributes.get("timestamp"), name, root.filename)
            found.append(Version(name, None if parent == FIRST_VERSION else parent, time))
        current = versions.attrs.get("current_version")
        for _ in given_up:  # versioned-hdf5 says so before it commits: what it was before then is the parent
            current = given_up.get(current, current)
        table = cls(found, current, number, root.filename)
        table.given_up = times
        return table

    def __getitem__(self, name: str) -> Version:
        try:
            return self._versions[name]
        except KeyError:
            raise KeyError(f"there is no version {name!r} in {self.path}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._versions)

    def __len__(self) -> int:
        return len(self._versions)

    def find(self, key: VersionKey) -> str:
        """The name of the version that a key means: a name, 0 or -n (ancestors of the current one), a time, None.

        Raises
        ------
        KeyError
            There is no such version.
        IndexError
            There are not so many ancestors, or the number is positive.
        """
        if key is None:
            return self._current()
        if isinstance(key, str):
            return self[key].name
        if isinstance(key, int | np.integer) and not isinstance(key, bool):
            return self.ancestor(self._current(), -int(key))
        return self.at(as_datetime(key)).name  # type: ignore[arg-type]

    def ancestor(self, name: str, steps: int) -> str:
        """The version so many steps before one.

        Raises
        ------
        IndexError
            There are not so many.
        KeyError
            A version on the way was deleted.
        """
        if steps < 0:
            raise IndexError(f"{-steps} is no ancestor: 0 is the current version, -1 its parent")
        at = name
        for _ in range(steps):
            parent = self[at].parent
            if parent is None:
                raise IndexError(f"{name!r} has fewer than {steps} versions before it")
            at = parent
        return at

    def at(self, time: dt.datetime) -> Version:
        """The last version committed at a time or before it.

        Raises
        ------
        KeyError
            There is none.
        """
        position = bisect_right(self._times, time)
        if not position:
            raise KeyError(f"no version in {self.path} was committed at {time} or before")
        return self._ordered[position - 1]

    @cached_property
    def _ordered(self) -> list[Version]:
        return list(self._versions.values())

    @cached_property
    def _times(self) -> list[dt.datetime]:
        return [version.time for version in self._ordered]

    def _current(self) -> str:
        if self.current is None:
            raise KeyError(f"{self.path} has no current version yet")
        return self.current

    def changed(self, added: Version | None, current: str | None) -> VersionTable:
        """A table with one version more, or another current one."""
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
        """A table of some of these versions, of which some have other parents."""
        versions = [
            replace(one, parent=None if parents[one.name] == FIRST_VERSION else parents[one.name])
            if one.name in parents
            else one
            for one in self._ordered
            if one.name in kept
        ]
        return VersionTable(versions, current, self.data_version, self.path)


def is_committed(attributes: Mapping[str, Any], name: str, path: str, data_version: int) -> bool:
    """Whether a version was committed, by its attributes. What cannot be read does not say that it was not.

    Raises
    ------
    DamagedFile
        They do not say.
    """
    where = f"version {name!r} of {path}"
    if "committed" not in attributes:
        # Files of data_version 1 may not say who is committed: all that are there are. Later the time comes after it.
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
        raise DamagedFile(f"{where} says {flag!r} of whether it was committed, which is neither yes nor no")
    return bool(flag)


def data_version_of(attributes: Mapping[str, Any]) -> int:
    """The number of the layout, from the attributes of the group that holds all versions.

    Raises
    ------
    DamagedFile
        It is no number.
    """
    said = attributes.get("data_version", 1)
    if isinstance(said, bool | np.bool_) or not isinstance(said, int | np.integer):
        raise DamagedFile(f"the data_version of the file is said to be {said!r}, which is no number")
    return int(said)


def group_of_versions(root: Group) -> Group:
    """The group that holds those of all versions.

    Raises
    ------
    Unsupported
        The file has no versions.
    DamagedFile
        It is no group.
    """
    if DATA not in root:
        raise Unsupported(f"{root.filename} holds no versions: hyperslab.VersionedFile makes some")
    versions = root[f"{DATA}/versions"]
    if not isinstance(versions, Group):
        raise DamagedFile(f"{root.filename}: {DATA}/versions is no group")
    return versions


def _order(version: Version) -> tuple[dt.datetime, str]:
    return version.time, version.name


def _time(stored: object, name: str, path: str) -> dt.datetime:
    try:
        return parsed_time(str(stored))
    except ValueError:
        raise DamagedFile(f"version {name!r} of {path} has no time that can be read: {stored!r}") from None

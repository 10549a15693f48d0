"""`Refs`: the branches and tags of a file, as its list of fingerprints says them, and the versions that they name.

The list only grows, so the last record that names a branch or a tag counts. versioned-hdf5 knows nothing of this: it
commits on top of the current version, sets it, and deletes versions. So a ref names a version by its name and the time
of its commit, and what a ref means is found by looking at the versions that exist. Reading needs no h5py.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hyperslab.errors import DamagedFile
from hyperslab.versions.layout.fingerprint_log import DAMAGED, record_body, record_positions
from hyperslab.versions.layout.names import FIRST_VERSION, TIME_FORMAT, check_storable
from hyperslab.versions.layout.table import VersionTable

MAIN = "main"  # the branch that a file has as long as nobody named another


class Target(NamedTuple):
    """A version by its name and the time of its commit: of two versions that had one name, one after the other, it is
    one.
    """

    version: str
    timestamp: str

    @classmethod
    def of(cls, said: Any) -> Target:
        """A target as it is stored."""
        version, timestamp = said
        if not isinstance(version, str) or not isinstance(timestamp, str):
            raise TypeError(f"{said!r} is not the name and the time of a version")
        return cls(version, timestamp)


@dataclass(frozen=True)
class Branch:
    """A branch: the version at its head, or None if that does not exist any more.

    `recorded` is the version that was named when the branch last moved. `problem` says what other software did to it.
    """

    name: str
    version: str | None
    recorded: str
    is_checked_out: bool = False
    problem: str | None = None


@dataclass(frozen=True)
class Tag:
    """A tag: the version that it names, or None if that was deleted; when it was made (UTC), by whom, and why."""

    name: str
    version: str | None
    recorded: str
    time: str
    message: str | None = None
    author: str | None = None
    problem: str | None = None


@dataclass
class Refs:
    """What the list of fingerprints says of branches and tags. As long as it names no branch, there is one, `main`.

    `parents` has the parents of all versions that were ever recorded; `merged` the second parents of merges.
    """

    branches: dict[str, Target] = field(default_factory=dict)
    tags: dict[str, tuple[Target, Mapping[str, Any]]] = field(default_factory=dict)
    checked_out: str | None = MAIN
    parents: dict[Target, str] = field(default_factory=dict)
    merged: dict[Target, Target] = field(default_factory=dict)
    problem: str | None = None  # why some of it may be missing
    fault: str | None = None  # a record that is as it was written, but makes no sense
    _last_times: dict[str, str] = field(default_factory=dict)  # of each name that was recorded

    @classmethod
    def of(cls, stored: bytes) -> Refs:
        """Read the bytes of a list of fingerprints. Records that are damaged are left out, and noted as a problem."""
        refs = cls()
        try:
            for at, length in record_positions(stored):
                try:
                    said = record_body(stored, at, length)
                except (*DAMAGED, RecursionError) as error:
                    refs.problem = refs.problem or f"the list of branches and tags is damaged: {error}"
                    continue
                try:
                    refs._add(said)
                except DAMAGED as error:
                    refs.fault = f"the list of branches and tags is damaged: {error}"
                    refs.problem = refs.problem or refs.fault
        except DAMAGED as error:
            refs.problem = refs.problem or f"the list of branches and tags is damaged: {error}"
        return refs

    def changed(self, said: Mapping[str, Any]) -> Refs:
        """These refs after one more record."""
        made = copy.copy(self)
        for name in ("branches", "tags", "parents", "merged", "_last_times"):
            setattr(made, name, dict(getattr(self, name)))
        made._add(said)
        return made

    def _add(self, said: Mapping[str, Any]) -> None:
        for name, timestamp, parent in said.get("parents", ()):
            self._know(Target.of((name, timestamp)), parent)
        if "version" in said:
            own = Target.of((said["version"], said["timestamp"]))
            self._know(own, said["parent"])
        for name, timestamp, *other in said.get("merged", ()):
            self.merged[Target.of((name, timestamp))] = Target.of(other)
        for name, target in said.get("branches", {}).items():
            self.branches.pop(name, None)
            if target is not None:
                self.branches[name] = Target.of(target)
        for name, tag in said.get("tags", {}).items():
            self.tags.pop(name, None)
            if tag is not None:
                self.tags[name] = Target.of(tag["target"]), {key: str(tag[key]) for key in TAG_TEXTS if key in tag}
        if "checked_out" in said:
            name = said["checked_out"]
            if name is not None and not isinstance(name, str):
                raise TypeError(f"{name!r} is not the name of a branch")
            self.checked_out = name

    def _know(self, version: Target, parent: Any) -> None:
        if not isinstance(parent, str):
            raise TypeError(f"{parent!r} is not the name of a version")
        self.parents[version] = parent
        self._last_times[version.version] = version.timestamp

    # ----------------------------------------------------------------------------------------------- what they mean

    @property
    def is_explicit(self) -> bool:
        """Whether any branch was named."""
        return bool(self.branches)

    def nearest(self, target: Target, table: VersionTable) -> str | None:
        """The version that a ref names or, if it was deleted, its nearest ancestor that exists; `FIRST_VERSION` if all
        of them were deleted, and None if they are unknown.
        """
        at, seen = target, set[Target]()
        if exists(target, table):
            return target.version
        while at not in seen:
            seen.add(at)
            parent = self.parents.get(at)
            if parent is None or parent == FIRST_VERSION or parent in table:
                return parent
            at = Target(parent, self._last_times.get(parent, ""))
        return None

    def branch(self, name: str, table: VersionTable) -> Branch:
        """A branch and the version at its head."""
        target, is_ours = self.branches[name], name == self.checked_out
        found, current = self.nearest(target, table), table.current
        missing = f"dangling: its version {target.version!r} was deleted, and no version before it exists"
        if not is_ours or found == current:
            if found in (None, FIRST_VERSION):
                return Branch(name, None, target.version, is_ours, missing)
            return Branch(name, found, target.version, is_ours)
        if current is not None and found is not None and is_ancestor(found, current, table):
            return Branch(name, current, target.version, is_ours)  # versioned-hdf5 committed on it
        moved = f"moved outside: other software made {current!r} the current version, which does not come from it"
        return Branch(name, None if found == FIRST_VERSION else found, target.version, is_ours, moved)

    def all_branches(self, table: VersionTable) -> dict[str, Branch]:
        """All branches by name. A file whose branches were never named has one, `main`: its current version."""
        if not self.is_explicit:
            current = table.current
            return {} if current is None else {MAIN: Branch(MAIN, current, current, is_checked_out=True)}
        return {name: self.branch(name, table) for name in sorted(self.branches)}

    def all_tags(self, table: VersionTable) -> dict[str, Tag]:
        """All tags by name. A tag never names another version than the one that it was given to."""
        return {name: self._tag(name, table) for name in sorted(self.tags)}

    def _tag(self, name: str, table: VersionTable) -> Tag:
        target, said = self.tags[name]
        texts = (said.get("time", ""), said.get("message"), said.get("author"))
        if exists(target, table):
            return Tag(name, target.version, target.version, *texts)
        near = self.nearest(target, table)
        instead = "no version before it exists" if near in (None, FIRST_VERSION) else f"before it there is {near!r}"
        return Tag(
            name, None, target.version, *texts, f"dangling: its version {target.version!r} was deleted, {instead}"
        )

    def find(self, name: str, table: VersionTable) -> str | None:
        """The version that a branch or a tag names; None if there is no such ref.

        Raises
        ------
        KeyError
            The ref names no version any more.
        """
        if name in self.tags:
            ref: Branch | Tag = self._tag(name, table)
        elif name in self.branches:
            ref = self.branch(name, table)
        else:
            return table.current if not self.is_explicit and name == MAIN else None
        if ref.version is None:
            raise KeyError(f"{name!r} in {table.path} is {ref.problem}")
        return ref.version

    def second_parent(self, name: str, table: VersionTable) -> str | None:
        """The version that was merged into another, or its nearest ancestor that exists; None if none was."""
        target = self.merged.get(target_of(name, table))
        found = None if target is None else self.nearest(target, table)
        return None if found == FIRST_VERSION else found

    def parents_of(self, name: str, table: VersionTable) -> list[str]:
        """The parents of a version that exist."""
        found = (table[name].parent, self.second_parent(name, table))
        return [one for one in dict.fromkeys(found) if one is not None and one in table]

    def faults(self, table: VersionTable) -> list[str]:
        """What cannot be so unless the list of fingerprints is damaged or made up."""
        found = [] if self.fault is None else [self.fault]
        named = [("branch", name, target) for name, target in self.branches.items()]
        named += [("tag", name, target) for name, (target, _) in self.tags.items()]
        for kind, name, target in named:
            if target not in self.parents and not exists(target, table):
                found.append(f"{kind} {name!r} names {target.version!r}, which nobody committed")
        if self.is_explicit and self.checked_out not in (None, *self.branches):
            found.append(f"branch {self.checked_out!r} is checked out, but does not exist")
        return found

    # ------------------------------------------------------------------------------------------------- what is stored

    def lineage(self, target: Target, table: VersionTable) -> list[list[str]]:
        """The parents on the way up from a version that the list does not know yet, as they are stored."""
        found: list[list[str]] = []
        seen = set[Target]()
        while target not in self.parents and target not in seen and target.version in table:
            seen.add(target)
            parent = table[target.version].parent
            found.append([*target, parent or FIRST_VERSION])
            if parent is None or parent not in table:
                break
            target = target_of(parent, table)
        return found

    def packed(self, kept: Mapping[str, str]) -> dict[str, Any]:
        """All refs as one record, for a list that is written again with only some versions (and their times)."""
        targets = [*self.branches.values(), *(target for target, _ in self.tags.values())]
        merged = {one: self.merged[one] for one in map(Target._make, kept.items()) if one in self.merged}
        targets += merged.values()
        if not targets:
            return {}
        above = {at: parent for target in targets for at, parent in self._above(target, kept)}
        return {
            "branches": {name: list(target) for name, target in self.branches.items()},
            "tags": {name: {"target": list(target), **said} for name, (target, said) in self.tags.items()},
            **({"checked_out": self.checked_out} if self.is_explicit else {}),
            "parents": [[*at, parent] for at, parent in above.items()],
            "merged": [[*own, *other] for own, other in merged.items()],
        }

    def restored(self, table: VersionTable) -> tuple[dict[str, Any], dict[str, str]]:
        """All refs as one record for a new file with the versions in `table`; and those that name no version there."""
        branches, tags = self.all_branches(table) if self.is_explicit else {}, self.all_tags(table)
        known: list[Branch | Tag] = [*branches.values(), *tags.values()]
        lost = {one.name: one.problem or "" for one in known if one.version is None}
        made = {one.name: list(target_of(one.version, table)) for one in branches.values() if one.version is not None}
        ours = [one.name for one in branches.values() if one.is_checked_out and one.problem is None]
        own = {name: self.tags[name] for name, tag in tags.items() if tag.version is not None}
        here = [target_of(name, table) for name in table]
        merged = {one: self.nearest(self.merged[one], table) for one in here if one in self.merged}
        others = {one: name for one, name in merged.items() if name is not None and name in table}
        said = {
            "branches": made,
            "tags": {name: {"target": list(target), **texts} for name, (target, texts) in own.items()},
            **({"checked_out": ours[0] if ours else None} if made else {}),
            "merged": [[*one, *target_of(name, table)] for one, name in others.items()],
        }
        return {key: value for key, value in said.items() if value or key == "checked_out"}, lost

    def _above(self, target: Target, kept: Mapping[str, str]) -> Iterator[tuple[Target, str]]:
        """A version and those before it, up to the first one that is kept, with their parents."""
        seen = set[Target]()
        while target in self.parents and target not in seen:
            seen.add(target)
            parent = self.parents[target]
            yield target, parent
            if kept.get(target.version) == target.timestamp:
                return
            target = Target(parent, kept.get(parent, self._last_times.get(parent, "")))


TAG_TEXTS = ("time", "message", "author")


def target_of(name: str, table: VersionTable) -> Target:
    """A version that exists, as refs name it."""
    return Target(name, table[name].time.strftime(TIME_FORMAT))


def exists(target: Target, table: VersionTable) -> bool:
    """Whether a version exists, and was not deleted and made again."""
    return target.version in table and target_of(target.version, table) == target


def is_ancestor(name: str, of: str, table: VersionTable) -> bool:
    """Whether a version is another one or before it, by first parents. `FIRST_VERSION` is before all that have one."""
    at: str | None = of
    seen = set[str]()
    while at is not None and at in table and at not in seen:
        if at == name:
            return True
        seen.add(at)
        at = table[at].parent
    return at is None and name == FIRST_VERSION


def check_ref_name(name: str) -> str:
    """Check the name of a new branch or tag.

    Raises
    ------
    ValueError
        A branch or a tag cannot have this name.
    """
    if not isinstance(name, str) or not name or "/" in name or name in (".", FIRST_VERSION):
        raise ValueError(f"{name!r} cannot be the name of a branch or a tag: use text without '/'")
    check_storable(name)
    return name


def check_readable(refs: Refs, path: str) -> None:
    """Refuse to change branches and tags that cannot all be read.

    Raises
    ------
    DamagedFile
        A part of the list is damaged.
    """
    if refs.problem is not None:
        raise DamagedFile(f"{path}: {refs.problem}: `hyperslab versions repair` writes what is left to a new file")

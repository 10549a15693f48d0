"""`Fitting`: which of the mappings in a damaged file shows what a version's fingerprint says."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from hyperslab.archive.tree.array import Array as ArchiveArray
from hyperslab.archive.tree.group import Group
from hyperslab.errors import DamagedFile, UsageError
from hyperslab.versions.layout.fingerprint_log import LOG, Mark, Record, Recorded
from hyperslab.versions.layout.fingerprints import content
from hyperslab.versions.layout.names import parsed_time
from hyperslab.versions.layout.slots import MISSING, Slots, stored_length
from hyperslab.versions.rewrite.evidence import READING, Evidence, Shape
from hyperslab.versions.rewrite.renumbering import renumbered


class Placed(NamedTuple):
    """What an array of a version shows: its shape, and the slot of each chunk."""

    shape: Shape
    slots: Slots


class Fitting:
    """Knows the mappings of all versions, and what the fingerprints say of them.

    If an array was described in another way when it was committed, other software has stored it again since: then its
    fingerprint says nothing of it.

    Parameters
    ----------
    root : Group
        The root of the file.
    recorded : Recorded
        The fingerprints.
    times : Mapping[str, dt.datetime]
        The times of the versions. The fingerprint of a version with another time belongs to another version.
    """

    def __init__(self, root: Group, recorded: Recorded, times: Mapping[str, dt.datetime]) -> None:
        self._file = root._file
        self.problem: str | None = recorded.problem
        known = {} if recorded.problem is not None else recorded.versions
        self._records = {name: one for name, one in known.items() if name in times and _time(one) == times[name]}
        self._evidence: dict[str, Evidence] = {}
        self._placed: dict[str, dict[str, Placed]] = {}  # by path and version
        self._shown: dict[str, dict[bytes, Placed]] = {}  # by path and content
        self._olds: dict[str, dict[str, Mark]] = {}
        self._renumbered: dict[str, dict[str, Slots]] = {}  # by path and version

    def add(self, path: str, evidence: Evidence, placed: Placed, version: str | None) -> None:
        """Note a mapping, and whose it is."""
        self._evidence[path] = evidence
        shown = _content(evidence, placed)
        if shown is not None:
            self._shown.setdefault(path, {}).setdefault(shown, placed)
        if version is not None:
            self._placed.setdefault(path, {})[version] = placed

    def own(self, version: str, path: str) -> Placed | None:
        """What a version's array shows according to its mappings; None if they cannot be read."""
        return self._placed.get(path, {}).get(version)

    def found(self, version: str, path: str) -> Placed | None:
        """The mapping that shows what a version's array was when it was committed; None if there is none, or if that is
        not known.
        """
        mark = self._mark(version, path)
        if mark is None:
            return None
        own = self.own(version, path)
        if own is not None and _content(self._evidence[path], own) == mark.content:
            return own
        shown = self._shown.get(path, {}).get(mark.content)
        if shown is not None or own is None:
            return shown
        slots = self._renumber(path).get(version)
        return None if slots is None else Placed(own.shape, slots)

    def disproves(self, version: str, path: str) -> bool:
        """Whether a version's array is not what it was when it was committed."""
        mark, own = self._mark(version, path), self.own(version, path)
        shown = None if mark is None or own is None else _content(self._evidence[path], own)
        return mark is not None and shown is not None and shown != mark.content

    def shows_interruption(self, version: str, path: str) -> bool:
        """Whether an array is not what it was, and other software has written the table of its hashes again."""
        record, mark, own = self._records.get(version), self._mark(version, path), self.own(version, path)
        if record is None or mark is None or own is None:
            return False
        evidence = self._evidence[path]
        shown, address, number = _content(evidence, own), record.tables.get(path), evidence.table_number
        is_there = address is None or number is None or self._file.core.array_at(address) == number
        is_known = shown is not None or self.found(version, path) is not None  # else hashes may be missing
        return not is_there and shown != mark.content and is_known

    def lacking(self, version: str, paths: set[str]) -> Iterator[str]:
        """The paths of groups and arrays that a version had when it was committed, and that are not among these."""
        if version in self._records:
            yield from sorted(self._records[version].marks.keys() - paths)

    def _mark(self, version: str, path: str) -> Mark | None:
        """The mark of a version's array, if it says something."""
        record, evidence = self._records.get(version), self._evidence.get(path)
        mark = record.marks.get(path) if record is not None else None
        if mark is None or evidence is None or not mark.is_array or mark.description != evidence.description:
            return None
        return mark

    def _renumber(self, path: str) -> dict[str, Slots]:
        """The new mappings of an array in the versions that have old ones."""
        if path not in self._renumbered:
            evidence, placed = self._evidence[path], self._placed[path]
            old, taken = self._old(path), np.zeros(evidence.count, bool)
            deleted = {frozenset(self._old(other).keys() & old.keys()) for other in self._placed}
            for version in placed.keys() - old.keys():
                slots = (self.found(version, path) or placed[version]).slots
                taken[slots[(slots != MISSING) & (slots < evidence.count)]] = True
                if self._mark(version, path) is None:
                    taken[:] = True  # nothing tells whether its mapping is new
            self._renumbered[path] = renumbered(
                {version: placed[version].slots for version in old},
                taken,
                lambda version, slots: _content(evidence, Placed(placed[version].shape, slots)) == old[version].content,
                sorted(deleted, key=sorted),
            )
        return self._renumbered[path]

    def _old(self, path: str) -> dict[str, Mark]:
        """The marks of an array in the versions that do not show what they should."""
        if path not in self._olds:
            marks = {version: self._mark(version, path) for version in self._placed[path]}
            shown = self._shown.get(path, {})
            self._olds[path] = {
                version: mark for version, mark in marks.items() if mark is not None and mark.content not in shown
            }
        return self._olds[path]


def _content(evidence: Evidence, placed: Placed) -> bytes | None:
    """The mark of what an array holds; None if the hashes of some of its chunks are not known."""
    slots = placed.slots.reshape(-1)
    if int(slots.max(initial=MISSING)) >= len(evidence.keys) or not evidence.has_key[slots[slots != MISSING]].all():
        return None
    return content(placed.shape, slots, evidence.keys)


def _time(record: Record) -> dt.datetime | None:
    try:
        return parsed_time(record.timestamp)
    except (ValueError, TypeError):
        return None


def stored_list(root: Group) -> bytes:
    """The bytes of the list of fingerprints in a damaged file; none if it has no such list.

    Raises
    ------
    DamagedFile
        The list cannot be read.
    """
    try:
        log = root.get(LOG)
        if log is None:
            return b""
        if not isinstance(log, ArchiveArray) or log.dtype != np.uint8 or log.ndim != 1:
            raise DamagedFile("the list of fingerprints is not an array of bytes")
        return np.asarray(log[: stored_length(log)]).tobytes()
    except UsageError:
        raise
    except READING as error:
        said = str(error)
        raise DamagedFile(said if "fingerprints is not" in said else f"the list cannot be read: {error}") from error

"""`Expiry`: which versions may go by their age and number, and the bytes that only those use. No chunk is read."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hyperslab.progress import Progress
from hyperslab.versions.inspect.chunk_maps import ChunkMap, ChunkMaps
from hyperslab.versions.inspect.chunk_stack import chunk_stacks
from hyperslab.versions.inspect.stored_bytes import StoredBytes
from hyperslab.versions.layout.refs import Branch, Tag
from hyperslab.versions.layout.slots import MISSING
from hyperslab.versions.layout.table import VersionTable

KEPT, GONE = 1, 2  # bits of a chunk: versions that stay show it; versions that go show it

# The part of a time that all versions of one period share.
PERIODS: Mapping[str, Callable[[dt.datetime], tuple[int, ...]]] = {
    "hour": lambda time: (time.year, time.month, time.day, time.hour),
    "day": lambda time: (time.year, time.month, time.day),
    "week": lambda time: tuple(time.isocalendar()[:2]),
    "month": lambda time: (time.year, time.month),
    "year": lambda time: (time.year,),
}


@dataclass(frozen=True)
class Expiry:
    """The versions that may go (oldest first), and why each of the others stays.

    Attributes
    ----------
    path
        The path of the file.
    time
        The time from which ages count, in UTC.
    names
        The versions that may go, or that are gone.
    kept
        The versions that stay, each with the reason.
    chunk_count, nbytes
        The chunks that only versions in `names` show, and their bytes in the file.
    unused_nbytes
        The bytes of chunks that no version shows, which go with the others.
    problems
        Damaged arrays, whose chunks are not counted, by path.
    """

    path: str
    time: dt.datetime
    names: tuple[str, ...]
    kept: Mapping[str, str]
    chunk_count: int
    nbytes: int
    unused_nbytes: int
    problems: Mapping[str, str]


class Thinning(NamedTuple):
    """Of each period only the last versions of a line stay."""

    most: int
    period: str

    @classmethod
    def of(cls, said: str) -> Thinning:
        """What a text such as `1/day` means.

        Raises
        ------
        ValueError
            It is no such text.
        """
        match = re.fullmatch(r"([0-9]{1,9})/([a-z]+)", said)
        if match is None or match[2] not in PERIODS or not int(match[1]):
            raise ValueError(f"{said!r} does not say how many versions of a period stay: 1/day, 4/week, 1/month, …")
        return cls(int(match[1]), match[2])


@dataclass(frozen=True)
class Rule:
    """Which versions may go: those that all parts of the rule that are given let go."""

    keep_last: int | None = None
    older_than: dt.timedelta | None = None
    thin: Thinning | None = None
    keep_tags: bool = True

    def __post_init__(self) -> None:
        if self.keep_last is None and self.older_than is None and self.thin is None:
            raise ValueError("say which versions may go: give keep_last, older_than or thin")
        if self.keep_last is not None and self.keep_last < 1:
            raise ValueError(f"keep_last is {self.keep_last}: keep at least one version")
        if self.older_than is not None and self.older_than < dt.timedelta(0):
            raise ValueError(f"older_than is {self.older_than}: an age is not negative")

    def kept(
        self, table: VersionTable, branches: Mapping[str, Branch], tags: Iterable[Tag], now: dt.datetime
    ) -> dict[str, str]:
        """The versions that stay, with the reasons. A line is a branch, or what leads to a version without children."""
        kept: dict[str, str] = {}
        if self.keep_tags:
            kept.update((tag.version, f"it has the tag {tag.name!r}") for tag in tags if tag.version in table)  # type: ignore[misc]
        if table.current is not None:
            kept[table.current] = "it is the current version"
        heads = [one for one in branches.values() if one.version is not None]
        heads.sort(key=lambda one: (not one.is_checked_out, one.name))
        kept.update((str(one.version), f"it is the head of branch {one.name!r}") for one in heads)
        named = {one.name: str(one.version) for one in heads}
        children = {version.parent for version in table.values()}
        ends = {name: name for name in reversed(list(table)) if name not in children and name not in named.values()}
        lines = named | ends
        for line, head in lines.items():
            for count, name in enumerate(_back(head, table)):
                if self.keep_last is None or count >= self.keep_last:
                    break
                kept.setdefault(name, f"it is one of the last {self.keep_last} of {line!r}")
        for version in table.values() if self.older_than is not None else ():
            if self.older_than is not None and now - version.time < self.older_than:
                kept.setdefault(version.name, "it is not old enough")
        for line, head in lines.items() if self.thin is not None else ():
            self._thin(line, head, table, kept)
        return kept

    def _thin(self, line: str, head: str, table: VersionTable, kept: dict[str, str]) -> None:
        assert self.thin is not None
        counts: dict[tuple[int, ...], int] = {}
        for name in _back(head, table):
            period = PERIODS[self.thin.period](table[name].time)
            counts[period] = counts.get(period, 0) + 1
            if counts[period] <= self.thin.most:
                kept.setdefault(name, f"it is one of the last {self.thin.most} of a {self.thin.period} on {line!r}")


def expiry(table: VersionTable, kept: Mapping[str, str], time: dt.datetime, progress: Progress | None = None) -> Expiry:
    """Count what goes if only some versions stay.

    Raises
    ------
    FileChanged
        Another file replaced this one meanwhile.
    """
    gone = [name for name in table if name not in kept]
    with StoredBytes(table.path) as stored:
        stacks, problems = chunk_stacks(table.path)
        shown = {path: np.zeros(stack.slot_count, np.uint8) for path, stack in stacks.items()}
        last: dict[tuple[str, int], ChunkMap] = {}  # unchanged arrays follow each other
        for done, version in enumerate(ChunkMaps(table.path).each(list(table)), 1):
            bit = KEPT if version.name in kept else GONE
            for path, array in version.arrays.items():
                if path in shown and array.slots is not None and last.get((path, bit)) is not array:
                    slots, bits = array.slots, shown[path]
                    bits[slots[(slots != MISSING) & (slots < len(bits))]] |= bit  # a chunk may be there several times
                    last[path, bit] = array
            if progress is not None:
                progress(version.name, done, len(table))
        sizes = {path: stack.stored_nbytes for path, stack in stacks.items()}
        stored.check()
    only = {path: bits == GONE for path, bits in shown.items()}
    return Expiry(
        table.path,
        time,
        tuple(gone),
        {name: kept[name] for name in table if name in kept},
        sum(int(one.sum()) for one in only.values()),
        _sum(sizes, only),
        _sum(sizes, {path: bits == 0 for path, bits in shown.items()}),
        problems,
    )


def _sum(sizes: Mapping[str, npt.NDArray[np.int64]], chosen: Mapping[str, npt.NDArray[np.bool_]]) -> int:
    return sum(int(sizes[path][one].sum()) for path, one in chosen.items())


def _back(head: str, table: VersionTable) -> Iterator[str]:
    """A version and those before it, by first parents."""
    at: str | None = head
    seen = set[str]()
    while at is not None and at in table and at not in seen:
        seen.add(at)
        yield at
        at = table[at].parent

"""`log`: the versions of a file, oldest first, with what each of them changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hyperslab.archive.views import display_html
from hyperslab.progress import Progress
from hyperslab.quantities import UNKNOWN, nbytes_text
from hyperslab.versions.inspect.chunk_maps import ChunkMaps, VersionMap
from hyperslab.versions.inspect.chunk_stack import chunk_stacks
from hyperslab.versions.inspect.diff import Change, Side, Stacks, Status, compared
from hyperslab.versions.inspect.stats import Tally, VersionSize, with_parents
from hyperslab.versions.inspect.stored_bytes import StoredBytes
from hyperslab.versions.layout.table import Version, VersionTable


@dataclass(frozen=True)
class ArrayChange:
    """What a version changed in an array; `chunk_count` is None if mappings are damaged."""

    path: str
    status: Status
    chunk_count: int | None  # chunks that differ
    shape: Change
    attributes: tuple[str, ...]  # the names of those that differ


@dataclass(frozen=True)
class LogEntry:
    """A version, and what it changed in its parent; without a parent everything was added."""

    version: Version
    is_current: bool
    attributes: Mapping[str, Any]  # those that users gave it
    size: VersionSize
    changes: tuple[ArrayChange, ...]

    @property
    def name(self) -> str:
        """The name of the version."""
        return self.version.name


class VersionLog(list[LogEntry]):
    """The versions of a file, oldest first: a list that notebooks draw."""

    def _repr_html_(self) -> str:
        cells = (
            (
                f"{one.name} *" if one.is_current else one.name,
                one.version.parent or UNKNOWN,
                f"{one.version.time:%Y-%m-%d %H:%M:%S}",
                nbytes_text(one.size.nbytes),
                nbytes_text(one.size.new_nbytes),
                ", ".join(f"{change.status} {change.path}" for change in one.changes),
            )
            for one in self
        )
        titles = ("version", "parent", "time (UTC)", "size", "new chunks", "changes")
        return display_html.rows("hyperslab.VersionLog", f"{len(self)} versions", titles, cells, [])


def log(path: str, table: VersionTable, progress: Progress | None = None) -> VersionLog:
    """The versions of a file, oldest first; see `VersionedFile.log`.

    Raises
    ------
    FileChanged
        Another file replaced this one meanwhile.
    """
    entries = VersionLog()
    with StoredBytes(path) as stored:
        _add_entries(path, table, entries, progress or (lambda *_: None))
        stored.check()
    return entries


def _add_entries(path: str, table: VersionTable, entries: list[LogEntry], progress: Progress) -> None:
    tally, unread = Tally(chunk_stacks(path)[0]), Stacks(path, ())
    for shown, parent in with_parents(ChunkMaps(path), table):
        differences = compared(parent or VersionMap("", {}), shown, lambda one: Side(one, unread))
        changes = (
            ArrayChange(array.path, array.status, array.chunk_count, array.shape, tuple(array.attributes))
            for array in differences.arrays.values()
        )
        size = tally.count(shown, parent)
        version = table[shown.name]
        entries.append(LogEntry(version, version.name == table.current, shown.attributes, size, tuple(changes)))
        progress(shown.name, len(entries), len(table))

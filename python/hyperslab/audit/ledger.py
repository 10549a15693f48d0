"""`Ledger`: what was found in each of very many files, on disk, and its sums in memory. The worst files come first."""

from __future__ import annotations

import json
import tempfile
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from hyperslab.audit.faults import TITLES
from hyperslab.audit.file_audit import GRADES, FileAudit

MOST_NAMED = 3


@dataclass
class FaultGroup:
    """The files with the same fault."""

    kind: str
    file_count: int = 0
    nbytes: int = 0
    saved_seconds: float = 0.0
    worst: list[tuple[float, str]] = field(default_factory=list)  # the most seconds first, with the names
    said: str = ""  # of the worst
    commands: tuple[str, ...] = ()  # that remedy the worst

    @property
    def title(self) -> str:
        """What these files are."""
        return TITLES[self.kind]

    def add(self, audit: FileAudit, said: str, saved_seconds: float) -> None:
        """One more file."""
        self.file_count += 1
        self.nbytes += audit.nbytes or 0
        self.saved_seconds += saved_seconds
        if not self.worst or saved_seconds > self.worst[0][0]:
            self.said, self.commands = said, () if audit.remedy is None else audit.remedy.commands
        self.worst = sorted([*self.worst, (saved_seconds, audit.name)], key=lambda one: -one[0])[:MOST_NAMED]

    def to_dict(self) -> dict[str, object]:
        """A dictionary for JSON."""
        return {
            "kind": self.kind, "title": self.title, "file_count": self.file_count, "nbytes": self.nbytes,
            "saved_seconds": self.saved_seconds, "worst": [name for _, name in self.worst], "said": self.said,
            "commands": list(self.commands),
        }  # fmt: skip


@dataclass
class Sums:
    """What all files have together."""

    file_count: int = 0
    nbytes: int = 0
    array_count: int = 0
    stored_chunk_count: int = 0
    missing_chunk_count: int = 0
    open_request_count: int = 0
    open_nbytes: int = 0
    open_seconds: float = 0.0
    seconds: float = 0.0
    local_seconds: float | None = None
    saved_seconds: float = 0.0
    remedy_seconds: float = 0.0
    unmet_count: int = 0
    unreadable_count: int = 0
    grades: dict[str, int] = field(default_factory=lambda: dict.fromkeys(GRADES, 0))
    groups: dict[str, FaultGroup] = field(default_factory=dict)

    def add(self, audit: FileAudit) -> None:
        """One more file."""
        self.file_count += 1
        self.nbytes += audit.nbytes or 0
        self.array_count += audit.array_count
        self.stored_chunk_count += audit.stored_chunk_count
        self.missing_chunk_count += audit.missing_chunk_count
        self.open_request_count += audit.request_count or 0
        self.open_nbytes += audit.fetched_nbytes or 0
        self.open_seconds += audit.open_seconds or 0.0
        self.seconds += audit.seconds or 0.0
        self.saved_seconds += audit.saved_seconds
        self.remedy_seconds += 0.0 if audit.remedy is None else audit.remedy.seconds
        self.unmet_count += bool(audit.unmet)
        self.unreadable_count += audit.grade == "unreadable"
        self.grades[audit.grade] += 1
        if audit.local_seconds is not None:
            self.local_seconds = (self.local_seconds or 0.0) + audit.local_seconds
        for fault in audit.faults:
            group = self.groups.setdefault(fault.kind, FaultGroup(fault.kind))
            group.add(audit, fault.said, fault.saved_seconds)

    def worst_groups(self) -> list[FaultGroup]:
        """The groups whose remedy saves most come first; of equal ones, the larger group."""
        return sorted(self.groups.values(), key=lambda group: (-group.saved_seconds, -group.file_count))

    def to_dict(self) -> dict[str, object]:
        """A dictionary for JSON."""
        made = {name: value for name, value in vars(self).items() if name != "groups"}
        return {**made, "groups": [group.to_dict() for group in self.worst_groups()]}


class Ledger:
    """Takes one audit after the other; of a million, it keeps 16 bytes each in memory. Close it, or use `with`."""

    def __init__(self) -> None:
        self.sums: Sums = Sums()
        self._file = tempfile.TemporaryFile(prefix="hyperslab-audit-")  # noqa: SIM115 -- `close` ends it
        self._offsets, self._ranks = array("q"), array("d")

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, audit: FileAudit) -> None:
        """Keep what was found in a file."""
        self.sums.add(audit)
        self._offsets.append(self._file.tell())
        self._ranks.append(audit.rank)
        self._file.write(json.dumps(audit.to_dict(), ensure_ascii=True).encode() + b"\n")

    def worst_first(self) -> Iterator[FileAudit]:
        """Every file, the worst first; equals in the order in which they came."""
        end = self._file.tell()
        ranks = np.frombuffer(self._ranks, np.float64) if self._ranks else np.empty(0)
        try:
            for place in np.argsort(-ranks, kind="stable"):
                self._file.seek(self._offsets[place])
                yield FileAudit.from_dict(json.loads(self._file.readline()))
        finally:
            self._file.seek(end)

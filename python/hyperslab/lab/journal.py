"""Journals: finished records, a line of JSON each, on the device before the next thing starts. A kill loses nothing."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

R = TypeVar("R")


class Journal(Generic[R]):
    """Every record of a run, by what it is of: in memory, and a line each in a file. A context: it closes the file.

    Args:
        path: The file; what it holds already is a part of the journal.
        read: A record from what its line holds.
        write: What a record's line holds.
        key: What a record is of.
        header: What the first line of a new file says before any record; None where files have no such line.
    """

    def __init__(
        self,
        path: Path,
        read: Callable[[dict[str, Any]], R],
        write: Callable[[R], dict[str, Any]],
        key: Callable[[R], Hashable],
        header: Mapping[str, Any] | None = None,
    ) -> None:
        self._write, self._key = write, key
        self._records: dict[Hashable, list[R]] = defaultdict(list)
        lines = load_lines(path)
        for line in lines[0 if header is None else 1 :]:
            self._keep(read(line))
        _drop_torn_line(path)
        self._stream = open(path, "a", encoding="utf-8")  # noqa: SIM115 - it lives as long as the journal
        if header is not None and not lines:
            self._write_line(header)

    def append(self, record: R) -> None:
        """Keep a record."""
        self._write_line(self._write(record))
        self._keep(record)

    def of(self, key: Hashable) -> list[R]:
        """All records of one thing, oldest first."""
        return self._records.get(key, [])

    def __len__(self) -> int:
        return sum(map(len, self._records.values()))

    def __enter__(self) -> Journal[R]:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def _keep(self, record: R) -> None:
        self._records[self._key(record)].append(record)

    def _write_line(self, said: Mapping[str, Any]) -> None:
        self._stream.write(json.dumps(said) + "\n")
        self._stream.flush()
        os.fdatasync(self._stream.fileno())


def load_lines(path: Path) -> list[dict[str, Any]]:
    """What a journal holds, nothing if there is none; a torn last line, left by a kill, is not one of its lines."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1] if line]


def _drop_torn_line(path: Path) -> None:
    """A kill can leave half a last line; cut it so that the next record starts on a line of its own."""
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)

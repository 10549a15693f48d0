"""Journals of finished records. Each record is one line of JSON, on the device before the next trial starts."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from hyperslab.regular_files import read_regular

R = TypeVar("R")


class Journal(Generic[R]):
    """The records of a run, in memory and as lines of a file. Use it as a context: leaving it closes the file.

    Parameters
    ----------
    path : Path
        The file. Records that it already holds are part of the journal.
    read : Callable[[dict[str, Any]], R]
        Converts a line to a record.
    write : Callable[[R], dict[str, Any]]
        Converts a record to a line.
    key : Callable[[R], Hashable]
        What a record is about.
    header : Mapping[str, Any] | None
        The first line of a new file, before any record. None if there is no such line.
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
        self._stream = open(path, "a", encoding="utf-8")  # noqa: SIM115 - the stream stays open as long as the journal
        if header is not None and not lines:
            self._write_line(header)

    def append(self, record: R) -> None:
        """Add a record."""
        self._write_line(self._write(record))
        self._keep(record)

    def of(self, key: Hashable) -> list[R]:
        """All records with this key, oldest first."""
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
    """The lines of a journal, or an empty list if it does not exist. A torn last line, left by a kill, is ignored."""
    if not path.exists():
        return []
    return [json.loads(line) for line in read_regular(path).split(b"\n")[:-1] if line]


def _drop_torn_line(path: Path) -> None:
    """Cut off half a last line, which a kill can leave, so that the next record starts on its own line."""
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)

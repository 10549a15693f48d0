"""The list of fingerprints as it is stored, one record a commit. Reading needs no h5py; `Fingerprints` appends."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hyperslab.errors import DamagedFile

LOG = "_version_fingerprints"
MOST_RECORD_NBYTES = 1 << 30  # of one decoded record
HEADER = struct.Struct("<II")
DAMAGED = (ValueError, KeyError, TypeError, AttributeError, IndexError, struct.error, zlib.error, DamagedFile)


class Mark(NamedTuple):
    """What tells a group or an array of a version from any other. `description` and `content` are zeros for a group."""

    is_array: bool
    description: bytes
    attributes: bytes
    content: bytes


Marks = dict[str, Mark]  # by path


@dataclass(frozen=True)
class Record:
    """A version as it was committed.

    `tables` holds the address of each array's hash table. Other programs that delete versions, or that store an array
    in another way, make new tables for the arrays that they change.
    """

    version: str
    parent: str
    timestamp: str
    attributes: bytes
    marks: Marks
    tables: Mapping[str, int] = field(default_factory=dict)

    def packed(self) -> dict[str, Any]:
        """The record as JSON objects."""
        marks = [self.marks[path] for path in sorted(self.marks)]
        return {
            "version": self.version,
            "parent": self.parent,
            "timestamp": self.timestamp,
            "attributes": self.attributes.hex(),
            "names": [f"{'a' if self.marks[path].is_array else 'g'}{path}" for path in sorted(self.marks)],
            "marks": base64.b64encode(b"".join(b"".join(mark[1:]) for mark in marks)).decode(),
            "tables": [self.tables.get(path, 0) for path in sorted(self.marks)],
        }

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Record:
        """Make a record from JSON objects."""
        stored = base64.b64decode(said["marks"])
        marks = {}
        for number, name in enumerate(said["names"]):
            one = stored[number * 16 : number * 16 + 16]
            marks[name[1:]] = Mark(name[0] == "a", one[:4], one[4:8], one[8:])
        tables = {path: int(address) for path, address in zip(marks, said["tables"], strict=True) if address}
        attributes = bytes.fromhex(said["attributes"])
        return cls(said["version"], said["parent"], said["timestamp"], attributes, marks, tables)


@dataclass
class Recorded:
    """All that a log says: the versions that exist, those that ever existed, and the last current version."""

    versions: dict[str, Record] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)  # of all versions that ever existed
    numbers: dict[str, int] = field(default_factory=dict)  # of the last record of each of these
    current: str | None = None
    problem: str | None = None
    _count: int = 0

    @classmethod
    def of(cls, stored: bytes) -> Recorded:
        """Read the bytes of a log."""
        recorded = cls()
        try:
            for said in _records(stored):
                recorded._add(said)
        except DAMAGED as error:
            recorded.problem = f"the list of fingerprints is damaged: {error}"
        return recorded

    def _add(self, said: Mapping[str, Any]) -> None:
        if "version" in said:
            record = Record.of(said)
            self.versions[record.version] = record
            self.parents[record.version] = record.parent
            self._count += 1
            self.numbers[record.version] = self._count
        for name in said.get("deleted", ()):
            self.versions.pop(name, None)
        self.current = said.get("current", self.current)

    def came_again(self, name: str, than: str) -> bool:
        """Whether a version was recorded after one that was made from it: other software deleted it, which gave that
        one another parent, and a push or a bundle brought it back.
        """
        return self.numbers.get(name, 0) > self.numbers.get(than, 0)


def _records(stored: bytes) -> Iterator[dict[str, Any]]:
    for at, length in record_positions(stored):
        yield record_body(stored, at, length)


def record_positions(stored: bytes) -> Iterator[tuple[int, int]]:
    """The position and the length of each record."""
    at = 0
    while at < len(stored):
        length, _ = HEADER.unpack_from(stored, at)
        if not length and not any(stored[at:]):
            return  # left by a commit through another h5py that was cut short
        yield at, length
        at += HEADER.size + length


def record_body(stored: bytes, at: int, length: int) -> dict[str, Any]:
    """What a record says.

    Raises
    ------
    ValueError
        The record is not as it was written.
    """
    body = stored[at + HEADER.size : at + HEADER.size + length]
    if len(body) != length or zlib.crc32(body) != HEADER.unpack_from(stored, at)[1]:
        raise ValueError(f"the record at {at} is not as it was written")
    said = json.loads(zlib.decompressobj().decompress(body, MOST_RECORD_NBYTES))
    if not isinstance(said, dict):
        raise TypeError(f"the record at {at} is not a JSON object")
    return said


def packed(said: Mapping[str, Any]) -> bytes:
    """A record as it is stored."""
    body = zlib.compress(json.dumps(said, separators=(",", ":")).encode(), 1)
    return HEADER.pack(len(body), zlib.crc32(body)) + body

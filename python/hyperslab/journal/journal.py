"""The journal of a commit: the bytes that it overwrites, old and new, and evidence that it belongs to this file.

A journal lies beside its file. People move, copy and change files, so a journal may lie beside the wrong one. We only
trust it if the file has the length that the commit gave it, every sector that the commit overwrites holds the old
bytes, the new bytes or a part of each, and samples of the appended bytes have the recorded checksums. Otherwise we
change neither the file nor the journal.
"""

from __future__ import annotations

import os
import stat
import struct
import zlib
from bisect import bisect
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import StaleJournal

SECTOR_NBYTES = 512  # disks write a sector completely or not at all
FAMILY = b"HSLABJ"
MAGIC = FAMILY + b"02"  # every sector of a journal begins with this
EARLIER_MAGIC = FAMILY + b"01"
HELD_NBYTES = SECTOR_NBYTES - len(MAGIC)
# The length of the body, the length of the file before and after the commit, the checksum of the body including the
# padding of its last sector, and the checksum of the header up to here.
HEADER = struct.Struct("<QQQII")
PIECE = struct.Struct("<BQI")  # kind, offset, length
OLD, NEW, BARRIER, SAMPLE = range(4)
CHECKSUM = struct.Struct("<I")
SAMPLE_NBYTES = 4096
MOST_SAMPLES = 16
MOST_STATES = 8
BLOCK_NBYTES = 1 << 20
MOST_HOLE_NBYTES = 1 << 26  # zeros at the start of a file that may still be a journal

Piece = tuple[int, bytes]
Sectors = npt.NDArray[np.uint8]
Step = Piece | None  # None is a barrier: everything before it must be on disk before anything after it is written


class System(Protocol):
    """The calls that reach the disk. Tests replace them."""

    def open(self, path: str, flags: int, mode: int, /) -> int: ...  # noqa: D102
    def pwrite(self, descriptor: int, data: Any, offset: int, /) -> int: ...  # noqa: D102
    def ftruncate(self, descriptor: int, length: int, /) -> None: ...  # noqa: D102
    def fdatasync(self, descriptor: int, /) -> None: ...  # noqa: D102
    def fsync(self, descriptor: int, /) -> None: ...  # noqa: D102
    def unlink(self, path: str, /) -> None: ...  # noqa: D102
    def rename(self, path: str, to: str, /) -> None: ...  # noqa: D102


def journal_path(path: str) -> str:
    """The path of the journal of a file, beside the file itself, not beside a link to it."""
    return f"{os.path.realpath(path)}.journal"


class Journal(NamedTuple):
    """What a commit changes in a file.

    `old` holds the bytes that the commit overwrites. `steps` overwrite them, in this order. `samples` are the offset,
    length and checksum of some of the appended bytes.
    """

    before_nbytes: int
    after_nbytes: int
    old: list[Piece]
    steps: list[Step]
    samples: list[tuple[int, int, int]]

    def packed(self) -> bytes:
        """The journal as it is stored."""
        parts = []
        for offset, data in self.old:
            parts += [PIECE.pack(OLD, offset, len(data)), data]
        for step in self.steps:
            parts += [PIECE.pack(BARRIER, 0, 0)] if step is None else [PIECE.pack(NEW, step[0], len(step[1])), step[1]]
        for offset, nbytes, checksum in self.samples:
            parts += [PIECE.pack(SAMPLE, offset, nbytes), CHECKSUM.pack(checksum)]
        body = b"".join(parts)
        sector_count = ceil_div(HEADER.size + len(body), HELD_NBYTES)
        filled = body.ljust(sector_count * HELD_NBYTES - HEADER.size, b"\0")
        head = HEADER.pack(len(body), self.before_nbytes, self.after_nbytes, zlib.crc32(filled), 0)[:-4]
        whole = head + CHECKSUM.pack(zlib.crc32(head)) + filled
        sectors = np.zeros((sector_count, SECTOR_NBYTES), np.uint8)
        sectors[:, : len(MAGIC)] = np.frombuffer(MAGIC, np.uint8)
        sectors[:, len(MAGIC) :] = np.frombuffer(whole, np.uint8).reshape(sector_count, HELD_NBYTES)
        return sectors.tobytes()

    @classmethod
    def unpacked(cls, whole: bytes) -> Journal | None:
        """Parse a stored journal, without the magic of its sectors; None if it is incomplete.

        Raises
        ------
        ValueError
            A checksum is wrong, or the journal contradicts itself.
        """
        length, before, after, checksum, of_head = HEADER.unpack_from(whole)
        if zlib.crc32(whole[: HEADER.size - CHECKSUM.size]) != of_head:
            raise ValueError("the checksum of the header is wrong")
        if len(whole) < HEADER.size + length:
            return None
        if zlib.crc32(whole[HEADER.size :]) != checksum:
            raise ValueError("the checksum is wrong")
        body = whole[HEADER.size : HEADER.size + length]
        journal, at = cls(before, after, [], [], []), 0
        while at < length:
            kind, offset, count = PIECE.unpack_from(body, at)
            at += PIECE.size
            held = count if kind in (OLD, NEW) else CHECKSUM.size if kind == SAMPLE else 0
            data = body[at : at + held]
            at += held
            is_within = kind == BARRIER or offset + count <= after
            if at > length or not is_within or kind > SAMPLE or (kind == SAMPLE and count > BLOCK_NBYTES):
                raise ValueError("a piece does not fit")
            if kind == OLD:
                journal.old.append((offset, data))
            elif kind == NEW:
                journal.steps.append((offset, data))
            elif kind == SAMPLE:
                journal.samples.append((offset, count, *CHECKSUM.unpack(data)))
            else:
                journal.steps.append(None)
        journal.states()  # checks that each step overwrites recorded bytes
        return journal

    def states(self) -> list[tuple[int, list[bytes]]]:
        """For each piece, its offset, and its bytes before the commit and after each step.

        Raises
        ------
        ValueError
            A step overwrites bytes that the journal does not record.
        """
        pieces = sorted(self.old)
        starts = [offset for offset, _ in pieces]
        states_by_piece = [(offset, [data]) for offset, data in pieces]
        for step in self.steps:
            if step is None:
                continue
            piece = bisect(starts, step[0]) - 1
            if piece < 0 or step[0] + len(step[1]) > starts[piece] + len(pieces[piece][1]):
                raise ValueError("a step overwrites bytes that are not recorded")
            states, at = states_by_piece[piece][1], step[0] - starts[piece]
            states.append(states[-1][:at] + step[1] + states[-1][at + len(step[1]) :])
            if len(states) > MOST_STATES:
                raise ValueError("a piece has more steps than any commit makes")
        return states_by_piece


def samples(descriptor: int, start: int, stop: int) -> list[tuple[int, int, int]]:
    """Offset, length and checksum of samples of a file from `start` to `stop`; of all of it if it is short."""
    nbytes = stop - start
    if nbytes <= 0:
        return []
    count = min(MOST_SAMPLES, ceil_div(nbytes, SAMPLE_NBYTES))
    if count * SAMPLE_NBYTES >= nbytes:
        return [(start, nbytes, zlib.crc32(os.pread(descriptor, nbytes, start)))]
    starts = [start + (nbytes - SAMPLE_NBYTES) * number // (count - 1) for number in range(count)]
    return [(at, SAMPLE_NBYTES, zlib.crc32(os.pread(descriptor, SAMPLE_NBYTES, at))) for at in starts]


def contradiction(journal: Journal, descriptor: int) -> str | None:
    """Why a journal does not belong to the present content of a file; None if it does."""
    nbytes = os.fstat(descriptor).st_size
    if nbytes != journal.after_nbytes:
        return f"the file has {nbytes} bytes, but had {journal.after_nbytes} when the journal was written"
    for offset, states in journal.states():
        present = os.pread(descriptor, len(states[0]), offset)
        for start, stop in _sectors(offset, len(present)):
            if not _is_between(present[start:stop], [state[start:stop] for state in states]):
                return f"at offset {offset + start} the file has neither the old nor the new bytes of the journal"
    for offset, count, checksum in journal.samples:
        if zlib.crc32(os.pread(descriptor, count, offset)) != checksum:
            return f"the {count} bytes at offset {offset} are not those that the commit appended"
    return None


def is_done(journal: Journal, descriptor: int) -> bool:
    """Whether a commit has overwritten everything, in a file that the journal belongs to."""
    return all(os.pread(descriptor, len(states[-1]), offset) == states[-1] for offset, states in journal.states())


def _sectors(offset: int, nbytes: int) -> Iterator[tuple[int, int]]:
    """Split a piece at sector boundaries: yield the start and stop of each part."""
    start = 0
    while start < nbytes:
        stop = min(nbytes, start + SECTOR_NBYTES - (offset + start) % SECTOR_NBYTES)
        yield start, stop
        start = stop


def _is_between(present: bytes, states: list[bytes]) -> bool:
    """Whether bytes are one of these states, or begin as one and end as another, as after a kill during a write."""
    if present in states:
        return True
    same = np.frombuffer(present, np.uint8) == np.array([np.frombuffer(state, np.uint8) for state in states])
    from_start = np.logical_and.accumulate(same, axis=1).sum(axis=1).max()
    to_end = np.logical_and.accumulate(same[:, ::-1], axis=1).sum(axis=1).max()
    return bool(from_start + to_end >= len(present))


class Torn(NamedTuple):
    """An incomplete journal. Its commit had not begun to overwrite anything."""


class Foreign(NamedTuple):
    """Something with the name of the journal that is not a journal."""

    why: str


def found_journal(path: str) -> Journal | Torn | Foreign | None:
    """Find the journal beside a file; None if there is none.

    Raises
    ------
    StaleJournal
        There is a journal, but it cannot be read.
    """
    name = journal_path(path)
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        if os.path.islink(name):  # noqa: PTH114
            return Foreign("it is a link")
        raise StaleJournal(f"{name} cannot be read ({error.strerror}), and {path} may need it: {_REMEDY}") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return Foreign("it is not a regular file")
        with open(descriptor, "rb", closefd=False) as stream:
            first = stream.read(BLOCK_NBYTES)
            if first.startswith(EARLIER_MAGIC):
                return _earlier(path, first + stream.read())
            return _read(path, first, stream)
    finally:
        os.close(descriptor)


def _read(path: str, block: bytes, rest: BinaryIO) -> Journal | Torn | Foreign:
    """Read a journal; some of its sectors may never have been written."""
    parts: list[bytes] = []
    has_magic, is_torn, count = block.startswith(FAMILY), False, 0
    while block:
        written, others = _sorted_out(block)
        has_magic |= len(written) > 0
        if others.any() and not _is_cut_off(others, len(block)):
            if has_magic:
                raise _damaged(path)
            return Foreign("it is not a journal of hyperslab")
        is_torn |= len(others) > 0 or len(block) % SECTOR_NBYTES > 0
        parts.append(b"" if is_torn else written[:, len(MAGIC) :].tobytes())
        count += len(block)
        if count > MOST_HOLE_NBYTES and not has_magic:
            return Foreign("it is not a journal of hyperslab")
        block = rest.read(BLOCK_NBYTES)
    whole = b"".join(parts)
    if is_torn or not whole:
        return Torn()
    try:
        return Journal.unpacked(whole) or Torn()
    except (struct.error, ValueError):
        raise _damaged(path) from None


def _sorted_out(block: bytes) -> tuple[Sectors, Sectors]:
    """Split a block into the sectors with the magic, and all others."""
    whole = block.ljust(ceil_div(len(block), SECTOR_NBYTES) * SECTOR_NBYTES, b"\0")
    sectors = np.frombuffer(whole, np.uint8).reshape(-1, SECTOR_NBYTES)
    is_written = (sectors[:, : len(MAGIC)] == np.frombuffer(MAGIC, np.uint8)).all(axis=1)
    return sectors[is_written], sectors[~is_written]


def _is_cut_off(others: Sectors, block_nbytes: int) -> bool:
    """Whether all other sectors are zeros, except the last, which a kill cut off within its magic."""
    count = block_nbytes % SECTOR_NBYTES
    if not 0 < count < len(MAGIC) or others[:-1].any():
        return False
    return others[-1, :count].tobytes() == MAGIC[:count]


def _damaged(path: str) -> StaleJournal:
    return StaleJournal(
        f"{journal_path(path)} is the journal of a commit, but it is damaged or of a later hyperslab: {_REMEDY}"
    )


_EARLIER_HEADER = struct.Struct("<8sQQQI")
_EARLIER_PIECE = struct.Struct("<QI")


def _earlier(path: str, stored: bytes) -> Journal | Torn:
    """Read a journal of the first format. Without the old bytes, only a complete commit can be verified."""
    if len(stored) < _EARLIER_HEADER.size:
        return Torn()
    _, length, before, after, checksum = _EARLIER_HEADER.unpack_from(stored)
    body = stored[_EARLIER_HEADER.size :][:length]
    if len(body) != length or zlib.crc32(body, zlib.crc32(stored[: _EARLIER_HEADER.size - 4])) != checksum:
        return Torn()
    pieces, at = [], 0
    while at < length:
        offset, count = _EARLIER_PIECE.unpack_from(body, at)
        at += _EARLIER_PIECE.size + count
        pieces.append((offset, body[at - count : at]))
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            journal = Journal(before, after, sorted(pieces), [], [])
            if contradiction(journal, descriptor) is None:
                return journal
        finally:
            os.close(descriptor)
    raise StaleJournal(
        f"{journal_path(path)} is of an earlier hyperslab, so it cannot prove that it belongs to {path}. Nothing was "
        "changed. If you have neither moved nor changed the file since, open it once with the hyperslab that wrote it; "
        "otherwise move the journal away: the file has all versions but the last"
    )


_REMEDY = (
    "nothing was changed. If the file is as you want it, move the journal away; otherwise put back the file that the "
    "journal belongs to, or restore both from the same backup"
)


def stale(path: str, why: str) -> StaleJournal:
    """The error for a journal that does not belong to the file that it lies beside."""
    return StaleJournal(
        f"{journal_path(path)} is the journal of an interrupted commit, but does not belong to {path} as it is now "
        f"({why}): another file has taken its name, or the file was changed since. {_REMEDY[0].upper()}{_REMEDY[1:]}"
    )


def in_the_way(path: str, found: Foreign) -> StaleJournal:
    """The error for a file that has the name of a journal but is not one."""
    return StaleJournal(
        f"{journal_path(path)} has the name that the journal of {path} needs, but {found.why}: move it away; nothing"
        " was changed"
    )


def write_journal(path: str, journal: Journal, system: System) -> None:
    """Write a journal, and sync it and its folder to disk.

    Raises
    ------
    StaleJournal
        A file with the name of the journal exists.
    """
    try:
        descriptor = system.open(journal_path(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        raise in_the_way(path, Foreign("it was not there before")) from None
    whole = memoryview(journal.packed())
    try:
        done = 0
        while done < len(whole):
            done += system.pwrite(descriptor, whole[done:], done)
        system.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_folder(path, system)


def apply(descriptor: int, journal: Journal, system: System) -> None:
    """Overwrite the file as the journal says, and sync it to disk. You can repeat this any number of times."""
    for step in journal.steps:
        if step is None:
            system.fdatasync(descriptor)
            continue
        offset, data = step
        done = 0
        while done < len(data):
            done += system.pwrite(descriptor, data[done:], offset + done)
    system.fdatasync(descriptor)


def remove_journal(path: str, system: System) -> None:
    """Remove the journal at the end of a commit, unless somebody has removed it."""
    with suppress(FileNotFoundError):
        system.unlink(journal_path(path))
    sync_folder(path, system)


def recover(path: str, descriptor: int, system: System = os) -> None:
    """Finish an interrupted commit; if it had not begun to overwrite, discard it.

    Raises
    ------
    StaleJournal
        The journal beside the file does not belong to it. Nothing was changed.
    """
    journal = found_journal(path)
    if journal is None:
        return
    if isinstance(journal, Foreign):
        raise in_the_way(path, journal)
    if isinstance(journal, Journal):
        why = contradiction(journal, descriptor)
        if why is not None:
            raise stale(path, why)
        apply(descriptor, journal, system)
    remove_journal(path, system)


def sync_folder(path: str, system: System) -> None:
    """Sync the folder of a file to disk, so that new names and removals survive a power cut."""
    folder = os.open(Path(path).parent, os.O_RDONLY)
    try:
        system.fsync(folder)
    finally:
        os.close(folder)

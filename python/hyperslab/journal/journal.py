"""The journal of a commit: what it overwrites, what was there before, and the proof that it is of this file.

A journal lies beside its file, and files are moved, copied, and written to by others. So it is believed only where the
file says the same: it is as long as the commit made it, every sector that the commit overwrites holds what it held
before, what it will hold, or a part of each, and samples of what was appended have their checksums. If not, neither is
touched.
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

SECTOR_NBYTES = 512  # what disks write whole, or not at all
FAMILY = b"HSLABJ"
MAGIC = FAMILY + b"02"  # each sector of a journal begins with it
EARLIER_MAGIC = FAMILY + b"01"
HELD_NBYTES = SECTOR_NBYTES - len(MAGIC)
# Length of the body, length of the file before and after, checksum of the body with what fills its last sector, and of
# all before.
HEADER = struct.Struct("<QQQII")
PIECE = struct.Struct("<BQI")  # kind, offset, length
OLD, NEW, BARRIER, SAMPLE = range(4)
CHECKSUM = struct.Struct("<I")
SAMPLE_NBYTES = 4096
MOST_SAMPLES = 16
MOST_STATES = 8
BLOCK_NBYTES = 1 << 20
MOST_HOLE_NBYTES = 1 << 26  # of a journal of which nothing reached the disk

Piece = tuple[int, bytes]
Sectors = npt.NDArray[np.uint8]
Step = Piece | None  # None: all before it is on the disk before all behind it is written


class System(Protocol):
    """The calls that reach the disk. Tests put others in their place."""

    def open(self, path: str, flags: int, mode: int, /) -> int: ...  # noqa: D102
    def pwrite(self, descriptor: int, data: Any, offset: int, /) -> int: ...  # noqa: D102
    def ftruncate(self, descriptor: int, length: int, /) -> None: ...  # noqa: D102
    def fdatasync(self, descriptor: int, /) -> None: ...  # noqa: D102
    def fsync(self, descriptor: int, /) -> None: ...  # noqa: D102
    def unlink(self, path: str, /) -> None: ...  # noqa: D102
    def rename(self, path: str, to: str, /) -> None: ...  # noqa: D102


def journal_path(path: str) -> str:
    """Where the journal of a file is: beside the file itself, not beside a link to it."""
    return f"{os.path.realpath(path)}.journal"


class Journal(NamedTuple):
    """What a commit does to a file.

    `old` is what the bytes are that it overwrites; `steps` overwrite them, one after the other; `samples` are the
    offset, length and checksum of some of what was appended.
    """

    before_nbytes: int
    after_nbytes: int
    old: list[Piece]
    steps: list[Step]
    samples: list[tuple[int, int, int]]

    def packed(self) -> bytes:
        """As it is stored."""
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
        """What was packed, without the sectors' own beginnings; None if it ends too early.

        Raises:
            ValueError: A checksum is wrong, or what it says contradicts itself.
        """
        length, before, after, checksum, of_head = HEADER.unpack_from(whole)
        if zlib.crc32(whole[: HEADER.size - CHECKSUM.size]) != of_head:
            raise ValueError("the checksum of the header is wrong")
        if len(whole) < HEADER.size + length:
            return None
        if zlib.crc32(whole[HEADER.size :]) != checksum:
            raise ValueError("the checksum is wrong")
        body = whole[HEADER.size : HEADER.size + length]
        found, at = cls(before, after, [], [], []), 0
        while at < length:
            kind, offset, count = PIECE.unpack_from(body, at)
            at += PIECE.size
            held = count if kind in (OLD, NEW) else CHECKSUM.size if kind == SAMPLE else 0
            data = body[at : at + held]
            at += held
            is_within = kind == BARRIER or offset + count <= after
            if at > length or not is_within or kind > SAMPLE or (kind == SAMPLE and count > BLOCK_NBYTES):
                raise ValueError("a piece that does not fit")
            if kind == OLD:
                found.old.append((offset, data))
            elif kind == NEW:
                found.steps.append((offset, data))
            elif kind == SAMPLE:
                found.samples.append((offset, count, *CHECKSUM.unpack(data)))
            else:
                found.steps.append(None)
        found.states()  # which checks that each step overwrites what is known
        return found

    def states(self) -> list[tuple[int, list[bytes]]]:
        """What the bytes of each piece are before the commit, and after each of its steps; with the piece's offset.

        Raises:
            ValueError: A step overwrites what is not said to have been there.
        """
        pieces = sorted(self.old)
        starts = [offset for offset, _ in pieces]
        found = [(offset, [data]) for offset, data in pieces]
        for step in self.steps:
            if step is None:
                continue
            piece = bisect(starts, step[0]) - 1
            if piece < 0 or step[0] + len(step[1]) > starts[piece] + len(pieces[piece][1]):
                raise ValueError("a step that overwrites what is not known")
            states, at = found[piece][1], step[0] - starts[piece]
            states.append(states[-1][:at] + step[1] + states[-1][at + len(step[1]) :])
            if len(states) > MOST_STATES:
                raise ValueError("more steps for one piece than any commit has")
        return found


def samples(descriptor: int, start: int, stop: int) -> list[tuple[int, int, int]]:
    """Offset, length and checksum of some pieces of a file from `start` to `stop`; of all of it, if it is short."""
    nbytes = stop - start
    if nbytes <= 0:
        return []
    count = min(MOST_SAMPLES, ceil_div(nbytes, SAMPLE_NBYTES))
    if count * SAMPLE_NBYTES >= nbytes:
        return [(start, nbytes, zlib.crc32(os.pread(descriptor, nbytes, start)))]
    starts = [start + (nbytes - SAMPLE_NBYTES) * number // (count - 1) for number in range(count)]
    return [(at, SAMPLE_NBYTES, zlib.crc32(os.pread(descriptor, SAMPLE_NBYTES, at))) for at in starts]


def contradiction(journal: Journal, descriptor: int) -> str | None:
    """What proves that a journal is not of a file as it is now; None if it is."""
    nbytes = os.fstat(descriptor).st_size
    if nbytes != journal.after_nbytes:
        return f"the file has {nbytes} bytes, {journal.after_nbytes} when the journal was written"
    for offset, states in journal.states():
        found = os.pread(descriptor, len(states[0]), offset)
        for start, stop in _sectors(offset, len(found)):
            if not _is_between(found[start:stop], [state[start:stop] for state in states]):
                return f"at offset {offset + start} of the file is neither what was there before nor what was to be"
    for offset, count, checksum in journal.samples:
        if zlib.crc32(os.pread(descriptor, count, offset)) != checksum:
            return f"the {count} bytes from offset {offset} on are not what was appended"
    return None


def is_done(journal: Journal, descriptor: int) -> bool:
    """Whether all that a commit overwrites was overwritten, in a file that the journal is of."""
    return all(os.pread(descriptor, len(states[-1]), offset) == states[-1] for offset, states in journal.states())


def _sectors(offset: int, nbytes: int) -> Iterator[tuple[int, int]]:
    """Start and stop of the parts of a piece that lie in one sector each."""
    start = 0
    while start < nbytes:
        stop = min(nbytes, start + SECTOR_NBYTES - (offset + start) % SECTOR_NBYTES)
        yield start, stop
        start = stop


def _is_between(found: bytes, states: list[bytes]) -> bool:
    """Whether bytes are one of these, or begin as one and go on as another, as a kill in mid-write leaves them."""
    if found in states:
        return True
    same = np.frombuffer(found, np.uint8) == np.array([np.frombuffer(state, np.uint8) for state in states])
    from_start = np.logical_and.accumulate(same, axis=1).sum(axis=1).max()
    to_end = np.logical_and.accumulate(same[:, ::-1], axis=1).sum(axis=1).max()
    return bool(from_start + to_end >= len(found))


class Torn(NamedTuple):
    """A journal that was not whole when its writer ended: nothing had been overwritten."""


class Foreign(NamedTuple):
    """What has a journal's name, but is none."""

    why: str


def found_journal(path: str) -> Journal | Torn | Foreign | None:
    """What lies beside a file; None if nothing does.

    Raises:
        StaleJournal: It is a journal, but one that cannot be read.
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
            return Foreign("it is no regular file")
        with open(descriptor, "rb", closefd=False) as stream:
            first = stream.read(BLOCK_NBYTES)
            if first.startswith(EARLIER_MAGIC):
                return _earlier(path, first + stream.read())
            return _read(path, first, stream)
    finally:
        os.close(descriptor)


def _read(path: str, block: bytes, rest: BinaryIO) -> Journal | Torn | Foreign:
    """What a journal says, whose sectors may not all have been written."""
    parts: list[bytes] = []
    has_magic, is_torn, count = block.startswith(FAMILY), False, 0
    while block:
        written, others = _sorted_out(block)
        has_magic |= len(written) > 0
        if others.any() and not _is_cut_off(others, len(block)):
            if has_magic:
                raise _damaged(path)
            return Foreign("it is no journal of hyperslab")
        is_torn |= len(others) > 0 or len(block) % SECTOR_NBYTES > 0
        parts.append(b"" if is_torn else written[:, len(MAGIC) :].tobytes())
        count += len(block)
        if count > MOST_HOLE_NBYTES and not has_magic:
            return Foreign("it is no journal of hyperslab")
        block = rest.read(BLOCK_NBYTES)
    whole = b"".join(parts)
    if is_torn or not whole:
        return Torn()
    try:
        return Journal.unpacked(whole) or Torn()
    except (struct.error, ValueError):
        raise _damaged(path) from None


def _sorted_out(block: bytes) -> tuple[Sectors, Sectors]:
    """The sectors that were written, and the others."""
    whole = block.ljust(ceil_div(len(block), SECTOR_NBYTES) * SECTOR_NBYTES, b"\0")
    sectors = np.frombuffer(whole, np.uint8).reshape(-1, SECTOR_NBYTES)
    is_written = (sectors[:, : len(MAGIC)] == np.frombuffer(MAGIC, np.uint8)).all(axis=1)
    return sectors[is_written], sectors[~is_written]


def _is_cut_off(others: Sectors, block_nbytes: int) -> bool:
    """Whether what is no written sector is nothing, but the last, which a kill cut off in its magic."""
    count = block_nbytes % SECTOR_NBYTES
    if not 0 < count < len(MAGIC) or others[:-1].any():
        return False
    return others[-1, :count].tobytes() == MAGIC[:count]


def _damaged(path: str) -> StaleJournal:
    return StaleJournal(
        f"{journal_path(path)} is the journal of a commit, but damaged, or of a later hyperslab: {_REMEDY}"
    )


_EARLIER_HEADER = struct.Struct("<8sQQQI")
_EARLIER_PIECE = struct.Struct("<QI")


def _earlier(path: str, stored: bytes) -> Journal | Torn:
    """A journal of the first format, which does not say what was there before: only if it is done can it be proved."""
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
            found = Journal(before, after, sorted(pieces), [], [])
            if contradiction(found, descriptor) is None:
                return found
        finally:
            os.close(descriptor)
    raise StaleJournal(
        f"{journal_path(path)} is of an earlier hyperslab, and cannot prove that it is of {path}. Nothing was changed. "
        "If nobody wrote to the file since, and it is where it was, open it once with the hyperslab that wrote it; "
        "else move the journal away: the file has all versions but the last"
    )


_REMEDY = (
    "nothing was changed. If the file is as you want it, move the journal away; else put back the file that it is of, "
    "or both from one copy"
)


def stale(path: str, why: str) -> StaleJournal:
    """What to say of a journal that is not of the file that it lies beside."""
    return StaleJournal(
        f"{journal_path(path)} is the journal of a commit that was cut short, but not of {path} as it is now ({why}): "
        f"another file has its name, or somebody wrote to it since. {_REMEDY[0].upper()}{_REMEDY[1:]}"
    )


def in_the_way(path: str, found: Foreign) -> StaleJournal:
    """What to say of a file that has the name of a journal."""
    return StaleJournal(
        f"{journal_path(path)} has the name that the journal of {path} needs, but {found.why}: move it away; nothing"
        " was changed"
    )


def write_journal(path: str, journal: Journal, system: System) -> None:
    """Write down what is to be overwritten, so that it lasts.

    Raises:
        StaleJournal: Something has its name.
    """
    try:
        descriptor = system.open(journal_path(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        raise in_the_way(path, Foreign("was not there before")) from None
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
    """Overwrite what a journal says, so that it lasts. May be done again and again."""
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
    """The commit is done."""
    system.unlink(journal_path(path))
    sync_folder(path, system)


def recover(path: str, descriptor: int, system: System = os) -> None:
    """Finish a commit that was cut short, or forget one that had not begun to overwrite.

    Raises:
        StaleJournal: What lies beside the file is not of it. Nothing was changed.
    """
    found = found_journal(path)
    if found is None:
        return
    if isinstance(found, Foreign):
        raise in_the_way(path, found)
    if isinstance(found, Journal):
        why = contradiction(found, descriptor)
        if why is not None:
            raise stale(path, why)
        apply(descriptor, found, system)
    remove_journal(path, system)


def sync_folder(path: str, system: System) -> None:
    """Make names in the folder of a file last."""
    folder = os.open(Path(path).parent, os.O_RDONLY)
    try:
        system.fsync(folder)
    finally:
        os.close(folder)

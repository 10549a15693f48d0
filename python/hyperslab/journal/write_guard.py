"""The write guard keeps the HDF5 library from writing to a file while a commit overwrites parts of it.

It is a message in the object header of the root group. Its flags forbid a library that does not know its type to open
the file for writing. Between commits its type is NIL, which every reader takes for empty space. While a commit
overwrites, its type is one that no library knows. Only one byte changes, and a power cut cannot tear a byte.

Only files of the earliest layout can have a guard: superblock of version 0 or 1, and object headers of version 1, which
have no checksums.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import MissingJournal
from hyperslab.journal.journal import SECTOR_NBYTES, Foreign, Journal, found_journal, journal_path

SUPERBLOCK = b"\x89HDF\r\n\x1a\n"
NIL, CONTINUATION, UNKNOWN = 0x00, 0x10, 0xFF  # types of messages
REFUSE_WRITERS = 0x08  # flag: fail if the type is unknown and the file is opened for writing
HEAD = struct.Struct("<HHB3x")  # of a message: type, length of its body, flags
PREFIX_NBYTES = 16  # of an object header
MARK = b"hslguard"
CONTINUATION_NBYTES = HEAD.size + 16
UNFINISHED = "a commit was interrupted while it overwrote parts of the file, and its journal is missing or incomplete"
MOST_BLOCKS = 64
MOST_MESSAGES = (1 << 16) - 4  # of a header that gets up to three more
MOST_BLOCK_NBYTES = 1 << 16
MOST_ADDRESS = 1 << 62  # beyond the largest file of any file system
UNDEFINED = (1 << 64) - 1
Reader = Callable[[int, int], bytes]


class Guard(NamedTuple):
    """The offset of the message's type, whether it refuses writers, and the offset of the root's object header."""

    offset: int
    is_set: bool
    root: int


class Message(NamedTuple):
    """One message of an object header: its offset, type, flags and body."""

    offset: int
    kind: int
    flags: int
    body: bytes


def is_plain(start: bytes) -> bool:
    """Whether a file with these first bytes has the earliest layout, with addresses and lengths of 8 bytes."""
    return start[:8] == SUPERBLOCK and start[8] < 2 and start[13:15] == b"\x08\x08"


def guard_of(read: Reader) -> Guard | None:
    """Find the guard of a file.

    Parameters
    ----------
    read : Reader
        Reads a number of bytes at an offset, with zeros beyond the end.

    Returns
    -------
    Guard | None
        The guard; None if the file has none.
    """
    start = read(0, SECTOR_NBYTES)
    root = _root(start)
    if root is None:
        return None
    for message in _messages(read, root):
        if message.body == MARK and message.flags == REFUSE_WRITERS and message.kind in (NIL, UNKNOWN):
            return Guard(message.offset, message.kind == UNKNOWN, root)
    return None


def addition(read: Reader, end: int) -> list[tuple[int, bytes]]:
    """The writes that add a guard to a file of this length: offsets with bytes. Empty if the file cannot have one.

    The first message of the root's header that is long enough moves to a new block at the end, together with the guard,
    and a continuation message takes its place. Of the old bytes, only the first sector changes, which also holds the
    length of the file, so a power cut leaves all of the change or nothing.
    """
    start = read(0, SECTOR_NBYTES)
    root = _root(start)
    if root is None or root + PREFIX_NBYTES > SECTOR_NBYTES:
        return []
    fields = 24 + 4 * start[8]  # base address, free space, end, driver information
    base, _, stored_end, driver = struct.unpack_from("<4Q", start, fields)
    version, count, block_nbytes = struct.unpack_from("<BxH4xI", start, root)
    if base or driver != UNDEFINED or stored_end > end or version != 1 or count > MOST_MESSAGES:
        return []
    at, stop = root + PREFIX_NBYTES, root + PREFIX_NBYTES + block_nbytes
    while True:
        if at + CONTINUATION_NBYTES + HEAD.size > SECTOR_NBYTES:
            return []
        _, length, _ = HEAD.unpack_from(start, at)
        spare = HEAD.size + length - CONTINUATION_NBYTES
        if length % 8 or at + HEAD.size + length > stop:
            return []
        if spare >= 0:
            break
        at += HEAD.size + length
    offset = ceil_div(end, 8) * 8
    block = read(at, HEAD.size + length) + HEAD.pack(NIL, len(MARK), REFUSE_WRITERS) + MARK
    changed = bytearray(start[root:at])
    struct.pack_into("<H", changed, 2, count + (3 if spare else 2))
    changed += HEAD.pack(CONTINUATION, 16, 0) + struct.pack("<QQ", offset, len(block))
    if spare:
        changed += HEAD.pack(NIL, spare - HEAD.size, 0)
    new_end = struct.pack("<Q", offset + len(block))
    return [(offset, block), (root, bytes(changed)), (fields + 16, new_end)]


def is_set(descriptor: int) -> bool:
    """Whether a file refuses writers. Between commits this means that one was interrupted and its journal is gone."""
    guard = guard_of(lambda offset, count: os.pread(descriptor, count, offset).ljust(count, b"\0"))
    return guard is not None and guard.is_set


def is_set_in(path: str) -> bool:
    """The same as `is_set`, for the file at a path."""
    with open(path, "rb", buffering=0) as file:
        return is_set(file.fileno())


@cache
def empty_file() -> bytes:
    """The content of a new HDF5 file with a guard."""
    import h5py

    stream = io.BytesIO()
    h5py.File(stream, "w", track_order=False).close()

    def read(offset: int, count: int) -> bytes:
        return stream.getvalue()[offset : offset + count].ljust(count, b"\0")

    for offset, data in addition(read, len(stream.getvalue())):
        stream.seek(offset)
        stream.write(data)
    return stream.getvalue()


def _root(start: bytes) -> int | None:
    """The offset of the root's object header, from the first sector."""
    if not is_plain(start):
        return None
    address: int = struct.unpack_from("<Q", start, 64 + 4 * start[8])[0]
    return address if 0 < address <= MOST_ADDRESS else None


def _messages(read: Reader, header: int) -> Iterator[Message]:
    """Yield the messages of an object header of version 1, as far as it can be read."""
    version, nbytes = struct.unpack("<B7xI4x", read(header, PREFIX_NBYTES))
    if version != 1:
        return
    blocks = [(header + PREFIX_NBYTES, nbytes)]
    for start, length in blocks:  # grows during the loop
        if length > MOST_BLOCK_NBYTES or start > MOST_ADDRESS:
            return
        block, at = read(start, length), 0
        while at + HEAD.size <= length:
            kind, count, flags = HEAD.unpack_from(block, at)
            body = block[at + HEAD.size : at + HEAD.size + count]
            if kind == CONTINUATION and len(body) >= 16 and len(blocks) < MOST_BLOCKS:
                blocks.append(struct.unpack_from("<QQ", body))
            yield Message(start + at, kind, flags, body)
            at += HEAD.size + count


def check_has_journal(path: str, descriptor: int) -> None:
    """Refuse a file whose guard is set but whose journal, which would clear it, is missing or incomplete.

    Raises
    ------
    MissingJournal
        It is such a file.
    """
    if is_set(descriptor) and not isinstance(found_journal(path), Journal | Foreign):
        raise MissingJournal(
            f"{path}: {UNFINISHED}. Put the journal back, as {journal_path(path)}, and open the file again. If it is "
            f"lost, `hyperslab versions repair {path} -o NEW` writes everything that is provably good to a new file. "
            "Until then you can only read the file. Nothing was changed"
        )

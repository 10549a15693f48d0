"""The write guard: what keeps HDF5's library from writing to a file while a commit overwrites parts of it.

It is a message in the object header of the root group. Its flags say that who does not know its type must not open
the file to write. Between commits its type is NIL, which is empty space to all readers; while a commit overwrites, its
type is one that no library knows. One byte is changed for that, which no power cut tears.

Files of the first layout have it: superblock of version 0 or 1, object headers of version 1, which have no checksums.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from hyperslab.chunk_grid import ceil_div
from hyperslab.journal.journal import SECTOR_NBYTES

SUPERBLOCK = b"\x89HDF\r\n\x1a\n"
NIL, CONTINUATION, UNKNOWN = 0x00, 0x10, 0xFF  # types of messages
REFUSE_WRITERS = 0x08  # a flag: fail if the type is not known and the file is opened to write
HEAD = struct.Struct("<HHB3x")  # of a message: type, length of its body, flags
PREFIX_NBYTES = 16  # of an object header
MARK = b"hslguard"
CONTINUATION_NBYTES = HEAD.size + 16
UNFINISHED = "a commit was cut short while it overwrote parts of the file, and its journal, or a part of it, is missing"
MOST_BLOCKS = 64
MOST_BLOCK_NBYTES = 1 << 16
MOST_ADDRESS = 1 << 62  # that a file system knows
UNDEFINED = (1 << 64) - 1
Reader = Callable[[int, int], bytes]


class Guard(NamedTuple):
    """Where the type of the message is, whether it refuses writers, and where the object header of the root is."""

    offset: int
    is_set: bool
    root: int


class Message(NamedTuple):
    """One message of an object header: where it is, its type, its flags and its body."""

    offset: int
    kind: int
    flags: int
    body: bytes


def is_plain(start: bytes) -> bool:
    """Whether a file that starts so is of the first layout, and its addresses and lengths have 8 bytes."""
    return start[:8] == SUPERBLOCK and start[8] < 2 and start[13:15] == b"\x08\x08"


def guard_of(read: Reader) -> Guard | None:
    """The guard of a file; None if it has none.

    Parameters
    ----------
    read : Reader
        Gives so many bytes from an offset on, zeros behind the end.
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
    """What to write, offset by offset, so that a file of this length has a guard. Nothing if that is not possible.

    The first message of the root's header that is long enough goes to a new block behind the end, with the guard; what
    leads there takes its place. Only the first sector is overwritten, which also says where the file ends: a power cut
    leaves all of it or nothing.
    """
    start = read(0, SECTOR_NBYTES)
    root = _root(start)
    if root is None or root + PREFIX_NBYTES > SECTOR_NBYTES:
        return []
    fields = 24 + 4 * start[8]  # base address, free space, end, driver information
    base, _, stored_end, driver = struct.unpack_from("<4Q", start, fields)
    version, count, block_nbytes = struct.unpack_from("<BxH4xI", start, root)
    if base or driver != UNDEFINED or stored_end > end or version != 1:
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
    """Whether a file refuses writers: between commits only if one was cut short, and its journal is gone."""
    guard = guard_of(lambda offset, count: os.pread(descriptor, count, offset).ljust(count, b"\0"))
    return guard is not None and guard.is_set


def is_set_in(path: str) -> bool:
    """The same of the file that has this name."""
    with open(path, "rb", buffering=0) as file:
        return is_set(file.fileno())


@cache
def empty_file() -> bytes:
    """A new HDF5 file, with a guard."""
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
    """Where the object header of the root is, by the first sector."""
    if not is_plain(start):
        return None
    address: int = struct.unpack_from("<Q", start, 64 + 4 * start[8])[0]
    return address if 0 < address <= MOST_ADDRESS else None


def _messages(read: Reader, header: int) -> Iterator[Message]:
    """All messages of an object header of version 1, as far as it can be read."""
    version, nbytes = struct.unpack("<B7xI4x", read(header, PREFIX_NBYTES))
    if version != 1:
        return
    blocks = [(header + PREFIX_NBYTES, nbytes)]
    for start, length in blocks:  # which grows
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

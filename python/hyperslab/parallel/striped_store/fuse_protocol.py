"""Linux's FUSE protocol, as far as a striped store needs it: messages on /dev/fuse, without any library.

The numbers and structures are those of linux/fuse.h, protocol 7.31, which newer kernels speak too.
"""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

LOOKUP, FORGET, GETATTR, SETATTR = 1, 2, 3, 4
MKNOD, MKDIR, UNLINK, RMDIR, RENAME, OPEN, READ, WRITE, STATFS, RELEASE = 8, 9, 10, 11, 12, 14, 15, 16, 17, 18
FSYNC, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, FSYNCDIR = 20, 25, 26, 27, 28, 29, 30
CREATE, INTERRUPT, DESTROY, BATCH_FORGET, RENAME2 = 35, 36, 38, 42, 45
WITHOUT_REPLY = (FORGET, INTERRUPT, BATCH_FORGET)

IN_HEADER = struct.Struct("<IIQQIII4x")  # length, operation, unique, node, user, group, process
OUT_HEADER = struct.Struct("<IiQ")
INIT_IN = struct.Struct("<IIIII")
INIT_OUT = struct.Struct("<IIIIHHIIHHII24x")
ATTRIBUTES = struct.Struct("<QQQQQQIIIIIIIIII")
ENTRY = struct.Struct("<QQQQII")
ATTRIBUTES_OUT = struct.Struct("<QII")
OPEN_OUT = struct.Struct("<QIi")
SETATTR_IN = struct.Struct("<IIQQ")  # the first fields: which ones are set, the handle, the size
READ_IN = struct.Struct("<QQIIQII")
WRITE_IN = READ_IN
WRITE_OUT = struct.Struct("<II")
NODE_IN = struct.Struct("<Q")
STATFS_OUT = struct.Struct("<QQQQQIIII24x")
ENTRY_IN_DIRECTORY = struct.Struct("<QQII")
MKDIR_IN_NBYTES, CREATE_IN_NBYTES, MKNOD_IN_NBYTES = 8, 16, 16
RENAME_IN_NBYTES, RENAME2_IN_NBYTES = 8, 16

MAJOR, MINOR = 7, 31
SET_SIZE = 1 << 3
# Reads and writes pass the page cache, so that the servers see each of them; several processes write at the same time.
OPEN_FLAGS = (1 << 0) | (1 << 6)
# Asynchronous reads, truncation at opening, large writes, several searches of a directory at once, large messages.
WANTED_FLAGS = (1 << 0) | (1 << 3) | (1 << 5) | (1 << 18) | (1 << 22) | (1 << 30)
WANTED_MORE = 1 << 4  # files that pass the page cache can be mapped all the same: `hyperslab bench` asks mincore
MOST_NBYTES = 1 << 20
MESSAGE_NBYTES = MOST_NBYTES + (1 << 16)
VALID_SECONDS = 1  # how long the kernel may keep names and attributes; nobody else changes them
MNT_DETACH = 2

libc: ctypes.CDLL = ctypes.CDLL(None, use_errno=True)


def mount(directory: Path, source: str) -> int:
    """Mount a file system whose messages come from the descriptor that is returned.

    All users get to it, but the kernel holds them to the owner and the mode of each file.

    Raises
    ------
    OSError
        There is no /dev/fuse, or the system does not let this process mount.
    """
    descriptor = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={descriptor},rootmode=40700,user_id={os.getuid()},group_id={os.getgid()}"
    options += ",default_permissions,allow_other"
    given = (source.encode(), os.fsencode(directory), b"fuse", ctypes.c_ulong(0), options.encode())
    if libc.mount(*given):
        number = ctypes.get_errno()
        os.close(descriptor)
        raise OSError(number, f"{os.strerror(number)}: mount {directory}")
    return descriptor


def unmount(directory: Path) -> None:
    """Remove a mount from the tree at once; programs that still use it get errors when its process ends."""
    libc.umount2(os.fsencode(directory), MNT_DETACH)


def init_reply(body: bytes) -> bytes:
    """The answer to the kernel's first message."""
    _, _, read_ahead, flags, more = INIT_IN.unpack_from(body + bytes(4))
    pages = MOST_NBYTES // 4096
    agreed = (flags & WANTED_FLAGS, 64, 48, MOST_NBYTES, 1, pages, 0, more & WANTED_MORE, 0)
    return INIT_OUT.pack(MAJOR, MINOR, read_ahead, *agreed)


def names_of(body: bytes) -> list[str]:
    """The names at the end of a message, each of which ends with a zero byte."""
    return [os.fsdecode(name) for name in body.split(b"\0")[:-1]]


def directory_page(entries: list[tuple[str, int, bool]], first: int, nbytes: int) -> bytes:
    """The entries of a directory from number `first` on, as many as fit: name, node, and whether it is a directory."""
    page = bytearray()
    for position, (name, node, is_directory) in enumerate(entries[first:], first):
        encoded = os.fsencode(name)
        row = ENTRY_IN_DIRECTORY.pack(node, position + 1, len(encoded), 4 if is_directory else 8) + encoded
        row += bytes(-len(row) % 8)
        if len(page) + len(row) > nbytes:
            break
        page += row
    return bytes(page)

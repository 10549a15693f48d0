"""Mount a striped store, so that real libraries use it: files whose bytes are on its data servers.

Files that end with .h5, .hdf5 or .nc are shared files: they are striped over some of the servers. All other files, such
as the chunks of a Zarr array, are whole on one server each, and take turns over all servers. The metadata server
creates and opens files. Reads and writes pass the page cache: the servers see every one, with the process that made it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import Refused
from hyperslab.parallel.striped_store import fuse_protocol as fuse
from hyperslab.parallel.striped_store.store import StripedStore
from hyperslab.parallel.striped_store.tree import Node, Tree, failure
from hyperslab.parallel.striped_store.wire import MOST_OBJECT_NBYTES, ask_open, ask_read, ask_remove, ask_write, connect
from hyperslab.parallel.striping import Striping

THREADS = 16  # requests that are served at the same time
SOURCE = "hyperslab-striped-"
MOUNTED = re.compile(rf"^\S+ \S+ \S+ \S+ (\S+) .* - fuse {SOURCE}(\d+) ")
BLOCK = 4096
SPACE = fuse.STATFS_OUT.pack(1 << 22, 1 << 22, 1 << 22, 1 << 20, 1 << 20, BLOCK, 255, BLOCK, 0)  # always as much


class Message(NamedTuple):
    """What a program asks of a node, and the process that asks."""

    node: int
    process: int
    body: bytes


class MountedStore:
    """A striped store at a directory, until the `with` statement ends. All of it belongs to the directory's owner."""

    directory: Path

    def __init__(self, store: StripedStore, directory: Path, striping: Striping) -> None:
        self._store, self.directory, self._striping = store, directory, striping
        self._tree, self._local = Tree(), threading.local()
        self._owner = (os.getuid(), os.getgid())
        self._descriptor = -1
        self._threads: list[threading.Thread] = []
        self._answers: dict[int, Callable[[Message], bytes]] = {
            fuse.LOOKUP: self._lookup, fuse.GETATTR: self._attributes, fuse.SETATTR: self._set_attributes,
            fuse.MKNOD: self._make_file, fuse.MKDIR: self._make_directory, fuse.UNLINK: self._remove,
            fuse.RMDIR: self._remove, fuse.RENAME: self._rename, fuse.RENAME2: self._rename2, fuse.OPEN: self._open,
            fuse.CREATE: self._create, fuse.READ: self._read, fuse.WRITE: self._write, fuse.RELEASE: self._release,
            fuse.STATFS: lambda _: SPACE, fuse.OPENDIR: lambda _: fuse.OPEN_OUT.pack(0, 0, 0), fuse.READDIR: self._list,
            **dict.fromkeys((fuse.FLUSH, fuse.FSYNC, fuse.RELEASEDIR, fuse.FSYNCDIR, fuse.DESTROY), lambda _: b""),
        }  # fmt: skip

    def __enter__(self) -> Self:
        remove_left_mounts()
        if not self.directory.is_dir():
            raise Refused(f"{self.directory} is not a directory: make it first")
        about = self.directory.stat()
        self._owner = (about.st_uid, about.st_gid)
        try:
            self._descriptor = fuse.mount(self.directory, f"{SOURCE}{os.getpid()}")
        except OSError as error:
            raise Refused(f"the striped store cannot be mounted here: {error}") from error
        self._answer(os.read(self._descriptor, fuse.MESSAGE_NBYTES))  # the first message says which protocol
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(THREADS)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        fuse.unmount(self.directory)
        for thread in self._threads:
            thread.join(
                timeout=2.0
            )  # a program that still has files open keeps the threads: they end with this process
        if not any(thread.is_alive() for thread in self._threads):
            os.close(self._descriptor)

    def _serve(self) -> None:
        """Answer the kernel until the directory is unmounted."""
        while True:
            try:
                message = os.read(self._descriptor, fuse.MESSAGE_NBYTES)
            except InterruptedError:
                continue
            except OSError as error:
                if error.errno == errno.ENOENT:  # the program gave up before we took its message
                    continue
                return
            self._answer(message)

    def _answer(self, message: bytes) -> None:
        _, operation, unique, node, _, _, process = fuse.IN_HEADER.unpack_from(message)
        if operation in fuse.WITHOUT_REPLY:
            return
        body, number = message[fuse.IN_HEADER.size :], 0
        try:
            if operation == fuse.INIT:
                reply = fuse.init_reply(body)
            elif operation in self._answers:
                reply = self._answers[operation](Message(node, process, body))
            else:
                raise failure(errno.ENOSYS)
        except OSError as error:
            reply, number = b"", -(error.errno or errno.EIO)
        except (EOFError, ValueError):
            reply, number = b"", -errno.EIO
        header = fuse.OUT_HEADER.pack(fuse.OUT_HEADER.size + len(reply), number, unique)
        with contextlib.suppress(OSError):  # the program was killed in between
            os.writev(self._descriptor, [header, reply])

    # Names.

    def _lookup(self, asked: Message) -> bytes:
        return self._entry(self._tree.child(asked.node, fuse.names_of(asked.body)[0]))

    def _attributes(self, asked: Message) -> bytes:
        return fuse.ATTRIBUTES_OUT.pack(fuse.VALID_SECONDS, 0, 0) + self._packed(self._tree.node(asked.node))

    def _set_attributes(self, asked: Message) -> bytes:
        chosen, _, _, size = fuse.SETATTR_IN.unpack_from(asked.body)
        if chosen & fuse.SET_SIZE:
            _check_size(size)
            node = self._tree.node(asked.node)
            for offset in range(size, node.size, fuse.MOST_NBYTES):  # what is cut off reads as 0 afterwards
                self._put(node, asked.process, offset, memoryview(bytes(min(fuse.MOST_NBYTES, node.size - offset))))
            node.size = size
        return self._attributes(asked)

    def _make_file(self, asked: Message) -> bytes:
        made = self._tree.add(asked.node, fuse.names_of(asked.body[fuse.MKNOD_IN_NBYTES :])[0], is_directory=False)
        ask_open(self._servers()[-1], asked.process, made.number)
        return self._entry(made)

    def _make_directory(self, asked: Message) -> bytes:
        made = self._tree.add(asked.node, fuse.names_of(asked.body[fuse.MKDIR_IN_NBYTES :])[0], is_directory=True)
        return self._entry(made)

    def _remove(self, asked: Message) -> bytes:
        self._drop(self._tree.remove(asked.node, fuse.names_of(asked.body)[0]))
        return b""

    def _rename(self, asked: Message, header: int = fuse.RENAME_IN_NBYTES) -> bytes:
        name, to_name = fuse.names_of(asked.body[header:])
        self._drop(self._tree.rename(asked.node, name, fuse.NODE_IN.unpack_from(asked.body)[0], to_name))
        return b""

    def _rename2(self, asked: Message) -> bytes:
        return self._rename(asked, fuse.RENAME2_IN_NBYTES)

    def _list(self, asked: Message) -> bytes:
        _, offset, nbytes, *_ = fuse.READ_IN.unpack_from(asked.body)
        return fuse.directory_page(self._tree.listed(asked.node), offset, nbytes)

    # Files.

    def _open(self, asked: Message) -> bytes:
        node = self._tree.node(asked.node)
        ask_open(self._servers()[-1], asked.process, node.number)
        with self._tree.lock:
            node.opens += 1
        if int.from_bytes(asked.body[:4], "little") & os.O_TRUNC:
            node.size = 0
            self._remove_object(node)
        return fuse.OPEN_OUT.pack(0, fuse.OPEN_FLAGS, 0)

    def _create(self, asked: Message) -> bytes:
        made = self._tree.add(asked.node, fuse.names_of(asked.body[fuse.CREATE_IN_NBYTES :])[0], is_directory=False)
        ask_open(self._servers()[-1], asked.process, made.number)
        made.opens = 1
        return self._entry(made) + fuse.OPEN_OUT.pack(0, fuse.OPEN_FLAGS, 0)

    def _release(self, asked: Message) -> bytes:
        node = self._tree.node(asked.node)
        with self._tree.lock:
            node.opens -= 1
        self._drop(self._tree.forgotten(node))
        return b""

    def _read(self, asked: Message) -> bytes:
        _, offset, nbytes, *_ = fuse.READ_IN.unpack_from(asked.body)
        node = self._tree.node(asked.node)
        nbytes = max(min(nbytes, node.size - offset), 0)
        servers = self._servers()
        pieces = self._pieces(node, offset, nbytes)
        return b"".join(
            ask_read(servers[one], asked.process, node.number, place, length) for one, place, length in pieces
        )

    def _write(self, asked: Message) -> bytes:
        _, offset, nbytes, *_ = fuse.WRITE_IN.unpack_from(asked.body)
        node = self._tree.node(asked.node)
        _check_size(offset + nbytes)
        given = memoryview(asked.body)[fuse.WRITE_IN.size : fuse.WRITE_IN.size + nbytes]
        self._put(node, asked.process, offset, given)
        with self._tree.lock:
            node.size = max(node.size, offset + nbytes)
        return fuse.WRITE_OUT.pack(nbytes, 0)

    def _put(self, node: Node, process: int, offset: int, given: memoryview) -> None:
        servers, done = self._servers(), 0
        for server, place, length in self._pieces(node, offset, len(given)):
            ask_write(servers[server], process, node.number, place, given[done : done + length])
            done += length

    def _pieces(self, node: Node, offset: int, nbytes: int) -> Iterator[tuple[int, int, int]]:
        """The server, the place on it, and the length of each part of a byte range."""
        if node.shared:
            yield from self._striping.pieces(offset, nbytes)
        elif nbytes > 0:
            yield node.number % self._striping.servers, offset, nbytes

    def _drop(self, node: Node | None) -> None:
        if node is not None:
            self._remove_object(node)

    def _remove_object(self, node: Node) -> None:
        for connection in self._servers()[:-1]:
            ask_remove(connection, node.number)

    def _servers(self) -> list[socket.socket]:
        """This thread's own connections to the data servers and, last, the metadata server."""
        if not hasattr(self._local, "servers"):
            self._local.servers = connect(self._store.addresses)
        servers: list[socket.socket] = self._local.servers
        return servers

    def _entry(self, node: Node) -> bytes:
        valid = (fuse.VALID_SECONDS, fuse.VALID_SECONDS, 0, 0)
        return fuse.ENTRY.pack(node.number, 0, *valid) + self._packed(node)

    def _packed(self, node: Node) -> bytes:
        seconds = int(node.changed)
        times = (seconds, seconds, seconds, 0, 0, 0)
        links = 2 if node.is_directory else 1
        blocks = ceil_div(node.size, 512)
        rest = (node.mode, links, *self._owner, 0, BLOCK, 0)
        return fuse.ATTRIBUTES.pack(node.number, node.size, blocks, *times, *rest)


def _check_size(nbytes: int) -> None:
    if nbytes > MOST_OBJECT_NBYTES:  # the servers hold files in memory
        raise failure(errno.EFBIG)


def remove_left_mounts() -> list[str]:
    """Remove the mounts of processes that are gone, and return their directories."""
    left = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        matched = MOUNTED.match(line)
        if matched and not Path(f"/proc/{matched[2]}").exists():
            directory = re.sub(r"\\([0-7]{3})", lambda escape: chr(int(escape[1], 8)), matched[1])
            fuse.unmount(Path(directory))
            left.append(directory)
    return left

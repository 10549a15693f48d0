"""What clients and servers of the striped store say to each other: a header of fixed length, an answer, and bytes.

A client that writes sends its bytes only after the server has answered the header. So the bytes of one request at a
time pass the rate limit of a server, as if a disk served them.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import time
from collections.abc import Sequence

# Operation, process, object, offset, length.
HEADER = struct.Struct("<BIQQQ")
READ, WRITE, OPEN, REMOVE = 1, 2, 3, 4
ANSWER = struct.Struct("<Q")
BUFFER_NBYTES = 1 << 18
PAUSE_SECONDS = 0.0002
NO_OBJECT = (1 << 64) - 1
TIMEOUT_SECONDS = 120.0
SIOCOUTQNSD = 0x894B  # of linux/sockios.h: bytes that were not sent yet
MOST_LENGTH = 1 << 28
MOST_OBJECT_NBYTES = 1 << 32  # of an object on one server, which holds it in memory


def receive(connection: socket.socket, nbytes: int) -> bytearray:
    """Exactly `nbytes` from a connection. Raises EOFError if the other side has closed it."""
    content = bytearray(nbytes)
    view, filled = memoryview(content), 0
    while filled < nbytes:
        got = connection.recv_into(view[filled:])
        if got == 0:
            raise EOFError("the other side has closed the connection")
        filled += got
    return content


def tuned(connection: socket.socket) -> socket.socket:
    """The connection without Nagle's delay, and with small buffers."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_NBYTES)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_NBYTES)
    return connection


def drain(connection: socket.socket, seconds: float) -> None:
    """Wait until all that was sent has left this side. Raises TimeoutError if it takes too long."""
    waiting, until = bytearray(4), time.monotonic() + seconds
    while time.monotonic() < until:
        fcntl.ioctl(connection.fileno(), SIOCOUTQNSD, waiting)
        if not any(waiting):
            return
        time.sleep(PAUSE_SECONDS)
    raise TimeoutError("the other side takes nothing")


def connect(addresses: Sequence[str]) -> list[socket.socket]:
    """A connection to each server, such as `10.150.0.2:7411`."""
    connections = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        connections.append(tuned(socket.create_connection((host, int(port)), timeout=TIMEOUT_SECONDS)))
    return connections


def ask_open(connection: socket.socket, process: int, number: int) -> None:
    """Let the metadata server open or create an object."""
    connection.sendall(HEADER.pack(OPEN, process, number, 0, 0))
    receive(connection, ANSWER.size)


def ask_read(connection: socket.socket, process: int, number: int, offset: int, length: int) -> memoryview:
    """Bytes of an object, from a data server. What was never written is 0."""
    connection.sendall(HEADER.pack(READ, process, number, offset, length))
    return memoryview(receive(connection, ANSWER.size + length))[ANSWER.size :]


def ask_write(connection: socket.socket, process: int, number: int, offset: int, given: memoryview) -> None:
    """Write bytes of an object on a data server."""
    connection.sendall(HEADER.pack(WRITE, process, number, offset, len(given)))
    receive(connection, ANSWER.size)  # the server is ready
    connection.sendall(given)
    receive(connection, ANSWER.size)


def wait_until_served(addresses: Sequence[str]) -> None:
    """Wait until the servers have finished, and logged, every request that came before this one."""
    for connection in connect(addresses):
        with connection:
            ask_remove(connection, NO_OBJECT)


def ask_remove(connection: socket.socket, number: int) -> None:
    """Let a data server forget an object. This takes no time there, and is not logged."""
    connection.sendall(HEADER.pack(REMOVE, 0, number, 0, 0))
    receive(connection, ANSWER.size)

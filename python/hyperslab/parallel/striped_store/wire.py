"""What clients and servers of the striped store say to each other: a header of fixed length, then the bytes."""

from __future__ import annotations

import socket
import struct

# Operation, process, object, offset, length.
HEADER = struct.Struct("<BIQQQ")
READ, WRITE, OPEN = 1, 2, 3
ANSWER = struct.Struct("<Q")
BUFFER_NBYTES = 1 << 17  # small, so that a server waits until nearly all of an answer has passed its rate limit
MOST_LENGTH = 1 << 28


def receive(connection: socket.socket, nbytes: int) -> bytearray:
    """Exactly `nbytes` from a connection. Raises EOFError if the other side has closed it."""
    found = bytearray(nbytes)
    view, filled = memoryview(found), 0
    while filled < nbytes:
        got = connection.recv_into(view[filled:])
        if got == 0:
            raise EOFError("the other side has closed the connection")
        filled += got
    return found


def tuned(connection: socket.socket) -> socket.socket:
    """The connection without Nagle's delay, and with small buffers."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_NBYTES)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_NBYTES)
    return connection

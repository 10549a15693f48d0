"""What clients and servers of the striped store say to each other: a header of fixed length, an answer, and bytes.

A client that writes sends its bytes only after the server has answered the header. So the bytes of one request at a
time pass the rate limit of a server, as if a disk served them.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import time

# Operation, process, object, offset, length.
HEADER = struct.Struct("<BIQQQ")
READ, WRITE, OPEN = 1, 2, 3
ANSWER = struct.Struct("<Q")
BUFFER_NBYTES = 1 << 18
PAUSE_SECONDS = 0.0002
SIOCOUTQNSD = 0x894B  # of linux/sockios.h: bytes that were not sent yet
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


def drain(connection: socket.socket, seconds: float) -> None:
    """Wait until all that was sent has left this side. Raises TimeoutError if it takes too long."""
    waiting, until = bytearray(4), time.monotonic() + seconds
    while time.monotonic() < until:
        fcntl.ioctl(connection.fileno(), SIOCOUTQNSD, waiting)
        if not any(waiting):
            return
        time.sleep(PAUSE_SECONDS)
    raise TimeoutError("the other side takes nothing")

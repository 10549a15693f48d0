"""A server of the striped store: `python -m hyperslab.parallel.striped_store.server ADDRESS PORT SECONDS LOG`.

It serves one request after another, in the order in which they arrive: it waits SECONDS, then moves the bytes. Its log
has a line for each request: the process, the operation, the object, the offset, the length, and when serving began and
ended. A process in its own network namespace cannot be reached faster than the namespace's rate limit allows.
"""

from __future__ import annotations

import selectors
import socket
import sys
import time
from pathlib import Path
from typing import TextIO

from hyperslab.parallel.striped_store.parent import end_with_parent
from hyperslab.parallel.striped_store.wire import (
    ANSWER,
    HEADER,
    MOST_LENGTH,
    MOST_OBJECT_NBYTES,
    OPEN,
    READ,
    REMOVE,
    WRITE,
    drain,
    receive,
    tuned,
)

OPERATIONS = {READ: "read", WRITE: "write", OPEN: "open"}
IDLE_SECONDS = 60.0  # a client that stops in the middle of a request does not hold up the others for longer


class Server:
    """Objects in memory, and the requests for them, one at a time."""

    def __init__(self, seconds: float, log: TextIO) -> None:
        self._seconds, self._log = seconds, log
        self._objects: dict[int, bytearray] = {}

    def serve(self, connection: socket.socket) -> None:
        """Serve one request of a connection. Raises EOFError if there is none."""
        operation, process, number, offset, length = HEADER.unpack(receive(connection, HEADER.size))
        begun = time.monotonic()
        if operation == REMOVE:
            self._objects.pop(number, None)
            connection.sendall(ANSWER.pack(number))
            return
        if operation not in OPERATIONS or length > MOST_LENGTH or offset + length > MOST_OBJECT_NBYTES:
            raise EOFError("not a request")
        held = self._objects.setdefault(number, bytearray())
        time.sleep(self._seconds)
        if operation == WRITE:
            connection.sendall(ANSWER.pack(length))
            given = receive(connection, length)
            if len(held) < offset:
                held.extend(bytes(offset - len(held)))
            held[offset : offset + length] = given
            connection.sendall(ANSWER.pack(length))
        elif operation == READ:
            content = bytes(held[offset : offset + length])
            connection.sendall(ANSWER.pack(length) + content + bytes(length - len(content)))
            drain(connection, IDLE_SECONDS)
        else:
            connection.sendall(ANSWER.pack(number))
        ended = time.monotonic()
        self._log.write(f"{process} {OPERATIONS[operation]} {number} {offset} {length} {begun:.6f} {ended:.6f}\n")


def run(address: str, port: int, seconds: float, log: Path) -> None:
    """Serve until the process is terminated, or its parent ends."""
    end_with_parent()
    waiting = selectors.DefaultSelector()
    with socket.create_server((address, port), backlog=512) as listening, log.open("w", buffering=1) as lines:
        server = Server(seconds, lines)
        waiting.register(listening, selectors.EVENT_READ)
        print("ready", flush=True)
        while True:
            for key, _ in waiting.select():
                if key.fileobj is listening:
                    connection = tuned(listening.accept()[0])
                    connection.settimeout(IDLE_SECONDS)
                    waiting.register(connection, selectors.EVENT_READ)
                    continue
                client = key.fileobj
                assert isinstance(client, socket.socket)
                try:
                    server.serve(client)
                except (OSError, EOFError):
                    waiting.unregister(client)
                    client.close()


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))

"""A process that makes requests: `python -m hyperslab.parallel.striped_store.client PLAN NUMBER ADDRESS:PORT ...`.

The plan has what `requests_of` counted for each process. The client connects to all servers, says that it is ready,
waits for a line on its standard input, makes its requests one after another, and prints the seconds that they took.
"""

from __future__ import annotations

import socket
import sys
import time

import numpy as np

from hyperslab.parallel.striped_store.wire import ANSWER, HEADER, OPEN, READ, WRITE, receive, tuned

TIMEOUT_SECONDS = 120.0


def run(plan: str, number: int, addresses: list[str]) -> None:
    """Make the requests of one process of a plan."""
    with np.load(plan) as columns:
        first, last = columns["starts"][number : number + 2].tolist()
        servers, nbytes = columns["servers"][first:last].tolist(), columns["nbytes"][first:last].astype(int).tolist()
        writes, offsets = columns["writes"][first:last].tolist(), columns["offsets"][first:last].tolist()
        objects = columns["objects"][first:last].tolist()
    connections = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        connections.append(tuned(socket.create_connection((host, int(port)), timeout=TIMEOUT_SECONDS)))
    blank = bytes(max([0, *nbytes]))
    print("ready", flush=True)
    sys.stdin.readline()
    begun = time.monotonic()
    for server, length, is_write, offset, name in zip(servers, nbytes, writes, offsets, objects, strict=True):
        connection = connections[server]
        if length < 0:
            connection.sendall(HEADER.pack(OPEN, number, name, 0, 0))
            receive(connection, ANSWER.size)
        elif is_write:
            connection.sendall(HEADER.pack(WRITE, number, name, offset, length))
            receive(connection, ANSWER.size)  # the server is ready
            connection.sendall(memoryview(blank)[:length])
            receive(connection, ANSWER.size)
        else:
            connection.sendall(HEADER.pack(READ, number, name, offset, length))
            receive(connection, ANSWER.size + length)
    print(f"{time.monotonic() - begun:.9f}", flush=True)


if __name__ == "__main__":
    try:
        run(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
    except (OSError, EOFError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        sys.exit(1)

"""A process that makes requests: `python -m hyperslab.parallel.striped_store.client ADDRESS:PORT ...`.

It connects to all servers, and then does what the lines of its standard input say. `plan PATH NUMBER` reads what
`requests_of` counted for one process of a plan, and answers "ready". `at SECONDS` waits for that time of the system's
monotonic clock, makes the requests one after another, and answers with the seconds that they took.
"""

from __future__ import annotations

import socket
import sys
import time
from dataclasses import dataclass

import numpy as np

from hyperslab.parallel.striped_store.parent import end_with_parent
from hyperslab.parallel.striped_store.wire import ask_open, ask_read, ask_write, connect
from hyperslab.timers import Timers


@dataclass(frozen=True)
class Planned:
    """The requests of one process: server, bytes (-1 for a visit to the metadata server), whether it writes, place."""

    number: int
    rows: list[tuple[int, int, bool, int, int]]
    blank: bytes


def read_plan(path: str, number: int) -> Planned:
    """The part of a plan that one process has."""
    with np.load(path) as columns:
        first, last = columns["starts"][number : number + 2].tolist()
        names = ("servers", "nbytes", "writes", "offsets", "objects")
        servers, nbytes, *others = (columns[name][first:last] for name in names)
        lengths = nbytes.astype(int).tolist()
    rows = list(zip(servers.tolist(), lengths, *(each.tolist() for each in others), strict=True))
    return Planned(number, rows, bytes(max([0, *lengths])))


def make(planned: Planned, connections: list[socket.socket]) -> None:
    """Make the requests, one after another."""
    number, blank = planned.number, memoryview(planned.blank)
    for server, length, is_write, offset, name in planned.rows:
        if length < 0:
            ask_open(connections[server], number, name)
        elif is_write:
            ask_write(connections[server], number, name, offset, blank[:length])
        else:
            ask_read(connections[server], number, name, offset, length)


def run(addresses: list[str]) -> None:
    """Do what standard input says, until it ends."""
    end_with_parent()
    connections = connect(addresses)
    planned = Planned(0, [], b"")
    for line in sys.stdin:
        command, _, rest = line.strip().partition(" ")
        if command == "plan":
            path, _, number = rest.rpartition(" ")
            planned = read_plan(path, int(number))
            print("ready", flush=True)
        elif command == "at":
            time.sleep(max(float(rest) - time.monotonic(), 0.0))
            timers = Timers()
            with timers("requests"):
                make(planned, connections)
            print(f"{timers.seconds['requests']:.9f}", flush=True)


if __name__ == "__main__":
    try:
        run(sys.argv[1:])
    except (OSError, EOFError, ValueError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        sys.exit(1)

"""A network with a delay: connections are passed on to a server, and every byte arrives some seconds later each way.

    python -m hyperslab.lab.delaying PORT SECONDS

Each line `ADDRESS PORT` on standard input opens one more port (0 means any free port), and its number is printed. The
program ends when its input ends or a port cannot be opened. A new connection costs a round trip before its first byte,
as with a real far host. The bandwidth is not limited.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from contextlib import suppress


class Late:
    """One direction of a connection: data are written in order, `seconds` after they were put in."""

    def __init__(self, out: asyncio.WriteTransport, seconds: float, begins: float = 0.0) -> None:
        self._out, self._seconds, self._begins = out, seconds, begins
        self._waiting: deque[bytes | None] = deque()
        self._loop = asyncio.get_running_loop()

    def put(self, data: bytes | None) -> None:
        """Pass on some bytes. None ends the connection."""
        self._waiting.append(data)
        self._loop.call_at(max(self._loop.time(), self._begins) + self._seconds, self._pass_on)

    def _pass_on(self) -> None:
        data = self._waiting.popleft()
        if data is None:
            self._out.close()
        elif not self._out.is_closing():
            self._out.write(data)


class End(asyncio.Protocol):
    """One end of a connection. It passes on what it receives to `other`."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.other: Late | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Pass on the data."""
        if self.other is not None:
            self.other.put(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's signature
        """Close the other end too."""
        if self.other is not None:
            self.other.put(None)


class Entrance(End):
    """A client's end. It connects to the server when the client connects."""

    other: Late

    def __init__(self, port: int, seconds: float) -> None:
        super().__init__()
        self._port, self._seconds = port, seconds
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connect to the server. Nothing is read from the client before that."""
        super().connection_made(transport)
        assert self.transport is not None
        self.transport.pause_reading()
        self._task = asyncio.get_running_loop().create_task(self._join())

    async def _join(self) -> None:
        loop = asyncio.get_running_loop()
        assert self.transport is not None
        try:
            server, end = await loop.create_connection(End, "127.0.0.1", self._port)
        except OSError:
            self.transport.abort()
            return
        end.other = Late(self.transport, self._seconds)
        self.other = Late(server, self._seconds, loop.time() + 2 * self._seconds)
        with suppress(RuntimeError):  # the client has left
            self.transport.resume_reading()


async def serve(port: int, seconds: float) -> None:
    """Open ports as standard input requests them, until the input ends."""
    loop = asyncio.get_running_loop()
    asked = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(asked), sys.stdin)
    opened = []
    while line := await asked.readline():
        address, entrance = line.decode().split()
        server = await loop.create_server(lambda: Entrance(port, seconds), address, int(entrance), backlog=512)
        opened.append(server)
        print(server.sockets[0].getsockname()[1], flush=True)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2])))

"""Runs `hyperslab ...` as a process of its own, quickly: it is forked from one that has imported what commands need.

Python and our dependencies take most of a second to import, and the tests run a thousand commands. Each command still
has its own process, environment, folder, standard streams and exit status. Tests of start-up, of signals and of imports
start Python themselves.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

PREPARED = Path(__file__).with_name("prepared_process.py")


@cache
def prepared() -> socket.socket:
    """The connection to this process's prepared one, which ends when the connection does."""
    ours, theirs = socket.socketpair()
    with theirs:
        started = subprocess.Popen([sys.executable, str(PREPARED), str(theirs.fileno())], pass_fds=[theirs.fileno()])

    def end() -> None:
        ours.close()
        started.wait(60)

    atexit.register(end)
    return ours


def run_hyperslab(
    *arguments: object,
    cwd: str | Path | None = None,
    env: dict[str, str] | None = None,
    input: str = "",
    timeout: float = 240,
) -> subprocess.CompletedProcess[str]:
    """What `subprocess.run(["hyperslab", *arguments], ...)` returns, with the output as text.

    Raises
    ------
    subprocess.TimeoutExpired
        It took longer than `timeout` seconds. It has been killed.
    """
    words = list(map(str, arguments))
    request = {
        "arguments": words,
        "cwd": os.fspath(cwd or Path.cwd()),
        "env": dict(os.environ if env is None else env),
        "timeout": timeout,
    }
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(input.encode())
        given.seek(0)
        status = answer(prepared(), request, [given.fileno(), out.fileno(), err.fileno()])
        out.seek(0)
        err.seek(0)
        texts = [stream.read().decode(errors="replace") for stream in (out, err)]
    if status is None:
        raise subprocess.TimeoutExpired(["hyperslab", *words], timeout, *texts)
    return subprocess.CompletedProcess(["hyperslab", *words], status, *texts)


def answer(connection: socket.socket, request: dict[str, Any], streams: list[int]) -> int | None:
    """The exit status of a command; None if it was too slow."""
    text = json.dumps(request).encode()
    socket.send_fds(connection, [len(text).to_bytes(4, "little")], streams)
    connection.sendall(text)
    line = bytearray()
    while not line.endswith(b"\n"):
        part = connection.recv(64)
        if not part:
            prepared.cache_clear()
            raise RuntimeError("the prepared process has ended: run its tests with `python -m hyperslab` to see why")
        line += part
    return json.loads(line)

"""Runs `hyperslab ...` as a process of its own, quickly: it is forked from one that has imported what commands need.

Python and our dependencies take most of a second to import, and the tests run a thousand commands. Each command still
has its own process, environment, folder, standard streams and exit status. Tests of start-up, of signals and of imports
start Python themselves. `run_python` does the same for programs in Python.
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
def prepared(*modules: str) -> socket.socket:
    """The connection to the process that has imported these modules, or hyperslab; it ends when the connection does."""
    ours, theirs = socket.socketpair()
    with theirs:
        line = [sys.executable, str(PREPARED), str(theirs.fileno()), *modules]
        started = subprocess.Popen(line, pass_fds=[theirs.fileno()])

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
    request = {
        "name": "hyperslab",
        "arguments": list(map(str, arguments)),
        "cwd": os.fspath(cwd or Path.cwd()),
        "env": dict(os.environ if env is None else env),
        "timeout": timeout,
    }
    done = run_forked(prepared(), request, input)
    texts = [each.decode(errors="replace") for each in (done.stdout, done.stderr)]
    return subprocess.CompletedProcess(done.args, done.returncode, *texts)


def run_python(
    code: str,
    *arguments: object,
    modules: tuple[str, ...] = ("numpy", "h5py"),
    cwd: str | Path | None = None,
    env: dict[str, str] | None = None,
    input: str = "",
    timeout: float = 240,
) -> subprocess.CompletedProcess[bytes]:
    """What `subprocess.run([sys.executable, "-c", code, *arguments], ...)` returns, with the output as bytes.

    The process has imported the modules already, and nothing else: the program sees libraries as they are.
    """
    request = {
        "name": "-c",
        "arguments": list(map(str, arguments)),
        "cwd": os.fspath(cwd or Path.cwd()),
        "env": dict(os.environ if env is None else env),
        "timeout": timeout,
        "code": code,
    }
    return run_forked(prepared(*modules), request, input)


def run_forked(connection: socket.socket, request: dict[str, Any], input: str) -> subprocess.CompletedProcess[bytes]:
    """Ask a prepared process for a command or a program.

    Raises
    ------
    subprocess.TimeoutExpired
        It took longer than the request allows. It has been killed.
    """
    words = [request["name"], *request["arguments"]]
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(input.encode())
        given.seek(0)
        status = answer(connection, request, [given.fileno(), out.fileno(), err.fileno()])
        out.seek(0)
        err.seek(0)
        said = out.read(), err.read()
    if status is None:
        raise subprocess.TimeoutExpired(words, request["timeout"], *said)
    return subprocess.CompletedProcess(words, status, *said)


def answer(connection: socket.socket, request: dict[str, Any], streams: list[int]) -> int | None:
    """The exit status of a command; None if it was too slow."""
    text = json.dumps(request).encode()
    line = bytearray()
    try:
        socket.send_fds(connection, [len(text).to_bytes(4, "little")], streams)
        connection.sendall(text)
        while not line.endswith(b"\n"):
            part = connection.recv(64)
            if not part:
                raise RuntimeError("the prepared process has ended: `python -m hyperslab` in its place says why")
            line += part
    except BaseException:  # whoever asks next must not get this answer
        connection.close()
        prepared.cache_clear()
        raise
    return json.loads(line)

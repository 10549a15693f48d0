"""Runs programs again and again without importing their libraries again: a server that forks for each of them.

`Server` starts it, plain or under `hyperslab run`. The file is cold before each program: mincore finds nothing of it in
the page cache, and the program must read bytes of the device. A program keeps the seconds of its reads in `seconds`.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

ENGINES = "import xarray\nxarray.backends.list_engines()"


@dataclass(frozen=True)
class Ran:
    """What one run of a program took and printed. `seconds` is None if it failed or took too long."""

    seconds: float | None
    printed: str
    device_nbytes: int
    error: str | None = None


class Server:
    """A process that has imported the libraries, and forks for each program."""

    def __init__(self, libraries: Sequence[str], prefix: Sequence[str] = ()) -> None:
        command = [*prefix, sys.executable, str(Path(__file__)), *libraries]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._ask({})  # until the libraries are imported

    def run(self, text: str, path: Path, most_seconds: float) -> Ran:
        """Run a program on a file."""
        return Ran(**self._ask({"text": text, "path": str(path), "most_seconds": most_seconds}))

    def close(self) -> None:
        """End the server."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the server of programs ended with status {self._process.wait()}")
        return dict(json.loads(answer))


def serve(libraries: Sequence[str]) -> None:
    """Read requests from stdin, and answer each on stdout."""
    for name in libraries:
        import_module(name)
    if "xarray" in libraries:
        exec(ENGINES, {})
    for line in sys.stdin:
        request = json.loads(line)
        answer = _forked(**request) if request else {}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _forked(text: str, path: str, most_seconds: float) -> dict[str, Any]:
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        said = json.dumps(_told(text, path)).encode()
        while said:
            said = said[os.write(theirs, said) :]
        os._exit(0)
    os.close(theirs)
    received = b""
    while select.select([ours], [], [], most_seconds)[0]:
        part = os.read(ours, 1 << 16)
        if not part:
            break
        received += part
    else:
        os.kill(child, signal.SIGKILL)
    os.close(ours)
    os.waitpid(child, 0)
    nothing = {"seconds": None, "printed": "", "device_nbytes": 0, "error": f"it took more than {most_seconds:g} s"}
    return dict(json.loads(received)) if received else nothing


def _told(text: str, path: str) -> dict[str, Any]:
    sys.argv = ["script.py", path]
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = io.StringIO()
    error = None
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(text, "script.py", "exec"), names)
    except Exception:
        error = traceback.format_exc(limit=-2)[-500:]
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    seconds = None if error else names["seconds"]
    return {"seconds": seconds, "printed": printed.getvalue(), "device_nbytes": int(counters["read_bytes"]),
            "error": error}  # fmt: skip


if __name__ == "__main__":
    serve(sys.argv[1:])

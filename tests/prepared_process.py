"""The process from which `command_line.py` forks commands. It imports what they need, and waits for requests."""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from typing import Any

LIBRARIES = ["numpy", "h5py", "hdf5plugin", "zarr", "yaml", "pydantic", "typer", "rich.console", "rich.table",
             "matplotlib.figure", "matplotlib.backends.backend_agg"]  # fmt: skip


def prepare() -> None:
    """Import what commands import. None of it may start a thread, which a fork would lose."""
    for name in LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(name)
    import hyperslab.cli

    for module in pkgutil.walk_packages(hyperslab.cli.__path__, "hyperslab.cli."):
        importlib.import_module(module.name)
    gc.freeze()  # what is here stays: a collection in a child need not copy it


def serve(connection: socket.socket) -> None:
    """Answer requests until the other side ends."""
    while True:
        head, streams, _, _ = socket.recv_fds(connection, 4, 3)
        if len(head) < 4:
            return
        text = bytearray()
        while len(text) < int.from_bytes(head, "little"):
            text += connection.recv(1 << 16)
        request = json.loads(text)
        child = os.fork()
        if child == 0:
            connection.close()
            command(request, streams)
        for stream in streams:
            os.close(stream)
        status = ended(child, request["timeout"])
        connection.sendall(json.dumps(status).encode() + b"\n")


def ended(child: int, timeout: float) -> int | None:
    """The exit status as `subprocess` has it; None if the child had to be killed."""
    end, pause = time.monotonic() + timeout, 0.001
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def command(request: dict[str, Any], streams: list[int]) -> None:
    """Become the command, and end with its status."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    tempfile.tempdir = None  # found anew
    sys.argv = ["hyperslab", *request["arguments"]]
    status = 1
    try:
        from hyperslab.__main__ import main

        main()
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    prepare()
    serve(socket.socket(fileno=int(sys.argv[1])))

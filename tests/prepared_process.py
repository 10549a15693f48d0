"""The process from which `command_line.py` forks. It imports what is needed, and waits for requests.

`prepared_process.py DESCRIPTOR` runs commands of hyperslab; `prepared_process.py DESCRIPTOR MODULE...` runs programs in
Python, for which it has imported nothing but these modules and what they import.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import sys
import time
import traceback
from contextlib import suppress
from types import ModuleType
from typing import Any

LIBRARIES = ["numpy", "h5py", "hdf5plugin", "zarr", "yaml", "pydantic.type_adapter", "typer.rich_utils", "rich.console",
             "rich.table", "matplotlib.figure", "matplotlib.backends.backend_agg", "pyarrow.parquet"]  # fmt: skip
# What commands import when they run. Recorders change the process that imports them, and xarray starts threads.
PACKAGES = ["cli", "advise", "archive", "audit", "conversion", "model", "references", "report", "trace", "versions"]
LEFT_OUT = ("hyperslab.trace.recording", "hyperslab.archive.xarray_engine", "hyperslab.conversion.accessor",
            "hyperslab.references.virtualizarr")  # fmt: skip


def prepare(modules: list[str]) -> None:
    """Import what programs or commands import. None of it may start a thread, which a fork would lose; but that of
    pyarrow's allocator starts again in each child.
    """
    gc.disable()  # what is imported is no garbage, and would be looked through again and again
    for name in modules or LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(name)
    for name in () if modules else PACKAGES:
        package = importlib.import_module(f"hyperslab.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"hyperslab.{name}."):
            if not module.name.startswith(LEFT_OUT):
                with suppress(ImportError):
                    importlib.import_module(module.name)
    gc.freeze()  # what is here stays: a collection in a child need not copy it
    gc.enable()


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
    """Become the command or the program, and end with its status."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    if "tempfile" in sys.modules:
        sys.modules["tempfile"].tempdir = None  # found anew
    sys.argv = [request["name"], *request["arguments"]]
    status = 1
    try:
        if "code" in request:
            execute(request["code"])
        else:
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


def execute(code: str) -> None:
    """Run a program as `python -c` does, with what it wants to be done at its end."""
    main = sys.modules["__main__"] = ModuleType("__main__")
    sys.path[0] = ""
    try:
        exec(compile(code, "<string>", "exec"), main.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        traceback.print_exception(error.with_traceback(error.__traceback__ and error.__traceback__.tb_next))
        raise SystemExit(1) from None
    finally:
        atexit._run_exitfuncs()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    prepare(sys.argv[2:])
    serve(socket.socket(fileno=int(sys.argv[1])))

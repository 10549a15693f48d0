"""Start the servers of a striped store, let processes make requests of them, and remove everything afterwards."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from hyperslab.errors import Refused, RunError
from hyperslab.parallel.striped_store import namespaces
from hyperslab.parallel.striped_store.wire import wait_until_served
from hyperslab.parallel.striping import ProcessRequests

START_SECONDS = 30.0
RUN_SECONDS = 300.0
TOGETHER_SECONDS = 0.02  # from the last line to the processes of a run until all of them begin
PORT = 7411
MODULE = "hyperslab.parallel.striped_store"


@dataclass(frozen=True)
class StoreSpeeds:
    """The rate limit of each data server, and the least time of a request to a data server and to the metadata server.

    The default sum of all rates is far below what the machine can move: the limits, not its processors, decide.
    """

    mbit_s: float = 120.0
    request_seconds: float = 0.002
    metadata_seconds: float = 0.002


@dataclass(frozen=True)
class Logged:
    """One line of a server's log."""

    server: int
    process: int
    operation: str
    number: int
    offset: int
    length: int
    begun: float
    ended: float


class StripedStore:
    """k data servers and one metadata server, each a process in a network namespace of its own.

    Use it in a `with` statement. What a killed store leaves behind, the next one removes.
    """

    servers: int
    speeds: StoreSpeeds

    def __init__(self, servers: int, speeds: StoreSpeeds | None = None) -> None:
        self.servers, self.speeds = servers, speeds or StoreSpeeds()
        self.addresses: list[str] = []
        self.processes: list[subprocess.Popen[str]] = []
        self._clients: list[subprocess.Popen[str]] = []
        self._namespaces: list[namespaces.Namespace] = []
        self._room: tempfile.TemporaryDirectory[str] | None = None

    @property
    def directory(self) -> Path:
        """Where logs and plans are."""
        if self._room is None:
            raise RunError("the striped store does not run")
        return Path(self._room.name)

    def __enter__(self) -> Self:
        if reason := namespaces.why_not():
            raise Refused(f"the striped store cannot run here: {reason}")
        namespaces.remove_left()
        self._room = tempfile.TemporaryDirectory(prefix=f"{namespaces.ROOM}{os.getpid()}-")
        try:
            for number in range(self.servers + 1):
                self._start(number)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Terminate the servers and remove their namespaces."""
        self._end_clients()
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        for made in self._namespaces:
            namespaces.remove(made.name)
        self.processes, self._namespaces, self.addresses = [], [], []
        if self._room is not None:
            self._room.cleanup()
            self._room = None

    def run(self, plan: Sequence[ProcessRequests]) -> list[float]:
        """Let one process for each part of the plan make its requests, all at the same time: the seconds of each.

        Raises
        ------
        RunError
            A server or a process failed.
        """
        path = self.directory / "plan.npz"
        _write_plan(path, plan)
        while len(self._clients) < len(plan):
            self._clients.append(self._client())
        clients = self._clients[: len(plan)]
        try:
            for number, client in enumerate(clients):
                _tell(client, f"plan {path} {number}")
            for number, client in enumerate(clients):
                self._line(client, f"process {number}", START_SECONDS)
            together = time.monotonic() + TOGETHER_SECONDS  # Linux has one monotonic clock for all processes
            for client in clients:
                _tell(client, f"at {together:.6f}")
            return [float(self._line(client, f"process {n}", RUN_SECONDS)) for n, client in enumerate(clients)]
        except BaseException:
            self._end_clients()  # the next run starts others
            raise

    def logs(self) -> list[Logged]:
        """What all servers have served so far, in the order of each."""
        # A process has its answer before the server has logged it.
        wait_until_served(self.addresses)
        logs = []
        for number in range(self.servers + 1):
            for line in (self.directory / f"server-{number}.log").read_text().splitlines():
                process, operation, name, offset, length, begun, ended = line.split()
                logs.append(
                    Logged(
                        number, int(process), operation, int(name), int(offset), int(length), float(begun), float(ended)
                    )
                )
        return logs

    def _client(self) -> subprocess.Popen[str]:
        """A process that stays for all runs, so that starting it delays none of them."""
        return subprocess.Popen(
            [sys.executable, "-m", f"{MODULE}.client", *self.addresses],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def _end_clients(self) -> None:
        for client in self._clients:
            client.kill()
        for client in self._clients:
            client.communicate()
        self._clients = []

    def _start(self, number: int) -> None:
        is_metadata = number == self.servers
        rate = 1000.0 if is_metadata else self.speeds.mbit_s
        made = namespaces.make(number, rate)
        self._namespaces.append(made)
        seconds = self.speeds.metadata_seconds if is_metadata else self.speeds.request_seconds
        log = self.directory / f"server-{number}.log"
        inside = ["ip", "netns", "exec", made.name, sys.executable, "-m", f"{MODULE}.server"]
        process = subprocess.Popen(
            [*inside, made.address, str(PORT), repr(seconds), str(log)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.processes.append(process)
        self._line(process, f"server {number}", START_SECONDS)
        self.addresses.append(f"{made.address}:{PORT}")

    def _line(self, process: subprocess.Popen[str], name: str, seconds: float) -> str:
        """The next line that a process prints. Raises RunError if it ends, takes too long, or a server has ended."""
        assert process.stdout is not None
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if select.select([process.stdout], [], [], 0.2)[0]:
                line = process.stdout.readline()
                if line:
                    return line.strip()
                raise RunError(self._why(process, name))
            for number, server in enumerate(self.processes):
                if server.poll() is not None:
                    raise RunError(f"server {number} of the striped store has ended: start again")
        raise RunError(f"{name} of the striped store did not answer within {seconds:g} s")

    def _why(self, process: subprocess.Popen[str], name: str) -> str:
        for number, server in enumerate(self.processes):
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(0.2)
                return f"server {number} of the striped store has ended: start again"
        said = process.stderr.read().strip() if process.stderr is not None else ""
        return f"{name} of the striped store failed: {said or process.wait()}"


def _tell(client: subprocess.Popen[str], line: str) -> None:
    assert client.stdin is not None
    # A process that has ended takes no line. Reading its answer says why it has ended.
    with contextlib.suppress(BrokenPipeError):
        client.stdin.write(line + "\n")
        client.stdin.flush()


def _write_plan(path: Path, plan: Sequence[ProcessRequests]) -> None:
    def column(name: str) -> npt.NDArray[Any]:
        return np.concatenate([getattr(each, name) for each in plan])

    starts = np.concatenate([[0], np.cumsum([len(each.nbytes) for each in plan])])
    names = ("servers", "nbytes", "writes", "objects", "offsets")
    columns: dict[str, Any] = {name: column(name) for name in names}
    with path.open("wb") as stream:
        np.savez(stream, starts=starts, **columns)

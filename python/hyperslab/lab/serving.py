"""Real file servers that are started and stopped here: nginx, S3-compatible servers, and a network with a delay."""

from __future__ import annotations

import contextlib
import http.client
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hyperslab.errors import MissingLibrary, TrialFailed
from hyperslab.needed import missing

ACCESS, SECRET = "hyperslab", "of no worth"  # what our own S3-compatible servers ask for
USERS_FILE = "users"  # in the folder of an nginx: who may read what is below /private/
_STARTS_WITHIN_SECONDS = 120.0  # on a busy machine; a server that ends is noticed at once
# Servers bind later than the port is chosen: from these, the system takes none for a connection in between.
_PORTS = range(20_000, 32_000)
_ALL_LOGGED = "/.hyperslab-all-logged"


@contextlib.contextmanager
def server_port() -> Iterator[int]:
    """A port of this machine at which nobody listens, and which no other process of ours gets in the meantime."""
    for _ in range(100):
        port = secrets.choice(_PORTS)
        reserved = _reserve(port)
        if reserved is not None:
            with reserved:
                yield port
            return
    raise TrialFailed(f"no port from {_PORTS.start} to {_PORTS.stop - 1} is free")


def _reserve(port: int) -> socket.socket | None:
    """A socket that keeps others of ours from a free port: a server binds its port later than it is chosen."""
    reserved = socket.socket(socket.AF_UNIX)
    try:
        reserved.bind(f"\0hyperslab port {port}")  # an abstract name leaves no file behind
        with socket.socket() as bound:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
            bound.bind(("127.0.0.1", port))
    except OSError:
        reserved.close()
        return None
    return reserved


@contextlib.contextmanager
def running(command: Sequence[str | Path], port: int) -> Iterator[None]:
    """Run a server as a process. The context begins when it answers at `port`."""
    words = [str(word) for word in command]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        try:
            _wait_for(port, process, errors)
            yield
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_for(port: int, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
    begun = time.monotonic()
    while time.monotonic() - begun < _STARTS_WITHIN_SECONDS and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    errors.seek(0)
    said = errors.read().decode(errors="replace").strip().splitlines()[-1:]
    ended = "" if process.returncode is None else f"; it ended with status {process.returncode}"
    raise TrialFailed(f"{process.args!r} does not answer at port {port}{ended}{''.join(f': {one}' for one in said)}")


@dataclass(frozen=True)
class Nginx:
    """A web server with range requests for the files below a folder. Its log records every request."""

    port: int
    log: Path

    @property
    def url(self) -> str:
        """The URL of the folder."""
        return f"http://127.0.0.1:{self.port}"

    def requests(self) -> list[tuple[int, int]]:
        """The status and body bytes of every request so far."""
        # It writes the log after the answer, but before it answers the next request: it has one process and no threads.
        asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_STARTS_WITHIN_SECONDS)
        with contextlib.closing(asked):
            asked.request("GET", _ALL_LOGGED)
            asked.getresponse().read()
        return [(int(status), int(sent)) for status, sent in re.findall(r"^(\d+) (\d+)$", self.log.read_text(), re.M)]


_CONFIGURATION = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 2048; }}
http {{
  log_format counts '$status $body_bytes_sent';
  access_log {folder}/access.log counts;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  sendfile on; tcp_nodelay on; keepalive_requests 100000;
  server {{
    listen 127.0.0.1:{port} backlog=512;
    root {root};
    location = {all_logged} {{ access_log off; return 204; }}
    location /private/ {{ alias {root}/; auth_basic x; auth_basic_user_file {folder}/users; }}
  }}
}}
"""


@contextlib.contextmanager
def nginx(folder: Path, root: Path) -> Iterator[Nginx]:
    """Run nginx with its log and temporary files in `folder`, which is created.

    Raises MissingLibrary if not installed.
    """
    program = _program("nginx")
    folder.mkdir(exist_ok=True)
    users = folder / USERS_FILE
    users.touch()
    with server_port() as port:
        (folder / "nginx.conf").write_text(
            _CONFIGURATION.format(folder=folder, root=root, port=port, all_logged=_ALL_LOGGED)
        )
        with running([program, "-c", folder / "nginx.conf", "-e", folder / "error.log"], port):
            yield Nginx(port, folder / "access.log")


@contextlib.contextmanager
def moto() -> Iterator[str]:
    """Run moto's S3, for tests rather than measurements, and yield its URL."""
    _import_moto()
    moto = [sys.executable, "-P", "-m", "moto.server", "-H", "127.0.0.1", "-p"]
    with server_port() as port, running([*moto, str(port)], port):
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def versitygw(folder: Path) -> Iterator[str]:
    """Run Versity's gateway, which serves folders below `folder` as S3 buckets, and yield its URL."""
    program = _program("versitygw")
    folder.mkdir(exist_ok=True)
    with server_port() as port:
        said = ["--access", ACCESS, "--secret", SECRET, "--port", f"127.0.0.1:{port}", "--quiet"]
        with running([program, *said, "posix", folder], port):
            yield f"http://127.0.0.1:{port}"


def absent(server: str) -> str | None:
    """Why a server cannot be started on this machine, or None if it can."""
    try:
        if server == "moto":
            _import_moto()
        else:
            _program(server)
    except MissingLibrary as missing:
        return str(missing)
    return None


_PROGRAMS = {
    "nginx": ("/usr/sbin", "apt-get install nginx-light"),
    "versitygw": (str(Path.home() / "go" / "bin"), "go install github.com/versity/versitygw/cmd/versitygw@v1.8.0"),
}


def _program(name: str) -> str:
    """The path of a server's program, on PATH or where its installer puts it."""
    beside, advice = _PROGRAMS[name]
    executable = shutil.which(name) or shutil.which(name, path=beside)
    if executable is None:
        raise MissingLibrary(f"{name} is not installed: {advice}")
    return executable


def _import_moto() -> None:
    try:
        import moto.server  # noqa: F401 - only to see whether it is installed
    except ImportError as error:
        raise missing("moto") from error


class Far:
    """A delayed connection to a server's port: `seconds` each way, by as many new ports as you ask for."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._addresses = (f"127.0.{high}.{low}" for high in range(1, 255) for low in range(1, 255))

    def port(self) -> int:
        """A new port: no connection to it is open, and no client knows how fast it is."""
        return self._opened("127.0.0.1", 0)

    def address(self) -> str:
        """An address at HTTP's default port, for clients that cannot use another one. It needs root."""
        address = next(self._addresses)
        self._opened(address, 80)
        return address

    def _opened(self, address: str, port: int) -> int:
        assert self._process.stdin
        assert self._process.stdout
        print(address, port, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise TrialFailed(f"the delaying proxy ended with {self._process.wait()}")
        return int(answer)


@contextlib.contextmanager
def far(port: int, seconds: float) -> Iterator[Far]:
    """Run a delaying proxy in front of a server's port, as a process."""
    command = [sys.executable, "-m", "hyperslab.lab.delaying", str(port), str(seconds)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Far(process)
    finally:
        assert process.stdin
        process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()

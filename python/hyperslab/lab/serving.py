"""Real servers for files, started here and ended here: nginx, S3-compatible ones, and a network that takes its time."""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hyperslab.errors import MissingLibrary, TrialFailed

ACCESS, SECRET = "hyperslab", "of no worth"  # what our own S3-compatible servers want to know
USERS_FILE = "users"  # of the folder an nginx runs in: who may read what is below /private/
_STARTS_WITHIN_SECONDS = 20.0


def free_port() -> int:
    """A port that nobody listens at now."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


@contextlib.contextmanager
def running(command: Sequence[str | Path], port: int) -> Iterator[None]:
    """A server as a process of its own, from when it answers at `port`."""
    process = subprocess.Popen(
        [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(port, process)
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    begun = time.monotonic()
    while time.monotonic() - begun < _STARTS_WITHIN_SECONDS and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise TrialFailed(f"{process.args!r} does not answer at port {port}")


@dataclass(frozen=True)
class Nginx:
    """A web server with ranges, of the files below a folder; what it saw is in its log."""

    port: int
    log: Path

    @property
    def url(self) -> str:
        """Where the folder is."""
        return f"http://127.0.0.1:{self.port}"

    def requests(self) -> list[tuple[int, int]]:
        """Status and body bytes of every request so far."""
        time.sleep(0.2)  # the log is written after the answer
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
    location /private/ {{ alias {root}/; auth_basic x; auth_basic_user_file {folder}/users; }}
  }}
}}
"""


@contextlib.contextmanager
def nginx(folder: Path, root: Path) -> Iterator[Nginx]:
    """nginx with its log and its own files in `folder`, which is made; raises MissingLibrary if it is not installed."""
    program = _program("nginx")
    folder.mkdir(exist_ok=True)
    users = folder / USERS_FILE
    users.touch()
    port = free_port()
    (folder / "nginx.conf").write_text(_CONFIGURATION.format(folder=folder, root=root, port=port))
    with running([program, "-c", folder / "nginx.conf", "-e", folder / "error.log"], port):
        yield Nginx(port, folder / "access.log")


@contextlib.contextmanager
def moto() -> Iterator[str]:
    """moto's S3, for tests rather than for measuring: gives its URL."""
    _import_moto()
    port = free_port()
    with running([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], port):
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def versitygw(folder: Path) -> Iterator[str]:
    """Versity's gateway, which serves folders below `folder` as buckets of S3: gives its URL."""
    program = _program("versitygw")
    folder.mkdir(exist_ok=True)
    port = free_port()
    said = ["--access", ACCESS, "--secret", SECRET, "--port", f"127.0.0.1:{port}", "--quiet"]
    with running([program, *said, "posix", folder], port):
        yield f"http://127.0.0.1:{port}"


def absent(server: str) -> str | None:
    """Why a server cannot be started here; None if it can."""
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
    """Where a server's program is; beside PATH, where its installer puts it."""
    beside, advice = _PROGRAMS[name]
    found = shutil.which(name) or shutil.which(name, path=beside)
    if found is None:
        raise MissingLibrary(f"{name} is not installed: {advice}")
    return found


def _import_moto() -> None:
    try:
        import moto.server  # noqa: F401 - that it is there
    except ImportError as error:
        raise MissingLibrary(f"moto is not installed ({error}): pip install 'hyperslab[dev]'") from error


class Far:
    """The way to a server's port that takes `seconds` each way, by as many new ports as are asked for."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._addresses = (f"127.0.{high}.{low}" for high in range(1, 255) for low in range(1, 255))

    def port(self) -> int:
        """A port where nobody has been: no connection to it is open, no host's pace known."""
        return self._opened("127.0.0.1", 0)

    def address(self) -> str:
        """The same as an address whose port is HTTP's usual one, for clients that know no other; root may have it."""
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
    """A delaying proxy before a server's port, as a process of its own."""
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

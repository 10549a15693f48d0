"""Servers for the tests: a real nginx, a real S3-compatible server, and a proxy that is slow or fails on request."""

from __future__ import annotations

import base64
import contextlib
import http.client
import re
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, TypeVar

import pytest

from hyperslab.errors import MissingLibrary
from hyperslab.lab import serving
from hyperslab.lab.serving import Nginx, server_port

__all__ = ["Behaviour", "Nginx", "Proxy", "basic", "moto", "nginx", "server_port"]
T = TypeVar("T")

USER, PASSWORD = "reader", "open sesame"


@contextlib.contextmanager
def nginx(folder: Path, root: Path) -> Iterator[Nginx]:
    """Start nginx; everything under `/private/` needs user and password. Skip the test if nginx is not installed."""
    folder.mkdir()
    (folder / serving.USERS_FILE).write_text(f"{USER}:{{PLAIN}}{PASSWORD}\n")
    with _or_skipped(serving.nginx(folder, root)) as running:
        yield running


@contextlib.contextmanager
def moto() -> Iterator[str]:
    """Start an S3-compatible server; yield its URL."""
    with _or_skipped(serving.moto()) as url:
        yield url


@contextlib.contextmanager
def _or_skipped(server: contextlib.AbstractContextManager[T]) -> Iterator[T]:
    with contextlib.ExitStack() as stack:
        try:
            running = stack.enter_context(server)
        except MissingLibrary as missing:
            pytest.skip(str(missing))
        yield running


@dataclass
class Behaviour:
    """What the proxy does with the next requests."""

    latency_seconds: float = 0.0
    faults: list[str] = field(default_factory=list)  # one for each request; "ok" passes a request on
    always: str | None = None  # to every request
    retry_after: int | str | None = None
    after: int = 0  # requests that pass before `always`


class Proxy:
    """Between reader and server: waits, fails and counts."""

    def __init__(self, upstream_port: int) -> None:
        self.behaviour = Behaviour()
        self.upstream_port = upstream_port
        self.seen: list[dict[str, str]] = []
        self.sent_nbytes = 0
        self.lock = Lock()
        self.released = Event()  # lets go what stalls
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                with contextlib.suppress(ConnectionError):
                    proxy.answer(self)

            def log_message(self, *arguments: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    def fault(self, headers: dict[str, str]) -> str:
        with self.lock:
            self.seen.append(headers)
            if len(self.seen) <= self.behaviour.after:
                return "ok"
            if self.behaviour.faults:
                return self.behaviour.faults.pop(0)
            return self.behaviour.always or "ok"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        fault = self.fault(dict(request.headers))
        time.sleep(self.behaviour.latency_seconds)
        if fault.isdigit():
            self.refuse(request, int(fault))
            return
        headers = {name: value for name, value in request.headers.items() if name != "Host"}
        if fault == "unconditional":  # it neither looks at the condition nor says which file it sends
            headers = {name: value for name, value in headers.items() if name.lower() != "if-match"}
        if fault == "whole":
            headers = {name: value for name, value in headers.items() if name.lower() != "range"}
        upstream = http.client.HTTPConnection("127.0.0.1", self.upstream_port, timeout=30)
        upstream.request("GET", request.path, headers=headers)
        answer = upstream.getresponse()
        body = answer.read()
        upstream.close()
        self.send(request, answer, body, fault)

    def refuse(self, request: BaseHTTPRequestHandler, status: int) -> None:
        request.send_response(status)
        request.send_header("Content-Length", "0")
        if self.behaviour.retry_after is not None:
            request.send_header("Retry-After", str(self.behaviour.retry_after))
        request.end_headers()

    def send(self, request: BaseHTTPRequestHandler, answer: Any, body: bytes, fault: str) -> None:
        if fault == "close":
            request.close_connection = True
            request.connection.close()
            return
        request.send_response(answer.status)
        for name, value in changed(dict(answer.getheaders()), fault).items():
            request.send_header(name, value)
        if fault == "chunked":
            request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        self.send_body(request, body, fault)
        with self.lock:
            self.sent_nbytes += len(body)

    def send_body(self, request: BaseHTTPRequestHandler, body: bytes, fault: str) -> None:
        if fault == "short":  # the announced length, but only a part of the body, then the connection ends
            request.wfile.write(body[: len(body) // 2])
            request.close_connection = True
        elif fault == "reset":
            request.wfile.write(body[: len(body) // 2])
            request.wfile.flush()
            request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            request.connection.close()
            request.close_connection = True
        elif fault == "stall":
            request.wfile.write(body[: len(body) // 2])
            request.wfile.flush()
            self.released.wait(250)
        elif fault == "trickle":
            for place in range(len(body)):
                request.wfile.write(body[place : place + 1])
                request.wfile.flush()
                time.sleep(0.2)
        elif fault == "chunked":
            half = body[: len(body) // 2]  # ends properly, but too early
            request.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(half), half))
        else:
            request.wfile.write(body)


def changed(headers: dict[str, str], fault: str) -> dict[str, str]:
    """The headers of an answer, changed to be wrong."""
    if fault == "etag":
        headers["ETag"] = '"another"'
    elif fault == "range":
        first = re.sub(r"bytes (\d+)-(\d+)", lambda found: f"bytes {int(found[1]) + 1}-{int(found[2]) + 1}",
                       headers.get("Content-Range", ""))  # fmt: skip
        headers["Content-Range"] = first
    elif fault == "sizeless":
        headers["Content-Range"] = re.sub(r"/\d+", "/*", headers.get("Content-Range", ""))
    elif fault == "gzip":
        headers["Content-Encoding"] = "gzip"
    elif fault == "chunked":
        headers.pop("Content-Length", None)
    without = {
        "nameless": ("ETag", "Last-Modified"),
        "unconditional": ("ETag", "Last-Modified"),
        "tagless": ("ETag",),
        "timeless": ("Last-Modified",),
    }
    return {name: value for name, value in headers.items() if name not in without.get(fault, ())}


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

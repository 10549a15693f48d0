"""A server that records every header that it receives, and redirects as a test asks; with TLS where that matters."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import re
import ssl
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest


class Leading:
    """Serves ranges of one file at every path, except for paths that it answers with a redirect or a status."""

    def __init__(self, body: bytes, certificate: Path | None = None, address: str = "127.0.0.1") -> None:
        self.body = body
        self.bodies: dict[str, bytes] = {}  # by path with query, where it is another file
        self.leads: dict[str, str] = {}  # from a path to any URL
        self.status = 302
        self.login: str | None = None  # what must be in Authorization
        self.refusals: list[tuple[int, dict[str, str]]] = []  # of the next requests: status and headers
        self.seen: list[tuple[str, dict[str, str]]] = []  # path with query, headers by lower-case names
        leading = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                with contextlib.suppress(ConnectionError):
                    leading.answer(self)

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer((address, 0), Handler)
        self.server.daemon_threads = True
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.host = f"{address}:{self.server.server_address[1]}"
        self.url = f"{'http' if certificate is None else 'https'}://{self.host}"
        Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.seen.append((request.path, headers))
        path = request.path.partition("?")[0]
        if self.refusals:
            status, said = self.refusals.pop(0)
            self.send(request, status, said)
        elif path in self.leads:
            self.send(request, self.status, {"Location": self.leads[path]})
        elif self.login is not None and headers.get("authorization") != self.login:
            self.send(request, 401, {"WWW-Authenticate": "Basic"})
        else:
            first, last = map(int, re.findall(r"\d+", headers["range"]))
            body = self.bodies.get(request.path, self.body)
            part = body[first : last + 1]
            said = f"bytes {first}-{first + len(part) - 1}/{len(body)}"
            self.send(request, 206, {"Content-Range": said, "ETag": '"one"'}, part)

    def send(self, request: BaseHTTPRequestHandler, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        request.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)


@contextlib.contextmanager
def each() -> Iterator[Callable[..., Leading]]:
    """Yield a function that starts servers; they stop at the end of the context."""
    with contextlib.ExitStack() as stack:

        def make(*arguments: object) -> Leading:
            made = Leading(*arguments)
            stack.callback(made.close)
            return made

        yield make


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 with its key, and the certificate of the authority that signed it."""
    pytest.importorskip("cryptography", reason="not installed: pip install 'hyperslab[dev]'")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    form = serialization.Encoding.PEM
    authority, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])

    def signed(name: str, of: ec.EllipticCurvePrivateKey, is_authority: bool) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        named = x509.CertificateBuilder().subject_name(_named(name)).issuer_name(_named("authority"))
        dated = named.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(
            now + datetime.timedelta(days=1)
        )
        constraints = x509.BasicConstraints(ca=is_authority, path_length=None)
        made = dated.public_key(of.public_key()).serial_number(x509.random_serial_number())
        made = made.add_extension(constraints, critical=True).add_extension(address, critical=False)
        return made.sign(authority, hashes.SHA256()).public_bytes(form)

    secret = key.private_bytes(form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    server, trusted = folder / "server.pem", folder / "authority.pem"
    server.write_bytes(signed("server", key, False) + secret)
    trusted.write_bytes(signed("authority", authority, True))
    return server, trusted


def _named(name: str) -> Any:
    from cryptography import x509

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])

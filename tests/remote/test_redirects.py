"""Redirects: the data arrive, and nothing that was meant for the first server is sent to the next."""

from __future__ import annotations

import json
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import leading
import pytest
import servers

import hyperslab as hs
from hyperslab.errors import NotAllowed, RemoteError

SECRETS = {
    "token": "tell nobody",
    "headers": {"X-Api-Key": "hunter2", "Cookie": "session=hunter3", "x-amz-security-token": "hunter4"},
}
QUERY = "X-Amz-Signature=hunter5&sig=hunter6"
# Headers that another server may receive: its own name, the range, and the name of our program.
HARMLESS = {"host", "range", "if-match", "accept", "user-agent", "accept-encoding", "connection"}


@pytest.fixture
def make() -> Iterator[Callable[..., leading.Leading]]:
    with leading.each() as make:
        yield make


@pytest.fixture
def body(root: Path) -> bytes:
    return (root / "ocean.h5").read_bytes()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_another_server_is_told_nothing(make, body: bytes, status: int) -> None:
    first, second = make(body), make(body)
    first.leads, first.status = {"/ocean.h5": f"{second.url}/copy.h5?v=1"}, status
    opened = hs.open(f"{first.url}/ocean.h5?{QUERY}", storage_options=SECRETS)
    assert opened["group/deep"][1, 1] == 5.0
    assert opened["deflated"].read((slice(1, 60, 7), slice(0, 4))).shape[0] == 9
    assert {path for path, _ in second.seen} == {"/copy.h5?v=1"}
    for path, headers in second.seen:
        assert headers.keys() <= HARMLESS
        assert "hunter" not in f"{path}{headers}"
        assert "tell nobody" not in str(headers)
    for path, headers in first.seen:  # which received everything that it should
        assert (headers["authorization"], headers["x-api-key"]) == ("Bearer tell nobody", "hunter2")
        assert QUERY in path
        assert "referer" not in headers


def test_the_same_server_is_told_what_it_was(make, body: bytes) -> None:
    first = make(body)
    first.leads = {"/ocean.h5": "/elsewhere/copy.h5"}
    assert hs.open(f"{first.url}/ocean.h5?{QUERY}", storage_options=SECRETS)["group/deep"][1, 1] == 5.0
    led = [headers for path, headers in first.seen if path == "/elsewhere/copy.h5"]
    assert led
    assert all(headers["x-api-key"] == "hunter2" and "referer" not in headers for headers in led)


def test_what_was_left_behind_does_not_come_back(make, body: bytes) -> None:
    first, second = make(body), make(body)
    first.leads = {"/ocean.h5": f"{second.url}/back"}
    second.leads = {"/back": f"{first.url}/copy.h5"}
    assert hs.open(f"{first.url}/ocean.h5", storage_options=SECRETS)["group/deep"][1, 1] == 5.0
    last = [headers for path, headers in first.seen if path == "/copy.h5"]
    assert last
    assert all(headers.keys() <= HARMLESS for headers in last)


def test_a_login_in_a_location_is_not_used(make, body: bytes) -> None:
    first, second = make(body), make(body)
    first.leads = {"/ocean.h5": f"http://eve:hunter2@{second.host}/copy.h5#part"}
    hs.open(f"{first.url}/ocean.h5")
    assert all(path == "/copy.h5" and "authorization" not in headers for path, headers in second.seen)


def test_redirects_are_counted(make, body: bytes) -> None:
    first, second = make(body), make(body)
    first.leads = {"/ocean.h5": f"{second.url}/copy.h5"}
    before = hs.stats()
    hs.open(f"{first.url}/ocean.h5")["deflated"][3:30]
    counts = hs.stats()
    assert counts["hosts"][first.host]["redirect_count"] == len(first.seen) == len(second.seen)
    assert counts["hosts"][first.host]["request_count"] == len(first.seen)
    assert counts["hosts"][second.host]["request_count"] == len(second.seen)
    assert counts["hosts"][second.host]["redirect_count"] == 0
    assert counts["redirect_count"] - before["redirect_count"] == len(first.seen)
    assert counts["request_count"] - before["request_count"] == len(first.seen) + len(second.seen)


def test_circles_end_at_once(make, body: bytes) -> None:
    first, second = make(body), make(body)
    first.leads = {"/ocean.h5": f"{second.url}/x", "/self": "/self?"}
    second.leads = {"/x": f"{first.url}/ocean.h5"}
    with pytest.raises(RemoteError, match=r"HTTP 302 Found: its redirects go round in a circle.*open the URL"):
        hs.open(f"{first.url}/ocean.h5", storage_options={"concurrency": 1})
    assert (len(first.seen), len(second.seen)) == (1, 1)
    assert hs.stats()["hosts"][first.host]["redirect_count"] == 1


def test_ever_new_urls_end_soon(make, body: bytes) -> None:
    first = make(body)
    first.leads = {f"/{step}": f"/{step + 1}" for step in range(100)}
    with pytest.raises(RemoteError, match="it redirects more than 10 times"):
        hs.open(f"{first.url}/0", storage_options={"concurrency": 1})
    assert len(first.seen) == 11


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1:70/_", "//"])
def test_only_the_web_is_led_to(make, body: bytes, location: str) -> None:
    first = make(body)
    first.leads = {"/ocean.h5": location}
    with pytest.raises(RemoteError, match=r"it redirects (from .* to a URL that starts|to something)"):
        hs.open(f"{first.url}/ocean.h5", storage_options={"concurrency": 1})
    assert len(first.seen) == 1


def test_nothing_far_leads_onto_this_machine(make, body: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:  # nothing is sent
        asked.connect(("192.0.2.1", 9))
        address = asked.getsockname()[0]
    if address.startswith("127."):
        pytest.skip("this machine has no address beside its loopback")
    first, second = make(body, None, address), make(body)
    first.leads = {"/ocean.h5": f"{second.url}/latest/meta-data", "/near.h5": f"{first.url}/copy.h5"}
    assert hs.open(f"{first.url}/near.h5")["group/deep"][1, 1] == 5.0
    with pytest.raises(RemoteError, match="an address of this machine or of its cloud"):
        hs.open(f"{first.url}/ocean.h5")
    assert not second.seen


def test_signed_requests_are_not_led_elsewhere(make, body: bytes) -> None:
    first, second = make(body), make(body)
    first.leads = {"/bucket/ocean.h5": f"{second.url}/copy.h5"}
    options = {"key": "access", "secret": "hunter2", "token": "hunter3", "endpoint_url": first.url}
    with pytest.raises(RemoteError, match=r"HTTP 302 Found.*the right region"):
        hs.open("s3://bucket/ocean.h5", storage_options=options)
    first.refusals = [(301, {"x-amz-bucket-region": "eu-north-1"})] * 8
    with pytest.raises(RemoteError, match="the bucket is in the region eu-north-1"):
        hs.open("s3://bucket/ocean.h5", storage_options=options)
    assert not second.seen


SCRIPT = """
import json, sys
import hyperslab as hs
from hyperslab.errors import NotAllowed, RemoteError
for url in sys.argv[2:]:
    try:
        print(hs.open(url, storage_options=json.loads(sys.argv[1]))["group/deep"][1, 1])
    except RemoteError as error:
        print(error)
"""


def test_encryption_is_not_left(make, body: bytes, tmp_path: Path) -> None:
    pem, trusted = leading.certificate(tmp_path)
    first, second, plain = make(body, pem), make(body, pem), make(body)
    first.leads = {"/other.h5": f"{second.url}/copy.h5", "/plain.h5": f"{plain.url}/copy.h5"}
    urls = [f"{first.url}/{name}.h5?{QUERY}" for name in ("ocean", "other", "plain")]
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(SECRETS), *urls],
        env={**os.environ, "SSL_CERT_FILE": str(trusted)},
        capture_output=True,
        text=True,
        check=True,
    )
    whole, other, refused = ran.stdout.splitlines()
    assert (whole, other) == ("5.0", "5.0")
    assert f"from {first.url} to {plain.url}, where anyone on the way can read" in refused
    assert "hunter" not in refused
    assert not plain.seen
    assert second.seen
    assert all(headers.keys() <= HARMLESS for _, headers in second.seen)


def test_only_allowed_servers_are_led_to(make, body: bytes, tmp_path: Path) -> None:
    first, second = make(body), make(body)
    first.leads = {"/ocean.h5": f"{second.url}/data/copy.h5?v=1", "/near.h5": "/elsewhere/ocean.h5"}
    for allowed in (None, [second.url], ["/data", f"{second.url}/data/"]):
        assert hs.open(f"{first.url}/ocean.h5", allowed=allowed)["group/deep"][1, 1] == 5.0
    second.seen.clear()
    for allowed in ((), [first.url], ["/data"], [f"{second.url}/dat"], [f"{second.url}/data/copy"]):
        with pytest.raises(NotAllowed, match=rf"ocean.h5: its server redirects to {second.url}, which is not"):
            hs.open(f"{first.url}/ocean.h5", allowed=allowed)
        # the server itself may forward whatever it wants
        assert hs.open(f"{first.url}/near.h5", allowed=allowed)["group/deep"][1, 1] == 5.0
    refs = tmp_path / "refs.json"
    array = {"zarr_format": 2, "shape": [8], "chunks": [8], "dtype": "|u1", "compressor": None, "filters": None}
    keys = {".zgroup": '{"zarr_format": 2}', "x/.zarray": json.dumps(array | {"fill_value": None, "order": "C"})}
    refs.write_text(json.dumps({"version": 1, "refs": keys | {"x/0": [f"{first.url}/ocean.h5", 0, 8]}}))
    with pytest.raises(NotAllowed, match="redirects"):
        hs.open(refs, allowed=[first.url])["x"][...]
    again = pickle.loads(pickle.dumps(hs.open(refs, allowed=[first.url])["x"]))
    with pytest.raises(NotAllowed, match="redirects"):
        again[...]
    with pytest.raises(NotAllowed, match="redirects"):
        hs.open([f"{first.url}/near.h5", f"{first.url}/ocean.h5"], concat=0, allowed=())
    with pytest.raises(NotAllowed, match="redirects"):
        hs.open(f"{first.url}/ocean.h5", version=0, allowed=())
    assert not second.seen
    assert bytes(hs.open(refs, allowed=[first.url, second.url])["x"][...]) == body[:8]


def test_back_to_a_server_that_was_left(make, body: bytes) -> None:
    first, second = make(body), make(body)
    first.leads = {"/ocean.h5": f"{second.url}/back"}
    second.leads = {"/back": f"{first.url}/copy.h5"}
    assert hs.open(f"{first.url}/ocean.h5", allowed=[second.url])["group/deep"][1, 1] == 5.0


def test_a_wrong_password_is_sent_once(make, body: bytes) -> None:
    first = make(body)
    first.login = servers.basic("reader", "right")
    with pytest.raises(RemoteError, match="HTTP 401"):
        hs.open(f"{first.url}/ocean.h5", storage_options={"username": "reader", "password": "wrong"})
    assert len(first.seen) == 1
    right = {"username": "reader", "password": "right"}
    assert hs.open(f"{first.url}/ocean.h5", storage_options=right)["group/deep"][1, 1] == 5.0


def test_a_password_is_tried_again_where_nothing_was_said_of_it(make, body: bytes) -> None:
    first = make(body)
    first.login = servers.basic("reader", "right")
    first.refusals = [(503, {}), (503, {})]
    right = {"username": "reader", "password": "right"}
    assert hs.open(f"{first.url}/ocean.h5", storage_options=right)["group/deep"][1, 1] == 5.0

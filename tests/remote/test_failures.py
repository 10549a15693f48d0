"""Servers that fail: the right data or a named error, never wrong data, never a hang."""

from __future__ import annotations

import time
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path

import h5py
import numpy as np
import pytest
import servers

import hyperslab as hs
from hyperslab.errors import FileChanged, RemoteError

PASSING = ["500", "503", "429", "408", "close", "short", "reset", "stall", "range", "chunked"]
LASTING = {
    "403": "HTTP 403.*credentials",
    "418": "HTTP 418",
    "whole": "HTTP 200 OK.*ignores byte ranges",
    "sizeless": "does not say which bytes",
    "gzip": "compresses what it sends",
}
# One request at a time, so that the test knows which one fails.
ALONE = {"patience": 60.0, "concurrency": 1}
STALL_SECONDS = 3.0  # after which an answer that stalls is given up; longer than a busy machine lets us wait


def options(fault: str) -> dict[str, float]:
    """How long to wait: briefly only for a server that stalls, as any other answer must not be given up."""
    return {**ALONE, "timeout": STALL_SECONDS} if fault == "stall" else ALONE


def soon(is_so: Callable[[], bool]) -> bool:
    """Whether it is so, at the latest in a minute: the proxy notes a request when its thread gets to it."""
    until = time.monotonic() + 60
    while not is_so() and time.monotonic() < until:
        time.sleep(0.02)
    return is_so()


@pytest.mark.parametrize("fault", PASSING)
def test_what_passes_is_tried_again(proxy: servers.Proxy, root: Path, fault: str) -> None:
    proxy.behaviour.faults = [fault]
    before = hs.stats()
    array = hs.open(f"{proxy.url}/ocean.h5", storage_options=options(fault))["deflated"]
    assert hs.stats()["retry_count"] - before["retry_count"] == 1
    proxy.behaviour.faults = [fault, "ok", fault]
    with h5py.File(root / "ocean.h5") as local:
        np.testing.assert_array_equal(array[...], local["deflated"][...])
    assert hs.stats()["retry_count"] - before["retry_count"] == 3
    assert soon(lambda: hs.stats()["request_count"] - before["request_count"] == len(proxy.seen))


@pytest.mark.parametrize("fault", PASSING)
def test_what_does_not_pass_is_named(proxy: servers.Proxy, fault: str) -> None:
    array = hs.open(f"{proxy.url}/ocean.h5", storage_options={**options(fault), "attempts": 2})["deflated"]
    proxy.behaviour.always = fault
    with pytest.raises(RemoteError, match=r"/ocean\.h5 at offset \d+: .*given up after 2 attempts"):
        array[...]


@pytest.mark.parametrize("fault", LASTING)
def test_what_will_not_pass_is_named_at_once(proxy: servers.Proxy, fault: str) -> None:
    proxy.behaviour.always = fault
    with pytest.raises(RemoteError, match=LASTING[fault]):
        hs.open(f"{proxy.url}/ocean.h5", storage_options=ALONE)
    assert len(proxy.seen) == 1


def test_a_body_that_trickles_is_given_up(proxy: servers.Proxy) -> None:
    proxy.behaviour.always = "trickle"
    with pytest.raises(RemoteError, match="bytes a second"):
        hs.open(f"{proxy.url}/ocean.h5", storage_options={"timeout": 20.0, "patience": 3.0, "attempts": 2})


def test_the_server_says_when_to_come_back(proxy: servers.Proxy) -> None:
    proxy.behaviour.faults, proxy.behaviour.retry_after = ["429"], 2
    begun = time.monotonic()
    hs.open(f"{proxy.url}/ocean.h5", storage_options={"concurrency": 1})
    assert time.monotonic() - begun >= 2


def test_the_server_says_until_when_to_wait(proxy: servers.Proxy) -> None:
    begun = time.monotonic()  # before the date is made, which may be long before the request
    proxy.behaviour.faults, proxy.behaviour.retry_after = ["429"], formatdate(time.time() + 3, usegmt=True)
    hs.open(f"{proxy.url}/ocean.h5", storage_options={"concurrency": 1})
    assert time.monotonic() - begun >= 1.5  # dates are in whole seconds


@pytest.mark.parametrize("wait", [3600, 10**30, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_nobody_waits_longer_than_patience(proxy: servers.Proxy, wait: int | str) -> None:
    proxy.behaviour.always, proxy.behaviour.retry_after = "503", wait
    with pytest.raises(RemoteError, match=r"HTTP 503.*it asks us to wait \d+ s; given up after 1 attempts"):
        hs.open(f"{proxy.url}/ocean.h5", storage_options={"concurrency": 1})
    assert len(proxy.seen) == 1


@pytest.mark.parametrize("fault", PASSING)
def test_the_first_thing_that_a_host_is_asked_makes_connections(proxy: servers.Proxy, root: Path, fault: str) -> None:
    (root / "long.h5").write_bytes((root / "ocean.h5").read_bytes() + bytes(1 << 20))
    proxy.behaviour.faults = ["ok"] * 7 + [
        fault
    ]  # the first part is retried; missing bytes of the others are requested when they are needed
    # An answer that is given up is requested again and counted: only one that stalls may be.
    counts, waiting = [], {"timeout": STALL_SECONDS} if fault == "stall" else {}
    for _ in range(4):
        seen = len(proxy.seen)
        opened = hs.open(f"{proxy.url}/long.h5", storage_options=waiting)
        counts.append(len(proxy.seen) - seen)
    with h5py.File(root / "ocean.h5") as local:
        np.testing.assert_array_equal(opened["deflated"][...], local["deflated"][...])
    assert counts[0] - min(counts[1:]) >= 7, counts


def test_nobody_there_is_named(proxy: servers.Proxy) -> None:
    with servers.server_port() as port, pytest.raises(RemoteError, match="given up after 2 attempts"):
        hs.open(f"http://127.0.0.1:{port}/x.h5", storage_options={"attempts": 2})


@pytest.mark.parametrize("name", ["deflated", "plain", "whole"])
def test_another_etag_is_a_changed_file(proxy: servers.Proxy, name: str) -> None:
    array = hs.open(f"{proxy.url}/ocean.h5")[name]
    proxy.behaviour.faults = ["ok", "etag"]
    with pytest.raises(FileChanged, match="open it again"):
        array[...]


@pytest.mark.parametrize("name", ["deflated", "plain", "whole"])
@pytest.mark.parametrize("fault", ["nameless", "tagless"])
def test_an_identity_that_disappears_is_a_changed_file(proxy: servers.Proxy, name: str, fault: str) -> None:
    array = hs.open(f"{proxy.url}/ocean.h5")[name]
    proxy.behaviour.always = fault
    with pytest.raises(FileChanged, match=r"does not send the ETag or the Last-Modified that it sent before"):
        array[...]


def test_two_files_of_one_length_are_not_mixed(proxy: servers.Proxy, root: Path) -> None:
    """The server stops to say which file it sends, and sends another."""
    (root / "two.h5").write_bytes((root / "ocean.h5").read_bytes())
    array = hs.open(f"{proxy.url}/two.h5", storage_options=ALONE)["whole"]
    (root / "two.h5").write_bytes(bytes((root / "ocean.h5").stat().st_size))
    proxy.seen.clear()
    proxy.behaviour.always = "unconditional"
    with pytest.raises(FileChanged):
        array[...]


@pytest.mark.parametrize("fault", ["nameless", "tagless", "timeless"])
def test_a_server_that_always_says_less_is_read(proxy: servers.Proxy, root: Path, fault: str) -> None:
    proxy.behaviour.always = fault
    array = hs.open(f"{proxy.url}/ocean.h5")["deflated"]
    with h5py.File(root / "ocean.h5") as local:
        np.testing.assert_array_equal(array[...], local["deflated"][...])


def test_an_identity_that_appears_is_no_proof(proxy: servers.Proxy) -> None:
    proxy.behaviour.always = "nameless"
    array = hs.open(f"{proxy.url}/ocean.h5")["deflated"]
    proxy.behaviour.always = None
    with pytest.raises(FileChanged):
        array[...]


def test_a_file_that_is_replaced_is_a_changed_file(server: servers.Nginx, root: Path) -> None:
    (root / "changing.h5").write_bytes((root / "ocean.h5").read_bytes())
    array = hs.open(f"{server.url}/changing.h5")["deflated"]
    time.sleep(1.1)  # nginx's tags are in whole seconds
    (root / "changing.h5").write_bytes((root / "ocean.h5").read_bytes()[::-1])
    with pytest.raises(FileChanged):
        array[...]
    (root / "changing.h5").write_bytes(b"short")
    with pytest.raises(FileChanged):
        array[...]


def test_every_request_carries_the_tag(proxy: servers.Proxy) -> None:
    array = hs.open(f"{proxy.url}/ocean.h5", storage_options={"concurrency": 1})["deflated"]
    array[...]
    first, *others = proxy.seen
    names = [{name.lower() for name in headers} for headers in others]
    assert "If-Match".lower() not in {name.lower() for name in first}
    assert others
    assert all("if-match" in seen for seen in names)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_any_mixture_of_failures_gives_the_right_data(proxy: servers.Proxy, root: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    options = {"timeout": 1.0, "patience": 60.0, "attempts": 20}
    kinds = ["ok", "ok", "ok", "ok", "ok", "500", "503", "close", "short", "reset", "chunked", "range"]
    proxy.behaviour.faults = [str(fault) for fault in random.choice(kinds, 16)]
    array = hs.open(f"{proxy.url}/ocean.h5", storage_options=options)
    with h5py.File(root / "ocean.h5") as local:
        for name in ("deflated", "plain", "whole"):
            np.testing.assert_array_equal(array[name][3:60:2], local[name][3:60:2])


def test_what_cannot_be_fetched_does_not_pass_for_missing(proxy: servers.Proxy, root: Path) -> None:
    with h5py.File(root / "links.h5", "w") as made:
        made["near"] = 1
        made["far"] = h5py.ExternalLink("ocean.h5", "/group")
        made["nowhere"] = h5py.ExternalLink("missing.h5", "/")
    linked = hs.open(f"{proxy.url}/links.h5", storage_options=ALONE)
    proxy.behaviour.always = "403"
    for look in (lambda: linked.groups, lambda: linked.arrays, lambda: "far/deep" in linked):
        with pytest.raises(RemoteError, match="HTTP 403"):
            look()
    proxy.behaviour.always = None
    assert (list(linked.arrays), list(linked.groups)) == (["near"], ["far"])
    assert "far/deep" in linked
    assert "nowhere" in linked
    assert "nowhere/x" not in linked

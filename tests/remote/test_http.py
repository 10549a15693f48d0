"""Files behind a real web server: the same data as on disk, in few requests, all of them counted."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import threading
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import servers

import hyperslab as hs
from hyperslab.errors import NoSuchRemoteFile, RemoteError, UsageError

SELECTIONS = [..., (0, slice(None), 3), (slice(5, 60, 7), slice(10, 90), slice(0, 256, 5)), (63, 127, 255), slice(0, 0)]


def counted(before: dict, name: str) -> int:
    return hs.stats()[name] - before[name]


@pytest.mark.parametrize("name", ["deflated", "plain", "whole", "group/deep"])
def test_arrays_are_what_h5py_reads(server: servers.Nginx, root: Path, name: str) -> None:
    with h5py.File(root / "ocean.h5") as local, hs.open(f"{server.url}/ocean.h5") as far:
        expected = local[name][...]
        np.testing.assert_array_equal(far[name][...], expected)
        for selection in SELECTIONS if expected.ndim == 3 else []:
            np.testing.assert_array_equal(far[name][selection], expected[selection])


def test_text_of_any_length(server: servers.Nginx, root: Path) -> None:
    assert list(hs.open(f"{server.url}/ocean.h5")["names"][...]) == ["a", "bc", "ä" * 300]


def test_a_file_url_is_a_local_path(root: Path) -> None:
    assert hs.open(f"file://{root}/ocean.h5")["group/deep"].shape == (3, 4)


def test_what_is_counted_is_what_the_server_saw(server: servers.Nginx) -> None:
    seen, before = server.requests(), hs.stats()
    far = hs.open(f"{server.url}/ocean.h5")
    assert counted(before, "round_count") <= 8
    far["deflated"][...]
    far["whole"][3:50, ::2]
    requests = server.requests()[len(seen) :]
    assert {status for status, _ in requests} == {206}
    assert counted(before, "request_count") == len(requests)
    assert counted(before, "fetched_nbytes") == sum(sent for _, sent in requests)
    assert counted(before, "retry_count") == 0
    host = hs.stats()["hosts"][f"127.0.0.1:{server.port}"]
    assert host["request_count"] <= hs.stats()["request_count"]


def test_a_missing_file_is_named_at_once(server: servers.Nginx) -> None:
    before = hs.stats()
    with pytest.raises(NoSuchRemoteFile, match=r"nothing at .*/missing\.h5") as raised:
        hs.open(f"{server.url}/missing.h5")
    assert isinstance(raised.value, FileNotFoundError)
    assert counted(before, "request_count") == 1


@pytest.mark.parametrize(
    "options",
    [
        {"username": servers.USER, "password": servers.PASSWORD},
        {"headers": {"Authorization": servers.basic(servers.USER, servers.PASSWORD)}},
        {"client_kwargs": {"auth": (servers.USER, servers.PASSWORD)}},
    ],
)
def test_credentials(server: servers.Nginx, options: dict) -> None:
    far = hs.open(f"{server.url}/private/ocean.h5", storage_options=options)
    assert far["group/deep"][1, 1] == 5.0
    for shown in (repr(far), repr(far["group/deep"]), repr(far._file.location), far.filename):
        assert servers.PASSWORD not in shown
    assert servers.PASSWORD.encode() not in pickle.dumps(far)


def test_credentials_in_a_url_are_used_and_not_shown(server: servers.Nginx) -> None:
    url = f"http://{servers.USER}:{servers.PASSWORD.replace(' ', '%20')}@127.0.0.1:{server.port}/private/ocean.h5?a=b"
    far = hs.open(url)
    assert far.filename == f"{server.url}/private/ocean.h5"
    assert b"sesame" not in pickle.dumps(far)


def test_wrong_credentials_are_named_at_once(server: servers.Nginx) -> None:
    for options in ({}, {"username": servers.USER, "password": "hunter2"}):
        before = hs.stats()
        with pytest.raises(RemoteError, match=r"HTTP 401.*hyperslab\.credentials") as raised:
            hs.open(f"{server.url}/private/ocean.h5?signature=abc", storage_options=options)
        assert counted(before, "request_count") == 1
        assert "hunter2" not in str(raised.value)
        assert "abc" not in str(raised.value)


def test_a_pickle_finds_registered_credentials(server: servers.Nginx) -> None:
    url = f"{server.url}/private/ocean.h5"
    array = hs.open(url, storage_options={"username": servers.USER, "password": servers.PASSWORD})["group/deep"]
    pickled = pickle.dumps(array)
    with pytest.raises(UsageError, match=r"opened with username, password in another process.*credentials"):
        pickle.loads(pickled)
    hs.credentials(f"{server.url}/", username=servers.USER, password=servers.PASSWORD)
    try:
        assert pickle.loads(pickled)[1, 1] == 5.0
    finally:
        hs.credentials(f"{server.url}/")


def test_unknown_options_are_refused_without_their_values(server: servers.Nginx) -> None:
    with pytest.raises(UsageError, match="passwort") as raised:
        hs.open(f"{server.url}/ocean.h5", storage_options={"passwort": "hunter2"})
    assert "hunter2" not in str(raised.value)
    with pytest.raises(UsageError, match="not_an_option"):
        hs.open("s3://bucket/key", storage_options={"not_an_option": "x"})


def in_child(array, expected, queue) -> None:
    queue.put(bool((array[2:30] == expected).all()))


def test_forked_children_read_too(server: servers.Nginx, root: Path) -> None:
    array = hs.open(f"{server.url}/ocean.h5")["deflated"]
    expected = array[2:30]
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=in_child, args=(array, expected, queue)) for _ in range(3)]
    for child in children:
        child.start()
    assert [queue.get(timeout=60) for _ in children] == [True] * 3
    for child in children:
        child.join(20)


def test_threads_share_a_file(server: servers.Nginx, root: Path) -> None:
    array = hs.open(f"{server.url}/ocean.h5")["deflated"]
    expected = array[...]
    wrong = []
    read = lambda first: wrong.append(first) if (array[first:] != expected[first:]).any() else None  # noqa: E731
    threads = [threading.Thread(target=read, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong


@pytest.mark.parametrize("is_open", [False, True])
def test_ctrl_c_stops_waiting(proxy: servers.Proxy, is_open: bool) -> None:
    # A shell that starts the tests in the background makes them ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    array = hs.open(f"{proxy.url}/ocean.h5")["deflated"] if is_open else None
    proxy.behaviour.always = "stall"
    seen = len(proxy.seen)

    def interrupt() -> None:
        while len(proxy.seen) == seen:  # until the main thread waits for an answer
            time.sleep(0.02)
        time.sleep(0.3)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            array[...] if array is not None else hs.open(f"{proxy.url}/ocean.h5")
    finally:
        signal.signal(signal.SIGINT, before)
    assert not proxy.released.is_set()  # the answer stalls for as long as the proxy runs

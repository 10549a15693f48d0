"""With `cache_nbytes=`, fetched bytes are not requested again, as the server's log shows."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path

import h5py
import numpy as np
import pytest
import servers

import hyperslab as hs
from hyperslab.errors import UsageError


def asked(server: servers.Nginx, read) -> tuple[int, int]:
    """Count the requests and bytes of a read from the server's log, and check that ours agree."""
    seen, before = len(server.requests()), hs.stats()
    read()
    requests = server.requests()[seen:]
    took = {name: value - before[name] for name, value in hs.stats().items() if name != "hosts"}
    assert (took["request_count"], took["fetched_nbytes"]) == (len(requests), sum(sent for _, sent in requests))
    return len(requests), took["fetched_nbytes"]


@pytest.mark.parametrize("name", ["deflated", "plain", "whole"])
def test_nothing_is_fetched_twice(server: servers.Nginx, root: Path, name: str) -> None:
    with h5py.File(root / "ocean.h5") as local:
        expected = local[name][...]
    far = hs.open(f"{server.url}/ocean.h5", cache_nbytes=64 << 20, chunk_cache_nbytes=0)[name]
    plain = hs.open(f"{server.url}/ocean.h5", chunk_cache_nbytes=0)[name]
    for key in (np.s_[3:9], np.s_[3:9, :64], np.s_[:20], np.s_[...], np.s_[::3, 5]):
        np.testing.assert_array_equal(far[key], expected[key])
    before = hs.stats()["reused_nbytes"]
    assert asked(server, lambda: far[...]) == (0, 0)
    assert hs.stats()["reused_nbytes"] - before > 4_000_000
    assert asked(server, lambda: plain[...])[1] > 4_000_000
    assert asked(server, lambda: plain[...])[1] > 4_000_000


def test_memory_is_bounded_and_the_oldest_go_first(server: servers.Nginx) -> None:
    whole = hs.open(f"{server.url}/ocean.h5")["whole"]  # 8 MiB, and 1 MiB of it is kept
    far = hs.open(f"{server.url}/ocean.h5", cache_nbytes=1 << 20)["whole"]
    far[0:2], far[2:4]
    assert asked(server, lambda: far[0:4]) == (0, 0)
    far[8:14]
    assert asked(server, lambda: far[8:14]) == (0, 0)
    assert asked(server, lambda: far[0:2])[1] > 0
    np.testing.assert_array_equal(far[...], whole[...])
    assert asked(server, lambda: far[...])[1] > 6 << 20


def test_threads_and_pickles(server: servers.Nginx) -> None:
    array = hs.open(f"{server.url}/ocean.h5", cache_nbytes=64 << 20, chunk_cache_nbytes=0)["deflated"]
    expected, wrong = array[...], []

    def read(first: int) -> None:
        for step in range(1, 4):
            wrong.extend([first] if (array[first::step] != expected[first::step]).any() else [])

    threads = [threading.Thread(target=read, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong
    again = pickle.loads(pickle.dumps(array))
    again[...]
    assert asked(server, lambda: again[...]) == (0, 0)


@pytest.mark.parametrize("version", [2, 3])
def test_zarr(server: servers.Nginx, root: Path, version: int) -> None:
    zarr = pytest.importorskip("zarr", reason="not installed: pip install 'hyperslab[formats]'")
    group = zarr.create_group(root / f"kept{version}.zarr", zarr_format=version)
    values = np.random.default_rng(1).normal(size=(40, 40))
    cut = {"shards": (20, 40)} if version == 3 else {}
    group.create_array("a", shape=(40, 40), dtype="f8", chunks=(10, 10), **cut)[...] = values
    zarr.consolidate_metadata(root / f"kept{version}.zarr")
    far = hs.open(f"{server.url}/kept{version}.zarr", cache_nbytes=1 << 20, chunk_cache_nbytes=0)["a"]
    np.testing.assert_array_equal(far[...], values)
    assert asked(server, lambda: far[5:30, 3]) == (0, 0)
    np.testing.assert_array_equal(far[5:30, 3], values[5:30, 3])


def test_it_is_for_urls(root: Path) -> None:
    with pytest.raises(UsageError, match="cache_nbytes= is for URLs"):
        hs.open(root / "ocean.h5", cache_nbytes=1)
    with pytest.raises(ValueError, match="cache_nbytes is -1"):
        hs.open("http://127.0.0.1/x.h5", cache_nbytes=-1)

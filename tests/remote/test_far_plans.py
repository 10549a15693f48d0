"""`array.plan` of a remote file lists exactly the requests that the server gets, counted by nginx."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
import servers

import hyperslab as hs

SELECTIONS = {
    "deflated": [..., (0, slice(None), 3), (slice(5, 60, 7), slice(10, 90), slice(0, 256, 5)), (63, 127, 255)],
    "plain": [..., (slice(None), 5, 7), (slice(0, 64, 9), slice(3, 100, 11))],
    "whole": [..., (slice(None), 5, 7), (slice(3, 50), slice(None, None, 2)), (slice(0, 64, 9), slice(3, 100, 11))],
    "large": [..., (slice(None), slice(0, 3)), (slice(1, 4), slice(5, None, 1000))],
    "tiny": [..., (slice(100, 30_000, 3), 0)],
    "sparse": [..., (slice(10, 5000), 0)],
}


@pytest.fixture(scope="module")
def planned(root: Path) -> str:
    """A file with chunks of many sizes, and an array with few of its many chunks."""
    random = np.random.default_rng(3)
    with h5py.File(root / "ocean.h5") as ocean, h5py.File(root / "planned.h5", "w", libver="latest") as made:
        for name in ("deflated", "plain", "whole"):
            ocean.copy(name, made)
        values = random.integers(0, 255, (4, 3_000_000), "u1")
        made.create_dataset("large", data=values, chunks=(1, 3_000_000), compression="gzip", compression_opts=1)
        made.create_dataset("tiny", data=random.normal(size=(40_000, 2)), chunks=(4, 2))
        sparse = made.create_dataset("sparse", (100_000, 2), "f8", chunks=(4, 2), compression="gzip")
        for row in random.integers(0, 5000, 50):
            sparse[row] = row
    return "planned.h5"


@pytest.mark.parametrize("name", SELECTIONS)
def test_requests_are_what_was_planned(server: servers.Nginx, root: Path, planned: str, name: str) -> None:
    array = hs.open(f"{server.url}/{planned}", chunk_cache_nbytes=0)[name]
    with h5py.File(root / planned) as local:
        for selection in SELECTIONS[name]:
            plan, seen = array.plan(selection), len(server.requests())
            np.testing.assert_array_equal(array[selection], local[name][selection])
            requests = server.requests()[seen:]
            _, _, lengths = plan.requests()
            assert sorted(sent for _, sent in requests) == sorted(lengths.tolist()), selection
            assert (plan.request_count, plan.fetched_nbytes) == (len(requests), sum(lengths.tolist()))


def test_points_too(server: servers.Nginx, planned: str) -> None:
    array = hs.open(f"{server.url}/{planned}", chunk_cache_nbytes=0)["deflated"]
    random = np.random.default_rng(1)
    points = hs.Points(np.stack([random.integers(0, length, 40) for length in array.shape], axis=1))
    plan, seen = array.plan(points), len(server.requests())
    array.read(points)
    requests = server.requests()[seen:]
    assert sorted(sent for _, sent in requests) == sorted(plan.requests()[2].tolist())

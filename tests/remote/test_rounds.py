"""Indexing a remote file takes few dependent rounds and few bytes, wherever its metadata lie: exact counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import far_made
import pytest
import servers

import hyperslab as hs

MOST_ROUNDS, MOST_NBYTES = 8, 10_000_000
CHUNK_COUNTS = {"goes": 16 * 84 + 140, "cmip": 3 * far_made.CMIP_STEPS, "era": 4 * 496}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Nginx]:
    pytest.importorskip("netCDF4", reason="not installed: pip install 'hyperslab[formats]'")
    root: Path = tmp_path_factory.mktemp("far")
    for name, make in far_made.MAKERS.items():
        make(root / f"{name}.nc")
    with servers.nginx(root / "run", root) as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize("name", far_made.MAKERS)
def test_few_rounds_and_few_bytes(files: servers.Nginx, name: str) -> None:
    seen, before = len(files.requests()), hs.stats()
    with hs.open(f"{files.url}/{name}.nc") as far:
        arrays = list(far.walk())
        assert sum(array._stored.stored_chunk_count for array in arrays) == CHUNK_COUNTS[name]
    took = {key: value - before[key] for key, value in hs.stats().items() if key != "hosts"}
    assert took["round_count"] <= MOST_ROUNDS, took
    assert took["fetched_nbytes"] <= MOST_NBYTES, took
    assert took["retry_count"] == 0
    requests = files.requests()[seen:]
    assert (took["request_count"], took["fetched_nbytes"]) == (len(requests), sum(sent for _, sent in requests))

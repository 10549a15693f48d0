"""A file that `convert --relayout` wrote opens from afar in at most two rounds, wherever its metadata were."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import far_made
import pytest
import servers

import hyperslab as hs

MOST_ROUNDS = 2


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Nginx]:
    pytest.importorskip("netCDF4", reason="not installed: pip install 'hyperslab[formats]'")
    root: Path = tmp_path_factory.mktemp("relayout")
    for name, make in far_made.MAKERS.items():
        make(root / f"{name}.nc")
        hs.convert(root / f"{name}.nc", root / f"{name}-front.nc", relayout=True)
    with servers.nginx(root / "run", root) as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize("name", far_made.MAKERS)
def test_two_rounds(files: servers.Nginx, name: str) -> None:
    found = {}
    for which in (name, f"{name}-front"):
        before = hs.stats()
        with hs.open(f"{files.url}/{which}.nc") as far:
            counts = sorted((array.name, array._stored.stored_chunk_count) for array in far.walk())
        found[which] = counts, hs.stats()["round_count"] - before["round_count"]
    assert found[name][0] == found[f"{name}-front"][0]
    assert found[f"{name}-front"][1] <= MOST_ROUNDS, found[name][1]

"""A file that we write opens from afar with one request, wherever its metadata were: judged by the server's log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import far_made
import numpy as np
import pytest
import servers

import hyperslab as hs

MOST_NBYTES = 600_000


def saved(source: Path, target: Path) -> None:
    """The same with xarray and `save`."""
    xarray = pytest.importorskip("xarray")
    with xarray.open_dataset(source, engine="netcdf4", decode_times=False, chunks=None) as dataset:
        hs.save(dataset.load(), target)


WRITERS: dict[str, Callable[[Path, Path], object]] = {
    "relayout": lambda source, target: hs.convert(source, target, relayout=True),
    "converted": lambda source, target: hs.convert(source, target),
    "encoded": lambda source, target: hs.convert(source, target, codec="shuffle+deflate:1"),
    "saved": saved,
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Nginx]:
    pytest.importorskip("netCDF4", reason="not installed: pip install 'hyperslab[formats]'")
    root: Path = tmp_path_factory.mktemp("front")
    for name, make in far_made.MAKERS.items():
        make(root / f"{name}.nc")
        for how, write in WRITERS.items():
            write(root / f"{name}.nc", root / f"{name}-{how}.nc")
    with servers.nginx(root / "run", root) as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize("how", WRITERS)
@pytest.mark.parametrize("name", far_made.MAKERS)
def test_one_request(files: servers.Nginx, name: str, how: str) -> None:
    with hs.open(f"{files.url}/{name}.nc") as far:  # the first request to a host opens several connections
        before = {array.name: np.asarray(array.shape) for array in far.walk()}
    seen = len(files.requests())
    with hs.open(f"{files.url}/{name}-{how}.nc") as far:
        counts = {array.name: array._stored.stored_chunk_count for array in far.walk()}
    requests = files.requests()[seen:]
    assert len(requests) == 1, requests
    assert requests[0][1] <= MOST_NBYTES
    assert set(before) <= set(counts)

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
MANY, CHUNKS = 3, 20_000  # arrays and chunks of each


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


# Which files are written how, and how many requests open them: one, and one more if their attributes fill more than
# the first 512 KiB.
FILES = {
    ("goes", "converted"): 2,
    ("goes", "saved"): 2,
    ("cmip", "relayout"): 1,
    ("cmip", "encoded"): 1,
    ("cmip", "saved"): 1,
    ("era", "converted"): 1,
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("front")


@pytest.fixture(scope="module")
def files(root: Path) -> Iterator[servers.Nginx]:
    pytest.importorskip("netCDF4", reason="not installed: pip install 'hyperslab[formats]'")
    for name, make in far_made.MAKERS.items():
        make(root / f"{name}.nc")
    for name, how in FILES:
        WRITERS[how](root / f"{name}.nc", root / f"{name}-{how}.nc")
    with servers.nginx(root / "run", root) as running:
        yield running


def opened(files: servers.Nginx, name: str) -> tuple[dict[str, int | None], list[tuple[int, int]]]:
    """How many chunks the arrays of a file have, and the requests that it took to learn that."""
    seen = len(files.requests())
    with hs.open(f"{files.url}/{name}.nc") as far:
        counts = {array.name: array._stored.stored_chunk_count for array in far.walk()}
    return counts, files.requests()[seen:]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "how"), FILES)
def test_one_request(files: servers.Nginx, name: str, how: str) -> None:
    before, _ = opened(files, name)  # the first request to a host opens several connections
    after, requests = opened(files, f"{name}-{how}")
    assert {name for name in before if before[name]} <= set(after)
    assert how == "saved" or before == after
    assert len(requests) == FILES[name, how], requests
    assert requests[0][1] <= MOST_NBYTES


@pytest.mark.slow
def test_one_more_request_for_large_indexes(files: servers.Nginx, root: Path) -> None:
    xarray = pytest.importorskip("xarray")
    names = [f"x{number}" for number in range(MANY)]
    dataset = xarray.Dataset({name: (("a", "b"), np.ones((CHUNKS, 2), "f4")) for name in names})
    hs.save(dataset, root / "many.nc", encoding={name: {"chunksizes": (1, 2)} for name in names})
    hs.convert(root / "many.nc", root / "many-converted.nc", verify="none")
    opened(files, "cmip")
    for name in ("many", "many-converted"):
        counts, requests = opened(files, name)
        assert [counts[f"/{one}"] for one in names] == [CHUNKS] * MANY
        assert requests[0][1] <= MOST_NBYTES
        assert len(requests) == 2, requests
        assert sum(nbytes for _, nbytes in requests) < (root / f"{name}.nc").stat().st_size

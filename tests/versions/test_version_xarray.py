"""Versions through xarray's engine, and Dask."""

from __future__ import annotations

import datetime as dt
import pickle
from pathlib import Path

import numpy as np
import pytest

import hyperslab as hs
from hyperslab.errors import UsageError

xr = pytest.importorskip("xarray")
dask_base = pytest.importorskip("dask.base")
TIMES = [dt.datetime(2024, 1, day, tzinfo=dt.UTC) for day in (1, 2)]


@pytest.fixture
def path(tmp_path: Path) -> str:
    with hs.VersionedFile(tmp_path / "v.h5", "w") as file:
        with file.stage_version("a", timestamp=TIMES[0]) as version:
            version.attrs["author"] = "Ada"
            version.create_dataset("x", data=np.arange(100.0), chunks=(8,), compression="gzip")
            version["x"].attrs["units"] = "m"
            version.create_dataset("g/y", data=np.arange(63).reshape(9, 7), chunks=(2, 3))
        with file.stage_version("b", timestamp=TIMES[1]) as version:
            version["x"][3:12] = -1
            version["g/y"].resize((12, 7))
    return str(tmp_path / "v.h5")


def test_a_version_is_named_as_everywhere(path: str) -> None:
    minute = dt.timedelta(minutes=1)
    keys = {"a": 0.0, "b": -1.0, 0: -1.0, -1: 0.0, TIMES[0] + minute: 0.0, np.datetime64("2024-02-01"): -1.0}
    for key, third in keys.items():
        for chunks in (None, {}):
            found = xr.open_dataset(path, engine="hyperslab", version=key, chunks=chunks)
            assert float(found["x"][5]) == (5.0 if third == 0 else -1.0)
            assert found["x"].attrs == {"units": "m"}
    assert xr.open_dataset(path, engine="hyperslab", version="a").attrs == {"author": "Ada"}
    for group in ("g", "/g", "g/"):
        found = xr.open_dataset(path, engine="hyperslab", version="b", group=group)
        assert found["y"].shape == (12, 7)
    tree = xr.open_groups(path, engine="hyperslab", version="a")
    np.testing.assert_array_equal(tree["/g"]["y"], np.arange(63).reshape(9, 7))
    for key, error in [("z", KeyError), (-2, IndexError), (TIMES[0] - minute, KeyError)]:
        with pytest.raises(error):
            xr.open_dataset(path, engine="hyperslab", version=key)
    with pytest.raises(UsageError, match="is already open"):
        xr.open_dataset(hs.open(path), engine="hyperslab", version="a")


def test_versions_can_be_written_as_netcdf(path: str, tmp_path: Path) -> None:
    pytest.importorskip("netCDF4")
    xr.open_dataset(path, engine="hyperslab", version="a").to_netcdf(tmp_path / "a.nc")
    np.testing.assert_array_equal(xr.open_dataset(tmp_path / "a.nc")["x"], np.arange(100.0))


@pytest.mark.slow
def test_dask_cuts_at_chunks_and_tells_versions_apart(path: str) -> None:
    found = {key: xr.open_dataset(path, engine="hyperslab", version=key, chunks={}) for key in ("a", "b")}
    assert found["a"]["x"].chunks == ((8,) * 12 + (4,),)
    assert xr.open_dataset(path, engine="hyperslab", version="a", group="g", chunks={})["y"].chunks[1] == (3, 3, 1)
    tokens = {dask_base.tokenize(one["x"].variable._data) for one in found.values()}
    assert len(tokens) == 2
    names = {one["x"].data.name for one in found.values()}
    assert len(names) == 2
    again = xr.open_dataset(path, engine="hyperslab", version="a", chunks={})
    assert again["x"].data.name == found["a"]["x"].data.name
    assert float((found["a"]["x"] - found["b"]["x"]).sum().compute(scheduler="threads")) == sum(range(3, 12)) + 9
    lazy = pickle.loads(pickle.dumps(found["b"]["x"]))
    assert float(lazy.sum().compute(scheduler="processes")) == sum(range(100)) - sum(range(3, 12)) - 9


def test_arrays_that_were_opened_stay_as_they_were_while_versions_are_added(path: str) -> None:
    lazy = xr.open_dataset(path, engine="hyperslab", version=0, chunks={})
    with hs.VersionedFile(path, "r+") as file, file.stage_version("c") as version:
        version["x"][...] = np.zeros(100)
    np.testing.assert_array_equal(lazy["x"][3:14], [-1] * 9 + [12, 13])
    assert float(xr.open_dataset(path, engine="hyperslab", version=0)["x"].sum()) == 0

"""xarray with remote files: Dask workers in other processes, asynchronous loading, groups, small stable tasks."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path

import numpy as np
import pytest
import servers

import hyperslab as hs

xr = pytest.importorskip("xarray", reason="not installed: pip install 'hyperslab[xarray]'")
netcdf = pytest.importorskip("netCDF4", reason="not installed: pip install 'hyperslab[formats]'")


@pytest.fixture(scope="module")
def ocean(root: Path) -> xr.Dataset:
    """ocean.nc on the servers, and its content."""
    random = np.random.default_rng(9)
    with netcdf.Dataset(root / "ocean.nc", "w") as made:
        for name, length in (("time", None), ("y", 60), ("x", 80)):
            made.createDimension(name, length)
        made.createVariable("time", "f8", ("time",)).units = "days since 2001-01-01"
        made["time"][:] = np.arange(24)
        packed = made.createVariable("sst", "i2", ("time", "y", "x"), zlib=True, chunksizes=(6, 30, 80), fill_value=-99)
        packed.set_auto_maskandscale(False)
        packed.scale_factor, packed.add_offset = 0.01, 20.0
        packed[:] = random.integers(-99, 900, (24, 60, 80))
        deep = made.createGroup("deep").createGroup("deeper")
        deep.createVariable("salt", "f4", ("y", "x"))[:] = 35
    return xr.open_dataset(root / "ocean.nc", engine="hyperslab").load()


@pytest.mark.slow
def test_a_cluster_of_processes_reads_a_far_file(server: servers.Nginx, ocean: xr.Dataset) -> None:
    distributed = pytest.importorskip("distributed", reason="not installed: pip install 'hyperslab[dask]'")
    url = f"{server.url}/private/ocean.nc"
    login = {"username": servers.USER, "password": servers.PASSWORD}
    far = xr.open_dataset(url, engine="hyperslab", chunks={}, open_options={"storage_options": login})
    assert far.sst.data.chunks == ((6,) * 4, (30, 30), (80,))
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=2, processes=True, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(hs.credentials, f"{server.url}/private/", **login)  # pickles carry no credentials
        np.testing.assert_allclose(far.sst.mean("time").compute(), ocean.sst.mean("time"), rtol=1e-5)
        asked = client.run(lambda: hs.stats()["request_count"])
    assert len(asked) == 2
    opening = 9  # requests: the first round of a process opens eight connections
    assert any(asked.values())  # a worker that is slow may find nothing left to do
    assert all(count <= opening + 4 * 2 for count in asked.values())  # each opens the file once, for all its tasks


def test_tasks_are_small_and_their_names_stable(server: servers.Nginx, ocean: xr.Dataset) -> None:
    base = pytest.importorskip("dask.base", reason="not installed: pip install 'hyperslab[dask]'")
    url = f"{server.url}/ocean.nc"
    first, again = (xr.open_dataset(url, engine="hyperslab", chunks={}) for _ in range(2))
    assert first.sst.data.name == again.sst.data.name
    assert base.tokenize(first) == base.tokenize(again)
    array = hs.open(url)["sst"]
    assert len(pickle.dumps(array)) < 1000
    assert base.tokenize(pickle.loads(pickle.dumps(array))) == base.tokenize(array)
    assert len(pickle.dumps(first.sst.data.dask)) < 20_000


def test_variables_are_loaded_side_by_side(server: servers.Nginx, ocean: xr.Dataset) -> None:
    far = xr.open_dataset(f"{server.url}/ocean.nc", engine="hyperslab")
    xr.testing.assert_identical(asyncio.run(far.isel(time=slice(3, 9)).load_async()), ocean.isel(time=slice(3, 9)))


def test_groups(server: servers.Nginx, root: Path, ocean: xr.Dataset) -> None:
    tree = xr.open_datatree(f"{server.url}/ocean.nc", engine="hyperslab", chunks={})
    with xr.open_datatree(root / "ocean.nc", engine="netcdf4") as expected:
        assert tree.groups == expected.groups
        xr.testing.assert_identical(tree.load(), expected.load())
    deep = xr.open_dataset(f"{server.url}/ocean.nc", engine="hyperslab", group="deep/deeper")
    assert float(deep.salt.mean()) == 35


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_far_away(server: servers.Nginx, root: Path, ocean: xr.Dataset, version: int) -> None:
    ocean.to_zarr(root / f"ocean{version}.zarr", zarr_format=version, consolidated=True, mode="w")
    url = f"{server.url}/ocean{version}.zarr"
    far = xr.open_dataset(url, engine="hyperslab", chunks={})
    expected = xr.open_dataset(root / f"ocean{version}.zarr", engine="zarr").load()
    xr.testing.assert_identical(far.load(), expected)
    assert far.sst.encoding["preferred_chunks"] == expected.sst.encoding["preferred_chunks"]


def test_tasks_of_a_collection(server: servers.Nginx, ocean: xr.Dataset) -> None:
    urls = [f"{server.url}/ocean.nc"] * 2
    options = {"order": "any", "cache_nbytes": 1 << 20}
    far = xr.open_dataset(urls, engine="hyperslab", chunks={}, concat="time", open_options=options)
    again = pickle.loads(pickle.dumps(far))
    np.testing.assert_array_equal(again.sst.values, np.concatenate([ocean.sst.values] * 2))

"""Calls of tutorials, as they are written but for server and bucket: of xarray, Pangeo, AWS's open data and others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import servers
import xarray as xr

import hyperslab as hs

KEY, SECRET = "access", "very secret"
NAME = "ABI-L2-CMIPF/2021/214/OR_ABI-L2-CMIPF-M6C01_G16.nc"
ocean = xr.Dataset(
    {"CMI": (("time", "y", "x"), np.arange(24 * 30 * 40, dtype="f4").reshape(24, 30, 40))},
    coords={"time": np.arange(24.0)},
)


@pytest.fixture(scope="module")
def endpoint(s3: str, root: Path) -> str:
    boto3 = pytest.importorskip("boto3", reason="not installed: pip install 'hyperslab[dev]'")
    login = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=s3, **login)
    client.create_bucket(Bucket="noaa-goes16", ACL="public-read")
    ocean.to_netcdf(root / "goes.nc", encoding={"CMI": {"zlib": True, "chunksizes": (6, 30, 40)}})
    ocean.to_zarr(root / "era5.zarr", consolidated=True, zarr_format=2, mode="w")
    put = {"Bucket": "noaa-goes16", "ACL": "public-read"}
    client.put_object(Key=NAME, Body=(root / "goes.nc").read_bytes(), **put)
    for path in (root / "era5.zarr").rglob("*"):
        if path.is_file():
            client.put_object(Key=f"zarr/{path.relative_to(root)}", Body=path.read_bytes(), **put)
    return s3


def opened(url: str, **keywords: Any) -> xr.Dataset:
    return xr.open_dataset(url, engine="hyperslab", **keywords)


URL, ZARR = f"s3://noaa-goes16/{NAME}", "s3://noaa-goes16/zarr/era5.zarr"
CALLS: dict[str, Callable[[str], xr.Dataset]] = {
    "xarray: io, reading remote files": lambda e: opened(URL, storage_options={"anon": True, "endpoint_url": e}),
    "xarray: backend_kwargs": lambda e: opened(
        URL, chunks={}, backend_kwargs={"storage_options": {"anon": True, "client_kwargs": {"endpoint_url": e}}}
    ),
    "NOAA GOES on AWS: block size and cache": lambda e: opened(
        URL,
        storage_options={"anon": True, "default_block_size": 2**22, "default_fill_cache": False,
                         "default_cache_type": "first", "client_kwargs": {"endpoint_url": e}},
    ),
    "s3fs: username and password": lambda e: opened(
        URL, storage_options={"username": KEY, "password": SECRET, "client_kwargs": {"endpoint_url": e}}
    ),
    "s3fs: config_kwargs and a region": lambda e: opened(
        URL,
        storage_options={"key": KEY, "secret": SECRET, "use_ssl": False, "endpoint_url": e,
                         "client_kwargs": {"region_name": "us-east-1"},
                         "config_kwargs": {"s3": {"addressing_style": "path"}, "max_pool_connections": 32}},
    ),
    "ERA5 on AWS, Zarr: consolidated": lambda e: opened(
        ZARR, chunks={}, consolidated=True, storage_options={"anon": True, "endpoint_url": e}
    ),
    "Pangeo: backend_kwargs of a Zarr store": lambda e: opened(
        ZARR, backend_kwargs={"consolidated": True, "storage_options": {"anon": True, "endpoint_url": e}}
    ),
    "obstore: skip_signature": lambda e: opened(
        URL, storage_options={"skip_signature": True, "region": "us-east-1", "endpoint": e,
                              "client_options": {"allow_http": True, "timeout": "60s"}}
    ),
    "h5netcdf: open_kwargs and phony_dims": lambda e: opened(
        URL, phony_dims="access", decode_vlen_strings=True, invalid_netcdf=True, lock=False,
        storage_options={"anon": True, "endpoint_url": e},
        open_kwargs={"cache_type": "blockcache", "block_size": 2**20},
    ),
    "several files: open_mfdataset": lambda e: xr.open_mfdataset(
        [URL, URL], engine="hyperslab", combine="nested", concat_dim="run", parallel=False, coords="minimal",
        compat="override", data_vars="all", join="override",
        backend_kwargs={"storage_options": {"anon": True, "endpoint_url": e}},
    ).isel(run=0),
    "requester pays": lambda e: opened(
        URL, storage_options={"key": KEY, "secret": SECRET, "requester_pays": True, "endpoint_url": e}
    ),
    "kerchunk: cached whole": lambda e: opened(
        f"simplecache::{URL}", storage_options={"s3": {"anon": True, "endpoint_url": e}}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_tutorials(endpoint: str, name: str) -> None:
    found = CALLS[name](endpoint)
    xr.testing.assert_equal(found.load(), ocean)


def test_a_profile(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text(f"[profile lab]\nregion = us-east-1\nendpoint_url = {endpoint}\n")
    (tmp_path / "credentials").write_text(f"[lab]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    xr.testing.assert_equal(opened(URL, storage_options={"profile": "lab"}).load(), ocean)
    with pytest.raises(Exception, match="no profile 'other'"):
        opened(URL, storage_options={"profile": "other"})


def test_configuration_of_fsspec(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setitem(fsspec.config.conf, "s3", {"anon": True, "endpoint_url": endpoint})
    xr.testing.assert_equal(opened(URL).load(), ocean)


def test_a_login_of_fsspecs_configuration_goes_to_the_file_that_is_named(
    server: servers.Nginx, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec = pytest.importorskip("fsspec")
    login = {"Authorization": servers.basic(servers.USER, servers.PASSWORD)}
    monkeypatch.setitem(fsspec.config.conf, "http", {"headers": login})
    assert hs.open(f"{server.url}/private/ocean.h5")["group/deep"][1, 1] == 5.0


def test_what_is_unknown_is_named(endpoint: str) -> None:
    with pytest.raises(TypeError, match="no argument backend_kwargz"):
        opened(URL, backend_kwargz={})
    with pytest.raises(Exception, match='option "colour" is not known'):
        opened(URL, storage_options={"colour": "red", "endpoint_url": endpoint})
    with pytest.raises(Exception, match="driver= is not for the engine hyperslab; leave it out"):
        opened(URL, driver="ros3")

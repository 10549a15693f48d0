"""Stores, files and mappers of obstore and fsspec are read with their own configuration."""

from __future__ import annotations

import pickle
from datetime import timedelta
from pathlib import Path

import fsspec
import numpy as np
import pytest
import servers

import hyperslab as hs
from hyperslab.archive import zarr_pipeline
from hyperslab.errors import RemoteError, UsageError

obstore = pytest.importorskip("obstore.store", reason="not installed: pip install 'hyperslab[benchmarks]'")
zarr = pytest.importorskip("zarr", reason="not installed: pip install 'hyperslab[formats]'")
KEY, SECRET = "access", "very secret"
PIPELINE = {"codec_pipeline.path": "hyperslab.archive.zarr_pipeline.Pipeline"}


@pytest.fixture(scope="module")
def values(root: Path) -> np.ndarray:
    made = np.random.default_rng(5).normal(size=(50, 40))
    group = zarr.create_group(root / "grid.zarr")
    group.create_array("a", shape=made.shape, dtype="f8", chunks=(8, 9))[...] = made
    group.create_array("shards", shape=made.shape, dtype="f8", chunks=(5, 5), shards=(25, 20))[...] = made
    zarr.consolidate_metadata(root / "grid.zarr")
    return made


@pytest.fixture(scope="module")
def s3_options(s3: str, root: Path, values: np.ndarray) -> dict[str, str]:
    boto3 = pytest.importorskip("boto3", reason="not installed: pip install 'hyperslab[dev]'")
    options = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET}
    client = boto3.client("s3", endpoint_url=s3, region_name="us-east-1", **options)
    client.create_bucket(Bucket="foreign")
    client.put_object(Bucket="foreign", Key="in/ocean.h5", Body=(root / "ocean.h5").read_bytes())
    for path in (root / "grid.zarr").rglob("*"):
        if path.is_file():
            client.put_object(Bucket="foreign", Key=f"in/{path.relative_to(root)}", Body=path.read_bytes())
    return {"endpoint": s3, "region": "us-east-1", **options}


def test_obstore_of_http(server: servers.Nginx, values: np.ndarray) -> None:
    store = obstore.HTTPStore.from_url(server.url, client_options={"timeout": "20s", "allow_http": True})
    assert hs.open((store, "ocean.h5"))["group/deep"][1, 1] == 5.0
    np.testing.assert_array_equal(hs.open((store, "grid.zarr"))["a"][...], values)
    login = {"authorization": servers.basic(servers.USER, servers.PASSWORD)}
    private = obstore.HTTPStore.from_url(f"{server.url}/private/", client_options={"default_headers": login})
    far = hs.open((private, "ocean.h5"), cache_nbytes=1 << 20)
    assert far["group/deep"][1, 1] == 5.0
    assert far.filename == f"{server.url}/private/ocean.h5"
    assert login["authorization"].encode() not in pickle.dumps(far)
    with pytest.raises(RemoteError, match="HTTP 401"):
        hs.open((obstore.HTTPStore.from_url(f"{server.url}/private/"), "ocean.h5"))


def test_obstore_of_s3(s3_options: dict[str, str], values: np.ndarray) -> None:
    options = {**s3_options, "client_options": {"allow_http": True, "connect_timeout": timedelta(seconds=5)}}
    store = obstore.S3Store("foreign", prefix="in", **options)
    far = hs.open((store, "ocean.h5"))
    assert far["group/deep"][1, 1] == 5.0
    assert far.filename == "s3://foreign/in/ocean.h5"
    assert SECRET.encode() not in pickle.dumps(far["group/deep"])
    whole = obstore.S3Store("foreign", prefix="in/grid.zarr", **options)
    np.testing.assert_array_equal(hs.open(whole)["a"][3:9], values[3:9])
    given = {"access_key_id": KEY, "secret_access_key": SECRET, "expires_at": None}
    plain = {name: value for name, value in options.items() if not name.startswith("aws_")}
    provided = obstore.S3Store("foreign", prefix="in", credential_provider=lambda: given, **plain)
    assert hs.open((provided, "ocean.h5"))["group/deep"][1, 1] == 5.0


def test_obstore_of_this_machine(root: Path, values: np.ndarray) -> None:
    np.testing.assert_array_equal(hs.open((obstore.LocalStore(root), "grid.zarr"))["a"][...], values)
    np.testing.assert_array_equal(hs.open(obstore.LocalStore(root / "grid.zarr"))["a"][...], values)


def test_what_cannot_be_taken_over_reads_itself_or_is_named(server: servers.Nginx) -> None:
    with pytest.raises(FileNotFoundError, match=r"MemoryStore>/x\.h5"):
        hs.open((obstore.MemoryStore(), "x.h5"))
    with pytest.raises(UsageError, match="MemoryStore"):
        hs.open(obstore.MemoryStore())
    secret = {"proxy_url": "http://user:hunter2@127.0.0.1:1"}
    with pytest.raises(Exception, match=r"HTTPStore|proxy|error") as raised:
        hs.open((obstore.HTTPStore.from_url(server.url, client_options=secret), "ocean.h5"))
    assert "hunter2" not in str(raised.value)
    with pytest.raises(FileNotFoundError, match=r"x\.h5"):
        hs.open((fsspec.filesystem("memory"), "/x.h5"))


def test_fsspec_of_this_machine(root: Path, values: np.ndarray) -> None:
    path = root / "ocean.h5"
    with fsspec.open(f"file://{path}") as opened:
        for source in (opened, fsspec.open(str(path)), (fsspec.filesystem("file"), path)):
            assert hs.open(source)["group/deep"][1, 1] == 5.0
    np.testing.assert_array_equal(hs.open(fsspec.get_mapper(str(root / "grid.zarr")))["a"][...], values)


def test_fsspec_of_http(server: servers.Nginx, values: np.ndarray) -> None:
    pytest.importorskip("aiohttp", reason="not installed: pip install aiohttp")
    fs = fsspec.filesystem("http", headers={"Authorization": servers.basic(servers.USER, servers.PASSWORD)})
    far = hs.open((fs, f"{server.url}/private/ocean.h5"))
    assert far["group/deep"][1, 1] == 5.0
    np.testing.assert_array_equal(hs.open(fs.get_mapper(f"{server.url}/private/grid.zarr"))["a"][...], values)
    with fs.open(f"{server.url}/private/ocean.h5") as opened:
        assert hs.open(opened)["group/deep"][1, 1] == 5.0


@pytest.mark.parametrize("name", ["a", "shards"])
def test_zarr_pythons_own_stores_far_away(
    server: servers.Nginx, s3_options: dict[str, str], values: np.ndarray, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, read = [], zarr_pipeline.Pipeline._read
    monkeypatch.setattr(
        zarr_pipeline.Pipeline, "_read", lambda self, *rest: served.append(read(self, *rest)) or served[-1]
    )
    on_s3 = obstore.S3Store("foreign", prefix="in/grid.zarr", client_options={"allow_http": True}, **s3_options)
    by_http = obstore.HTTPStore.from_url(f"{server.url}/grid.zarr", client_options={"allow_http": True})
    for store in (on_s3, by_http):
        with zarr.config.set(PIPELINE):
            array = zarr.open_array(zarr.storage.ObjectStore(store, read_only=True), path=name, mode="r")
        np.testing.assert_array_equal(array[...], values)
        np.testing.assert_array_equal(array.oindex[[3, 49, 0], 2:9], values[[3, 49, 0], 2:9])
        np.testing.assert_array_equal(array.vindex[[3, 49], [2, 9]], values[[3, 49], [2, 9]])
    assert served == [True] * 6

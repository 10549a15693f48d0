"""Zarr hierarchies behind a web server and in an object store: the same data as on disk, in few rounds."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import servers

import hyperslab as hs
from command_line import run_hyperslab
from hyperslab.errors import NoSuchRemoteFile, RemoteError, Unsupported

zarr = pytest.importorskip("zarr", reason="not installed: pip install 'hyperslab[formats]'")
SELECTIONS = [..., (0, slice(None), 3), (slice(5, 60, 7), slice(3, 20), [1, 0, 8]), (63, 31, 9), slice(0, 0)]
KEY, SECRET = "access", "very secret"


def write(place, version: int, consolidated: bool) -> dict[str, np.ndarray]:
    """A hierarchy with groups, chunks, shards and missing chunks; and its content."""
    group = zarr.create_group(place, zarr_format=version)
    random = np.random.default_rng(version)
    expected = {
        "ocean/sst": random.normal(size=(64, 32, 10)).astype("f4"),
        "ocean/deep/salt": random.integers(0, 99, (30, 4)).astype("i2"),
        "scalar": np.float64(3.5),
        "holes": np.full((50, 50), -1, "i4"),
        "large": random.integers(0, 255, (3, 1024, 1500), dtype="u1"),
    }
    expected["holes"][20:30, 7:9] = 5
    for name, values in expected.items():
        cut = {0: (), 2: (8, 3), 3: (16, 8, 10)}[values.ndim]
        array = group.create_array(
            name, shape=values.shape, dtype=values.dtype, chunks=values.shape if name == "large" else cut,
            fill_value=-1 if name == "holes" else 0, attributes={"units": "K"},
            compressors=None if name == "large" else "auto",
        )  # fmt: skip
        box = (slice(20, 30), slice(7, 9)) if name == "holes" else ...
        array[box] = values[box]
    if version == 3:
        expected["sharded"] = random.normal(size=(40, 40))
        sharded = group.create_array("sharded", shape=(40, 40), dtype="f8", chunks=(4, 5), shards=(12, 20))
        expected["sharded"][12:24] = sharded[12:24]  # these shards do not exist
        sharded[:12], sharded[24:] = expected["sharded"][:12], expected["sharded"][24:]
    if consolidated:
        zarr.consolidate_metadata(place)
    return expected


@pytest.fixture(scope="module", params=[2, 3])
def hierarchy(request, root: Path):
    name = f"v{request.param}.zarr"
    return name, write(root / name, request.param, consolidated=True)


def check(far: hs.archive.Group, expected: dict[str, np.ndarray]) -> None:
    assert sorted(array.name.strip("/") for array in far.walk()) == sorted(expected)
    for name, values in expected.items():
        array = far[name]
        np.testing.assert_array_equal(array[...], values)
        for selection in SELECTIONS if name == "ocean/sst" else []:
            found = (
                values[np.ix_(range(5, 60, 7), range(3, 20), [1, 0, 8])]
                if selection is SELECTIONS[2]
                else values[selection]
            )
            np.testing.assert_array_equal(array[selection], found)


def test_over_http(server: servers.Nginx, hierarchy) -> None:
    name, expected = hierarchy
    before = hs.stats()
    far = hs.open(f"{server.url}/{name}")
    assert hs.stats()["round_count"] - before["round_count"] == 1
    assert far.format == "zarr"
    check(far, expected)
    assert far["ocean/sst"].attrs["units"] == "K"
    assert far["ocean/sst"].stored_nbytes is None
    assert "ocean/sst" in repr(far) or "sst" in repr(far)
    points = hs.Points([[0, 5, 3], [63, 31, 9], [0, 5, 3]])
    np.testing.assert_array_equal(
        far["ocean/sst"].read(points), [expected["ocean/sst"][tuple(p)] for p in points.coordinates]
    )
    with pytest.raises(Unsupported, match="not listed"):
        far["ocean/sst"].plan()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(far["holes"]))[...], expected["holes"])


def test_requests_are_only_for_what_is_touched(server: servers.Nginx, hierarchy) -> None:
    name, _ = hierarchy
    far = hs.open(f"{server.url}/{name}/")
    seen = len(server.requests())
    far["ocean/sst"][17:20, 3]
    assert len(server.requests()) - seen == 1
    far["ocean/sst"][18:21, 4]  # of the same chunk, which is cached
    assert len(server.requests()) - seen == 1
    far["holes"][:8, :9]
    assert [status for status, _ in server.requests()[seen + 1 :]] == [404, 404, 404]
    far["large"][...]  # in parts of 2 MiB, in parallel
    assert len(server.requests()) - seen == 4 + 3
    if "sharded" in far:
        seen, before = len(server.requests()), hs.stats()["round_count"]
        far["sharded"][0:24, 0:5]
        assert [status for status, _ in server.requests()[seen:]].count(404) == 1
        assert len(server.requests()) - seen == 2 + 3  # two indices, three subchunks
        assert hs.stats()["round_count"] - before == 1


def test_a_group_that_cannot_be_listed_is_named(server: servers.Nginx, root: Path) -> None:
    write(root / "open.zarr", 3, consolidated=False)
    with pytest.raises(Unsupported, match="consolidate_metadata"):
        hs.open(f"{server.url}/open.zarr")
    far = hs.open(f"{server.url}/open.zarr/ocean/sst/")
    assert [array.shape for array in far.walk()] == [(64, 32, 10)]
    assert pickle.loads(pickle.dumps(far[""]))[3, 3].shape == (10,)


def test_what_is_missing_is_named(server: servers.Nginx) -> None:
    for name in ("missing.zarr", "missing", "missing/"):
        with pytest.raises(NoSuchRemoteFile, match=r"missing.*zarr\.json"):
            hs.open(f"{server.url}/{name}")


@pytest.mark.parametrize("version", [2, 3])
def test_what_fails_is_no_fill_value(proxy: servers.Proxy, root: Path, version: int) -> None:
    expected = write(root / f"f{version}.zarr", version, consolidated=True)
    far = hs.open(f"{proxy.url}/f{version}.zarr", storage_options={"attempts": 4})  # one request may get all faults
    for name in ("holes", "ocean/sst", *(["sharded"] if version == 3 else [])):
        for fault in ("403", "500"):
            proxy.behaviour.always = fault
            with pytest.raises(RemoteError, match=f"HTTP {fault}"):
                far[name][...]
        proxy.behaviour.always = None
        proxy.behaviour.faults = ["500", "short", "ok", "reset"]
        np.testing.assert_array_equal(far[name][...], expected[name])
    proxy.behaviour.always = "403"
    with pytest.raises(RemoteError, match="HTTP 403"):
        hs.open(f"{proxy.url}/f{version}.zarr")


def test_credentials_reach_every_key(server: servers.Nginx, hierarchy) -> None:
    name, expected = hierarchy
    login = {"username": servers.USER, "password": servers.PASSWORD}
    far = hs.open(f"{server.url}/private/{name}", storage_options=login)
    np.testing.assert_array_equal(far["holes"][...], expected["holes"])
    assert servers.PASSWORD not in repr(far) + far.filename
    with pytest.raises(RemoteError, match="HTTP 401"):
        hs.open(f"{server.url}/private/{name}")


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("consolidated", [True, False])
def test_on_s3(s3: str, tmp_path: Path, version: int, consolidated: bool) -> None:
    boto3 = pytest.importorskip("boto3", reason="not installed: pip install 'hyperslab[dev]'")
    client = boto3.client(
        "s3", endpoint_url=s3, aws_access_key_id=KEY, aws_secret_access_key=SECRET, region_name="us-east-1"
    )
    bucket = f"zarr-{version}-{consolidated}".lower()
    client.create_bucket(Bucket=bucket)
    expected = write(tmp_path / "x.zarr", version, consolidated)
    for path in (tmp_path / "x.zarr").rglob("*"):
        if path.is_file():
            client.put_object(Bucket=bucket, Key=f"a/{path.relative_to(tmp_path)}", Body=path.read_bytes())
    options = {"key": KEY, "secret": SECRET, "endpoint_url": s3}
    before = hs.stats()
    far = hs.open(f"s3://{bucket}/a/x.zarr", storage_options=options)
    assert hs.stats()["round_count"] - before["round_count"] == (1 if consolidated else 8)
    check(far, expected)
    assert hs.open(f"s3://{bucket}/a/x.zarr/ocean", storage_options=options)["deep/salt"].shape == (30, 4)
    with pytest.raises(NoSuchRemoteFile):
        hs.open(f"s3://{bucket}/a/y.zarr", storage_options=options)


@pytest.mark.slow
def test_commands(server: servers.Nginx, hierarchy) -> None:
    import json

    name, expected = hierarchy

    def run(*words: str) -> str:
        done = run_hyperslab(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    said = json.loads(run("info", f"{server.url}/{name}", "--json"))
    assert {array["name"].strip("/") for array in said["arrays"]} == set(expected)
    assert all(array["stored_nbytes"] is None for array in said["arrays"])
    assert "unknown size" in run("info", f"{server.url}/{name}")
    verified = json.loads(run("verify", f"{server.url}/{name}", "--json"))["arrays"]
    assert {one["status"] for one in verified} == {"ok"}
    assert all(one["missing_chunk_count"] is None for one in verified)


def test_no_other_archive_shows_its_chunks(server: servers.Nginx, hierarchy, tmp_path: Path) -> None:
    name, _ = hierarchy
    far = hs.open(f"{server.url}/{name}")
    with pytest.raises(Unsupported, match="whose chunks are not listed"):
        hs.open([far, far], concat=0, leave_out=["scalar"])
    with pytest.raises(Unsupported, match="whose chunks are not listed"):
        hs.open([f"{server.url}/{name}"] * 2, concat=0, leave_out=["scalar"], cache_nbytes=1 << 20)

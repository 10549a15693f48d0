"""Objects on a real S3-compatible server, with the URLs and options of s3fs."""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import h5py
import numpy as np
import pytest

import hyperslab as hs
from hyperslab.errors import NoSuchRemoteFile, RemoteError, UsageError

KEY, SECRET = "access", "very secret"
NAME = "folder a/ocean #1?.h5"


@pytest.fixture(scope="module")
def bucket(s3: str, root: Path) -> str:
    boto3 = pytest.importorskip("boto3", reason="not installed: pip install 'hyperslab[dev]'")
    client = boto3.client(
        "s3", endpoint_url=s3, aws_access_key_id=KEY, aws_secret_access_key=SECRET, region_name="us-east-1"
    )
    client.create_bucket(Bucket="ocean")
    client.put_object(Bucket="ocean", Key=NAME, Body=(root / "ocean.h5").read_bytes(), ACL="public-read")
    return s3


@pytest.mark.parametrize(
    "options",
    [
        lambda url: {"key": KEY, "secret": SECRET, "endpoint_url": url},
        lambda url: {"key": KEY, "secret": SECRET, "client_kwargs": {"endpoint_url": url, "region_name": "us-east-1"}},
        lambda url: {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "endpoint": url, "region": "eu-1"},
        lambda url: {"anon": True, "endpoint_url": url},
    ],
)
def test_arrays_are_what_h5py_reads(bucket: str, root: Path, options) -> None:
    far = hs.open(f"s3://ocean/{NAME}", storage_options=options(bucket))
    with h5py.File(root / "ocean.h5") as local:
        np.testing.assert_array_equal(far["deflated"][3:50, ::3], local["deflated"][3:50, ::3])
    assert far.filename == f"s3://ocean/{NAME}"


def test_what_is_missing_is_named(bucket: str) -> None:
    with pytest.raises(NoSuchRemoteFile, match="nothing at s3://ocean/nothing"):
        hs.open("s3://ocean/nothing", storage_options={"anon": True, "endpoint_url": bucket})


KEYS = ["k", "/k", "//k", "a//k", "a///k", "k%20x", "k x", "k+x", "kä", "a\\k", "k?x=1", "k#1", "~k", "k*", "k%2Fx",
        "k'\"<>&", "a b//c d"]  # fmt: skip


def test_keys_are_taken_as_they_are_written(bucket: str) -> None:
    boto3 = pytest.importorskip("boto3")
    login = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=bucket, **login)
    client.create_bucket(Bucket="keys")
    options = {"key": KEY, "secret": SECRET, "endpoint_url": bucket}
    for place, key in enumerate(KEYS):
        with h5py.File(io.BytesIO(), "w") as made:
            made["which"] = place
            made.flush()
            client.put_object(Bucket="keys", Key=key, Body=made.id.get_file_image())
    for place, key in enumerate(KEYS):
        assert hs.open(f"s3://keys/{key}", storage_options=options)["which"][()] == place, key
    client.delete_object(Bucket="keys", Key="k")
    with pytest.raises(NoSuchRemoteFile):
        hs.open("s3://keys/k", storage_options=options)
    for key in ("a/../k", "./k", "..", "k\x01"):
        with pytest.raises(UsageError, match="cannot be part of a URL"):
            hs.open(f"s3://keys/{key}", storage_options=options)
    with pytest.raises(UsageError, match="cannot be asked for"):
        hs.open("gs://keys//k", storage_options={"anon": True})


def test_secrets_stay_here(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    array = hs.open(f"s3://ocean/{NAME}", storage_options={"key": KEY, "secret": SECRET, "endpoint_url": bucket})
    pickled = pickle.dumps(array["group/deep"])
    for secret in (KEY, SECRET):
        assert secret.encode() not in pickled
        assert secret not in repr(array) + repr(array._file.location)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    assert pickle.loads(pickled)[1, 1] == 5.0


def test_missing_credentials_are_named(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(RemoteError, match=r"no accepted credentials.*storage_options"):
        hs.open(f"s3://ocean/{NAME}", storage_options={"endpoint_url": bucket, "connect_timeout": 2.0})


@pytest.mark.parametrize("suffix", ["hs", "json"])
def test_references_to_objects(bucket: str, root: Path, tmp_path: Path, suffix: str) -> None:
    options = {"key": KEY, "secret": SECRET, "endpoint_url": bucket}
    refs = tmp_path / f"refs.{suffix}"
    hs.index(f"s3://ocean/{NAME}", storage_options=options).save(refs, skip_unsupported=True)
    assert SECRET.encode() not in refs.read_bytes()
    found = hs.open(refs, storage_options=options)
    with h5py.File(root / "ocean.h5") as local:
        np.testing.assert_array_equal(found["deflated"][3:50, ::3], local["deflated"][3:50, ::3])
    assert SECRET.encode() not in pickle.dumps(found["deflated"])

"""A URL of an object store to which versions are pushed, and the files that they come from."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import hyperslab as hs
from hyperslab.lab import serving
from hyperslab.versions import pull, push
from hyperslab.versions.transfer.bundle_folder import FolderRefs

BUCKET = "history"


class Far:
    """A URL on a server, with the options that open it, and its objects."""

    def __init__(self, at: str, name: str) -> None:
        self.options = {"key": serving.ACCESS, "secret": serving.SECRET, "endpoint_url": at, "region": "us-east-1"}
        import boto3

        login = {"aws_access_key_id": serving.ACCESS, "aws_secret_access_key": serving.SECRET}
        self.client = boto3.client("s3", endpoint_url=at, region_name="us-east-1", **login)
        with suppress(Exception):
            self.client.create_bucket(Bucket=BUCKET)
        self.name, self.url = name, f"s3://{BUCKET}/{name}"

    def push(self, path: Path, *names: str) -> Any:
        return push(path, self.url, names, storage_options=self.options)

    def pull(self, path: Path, *names: str) -> Any:
        return pull(path, self.url, names, storage_options=self.options)

    def objects(self) -> dict[str, int]:
        found = self.client.list_objects_v2(Bucket=BUCKET, Prefix=f"{self.name}/").get("Contents", [])
        return {one["Key"].removeprefix(f"{self.name}/"): one["Size"] for one in found}

    def get(self, key: str) -> bytes:
        return self.client.get_object(Bucket=BUCKET, Key=f"{self.name}/{key}")["Body"].read()

    def put(self, key: str, content: bytes) -> None:
        self.client.put_object(Bucket=BUCKET, Key=f"{self.name}/{key}", Body=content)

    def refs(self) -> FolderRefs:
        return FolderRefs.of(self.get("refs"))


def commit(file: hs.VersionedFile, name: str, value: int, **options: Any) -> None:
    with file.stage_version(name, **options) as version:
        if "g/x" not in version:
            version.create_dataset("g/x", data=np.arange(400.0), chunks=(40,), compression="gzip")
            version.create_dataset("words", data=["a", "é"] * 20, dtype=h5py.string_dtype(), chunks=(8,))
            version["g"].attrs["kind"] = np.int16(3)
        version["g/x"][value % 400] = value + 1000
        version["words"][value % 40] = f"w{value}"
        version["g/x"].attrs["last"] = value


def same(one: Path, other: Path, names: list[str] | None = None) -> None:
    with hs.VersionedFile(one) as mine, hs.VersionedFile(other) as file:
        assert file.verify().is_whole
        for name in mine.versions if names is None else names:
            assert file.table[name] == mine.table[name]
            assert file.merged_into(name) == mine.merged_into(name)
            found, wanted = ({array.name: array for array in each[name].walk()} for each in (file, mine))
            assert found.keys() == wanted.keys()
            for path, array in wanted.items():
                np.testing.assert_array_equal(found[path][...], array[...])
                assert str(dict(found[path].attrs)) == str(dict(array.attrs))

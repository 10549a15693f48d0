"""Versions of a remote file equal those of a local copy: by name, ancestry and time, in few rounds, in Dask too."""

from __future__ import annotations

import datetime as dt
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import servers

import hyperslab as hs
from command_line import run_hyperslab
from hyperslab.errors import Unsupported, UsageError

h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[versions]'")
VERSION_COUNT = 30
BEGIN = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
MOST_ROUNDS = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("far-versions")
    with hs.VersionedFile(folder / "many.h5", "w") as file:
        for number in range(VERSION_COUNT):
            time = BEGIN + dt.timedelta(days=number)
            with file.stage_version(f"v{number}", timestamp=time) as staged:
                if not number:
                    staged.create_dataset("g/x", data=np.arange(50_000.0), chunks=(1000,), compression="gzip")
                    staged.create_dataset("names", data=np.array(["a", "bé"], object), dtype=h5py.string_dtype())
                    staged["y"] = np.arange(30).reshape(5, 6)
                staged["g/x"][number * 1000 : number * 1000 + 10] = -number
                staged["names"][0] = f"name {number}"
                staged.attrs["number"] = number
    with h5py.File(folder / "plain.h5", "w") as plain:
        plain["x"] = [1, 2]
    return folder


@pytest.fixture(scope="module")
def web(folder: Path) -> Iterator[servers.Nginx]:
    with servers.nginx(folder / "run", folder) as running:
        yield running


def check_same(far: hs.Group, near: hs.Group) -> None:
    assert far.name == near.name
    assert dict(far.attrs) == dict(near.attrs)
    assert sorted(array.name for array in far.walk()) == sorted(array.name for array in near.walk())
    for array in near.walk():
        other = far.root[array.name] if hasattr(far, "root") else far[array.name.removeprefix(f"{near.name}/")]
        assert np.array_equal(other[...], array[...]), array.name


@pytest.mark.parametrize(
    "version",
    ["v0", "v7", "v29", 0, -1, -29, BEGIN + dt.timedelta(days=3, hours=2), np.datetime64("2024-01-20T00:00")],
    ids=str,
)
def test_the_values_are_those_of_the_file_here(web: servers.Nginx, folder: Path, version: object) -> None:
    with hs.open(f"{web.url}/many.h5", version=version) as far, hs.open(folder / "many.h5", version=version) as near:
        check_same(far, near)


@pytest.mark.parametrize("version", ["v7", 0, -1])
def test_few_rounds(web: servers.Nginx, version: object) -> None:
    before = hs.stats()
    with hs.open(f"{web.url}/many.h5", version=version) as far:
        opened = hs.stats()
        assert opened["round_count"] - before["round_count"] <= MOST_ROUNDS
        assert far["g/x"][-1] == 49_999
        assert hs.stats()["round_count"] - opened["round_count"] <= 1


def test_what_is_not_there_is_said_as_of_files_here(web: servers.Nginx) -> None:
    url = f"{web.url}/many.h5"
    with pytest.raises(KeyError, match="no version 'v99'"):
        hs.open(url, version="v99")
    with pytest.raises(IndexError, match="fewer than 30"):
        hs.open(url, version=-30)
    with pytest.raises(KeyError, match="was committed at"):
        hs.open(url, version=dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
    with pytest.raises(Unsupported, match="holds no versions"):
        hs.open(f"{web.url}/plain.h5", version=0)
    with pytest.raises(FileNotFoundError):
        hs.open(f"{web.url}/none.h5", version=0)


def test_a_far_version_pickles(web: servers.Nginx, folder: Path) -> None:
    with hs.open(f"{web.url}/many.h5", version="v7") as far, hs.open(folder / "many.h5", version="v7") as near:
        check_same(pickle.loads(pickle.dumps(far)), near)
        program = "import pickle, sys; print(float(pickle.load(sys.stdin.buffer)[...].sum()))"
        done = subprocess.run(
            [sys.executable, "-c", program], input=pickle.dumps(far["g/x"]), capture_output=True, check=True
        )
        assert float(done.stdout) == near["g/x"][...].sum()


def test_dask_reads_a_far_version(web: servers.Nginx, folder: Path) -> None:
    array = pytest.importorskip("dask.array", reason="not installed: pip install 'hyperslab[dask]'")
    with hs.open(f"{web.url}/many.h5", version="v7") as far, hs.open(folder / "many.h5", version="v7") as near:
        lazy = array.from_array(far["g/x"], chunks=10_000)
        assert lazy.sum().compute(scheduler="processes", num_workers=2) == near["g/x"][...].sum()


def test_an_object_store(s3: str, folder: Path) -> None:
    boto3 = pytest.importorskip("boto3", reason="not installed: pip install 'hyperslab[dev]'")
    client = boto3.client(
        "s3", endpoint_url=s3, aws_access_key_id="k", aws_secret_access_key="s", region_name="us-east-1"
    )
    client.create_bucket(Bucket="versions")
    client.put_object(Bucket="versions", Key="a/many.h5", Body=(folder / "many.h5").read_bytes())
    options = {"key": "k", "secret": "s", "endpoint_url": s3}
    with (
        hs.open("s3://versions/a/many.h5", version=-3, storage_options=options) as far,
        hs.open(folder / "many.h5", version=-3) as near,
    ):
        check_same(far, near)


def test_all_else_is_refused_by_name(web: servers.Nginx, folder: Path) -> None:
    url = f"{web.url}/many.h5?token=secret"
    for mode in ("r", "r+"):
        with pytest.raises(UsageError, match=r"not a local file: hyperslab.open\(URL, version=...\)") as said:
            hs.VersionedFile(url, mode)
        assert "secret" not in str(said.value)
    done = run_hyperslab("versions", "log", url)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "not a local file" in done.stderr

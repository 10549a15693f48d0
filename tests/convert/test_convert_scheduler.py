"""`--scheduler`: the workers of a local Dask cluster of processes encode the slabs of one target."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from convert_sources import assert_same

import hyperslab as hs
from command_line import run_hyperslab
from hyperslab.conversion import filling
from hyperslab.errors import UsageError

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.slow  # starting worker processes takes seconds


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


@pytest.fixture
def source(tmp_path: Path) -> Path:
    random = np.random.default_rng(3)
    path = tmp_path / "source.h5"
    with h5py.File(path, "w") as file:
        for name in ("a", "b"):
            data = random.integers(0, 99, (300, 200)).astype("f4")
            file.create_dataset(name, data=data, chunks=(10, 200), compression=1)
        file.create_dataset("plain", data=np.arange(2000.0))
        file["texts"] = ["one", "two"]
    return path


OPTIONS: dict[str, Any] = {"chunks": "100,10", "codec": "deflate-4+shuffle", "memory": 400_000}


@pytest.mark.parametrize("format", ["hdf5", "zarr2", "zarr3", "shards"])
def test_workers_write_what_one_process_writes(
    source: Path, tmp_path: Path, client: Any, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = dict(OPTIONS, shards="300,20") if format == "shards" else dict(OPTIONS)
    options["format"] = "zarr3" if format == "shards" else format
    hs.convert(source, tmp_path / "alone", **options)
    here: list[str] = []
    monkeypatch.setattr(filling.Filler, "_in_one_pass", lambda self, one, plan: here.append(one.path))
    done = hs.convert(source, tmp_path / "shared", scheduler=client, verify="library", **options)
    assert (done.verified, here) == ("library", [])
    if format == "hdf5":
        assert_same(source, tmp_path / "shared", {"a": (100, 10)})
        with h5py.File(tmp_path / "alone") as one, h5py.File(tmp_path / "shared") as other:
            for name in ("a", "b"):
                for number in range(one[name].id.get_num_chunks()):
                    start = one[name].id.get_chunk_info(number).chunk_offset
                    assert one[name].id.read_direct_chunk(start) == other[name].id.read_direct_chunk(start)
        return
    files = [sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
             for folder in (tmp_path / "alone", tmp_path / "shared")]  # fmt: skip
    assert files[0] == files[1]
    for name in files[0]:
        assert (tmp_path / "alone" / name).read_bytes() == (tmp_path / "shared" / name).read_bytes()


@pytest.mark.parametrize("format", ["hdf5", "zarr3"])
def test_an_interrupted_conversion_goes_on_with_or_without_workers(
    source: Path, tmp_path: Path, client: Any, format: str
) -> None:
    def stop(_: str, done: int, __: int) -> None:
        raise KeyboardInterrupt

    options = dict(OPTIONS, format=format, memory=200_000)
    with pytest.raises(KeyboardInterrupt):
        hs.convert(source, tmp_path / "t", scheduler=client, progress=stop, **options)
    done = hs.convert(source, tmp_path / "t", scheduler=client, resume=True, **options)
    assert done.is_resumed
    with hs.open(tmp_path / "t") as found, h5py.File(source) as file:
        for name in ("a", "b", "plain"):
            np.testing.assert_array_equal(found[name][...], file[name][...])


def test_the_command_takes_an_address(source: Path, tmp_path: Path, client: Any) -> None:
    call = ["convert", source, tmp_path / "t.zarr", "--json", "--chunks", "100,10", "--chunks", "plain:500"]
    done = run_hyperslab(*call, "--chunks", "texts:2", "--scheduler", client.scheduler.address)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verified"] == "checksum"
    assert not list(tmp_path.glob(".*"))


def test_workers_that_do_not_see_the_source_are_named(
    source: Path, tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hyperslab.conversion import cluster

    monkeypatch.setattr(cluster, "_missing", _blind)
    with pytest.raises(UsageError, match=r"does not see .*share"):
        hs.convert(source, tmp_path / "t.h5", scheduler=client, **OPTIONS)
    assert [path.name for path in tmp_path.iterdir()] == ["source.h5"]


def _blind(paths: list[str]) -> list[str]:
    return paths[-1:]


def test_no_scheduler_is_named(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hyperslab.references import side_by_side

    monkeypatch.setattr(side_by_side, "CONNECT_SECONDS", 1)
    with pytest.raises(UsageError, match="no Dask scheduler answers"):
        hs.convert(source, tmp_path / "t.h5", scheduler="tcp://127.0.0.1:1", **OPTIONS)
    assert [path.name for path in tmp_path.iterdir()] == ["source.h5"]

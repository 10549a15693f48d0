"""`index --embed`: two requests open a file from afar, libraries see the same file, and a changed file is noticed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import servers
from typer.testing import CliRunner

import hyperslab as hs
from hyperslab.cli.program import app
from hyperslab.errors import NoSpace, Refused, UsageError
from hyperslab.references import embed
from hyperslab.references.embedding import SIGNATURE


def make(path: Path, version: str = "earliest", steps: int = 300) -> Path:
    """Metadata scattered among chunks: three arrays grow in turn."""
    with h5py.File(path, "w", libver=version) as file:
        for group in ("a", "b", "c"):
            array = file.create_dataset(f"{group}/x", (0, 64, 64), "f4", chunks=(1, 64, 64), maxshape=(None, 64, 64))
            array.attrs["text"] = [f"attribute {number} " * 9 for number in range(20)]
        for step in range(steps):
            for group in ("a", "b", "c"):
                file[f"{group}/x"].resize(step + 1, axis=0)
                file[f"{group}/x"][step] = step
        file["last"] = np.arange(5)
    return path


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("embedded")


@pytest.fixture(scope="module")
def files(root: Path) -> Iterator[servers.Nginx]:
    for version in ("earliest", "latest"):
        make(root / f"{version}.nc", version)
    with servers.nginx(root / "run", root) as running:
        yield running


def seen(opened: Any) -> list[Any]:
    """All that opening a file tells, and some of its elements."""
    told: list[Any] = []

    def tell(name: str, node: Any) -> None:
        told.append((name, [(key, np.asarray(value).tolist()) for key, value in node.attrs.items()]))
        if hasattr(node, "chunks"):
            segments = [
                (one.indices().tolist(), one.offsets().tolist(), one.lengths().tolist()) for one in node.segments()
            ]
            told.append((node.shape, node.chunks, str(node.dtype), segments, node[..., :1].tolist()))

    opened.visititems(tell)
    return told


def requests_to_open(files: servers.Nginx, name: str) -> tuple[list[Any], list[tuple[int, int]]]:
    with hs.open(f"{files.url}/earliest.nc"):
        before = len(files.requests())
    with hs.open(f"{files.url}/{name}") as far:
        requests = files.requests()[before:]
        return seen(far), requests


@pytest.mark.parametrize("version", ["earliest", "latest"])
def test_two_requests_and_the_same_file(files: servers.Nginx, root: Path, version: str) -> None:
    plain, path = root / f"{version}.nc", root / f"{version}-embedded.nc"
    shutil.copy(plain, path)
    done = embed(path)
    assert path.read_bytes()[: plain.stat().st_size] == plain.read_bytes()
    assert path.stat().st_size == plain.stat().st_size + done.nbytes
    assert done.nbytes < plain.stat().st_size / 10
    before, many = requests_to_open(files, plain.name)
    after, two = requests_to_open(files, path.name)
    assert len(many) > 2
    assert [nbytes for _, nbytes in two] == [min(512 << 10, path.stat().st_size), done.nbytes]
    assert before == after
    with hs.open(path) as near:
        assert seen(near) == after
    assert embed(path).was_there


def dumped(path: Path) -> str:
    done = subprocess.run(["h5dump", path.name], cwd=path.parent, check=True, capture_output=True, text=True)
    return done.stdout.replace(path.name, "")


@pytest.mark.skipif(shutil.which("h5dump") is None, reason="h5dump is not installed")
def test_libraries_see_the_same_file_and_the_first_that_writes_removes_the_index(tmp_path: Path) -> None:
    path = make(tmp_path / "a.nc", steps=9)
    before, nbytes = dumped(path), path.stat().st_size
    embed(path)
    assert dumped(path) == before
    netcdf4 = pytest.importorskip("netCDF4")
    with netcdf4.Dataset(path) as opened:
        assert opened["a/x"].shape == (9, 64, 64)
    with h5py.File(path, "r+") as file:
        file["last"][0] = 7
    assert path.stat().st_size == nbytes
    assert not embed(path).was_there
    with h5py.File(path) as file:
        assert file["last"][:2].tolist() == [7, 1]


def damaged(path: Path, kind: str) -> None:
    """Change a file with an index in a way that must not be missed."""
    size, end = path.stat().st_size, path.read_bytes().index(SIGNATURE)
    with path.open("r+b") as file:
        if kind == "grown by libhdf5":
            file.close()
            with h5py.File(path, "r+") as opened:
                opened["more"] = np.arange(200_000)
            with path.open("ab") as again:
                again.write(saved[path.name])
        elif kind == "another head":
            file.seek(2000)
            byte = file.read(1)[0]
            file.seek(2000)
            file.write(bytes([byte ^ 1]))
        elif kind == "another byte of the index":
            file.seek(end + (size - end) // 2)
            file.write(b"\xa5\x5a\xa5")
        elif kind == "cut off":
            file.truncate(size - 9)
        elif kind == "continued":
            file.seek(size)
            file.write(b"more")
        else:
            file.seek(end)
            file.write(os.urandom(size - end))


saved: dict[str, bytes] = {}
KINDS = ["grown by libhdf5", "another head", "another byte of the index", "cut off", "continued", "noise"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_that_does_not_fit_is_ignored(files: servers.Nginx, root: Path, kind: str) -> None:
    path = root / f"{kind.replace(' ', '-')}.nc"
    make(path, steps=150)
    end = path.stat().st_size
    embed(path)
    saved[path.name] = path.read_bytes()[end:]
    damaged(path, kind)
    after, requests = requests_to_open(files, path.name)
    with hs.open(path) as near:
        assert seen(near) == after
    assert len(requests) > 2


def test_a_kill_or_a_full_disk_at_any_point_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path / "a.nc", steps=20)
    content = path.read_bytes()
    index = embed(path).nbytes
    whole = path.read_bytes()
    for kept in (0, 1, 7, 8, 100, index // 2, index - 1):
        path.write_bytes(whole[: len(content) + kept])  # as a kill leaves it
        with hs.open(path) as opened, h5py.File(path) as file:
            assert opened["a/x"].shape == file["a/x"].shape == (20, 64, 64)
        assert embed(path).nbytes == index
        assert path.read_bytes() == whole
    path.write_bytes(content)
    real = os.pwrite
    for room in (0, 5, index - 1):
        left = [room]

        def full(descriptor: int, data: Any, offset: int, left: list[int] = left) -> int:
            if not left[0]:
                raise OSError(28, "No space left on device")
            part = bytes(data[: left[0]])
            left[0] -= len(part)
            return real(descriptor, part, offset)

        with monkeypatch.context() as patched:
            patched.setattr(os, "pwrite", full)
            with pytest.raises(NoSpace, match="as it was"):
                embed(path)
        assert path.read_bytes() == content


def test_what_gets_no_index_is_refused_by_name(tmp_path: Path) -> None:
    path = make(tmp_path / "a.nc", steps=2)
    content = path.read_bytes()
    path.write_bytes(content + b"a zip, perhaps")
    with pytest.raises(Refused, match="not ours"):
        embed(path)
    assert path.read_bytes() == content + b"a zip, perhaps"
    path.write_bytes(content)
    with h5py.File(path, "r+"), pytest.raises(UsageError, match="open in another program"):
        embed(path)
    with hs.VersionedFile(tmp_path / "versions.h5", "w") as file, file.stage_version("one") as version:
        version.create_dataset("x", data=np.arange(5))
    with pytest.raises(Refused, match="holds versions"):
        embed(tmp_path / "versions.h5")
    (tmp_path / "b.nc").write_bytes(b"CDF\x01" + bytes(28))
    with pytest.raises(Refused, match="no HDF5"):
        embed(tmp_path / "b.nc")
    assert path.read_bytes() == content


def test_the_command_embeds_many_and_names_those_that_fail(tmp_path: Path) -> None:
    paths = [make(tmp_path / f"{name}.nc", steps=2) for name in ("a", "b")]
    (tmp_path / "no.nc").write_bytes(b"CDF\x01" + bytes(28))
    words = ["index", "--embed", *map(str, paths), str(tmp_path / "no.nc")]
    first = CliRunner().invoke(app, words)
    assert first.exit_code == 1
    assert "no.nc failed" in first.output
    again = CliRunner().invoke(app, ["index", "--json", "--embed", *map(str, paths)])
    assert [one["was_there"] for one in json.loads(again.stdout)] == [True, True]
    refused = CliRunner().invoke(app, ["index", "--embed", "-o", "x.hs", str(paths[0])]).exception
    assert "leave out -o" in str(refused)

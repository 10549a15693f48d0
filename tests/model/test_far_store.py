"""Far stores: the server sees the predicted requests, and a calibration predicts their time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import hyperslab as hs
from hyperslab.cli import app
from hyperslab.errors import Refused, UsageError
from hyperslab.lab import serving
from hyperslab.lab.rounds import StopRule
from hyperslab.lab.worker import Workbench
from hyperslab.model import HyperslabEngine, Layout, Workload, far_store, load_store_profile
from hyperslab.model.cells import ModelCell
from hyperslab.model.counting import count_operations
from hyperslab.model.far_store import FarFile, FarPass, arrays_of, calibrate_far, why_not

pytestmark = pytest.mark.usefixtures("prepared_workers")

FEW_CELLS = far_store.FarTrainingSize(3, 1 << 20, StopRule(1, 1))
h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")
runner = CliRunner()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made, random = tmp_path_factory.mktemp("served"), np.random.default_rng(5)
    with h5py.File(made / "ocean.h5", "w") as file:
        values = random.normal(size=(900, 1200)).astype("f4")
        file.create_dataset("deflated", data=values, chunks=(90, 100), compression="gzip", compression_opts=1)
        file.create_dataset("plain", data=values[:800], chunks=(40, 50))
        file.create_dataset("group/whole", data=values[:700])
        file.create_dataset("text", data=["a", "b"], dtype=h5py.string_dtype())
        file["none"] = h5py.Empty("f4")
    with h5py.File(made / "text.h5", "w") as file:
        file.create_dataset("text", data=["a", "b"], dtype=h5py.string_dtype())
    return made


@pytest.fixture(scope="module")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[serving.Nginx]:
    if reason := serving.absent("nginx"):
        pytest.skip(reason)
    with serving.nginx(tmp_path_factory.mktemp("nginx") / "run", folder) as running:
        yield running


BOXES = [
    {"select": "random-boxes", "shape": [1, 1], "count": 4},
    {"select": "random-boxes", "shape": [200, 300], "count": 3},
    {"select": "columns", "count": 2},
    {"select": "all"},
]


@pytest.mark.parametrize("access", BOXES)
def test_the_server_sees_what_is_told(server: serving.Nginx, access: dict[str, Any]) -> None:
    """Every request of every call, except those for cached chunks, as in nginx's log."""
    url = f"{server.url}/ocean.h5"
    with hs.open(url) as root:
        for far in arrays_of(root, 9):
            asked = Workload.model_validate({"array": far.array, "accesses": [access, access]})
            cell = ModelCell(asked, far.layout, HyperslabEngine(far=True), "cold")
            told = count_operations(cell)["read"]
            with hs.open(url) as anew:
                array, seen = anew[far.name], len(server.requests())
                for step in asked.steps():
                    array.read(step.selection)
            sent = [nbytes for _, nbytes in server.requests()[seen:]]
            assert (len(sent), sum(sent)) == (told.n_rdisk, told.s_rdisk), far.name
            assert told.n_rrequest == told.n_rdisk >= told.n_rseek > 0
            _, counted = FarPass(FarFile("", url), far.name, asked).run(Workbench())
            assert why_not(counted, told) is None
            assert why_not(counted, told._replace(n_rdisk=told.n_rdisk + 1)) is not None


def test_which_arrays_are_read(server: serving.Nginx) -> None:
    with hs.open(f"{server.url}/ocean.h5") as root:
        found = {far.name: far.layout for far in arrays_of(root, 9)}
    assert set(found) == {"/deflated", "/plain", "/group/whole"}
    assert found["/group/whole"] == Layout((700, 1200), contiguous=True)
    assert found["/deflated"].codec == "deflate"


def calibrated(folder: Path, *options: str) -> Path:
    made = folder / "far.json"
    done = runner.invoke(app, ["calibrate", "--dir", str(folder), "-o", str(made), *options])
    assert done.exit_code == 0, done.output
    return made


@pytest.mark.slow
def test_a_url_is_calibrated_and_predicted(
    server: serving.Nginx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(far_store.SIZES, "quick", FEW_CELLS)
    url = f"{server.url}/ocean.h5"
    made = calibrated(tmp_path, "--store", url, "--option", "timeout=20")
    profile = load_store_profile(made)
    assert profile.store == server.url
    assert profile.is_far
    assert profile.libraries == ("hyperslab",)
    assert profile.differs_from_this_machine(Path("/proc")) == []
    workload = tmp_path / "boxes.yaml"
    workload.write_text("array: {shape: [900, 1200], dtype: float32}\naccesses: [{select: rows, count: 3}]\n")
    shown = runner.invoke(app, ["predict", str(workload), "--profile", str(made), "--file", f"{url}:deflated"])
    assert shown.exit_code == 0, shown.output
    assert "90x100:deflate" in shown.stdout
    assert f"store: {server.url}" in shown.stdout
    with pytest.raises(Refused, match="a far store starts with nothing cached"):
        hs.predict(workload, [(90, 100)], store_profile=profile, cache="page-warm")
    with pytest.raises(UsageError, match="no array"):
        calibrate_far(FarFile("here", f"{server.url}/text.h5"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nginx", "versitygw"])
def test_a_server_started_here(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if reason := serving.absent(name):
        pytest.skip(reason)
    monkeypatch.setitem(far_store.SIZES, "quick", FEW_CELLS)
    profile = load_store_profile(calibrated(tmp_path, "--store", name, "--round-trip-ms", "30"))
    assert profile.store == f"{name}, 30 ms round trip"
    assert min(cell.seconds for cell in profile.cells) > 0.06, "a connection, and a request"
    assert [path.name for path in tmp_path.iterdir()] == ["far.json"]
    # However busy the machine is, no round trip is shorter than the network's.
    assert all(cell.seconds > 0.03 * cell.variables.n_rseek for cell in profile.cells)
    assert max(cell.variables.n_rseek for cell in profile.cells) > 3 * min(
        cell.variables.n_rseek for cell in profile.cells
    )
    one = Workload.model_validate(
        {"array": {"shape": [99, 99]}, "accesses": [{"select": "random-boxes", "shape": [1, 1], "count": 1}]}
    )
    many = Workload.model_validate({"array": {"shape": [99, 99]}, "accesses": [{"select": "rows", "count": 20}]})
    few, more = (hs.predict(each, [(9, 99)], store_profile=profile)[0] for each in (one, many))
    assert more.variables["read"].n_rseek > few.variables["read"].n_rseek
    assert more.cost.seconds > few.cost.seconds, "no coefficient is negative"


def test_rounds_are_of_as_many_requests_as_a_host_is_sent() -> None:
    asked = Workload.model_validate({"array": {"shape": [330, 2**20], "dtype": "u1"}, "accesses": [{"select": "all"}]})
    far = count_operations(ModelCell(asked, Layout((1, 2**20), ratio=1.0), HyperslabEngine(far=True), "cold"))["read"]
    assert far.n_rseek == -(-far.n_rdisk // 32) > 1
    assert (far.n_cache, far.n_rindex) == (0, 0)
    near = count_operations(ModelCell(asked, Layout((1, 2**20), ratio=1.0), HyperslabEngine(), "cold"))["read"]
    assert near.n_rdisk > far.n_rdisk


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--store", "nginx"], "--store needs -o"),
        (["--store", "ftp://host/file", "-o", "x"], "give a file's URL"),
        (["--store", "moto", "-o", "x"], "give a file's URL"),
        (["--store", "https://host/f.h5", "--round-trip-ms", "3", "-o", "x"], "needs a server started here"),
        (["--store", "nginx", "--option", "anon=true", "-o", "x"], "applies to URLs only"),
        (["--store", "nginx", "--resume", "-o", "x"], "cannot resume"),
        (["--store", "nginx", "--libraries", "zarr", "-o", "x"], "measures hyperslab alone"),
        (["--round-trip-ms", "3"], "need --store"),
    ],
)
def test_what_is_refused(options: list[str], what: str) -> None:
    refused = runner.invoke(app, ["calibrate", *options])
    assert isinstance(refused.exception, UsageError)
    assert what in str(refused.exception)


def test_names_of_files_and_arrays() -> None:
    from hyperslab.model.file_layout import file_and_array

    for where, found in (
        ("http://127.0.0.1:80/a/f.h5", ("http://127.0.0.1:80/a/f.h5", "")),
        ("http://127.0.0.1:80/a/f.h5:g/x", ("http://127.0.0.1:80/a/f.h5", "g/x")),
        ("s3://bucket/f.h5:x", ("s3://bucket/f.h5", "x")),
        ("f.h5:g/x", ("f.h5", "g/x")),
        ("f.h5", ("f.h5", "")),
    ):
        assert file_and_array(where) == found

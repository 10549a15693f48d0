"""Workload files: several arrays, repeats, files that are opened again, computing in between; their schema."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up import made_up_store_profile
from typer.testing import CliRunner

import hyperslab as hs
from hyperslab._core import CacheState, Hyperslab
from hyperslab.advise.demand import GivenSteps
from hyperslab.cli import app
from hyperslab.errors import Refused, StudyError
from hyperslab.model import (
    Caches,
    Flat,
    Hdf5,
    HyperslabEngine,
    Layout,
    ModelCell,
    PaperHdf5,
    Workload,
    Zarr,
    count,
    count_each,
    count_operations,
    load_workload,
    load_workloads,
)
from hyperslab.model.measuring import measure
from hyperslab.model.predict import predict_cell
from hyperslab.model.store_profile import load_store_profile
from hyperslab.model.workload import Step
from hyperslab.model.workload_file import SCHEMA_FILE, WorkloadFile, schema, schema_text

runner = CliRunner()
NAMES = CacheState.variable_names()
LAYOUT = Layout((10, 8))
TWO = """
arrays:
  long: {shape: [100, 16], dtype: int32}
  wide: {shape: [8, 600], dtype: float64}
accesses:
  - {array: long, select: rows, count: 3}
  - {array: wide, select: columns, count: 2}
  - {array: long, select: all}
"""


def workload(*accesses: dict[str, Any], **more: Any) -> Workload:
    return Workload.model_validate({"array": {"shape": [100, 16], "dtype": "int32"}, "accesses": accesses, **more})


@pytest.fixture(scope="module")
def store_profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made_up") / "profile.json"
    made_up_store_profile(path.parent, slow=2.0).save(path)
    return path


def test_repeats_are_calls() -> None:
    one, three = (workload({"select": "rows", "count": 4}, {"select": "all"}, repeat=n) for n in (1, 3))
    assert [step.selection for step in three.steps()] == [step.selection for step in one.steps()] * 3
    assert count(three, LAYOUT, Hdf5()).n_rdisk == count(one, LAYOUT, Hdf5()).n_rdisk, "HDF5 kept the chunks"
    assert count(three, LAYOUT, Zarr()).n_open == 3 * count(one, LAYOUT, Zarr()).n_open


@pytest.mark.parametrize("library", [Hdf5(), Zarr(), Flat(), HyperslabEngine(), PaperHdf5()])
def test_what_is_opened_again_comes_from_the_page_cache(library: Any) -> None:
    again = workload({"select": "all"}, {"select": "all", "reopen": True})
    first, second, _ = count_each(again, LAYOUT, library)
    device, cached, index = (NAMES.index(name) for name in ("n_rdisk", "n_cache", "n_rindex"))
    assert first[device] > 0
    assert second[device] == 0
    if isinstance(library, PaperHdf5):  # which has no page cache for its index
        first[index] = second[index] = 0
    assert second[index] == 0
    assert second[cached] == first[[device, cached, index]].sum(), "the library has forgotten, the system has not"
    (found,) = count_operations(ModelCell(again, LAYOUT, library, "cold")).values()
    assert found.n_array == 2


def test_opening_again_writes_what_was_not_written() -> None:
    write = {"select": "all", "operation": "write"}
    kept = count(workload(write, write), LAYOUT, Hdf5(), chunks="missing")
    apart = count(workload(write, {**write, "reopen": True}), LAYOUT, Hdf5(), chunks="missing")
    assert kept.n_wdisk * 2 == apart.n_wdisk
    assert apart.n_windex > kept.n_windex / 2


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace: apt-get install strace")
def test_h5py_reads_as_often_as_predicted(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=np.ones((1000, 64)), chunks=(100, 64))
    program = f"""
import h5py
for _ in range(3):
    with h5py.File({str(tmp_path / "a.h5")!r}) as file:
        array = file["x"]
        array[:150], array[100:250]
"""
    command = ["strace", "-f", "-e", "trace=pread64", "-e", "signal=none", sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seen = sum(line.endswith(f"= {100 * 64 * 8}") for line in done.stderr.splitlines())
    boxes = [{"start": [0, 0], "shape": [150, 64]}, {"start": [100, 0], "shape": [150, 64]}]
    given = {"array": {"shape": [1000, 64], "dtype": "float64"}, "repeat": 3}
    asked = Workload.model_validate({**given, "accesses": [{"select": "list", "boxes": boxes, "reopen": True}]})
    found = count(asked, Layout((100, 64)), Hdf5(), Caches())
    again = 2 * found.n_rindex  # blocks of the index, when the file is opened for the second time and the third
    assert found.n_rdisk + found.n_cache - again == seen == 9


def steps(count: int, **again: bool) -> list[Step]:
    box = Hyperslab([0, 0], None, [1, 1], [10, 64])
    return [Step("read", box), *(Step("read", box, **again) for _ in range(count - 1))]


def test_an_array_that_is_opened_again_has_no_chunks_but_its_index() -> None:
    made = GivenSteps.of([1000, 64], "float64", steps(5, reopens_array=True))
    layout = Layout((100, 64), ratio=2.0, codec="deflate")
    found = count(made, layout, Hdf5())
    assert (found.n_array, found.n_again) == (5, 4)
    assert found.s_decode == 5 * 100 * 64 * 8
    once = count(GivenSteps.of([1000, 64], "float64", steps(5)), layout, Hdf5())
    assert (once.n_array, once.n_again, once.s_decode) == (1, 0, 100 * 64 * 8)
    assert found.n_rindex == once.n_rindex
    far = count(made, layout, HyperslabEngine(far=True))
    assert (far.n_array, far.n_again) == (1, 0), "our engine knows all arrays of a file on a server"


def test_opening_an_array_again_takes_less_than_opening_its_file_too(store_profile: Path) -> None:
    profile, layout = load_store_profile(store_profile), Layout((100, 64))
    found = {}
    for again in ("reopens_array", "reopens"):
        made = GivenSteps.of([1000, 64], "float64", steps(5, **{again: True}))
        predicted = predict_cell(ModelCell(made, layout, Hdf5(), "page-warm"), profile)
        found[again] = predicted.cost.seconds
        tenfold = predict_cell(ModelCell(made, layout, Hdf5(), "page-warm"), profile, factor=10.0)
        assert tenfold.variables["read"].n_array == 1 + 10 * 4  # the first time is once
    assert found["reopens_array"] < found["reopens"]


def test_computing_is_added(store_profile: Path) -> None:
    access = {"select": "rows", "count": 4}
    idle, busy = (
        hs.predict(workload({**access, "compute_seconds": gap}), [LAYOUT], store_profile=store_profile)[0].cost
        for gap in (0, 0.25)
    )
    assert busy.seconds == pytest.approx(idle.seconds + 1)
    assert busy.high == pytest.approx(idle.high + 1)
    assert busy.phases["computing"] == 1


def test_what_cannot_be_measured_says_so(tmp_path: Path) -> None:
    cell = ModelCell(workload({"select": "all", "reopen": True}), LAYOUT, Hdf5(), "cold")
    with pytest.raises(Refused, match="can be priced but not measured"):
        list(measure([cell], tmp_path))
    warm = ModelCell(workload({"select": "all", "reopen": True}), LAYOUT, Hdf5(), "library-warm")
    assert "keeps its file open" in str(warm.contradiction)


def test_several_arrays(tmp_path: Path, store_profile: Path) -> None:
    (tmp_path / "two.yaml").write_text(TWO)
    found = load_workloads(tmp_path / "two.yaml")
    assert list(found) == ["long", "wide"]
    assert [access.select for access in found["long"].accesses] == ["rows", "all"]
    with pytest.raises(StudyError, match=r"several arrays \(long, wide\)"):
        load_workload(tmp_path / "two.yaml")
    asked = ["predict", str(tmp_path / "two.yaml"), "--profile", str(store_profile), "--layout", "4x16"]
    done = runner.invoke(app, [*asked, "--layout", "long@50x4", "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    shown = {name: {one["layout"] for one in each["predictions"]} for name, each in document["arrays"].items()}
    assert shown == {"long": {"4x16", "50x4"}, "wide": {"4x16"}}
    for name, each in document["arrays"].items():
        alone = hs.predict(found[name], [(4, 16)], libraries=["hdf5"], store_profile=store_profile)[0]
        there = [one for one in each["predictions"] if (one["library"], one["layout"]) == ("hdf5", "4x16")]
        assert there[0]["seconds"] == pytest.approx(alone.cost.seconds)
    least = [min(one["seconds"] for one in each["predictions"]) for each in document["arrays"].values()]
    assert document["least_seconds"] == pytest.approx(sum(least))
    table = runner.invoke(app, asked).stdout
    assert "long, 100 × 16 int32" in table
    assert "all arrays, each with its fastest layout and library" in table


def test_arrays_of_one_workload_share_the_openings_of_their_file(tmp_path: Path) -> None:
    text = """\
arrays: {a: {shape: [8, 8], dtype: int32}, b: {shape: [8, 8], dtype: int32}}
accesses:
  - {array: a, select: all}
  - {array: b, select: all, reopen: true, weight: 2}
  - {array: a, select: all}
  - {array: a, select: all}
"""
    (tmp_path / "shared.yaml").write_text(text + "repeat: 2\n")
    found = load_workloads(tmp_path / "shared.yaml")
    marks = {name: [(step.reopens, step.shared) for step in each.steps()] for name, each in found.items()}
    # The file is opened for a, then for b, where a is opened again; the second time, b opens it once more.
    again, still = (True, 1.0), (False, 0.0)
    assert marks["a"] == [still, again, still, still, again, still]
    assert marks["b"] == [still, still, (True, 0.0), still]
    counted = {name: count(each, Layout((4, 8)), Hdf5()) for name, each in found.items()}
    assert {name: (each.n_array, each.n_again) for name, each in counted.items()} == {"a": (3, 2), "b": (2, 0)}
    (tmp_path / "shuffled.yaml").write_text(text.replace("reopen: true, ", "") + "order: shuffled\n")
    found = load_workloads(tmp_path / "shuffled.yaml")
    counted = {name: count(each, Layout((4, 8)), Hdf5()) for name, each in found.items()}
    assert {name: (each.n_array, each.n_again) for name, each in counted.items()} == {"a": (1, 0), "b": (1, 1)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TWO.replace("array: wide", "array: tall"), "line 7: accesses.1.array: there is no array 'tall'"),
        (TWO.replace("array: wide, ", ""), "line 7: accesses.1.array: no array is named; choose from long, wide"),
        (TWO.replace("count: 2}", "count: 2, within: [1]}"), "line 7: accesses.1.within: within has 1 axes"),
        (TWO + "array: {shape: [1]}\n", "give either array or arrays"),
        (TWO + "threads: 2\n", "line 9: threads: 2 threads cannot be priced yet"),
        (TWO + "repeat: 10000000\n", "line 9: repeat: all accesses together make"),
        (TWO.replace("all}", "all, reopen: true}") + "order: shuffled\n", "line 8: accesses.2.reopen: shuffled"),
        (TWO.replace("all}", "all, compute_seconds: -1}"), "line 8: accesses.2.compute_seconds: "),
        (TWO.replace("all}", "all, mpi: true}"), "line 8: accesses.2.mpi: unknown key"),
        (TWO.replace("all}", "all, step: 2}"), "line 8: accesses.2.step: `select: all` takes no step"),
        (TWO.replace("all}", "list, boxes: []}"), "line 8: accesses.2.boxes: "),
        (TWO.replace("all}", "points, points: []}"), "line 8: accesses.2.points: "),
        (
            TWO.replace("all}", "list, count: 2, boxes: [{start: [0, 0], shape: [1, 1]}]}"),
            "line 8: accesses.2.count: `select: list` takes no count; `weight` repeats the access",
        ),
        (TWO.replace("all}", "random-points, weight: 20000}"), "line 8: accesses.2: it makes 20000000 calls"),
        (TWO.replace("100, 16", "9223372036854775808, 16"), "line 3: arrays.long.shape.0: "),
        (TWO.replace("100, 16", "9223372036854775807, 16"), "line 3: arrays.long.shape: the array would have more"),
        (TWO.replace("int32", "O"), "line 3: arrays.long.dtype: 'O' has no fixed width"),
        (
            TWO.replace("all}", "append, operation: write, count: 9, rows: 999999999999999999}"),
            "line 8: accesses.2.rows: the array would have more than 2^63 - 1 bytes",
        ),
        (TWO + "hdf5: {version: 1.14}\n", "line 9: hdf5.version: 1.14 is a number, and 1.10 would be 1.1"),
        (TWO + "seed: 1\nseed: 2\n", "line 10: not a YAML file: the key 'seed' is there twice"),
        (TWO.replace("accesses:", "acesses:"), "line 5: acesses: unknown key; did you mean 'accesses'?"),
        ("a: " + "[" * 3000, "nested too deeply"),
        (TWO.replace("all}", "all, cout: 2}"), "line 8: accesses.2.cout: unknown key; did you mean 'count'?"),
        (TWO.replace("accesses:", "acceses:"), "acceses: unknown key; did you mean 'accesses'?"),
        (TWO.replace("shape: [100", "shap: [100"), "arrays.long.shap: unknown key; did you mean 'shape'?"),
        (TWO.replace("array: wide", "array: wid"), "there is no array 'wid'; did you mean 'wide'?"),
        (TWO.replace("select: all", "select: al"), "unknown selection 'al'; did you mean 'all'?"),
        (TWO.replace("int32", "itn32"), "'itn32' is not a NumPy dtype; did you mean 'int32'?"),
    ],
)
def test_mistakes_name_line_and_key(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text(text)
    with pytest.raises(StudyError) as caught:
        load_workloads(tmp_path / "two.yaml")
    assert said in str(caught.value)


def test_every_count_counts() -> None:
    """`count` was ignored by selections that there is only one of."""
    for select in ("all", "hyperslab", "strided", "rows", "random-rows", "points"):
        asked = workload({"select": select, "count": 3})
        size = sum(step.selection.size for step in asked.steps())
        once = workload({"select": select, "count": 1}).steps()[0].selection.size
        assert size == 3 * once, select


def test_a_missing_file_is_no_study(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"nosuch.yaml: cannot be read \(No such file or directory\)$"):
        load_workloads(tmp_path / "nosuch.yaml")


def test_the_schema_is_the_one_in_the_package() -> None:
    shipped = json.loads(SCHEMA_FILE.read_text())
    for name in ("", *schema()["$defs"]):
        now, then = (each["$defs"][name] if name else each for each in (schema(), shipped))
        described = [
            {key: value.get("description") for key, value in each["properties"].items()} for each in (now, then)
        ]
        assert described[0] == described[1], f"{SCHEMA_FILE.name} is old: hyperslab predict --schema > {SCHEMA_FILE}"
    assert set(shipped["properties"]) == set(WorkloadFile.model_fields)
    shown = runner.invoke(app, ["predict", "--schema"])
    assert shown.exit_code == 0
    assert shown.stdout == schema_text()


def test_the_schema_accepts_what_we_accept() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    import yaml

    check = jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text()))
    assert check.is_valid(yaml.safe_load(TWO))
    for broken in (
        TWO.replace("arrays:", "tables:"),
        TWO.replace("[100, 16]", "[100, 0]"),
        TWO + "array: {shape: [1]}",
    ):
        assert not check.is_valid(yaml.safe_load(broken))

"""`hyperslab predict FILE:ARRAY`: what usual reads of an existing array cost, without a workload file."""

from __future__ import annotations

import json
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import pytest
from made_up import made_up_store_profile, with_codecs
from typer.testing import CliRunner

import hyperslab as hs
from hyperslab.advise.sensible import sensible_layouts
from hyperslab.advise.usual_reads import compare_layouts, find_array, usual_accesses
from hyperslab.cli import app
from hyperslab.errors import NotAStoreProfile, Refused, Untrained, UsageError
from hyperslab.model import Layout, Workload, load_store_profile

runner = CliRunner()
h5py = pytest.importorskip("h5py")


@pytest.fixture(scope="module")
def store_profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made_up") / "profile.json"
    with_codecs(made_up_store_profile(path.parent), "deflate").save(path)
    return path


@pytest.fixture(scope="module")
def ocean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ocean") / "ocean.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("sst", data=np.zeros((200, 300, 40), np.float32), chunks=(1, 300, 40), compression="gzip")
        file.create_dataset("plain", data=np.zeros((64, 64)))
        file.create_dataset("line", data=np.zeros(5000, "i2"), chunks=(10,))
        file.create_dataset("empty", shape=(0, 4), dtype="f4")
        file.create_dataset("words", data=["a", "bc"], dtype=h5py.string_dtype())
        file.create_dataset("pairs", data=np.zeros((50, 20), [("a", "i4"), ("b", "f8")]), chunks=(5, 20))
    return path


def test_each_number_is_that_of_a_workload(ocean: Path, store_profile: Path) -> None:
    found = compare_layouts(find_array(f"{ocean}:sst"), load_store_profile(store_profile))
    assert [row.access for row in found.rows] == [
        "all of it", "a row along axis 0", "a row along axis 1", "a row along axis 2", "a box of 1 %", "one element",
    ]  # fmt: skip
    assert str(found.columns[0].layout).startswith("1x300x40:deflate:4=")
    assert len(found.columns) == 4, "the made-up store profile does not know our own engine"
    for row in found.rows[1:3]:
        box = usual_accesses((200, 300, 40))[row.access]
        given = {"array": {"shape": [200, 300, 40], "dtype": "float32"}}
        workload = Workload.model_validate({**given, "accesses": [{"select": "list", "boxes": [box]}]})
        for column, seconds in zip(found.columns, row.seconds, strict=True):
            (one,) = hs.predict(workload, [column.layout], libraries=["hdf5"], store_profile=store_profile)
            assert seconds == pytest.approx(one.cost.seconds)
        assert row.nbytes == prod(box["shape"]) * 4
        assert row.times_slower == pytest.approx(row.seconds[0] / min(row.seconds))


def test_a_row_across_many_chunks_hurts(ocean: Path, store_profile: Path) -> None:
    found = compare_layouts(find_array(f"{ocean}:sst"), load_store_profile(store_profile))
    row = found.rows[1]
    assert row.hurts
    assert row.times_slower is not None
    assert row.times_slower > 2
    assert found.all_round != 0
    said = found.verdict()
    assert said[0].startswith("a row along axis 0 takes ")
    assert said[-1].startswith("all-round: ")
    same = compare_layouts(
        find_array(f"{ocean}:sst"), load_store_profile(store_profile), layouts=[Layout((1, 300, 40))]
    )
    assert not any(row.hurts for row in same.rows)


def test_the_three_layouts() -> None:
    for shape, width in (((200, 300, 40), 4), ((1_000_000, 8), 8), ((7, 5, 3, 2, 2), 1), ((100_000_000,), 2)):
        layouts = sensible_layouts(shape, width, Layout(shape, contiguous=True))
        assert len({layout.chunk_shape for layout in layouts}) == len(layouts)
        for layout in layouts:
            assert all(1 <= part <= length for part, length in zip(layout.chunk_shape, shape, strict=True))
            assert prod(layout.chunk_shape) * width <= 16 << 20
    even, rows, columns = (each.chunk_shape for each in sensible_layouts((4000, 4000), 4, Layout((1, 1))))
    assert even == (500, 500)
    assert rows == (65, 4000)
    assert columns == (4000, 65)
    assert all(layout.codec == "zstd" and layout.ratio == 2.5 for layout in
               sensible_layouts((4000, 4000), 4, Layout((9, 9), ratio=2.5, codec="zstd")))  # fmt: skip


def test_the_boxes_lie_in_the_array() -> None:
    for shape in ((1,), (3, 2), (1000, 1, 7), (9, 9, 9, 9)):
        for box in usual_accesses(shape).values():
            Workload.model_validate({"array": {"shape": list(shape)}, "accesses": [{"select": "list", "boxes": [box]}]})
    box = usual_accesses((1000, 1000))["a box of 1 %"]
    assert prod(box["shape"]) == 10_000
    assert "a row along axis 1 (lat)" in usual_accesses((4, 4), ("time", "lat"))
    assert not any("row" in name for name in usual_accesses((50,)))


def test_the_command(ocean: Path, store_profile: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="not installed: pip install 'hyperslab[report]'")
    figure = tmp_path / "reads.svg"
    asked = ["predict", f"{ocean}:sst", "--profile", str(store_profile)]
    shown = runner.invoke(app, [*asked, "--figure", str(figure)])
    assert shown.exit_code == 0, shown.output
    for words in ("a row along axis 0", "today (1x300x40)", "as long", "all-round", "calibrated 2026-11-22"):
        assert words in shown.stdout
    assert "one element" in figure.read_text()
    document = json.loads(runner.invoke(app, [*asked, "--json"]).stdout)
    assert document["columns"][0] == {"layout": document["columns"][0]["layout"], "library": "hdf5", "today": True}
    assert document["accesses"][1]["hurts"]
    assert document["profile"].startswith("local disk, calibrated 2026-11-22")
    assert any("by hyperslab 0," in warning for warning in document["warnings"])
    chosen = json.loads(runner.invoke(app, [*asked, "--json", "--layout", "20x30x40"]).stdout)
    assert [column["layout"] for column in chosen["columns"]][1:] == ["20x30x40"]


@pytest.mark.parametrize(
    ("where", "error", "what"),
    [
        ("", UsageError, "has several arrays: give FILE:ARRAY; it has /"),
        (":nothing", UsageError, "does not name one of its arrays"),
        (":empty", UsageError, "nothing to read"),
        (":words", UsageError, "no fixed width"),
        ("x", UsageError, "there is no file"),
    ],
)
def test_what_is_no_array(where: str, error: type[Exception], what: str, ocean: Path, store_profile: Path) -> None:
    done = runner.invoke(app, ["predict", f"{ocean}{where}", "--profile", str(store_profile)])
    assert isinstance(done.exception, error), done.output
    assert what in str(done.exception)


def test_other_arrays(ocean: Path, store_profile: Path) -> None:
    profile = load_store_profile(store_profile)
    for name in ("plain", "line", "pairs"):
        found = compare_layouts(find_array(f"{ocean}:{name}"), profile)
        assert all(seconds is not None for row in found.rows for seconds in row.seconds)
    with pytest.raises(Untrained, match="has no flat"):
        compare_layouts(find_array(f"{ocean}:line"), profile, libraries=["flat"])
    with pytest.raises(Refused, match="no library can read"):
        compare_layouts(find_array(f"{ocean}:line"), profile, cache="new")


def test_a_zarr_array(store_profile: Path, tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr", reason="not installed: pip install 'hyperslab[formats]'")
    group = zarr.create_group(tmp_path / "a.zarr")
    group.create_array("t", shape=(100, 100), chunks=(10, 100), dtype="f4")[:] = np.ones((100, 100))
    found = compare_layouts(find_array(str(tmp_path / "a.zarr")), load_store_profile(store_profile))
    assert {column.library for column in found.columns} == {"zarr"}
    assert found.columns[0].layout.chunk_shape == (10, 100)


def test_more_chunks_than_anybody_waits_for(store_profile: Path, ocean: Path) -> None:
    array = replace(find_array(f"{ocean}:plain"), shape=(10_000, 10_000), layout=Layout((1, 1)))
    found = compare_layouts(array, load_store_profile(store_profile))
    assert "all of it is left out: 100,000,000 chunks of 1x1" in found.notes[0]
    assert found.rows[0].access == "a row along axis 0"


def test_without_a_store_profile(ocean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    done = runner.invoke(app, ["predict", f"{ocean}:sst"])
    assert isinstance(done.exception, NotAStoreProfile)
    assert "hyperslab calibrate --quick measures this machine in about 3 minutes" in str(done.exception)


def test_a_foreign_store_profile_is_named(ocean: Path, store_profile: Path, tmp_path: Path) -> None:
    made = load_store_profile(store_profile)
    replace(made, environment=replace(made.environment, cpu="Another")).save(tmp_path / "other.json")
    shown = runner.invoke(app, ["predict", f"{ocean}:sst", "--profile", str(tmp_path / "other.json")])
    assert "calibrated on another machine or store, at 2026-11-22" in shown.stderr
    assert "Another" in shown.stderr

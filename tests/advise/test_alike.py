"""Arrays that are alike get one advice, in one file and in several; one command applies it to all of them."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import hyperslab as hs
from hyperslab.advise.alike import facts_of, joined
from hyperslab.advise.asking import ask
from hyperslab.cli import app
from hyperslab.conversion.advice import AdviceFile
from hyperslab.model.counting import openings as counted
from hyperslab.model.libraries import LIBRARIES
from hyperslab.model.store_profile import StoreProfile

h5py = pytest.importorskip("h5py")
runner = CliRunner()
COUNT = 60


def printed(*words: object) -> str:
    done = runner.invoke(app, list(map(str, words)))
    assert done.exit_code == 0, done.output
    return str(done.stdout)


def document(*words: object) -> Any:
    return json.loads(printed(*words, "--json"))


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many small arrays in tiny chunks, and two others."""
    path = tmp_path_factory.mktemp("many") / "many.h5"
    with h5py.File(path, "w") as file:
        for place in range(COUNT):
            file.create_dataset(f"g{place % 3}/a{place}", data=np.full((64, 96), place, "f4"), chunks=(8, 8))
        file.create_dataset("other", data=np.zeros((64, 96), "f8"), chunks=(8, 8))
        file.create_dataset("rows", data=np.zeros((64, 96), "f4"), chunks=(8, 8))
    return path


@pytest.fixture(scope="module")
def traced(many: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with hs.record() as trace, h5py.File(many) as file:
        for place in range(COUNT):
            file[f"g{place % 3}/a{place}"][:]
        file["other"][:]
        for row in range(5):
            file["rows"][row]
    path = tmp_path_factory.mktemp("traces") / "run.trace"
    trace.save(path)
    return path


def test_arrays_that_are_alike_share_the_openings_of_their_file(many: Path) -> None:
    """The one that stands for all opens a sixtieth of it each time."""
    with hs.record() as trace:
        for row in range(4):
            with h5py.File(many) as file:
                for place in range(COUNT):
                    file[f"g{place % 3}/a{place}"][row]
                file["other"][row]
    asked = ask(str(many), [(trace, 1.0)], None, None)
    openings = {
        array.name: [(one.weight, counted(one.steps, LIBRARIES["hdf5"])) for one in demands]
        for array, demands in asked.arrays
    }
    ((weight, found),) = openings.pop("/g0/a0") if "/g0/a0" in openings else openings.pop(next(iter(openings)))
    assert weight == COUNT
    assert found["n_array"] == 4
    assert weight * (found["n_array"] - found["n_again"]) == pytest.approx(4), "the file is opened 4 times"
    (((_, found),),) = openings.values()
    assert found == {"n_array": 4.0, "n_again": 4.0}


def test_many_small_arrays_get_one_advice(many: Path, traced: Path, profile_file: Path, tmp_path: Path) -> None:
    """Only eight of them were looked at."""
    found = document("advise", many, "--trace", traced, "--target", profile_file, "-o", tmp_path / "advice.json")
    assert len(found["arrays"]) == 3
    first = found["arrays"][0]
    assert len(first["alike"]) == COUNT
    assert {one["file"] for one in first["alike"]} == {str(many)}
    assert first["calls"][0]["weight"] == COUNT, "all of them are counted"
    assert not first["keep"]
    assert not any("left out" in note for note in found["notes"])
    advice = AdviceFile.read(tmp_path / "advice.json")
    assert len(advice.arrays) == COUNT + 2
    assert len({str(advice.arrays[one["array"]]) for one in first["alike"]}) == 1


def test_the_counts_of_all_add_up(many: Path, traced: Path, profile_file: Path) -> None:
    together = document("advise", many, "--trace", traced, "--target", profile_file)["arrays"][0]
    named = f"{many}:{together['array']}"
    alone = document("advise", named, "--trace", traced, "--target", profile_file)["arrays"][0]
    (one,), (all_of_them,) = ([each for each in found["options"] if each["today"]] for found in (alone, together))
    assert all_of_them["requests"] == pytest.approx(COUNT * one["requests"])
    calls = [found["counsel"]["seconds_now"] - found["counsel"]["opening_seconds"] for found in (alone, together)]
    assert calls[1] == pytest.approx(COUNT * calls[0]), "without the opening of the file, which all of them share"
    assert all_of_them["stored_nbytes"] == COUNT * one["stored_nbytes"]


def test_the_time_that_was_measured_is_that_of_all(many: Path, traced: Path, profile: StoreProfile) -> None:
    """The array that took most time stands for the others, but it is no usual one."""
    found = hs.advise(many, trace=traced, store_profile=profile)[0]
    (demand,) = found.demands
    trace = hs.Trace.open(traced)
    names = {name for _, name in found.array.members}
    mine = [row for row in range(len(trace)) if trace[row].array.array in names]
    spent = sum(trace[row].seconds for row in mine)
    assert len(mine) == COUNT
    assert demand.measured_seconds is not None
    assert demand.measured_seconds * demand.weight == pytest.approx(spent)


def test_one_command_applies_it_to_all_arrays(
    many: Path, traced: Path, profile_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (applied,) = document("advise", many, "--trace", traced, "--target", profile_file, "-o", "advice.json")["apply"]
    words = shlex.split(applied["command"])
    assert words[:2] == ["hyperslab", "convert"]
    printed(*words[1:])
    advice = AdviceFile.read(tmp_path / "advice.json")
    with hs.open(tmp_path / "better.h5") as better, hs.open(many) as before:
        for name, one in advice.arrays.items():
            if not one.keep:
                assert better[name].chunks == (None if one.chunks is None else tuple(one.chunks))
            np.testing.assert_array_equal(better[name][...], before[name][...])


def test_the_command_needs_no_advice_file_for_few_arrays(
    many: Path, traced: Path, profile_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = printed("advise", f"{many}:g0/a0", "--trace", traced, "--target", profile_file)
    (command,) = [line.removeprefix("apply it: ") for line in said.splitlines() if line.startswith("apply it: ")]
    assert "--like" not in command
    printed(*shlex.split(command)[1:])
    with hs.open(tmp_path / "better.h5") as better:
        assert better["g0/a0"].chunks != (8, 8)
        assert better["g0/a3"].chunks == (8, 8)


def test_words_are_for_all_arrays_too(many: Path, profile_file: Path) -> None:
    found = document("advise", many, "--like", "everything", "--keep", "hdf5", "--target", profile_file)
    counts = sorted(len(one["alike"]) for one in found["arrays"])
    assert counts == [1, COUNT + 1], "the array of rows is like the others"
    assert "to apply it, repeat this command with -o advice.json" in printed(
        "advise", many, "--like", "everything", "--keep", "hdf5", "--target", profile_file
    )


@pytest.fixture
def years(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A series of files: one has a leap day, one was not traced, and one has another structure."""
    monkeypatch.chdir(tmp_path)
    for year, days in ((2019, 365), (2020, 366), (2021, 365), (2022, 365)):
        with h5py.File(f"{year}.h5", "w") as file:
            data = np.add.outer(np.arange(days), np.arange(600.0)).astype("f4").reshape(days, 20, 30)
            file.create_dataset("t2m", data=data, chunks=(1, 20, 30), compression="gzip")
            file.create_dataset("time", data=np.arange(days))
    with h5py.File("other.h5", "w") as file:
        file.create_dataset("t2m", data=np.zeros((10, 10)), chunks=(1, 10))
    with hs.record() as trace:
        for year in (2019, 2020, 2021):
            with h5py.File(f"{year}.h5") as file:
                for row in range(4):
                    file["t2m"][:, row, 3]
    trace.save("run.trace")
    return tmp_path


def test_several_files_with_one_structure_get_one_advice_and_one_command(years: Path, profile_file: Path) -> None:
    files = ["2019.h5", "2020.h5", "2021.h5", "2022.h5", "other.h5"]
    found = document("advise", *files, "--trace", "run.trace", "--target", profile_file, "-o", "advice.json")
    (array,) = found["arrays"]
    assert array["shape"] == [366, 20, 30], "the largest stands for all"
    assert [one["file"] for one in array["alike"]] == files[:4]
    assert array["calls"][0]["weight"] == 3
    assert any("2022.h5 is in no trace, but has the same structure" in note for note in found["notes"])
    assert any("other.h5 is left out" in note for note in found["notes"])
    (applied,) = found["apply"]
    assert applied["files"] == files[:4]
    printed(*shlex.split(applied["command"])[1:])
    chunks = array["options"][0]["chunks"]
    for file in files[:4]:
        with hs.open(file) as before, hs.open(Path("better", file)) as after:
            assert after["t2m"].chunks == tuple(map(min, zip(chunks, before["t2m"].shape, strict=True)))
            np.testing.assert_array_equal(after["t2m"][...], before["t2m"][...])
    assert not Path("better", "other.h5").exists()


def test_without_a_file_those_of_the_trace_are_looked_at(years: Path, profile_file: Path) -> None:
    found = document("advise", "--trace", "run.trace", "--target", profile_file)
    assert sorted(Path(one).name for one in found["files"]) == ["2019.h5", "2020.h5", "2021.h5"]
    assert len(found["arrays"]) == 1
    Path("2019.h5").unlink()
    found = document("advise", "--trace", "run.trace", "--target", profile_file)
    assert len(found["files"]) == 2
    assert "name a file" in str(runner.invoke(app, ["advise", "--like", "maps"]).exception)


def test_from_python_several_files_are_a_list(years: Path, profile: StoreProfile) -> None:
    (found,) = hs.advise(["2019.h5", "2021.h5"], trace="run.trace", store_profile=profile)
    assert found.array.members == (("2019.h5", "/t2m"), ("2021.h5", "/t2m"))
    assert "1 other array like it, in 2 files" in found.array.title


def test_files_that_disagree_get_an_advice_each(years: Path, profile_file: Path) -> None:
    """The same path has another structure in another file, so one entry of an advice cannot be for both."""
    words = ["2019.h5", "2021.h5", "other.h5", "--like", "columns", "--keep", "hdf5", "--target", profile_file]
    found = document("advise", *words, "-o", "advice.json")
    for one in found["apply"]:
        assert Path(one["advice"]).exists()
    assert [one["files"] for one in found["apply"]] == [["2019.h5", "2021.h5"], ["other.h5"]]
    assert [one["advice"] for one in found["apply"]] == ["advice.json", "advice-2.json"]


@pytest.mark.parametrize("name", ["a b", "x:1", "v=2,3", "température", "-n", "a:b:deflate", "$(ls)", "it's"])
def test_the_command_names_any_array(
    name: str, profile_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with h5py.File("-odd name.h5", "w") as file:
        file.create_dataset(f"g/{name}", data=np.zeros((64, 96), "f4"), chunks=(8, 8), compression="gzip")
    asked = ("./-odd name.h5", "--like", "everything", "--keep", "hdf5", "--target", profile_file)
    found = document("advise", *asked)
    (array,) = found["arrays"]
    (chosen,) = (one for one in array["options"] if one["title"] == array["chosen"])
    assert not chosen["today"]
    printed(*shlex.split(found["apply"][0]["command"])[1:])
    with hs.open("better.h5") as better:
        assert better[f"g/{name}"].chunks == (None if chosen["chunks"] is None else tuple(chosen["chunks"]))


def test_files_of_two_kinds_keep_their_formats_and_get_two_names(tmp_path: Path, profile_file: Path) -> None:
    zarr = pytest.importorskip("zarr")
    elements = np.arange(40 * 64 * 64, dtype="f4").reshape(40, 64, 64)
    with h5py.File(tmp_path / "maps.h5", "w") as file:
        file["x"] = elements
    zarr.create_group(tmp_path / "maps.zarr").create_array("x", data=elements, chunks=(40, 4, 4), compressors=None)
    first, second = str(tmp_path / "maps.h5"), str(tmp_path / "maps.zarr")
    found = document("advise", first, second, "--like", "maps", "--target", profile_file)
    alone = document("advise", second, "--like", "maps", "--target", profile_file)
    (_, of_zarr), (told,) = found["arrays"], alone["arrays"]
    assert of_zarr["verdict"] == told["verdict"], "what is best for one file decides nothing for another"
    rewritten = [one["command"].split() for one in found["apply"] if one["command"] is not None]
    assert len({words[3] for words in rewritten}) == len(rewritten)


def test_no_two_commands_write_to_one_name(years: Path, profile_file: Path) -> None:
    found = document("advise", "2019.h5", "other.h5", "--like", "series", "--target", profile_file)
    names = [shlex.split(one["command"])[3] for one in found["apply"]]
    assert names == ["better.h5", "better-2.h5"]
    for one in found["apply"]:
        printed(*shlex.split(one["command"])[1:])


@pytest.mark.parametrize("harm", ["gone", "cut"])
def test_a_file_of_the_trace_that_cannot_be_read_is_left_out_by_name(
    tmp_path: Path, profile_file: Path, harm: str
) -> None:
    """One that was gone was left out without a word."""
    paths = [tmp_path / f"{name}.h5" for name in "ab"]
    for path in paths:
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=np.zeros((64, 96), "f4"), chunks=(8, 8))
    with hs.record() as trace:
        for path in paths:
            with h5py.File(path) as file:
                file["x"][3]
    trace.save(tmp_path / "run.trace")
    damaged = paths[1].read_bytes()[:600]
    paths[1].unlink()
    if harm == "cut":
        paths[1].write_bytes(damaged)
    found = document(
        "advise", "--trace", tmp_path / "run.trace", "-o", tmp_path / "advice.json", "--target", profile_file
    )
    assert any(f"{paths[1]} is left out" in note for note in found["notes"])
    assert [one["files"] for one in found["apply"]] == [[str(paths[0])]]


def test_arrays_of_several_files_are_joined_whichever_of_them_took_longer(tmp_path: Path, profile_file: Path) -> None:
    """In one file, x took longer, and in the other, y: they got two advices, one for each file."""
    paths = [str(tmp_path / f"{name}.h5") for name in "ab"]
    for path in paths:
        with h5py.File(path, "w") as file:
            for name in "xy":
                file.create_dataset(name, data=np.zeros((64, 96), "f4"), chunks=(8, 8))
    with hs.record() as trace:
        for path in paths:
            with h5py.File(path) as file:
                file["x"][3], file["y"][3]
    found, facts = [], {}
    for place, path in enumerate(paths):
        ((array, demands),) = ask(path, [(trace, 1.0)], None, None).arrays
        members = sorted(array.members, key=lambda member: member[1], reverse=bool(place))
        found.append((replace(array, alike=tuple(members)), demands))
        facts |= {(path, name): one for name, one in facts_of(path, None, {}).items()}
    ((array, _),) = joined(found, facts)
    assert len(array.members) == 4

"""`file["vol"][k]` in a loop opens the array each time, and HDF5 forgets its chunks: all commands count and say it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up import made_up_store_profile, with_codecs
from typer.testing import CliRunner

import hyperslab as hs
from hyperslab.advise.tips import cache_call_once, open_call
from hyperslab.cli import app

h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")
runner = CliRunner()
STEPS, CHUNK = 240, (30, 16, 16)


def document(*words: object) -> Any:
    done = runner.invoke(app, [*map(str, words), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("opened")
    stored = np.random.default_rng(0).integers(0, 50, (STEPS, 16, 16)).astype("i4")
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("vol", data=stored, chunks=CHUNK, compression="gzip")
        file.create_dataset("plain", data=stored)
    with_codecs(made_up_store_profile(folder), "deflate").save(folder / "profile.json")
    return folder


def recorded(folder: Path, name: str, program: str) -> Path:
    with hs.record() as trace:
        exec(program, {"h5py": h5py, "path": str(folder / "a.h5"), "STEPS": STEPS})
    trace.save(folder / name)
    return folder / name


EACH = "with h5py.File(path) as file:\n for k in range(STEPS): file['vol'][k]"
ONCE = "with h5py.File(path) as file:\n vol = file['vol']\n for k in range(STEPS): vol[k]"
FILES = "for k in range(STEPS):\n with h5py.File(path) as file: file['vol'][k]"


def answers(folder: Path, trace: Path) -> list[Any]:
    file, profile = folder / "a.h5", folder / "profile.json"
    return [
        document("trace", "show", trace, "--profile", profile)["arrays"][0]["counsel"],
        document("predict", "--trace", trace, "--profile", profile)["arrays"][0]["counsel"],
        document("predict", f"{file}:vol", "--trace", trace, "--profile", profile)["counsel"],
        document("advise", f"{file}:vol", "--trace", trace, "--target", profile)["arrays"][0]["counsel"],
        next(
            one["counsel"]
            for one in document("info", file, "--trace", trace, "--profile", profile)["arrays"]
            if one.get("counsel")
        ),
    ]


def test_the_first_tip_of_every_command_is_to_open_the_array_once(folder: Path) -> None:
    first, *others = answers(folder, recorded(folder, "each.trace", EACH))
    tip = first["tips"][0]
    assert tip["what"] == "open the array once, before the loop"
    assert tip["call"] == "vol = file['vol']"
    assert (tip["decoded_now"], tip["decoded_then"]) == (240, 8)
    assert tip["seconds_then"] < first["seconds_now"]
    assert not any("chunk cache" in one["what"] for one in first["tips"])
    for other in others:  # each by itself, so that a difference is shown
        assert other == first


def test_who_follows_the_tip_has_the_seconds_that_it_names(folder: Path) -> None:
    each, once = (answers(folder, recorded(folder, name, program)) for name, program in (("1", EACH), ("2", ONCE)))
    assert each[0]["tips"][0]["seconds_then"] == pytest.approx(once[0]["seconds_now"])
    assert not any("once" in tip["what"] for tip in once[0]["tips"])


def test_a_file_for_each_read_is_a_file_to_open_once(folder: Path) -> None:
    (first, *others) = answers(folder, recorded(folder, "files.trace", FILES))
    tip = first["tips"][0]
    assert tip["what"] == "open the file once, before the loop"
    assert tip["call"] == f"file = h5py.File({str(folder / 'a.h5')!r}); vol = file['vol']"
    assert (tip["decoded_now"], tip["decoded_then"]) == (240, 8)
    for other in others:  # each by itself, so that a difference is shown
        assert other == first
    each = answers(folder, recorded(folder, "each.trace", EACH))[0]
    assert first["seconds_now"] > each["seconds_now"]  # a file takes longer to open than an array of it


def test_predictions_count_the_openings(folder: Path) -> None:
    trace, profile = recorded(folder, "each.trace", EACH), folder / "profile.json"
    (shown,) = document("trace", "show", trace, "--profile", profile)["arrays"]
    assert (shown["openings"], shown["file_openings"], shown["decoded_chunks"]) == (240, 1, 240)
    (priced,) = document("predict", "--trace", trace, "--profile", profile, "--layout", "10x16x16")["arrays"]
    for one in priced["predictions"]:
        variables = one["variables"]["read"]
        assert (variables["n_array"], variables["n_again"]) == (240, 239)
        if one["library"] == "hdf5":
            assert variables["n_rdisk"] + variables["n_cache"] == 240  # each of them reads its chunk again


def test_a_cache_that_is_too_small_is_one_to_enlarge_for_an_array_that_stays_open(folder: Path) -> None:
    program = "with h5py.File(path, rdcc_nbytes=40_000) as file:\n for k in range(16): file['vol'][:, k]"
    (first, *_) = answers(folder, recorded(folder, "columns.trace", program))
    tip = first["tips"][0]
    assert tip["what"] == "open the array once, before the loop, and the file with a chunk cache of 1 MiB"
    assert tip["call"].startswith(f"file = h5py.File({str(folder / 'a.h5')!r}, rdcc_nbytes=")
    assert tip["call"].endswith("); vol = file['vol']")
    assert (tip["decoded_now"], tip["decoded_then"]) == (128, 8)


def test_the_line_of_the_tip_runs(folder: Path) -> None:
    path = str(folder / "a.h5")
    for call in (
        open_call("h5py", path, "/vol", is_file=True),
        cache_call_once("h5py", path, "/vol", 1 << 20, 521),
    ):
        program = f"import h5py\n{call}\nprint(vol[0].shape)"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=240)
        assert done.stdout == "(16, 16)\n", done.stderr


@pytest.mark.parametrize("name", ["/vol", "/a/class", "/9", "/", "/x y"])
@pytest.mark.parametrize("caller", ["h5py", "netCDF", "PyTables", "HDF5", "zarr"])
def test_the_line_names_a_variable_for_every_array(caller: str, name: str) -> None:
    for is_file in (False, True):
        line = open_call(caller, "a.h5", name, is_file)
        assert "\n" not in line
        if caller != "HDF5":
            compile(line, "tip", "exec")
            compile(cache_call_once("PyTables", "a.h5", name, 1 << 20, 521), "tip", "exec")

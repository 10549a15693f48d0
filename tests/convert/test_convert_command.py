"""The command line of `hyperslab convert`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
from convert_sources import assert_same, make_rich

import hyperslab as hs
from command_line import run_hyperslab
from hyperslab.cli.convert import _duration
from hyperslab.conversion.equivalents import equivalents
from hyperslab.conversion.wishes import wish


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return run_hyperslab("convert", *words)


def test_it_converts_and_says_so(tmp_path: Path) -> None:
    make_rich(tmp_path / "rich.h5")
    chunks = ["--chunks", "inner/maps:20,8,8", "--codec", "deflate-1+shuffle"]
    done = run(tmp_path / "rich.h5", tmp_path / "copy.h5", *chunks, "--memory", "64MiB", "--threads", "2")
    assert done.returncode == 0, done.stderr
    assert "verified by checksum" in done.stdout
    assert "about the same: h5repack" in done.stderr
    assert_same(tmp_path / "rich.h5", tmp_path / "copy.h5", {"inner/maps": (20, 8, 8)})
    again = run(tmp_path / "rich.h5", tmp_path / "copy.h5")
    assert again.returncode == 2
    assert "exists: choose another name, or allow it to be replaced with --overwrite" in again.stderr
    said = run(tmp_path / "rich.h5", tmp_path / "copy.h5", "--overwrite", "--relayout", "--json", "--verify", "none")
    found = json.loads(said.stdout)
    assert (found["format"], found["verified"], found["losses"]) == ("hdf5", "none", [])


@pytest.mark.parametrize("suffix", [".h5", ".zarr"])
def test_the_output_of_one_source_is_a_file_if_it_is_named_like_one(tmp_path: Path, suffix: str) -> None:
    """It was a folder, so that `-o near.nc` wrote `near.nc/series.nc`."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(5)
    target = tmp_path / f"b{suffix}"
    done = run(tmp_path / "a.h5", "-o", target)
    assert done.returncode == 0, done.stderr
    with hs.open(target) as file:
        assert file["x"][:].tolist() == list(range(5))
    again = run(tmp_path / "a.h5", "-o", target)
    assert again.returncode == 2
    assert "exists: choose another name" in again.stderr
    (tmp_path / "folder.h5").mkdir()
    done = run(tmp_path / "a.h5", "-o", tmp_path / "folder.h5")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "folder.h5" / "a.h5").is_file()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.h5"], "give a source and a target"),
        (["a.h5", "b.h5", "c.nc"], "several sources need -o FOLDER, or --concat"),
        (["a.h5", "b.h5", "-o", "all.nc"], "-o all.nc names a file: several sources need -o FOLDER"),
        (["a.h5", "b.h5", "-o", "all", "--concat", "x"], "-o is then that file, such as -o all.nc"),
        (["nothing.h5", "b.h5"], "nothing.h5"),
        (["a.h5", "b.txt"], "the format is not clear"),
        (["a.h5", "b.h5", "--memory", "much"], "--memory 'much' is not a size"),
        (["a.h5", "b.h5", "--codec", "x:lzf", "--codec", "x:none"], "there is another value for x already"),
        (["a.h5", "b.h5", "--codec", "gzap:4"], "did you mean 'gzip'"),
        (["a.h5", "b.h5", "--memory", "1KB"], "the least that works is 1MiB"),
        (["a.h5", "b.h5", "--relayout", "--codec", "zstd"], "--relayout copies all chunks as they are stored"),
        (["a.h5", "b.h5", "--relayout", "--chunks", "2"], "--relayout copies all chunks as they are stored"),
    ],
)
def test_wrong_requests(tmp_path: Path, words: list[str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(5)
    monkeypatch.chdir(tmp_path)
    done = run(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5"]


def test_a_long_conversion_is_predicted(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (70, 512, 512), "f4", chunks=(1, 512, 512), fillvalue=3)
        file["x"][::2] = np.arange(512)
    said: list[float] = []
    seen: list[tuple[int, int]] = []

    def progress(_: str, done: int, every: int) -> None:
        assert said
        seen.append((done, every))

    done = hs.convert(tmp_path / "a.h5", tmp_path / "b.h5", chunks="70,32,32", predicted=said.append, progress=progress)
    assert len(said) == 1
    assert said[0] > 0
    assert done.predicted_seconds == said[0]
    assert seen == sorted(seen)
    assert seen[-1] == (146, 146)
    shown = run(tmp_path / "a.h5", tmp_path / "c.h5", "--codec", "deflate-1")
    assert "predicted: about" in shown.stderr
    said_as = {0.2: "about 1 s", 89: "about 89 s", 100: "about 2 min", 7300: "about 2 h 2 min"}
    assert {seconds: _duration(seconds) for seconds in said_as} == said_as


def test_calls_of_other_tools() -> None:
    asked = wish("time=1,lat=10", None, "deflate-4+shuffle")
    assert equivalents("a.nc", "b.nc", "hdf5", "netcdf4", asked) == ["nccopy -k nc4 -s -d 4 -c time/1,lat/10 a.nc b.nc"]
    asked = wish({"x": "10,20"}, None, {"x": "zstd-3+shuffle"})
    assert equivalents("a.h5", "b.h5", "hdf5", "hdf5", asked) == [
        "h5repack -l x:CHUNK=10x20 -f x:SHUF -f x:UD=32015,0,1,3 a.h5 b.h5"
    ]
    assert "rechunker.rechunk" in equivalents("a.zarr", "b.zarr", "zarr", "zarr3", wish([1, 2]))[0]
    assert equivalents("a.fits", "b.zarr", "fits", "zarr3", wish()) == []


@pytest.mark.parametrize(
    "text",
    ["shuffle+deflate:4", "deflate-4+shuffle", "sst:shuffle+deflate:4", "sst:deflate-4+shuffle", "deflate:4+shuffle"],
)
def test_codecs_are_taken_as_they_are_printed(tmp_path: Path, text: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("sst", data=np.arange(600.0).reshape(20, 30), chunks=(4, 5))
    done = run(tmp_path / "a.h5", tmp_path / "b.h5", "--codec", text)
    assert done.returncode == 0, done.stderr
    with h5py.File(tmp_path / "b.h5") as file:
        assert (file["sst"].compression, file["sst"].compression_opts, file["sst"].shuffle) == ("gzip", 4, True)


def test_no_other_tool_puts_the_metadata_in_front(tmp_path: Path) -> None:
    make_rich(tmp_path / "rich.h5")
    done = run(tmp_path / "rich.h5", tmp_path / "copy.h5", "--relayout")
    assert done.returncode == 0, done.stderr
    assert "about the same" not in done.stderr


def test_what_the_readers_of_the_target_need_is_said(tmp_path: Path) -> None:
    make_rich(tmp_path / "rich.h5")
    codecs = ["--codec", "contiguous:zstd:3", "--codec", "records:deflate:1"]
    done = run(tmp_path / "rich.h5", tmp_path / "copy.h5", *codecs)
    assert done.returncode == 0, done.stderr
    assert "/contiguous: its readers need hdf5plugin or `hyperslab run` (zstd)" in done.stdout
    assert "records" not in done.stdout


def test_too_little_memory_is_refused_with_the_least_that_works(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=np.zeros((400, 1000)), chunks=(10, 1000), compression=1)
    words = [tmp_path / "a.h5", tmp_path / "b.h5", "--chunks", "400,1000"]
    done = run(*words, "--memory", "2MiB")
    assert done.returncode == 2
    assert "--memory must be at least 6400000 bytes, but it is 2097152" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5"]
    done = run(*words, "--memory", "6400000B")
    assert done.returncode == 0, done.stderr

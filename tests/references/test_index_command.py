"""`hyperslab index`: all formats, what it says, and how it goes on after it was stopped."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import reference_files as made

import hyperslab as hs
from hyperslab.references import index


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hyperslab", "index", *map(str, arguments)], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("suffix", ["hs", "json", "parquet"])
def test_one_file(tmp_path: Path, suffix: str) -> None:
    made.expressible(tmp_path / "a.h5")
    done = command(tmp_path / "a.h5", "-o", tmp_path / f"refs.{suffix}", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["array_count"] == 28
    assert summary["left_out"] == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.h5", f"refs.{suffix}"]


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    made.inexpressible(tmp_path / "a.h5")
    refused = command(tmp_path / "a.h5", "-o", tmp_path / "refs.json", "--inline-threshold", 0)
    assert refused.returncode == 2
    assert "cannot be referenced" in refused.stderr
    done = command(tmp_path / "a.h5", "-o", tmp_path / "refs.json", "--inline-threshold", 0, "--skip-unsupported")
    assert done.returncode == 0
    assert "left out: lzf: numcodecs has no codec lzf" in done.stdout


def test_mistakes(tmp_path: Path) -> None:
    made.expressible(tmp_path / "a.h5")
    assert command(tmp_path / "a.h5", "-o", tmp_path / "refs.csv").returncode == 2
    assert command(tmp_path / "none.h5", "-o", tmp_path / "refs.hs").returncode == 2
    assert command(tmp_path / "a.h5", "-o", tmp_path / "none" / "refs.hs").returncode == 2


def test_it_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    paths = []
    for number in range(5):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file["x"] = np.full(999, number)
        paths.append(tmp_path / f"{number}.h5")
    (tmp_path / "4.h5").rename(tmp_path / "later.h5")
    failed = command(*paths, "-o", tmp_path / "refs.hs")
    assert failed.returncode == 2
    assert "4.h5" in failed.stderr
    assert not (tmp_path / "refs.hs").exists()
    partial = tmp_path / "refs.hs.partial"
    known = {path: path.stat().st_mtime_ns for path in partial.iterdir()}
    assert len(known) == 4
    (tmp_path / "later.h5").rename(tmp_path / "4.h5")
    with h5py.File(tmp_path / "2.h5", "a") as file:
        file["y"] = np.arange(7)
    index(paths, resume=partial)
    changed = [path for path, written in known.items() if path.stat().st_mtime_ns != written]
    assert len(changed) == 1  # only the file that is another one now is indexed again
    done = command(*paths, "-o", tmp_path / "refs.hs")
    assert done.returncode == 0, done.stderr
    assert not partial.exists()
    root = hs.open(tmp_path / "refs.hs")
    assert [int(root[f"{number}/x"][0]) for number in range(5)] == list(range(5))
    assert list(root["2"]) == ["x", "y"]

"""`hyperslab index`: all formats, its output, and how it continues after it was stopped."""

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
from command_line import run_hyperslab
from hyperslab.errors import Unsupported
from hyperslab.references import index


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return run_hyperslab("index", *arguments)


@pytest.mark.parametrize("suffix", ["hs", "json", "parquet"])
def test_one_file(tmp_path: Path, suffix: str) -> None:
    made.expressible(tmp_path / "a.h5")
    done = command(tmp_path / "a.h5", "-o", tmp_path / f"refs.{suffix}", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["array_count"] == 28
    assert summary["left_out"] == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.h5", f"refs.{suffix}"]


@pytest.mark.parametrize("suffix", ["hs", "json", "parquet"])
def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path, suffix: str) -> None:
    """As for every output."""
    made.expressible(tmp_path / "a.h5")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"refs.{suffix}").symlink_to(tmp_path / "elsewhere" / f"refs.{suffix}")
    assert command(tmp_path / "a.h5", "-o", tmp_path / f"refs.{suffix}").returncode == 0
    assert (tmp_path / f"refs.{suffix}").is_symlink()
    assert (tmp_path / "elsewhere" / f"refs.{suffix}").exists()


def test_a_link_in_place_of_what_is_kept_meanwhile_is_refused(tmp_path: Path) -> None:
    made.expressible(tmp_path / "a.h5")
    made.expressible(tmp_path / "b.h5")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "refs.hs.partial").symlink_to(tmp_path / "elsewhere")
    done = command(tmp_path / "a.h5", tmp_path / "b.h5", "-o", tmp_path / "refs.hs")
    assert done.returncode == 2
    assert "refs.hs.partial is a link" in done.stderr
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert not (tmp_path / "refs.hs").exists()


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
    # one at a time: if several run and one fails, the unfinished ones are lost
    failed = command(*paths, "-o", tmp_path / "refs.hs", "--threads", 1)
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
    assert len(changed) == 1  # only the file that was replaced is indexed again
    done = command(*paths, "-o", tmp_path / "refs.hs")
    assert done.returncode == 0, done.stderr
    assert not partial.exists()
    root = hs.open(tmp_path / "refs.hs")
    assert [int(root[f"{number}/x"][0]) for number in range(5)] == list(range(5))
    assert list(root["2"]) == ["x", "y"]


def many(folder: Path, count: int) -> list[Path]:
    for number in range(count):
        with h5py.File(folder / f"{number:03}.h5", "w") as file:
            file["x"] = np.full(999, number)
    return sorted(folder.glob("*.h5"))


def check_many(refs: Path, count: int) -> None:
    root = hs.open(refs)
    assert [int(root[f"{number:03}/x"][0]) for number in range(count)] == list(range(count))


@pytest.mark.parametrize("threads", [1, 4])
def test_patterns_and_threads(tmp_path: Path, threads: int) -> None:
    many(tmp_path, 130)
    seen: list[tuple[str, int, int]] = []
    found = index(f"{tmp_path}/*.h5", threads=threads, progress=lambda *said: seen.append(said))
    found.save(tmp_path / "refs.hs")
    check_many(tmp_path / "refs.hs", 130)
    assert sorted(name for name, _, _ in seen) == [str(path) for path in sorted(tmp_path.glob("*.h5"))]
    assert [(done, count) for _, done, count in seen] == [(done, 130) for done in range(1, 131)]
    done = command(f"{tmp_path}/*.h5", "-o", tmp_path / "again.hs", "--threads", threads, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["file_count"] == 130
    check_many(tmp_path / "again.hs", 130)
    assert command(f"{tmp_path}/*.nc", "-o", tmp_path / "none.hs").returncode == 2


def test_what_one_file_says_is_raised(tmp_path: Path) -> None:
    paths = many(tmp_path, 20)
    paths[11].write_bytes(b"nothing")
    with pytest.raises(Unsupported, match=r"011\.h5"):
        index(paths, threads=4)
    done = command(*paths, "-o", tmp_path / "refs.hs")
    assert done.returncode == 1
    assert "011.h5" in done.stderr


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_indexed(tmp_path: Path) -> None:
    paths = many(tmp_path, 40)
    refs = tmp_path / "refs.hs"
    code = (
        "import itertools, os, signal, sys, time, hyperslab.references\n"
        "module = sys.modules['hyperslab.references.index']\n"
        "real, calls = module._Gathering.opened, itertools.count(1)\n"
        "def slow(self, number):\n"
        "    call = next(calls)\n"
        "    if call == 16: os.kill(os.getpid(), signal.SIGINT)\n"  # one Ctrl-C, whichever thread comes first
        "    if call > 15: time.sleep(250)\n"
        "    return real(self, number)\n"
        "module._Gathering.opened = slow\n"
        "sys.argv[0] = 'hyperslab'\n"
        "from hyperslab.cli import main\n"
        "main()\n"
    )
    arguments = ["index", *map(str, paths), "-o", str(refs), "--threads", "3"]
    stopped = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, timeout=200
    )
    assert stopped.returncode == 130, stopped.stderr
    assert "of 40 files indexed: run the same command again to continue" in stopped.stderr
    assert not refs.exists()
    partial = tmp_path / "refs.hs.partial"
    known = {path: path.stat().st_mtime_ns for path in partial.glob("*.hs")}
    assert 12 <= len(known) <= 15
    index(paths, resume=partial)
    assert all(path.stat().st_mtime_ns == written for path, written in known.items())
    assert command(*paths, "-o", refs).returncode == 0
    check_many(refs, 40)


@pytest.mark.slow
def test_on_a_dask_cluster(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="not installed: pip install 'hyperslab[dask]'")
    paths = many(tmp_path, 12)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        index(paths, scheduler=cluster.scheduler_address).save(tmp_path / "refs.hs")
        check_many(tmp_path / "refs.hs", 12)
        done = command(*paths, "-o", tmp_path / "again.hs", "--scheduler", cluster.scheduler_address)
        assert done.returncode == 0, done.stderr
        check_many(tmp_path / "again.hs", 12)
        paths[3].write_bytes(b"nothing")
        with distributed.Client(cluster) as client, pytest.raises(Unsupported, match=r"003\.h5"):
            index(paths, scheduler=client)

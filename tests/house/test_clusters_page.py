"""docs/how-to/clusters.md, with a scheduler and workers as real processes, and a stand-in for SLURM's srun."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from pages import DOCS, blocks, name_of, run_page

import hyperslab as hs

pytest.importorskip("dask.distributed", reason="not installed: pip install 'hyperslab[dask]'")
pytest.importorskip("xarray", reason="not installed: pip install 'hyperslab[xarray]'")

PAGE = DOCS / "how-to" / "clusters.md"
DASK = [sys.executable, "-m", "dask"]
SRUN = '#!/bin/sh\nexec "$@"\n'  # one task on one node


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (maker,) = (text for language, text in blocks(PAGE) if language == "python" and "to_netcdf(" in text)
    exec(compile(maker, PAGE.name, "exec"), {})
    return tmp_path


@contextmanager
def process(words: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "dask.log").open("ab") as log:
        started = subprocess.Popen(words, cwd=folder, stdout=log, stderr=log)
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(20)
        except subprocess.TimeoutExpired:
            started.kill()


def address_in(path: Path, started: subprocess.Popen[bytes]) -> str:
    """The address that a scheduler writes when it listens."""
    import json

    for _ in range(2400):
        with suppress(FileNotFoundError, json.JSONDecodeError):  # not there yet, or not whole
            return str(json.loads(path.read_text())["address"])
        assert started.poll() is None, (path.parent / "dask.log").read_text()
        time.sleep(0.1)
    raise TimeoutError((path.parent / "dask.log").read_text())


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_page_runs_on_a_scheduler_at_an_address(folder: Path) -> None:
    told = folder / "where.json"
    here = ["--host", "127.0.0.1", "--no-dashboard"]
    with process([*DASK, "scheduler", *here, "--port", "0", "--scheduler-file", str(told)], folder) as scheduler:
        address = address_in(told, scheduler)
        worker = [*DASK, "worker", address, *here, "--nthreads", "1", "--no-nanny"]  # nobody need start it again
        with process(worker, folder), process(worker, folder):
            fewer = {"--scale quick --scheduler": "--scale quick --trials 1 --scheduler"}
            names = run_page(PAGE, folder, **fewer, **{"tcp://node1:8786": address})
            names["client"].close()
    for month, days in ((1, 31), (2, 29)):
        source, series = hs.open(f"sst-{month}.nc")["sst"], hs.open(f"series-{month}.nc")["sst"]
        assert series.chunks == (days, 5, 5)
        assert (series[...] == source[...]).all()
    assert (folder / "scaling-run" / "report.html").exists()
    assert list(hs.open("months.hs")) == list(hs.open("local.hs"))


def scripts() -> dict[str, str]:
    return {str(name_of(*block)): block[1] for block in blocks(PAGE) if block[0] == "bash"}


def slurm(folder: Path, **variables: str) -> dict[str, str]:
    """An environment in which `srun` runs its command here."""
    programs = folder / "bin"
    programs.mkdir()
    (programs / "srun").write_text(SRUN)
    (programs / "srun").chmod(0o755)
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "SLURM_CPUS_PER_TASK": "2", **variables}


@pytest.mark.slow
def test_the_job_with_a_cluster_indexes_and_ends_its_cluster(folder: Path) -> None:
    (folder / "index.sh").write_text(scripts()["index.sh"])
    done = subprocess.run(
        ["bash", "index.sh"], cwd=folder, env=slurm(folder), capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    assert hs.open("job.hs")["sst-2/sst"].shape == (29, 20, 30)


@pytest.mark.slow
def test_each_job_of_an_array_converts_its_file(folder: Path) -> None:
    (folder / "convert.sh").write_text(scripts()["convert.sh"])
    environment = slurm(folder, SLURM_ARRAY_TASK_ID="2")
    done = subprocess.run(["bash", "convert.sh"], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert hs.open("job-2.nc")["sst"].chunks == (29, 5, 5)
    assert not (folder / "job-1.nc").exists()


def test_what_moves_is_small(folder: Path) -> None:
    """An array is sent as its path and name; references hold the places of chunks."""
    import pickle

    array = hs.open("sst-1.nc")["sst"]
    assert len(pickle.dumps(array)) < 2000 < array.nbytes
    hs.index("sst-1.nc").save("one.hs")
    assert (folder / "one.hs").stat().st_size < 2000

"""Studies whose files are read from servers: the same figures and proofs, by URL."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperslab.bench.results import Run
from hyperslab.bench.session import RunRequest, run_bench
from hyperslab.formats import FORMATS, format_class
from hyperslab.lab import serving

pytestmark = pytest.mark.usefixtures("prepared_workers")

READS_ONLY = "servers only serve reads: write without a server"
STUDY = """
name: served
formats: FORMATS
shape: [40, 64, 64]
operations: [write, read-all, {read-hyperslab: {fraction: 0.1}}]
caches: [unknown]
processes: PROCESSES
conditions:
  served: {chunks: [8, 64, 64], codecs: [shuffle, "deflate:1"], server: SERVER, round_trip_ms: 4}
"""


FORMATS_OF = {
    "nginx": "[zarr2, hdf5-zarr, hyperslab, hdf5, netcdf4]",
    "versitygw": "[zarr2, hdf5-zarr, hyperslab, hdf5, netcdf4]",
    "moto": "[zarr2, hyperslab, netcdf4]",  # the same requests as to versitygw
}
PROCESSES_OF = {"nginx": [1, 2], "versitygw": [1], "moto": [1]}


def ran(directory: Path, server: str) -> Run:
    study, text = directory / "served.yaml", STUDY.replace("SERVER", server)
    study.write_text(text.replace("FORMATS", FORMATS_OF[server]).replace("PROCESSES", str(PROCESSES_OF[server])))
    return run_bench(RunRequest(studies=(str(study),), output=directory / "run", scale="quick", trials=1))


@pytest.mark.slow
@pytest.mark.parametrize("server", ["nginx", "versitygw", "moto"])
def test_contenders_read_from_a_server(tmp_path: Path, server: str) -> None:
    reason = serving.absent(server)
    if reason:
        pytest.skip(reason)
    for library in ("obstore", "aiohttp", "zarr", "h5py"):
        pytest.importorskip(library, reason="not installed: pip install 'hyperslab[far,formats]'")
    trials = ran(tmp_path, server).trials
    reasons = {(trial.format, trial.operation.partition("(")[0]): trial.reason for trial in trials}
    assert {reasons[name, "write"] for name in ("zarr2", "hyperslab")} == {READS_ONLY}
    assert reasons["netcdf4", "read-all"] == "cannot read URLs"
    read = [trial for trial in trials if trial.status == "ok"]
    readers = FORMATS_OF[server].count(",")  # all formats but netcdf4
    assert len(read) == readers * 2 * len(PROCESSES_OF[server]) * 2  # operations, a trial and its warm-up
    assert all(trial.verified for trial in read)
    assert min(trial.open_file_seconds or 0 for trial in read) >= 0.004


def test_every_format_that_reads_urls_is_among_them() -> None:
    reading = {name for name in FORMATS if format_class(name).capabilities.urls}
    assert reading == {"zarr2", "hdf5-zarr", "hyperslab", "hdf5"}


def test_a_server_that_is_absent_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_PROGRAMS", {"nginx": ("", "apt-get install nginx-light")})
    monkeypatch.setenv("PATH", str(tmp_path))
    trials = ran(tmp_path, "nginx").trials
    assert {trial.reason for trial in trials if trial.operation == "read-all"} == {
        "nginx is not installed: apt-get install nginx-light"
    }

"""Cold means cold, warm means warm, and a trial that cannot prove it is rejected."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from hyperslab.bench.session import RunRequest, _adapted, run_bench
from hyperslab.bench.study import Case
from hyperslab.lab import cache


def written(path: Path, nbytes: int) -> Path:
    path.write_bytes(os.urandom(nbytes))
    return path


@pytest.mark.slow
def test_a_cold_trial_reads_the_file_from_the_device_and_a_warm_one_nothing(on_disk, study) -> None:
    path = study(formats=["raw", "hdf5", "zarr3"], shape=[128, 128, 128], caches=["cold", "warm"])
    run = run_bench(RunRequest(studies=(str(path),), output=on_disk / "run", scale="paper", trials=3))
    reads = [trial for trial in run.trials if trial.operation == "read-all" and trial.status == "ok"]
    cold = [trial for trial in reads if trial.cache == "cold"]
    warm = [trial for trial in reads if trial.cache == "warm"]
    assert len(cold) >= 6
    assert len(warm) >= 6
    for trial in cold:
        assert trial.resident_before == 0
        assert trial.device_read_nbytes >= trial.stored_nbytes * 0.9, trial
    for trial in warm:
        assert trial.resident_before >= 0.99
        assert trial.device_read_nbytes == 0


def test_the_cache_states_of_the_command_line_have_the_last_word(tmp_path: Path) -> None:
    given = {"name": "x", "formats": ["hdf5"], "shape": [8, 8], "operations": ["read-all"]}
    case = Case.model_validate({**given, "scales": {"quick": {"caches": ["warm"]}}})
    asked = RunRequest(studies=("x",), output=tmp_path / "run", scale="quick")
    assert _adapted(case, asked).caches == ["warm"]
    assert _adapted(case, replace(asked, caches=("unknown",))).caches == ["unknown"]


def test_eviction_empties_the_page_cache_even_of_dirty_pages(on_disk) -> None:
    for _ in range(20):  # between two steps the kernel, or a test in another process, may drop pages as well
        path = written(on_disk / "dirty", 1 << 20)
        dirty = cache.resident_fraction([path])
        cache.evict([path])
        assert cache.resident_fraction([path]) == 0.0
        cache.warm_up([path])
        if (dirty, cache.resident_fraction([path])) == (1.0, 1.0):
            return
    raise AssertionError("a file that was written or read is never whole in the page cache")


def test_files_without_pages_have_no_resident_fraction(tmp_path) -> None:
    (tmp_path / "empty").touch()
    assert cache.resident_fraction([tmp_path / "empty"]) is None
    assert cache.resident_fraction([]) is None


@pytest.mark.parametrize(
    ("state", "resident", "device_read", "proved"),
    [
        ("cold", 0.0, 1000, True),
        ("cold", 0.5, 1000, False),
        ("cold", 0.0, 10, False),
        ("cold", 0.0, None, False),
        ("warm", 1.0, 0, True),
        ("warm", 0.5, 0, False),
        ("warm", 1.0, 4096, False),
        ("unknown", 0.5, None, True),
        ("new", None, 0, True),
    ],
)
def test_a_state_is_proved_or_the_reason_is_said(state, resident, device_read, proved) -> None:
    reason = cache.why_not(state, resident, device_read, least_device_read=900)
    assert (reason is None) == proved


def test_many_files_become_durable_as_a_tree_does(tmp_path) -> None:
    for k in range(cache.MOST_FSYNCS + 5):
        written(tmp_path / f"part-{k}", 100)
    cache.make_durable(tmp_path)
    cache.make_durable(tmp_path / "part-0")
    assert len(cache.files_below(tmp_path)) == cache.MOST_FSYNCS + 5

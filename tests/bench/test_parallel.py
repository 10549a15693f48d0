"""Several processes on one array: on this machine, on a Dask cluster, and as MPI ranks if these are installed."""

from __future__ import annotations

import pytest

from hyperslab.bench import mpi
from hyperslab.bench.session import RunRequest, run_bench
from hyperslab.errors import UsageError
from hyperslab.lab.timers import combine

pytestmark = pytest.mark.usefixtures("prepared_workers")


def accepted(run) -> list:
    """The trials that count. On a busy machine a warm trial may read code pages; it is then rejected, not failed."""
    trials = [trial for trial in run.trials if trial.trial >= 0]
    assert {trial.status for trial in trials} <= {"ok", "rejected"}
    return [trial for trial in trials if trial.status == "ok"]


@pytest.mark.slow
def test_processes_share_the_work_and_read_what_was_written(tmp_path, study) -> None:
    path = study(
        formats=["raw", "hdf5", "zarr3"],
        operations=["write", "read-all", {"read-random-points": {"count": 7}}],
        processes=[1, 3],
    )
    run = run_bench(RunRequest(studies=(str(path),), output=tmp_path / "run", scale="paper", trials=2))
    trials = accepted(run)
    assert {trial.processes for trial in trials} == {1, 3}
    assert all(trial.verified for trial in trials)
    whole = 64 * 32 * 32 * 4
    for trial in trials:
        expected = 7 * 4 if "points" in trial.operation else whole
        assert trial.decoded_nbytes == expected, trial
        if trial.operation == "write" and trial.format == "raw":
            assert trial.file_count == trial.processes


def test_dask_workers_run_the_parts(tmp_path, study) -> None:
    distributed = pytest.importorskip("dask.distributed", reason="not installed: pip install 'hyperslab[dask]'")
    from hyperslab.bench.dask_workers import DaskWorkers

    path = study(formats=["hdf5"], processes=[2], caches=["warm"])
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        workers = DaskWorkers(cluster.scheduler_address)
        try:
            request = RunRequest(
                studies=(str(path),), output=tmp_path / "run", scale="paper", trials=2, executor=workers
            )
            run = run_bench(request)
            with pytest.raises(UsageError, match="has 2 workers"):
                workers.run([None, None, None])  # refused before any job is used
        finally:
            workers.close()
    assert {trial.processes for trial in accepted(run)} == {2}


@pytest.mark.slow
def test_no_scheduler_is_said_plainly(tmp_path, study, hyperslab) -> None:
    pytest.importorskip("dask.distributed", reason="not installed: pip install 'hyperslab[dask]'")
    done = hyperslab("bench", study(), "-o", tmp_path / "run", "--scheduler", "tcp://127.0.0.1:1")
    assert done.returncode == 2
    assert "no Dask scheduler answers" in done.stderr


@pytest.mark.slow
def test_mpi_ranks_write_and_read_one_file(tmp_path, study) -> None:
    if reason := mpi.refusal("hdf5", "write"):
        pytest.skip(reason)
    path = study(formats=["hdf5"], processes=[2], launcher="mpi", caches=["warm"])
    run = run_bench(RunRequest(studies=(str(path),), output=tmp_path / "run", scale="paper", trials=1))
    trials = accepted(run)
    assert {trial.processes for trial in trials} == {2}
    assert {trial.file_count for trial in trials} == {1}
    assert all(trial.verified for trial in trials if trial.operation == "read-all")


def test_mpi_refuses_what_ranks_cannot_do() -> None:
    assert mpi.refusal("zarr3", "write") == "MPI ranks can only write hdf5"
    assert "ranks can only do" in str(mpi.refusal("hdf5", "append"))


def test_a_combined_trial_is_as_long_as_its_slowest_part() -> None:
    from hyperslab.lab.timers import Timing

    parts = [Timing({"read": s}, s, 10, 100, None, 4, verified=True) for s in (1.0, 3.0)]
    whole = combine(parts)
    assert whole.seconds == {"read": 3.0}
    assert whole.cpu_seconds == 4.0
    assert whole.device_read_nbytes == 200
    assert whole.device_write_nbytes is None
    assert whole.decoded_nbytes == 8

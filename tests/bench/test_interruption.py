"""However a run stops, finished trials are kept, none runs twice, and nothing temporary is left behind."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from hyperslab.bench.results import JOURNAL_FILE
from hyperslab.bench.trial import Job
from hyperslab.errors import TrialFailed
from hyperslab.lab.rounds import MOST_REJECTED
from hyperslab.lab.worker import Worker

TRIALS = 12

# The command, which waits after some more trials than the tests wait for: it never ends before they stop it.
LEASHED = """
import time
from hyperslab.cli import main
from hyperslab.lab.journal import Journal

append = Journal.append

def leashed(self, record):
    append(self, record)
    if len(self) >= 20:
        time.sleep(600)

Journal.append = leashed
main()
"""


def begin(path: Path, output: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", LEASHED, "bench", str(path), "-o", str(output), "--trials", str(TRIALS)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def wait_for_trials(output: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    journal = output / JOURNAL_FILE
    deadline = time.monotonic() + 200
    while not journal.exists() or journal.read_bytes().count(b"\n") < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def finished(output: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (output / JOURNAL_FILE).read_text().splitlines()]


def identity(trial: dict[str, object]) -> tuple[object, ...]:
    return tuple(trial[key] for key in ("case", "conditions", "format", "operation", "cache", "processes", "trial"))


@pytest.mark.slow
def test_a_killed_run_resumes_without_losing_or_repeating_a_trial(tmp_path, study, hyperslab) -> None:
    output, path = tmp_path / "run", study()
    process = begin(path, output)
    wait_for_trials(output, 15, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = (output / JOURNAL_FILE).read_bytes()
    whole = before[: before.rfind(b"\n") + 1]
    with open(output / JOURNAL_FILE, "ab") as journal:
        journal.write(b'{"case": "tiny", "half a li')  # what a kill during a write leaves
    assert list(output.glob(".hyperslab-scratch-*")), "the kill should have left measured files behind"

    done = hyperslab("bench", "--resume", "-o", output, "--trials", TRIALS)

    assert done.returncode == 0, done.stderr
    after = (output / JOURNAL_FILE).read_bytes()
    assert after.startswith(whole), "a finished trial was lost"
    counts = Counter(map(identity, finished(output)))
    assert set(counts.values()) == {1}, "a finished trial was run twice"
    made = Counter((t["status"], t["format"], t["operation"]) for t in finished(output) if t["trial"] >= 0)
    for cell in product(["raw", "npy"], ["write", "read-all"]):  # the kernel may have dropped pages of a warm file
        assert made["ok", *cell] == TRIALS or made["rejected", *cell] >= MOST_REJECTED, made
    assert not list(output.glob(".hyperslab-scratch-*"))


@pytest.mark.slow
def test_ctrl_c_keeps_finished_trials_and_their_tables(tmp_path, study, hyperslab) -> None:
    output, path = tmp_path / "run", study()
    process = begin(path, output)
    wait_for_trials(output, 12, process)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=200)
    assert process.returncode == 130
    assert b"Traceback" not in said
    assert b"--resume" in said
    for name in ("trials.parquet", "trials.csv", "summary.csv", "verdicts.json"):
        assert (output / name).stat().st_size > 0
    assert not list(output.glob(".hyperslab-scratch-*"))
    done = hyperslab("bench", "--resume", "-o", output, "--trials", TRIALS)
    assert done.returncode == 0, done.stderr
    assert set(Counter(map(identity, finished(output))).values()) == {1}


def test_a_rejected_warm_up_is_recorded_once(tmp_path, study, hyperslab) -> None:
    if not Path("/dev/shm").is_dir():
        pytest.skip("there is no disk in memory: only there no trial can be cold")
    output, path = tmp_path / "run", study(operations=["read-all"], caches=["cold"])
    done = hyperslab("bench", path, "-o", output, "--trials", 1, "--scratch", "/dev/shm")
    assert done.returncode == 0, done.stderr
    assert {trial["status"] for trial in finished(output)} == {"rejected"}
    journal = output / JOURNAL_FILE
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:4]))
    done = hyperslab("bench", "--resume", "-o", output, "--trials", 1)  # it knows where the files were
    assert done.returncode == 0, done.stderr
    assert set(Counter(map(identity, finished(output))).values()) == {1}


def test_sigterm_keeps_finished_trials_and_leaves_nothing_else(tmp_path, study) -> None:
    output, path = tmp_path / "run", study()
    process = begin(path, output)
    wait_for_trials(output, 12, process)
    process.terminate()
    _, said = process.communicate(timeout=200)
    assert process.returncode == 128 + signal.SIGTERM
    assert b"--resume" in said
    assert (output / "trials.csv").stat().st_size > 0
    assert not list(output.glob(".hyperslab-scratch-*"))


def test_a_full_disk_is_said_in_one_line_and_finished_trials_are_kept(tmp_path, study, hyperslab) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(disk)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a small tmpfs needs root")
    try:
        # Text takes several times as many bytes as its array, so the disk fills although the array itself would fit.
        path = study(formats=["raw", "csv"], shape=[512, 1024], data="uniform")
        done = hyperslab("bench", path, "-o", tmp_path / "run", "--scratch", disk, "--trials", 3)
        assert done.returncode == 1, done.stderr
        assert "is full" in done.stderr
        assert "--resume" in done.stderr
        assert "Traceback" not in done.stderr
        assert any(trial["status"] == "ok" for trial in finished(tmp_path / "run"))
        assert (tmp_path / "run" / "trials.csv").exists()
        assert not list(disk.iterdir())
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)  # a worker may still be ending


def job(path: Path, count: int) -> Job:
    from hyperslab.bench import cells
    from hyperslab.bench.study import Case

    case = Case.model_validate({"name": "t", "formats": ["csv"], "operations": ["write"], "shape": [400, 1000]})
    group = cells.groups(case, "fair")[0]
    cell = group.cells[0]
    return Job("csv", (), cell.operation, cells.spec_of(case, cell), group.field, count, path)


def test_a_killed_worker_fails_its_trial_and_the_next_one_gets_a_new_process(tmp_path) -> None:
    worker = Worker("csv", timeout_seconds=60)
    try:
        worker.send(job(tmp_path / "long.csv", 200))
        time.sleep(1.0)
        os.kill(worker.pid or 0, signal.SIGKILL)
        with pytest.raises(TrialFailed, match="killed by SIGKILL"):
            worker.receive()
        measured = worker.ask(job(tmp_path / "short.csv", 1))
        assert measured.verified
    finally:
        worker.stop()


def test_a_hung_worker_is_ended(tmp_path) -> None:
    worker = Worker("csv", timeout_seconds=1.0)
    with pytest.raises(TrialFailed, match="no answer within 1 s"):
        worker.ask(job(tmp_path / "long.csv", 500))
    assert worker.pid is None


def test_what_the_run_did_not_make_is_never_removed(tmp_path) -> None:
    from hyperslab.scratch import MARK_FILE, NOTE_FILE, PREFIX, scratch_below

    run = tmp_path / "run"
    run.mkdir()
    elsewhere, unmarked, used = (tmp_path / name for name in ("precious", f"{PREFIX}unmarked", f"{PREFIX}used"))
    for precious in (elsewhere, unmarked, used):
        precious.mkdir()
        (precious / "data").write_text("years of work")
    (elsewhere / MARK_FILE).touch()
    with open(used / MARK_FILE, "w") as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)
        for precious in (elsewhere, unmarked, used):
            (run / NOTE_FILE).write_text(f"{precious}\n")
            with scratch_below(tmp_path, run):
                assert (precious / "data").exists()
    assert not list(run.iterdir())


def test_what_a_killed_session_left_is_removed_by_the_next_one(tmp_path) -> None:
    from hyperslab.scratch import MARK_FILE, PREFIX, scratch_below

    with scratch_below(tmp_path) as living:
        left = tmp_path / f"{PREFIX}left"
        left.mkdir()
        (left / MARK_FILE).touch()
        with scratch_below(tmp_path) as other:
            assert sorted(tmp_path.iterdir()) == sorted([living, other])
    assert not list(tmp_path.iterdir())

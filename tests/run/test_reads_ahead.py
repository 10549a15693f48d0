"""While a program computes between reads that follow a pattern, the next read is done; it is never wrong."""

from __future__ import annotations

import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from run_programs import Ran, python, without

SHAPE = (24, 500, 600)
COMPUTES = """
    import hashlib, os, sys, threading, time, warnings
    import h5py, numpy as np
    ended = time.monotonic()
    def show(found):
        # It computes as long as it read, on a slow machine too: reads ahead are for such programs.
        global ended
        print(hashlib.sha256(np.ascontiguousarray(found)).hexdigest()[:16], np.shape(found), flush=True)
        time.sleep(max(0.02, time.monotonic() - ended))
        ended = time.monotonic()
    file = h5py.File(sys.argv[1])
    rows, tall = file["rows"], file["tall"]
"""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ahead") / "a.h5"
    values = np.random.default_rng(1).integers(0, 1000, SHAPE, "i4")
    with h5py.File(path, "w") as made:
        made.create_dataset("rows", data=values, chunks=(1, 250, 600), compression="gzip")
        made.create_dataset("tall", data=values, chunks=(6, 250, 300), compression="gzip")
    return path


@pytest.fixture
def file(original: Path, tmp_path: Path) -> Path:
    """One that a test may change."""
    return Path(shutil.copy(original, tmp_path / "a.h5"))


def check(code: str, path: Path, **environment: str) -> Ran:
    ran = python(COMPUTES + code, path, **environment)
    expected = without(COMPUTES + code, path)
    assert (ran.status, ran.out.decode()) == (expected.returncode, expected.stdout.decode()), ran.errors
    assert ran.errors == expected.stderr.decode().rstrip("\n")
    return ran


@pytest.mark.parametrize(
    ("loop", "least"),
    [
        ("for k in range(24): show(rows[k])", 15),
        ("for k in range(23, -1, -1): show(rows[k])", 15),
        ("for k in range(0, 24, 2): show(rows[k:k + 2])", 6),
        ("for k in range(0, 24, 5): show(rows[k:k + 5])", 1),
        # The chunks are kept: only converting makes such reads long enough to be worth a thread on a fast machine.
        ("for k in range(0, 500, 50): show(rows.astype('f8')[:, k:k + 50])", 1),
        ("for k in range(24): show(tall[k])", 2),
        ("for k in range(24): show(rows[k]); show(tall[k])", 15),
        ("for k in range(24): show(rows.astype('f8')[k, 3:])", 15),
        ("out = np.zeros((24, 500, 600), 'i4')\n"
         "    for k in range(24): rows.read_direct(out, np.s_[k, ::2], np.s_[k, :250]); show(out[k])", 15),
    ],
)  # fmt: skip
def test_the_next_read_is_done_ahead(file: Path, loop: str, least: int) -> None:
    ran = check(f"    {loop}\n", file)
    assert ran.counts["served"]["ahead"] >= least, ran.counts


@pytest.mark.parametrize(
    ("loop", "environment"),
    [
        ("for k in [3, 9, 1, 5, 22, 7, 2, 8, 17]: show(rows[k])", {}),
        ("for k in range(24): show(rows[k])", {"HYPERSLAB_PREFETCH": "0"}),
        ("for k in range(24): show(rows[k])", {"HYPERSLAB_MEMORY": "1M"}),
    ],
)
def test_nothing_is_done_ahead(file: Path, loop: str, environment: dict[str, str]) -> None:
    assert check(f"    {loop}\n", file, **environment).counts["served"]["ahead"] == 0


def test_a_file_that_changes_after_the_read_ahead(file: Path) -> None:
    code = """
    for k in range(12):
        show(rows[k])
    os.utime(sys.argv[1])
    for k in range(12, 24):
        show(rows[k])
    """
    ran = check(code, file)
    assert ran.counts["served"]["ahead"] >= 5
    assert ran.passed("changed") == 12


def test_a_file_that_is_closed_and_written_in_between(file: Path) -> None:
    code = """
    for k in range(12):
        show(rows[k])
    file.close()
    with h5py.File(sys.argv[1], "r+") as file:
        file["rows"][12] = file["rows"][3]
    file = h5py.File(sys.argv[1])
    for k in range(12, 24):
        show(file["rows"][k])
    """
    with h5py.File(file, "r+") as opened:
        opened["rows"][12] = opened["rows"][3]  # so that both runs find the same
    assert check(code, file).counts["served"]["ahead"] >= 8


def test_forked_children_go_on(file: Path) -> None:
    code = """
    for k in range(24):
        show(rows[k])
        child = os.fork()
        if child == 0:
            if k % 5 == 0:
                for n in range(k, min(k + 6, 24)):
                    show(rows[n])
            os._exit(0)
        print(os.waitpid(child, 0)[1], flush=True)
    """
    check(code, file)


def test_a_program_that_forks_has_the_threads_that_it_knows(file: Path) -> None:
    """Python 3.12 warns if there are others. One that was joined may still be in the system's list."""
    code = """
    EXITING = 4  # of linux/sched.h: set before anyone learns that the thread has ended
    def others():
        numbers = set(map(int, os.listdir("/proc/self/task"))) - {os.getpid()}
        return [number for number in numbers if works(number)]
    def works(number):
        try:
            facts = open(f"/proc/self/task/{number}/stat").read()
        except OSError:
            return False
        return not int(facts.rpartition(")")[2].split()[6]) & EXITING
    for k in range(12):
        show(rows[k])
    counts = []
    os.register_at_fork(after_in_parent=lambda: counts.append(len(others())))
    for k in range(12, 24):
        show(rows[k])
        rows[k]
        if os.fork() == 0:
            os._exit(0)
        os.wait()
    print(counts)
    """
    check(code, file)


def test_a_program_that_ends_in_the_midst(file: Path) -> None:
    for end in ("sys.exit(3)", "os._exit(4)", "os.abort()", "os.execv('/bin/echo', ['echo', 'x'])", "file.close()"):
        ran = check(f"    for k in range(10): show(rows[k])\n    {end}\n", file)
        assert ran.counts["served"]["ahead"] >= 3 or end.startswith("os."), ran.counts

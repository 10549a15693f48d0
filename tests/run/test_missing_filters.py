"""Arrays with a filter that the program's libhdf5 lacks: all reads are served, and the line says what that means."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from run_programs import python, run, without

import hyperslab as hs

VALUES = np.random.default_rng(1).integers(0, 1000, (60, 50, 40), "i4")
READS = """
    import hashlib, os, sys, h5py, numpy as np
    def show(found):
        print(hashlib.sha256(np.ascontiguousarray(found)).hexdigest()[:16], np.shape(found))
    array = h5py.File(sys.argv[1])["x"]
"""
# From a whole array to one element, and a series through all chunks.
LOOPS = """
    for key in np.s_[:], np.s_[7], np.s_[:, 3, 5], np.s_[3, 4, 5], np.s_[1:3, 2], np.s_[59, 49, 39:]:
        show(array[key])
    show(array.astype("f8")[2, 3])
    show(array[[1, 5, 7], 2, 3])
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HDF5_PLUGIN_PATH", str(tmp_path))  # importing netCDF4 or hdf5plugin sets it
    with h5py.File(tmp_path / "plain.h5", "w") as made:
        made.create_dataset("x", data=VALUES, chunks=(10, 50, 40))
    hs.convert(tmp_path / "plain.h5", tmp_path / "a.h5", codec="zstd-3")
    return tmp_path / "a.h5"


def test_small_reads_are_served_as_large_ones_are(file: Path) -> None:
    ran = python(READS + LOOPS, file)
    assert (ran.status, ran.errors) == (0, ""), ran.errors
    assert ran.out == without(READS + LOOPS, file.with_name("plain.h5")).stdout
    assert without(READS + LOOPS, file).returncode != 0
    assert (ran.served, ran.counts["passed"]["reads"]) == (8, 0), ran.counts
    assert (ran.counts["served"]["lacking"], ran.counts["served"]["lacked_filters"]) == (8, [32015])


def test_the_line_says_that_the_program_would_fail_by_itself(file: Path) -> None:
    words = [sys.executable, "-m", "hyperslab", "run", "--", sys.executable, "-c"]
    code = "import sys, h5py; h5py.File(sys.argv[1])['x'][1, 2, 3]"
    done = subprocess.run([*words, code, str(file)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "all of them need HDF5's filter 32015 (zstd), which the program's libhdf5 does not have" in done.stderr
    assert "without `hyperslab run` they would fail" in done.stderr


def test_a_filter_that_libhdf5_finds_as_a_plugin_is_its_own(file: Path) -> None:
    plugins = pytest.importorskip("hdf5plugin", reason="not installed: pip install 'hyperslab[formats]'").PLUGIN_PATH
    # The folder is named, but nothing is loaded beforehand.
    ran = python(READS + LOOPS, file, HDF5_PLUGIN_PATH=plugins)
    assert (ran.status, ran.errors) == (0, "")
    assert (ran.counts["served"]["lacking"], ran.counts["served"]["lacked_filters"]) == (0, [])
    assert ran.passed("small") >= 4, ran.counts


def test_many_threads_read_at_the_same_time(file: Path) -> None:
    code = f"""{READS}
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(8) as pool:
        show(list(pool.map(lambda k: array[k % 60, k % 50, k % 40], range(400))))
    """
    ran = python(code, file)
    assert (ran.status, ran.errors) == (0, "")
    assert ran.out == without(code, file.with_name("plain.h5")).stdout


def test_a_forked_child_is_served_too(file: Path) -> None:
    code = f"""{READS}
    show(array[1, 2, 3])
    sys.stdout.flush()
    if os.fork() == 0:
        show(array[2, 2, 3])
        show(array[5])
        sys.stdout.flush()
        os._exit(0)
    os.wait()
    """
    ran = python(code, file)
    assert (ran.status, ran.errors) == (0, "")
    assert ran.out == without(code, file.with_name("plain.h5")).stdout
    assert ran.counts["served"]["lacking"] == 3


def test_where_a_read_cannot_be_served_the_error_is_libhdf5s(file: Path) -> None:
    code = """
    import sys, h5py
    array = h5py.File(sys.argv[1], "r+")["x"]
    try:
        array[1, 2, 3]
    except OSError as error:
        print(error)
    """
    expected, ran = without(code, file), python(code, file)
    assert expected.stdout.startswith(b"Can't")
    assert (ran.status, ran.out, ran.errors) == (0, expected.stdout, "")
    assert ran.counts["served"]["lacking"] == 0


def test_filters_that_libhdf5_has_are_not_counted(file: Path) -> None:
    with h5py.File(file, "w") as made:
        made.create_dataset("x", data=VALUES, chunks=(10, 50, 40), compression="lzf", shuffle=True, fletcher32=True)
    ran = run(sys.executable, "-c", "import sys, h5py; h5py.File(sys.argv[1])['x'][:]", file)
    assert (ran.served, ran.counts["served"]["lacking"]) == (1, 0)

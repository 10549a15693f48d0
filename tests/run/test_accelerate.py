"""`accelerate` serves the reads of a process that runs already."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from run_programs import without


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as made:
        values = np.random.default_rng(1).random((400, 300))
        made.create_dataset("v", data=values, chunks=(50, 300), compression="gzip")
    return path


def printed(code: str, *words: object) -> list[str]:
    done = without(code, *words)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().splitlines()


def test_h5py_that_is_open_already(file: Path) -> None:
    code = """
    import sys, h5py, hyperslab
    from hyperslab.running.accelerating import accelerations
    array = h5py.File(sys.argv[1])["v"]
    before = array[:]
    undo = hyperslab.accelerate()
    print((array[:] == before).all(), accelerations().served_reads)
    undo()
    undo()
    print((array[:] == before).all(), accelerations().served_reads)
    with hyperslab.accelerated():
        print((array[:] == before).all(), accelerations().served_reads)
        again = hyperslab.accelerate()
    print((array[:] == before).all(), accelerations().served_reads)
    again()
    print((array[:] == before).all(), accelerations().served_reads)
    """
    assert printed(code, file) == ["True 1", "True 1", "True 2", "True 3", "True 3"]


def test_libraries_that_are_imported_later(file: Path) -> None:
    pytest.importorskip("netCDF4")
    code = """
    import sys, hyperslab
    from hyperslab.running.accelerating import accelerations
    hyperslab.accelerate()
    import netCDF4, h5py
    one = netCDF4.Dataset(sys.argv[1])["v"][:]
    print(accelerations().served_reads)
    other = h5py.File(sys.argv[1])["v"][:]
    print(accelerations().served_reads, (one == other).all())
    """
    assert printed(code, file) == ["1", "2 True"]


def test_xarrays_default_engine(file: Path) -> None:
    pytest.importorskip("xarray")
    code = """
    import sys, hyperslab, xarray
    from xarray.backends import plugins
    before = plugins.guess_engine(sys.argv[1])
    undo = hyperslab.accelerate()
    print(plugins.guess_engine(sys.argv[1]))
    xarray.open_dataset(sys.argv[1]).v.values
    undo()
    print(plugins.guess_engine(sys.argv[1]) == before)
    """
    assert printed(code, file) == ["hyperslab", "True"]


def test_under_hyperslab_run_nothing_is_undone(file: Path) -> None:
    from run_programs import python

    code = """
    import sys, h5py, hyperslab
    hyperslab.accelerate()()
    h5py.File(sys.argv[1])["v"][:]
    """
    ran = python(code, file)
    assert (ran.status, ran.served) == (0, 1), ran.errors


def test_under_hyperslab_run_xarrays_default_engine_is_ours(file: Path) -> None:
    pytest.importorskip("xarray")
    from run_programs import python

    code = """
    import sys, hyperslab
    from xarray.backends import plugins
    undo = hyperslab.accelerate()
    print(plugins.guess_engine(sys.argv[1]))
    undo()
    print(plugins.guess_engine(sys.argv[1]))
    """
    during, after = python(code, file).out.split()
    assert during == b"hyperslab"
    assert after != b"hyperslab"


def test_under_hyperslab_trace_it_is_undone(file: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="not installed: pip install 'hyperslab[report]'")
    code = """
import sys, h5py, hyperslab
from hyperslab.running.accelerating import accelerations
array = h5py.File(sys.argv[1])["v"]
with hyperslab.accelerated():
    array[:]
print(accelerations().served_reads)
array[:]
print(accelerations().served_reads)
"""
    words = [sys.executable, "-m", "hyperslab", "trace", "-o", "run.trace", "--", sys.executable, "-c", code]
    done = subprocess.run([*words, str(file)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.split()) == (0, ["1", "1"]), done.stderr


def test_writes_are_encoded_within_their_calls_if_asked_for(tmp_path: Path) -> None:
    """Nothing waits, because calls may be bound that we do not see."""
    pytest.importorskip("netCDF4")
    code = """
    import sys, h5py, netCDF4, numpy as np, hyperslab
    from hyperslab.running.accelerating import accelerations
    values = np.random.default_rng(1).integers(0, 9, (400, 300))
    def write(path):
        with h5py.File(path + ".h5", "w") as file:
            x = file.create_dataset("x", values.shape, "i8", chunks=(50, 300), compression="gzip")
            x[:50] = values[:50]
            x[50:] = values[50:]
        with netCDF4.Dataset(path + ".nc", "w") as file:
            file.createDimension("a", 400), file.createDimension("b", 300)
            file.createVariable("x", "i8", ("a", "b"), zlib=True, chunksizes=(50, 300))[:] = values
        totals = accelerations()
        with h5py.File(path + ".h5") as one, h5py.File(path + ".nc") as other:
            are_equal = (one["x"][:] == values).all(), (other["x"][:] == values).all()
        print(*are_equal, totals.encoded_writes, totals.waited_writes)
    write(sys.argv[1] + "/before")
    with hyperslab.accelerated():
        write(sys.argv[1] + "/reads")
    undo = hyperslab.accelerate(writes=True)
    with hyperslab.accelerated(writes=True):
        write(sys.argv[1] + "/within")
    write(sys.argv[1] + "/still")
    undo()
    write(sys.argv[1] + "/after")
    """
    assert printed(code, tmp_path) == [f"True True {count} 0" for count in (0, 0, 3, 6, 6)]

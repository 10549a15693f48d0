"""Collective accesses of MPI programs are recorded as such, for each rank, by an MPI build of h5py."""

from __future__ import annotations

from pathlib import Path

import pytest
from preloaded_programs import IS_PRELOADED, traced

import hyperslab as hs
from hyperslab.bench import mpi

pytest.importorskip("pyarrow", reason="not installed: pip install 'hyperslab[report]'")
pytestmark = pytest.mark.skipif(not IS_PRELOADED, reason="there is no libhyperslab_preload.so: only Linux has it")

PROGRAM = """
import numpy as np
from mpi4py import MPI
import h5py
rank, memory = MPI.COMM_WORLD.rank, np.empty((8, 5), "i4")
with h5py.File("a.h5", "w", driver="mpio", comm=MPI.COMM_WORLD) as file:
    made = file.create_dataset("x", (8, 5), "i4", chunks=(4, 5))
    with made.collective:
        made[4 * rank : 4 * rank + 4] = np.full((4, 5), rank)
    made[4 * rank] = rank
with h5py.File("a.h5", "r", driver="mpio", comm=MPI.COMM_WORLD) as file:
    array = file["x"]
    with array.collective:
        array.read_direct(memory)
    array[rank]
"""


@pytest.mark.slow  # it starts MPI
def test_collective_accesses_of_two_ranks(tmp_path: Path) -> None:
    if reason := mpi.refusal("hdf5", "write"):
        pytest.skip(reason)
    (tmp_path / "program.py").write_text(PROGRAM)
    words = [mpi.MPIRUN, "--allow-run-as-root", "--oversubscribe", "-n", "2", mpi.PYTHON, "program.py"]
    done = traced(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    trace = hs.Trace.open(tmp_path / "run.trace")
    ranks = sorted({one.process for one in trace}, key=lambda rank: min(k[4] for k in accesses(trace, rank)))
    assert len(ranks) == 2
    for number, rank in enumerate(ranks):
        assert [one[:4] for one in accesses(trace, rank)] == [
            ("write", True, "hyperslab", [4 * number, 1, 4, 1, 0, 1, 5, 1]),
            ("write", False, "hyperslab", [4 * number, 1, 1, 1, 0, 1, 5, 1]),
            ("read", True, "all", []),
            ("read", False, "hyperslab", [number, 1, 1, 1, 0, 1, 5, 1]),
        ]


def accesses(trace: hs.Trace, rank: int) -> list[tuple[str, bool, str, list[int], int]]:
    """The accesses of a process; the last field tells ranks apart: the first row of the last read."""
    mine = [one for one in trace if one.process == rank]
    last = mine[-1].selection[0]
    return [(one.operation, one.is_collective, one.selection_kind, one.selection, last) for one in mine]

"""One rank of a parallel HDF5 trial. mpirun runs it with the Python that has an MPI build of h5py.

That Python has NumPy, mpi4py and h5py but not hyperslab, so this file imports nothing of ours. It takes one JSON
argument. Rank 0 prints one line of JSON: seconds by phase (of the slowest rank), bytes, and whether all ranks read what
was written.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from mpi4py import MPI


def device_bytes() -> Any:
    """Bytes that this rank read from and wrote to devices, by /proc/self/io."""
    with open("/proc/self/io") as stream:
        counters = dict(line.split(": ") for line in stream.read().splitlines())
    return np.array([int(counters["read_bytes"]), int(counters["write_bytes"])])


class Timers:
    """Seconds by phase. Every phase begins when all ranks have reached it."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.seconds: dict[str, float] = {}

    def __call__(self, phase: str, action: Callable[[], Any]) -> Any:
        """Time one action. A phase lasts as long as its slowest rank."""
        self.world.Barrier()
        start = MPI.Wtime()
        result = action()
        elapsed = self.world.allreduce(MPI.Wtime() - start, op=MPI.MAX)
        self.seconds[phase] = self.seconds.get(phase, 0.0) + elapsed
        return result


def write(job: dict[str, Any], world: Any, timers: Timers, source: Any, rows: slice) -> bool:
    """Create one shared array and write each rank's rows collectively."""
    shared = timers("create_file", lambda: h5py.File(job["path"], "w", driver="mpio", comm=world))
    chunks = tuple(job["chunks"]) if job["chunks"] else None

    def create():
        return shared.create_dataset("array_00000", shape=source.shape, dtype=source.dtype, chunks=chunks)

    array = timers("create_array", create)

    def put():
        with array.collective:
            array[rows] = source[rows]

    timers("write", put)
    timers("flush", shared.flush)
    timers("close", shared.close)
    timers("fsync", lambda: sync(job["path"]) if world.rank == 0 else None)
    return True


def read(job: dict[str, Any], world: Any, timers: Timers, source: Any, rows: slice) -> bool:
    """Read each rank's rows of the shared array collectively. The comparison is not timed."""
    shared = timers("open_file", lambda: h5py.File(job["path"], "r", driver="mpio", comm=world))
    array = timers("open_array", lambda: shared["array_00000"])

    def get():
        with array.collective:
            return array[rows]

    got = timers("read", get)
    timers("close", shared.close)
    return bool(np.array_equal(got, source[rows]))


def sync(path: str) -> None:
    """Sync the file and its directory to the device."""
    for entry in (path, Path(path).parent):
        descriptor = os.open(entry, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def main() -> None:
    """Run the job of the JSON argument."""
    job = json.loads(sys.argv[1])
    world = MPI.COMM_WORLD
    whole = np.load(job["source"], mmap_mode="r")
    source = whole.reshape(-1)[: int(np.prod(job["shape"]))].reshape(job["shape"])
    bounds = [source.shape[0] * k // world.size for k in (world.rank, world.rank + 1)]
    rows = slice(*bounds)
    source = np.array(source) if world.size == 1 else source
    before = device_bytes()
    timers = Timers(world)
    verified = {"write": write, "read": read}[job["verb"]](job, world, timers, source, rows)
    moved = world.reduce(device_bytes() - before)
    verified = world.allreduce(verified, op=MPI.LAND)
    if world.rank == 0:
        figures = {
            "seconds": timers.seconds,
            "device_read_nbytes": int(moved[0]),
            "device_write_nbytes": int(moved[1]),
            "verified": bool(verified),
            "ranks": world.size,
            "hdf5": h5py.version.hdf5_version,
        }
        print(json.dumps(figures), flush=True)


main()

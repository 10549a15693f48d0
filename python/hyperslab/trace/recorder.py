"""`record`: trace what this process reads and writes while a block runs."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hyperslab.lab.environment import machine_text
from hyperslab.trace.changed import known_files, with_stored_nbytes
from hyperslab.trace.raw_logs import read_logs, say_program
from hyperslab.trace.recording.hooks import install
from hyperslab.trace.recording.log import Log, clock
from hyperslab.trace.trace import Trace


@contextlib.contextmanager
def record(path: str | Path | None = None) -> Iterator[Trace]:
    """Trace what this process reads and writes with our engine, h5py and zarr-python while the block runs.

    The trace has its accesses when the block ends. Processes that the block starts are not traced; `hyperslab trace`
    traces them too.

    Parameters
    ----------
    path : str | Path | None
        Where to save the trace as a Parquet file; by default it is only in memory.

    Yields
    ------
    Trace
        Empty until the block ends.
    """
    folder = Path(tempfile.mkdtemp(prefix="hyperslab-trace-"))
    trace, begun = Trace(), clock()
    remove = install(Log(str(folder)))
    try:
        yield trace
    finally:
        remove()
        say_program(folder, {"begun_ns": begun, "seconds": (clock() - begun) / 1e9, "machine": machine_text()})
        vars(trace).update(vars(read_logs(folder)))
        trace.program["files"] = known_files(trace)
        trace.arrays = with_stored_nbytes(trace.arrays)
        shutil.rmtree(folder, ignore_errors=True)
        if path is not None:
            trace.save(path)

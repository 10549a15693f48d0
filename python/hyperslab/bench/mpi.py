"""Parallel HDF5: trials by MPI ranks on one shared file, with an MPI build of h5py outside our own environment.

Debian's python3-h5py-mpi is built for Open MPI. Under MPICH's mpirun each rank believes it is alone, so we call Open
MPI's own launcher by name. `launcher: mpi` in a study selects this.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np

from hyperslab.bench.trial import Job
from hyperslab.errors import TrialFailed
from hyperslab.lab.timers import Timing

MPIRUN = "mpirun.openmpi"
PYTHON = "/usr/bin/python3"
RANK = Path(__file__).with_name("mpi_rank.py")
VERBS = {"write": "write", "read-all": "read"}
HOW_TO = "parallel HDF5 is not installed: apt-get install python3-h5py-mpi openmpi-bin"


@functools.cache
def refusal(format_name: str, operation: str) -> str | None:
    """Why MPI ranks cannot run an operation, or None if they can."""
    if format_name != "hdf5":
        return "MPI ranks can only write hdf5"
    if operation not in VERBS:
        return f"MPI ranks can only do {' and '.join(VERBS)}"
    if shutil.which(MPIRUN) is None or not Path(PYTHON).exists():
        return HOW_TO
    probe = "import h5py, mpi4py; raise SystemExit(not h5py.get_config().mpi)"
    # Debian's h5py loads its serial build unless it runs under mpirun or this variable is set.
    told = {**os.environ, "H5PY_ALWAYS_USE_MPI": "1"}
    probed = subprocess.run([PYTHON, "-c", probe], capture_output=True, env=told)
    return None if probed.returncode == 0 else HOW_TO


def run(job: Job, processes: int, timeout_seconds: float) -> Timing:
    """Run one trial by MPI ranks. Raises TrialFailed with mpirun's message."""
    source = _source(job)
    layout = job.spec.layout
    asked = {
        "verb": VERBS[job.operation.name],
        "path": str(job.path),
        "source": str(source),
        "shape": job.spec.shape,
        "chunks": (layout.chunk_shape or None) if layout else None,
    }
    command = [MPIRUN, "--allow-run-as-root", "--oversubscribe", "-n", str(processes), PYTHON, str(RANK)]
    try:
        done = subprocess.run([*command, json.dumps(asked)], capture_output=True, text=True, timeout=timeout_seconds)
    except subprocess.TimeoutExpired as error:
        raise TrialFailed(f"mpirun gave no answer within {timeout_seconds:g} s") from error
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise TrialFailed(f"mpirun ended with status {done.returncode}: {said}")
    told = json.loads(done.stdout.splitlines()[-1])
    if told["ranks"] != processes:
        raise TrialFailed(f"only {told['ranks']} of {processes} ranks ran: mpirun and mpi4py do not match")
    if not told["verified"]:
        raise TrialFailed("the elements read by the ranks are not the elements written")
    return Timing(
        seconds=told["seconds"],
        cpu_seconds=None,
        peak_rss_nbytes=None,
        device_read_nbytes=told["device_read_nbytes"],
        device_write_nbytes=told["device_write_nbytes"],
        decoded_nbytes=job.spec.nbytes,
        verified=told["verified"] if asked["verb"] == "read" else None,
    )


def _source(job: Job) -> Path:
    """The elements to write, as an .npy file next to the measured file. It is written once for each group."""
    path = job.path.parent / "mpi-source.npy"
    if not path.exists():
        np.save(path, np.ascontiguousarray(job.field.array(job.field.buffer(), 0)))
    return path

"""A synthetic run: no disk is measured, and every figure is drawn from a seed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from hyperslab.bench.operations import Operation
from hyperslab.bench.rankings import rank, summarise
from hyperslab.bench.recommendations import recommend
from hyperslab.bench.records import Cell, Trial, trial_of
from hyperslab.bench.results import Run, RunDescription, point_estimate_of
from hyperslab.bench.study import Case, Conditions
from hyperslab.lab.environment import Environment
from hyperslab.lab.verdict import Verdict

HOSTILE = "no <script>alert('x')</script> & codec"
# Format -> seconds to move one million bytes; null and raw bound the rest.
PACE = {
    "null": 1e-6, "raw": 4e-4, "hdf5": 5e-4, "netcdf4": 9e-4, "zarr2": 2.1e-3, "zarr3": 2.4e-3, "csv": 0.3,
    "fits": 1.8e-3, "hdf4": 2.6e-3, "netcdf3": 1.0e-3, "pdb": 1.5e-3, "npy": 4.02e-4,
}  # fmt: skip
ENVIRONMENT = Environment(
    cpu="Test CPU 9000",
    cpu_count=2,
    memory_nbytes=16 << 30,
    kernel="6.1",
    python="3.11.2",
    file_system="ext4",
    mount_options="rw,relatime",
    read_ahead_kib=None,
    rotational=False,
    can_drop_caches=True,
    libraries={"hdf5": "h5py 3.16, HDF5 2.0", "raw": "POSIX"},
)


def cases() -> tuple[Case, ...]:
    small = {"formats": ["null", "raw", "npy", "hdf5", "netcdf4", "zarr2", "csv"]}
    return (
        Case(
            name="common-io-1",
            title="small-scale testing",
            family="common-io",
            shapes=[[128]],
            counts=[2048],
            operations=[Operation(name="write"), Operation(name="read-all")],
            caches=["cold", "warm"],
            conditions={"matched": Conditions(), "default": "default"},
            replay="common-io-basic",
            **small,
        ),
        Case(
            name="common-io-21",
            title="scale element comparison",
            family="common-io",
            shapes=[[1 << 14], [1 << 17], [1 << 20], [1 << 23]],
            counts=[4],
            operations=[Operation(name="write"), Operation(name="read-all")],
            caches=["warm"],
            conditions={"matched": Conditions(), "packed": Conditions(chunks="auto", codecs=["deflate:4"])},
            formats=["hdf5", "netcdf4", "zarr3"],
        ),
        Case(
            name="formats-2002-W1",
            title="creating and writing a contiguous array",
            family="formats-2002",
            dtype="uint16",
            shapes=[[1024, 1024], [2048, 2048], [4096, 4096], [8192, 8192]],
            operations=[Operation(name="write"), Operation(name="read-all")],
            caches=["warm"],
            formats=["raw", "hdf5", "netcdf3", "fits", "hdf4", "pdb"],
            replay="formats-2002",
        ),
    )


def _cells(case: Case) -> list[Cell]:
    found = []
    methods = ("fair", "published") if case.replay else ("fair",)
    for method in methods:
        names = list(case.conditions) if method == "fair" else list(case.conditions)[-1:]
        for conditions in names:
            for format_name in case.formats:
                for operation in case.operations:
                    writes = operation.name == "write"
                    states = ["new"] if writes else case.caches
                    for cache in states if method == "fair" else ["unknown"]:
                        for shape in case.shapes:
                            size = (tuple(shape), case.counts[0], cache)
                            found.append(Cell(case.name, method, conditions, format_name, operation, *size))
    return found


def _measured(case: Case, cell: Cell, number: int, random: np.random.Generator) -> Trial:
    per_array = int(np.prod(cell.shape)) * np.dtype(case.dtype).itemsize
    nbytes = per_array * cell.count
    pace = PACE[cell.format] * (3 if cell.conditions == "packed" else 1) * (4 if cell.cache == "cold" else 1)
    seconds = (2e-5 * cell.count + pace * nbytes / 1e6) * random.lognormal(0, 0.05)
    blank = trial_of(cell, case.dtype, number, "failed", "")
    common = {
        "status": "ok", "reason": None, "decoded_nbytes": nbytes, "stored_nbytes": nbytes + 2048,
        "layout": "contiguous" if cell.conditions == "matched" else "chunks 1024, deflate:4", "verified": True,
    }  # fmt: skip
    if cell.operation.name == "write":
        phases = {"create_file": 0.05, "create_array": 0.1, "write": 0.6, "close": 0.05, "fsync": 0.2}
    else:
        phases = {"open_file": 0.1, "open_array": 0.1, "read": 0.75, "close": 0.05}
        common["returned_dtype"] = ">f4" if cell.format == "fits" else np.dtype(case.dtype).str
        common["max_abs_error"] = 5e-7 if cell.format == "csv" else None
        common["verified"] = cell.format != "csv"
    timed = {f"{phase}_seconds": share * seconds for phase, share in phases.items()}
    if cell.format == "csv":
        timed.pop("create_array_seconds", None)
    return replace(blank, **common, **timed)


def make_trials(wanted: tuple[Case, ...], repeats: int = 7) -> list[Trial]:
    random = np.random.default_rng(7)
    trials = []
    for case in wanted:
        for cell in _cells(case):
            trials += [_measured(case, cell, number, random) for number in range(-1, repeats)]
            if cell.format == "zarr2" and cell.cache == "cold":
                reason = "12 % of the file was resident before a cold read"
                trials.append(trial_of(cell, case.dtype, 9, "rejected", reason))
    cell = Cell("common-io-1", "fair", "matched", "pdb", Operation(name="write"), (128,), 2048, "new")
    trials.append(trial_of(cell, "float32", 0, "refused", HOSTILE))
    trials.append(trial_of(replace(cell, format="tiledb"), "float32", 0, "failed", "killed by signal 9"))
    return trials


VERDICTS = [
    Verdict(
        "common-io-w", "common-io", "HDF5 writes fastest <b>", "hdf5 < zarr2 < netcdf4", "hdf5 1.1 ms", "hdf5 0.9 ms",
        "holds",
    ),
    Verdict(
        "common-io-csv", "common-io", "CSV reads fastest", "csv fastest", "csv 0.1 ms", "csv 300 ms, hdf5 0.5 ms",
        "reverses", "the file was loaded before the timer started",
    ),
    Verdict("2002-pdb", "formats-2002", "HDF5/PDB 1.6", "1.6", "not run", "1.4 to 1.9", "undecided", "one method only"),
]  # fmt: skip


def make_run(directory: Path, wanted: tuple[Case, ...] | None = None, trials: list[Trial] | None = None) -> Run:
    wanted = cases() if wanted is None else wanted
    trials = make_trials(wanted) if trials is None else trials
    description = RunDescription(
        version="0.1.0",
        started_at="2026-01-02T03:04:05+00:00",
        scale="quick",
        methods=("fair", "published"),
        seed=1,
        cases=wanted,
        environment=ENVIRONMENT,
    )
    summaries = summarise(trials, point_estimate_of(wanted))
    rankings = rank(summaries)
    return Run(directory, description, trials, summaries, rankings, list(VERDICTS), [], recommend(rankings))

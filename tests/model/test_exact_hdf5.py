"""The requests that the model predicts of HDF5 are those that strace sees: every offset, every length."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from drawn import drawn, hdf5_cases
from hypothesis import strategies as st
from watched import Call, Watched, watch

import hyperslab as hs
from hyperslab._core import CacheState

Request: TypeAlias = tuple[str, int, int, int]
DEBIAN = "/usr/bin/python3"
CASES = 150
pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace: apt-get install strace")


def has_debian_h5py() -> bool:
    try:
        return subprocess.run([DEBIAN, "-c", "import h5py"], capture_output=True).returncode == 0
    except OSError:
        return False


PYTHONS = [
    pytest.param(None, id="wheel"),
    pytest.param(DEBIAN, id="debian", marks=pytest.mark.skipif(not has_debian_h5py(), reason="needs python3-h5py")),
]


def index_of(case: dict[str, Any]) -> dict[str, Any]:
    """Which index HDF5 makes."""
    if not case.get("libver"):
        return {"index": "btree_v1"}
    if case.get("maxshape"):
        return {"index": "extensible_array", "growing_axis": case["maxshape"].index(None)}
    return {"index": "none" if case["shape"] == case["chunks"] else "fixed_array"}


def opened(case: dict[str, Any], watched: Watched) -> CacheState:
    columns = np.array(sorted(watched.found["before"]), np.uint64).reshape(-1, 3).T
    return CacheState(
        hs.ChunkGrid(case["shape"], case["chunks"]),
        np.dtype(case["dtype"]).itemsize,
        "hdf5",
        chunks="listed",
        manifest=[np.ascontiguousarray(column) for column in columns],
        ratio=2.0 if case.get("compression") else None,
        options={
            "chunk_cache_nbytes": case["nbytes"],
            "chunk_cache_slots": case["slots"],
            "w0": case["w0"],
            "wide_lengths": watched.found["version"] >= "2",
            **index_of(case),
        },
    )


def selection(case: dict[str, Any], access: dict[str, Any]) -> hs.Hyperslab:
    return hs.Hyperslab.from_slices(tuple(slice(*axis) for axis in access["slices"]), case["shape"])


def check(case: dict[str, Any], watched: Watched) -> None:
    state = opened(case, watched)
    real = {linear: (offset, length) for linear, offset, length in watched.found["after"]}
    simulated = {linear: offset for linear, offset, _ in watched.found["before"]}

    def check_step(what: str, requests: list[Request], calls: list[Call]) -> None:
        simulated.update((chunk, offset) for purpose, chunk, offset, _ in requests if purpose == "write_chunk")
        moved = [
            (purpose, real[chunk][0] + offset - simulated[chunk], length)
            for purpose, chunk, offset, length in requests
            if purpose != "read_index"
        ]
        reads = Counter((call.offset or 0, call.length) for call in calls if call.kind == "pread")
        predicted = Counter((offset, length) for purpose, offset, length in moved if purpose.startswith("read"))
        assert predicted <= reads, f"{what}: predicted {predicted - reads}, seen {reads - predicted}"
        index = sorted(length for _, length in (reads - predicted).elements())
        assert index == sorted(length for purpose, _, _, length in requests if purpose == "read_index"), what
        writes = [(call.offset or 0, call.length) for call in calls if call.kind == "pwrite"]
        writes = [(at, n) for at, n in writes if any(start <= at < start + length for start, length in real.values())]
        wanted = [(offset, length) for purpose, offset, length in moved if purpose.startswith("write")]
        assert writes == wanted, f"{what}: seen {writes}, predicted {wanted}"

    for step, access in enumerate(case["accesses"], start=1):
        _, requests = state.requests(access["operation"], selection(case, access))
        check_step(f"{case} access {step}", requests, watched.calls.get(step, []))
    _, requests = state.close()
    closing = watched.calls.get(len(case["accesses"]) + 1, [])
    check_step(f"{case} closing", requests, [call for call in closing if call.kind == "pwrite"])


@pytest.mark.parametrize("latest", [False, True])
@pytest.mark.parametrize("python", PYTHONS)
def test_reads(python: str | None, latest: bool, tmp_path: Path) -> None:
    run(hdf5_cases(["read"], latest), python, tmp_path)


@pytest.mark.parametrize("latest", [False, True])
@pytest.mark.parametrize("python", PYTHONS)
def test_writes_and_reads(python: str | None, latest: bool, tmp_path: Path) -> None:
    run(hdf5_cases(["read", "write", "write"], latest), python, tmp_path)


def run(strategy: st.SearchStrategy[dict[str, Any]], python: str | None, folder: Path) -> None:
    cases = drawn(strategy, CASES)
    watched = watch("hdf5", cases, folder / "watched", python or sys.executable)
    for case, seen in zip(cases, watched, strict=True):
        check(case, seen)
    shutil.rmtree(folder / "watched")

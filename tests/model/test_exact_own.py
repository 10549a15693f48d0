"""strace sees exactly the requests that the model predicts for our own engine."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn import arrays, chunk_nbytes, drawn
from hypothesis import strategies as st
from watched import Watched, watch

import hyperslab as hs
from hyperslab._core import CacheState

CASES = 100
pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace: apt-get install strace")


@st.composite
def own_cases(draw: st.DrawFn) -> dict[str, Any]:
    case = {**draw(arrays(["read"])), "compression": draw(st.booleans())}
    room = draw(st.sampled_from([0, 1, 2, 4, 1000]))
    return {**case, "nbytes": room * chunk_nbytes(case)}


def check(case: dict[str, Any], watched: Watched) -> None:
    columns = np.array(sorted(watched.found["before"]["chunks"]), np.uint64).reshape(-1, 3).T
    state = CacheState(
        hs.ChunkGrid(case["shape"], case["chunks"]),
        np.dtype(case["dtype"]).itemsize,
        "hyperslab",
        chunks="listed",
        manifest=[np.ascontiguousarray(column) for column in columns],
        ratio=2.0 if case["compression"] else None,
        options={"chunk_cache_nbytes": case["nbytes"]},
    )
    for step, access in enumerate(case["accesses"], start=1):
        selected = hs.Hyperslab.from_slices(tuple(slice(*axis) for axis in access["slices"]), case["shape"])
        _, requests = state.requests("read", selected)
        calls = watched.calls.get(step, [])
        seen = Counter((call.offset, call.length) for call in calls if call.kind == "pread")
        assert seen == Counter((offset, length) for _, _, offset, length in requests), f"{case} access {step}"


def test_requests_of_our_engine(tmp_path: Path) -> None:
    cases, folder = drawn(own_cases(), CASES), tmp_path / "watched"
    for case, seen in zip(cases, watch("hyperslab", cases, folder), strict=True):
        check(case, seen)
    shutil.rmtree(folder)

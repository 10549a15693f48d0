"""zarr-python opens and writes exactly the files that the model predicts, with their sizes, as seen by strace."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn import arrays, drawn
from hypothesis import strategies as st
from watched import Call, Watched, watch

import hyperslab as hs
from hyperslab._core import CacheState
from hyperslab.model import Layout, Zarr
from hyperslab.model.installed import GAP_KEY, JOINED_KEY, installed_zarr, zarr_version
from hyperslab.model.libraries import options_of

CASES = int(os.environ.get("HYPERSLAB_CASES", "20"))  # HYPERSLAB_CASES=1000 takes minutes
pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace: apt-get install strace")
PARTIAL = r"\.[0-9a-f]{32}\.partial$"
METADATA = {"zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata"}


@st.composite
def zarr_cases(draw: st.DrawFn, sharded: bool) -> dict[str, Any]:
    case = draw(arrays(["read", "write"], most=4))
    case["format"] = 3 if sharded else draw(st.sampled_from([2, 3]))
    case["compressor"] = draw(st.sampled_from([None, None, "zstd", "gzip", "blosc"]))
    if sharded:
        case["shards"] = [chunk * draw(st.integers(1, 4)) for chunk in case["chunks"]]
    return case


def opened(case: dict[str, Any], library: Zarr) -> CacheState:
    """The state after the earlier writes."""
    state = CacheState(
        hs.ChunkGrid(case["shape"], case["chunks"]),
        np.dtype(case["dtype"]).itemsize,
        "zarr",
        chunks="missing",
        options=options_of(library, Layout(tuple(case["chunks"]), case.get("shards"))),
        ratio=2.0 if case["compressor"] else None,
    )
    state.access("write", [selection(case, written) for written in case["written"]])
    return state


def selection(case: dict[str, Any], access: dict[str, Any]) -> hs.Hyperslab:
    return hs.Hyperslab.from_slices(tuple(slice(*axis) for axis in access["slices"]), case["shape"])


def key(case: dict[str, Any], file: int) -> str:
    grid = hs.ChunkGrid(case["shape"], case.get("shards") or case["chunks"])
    index = "/".join(map(str, grid.chunk_index(file)))
    return f"c/{index}" if case["format"] == 3 else index.replace("/", ".")


def shard_of(case: dict[str, Any], chunk: int) -> int:
    """The number of the shard that holds a chunk."""
    index = hs.ChunkGrid(case["shape"], case["chunks"]).chunk_index(chunk)
    within = zip(index, case["chunks"], case["shards"], strict=True)
    shards = hs.ChunkGrid(case["shape"], case["shards"])
    return int(shards.linear_index(tuple(place * length // shard for place, length, shard in within)))


def check(case: dict[str, Any], watched: Watched, folder: str, library: Zarr) -> None:
    state = opened(case, library)
    for step, access in enumerate(case["accesses"], start=1):
        values, requests = state.requests(access["operation"], selection(case, access))
        variables = dict(zip(CacheState.variable_names(), values.tolist(), strict=True))
        calls = [call for call in watched.calls.get(step, []) if Path(call.path).name not in METADATA]
        calls = [Call(c.kind, c.path.removeprefix(folder), c.offset, c.length) for c in calls]
        what = f"{case} access {step}"
        kinds = Counter(call.kind for call in calls if not Path(call.path).is_dir())
        assert kinds["open"] == variables["n_open"], what
        assert kinds["absent"] == variables["n_absent"], what
        assert kinds["create"] == variables["n_create"] == variables["n_wdisk"], what
        written: Counter[str] = Counter()
        read: Counter[str] = Counter()
        for call in calls:
            written[call.path] += call.length if call.kind == "write" else 0
            read[call.path] += call.length if call.kind == "read" else 0
        if case["compressor"]:  # the model cannot know the lengths
            continue
        wanted = {key(case, file): length for purpose, file, _, length in requests if purpose == "write_chunk"}
        assert sorted(written[path] for path in +written) == sorted(wanted.values()), what
        if case["format"] == 3:  # in format 2, the temporary file of chunk 0.1 is 0.UUID.partial
            assert {re.sub(PARTIAL, "", path) for path in +written} == set(wanted), what
        asked: Counter[str] = Counter()
        for purpose, file, _, length in requests:
            if purpose.startswith("read"):
                asked[key(case, shard_of(case, file) if purpose == "read_part" else file)] += length
        assert +read == asked, f"{what}: read {+read}, predicted {asked}"


LIMITS = {GAP_KEY: 60, JOINED_KEY: 700}  # in bytes, so that small chunks get to both


@pytest.mark.slow
@pytest.mark.parametrize(("sharded", "limited"), [(False, False), (True, False), (True, True)])
def test_files(sharded: bool, limited: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With HYPERSLAB_CASES=1000 and an older zarr-python in PYTHONPATH, this is the proof for that version."""
    library = installed_zarr()
    if limited and library.joined_gap_nbytes is not None:
        library = Zarr(LIMITS[GAP_KEY], LIMITS[JOINED_KEY])
        for name, nbytes in LIMITS.items():
            monkeypatch.setenv("ZARR_" + name.upper().replace(".", "__"), str(nbytes))
    cases, folder = drawn(zarr_cases(sharded), CASES), tmp_path / "watched"
    if limited:  # the model cannot know the lengths of encoded chunks
        cases = [case | {"compressor": None} for case in cases]
    for number, (case, seen) in enumerate(zip(cases, watch("zarr", cases, folder), strict=True)):
        assert seen.found["version"] == zarr_version()
        check(case, seen, f"{folder}/{number}/", library)
    shutil.rmtree(folder)

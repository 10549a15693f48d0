"""Random cases from hypothesis: arrays, chunks, caches, and sequences of accesses."""

from __future__ import annotations

import math
import os
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

DTYPES = ["u1", "u2", "i4", "f8"]


@st.composite
def axis_slices(draw: st.DrawFn, length: int) -> list[int]:
    start = draw(st.integers(0, length - 1))
    stop = draw(st.integers(start + 1, length))
    step = draw(st.sampled_from([1, 1, 1, 1, 2, 3, 7]))
    return [start, stop, step]


@st.composite
def accesses(draw: st.DrawFn, shape: list[int], operations: list[str]) -> dict[str, Any]:
    whole = draw(st.sampled_from([False, False, False, True]))
    chosen = [[0, length, 1] if whole else draw(axis_slices(length)) for length in shape]
    return {"operation": draw(st.sampled_from(operations)), "slices": chosen}


@st.composite
def arrays(draw: st.DrawFn, operations: list[str], most: int = 6) -> dict[str, Any]:
    """An array, what was written to it beforehand, and the accesses to it."""
    ndim = draw(st.integers(1, 3))
    longest = {1: 300, 2: 40, 3: 14}[ndim]
    shape = [draw(st.integers(1, longest)) for _ in range(ndim)]
    shortest = 1 if draw(st.booleans()) else 3
    largest = max(shortest, draw(st.sampled_from([2, longest // 2, longest // 2])))
    chunks = [min(length, draw(st.integers(shortest, largest))) for length in shape]
    written: list[dict[str, Any]] = draw(
        st.one_of(
            st.just([{"slices": [[0, length, 1] for length in shape]}]),
            st.lists(accesses(shape, ["write"]), max_size=3),
        )
    )
    done = draw(st.lists(accesses(shape, operations), min_size=1, max_size=most))
    return {
        "shape": shape,
        "chunks": chunks,
        "dtype": draw(st.sampled_from(DTYPES)),
        "written": written,
        "accesses": done,
    }


def chunk_nbytes(case: dict[str, Any]) -> int:
    nbytes = {"u1": 1, "u2": 2, "i4": 4, "f8": 8}[case["dtype"]]
    for length in case["chunks"]:
        nbytes *= length
    return nbytes


@st.composite
def hdf5_cases(draw: st.DrawFn, operations: list[str], latest: bool, codecs: list[str | None]) -> dict[str, Any]:
    """An array and accesses for HDF5. The cache holds a few chunks, many, all, or less than one."""
    case = draw(arrays(operations))
    room = draw(st.sampled_from([0, 1, 1, 2, 3, 4, 5, 9, 1000]))
    case["nbytes"] = room * chunk_nbytes(case) + draw(st.integers(0, chunk_nbytes(case) - 1))
    case["slots"] = draw(st.sampled_from([1, 2, 3, 5, 8, 17, 64, 521]))
    case["w0"] = draw(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]))
    if latest:
        case["libver"] = "latest"
        # If an array can grow along an axis other than the first, HDF5 itself reports wrong chunk locations.
        growing = draw(st.sampled_from([0, 0, 1, len(case["shape"])]))
        if growing:
            case["maxshape"] = [None] * growing + case["shape"][growing:]
    case["codec"] = draw(st.sampled_from(codecs))
    if case["codec"] in VARYING and has_order(case):
        case["codec"] = "fletcher32"  # chunks of different sizes do not show the order in which they arrived
    return case


@st.composite
def reopening(draw: st.DrawFn, cases: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    """Cases in which the array is closed and opened again before some accesses, in a file that stays open."""
    case = draw(cases)
    done = [{**access, "reopens": draw(st.booleans())} for access in case["accesses"]]
    return {**case, "accesses": done}


@st.composite
def wide_cases(draw: st.DrawFn) -> dict[str, Any]:
    """Cases for HDF5 with everything that its users can choose: versions, limits, codecs, times, growth."""
    case = draw(
        hdf5_cases(["read", "write"], False, [None, None, "gzip", "lzf", "shuffle", "shuffle-gzip", "fletcher32"])
    )
    case["libver"] = draw(st.sampled_from([None, "earliest", "v108", "v110", "latest"]))
    shape, ndim = case["shape"], len(case["shape"])
    limits = [draw(st.sampled_from([length, length, length + 1, 2 * length, 5 * length + 3])) for length in shape]
    growing = draw(st.sampled_from([0, 0, 1, ndim]))
    # If the other axes have limits, HDF5 itself reports wrong chunk locations for the extensible array.
    case["maxshape"] = [None] * growing + (shape if growing == 1 else limits)[growing:]
    case["fill_time"] = draw(st.sampled_from([None, "ifset", "alloc", "never"]))
    case["alloc_time"] = draw(st.sampled_from([None, "incr", "late", "early"]))
    may_grow = growing > 0 and case["alloc_time"] != "early"
    if may_grow and draw(st.booleans()):
        for _ in range(draw(st.integers(1, 3))):
            rows = draw(st.integers(1, 2 * case["chunks"][0]))
            position = draw(st.integers(0, len(case["accesses"])))
            case["accesses"].insert(position, {"operation": "append", "rows": rows})
    if case["codec"] in VARYING and has_order(case):
        case["codec"] = "fletcher32"
    return case


# Codecs after which the length of a chunk depends on its elements.
VARYING = ("gzip", "lzf", "shuffle-gzip")
OLD = (None, "earliest", "v108")


def index_of(case: dict[str, Any]) -> dict[str, Any]:
    """The index that HDF5 uses."""
    if case.get("libver") in OLD:
        return {"index": "btree_v1"}
    most = case.get("maxshape") or case["shape"]
    growing = [axis for axis, limit in enumerate(most) if limit is None]
    if growing:
        return {"index": "btree_v2"} if growing[1:] else {"index": "extensible_array", "growing_axis": growing[0]}
    is_allocated = case.get("alloc_time") == "early" and case["codec"] is None
    is_single = case["shape"] == case["chunks"] == list(most)
    return {"index": "none" if is_single or is_allocated else "fixed_array"}


def has_order(case: dict[str, Any]) -> bool:
    """Whether the index depends on the order in which chunks arrived: a B-tree with more than one leaf."""
    lengths = zip(case["shape"], case["chunks"], strict=True)
    return index_of(case)["index"].startswith("btree") and math.prod(-(-n // c) for n, c in lengths) > 40


@st.composite
def contiguous_cases(draw: st.DrawFn) -> dict[str, Any]:
    """HDF5 arrays without chunks, shorter and longer than the sieve buffer."""
    ndim = draw(st.integers(1, 3))
    longest = draw(st.sampled_from([{1: 300, 2: 20, 3: 7}, {1: 40000, 2: 300, 3: 40}]))[ndim]
    shape = [draw(st.integers(1, longest)) for _ in range(ndim)]
    return {
        "shape": shape,
        "chunks": None,
        "dtype": draw(st.sampled_from(DTYPES)),
        "written": draw(st.lists(accesses(shape, ["write"]), max_size=2)),
        "accesses": draw(st.lists(accesses(shape, ["read", "write"]), min_size=1, max_size=8)),
    }


def drawn(
    strategy: st.SearchStrategy[dict[str, Any]], count: int, *, fixed_seed: int | None = None
) -> list[dict[str, Any]]:
    """Draw `count` cases to run together: a process with strace costs more than a hundred cases.

    With `fixed_seed`, they are always the same, unless the environment has another in HYPERSLAB_SEED.
    """
    cases: list[dict[str, Any]] = []

    checks = list(HealthCheck)

    @settings(max_examples=count, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=checks)
    @given(strategy)
    def collect(case: dict[str, Any]) -> None:
        cases.append(case)

    chosen = os.environ.get("HYPERSLAB_SEED", fixed_seed)
    (collect if chosen is None else seed(int(chosen))(collect))()
    return cases

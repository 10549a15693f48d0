"""Cases that hypothesis makes: arrays, chunks, caches, and sequences of accesses."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
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
    """An array, what was written of it before, and what is done to it."""
    ndim = draw(st.integers(1, 3))
    longest = {1: 300, 2: 40, 3: 14}[ndim]
    shape = [draw(st.integers(1, longest)) for _ in range(ndim)]
    shortest = 1 if draw(st.booleans()) else 3
    chunks = [min(length, draw(st.integers(shortest, max(shortest, longest // 2)))) for length in shape]
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
def hdf5_cases(draw: st.DrawFn, operations: list[str], latest: bool) -> dict[str, Any]:
    """The same for HDF5, with a cache of a few chunks, of many, of all, or smaller than one."""
    case = draw(arrays(operations))
    room = draw(st.sampled_from([0, 1, 1, 2, 3, 4, 5, 9, 1000]))
    case["nbytes"] = room * chunk_nbytes(case) + draw(st.integers(0, chunk_nbytes(case) - 1))
    case["slots"] = draw(st.sampled_from([1, 2, 3, 5, 8, 17, 64, 521]))
    case["w0"] = draw(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]))
    if latest:
        case["libver"] = "latest"
        if draw(st.booleans()):  # of arrays that grow along another axis HDF5 tells chunks' places wrongly
            case["maxshape"] = [None, *case["shape"][1:]]
    if "write" not in operations:  # what chunks take when they are compressed anew, nobody can tell
        case["compression"] = draw(st.sampled_from([False, False, True]))
    return case


def drawn(strategy: st.SearchStrategy[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """So many cases, to be run together: a process and its strace cost more than a hundred cases."""
    cases: list[dict[str, Any]] = []

    checks = list(HealthCheck)

    @settings(max_examples=count, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=checks)
    @given(strategy)
    def collect(case: dict[str, Any]) -> None:
        cases.append(case)

    collect()
    return cases

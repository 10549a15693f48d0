"""strace sees exactly the requests that the model predicts for HDF5: every offset and every length."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn import VARYING, chunk_nbytes, contiguous_cases, drawn, hdf5_cases, index_of, reopening, wide_cases
from watched import Call, Watched, watch

import hyperslab as hs
from hyperslab._core import CacheState

DEBIAN = "/usr/bin/python3"
CASES = int(os.environ.get("HYPERSLAB_CASES", "15"))  # HYPERSLAB_CASES=1000 takes minutes
N_WINDEX = CacheState.variable_names().index("n_windex")
pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace: apt-get install strace")


def has_debian_h5py() -> bool:
    """Whether Debian's package is there. To import it would take a second in each process that collects tests."""
    return Path(DEBIAN).exists() and Path("/usr/lib/python3/dist-packages/h5py").is_dir()


PYTHONS = [
    pytest.param(None, id="wheel"),
    pytest.param(DEBIAN, id="debian", marks=pytest.mark.skipif(not has_debian_h5py(), reason="needs python3-h5py")),
]


def opened(case: dict[str, Any], watched: Watched) -> CacheState:
    columns = np.array(sorted(watched.found["before"]["chunks"]), np.uint64).reshape(-1, 3).T
    nbytes = chunk_nbytes(case)
    # Checksums have four bytes, which rounding up does not change. The model cannot know lengths after deflate.
    ratios = {None: None, **dict.fromkeys(VARYING, 2.0), "fletcher32": nbytes / (nbytes + 3.5), "shuffle": 1.0}
    most = case.get("maxshape")
    return CacheState(
        hs.ChunkGrid(case["shape"], case["chunks"]),
        np.dtype(case["dtype"]).itemsize,
        "hdf5",
        chunks="listed",
        manifest=[np.ascontiguousarray(column) for column in columns],
        ratio=ratios[case["codec"]],
        options={
            "chunk_cache_nbytes": case["nbytes"],
            "chunk_cache_slots": case["slots"],
            "w0": case["w0"],
            "wide_lengths": watched.found["version"] >= "2" and case.get("libver") == "latest",
            "max_shape": most and [2**64 - 1 if limit is None else limit for limit in most],
            "fills": case.get("fill_time") != "never",
            "allocates_late": case.get("alloc_time") == "late",
            "lengths_vary": case["codec"] in VARYING,
            **index_of(case),
        },
    )


def selection(case: dict[str, Any], access: dict[str, Any]) -> hs.Hyperslab:
    return hs.Hyperslab.from_slices(tuple(slice(*axis) for axis in access["slices"]), case["shape"])


class Chunks:
    """The locations of chunks in the file and in the model, while both are written."""

    def __init__(self, case: dict[str, Any], watched: Watched) -> None:
        before, self.after = (
            {chunk: (offset, length) for chunk, offset, length in watched.found[when]["chunks"]}
            for when in ("before", "after")
        )
        self.may_move = case["codec"] in VARYING
        self.real = dict(before if self.may_move else self.after)
        self.simulated = {chunk: offset for chunk, (offset, _) in before.items()}

    def check(self, what: str, requests: list[tuple[str, int, int, int]], calls: list[Call]) -> None:
        """Compare all requests of one step: those of index blocks by length, all others by offset and length."""
        writes: Iterator[tuple[int, int]] = iter(
            [(call.offset or 0, call.length) for call in calls if call.kind == "pwrite"]
        )
        reads = Counter((call.offset or 0, call.length) for call in calls if call.kind == "pread")
        predicted: Counter[tuple[int, int]] = Counter()
        for purpose, chunk, offset, length in requests:
            if purpose == "write_chunk":
                self.simulated[chunk] = offset
                self.write(what, chunk, next(writes, (-1, -1)))
            elif purpose != "read_index":
                start, stored_length = self.real[chunk]
                if chunk not in self.simulated:  # it is new, and written in parts: its first part shows where it is
                    first = next(writes, (-1, -1))
                    writes = chain([first], writes)
                    self.simulated[chunk] = offset - (first[0] - start)
                whole = purpose == "read_chunk"
                place = (start, stored_length) if whole else (start + offset - self.simulated[chunk], length)
                if purpose.startswith("read"):
                    predicted[place] += 1
                else:
                    assert next(writes, None) == place, f"{what}: {purpose} of chunk {chunk}"
        assert next(writes, None) is None, f"{what}: a write more than predicted"
        assert predicted <= reads, f"{what}: predicted {predicted - reads}, seen {reads - predicted}"
        index = sorted(length for _, length in (reads - predicted).elements())
        assert index == sorted(length for purpose, _, _, length in requests if purpose == "read_index"), what

    def write(self, what: str, chunk: int, place: tuple[int, int]) -> None:
        """A whole chunk is written. It stays where it was, unless its length changed."""
        before = self.real.get(chunk)
        stays = not self.may_move or (before is not None and before[1] == place[1])
        assert place == before if stays else place[0] > 0, f"{what}: chunk {chunk} is written to {place}, was {before}"
        self.real[chunk] = place


def check(case: dict[str, Any], watched: Watched) -> None:
    state, chunks = opened(case, watched), Chunks(case, watched)
    rows = case["shape"][0]
    for step, access in enumerate(case["accesses"], start=1):
        if access["operation"] == "append":
            first, rows = rows, rows + access["rows"]
            _, before = state.resize(rows)
            shape = [access["rows"], *case["shape"][1:]]
            box = hs.Hyperslab([first, *[0] * (len(shape) - 1)], None, [1] * len(shape), shape)
            requests = before + state.requests("write", box)[1]
        else:
            closing = state.reopen_array()[1] if access.get("reopens") else []
            requests = closing + state.requests(access["operation"], selection(case, access))[1]
        chunks.check(f"{case} access {step}", requests, watched.calls.get(step, []))
    variables, requests = state.close()
    closing = len(case["accesses"]) + 1
    chunks.check(f"{case} closing", requests, watched.calls.get(closing, []))
    assert chunks.real == chunks.after, case
    check_index_blocks(case, int(variables[N_WINDEX]), watched, watched.calls.get(closing + 1, []))


def check_index_blocks(case: dict[str, Any], predicted: int, watched: Watched, calls: list[Call]) -> None:
    """The predicted number of index blocks is new or has changed bytes; each is written when the file is closed."""
    before, after = (watched.found[when]["shown"] for when in ("before", "after"))
    changed = [int(place) for place, content in after.items() if before.get(place) != content]
    written = [((call.offset or 0), (call.offset or 0) + call.length) for call in calls if call.kind == "pwrite"]
    assert all(any(start <= place < stop for start, stop in written) for place in changed), f"{case}: {changed}"
    if (
        case["codec"] not in VARYING
    ):  # with gzip, nobody knows beforehand whether a length changes, and with it the index
        assert len(changed) == predicted, f"{case}: index blocks {sorted(changed)}, predicted {predicted}"


def both(operations: list[str], codecs: list[str | None], count: int) -> list[dict[str, Any]]:
    """Cases in the earliest and in the latest form of files."""
    return [case for latest in (False, True) for case in drawn(hdf5_cases(operations, latest, codecs), count)]


def wide(python: str | None) -> list[dict[str, Any]]:
    # About one of 200 such cases is counted wrongly (docs/cost-model.md), so draws at random would fail at random.
    cases = drawn(wide_cases(), 2 * CASES, fixed_seed=16)
    if python is not None:  # HDF5 1.10 caches missing chunks even without a fill value
        cases = [{**case, "fill_time": None if case["fill_time"] == "never" else case["fill_time"]} for case in cases]
    return cases


def opened_again() -> list[dict[str, Any]]:
    cases = []
    for latest in (False, True):
        reads = hdf5_cases(["read"], latest, [None, None, "gzip", "fletcher32"])
        cases += drawn(reopening(reads), CASES // 2)
        cases += drawn(reopening(hdf5_cases(["read", "write"], latest, [None])), CASES // 2)
    return cases


def without_chunks() -> list[dict[str, Any]]:
    return [*drawn(contiguous_cases(), CASES // 2), *drawn(reopening(contiguous_cases()), CASES // 2)]


def cases_of(python: str | None) -> dict[str, list[dict[str, Any]]]:
    """The cases of each test."""
    return {
        "everything": wide(python),
        "reads": both(["read"], [None, None, "gzip", "fletcher32"], CASES),
        "writes and reads": both(["read", "write", "write"], [None], CASES),
        "writes of encoded chunks": both(["read", "write", "write"], ["gzip", "fletcher32"], CASES // 2),
        "opened again": opened_again(),
        "without chunks": without_chunks(),
        **{name: [case] for name, case in {**FOUND, **MANY_CHUNKS}.items()},
    }


Seen = Callable[[str | None, str], list[tuple[dict[str, Any], Watched]]]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """The cases of a test, and what strace sees of each. One process of each Python makes them all: to start it takes
    longest."""

    @cache
    def all_of(python: str | None) -> dict[str, list[tuple[dict[str, Any], Watched]]]:
        asked, folder = cases_of(python), tmp_path_factory.mktemp("seen") / "watched"
        watched = iter(watch("hdf5", list(chain(*asked.values())), folder, python or sys.executable))
        shutil.rmtree(folder)
        return {name: [(case, next(watched)) for case in cases] for name, cases in asked.items()}

    return lambda python, name: all_of(python)[name]


@pytest.mark.slow
@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", ["everything", "reads", "writes and reads", "writes of encoded chunks"])
def test_drawn_cases(name: str, python: str | None, seen: Seen) -> None:
    check_all(seen(python, name))


@pytest.mark.parametrize("python", PYTHONS)
def test_an_array_that_is_opened_again(python: str | None, seen: Seen) -> None:
    """Its chunks are read again, but no block of its index: the file keeps these."""
    check_all(seen(python, "opened again"))


def check_all(found: list[tuple[dict[str, Any], Watched]]) -> None:
    assert len(found) >= CASES // 2
    for case, watched in found:
        check(case, watched)


def accesses(*rows: tuple[str, list[list[int]]]) -> list[dict[str, Any]]:
    return [{"operation": operation, "slices": slices} for operation, slices in rows]


# Cases found by random draws, each of which the model once counted wrongly.
FOUND = {
    # A chunk after the last one needs a data block that was not looked at before, when it is put into the index.
    "a new chunk behind the last one": {
        "shape": [19, 37], "chunks": [1, 10], "dtype": "u2", "codec": None, "libver": "latest", "maxshape": [None, 37],
        "nbytes": 20006, "slots": 17, "w0": 0.75,
        "written": accesses(("write", [[16, 17, 1], [1, 11, 2]])),
        "accesses": accesses(
            ("write", [[8, 13, 3], [25, 26, 1]]), ("write", [[3, 12, 2], [2, 3, 1]]),
            ("write", [[17, 19, 1], [23, 25, 1]]), ("write", [[3, 12, 2], [2, 3, 1]]),
        ),
    },
    # The same for a B-tree's leaf: a chunk after the last one is not looked for below the root.
    "a new chunk behind the last leaf": {
        "shape": [300], "chunks": [1], "dtype": "u1", "codec": None, "nbytes": 100, "slots": 17, "w0": 0.75,
        "written": accesses(("write", [[0, 100, 1]])), "accesses": accesses(("write", [[200, 210, 1]])),
    },
    # The chunk right after the last one is looked for in the leaf, but the one after that is not.
    "right behind the last chunk": {
        "shape": [300], "chunks": [1], "dtype": "u1", "codec": None, "nbytes": 100, "slots": 17, "w0": 0.75,
        "written": accesses(("write", [[0, 99, 1]])),
        "accesses": accesses(("read", [[99, 100, 1]]), ("read", [[100, 101, 1]])),
    },
    # A full leaf between others is split, and its right neighbour is updated.
    "a leaf in the middle is split": {
        "shape": [400], "chunks": [1], "dtype": "u1", "codec": None, "nbytes": 100, "slots": 17, "w0": 0.75,
        "written": accesses(("write", [[0, 400, 2]])), "accesses": accesses(("write", [[121, 145, 2]])),
    },
    # Looking for a chunk after the last one does not read the data block of the last chunks.
    "behind the last chunk first": {
        "shape": [294], "chunks": [2], "dtype": "u1", "codec": None, "libver": "latest", "maxshape": [None],
        "nbytes": 19, "slots": 1, "w0": 0.75, "written": accesses(("write", [[269, 289, 2]])),
        "accesses": accesses(("read", [[289, 290, 1]]), ("read", [[269, 289, 2]])),
    },
    # Without a fill value, chunks that do not exist are not cached when they are read.
    "a missing chunk without a fill value": {
        "shape": [4, 6], "chunks": [2, 3], "dtype": "f8", "codec": "lzf", "libver": "v110", "maxshape": [None, None],
        "nbytes": 2017, "slots": 64, "w0": 0.25, "fill_time": "never", "alloc_time": "incr",
        "written": accesses(("write", [[0, 1, 1], [0, 1, 1]])),
        "accesses": accesses(
            ("read", [[0, 4, 1], [0, 6, 1]]), ("write", [[3, 4, 1], [0, 6, 1]]), ("write", [[0, 2, 1], [3, 6, 1]]),
        ),
    },
    # A growing array: HDF5 then counts only whole chunks along an axis, so chunks change their slots in the cache.
    "chunks that change their slots": {
        "shape": [9, 9, 6], "chunks": [4, 6, 5], "dtype": "i4", "codec": "shuffle-gzip", "libver": "earliest",
        "maxshape": [None, None, None], "nbytes": 4678, "slots": 5, "w0": 1.0,
        "written": accesses(("write", [[0, 9, 1], [0, 9, 1], [0, 6, 1]])),
        "accesses": [
            *accesses(("write", [[7, 8, 1], [3, 5, 1], [4, 5, 1]])),
            {"operation": "append", "rows": 1}, {"operation": "append", "rows": 8},
        ],
    },
    # With late allocation, the first write makes all chunks.
    "all chunks at once": {
        "shape": [35, 24], "chunks": [6, 8], "dtype": "u2", "codec": "fletcher32", "libver": "v108",
        "maxshape": [36, 24], "nbytes": 39, "slots": 64, "w0": 0.75, "fill_time": "never", "alloc_time": "late",
        "written": [], "accesses": accesses(("write", [[15, 23, 1], [6, 10, 1]])),
    },
    # The fixed array has room for the largest shape, and chunks are where they are in that.
    "a limit above the shape": {
        "shape": [35, 24], "chunks": [6, 8], "dtype": "u2", "codec": None, "libver": "v110", "maxshape": [350, 250],
        "nbytes": 1000, "slots": 64, "w0": 0.75, "written": accesses(("write", [[0, 35, 1], [0, 24, 1]])),
        "accesses": accesses(("read", [[0, 35, 3], [0, 24, 5]]), ("write", [[15, 23, 1], [6, 10, 1]])),
    },
    # netCDF's default for an axis without a limit: the only chunk is larger than the array, and is read whole.
    "a chunk larger than the array": {
        "shape": [365, 3], "chunks": [512, 4], "dtype": "f8", "codec": None, "maxshape": [None, 5],
        "nbytes": 1 << 20, "slots": 521, "w0": 0.75, "written": accesses(("write", [[0, 365, 1], [0, 3, 1]])),
        "accesses": accesses(("read", [[0, 365, 1], [0, 3, 1]]), ("read", [[7, 8, 1], [0, 1, 1]])),
    },
    # The same if it does not fit into the cache: the runs are read one by one.
    "a chunk larger than the array and the cache": {
        "shape": [365, 3], "chunks": [512, 4], "dtype": "f8", "codec": None, "maxshape": [None, 5],
        "nbytes": 1000, "slots": 521, "w0": 0.75, "written": accesses(("write", [[0, 365, 1], [0, 3, 1]])),
        "accesses": accesses(("read", [[3, 9, 1], [0, 3, 1]]), ("read", [[7, 8, 1], [0, 1, 1]])),
    },
    # The root of the version 2 B-tree is split: new nodes are not read.
    "a root is split": {
        "shape": [13, 2, 7], "chunks": [1, 1, 2], "dtype": "f8", "codec": None, "libver": "latest",
        "maxshape": [None, None, None], "nbytes": 16000, "slots": 8, "w0": 0.5,
        "written": [], "accesses": accesses(("write", [[0, 13, 1], [0, 2, 1], [0, 7, 1]])),
    },
}  # fmt: skip


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", FOUND)
def test_what_was_found(name: str, python: str | None, seen: Seen) -> None:
    if python is not None and FOUND[name].get("fill_time") == "never" and FOUND[name]["written"]:
        pytest.skip("HDF5 1.10 caches missing chunks even without a fill value")
    ((case, watched),) = seen(python, name)
    check(case, watched)


# With 6,400 chunks: trees of three levels, tables with pages, groups of data blocks.
MANY = {
    "btree_v1": {},
    "btree_v2": {"libver": "latest", "maxshape": [None, None]},
    "fixed_array": {"libver": "latest"},
    "extensible_array": {"libver": "latest", "maxshape": [None, 80]},
}


MANY_CHUNKS = {
    index: {
        "shape": [80, 80], "chunks": [1, 1], "dtype": "u1", "codec": None, "nbytes": 100, "slots": 521, "w0": 0.75,
        "written": accesses(("write", [[2, 80, 3], [0, 80, 1]]), ("write", [[0, 80, 1], [1, 80, 2]])),
        "accesses": accesses(
            ("write", [[0, 80, 3], [0, 80, 4]]), ("write", [[1, 80, 3], [2, 80, 4]]), ("read", [[0, 80, 1], [0, 80, 5]])
        ),
        **options,
    }
    for index, options in MANY.items()
}  # fmt: skip


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("index", MANY)
def test_indexes_of_many_blocks(index: str, python: str | None, seen: Seen) -> None:
    assert index_of(MANY_CHUNKS[index])["index"] == index
    ((case, watched),) = seen(python, index)
    check(case, watched)


@pytest.mark.parametrize("python", PYTHONS)
def test_arrays_without_chunks(python: str | None, seen: Seen) -> None:
    found = seen(python, "without chunks")
    assert len(found) >= CASES // 2
    for case, watched in found:
        check_contiguous(case, watched)


def check_contiguous(case: dict[str, Any], watched: Watched) -> None:
    """Compare each request, in order."""
    state = CacheState(
        hs.ChunkGrid(case["shape"], case["shape"]),
        np.dtype(case["dtype"]).itemsize,
        "hdf5",
        chunks="row_major" if case["written"] else "missing",
        options={"index": "contiguous"},
    )
    found = []
    for access in case["accesses"]:
        closing = state.reopen_array()[1] if access.get("reopens") else []
        found.append(closing + state.requests(access["operation"], selection(case, access))[1])
    found.append(state.close()[1])
    start = watched.found["after"]["offset"] or 0
    for step, requests in enumerate(found, start=1):
        seen = [(call.kind, (call.offset or 0) - start, call.length) for call in watched.calls.get(step, [])]
        kinds = {"read_part": "pread", "write_part": "pwrite"}
        predicted = [(kinds[purpose], offset, length) for purpose, _, offset, length in requests]
        assert seen == predicted, f"{case} access {step}"

"""The requests that a plan tells are those that the operating system sees, with any number of threads."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from preads import Read, preads, selection

import hyperslab as hs
from draws import few

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


def check(path: Path, reads: list[Read]) -> None:
    file = hs.open(path)
    for (name, asked, threads), made in zip(reads, preads(path, reads), strict=True):
        plan = file[name].plan(selection(asked))
        _, offsets, lengths = (column.tolist() for column in plan.requests())
        told = Counter(zip(offsets, lengths, strict=True))
        assert told == made, (name, asked, threads)
        assert plan.request_count == made.total()
        assert plan.fetched_nbytes == sum(length * count for (_, length), count in made.items())


@st.composite
def axis_keys(draw: st.DrawFn, length: int) -> Any:
    kind = draw(st.sampled_from(["slice", "slice", "strided", "index", "list"]))
    if kind == "index":
        return draw(st.integers(0, length - 1))
    if kind == "list":
        return np.array(draw(st.lists(st.integers(0, length - 1), min_size=1, max_size=9)))
    start = draw(st.integers(0, length - 1))
    step = 1 if kind == "slice" else draw(st.integers(2, 40))
    return slice(start, draw(st.integers(start + 1, length)), step)


@st.composite
def reads_of(draw: st.DrawFn, name: str, shape: tuple[int, ...]) -> Read:
    if draw(st.integers(0, 4)) == 0:
        point = st.tuples(*(st.integers(0, length - 1) for length in shape))
        asked: Any = draw(st.lists(point, min_size=1, max_size=40))
    else:
        asked = tuple(draw(axis_keys(length)) for length in shape)
    return name, asked, draw(st.integers(1, 2))


@st.composite
def layouts(draw: st.DrawFn) -> dict[str, Any]:
    ndim = draw(st.integers(1, 3))
    longest = (6000, 150, 30)[ndim - 1]
    shape = tuple(draw(st.integers(1, longest)) for _ in range(ndim))
    made = {"shape": shape, "dtype": draw(st.sampled_from(["i1", "<i4", ">f8"])), "fillvalue": 3}
    if draw(st.booleans()):
        made["chunks"] = tuple(draw(st.integers(1, length)) for length in shape)
        made |= draw(st.sampled_from([{}, {}, {"compression": "gzip"}, {"shuffle": True, "fletcher32": True}]))
    return made


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[Read]]:
    made = draw(st.lists(layouts(), min_size=4, max_size=8))
    reads = [draw(reads_of(f"a{number}", layout["shape"])) for number, layout in enumerate(made) for _ in range(5)]
    return made, reads


def write(path: Path, made: list[dict[str, Any]], seed: int) -> None:
    random = np.random.default_rng(seed)
    with h5py.File(path, "w", libver="latest" if seed % 2 else "earliest") as file:
        for number, layout in enumerate(made):
            array = file.create_dataset(f"a{number}", **layout)
            for _ in range(random.integers(1, 4)):  # what lies outside these boxes is never written
                box = tuple(slice(*sorted(random.integers(0, length + 1, 2))) for length in array.shape)
                array[box] = random.integers(0, 100, array[box].shape)


@pytest.mark.slow
@settings(max_examples=few(12), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases(), seed=st.integers(0, 1000))
def test_requests_are_what_the_system_sees(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[list[dict[str, Any]], list[Read]], seed: int
) -> None:
    path = tmp_path_factory.mktemp("made") / "a.h5"
    made, reads = case
    write(path, made, seed)
    check(path, reads)


@pytest.mark.slow
def test_requests_of_large_arrays_do_not_depend_on_threads(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    values = np.random.default_rng(0).integers(0, 1000, (3000, 700), "i4")
    with h5py.File(path, "w") as file:
        file.create_dataset("deflated", data=values, chunks=(60, 50), compression="gzip", compression_opts=1)
        file.create_dataset("small", data=values, chunks=(10, 50))
        file.create_dataset("large", data=values, chunks=(1000, 300))
        file.create_dataset("whole", data=values)
        sparse = file.create_dataset("sparse", values.shape, "i4", chunks=(10, 50), fillvalue=7)
        sparse[1000:1020] = 1
        sparse[-1] = 2
    keys = [np.s_[:, :], np.s_[7:2900:3, ::2], np.s_[:, 3], np.s_[1234, :], np.s_[:, np.array([600, 5, 5, 9])]]
    points = np.random.default_rng(1).integers(0, values.shape, (500, 2)).tolist()
    names = ("deflated", "small", "large", "whole", "sparse")
    check(path, [(name, key, threads) for name in names for key in (*keys, points) for threads in (1, 2)])


@pytest.mark.slow
def test_a_grid_of_a_billion_chunks_costs_what_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="latest") as file:
        array = file.create_dataset("a", (1 << 40,), "i4", chunks=(1 << 10,), fillvalue=7)
        for place in (5, 1 << 20, 1 << 30, (1 << 40) - 1):
            array[place] = 1
    plan = hs.open(path)["a"].plan()
    assert (plan.chunk_count, plan.missing_chunk_count) == (1 << 30, (1 << 30) - 4)
    assert "missing_chunk_count=1073741820" in repr(plan)
    read = hs.open(path)["a"][5 :: 1 << 18]
    assert read[0] == 1
    assert np.all(read[1:] == 7)
    check(path, [("a", (slice(5, None, 1 << 18),), 2), ("a", (slice(0, 1 << 24),), 2)])

"""Workloads and their counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hyperslab as hs
from hyperslab._core import CacheState
from hyperslab.errors import StudyError
from hyperslab.model import (
    Caches,
    Flat,
    Hdf5,
    HyperslabEngine,
    Layout,
    PaperHdf5,
    PaperZarr,
    Workload,
    Zarr,
    contention,
    count,
    count_each,
    load_workload,
)
from hyperslab.model.counting import COUNTED
from hyperslab.model.workload import SELECTS

ARRAY = {"shape": [400, 60], "dtype": "int32"}
LAYOUT = Layout(chunk_shape=(50, 10))


def workload(*accesses: dict[str, Any], **others: Any) -> Workload:
    return Workload.model_validate({"array": ARRAY, "accesses": list(accesses), **others})


def test_names_are_those_of_the_core() -> None:
    assert list(COUNTED) == CacheState.variable_names()


def test_a_file_says_a_workload(tmp_path: Path) -> None:
    path = tmp_path / "boxes.yaml"
    path.write_text(
        """
        array: {shape: [400, 60], dtype: float32}
        accesses:
          - {select: random-boxes, count: 5, shape: [10, 8], within: [null, 16]}
          - {select: list, boxes: [{start: [0, 0], shape: [4, 6], step: [2, 10]}], operation: write, weight: 2}
        order: shuffled
        seed: 7
        """
    )
    steps = load_workload(path).steps()
    assert steps == load_workload(path).steps()
    assert sorted(step.operation for step in steps) == ["read"] * 5 + ["write"] * 2


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("accesses: []", "accesses"),
        ("accesses: [{select: all}]", "give either array or arrays"),
        ("array: {shape: [4], dtype: nonsense}\naccesses: [{select: all}]", "dtype"),
        ("array: {shape: [4]}\naccesses: [{select: diagonal}]", "unknown selection"),
        ("array: {shape: [4]}\naccesses: [{select: list}]", "needs boxes"),
        ("array: {shape: [4]}\naccesses: [{select: list, boxes: [{start: [2], shape: [3]}]}]", "outside"),
        ("array: {shape: [4]}\naccesses: [{select: random-boxes, shape: [1, 2]}]", "2 axes"),
        ("array: {shape: [4]}\naccesses: [{select: all, colour: red}]", "colour"),
        ("array: {shape: [4]}\naccesses: [{select: all, weight: 0.5}]", "weight"),
        ("array: {shape: [4]}\naccesses: [{select: all, weight: 1000000000}]", "lower count or weight"),
        ("array: {shape: [4]}\naccesses: [{select: all}]\nthreads: 4", "threads: 4 threads cannot be priced"),
        ("array: {shape: [4]}\naccesses: [{select: all}]\nservers: 0", "servers"),
        ("array: {shape: [4]}\naccesses: [{select: all}]\nservers: 2\nstripe: {count: 3}", "there are 2"),
        ("array: {shape: [4]}\naccesses: [{select: all}]\ntrace: mine.log", "trace: "),
        ("array: [", "boxes.yaml"),
    ],
)
def test_what_is_no_workload_says_where(text: str, what: str, tmp_path: Path) -> None:
    path = tmp_path / "boxes.yaml"
    path.write_text(text)
    with pytest.raises(StudyError, match=what):
        load_workload(path)


WITH_LINES = """# a comment
array: {shape: [40, 8]}

accesses:
  - {select: all}
  - select: list
    boxes:
      - {start: [0, 0], shape: [1, 1]}
      - {start: [39, 0],
         shape: [2, 1]}
  - select: all
    colour: red
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("", "", "boxes.yaml: line 12: accesses.2.colour: unknown key"),
        ("    colour: red\n", "", "boxes.yaml: line 9: accesses.1.boxes.1: the box at [39, 0] reaches outside"),
        ("[40, 8]", "[40, -8]", "boxes.yaml: line 2: array.shape.1: "),
        ("select: all}", "select: nothing}", "boxes.yaml: line 5: accesses.0: unknown selection"),
    ],
)
def test_errors_name_the_line_and_the_key(old: str, new: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "boxes.yaml").write_text(WITH_LINES.replace(old, new, 1))
    with pytest.raises(StudyError) as caught:
        load_workload(tmp_path / "boxes.yaml")
    assert said in str(caught.value)


@pytest.mark.parametrize("select", SELECTS)
@pytest.mark.parametrize("library", [Hdf5(), Zarr(), Flat(), HyperslabEngine(), PaperHdf5(), PaperZarr()])
def test_every_library_counts_every_selection(select: str, library: Any) -> None:
    asked = workload({"select": select, "shape": [20, 8]} if select == "random-boxes" else {"select": select})
    found = count(asked, LAYOUT, library)
    elements = sum(step.selection.size for step in asked.steps())
    assert found.s_memcpy == elements * 4 or isinstance(library, PaperZarr)
    assert found.n_cache + found.n_rdisk > 0


def test_a_weight_makes_the_access_again() -> None:
    """What the first time brings into the caches is there for the other times."""
    once, twice = workload({"select": "all"}), workload({"select": "all"}, {"select": "all"})
    weighted = workload({"select": "all", "weight": 2})
    for library in (Hdf5(), Hdf5(chunk_cache_nbytes=2000, chunk_cache_slots=521), Zarr()):
        assert (count_each(weighted, LAYOUT, library) == count_each(twice, LAYOUT, library)).all()
        assert count(weighted, LAYOUT, library) == count(twice, LAYOUT, library)
        assert count(weighted, LAYOUT, library).s_rdisk == count(once, LAYOUT, library).s_rdisk
    boxes = workload({"select": "random-boxes", "count": 3, "shape": [10, 8], "weight": 2})
    steps = [step.selection for step in boxes.steps()]
    assert steps[:3] == steps[3:], "the same boxes again"


def test_a_second_pass_comes_from_the_caches() -> None:
    twice = workload({"select": "all"}, {"select": "all"})
    first, second, _ = count_each(twice, LAYOUT, Hdf5())
    names = CacheState.variable_names()
    assert first[names.index("n_rdisk")] == 48
    assert second[names.index("n_rdisk")] == 0
    assert second[names.index("n_cache")] == 0, "HDF5 kept the chunks"
    small = Hdf5(chunk_cache_nbytes=2000, chunk_cache_slots=521)
    _, second, _ = count_each(twice, LAYOUT, small)
    assert second[names.index("n_cache")] == 48, "the page cache did"
    _, second, _ = count_each(twice, LAYOUT, small, Caches(page_cache_nbytes=10_000))
    assert second[names.index("n_rdisk")] == 48


def test_hdf5_defers_writes_and_zarr_does_not() -> None:
    halves = [{"start": [0, 0], "shape": [25, 60]}, {"start": [25, 0], "shape": [25, 60]}]
    asked = workload({"select": "list", "boxes": halves, "operation": "write"})
    deferred, immediate = count(asked, LAYOUT, Hdf5(), chunks="missing"), count(asked, LAYOUT, Zarr(), chunks="missing")
    assert (deferred.n_wdisk, deferred.n_rdisk, deferred.n_cache) == (6, 0, 0)
    assert (immediate.n_wdisk, immediate.n_absent, immediate.n_open) == (12, 6, 6)


def test_the_first_b_tree_has_57_chunks_in_most_nodes() -> None:
    one = Workload.model_validate({"array": {"shape": [1024], "dtype": "u1"}, "accesses": [{"select": "all"}]})
    found = count(one, Layout(chunk_shape=(1,)), Hdf5(), Caches(page_cache_nbytes=0))
    assert found.n_rindex == 19  # measured: 18 leaves and a root
    assert count(one, Layout(chunk_shape=(1,)), PaperHdf5()).n_rindex == 0  # as printed: no seek, no index


def test_the_order_of_the_list_costs_what_real_files_cost() -> None:
    """A hit moves a chunk by one step only, so some reads occur that a true LRU order would avoid. strace saw this in
    HDF5 2.0.
    """
    sequence = [0, 1, 2, 3, 0, 4, 5, 6, 0, 7, 8, 9, 0, 10, 11, 12, 0]
    boxes = [{"start": [chunk], "shape": [1]} for chunk in sequence]
    asked = Workload.model_validate(
        {"array": {"shape": [16], "dtype": "u1"}, "accesses": [{"select": "list", "boxes": boxes}]}
    )
    found = count(asked, Layout(chunk_shape=(1,)), Hdf5(chunk_cache_nbytes=4, chunk_cache_slots=521, w0=0.75))
    assert found.n_rdisk + found.n_cache == 15


def test_what_has_no_meaning_is_refused() -> None:
    asked = workload({"select": "all"})
    for layout, library, what in [
        (Layout((50, 10), ratio=0.0), Hdf5(), "ratio is 0"),
        (LAYOUT, Hdf5(w0=2.0), "w0 is 2"),
        (LAYOUT, Hdf5(chunk_cache_slots=2**40), "slot_count"),
        (LAYOUT, Hdf5(index="extensible_array", growing_axis=9), "axis is 9"),
        (Layout((50, 10), ratio=2.0, contiguous=True), Hdf5(), "only for arrays with chunks"),
        (Layout((50, 10), shard_shape=(75, 10)), Zarr(), "shard_shape"),
        (Layout((50,)), Zarr(), "chunk shape"),
    ]:
        with pytest.raises(ValueError, match=what):
            count(asked, layout, library)
    with pytest.raises(ValueError, match="our engine only reads"):
        count(workload({"select": "all", "operation": "write"}), LAYOUT, HyperslabEngine())
    with pytest.raises(TypeError, match="no option colour"):
        CacheState(hs.ChunkGrid([4], [2]), 4, "zarr", options={"colour": "red"})


def test_the_second_b_tree_has_a_bound() -> None:
    pixels = Workload.model_validate({"array": {"shape": [5000, 4000], "dtype": "u1"}, "accesses": [{"select": "all"}]})
    with pytest.raises(ValueError, match="chunk_count is 20000000: the second B-tree"):
        count(pixels, Layout((1, 1)), Hdf5(index="btree_v2"))


def test_contention_is_formula_8() -> None:
    assert contention(16, 4) == 1 + 15 / 4
    with pytest.raises(ValueError, match="at least one"):
        contention(0, 4)


def test_counts_of_many_calls_are_those_of_each() -> None:
    asked = workload({"select": "random-boxes", "count": 30, "shape": [33, 7]})
    state = CacheState(hs.ChunkGrid(ARRAY["shape"], [50, 10]), 4, "hdf5")
    one_by_one = [state.requests("read", step.selection)[0] for step in asked.steps()]
    assert np.array_equal(count_each(asked, LAYOUT, Hdf5())[:-1], np.array(one_by_one))

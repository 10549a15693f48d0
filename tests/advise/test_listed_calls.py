"""Calls that list points, or indices along axes: each is one call, and touches each of its chunks once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import made_up_store_profile, with_codecs
from typer.testing import CliRunner

import hyperslab as hs
from hyperslab._core import Hyperslab, Points
from hyperslab.advise.candidate import Candidate
from hyperslab.advise.demand import Demand, permuted
from hyperslab.advise.pricing import Pricer
from hyperslab.advise.traced_demands import open_trace, traced_array, traced_demand
from hyperslab.cli import app
from hyperslab.model.call_counts import facts_of
from hyperslab.model.libraries import Hdf5, Layout
from hyperslab.model.workload import Step

h5py = pytest.importorskip("h5py")
SHAPE, CHUNKS = (600, 24), (50, 8)
ROWS = [3, 4, 5, 77, 78, 301, 302, 599]
READS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda array: array[ROWS],
    "columns": lambda array: array[:, [1, 2, 23]],
    "rows of a part": lambda array: array[ROWS, 4:20],
}


def elements() -> Any:
    return np.random.default_rng(4).normal(size=SHAPE).astype("f4")


def recorded(path: Path, read: Callable[[Any], Any]) -> Path:
    """The trace of a program that calls `read` twice with the array of a new file."""
    if path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=elements(), chunks=CHUNKS, compression="gzip")
        with hs.record() as trace, h5py.File(path, rdcc_nbytes=0) as file:
            for _ in range(2):
                read(file["x"])
    else:
        zarr = pytest.importorskip("zarr")
        group = zarr.open_group(path, mode="w", zarr_format=2)
        group.create_array("x", data=elements(), chunks=CHUNKS, compressors=zarr_codec())
        with hs.record() as trace:
            array = zarr.open_group(path, mode="r")["x"]
            for _ in range(2):
                read(array.oindex)
    made = path.with_suffix(".trace")
    trace.save(made)
    return made


def zarr_codec() -> Any:
    numcodecs = pytest.importorskip("numcodecs")
    return numcodecs.Zlib(1)


@pytest.mark.parametrize("kind", READS)
@pytest.mark.parametrize("name", ["a.h5", "a.zarr"])
def test_each_chunk_of_a_call_is_decoded_once(tmp_path: Path, name: str, kind: str) -> None:
    made = recorded(tmp_path / name, READS[kind])
    with_codecs(made_up_store_profile(tmp_path), "deflate").save(tmp_path / "profile.json")
    words = ["predict", "--trace", str(made), "--profile", str(tmp_path / "profile.json"), "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    (array,) = json.loads(done.stdout)["arrays"]
    library = "zarr" if name.endswith("zarr") else "hdf5"
    (now,) = (one for one in array["predictions"] if one["library"] == library and one["chunk_shape"] == list(CHUNKS))
    touched = READS[kind](np.add.outer(np.arange(600) // 50 * 3, np.arange(24) // 8))
    chunks = 2 * len(np.unique(touched))
    read = now["variables"]["read"]
    assert (read["n_call"], read["n_chunk"]) == (2, chunks)
    assert read["s_decode"] == chunks * 50 * 8 * 4
    assert not [said for said in array["notes"] if "count as one for each box" in said]


def test_lists_of_very_many_elements_count_as_if_they_were_at_even_distances(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hyperslab.advise.traced_demands.MOST_ELEMENTS", 300)
    one = open_trace(recorded(tmp_path / "a.h5", READS["rows"]))
    (summary,) = one.summaries
    stored = traced_array(summary)
    demand = traced_demand(one, summary, stored)
    first, second = demand.steps
    assert isinstance(first.selection, Points)
    assert isinstance(second.selection, Hyperslab)
    assert first.selection.size == second.selection.size == 8 * 24
    assert second.selection.start == (3, 0)
    assert "1 accesses that list very many elements count as if these were at even distances" in demand.notes[-1]
    facts = facts_of([first, second], CHUNKS, Hdf5(), 4)
    assert facts[0, 2] == facts[1, 2] == 8 * 24, "HDF5 takes the elements one by one, whether they are counted or not"


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True).map(sorted),
    st.lists(st.integers(0, 7), min_size=1, max_size=5, unique=True).map(sorted),
    st.booleans(),
)
def test_boxes_of_lists_select_the_same_elements(rows: list[int], columns: list[int], are_lists: bool) -> None:
    along = np.meshgrid(rows, columns, indexing="ij")
    points = Points(np.stack(along, axis=-1).reshape(-1, 2))
    lists = (tuple(rows), None if len(columns) == 8 else tuple(columns)) if are_lists else None
    begins = Step("read", Hyperslab((0, 0), (1, 1), (1, 1), (1, 1)))
    demand = Demand("a", (10, 8), "<f4", [begins, Step("read", points, lists), begins], starts=frozenset({0, 2}))
    boxes = demand.in_boxes
    seen = np.zeros((10, 8), np.int64)
    for step in boxes.steps[1:-1]:
        assert isinstance(step.selection, Hyperslab)
        seen[step.selection.slices] += 1
    assert (seen[np.ix_(rows, columns)] == 1).all()
    assert seen.sum() == len(rows) * len(columns)
    assert boxes.starts == {0, len(boxes.steps) - 1}
    turned = permuted(demand.steps[1], (1, 0))
    assert turned.lists == (None if lists is None else lists[::-1])


def test_too_many_boxes_have_no_price_by_our_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hyperslab.advise.demand.MOST_BOXES", 6)
    points = Points(np.arange(14).reshape(7, 2))
    demand = Demand("a", (100, 100), "<f4", [Step("read", points)])
    assert demand.in_boxes is demand
    profile = with_codecs(made_up_store_profile(tmp_path), "deflate")
    price = Pricer(profile, [demand]).price(Candidate("hdf5", "hyperslab", Layout((10, 10))))
    assert price.unknown == ("our engine is modelled for boxes and steps, not for lists of indices",)
    monkeypatch.setattr("hyperslab.advise.demand.MOST_BOXES", 7)
    assert len(Demand("a", (100, 100), "<f4", [Step("read", points)]).in_boxes.steps) == 7


def test_the_lines_of_lists_are_runs_of_neighbours() -> None:
    rows, columns = [3, 9, 40], [*range(20, 34), 50]
    along = np.meshgrid(rows, columns, indexing="ij")
    points = Points(np.stack(along, axis=-1).reshape(-1, 2))
    step = Step("read", points, (tuple(rows), tuple(columns)))
    for width, runs in ((100, 2), (30, 3), (8, 4), (1, 15)):
        assert facts_of([step], (10, width), Hdf5(), 4)[0, 0] == 3 * runs
    assert facts_of([Step("read", points)], (10, 30), Hdf5(), 4)[0, 0] == points.size

"""Measuring cells: phases, proofs of cache states, shared files, and cells that cannot be measured."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from hyperslab.errors import HyperslabError, Refused, UsageError
from hyperslab.lab.rounds import StopRule
from hyperslab.model import Flat, Hdf5, HyperslabEngine, Layout, Library, PaperHdf5, Workload, Zarr
from hyperslab.model.cells import CellCache, ModelCell
from hyperslab.model.measuring import CellTimings, disk_nbytes, measure

pytestmark = pytest.mark.usefixtures("prepared_workers")

ONCE = StopRule(1, 1)


def cell(library: Library, cache: CellCache, select: str = "all", operation: str = "read", **layout: Any) -> ModelCell:
    array = {"shape": [400, 30], "dtype": "i4"}
    accesses = [{"select": select, "operation": operation, **({"count": 3} if select == "random-rows" else {})}]
    workload = Workload.model_validate({"array": array, "accesses": accesses})
    return ModelCell(workload, Layout(**{"chunk_shape": (100, 10), **layout}), library, cache)


CELLS = [
    cell(Hdf5(), "cold"),
    cell(Hdf5(), "page-warm", "random-rows"),
    cell(Hdf5(), "library-warm"),
    cell(Zarr(), "cold"),
    cell(Zarr(), "page-warm", "random-rows"),
    cell(Zarr(), "library-warm"),
    cell(HyperslabEngine(), "page-warm"),
    cell(Flat(), "cold", "columns"),
    cell(Hdf5(), "new", operation="write"),
    cell(Zarr(), "new", operation="write"),
    cell(Hdf5(), "cold", "random-rows", "write"),
    cell(Zarr(), "page-warm", "random-rows", "write"),
    cell(Hdf5(), "page-warm", codec="zstd:1"),
    cell(Zarr(), "cold", codec="zstd:1"),
    cell(Hdf5(index="fixed_array"), "cold"),
    cell(Zarr(), "page-warm", shard_shape=(200, 30)),
]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CellTimings]:
    pytest.importorskip("zarr", reason="not installed: pip install 'hyperslab[formats]'")
    directory = tmp_path_factory.mktemp("measured")
    told: list[tuple[int, int]] = []
    found = list(measure(CELLS, directory, ONCE, progress=lambda _, done, expected: told.append((done, expected))))
    assert list(directory.iterdir()) == []
    assert told
    assert all(done < expected == 2 * len(CELLS) for done, expected in told)
    return {each.cell.file_key + each.cell.name + repr(each.cell.library): each for each in found}


def test_every_cell_is_measured(measured: dict[str, CellTimings]) -> None:
    assert len(measured) == len(CELLS)
    for each in measured.values():
        assert len(each.passes) == len(each.seconds) == 1
        assert each.median_seconds > 0
        assert each.interval is None  # one pass has no spread


def test_phases(measured: dict[str, CellTimings]) -> None:
    for each in measured.values():
        phases = set(each.passes[0])
        if each.cell.cache == "new":
            assert phases == {"create", "access", "flush", "close", "fsync"}
        elif each.cell.writes:
            assert phases == {"open", "access", "flush", "close", "fsync"}
        elif each.cell.cache == "library-warm":
            assert each.seconds == (each.passes[0]["access"],)
        else:
            assert phases == {"open", "access", "close"}
            assert each.seconds[0] == pytest.approx(sum(each.passes[0].values()))
        assert each.phase_seconds("append") is None


def test_states_are_proved(measured: dict[str, CellTimings]) -> None:
    for each in measured.values():
        if each.cell.cache == "cold" and not each.cell.writes:
            assert each.device_read_nbytes
        if each.cell.cache in ("page-warm", "library-warm"):
            assert each.device_read_nbytes == 0


def test_ratios_are_found(measured: dict[str, CellTimings]) -> None:
    for each in measured.values():
        assert (each.cell.layout.ratio is None) == (each.cell.layout.codec is None)
        if each.cell.layout.ratio is not None:
            assert 1 < each.cell.layout.ratio < 20


def test_json_and_back(measured: dict[str, CellTimings]) -> None:
    for each in measured.values():
        assert CellTimings.from_dict(json.loads(json.dumps(each.to_dict()))) == each


def test_repeats_and_their_interval(tmp_path: Path) -> None:
    cells = [cell(Hdf5(), "page-warm"), cell(Hdf5(), "page-warm", "columns")]
    for each in measure(cells, tmp_path, StopRule(2, 6)):
        assert len(each.passes) == 6
        assert each.interval is not None
        assert each.interval[0] <= each.median_seconds <= each.interval[1]
    for each in measure(cells, tmp_path, StopRule(2, 6, most_seconds=0)):
        assert len(each.passes) == 2


def test_a_cache_that_holds_everything() -> None:
    warm = cell(Hdf5(), "library-warm").opened
    assert isinstance(warm, Hdf5)
    assert warm.chunk_cache_nbytes >= 400 * 30 * 4
    assert cell(Hdf5(), "cold").opened == Hdf5()


@pytest.mark.parametrize(
    ("impossible", "reason"),
    [
        (cell(PaperHdf5(), "cold"), "algorithm"),
        (cell(HyperslabEngine(), "cold", operation="write"), "only reads"),
        (cell(HyperslabEngine(), "library-warm"), "library-warm is only for"),
        (cell(Hdf5(), "library-warm", operation="write"), "library-warm is only for"),
        (cell(Hdf5(), "new"), "nothing to read"),
        (cell(Hdf5(growing_axis=1), "cold"), "growth"),
        (cell(Hdf5(), "cold", shard_shape=(200, 30)), "no shards"),
        (cell(Hdf5(), "cold", codec="snappy"), "no codec"),
    ],
)
def test_what_cannot_be_measured_is_refused(impossible: ModelCell, reason: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=reason):
        next(measure([impossible], tmp_path, ONCE))
    assert list(tmp_path.iterdir()) == []


def test_the_disk_is_known_beforehand(tmp_path: Path) -> None:
    nbytes = 400 * 30 * 4
    assert disk_nbytes([cell(Hdf5(), "cold"), cell(Hdf5(), "page-warm")]) == nbytes
    assert (
        disk_nbytes([cell(Hdf5(), "cold"), cell(Zarr(), "cold"), cell(Zarr(), "new", operation="write")]) == 3 * nbytes
    )
    workload = Workload.model_validate({"array": {"shape": [10**9, 10**5]}, "accesses": [{"select": "all"}]})
    with pytest.raises(UsageError, match=r"needs 400 TB"):
        next(measure([ModelCell(workload, Layout((10**5, 10)), Hdf5(), "cold")], tmp_path, ONCE))


def test_stopping_early_leaves_nothing(tmp_path: Path) -> None:
    found = measure([cell(Hdf5(), "page-warm"), cell(Hdf5(), "page-warm", chunk_shape=(50, 30))], tmp_path, ONCE)
    next(found)
    assert list(tmp_path.iterdir()) != []
    found.close()
    assert list(tmp_path.iterdir()) == []


def test_a_library_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hyperslab.lab import worker
    from hyperslab.model import measuring

    start = worker._start_deaf_to_ctrl_c

    def start_and_stop(process: Any) -> None:
        start(process)
        os.kill(process.pid, signal.SIGSTOP)

    monkeypatch.setattr(worker, "_start_deaf_to_ctrl_c", start_and_stop)
    monkeypatch.setattr(measuring, "TIMEOUT_SECONDS", 0.0)
    with pytest.raises(HyperslabError, match="no answer"):
        next(measure([cell(Hdf5(), "cold")], tmp_path, ONCE))
    assert list(tmp_path.iterdir()) == []

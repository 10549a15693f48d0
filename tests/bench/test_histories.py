"""Seed 4's study: the edits are what the article says, all contenders end with the same, verdicts follow figures."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hyperslab.bench.histories import trials as history_study
from hyperslab.bench.histories.contenders import HISTORY_FORMATS
from hyperslab.bench.histories.edits import WORKLOADS
from hyperslab.bench.histories.trials import History, Scale
from hyperslab.bench.histories.verdicts import judge
from hyperslab.errors import RunError


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_edits(name: str) -> None:
    workload = WORKLOADS[name]
    arrays: dict[str, np.ndarray] = {}
    lengths = []
    for edits in workload.edits(30):
        for key, edit in edits.items():
            before = arrays.get(key, edit.rows[:0])
            arrays[key] = np.concatenate([before[: edit.first_row], edit.rows])
            assert arrays[key].shape == edit.shape
        lengths.append(len(arrays["val"]))
    assert lengths[0] == workload.rows
    most = abs(workload.appended) + workload.inserted
    assert all(abs(after - before) <= most for before, after in pairwise(lengths))
    assert (lengths[-1] > lengths[0]) == workload.grows
    again = [edit.rows.sum() for edits in workload.edits(5) for edit in edits.values()]
    assert again == [edit.rows.sum() for edits in workload.edits(5) for edit in edits.values()]


@pytest.mark.parametrize("contender", list(HISTORY_FORMATS))
@pytest.mark.parametrize("name", ["large_fraction_changes_sparse", "mostly_appends_dense"])
def test_each_contender(contender: str, name: str, tmp_path: Path) -> None:
    history = history_study.trial(tmp_path, name, contender, 6, 1 << 8, "gzip")
    assert history.status == "ok"
    assert len(history.version_seconds) == 6
    assert len(history.read_latest_seconds) == 20
    assert history.stored_nbytes
    assert history.separate_nbytes
    assert history.read_all_seconds is None
    assert not list(tmp_path.iterdir())
    plain = history_study.trial(tmp_path, name, contender, 3, 1 << 8, "none")
    assert (plain.read_all_seconds is not None) == HISTORY_FORMATS[contender].keeps_versions


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hyperslab.cli import app

    monkeypatch.setitem(history_study.SCALES, "quick", Scale((3, 6), (1 << 12, 1 << 14), (1 << 8,), ("none", "lzf")))
    asked = ["bench", "seed4-histories", "--scale", "quick", "-o", str(tmp_path)]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    assert "S4-03" in done.output
    assert (tmp_path / "sizes.png").stat().st_size > 10_000
    page = (tmp_path / "histories.md").read_text()
    assert "not available" in page  # Zarr has no LZF
    count = len((tmp_path / "histories.jsonl").read_text().splitlines())
    assert isinstance(CliRunner().invoke(app, asked).exception, RunError)
    journal = tmp_path / "histories.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])  # as a kill may leave it: the last trial is done again
    again = CliRunner().invoke(app, [*asked, "--resume", "--json"])
    assert [verdict["id"] for verdict in json.loads(again.stdout)["verdicts"]] == [f"S4-0{n}" for n in range(1, 6)]
    assert len((tmp_path / "histories.jsonl").read_text().splitlines()) == count


def test_a_trial_that_fails_stops_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def add(*_: object) -> None:
        raise ValueError("no such thing")

    monkeypatch.setattr(HISTORY_FORMATS["h5py, unversioned"], "add", add)
    found = history_study.trial(tmp_path, "mostly_appends_dense", "h5py, unversioned", 3, 256, "none")
    assert found.status == "failed: ValueError: no such thing"
    assert not list(tmp_path.iterdir())


def test_verdicts() -> None:
    def made(contender: str, count: int, seconds: float, nbytes: int, latest: float, chunk: int = 1 << 12) -> History:
        name = "large_fraction_constant_sparse"
        took = (seconds,) * count
        return History(
            name, contender, count, chunk, "none", "ok", nbytes, 100 * count, took, (latest,), seconds * count
        )

    histories = [
        made("versioned-hdf5", 10, 0.007, 400, 0.02),
        made("versioned-hdf5", 100, 0.007, 4000, 0.02),
        made("h5py, unversioned", 100, 0.001, 100, 0.001),
    ]
    words = {verdict.id: verdict.verdict for verdict in judge(histories)}
    assert words == {"S4-01": "holds", "S4-02": "holds", "S4-03": "reverses", "S4-04": "holds", "S4-05": "undecided"}
    assert {verdict.verdict for verdict in judge([])} == {"undecided"}

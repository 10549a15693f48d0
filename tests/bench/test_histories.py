"""versioned-hdf5's study: edits are as in the article, contenders end with the same arrays, verdicts follow."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from hyperslab.bench.histories.contenders import HISTORY_FORMATS
from hyperslab.bench.histories.edits import EDIT_PATTERNS
from hyperslab.bench.histories.trials import JOURNAL, History, MakeHistory, load_histories, make
from hyperslab.bench.histories.verdicts import judge
from hyperslab.cli import app
from hyperslab.errors import StudyError, UsageError
from hyperslab.lab.worker import Workbench, _told
from hyperslab.report import histories as histories_page

pytestmark = pytest.mark.usefixtures("prepared_workers")


@pytest.mark.parametrize("name", list(EDIT_PATTERNS))
def test_edits(name: str) -> None:
    workload = EDIT_PATTERNS[name]
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


class InProcess:
    """Workers in this process, so that a test can patch a contender."""

    def worker(self, _: str) -> InProcess:
        return self

    def ask(self, task: MakeHistory, timeout_seconds: float) -> History:
        assert timeout_seconds >= 60
        try:
            return task.run(Workbench())
        except Exception as error:
            raise _told(error) from error


def made(folder: Path, *history: Any) -> History:
    return make(History(*history), InProcess(), folder, 60)


@pytest.mark.parametrize("contender", list(HISTORY_FORMATS))
@pytest.mark.parametrize("name", ["large_fraction_changes_sparse", "mostly_appends_dense"])
def test_each_contender(contender: str, name: str, tmp_path: Path) -> None:
    history = made(tmp_path, name, contender, 6, 1 << 8, "gzip")
    assert history.status == "ok"
    assert len(history.version_seconds) == 6
    assert len(history.read_latest_seconds) == 20
    assert history.stored_nbytes
    assert history.separate_nbytes
    assert history.read_all_seconds is None
    assert not list(tmp_path.iterdir())
    plain = made(tmp_path, name, contender, 3, 1 << 8, "none")
    assert (plain.read_all_seconds is not None) == HISTORY_FORMATS[contender].keeps_versions


@pytest.fixture
def few_panels(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """When called, figures get panels for the edits of the study alone: all of them take seconds to draw."""
    few = {name: EDIT_PATTERNS[name] for name in EDIT_PATTERNS if name.startswith("mostly_appends")}
    return lambda: monkeypatch.setattr(histories_page, "EDIT_PATTERNS", few)


STUDY = """
kind: histories
counts: [3, 6]
chunk_lengths: [4096]
dense_chunk_lengths: [256]
conditions: [none, lzf]
edits: [mostly_appends_sparse, mostly_appends_dense]
scales: {quick: {counts: [3]}}
"""


@pytest.mark.slow
def test_the_command(tmp_path: Path, few_panels: Callable[[], None]) -> None:
    study, output = tmp_path / "few.yaml", tmp_path / "run"
    study.write_text(STUDY)
    asked = ["bench", str(study), "-o", str(output), "--scale", "quick", "--conditions", "lzf"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    assert " decided: " in done.output
    assert (output / "sizes.png").stat().st_size > 10_000
    few_panels()
    page = (output / "histories.md").read_text()
    assert "not available" in page  # Zarr has no LZF
    journal = output / JOURNAL
    count = len(journal.read_text().splitlines())
    assert count == (1 * 1 * 1 * 1 + 1 * 1) * 5
    assert isinstance(CliRunner().invoke(app, asked).exception, UsageError)
    journal.write_bytes(journal.read_bytes()[:-20])  # as a kill may leave it: the last trial is repeated
    again = CliRunner().invoke(app, ["bench", "-o", str(output), "--resume", "--json"])
    assert [verdict["id"] for verdict in json.loads(again.stdout)["verdicts"]] == [f"S4-0{n}" for n in range(1, 6)]
    assert len(journal.read_text().splitlines()) == count
    assert CliRunner().invoke(app, ["report", str(output)]).exit_code == 0


def test_every_option_counts(tmp_path: Path, few_panels: Callable[[], None]) -> None:
    few_panels()
    study, output, scratch = tmp_path / "few.yaml", tmp_path / "run", tmp_path / "scratch"
    study.write_text(STUDY)
    scratch.mkdir()
    only = ["--formats", "hyperslab-not-synced,h5py-unversioned", "--conditions", "none", "--cache", "warm"]
    asked = [
        "bench",
        str(study),
        "-o",
        str(output),
        "--scale",
        "quick",
        "--scratch",
        str(scratch),
        "--seed",
        "5",
        *only,
    ]
    done = CliRunner().invoke(app, [*asked, "--trials", "2", "--timeout", "60", "--json"])
    assert done.exit_code == 0, done.output
    found = Counter((one.workload, one.format, one.chunk_length) for one in load_histories(output))
    assert set(found.values()) == {2}
    assert len(found) == (1 * 1 + 1) * 2
    assert {one.count for one in load_histories(output)} == {3}
    assert json.loads((output / "run.json").read_text())["seed"] == 5
    assert not list(scratch.iterdir())


@pytest.mark.parametrize(
    ("option", "what"),
    [
        (["--data", "f.nc:x"], "has its own files"),
        (["--formats", "zarr3"], "has no format 'zarr3'"),
        (["--conditions", "snappy"], "has no conditions 'snappy'"),
        (["--cache", "cold"], "reads warm files only"),
        (["--method", "published"], "nothing has a published method"),
    ],
)
def test_what_is_refused(option: list[str], what: str, tmp_path: Path) -> None:
    error = CliRunner().invoke(app, ["bench", "versioned-histories", "-o", str(tmp_path), *option]).exception
    assert isinstance(error, UsageError)
    assert what in str(error)


def test_a_run_of_an_earlier_hyperslab_is_refused_by_name(tmp_path: Path) -> None:
    line = {"workload": "mostly_appends_dense", "format": "hyperslab", "count": 3, "chunk_length": 256}
    line |= {"compression": "none", "status": "wrong", "version_seconds": [], "read_latest_seconds": []}
    (tmp_path / JOURNAL).write_text(json.dumps(line) + "\n")
    for more, what in ((["--resume"], "an earlier version of hyperslab"), ([], "already holds a run")):
        error = CliRunner().invoke(app, ["bench", "versioned-histories", "-o", str(tmp_path), *more]).exception
        assert isinstance(error, UsageError)
        assert what in str(error)


def test_the_study_is_shown() -> None:
    shown = CliRunner().invoke(app, ["studies", "versioned-histories"])
    (case,) = json.loads(shown.stdout)
    assert case["counts"] == [50, 100, 500, 1000, 5000]
    assert set(case["formats"]) == set(HISTORY_FORMATS)
    assert "versioned-histories" in CliRunner().invoke(app, ["studies", "--json"]).stdout


def test_a_study_that_is_wrong_is_said(tmp_path: Path) -> None:
    study = tmp_path / "few.yaml"
    for wrong, what in (("[0]", "counts.0"), ("[1]\nconditions: [snappy]", "unknown conditions 'snappy'")):
        study.write_text(f"kind: histories\nchunk_lengths: [9]\ndense_chunk_lengths: [9]\ncounts: {wrong}\n")
        error = CliRunner().invoke(app, ["bench", str(study), "-o", str(tmp_path / "run")]).exception
        assert isinstance(error, StudyError)
        assert what in str(error)


def test_a_trial_that_fails_stops_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def add(*_: object) -> None:
        raise ValueError("no such thing")

    monkeypatch.setattr(HISTORY_FORMATS["h5py, unversioned"], "add", add)
    found = made(tmp_path, "mostly_appends_dense", "h5py, unversioned", 3, 256, "none")
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

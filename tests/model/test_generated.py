"""`hyperslab evaluate --generated`: measured for real at a tiny scale, and judged correctly when the truth is known."""

from __future__ import annotations

import csv
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_up import made_up_store_profile, with_codecs
from test_evaluation import imagined
from test_generated_scores import by_hand, rows_of_table
from typer.testing import CliRunner

from hyperslab.cli import app
from hyperslab.errors import RunError, UsageError
from hyperslab.lab.rounds import MOST_REJECTED
from hyperslab.model.baselines import PAPERS_ALGORITHM
from hyperslab.model.generated import session
from hyperslab.model.generated.drawing import TINY, draw
from hyperslab.model.generated.log import COLUMNS, append_row
from hyperslab.model.generated.session import JOURNAL_FILE, Request, judged, run_generated
from hyperslab.model.libraries import Hdf5, Zarr
from hyperslab.model.terms import EXTENDED

pytestmark = pytest.mark.usefixtures("prepared_workers")

runner = CliRunner()
NAMED = ("workloads", "cells", "library_accuracy", "layout_accuracy", "rmse_log10", "coverage", "zarr_recall",
         "regret_median", "regret_p95", "regret_worst", "ties", "seconds")  # fmt: skip


@pytest.fixture(scope="module")
def profile_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made_up") / "profile.json"
    with_codecs(made_up_store_profile(path.parent), "deflate", "zstd").save(path)
    return path


@pytest.fixture(scope="module")
def evaluated(profile_path: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A whole evaluation of three tiny workloads, with its output and its JSON."""
    pytest.importorskip("zarr", reason="not installed: pip install 'hyperslab[formats]'")
    output = tmp_path_factory.mktemp("evaluated")
    asked = ["evaluate", "--generated", "3", "--seed", "5", "--tiny", "--json", "--profile", str(profile_path)]
    done = runner.invoke(app, [*asked, "-o", str(output), "--log", str(output / "log.csv")])
    assert done.exit_code == 0, done.output
    return output, json.loads(done.stdout)


def test_the_numbers_are_those_of_the_cells(evaluated: tuple[Path, dict[str, Any]]) -> None:
    output, document = evaluated
    generated = document["generated"]
    assert set(NAMED) <= set(generated)
    rows = rows_of_table(output / "generated-outcomes.csv", EXTENDED.name)
    assert len(rows) == generated["cells"]
    for row in rows:  # a busy machine has passes rejected, and such a cell has no interval
        assert int(row["passes"]) == 6 or int(row["passes"]) + int(row["rejected"]) == 6 + MOST_REJECTED
        assert (row["low"] is None) == (row["high"] is None) == (int(row["passes"]) < 6)
    for name, expected in by_hand(rows).items():
        assert generated[name] == (None if expected is None else pytest.approx(expected, rel=1e-3)), name
    assert json.loads((output / "generated.json").read_text()) == document
    assert not list(output.glob(".hyperslab-scratch-*"))
    assert {"nearest neighbour", "median of training", "paper"} <= set(generated["models"])
    assert ("measured again" in generated["models"]) == all(int(row["passes"]) > 1 for row in rows)
    assert sum(generated["constant_library"].values()) == pytest.approx(1) or not generated["constant_library"]


def test_the_log_has_the_scores_and_their_commit(evaluated: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    output, document = evaluated
    with (output / "log.csv").open() as stream:
        (row,) = list(csv.DictReader(stream))
    for name in NAMED:
        value = document["generated"][name]
        assert row[name] == "" if value is None else float(row[name]) == pytest.approx(value, rel=1e-4)
    assert (row["seed"], row["asked"]) == ("5", "3")
    assert row["commit"]
    assert str(Path.home()) not in (output / "log.csv").read_text()
    environment = session.observe(output, [])
    path = tmp_path / "log.csv"
    for _ in range(2):
        append_row(path, document["generated"], environment)
    lines = path.read_text().splitlines()
    assert lines[0] == ",".join(COLUMNS)
    assert len(lines) == 3
    path.write_text("a,b\n1,2\n")
    with pytest.raises(UsageError, match="other columns"):
        append_row(path, document["generated"], environment)
    assert path.read_text() == "a,b\n1,2\n"


def test_again_judges_the_same_measurements(evaluated: tuple[Path, dict[str, Any]], profile_path: Path) -> None:
    output, document = evaluated
    asked = ["evaluate", "--generated", "3", "--tiny", "--profile", str(profile_path), "-o", str(output), "--again"]
    again = runner.invoke(app, [*asked, "--seed", "5", "--json"])
    assert json.loads(again.stdout) == document
    shown = runner.invoke(app, [*asked, "--seed", "5"])
    for word in ("nearest", "neighbour", "formulas", "too close to call"):  # a narrow column breaks lines
        assert word in shown.stdout
    assert ("always hdf5" in shown.stdout) == bool(
        document["generated"]["constant_library"]
    )  # it needs a pair that parts
    other = runner.invoke(app, [*asked, "--seed", "6"])
    assert isinstance(other.exception, UsageError)
    assert "--generated 3 --seed 5" in str(other.exception)


def test_what_is_known_is_predicted(tmp_path: Path) -> None:
    pytest.importorskip("zarr", reason="not installed: pip install 'hyperslab[formats]'")
    drawn = draw(22, 2, replace(TINY, array_nbytes=(1e5, 1e6)))
    planned = [each.candidates((Hdf5(), Zarr())) for each in drawn]
    cells = [candidate.cell for each in planned for candidate in each]
    alone = [cell for cell in cells if len({access.operation for access in cell.workload.accesses}) == 1]
    measured, profile = imagined(alone, tmp_path)
    _, outcomes, _, scores, constant, *_ = judged(drawn, planned, measured, profile)
    ours = scores[EXTENDED.name]
    assert ours.cells == len(outcomes) == len(alone)
    assert ours.rmse_log10 < 0.1
    assert ours.library_accuracy is not None
    assert ours.library_accuracy > 0.9
    assert ours.coverage is not None
    assert ours.coverage > 0.9
    assert scores[PAPERS_ALGORITHM].rmse_log10 > ours.rmse_log10
    assert scores["measured again"].rmse_log10 == 0
    assert sum(constant.values()) == pytest.approx(1)


def test_an_interrupted_evaluation_continues(
    profile_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("zarr", reason="not installed: pip install 'hyperslab[formats]'")
    asked = Request(2, 9, tmp_path / "out", tmp_path / "scratch", replace(TINY, array_nbytes=(2e4, 3e4)))
    real, made = session.measure, []

    def measure(cells: Any, *rest: Any, **options: Any) -> Any:
        made.append(len(cells))
        if len(made) == 2:
            raise KeyboardInterrupt
        return real(cells, *rest, **options)

    monkeypatch.setattr(session, "measure", measure)
    with pytest.raises(KeyboardInterrupt):
        run_generated(profile_path, asked, say=lambda _: None)
    assert not list((tmp_path / "scratch").iterdir())
    assert (asked.output / JOURNAL_FILE).exists()
    with pytest.raises(UsageError, match="an evaluation that was interrupted"):
        run_generated(profile_path, asked, say=lambda _: None)
    found = run_generated(profile_path, replace(asked, resume=True), say=lambda _: None)
    assert len(made) == 3, "the first workload was not measured again"
    assert found.scores[EXTENDED.name].workloads == 2
    assert not (asked.output / JOURNAL_FILE).exists()


def test_it_ends_after_its_minutes(profile_path: Path, tmp_path: Path) -> None:
    said: list[str] = []
    with pytest.raises(RunError, match="no workload was measured"):
        run_generated(profile_path, Request(2, 9, tmp_path, tmp_path, TINY, minutes=0), say=said.append)
    assert any("stopped after 0 of 2 workloads" in one for one in said)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--seed", "1"], "need --generated"),
        (["--log", "x.csv"], "need --generated"),
        (["--generated", "2"], "needs --seed"),
        (["--generated", "2", "--seed", "1", "--full"], "leave them out"),
        (["--generated", "2", "--seed", "1", "--resume", "--again"], "exclude each other"),
        (["--generated", "2", "--seed", "1", "--log", os.devnull + "/x/y.csv"], "cannot be a log"),
    ],
)
def test_options_that_do_not_go_together(options: list[str], what: str, profile_path: Path, tmp_path: Path) -> None:
    done = runner.invoke(app, ["evaluate", *options, "--profile", str(profile_path), "-o", str(tmp_path / "o")])
    assert isinstance(done.exception, UsageError)
    assert what in str(done.exception)
    assert not (tmp_path / "o").exists()


def test_the_log_of_our_machine_can_be_continued() -> None:
    path = Path(__file__).parents[2] / "docs" / "results" / "evaluations.csv"
    with path.open() as stream:
        rows = list(csv.DictReader(stream))
    assert path.read_text().splitlines()[0] == ",".join(COLUMNS)
    assert all(row["commit"] and row["seed"] and row["date"] for row in rows)

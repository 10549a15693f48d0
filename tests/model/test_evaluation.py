"""An evaluation: measured once at a tiny scale, and judged correctly when the truth is known."""

from __future__ import annotations

import csv
import json
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from hyperslab.cli import app
from hyperslab.errors import UsageError
from hyperslab.lab.environment import observe
from hyperslab.model.calibrating import observation_of
from hyperslab.model.evaluation import Evaluation, evaluate, measured_again
from hyperslab.model.evaluation_session import run_evaluation
from hyperslab.model.fit import fit
from hyperslab.model.measuring import CellTimings
from hyperslab.model.paper_experiments import SCALES, arrays, candidates
from hyperslab.model.store_profile import StoreProfile, caches_of
from hyperslab.model.takeaways import judge
from hyperslab.model.terms import EXTENDED, EXTENSIONS
from hyperslab.model.workload import Workload

pytestmark = pytest.mark.usefixtures("prepared_workers")
ROOT = Path(__file__).parents[2]
# Seconds per unit of a variable, as on a typical machine.
TRUTH = {
    "hdf5": {"n_array": 1e-3, "n_memcpy": 4e-8, "s_memcpy": 1e-10, "n_cache": 1e-5, "s_cache": 3e-10, "s_rdisk": 1e-9},
    "zarr": {"n_array": 4e-3, "n_memcpy": 3e-9, "s_memcpy": 3e-10, "n_chunk": 5e-4, "s_cache": 3e-10, "s_rdisk": 2e-9},
}
WRITING = {"n_wdisk": 2e-4, "s_wdisk": 1e-9}
# Like the full evaluation, with arrays that take no time to make up.
IMAGINED = replace(
    SCALES["full"], divisor=256, chunk_rows=4, extensions=(4,), row_count=3, box_count=3, vorpal_divisor=10
)
KEYS = {"experiments", "fastest_accuracy", "rmse_log10", "rank_correlation", "regret_median", "regret_worst"}


def imagined(task_cells: list[Any], directory: Path) -> tuple[list[CellTimings], StoreProfile]:
    """Cells that took as long as TRUTH says, and a store profile trained on exactly these cells."""
    environment = observe(directory, ["hdf5", "zarr3"])
    measured = []
    for cell in task_cells:
        blank = CellTimings(cell, ({"access": 1.0},) * 6)
        variables = observation_of(blank, caches_of(environment)).variables._asdict()
        costs = {**TRUTH[cell.library.name], **WRITING}
        seconds = sum(variables[name] * cost for name, cost in costs.items()) + 1e-5
        measured.append(replace(blank, passes=({"access": seconds},) * 6))
    cells = tuple(observation_of(found, caches_of(environment)) for found in measured)
    trained = dict.fromkeys((cell.library, cell.operation) for cell in cells)
    fits = tuple(fit(cells, *each, EXTENDED) for each in trained)
    return measured, StoreProfile(environment, "imagined", "2026-11-22T00:00:00+00:00", "tiny", "0", cells, fits)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[CellTimings], StoreProfile]:
    pytest.importorskip("zarr", reason="not installed: pip install 'hyperslab[formats]'")
    return imagined([candidate.cell for candidate in candidates(IMAGINED)], tmp_path_factory.mktemp("here"))


@pytest.fixture(scope="module")
def profile(made: tuple[list[CellTimings], StoreProfile]) -> StoreProfile:
    return made[1]


@pytest.fixture(scope="module")
def known(made: tuple[list[CellTimings], StoreProfile]) -> Evaluation:
    return evaluate(list(candidates(IMAGINED)), *made)


@pytest.mark.slow
def test_what_is_known_is_predicted(known: Evaluation) -> None:
    ours = known.models[EXTENDED.name]
    assert ours.fastest_accuracy is not None
    assert ours.fastest_accuracy >= 0.97
    assert ours.rmse_log10 < 0.05
    assert ours.regret_worst is not None
    assert ours.regret_worst < 0.05
    for name, baseline in known.baselines.items():
        if name != "nearest neighbour":  # it was trained on these cells, so the nearest cell is the cell itself
            assert baseline.rmse_log10 > ours.rmse_log10, name
    assert known.skipped == {}
    assert set(known.ablations) == set(EXTENSIONS)
    assert known.extrapolating == 0


def test_what_an_extension_is_worth_is_lost_without_it(known: Evaluation) -> None:
    assert known.ablations["per_chunk"].rmse_log10 > known.models[EXTENDED.name].rmse_log10


def test_phases_are_isolated(known: Evaluation) -> None:
    found = known.phase_summary()
    assert set(found) == {"memory", "cache", "device"}
    for said in found.values():
        assert 0 < said["largest_share"] <= 1
        assert said["median_error"] < 0.05


def test_takeaways(known: Evaluation) -> None:
    verdicts = {verdict.id: verdict for verdict in judge(known)}
    assert list(verdicts) == ["S1-i", "S1-ii", "S1-iii", "S1-iv"]
    assert verdicts["S1-iii"].verdict == "undecided"
    assert verdicts["S1-iv"].verdict == "holds"
    without_phases = judge(replace(known, phases=()))
    assert without_phases[0].verdict == "undecided"


def test_naming_one_library_always(known: Evaluation) -> None:
    shares = known.always_one()
    assert set(shares) == {"hdf5", "zarr"}
    assert sum(shares.values()) == pytest.approx(1)


def test_measuring_again_says_what_no_model_can_know(known: Evaluation) -> None:
    planned = list(candidates(IMAGINED))[:2]
    passes = ({"access": 1.0}, {"access": 2.0}, {"access": 1.0}, {"access": 2.0})
    blank = [CellTimings(candidate.cell, passes) for candidate in planned]
    found = measured_again(planned, blank)
    assert found is not None
    assert found.rmse_log10 == pytest.approx(np.log10(2))
    assert measured_again(planned, [replace(each, passes=each.passes[:1]) for each in blank]) is None
    assert known.measured_again is not None
    assert known.measured_again.rmse_log10 == 0


def test_held_out_figures(known: Evaluation) -> None:
    assert set(known.held_out) == {"layout", "pattern"}
    assert all(error < 0.3 for error in known.held_out.values())


def test_the_paper_is_scaled_and_says_how() -> None:
    for scale in SCALES.values():
        for array in arrays(scale):
            assert "published" in array.note or " of " in array.note
            for chunk in array.chunk_shapes.values():
                assert all(part <= length for part, length in zip(chunk, array.shape, strict=True))
                whole = zip(chunk, array.shape, strict=True)
                assert all(length % part == 0 for part, length in whole)  # nothing is padded
    full = [candidate.question for candidate in candidates(SCALES["full"])]
    assert len(set(full)) == 16 + 11
    assert len(full) == 2 * (7 * 16 + 3 * 11)


def test_the_page_says_a_workload() -> None:
    text = (ROOT / "docs" / "cost-model.md").read_text()
    workload = Workload.model_validate(yaml.safe_load(text.split("```yaml\n")[1].split("```")[0]))
    assert len(workload.steps()) == 1005


@pytest.mark.slow
def test_a_tiny_evaluation_for_real(profile: StoreProfile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="not installed: pip install 'hyperslab[report]'")
    monkeypatch.setitem(SCALES, "tiny", replace(SCALES["tiny"], caches=("cold",)))  # half as many cells
    profile.save(tmp_path / "p.json")
    output = tmp_path / "out"
    asked = ["evaluate", "--tiny", "--profile", str(tmp_path / "p.json"), "--json", "-o", str(output)]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.stderr
    serial = json.loads(done.stdout)["serial"]
    assert set(serial) >= KEYS
    assert serial["experiments"] == len(list(candidates(SCALES["tiny"]))) // 2
    for others in ("baselines", "ablations", "models"):
        assert serial[others]
        for found in serial[others].values():
            assert set(found) >= KEYS
    baselines = {"paper's algorithm", "I/O only", "bytes only", "median of training", "nearest neighbour"}
    assert set(serial["baselines"]) == baselines
    assert json.loads((output / "evaluation.json").read_text())["serial"] == serial
    with (output / "outcomes.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == serial["cells"]
    assert all(float(row["seconds"]) > 0 for row in rows)
    figures = {path.name for path in (output / "figures").iterdir()}
    assert {"predicted-measured.svg", "accuracy.svg"} <= figures
    assert {path.name for path in output.iterdir()} == {"evaluation.json", "outcomes.csv", "measured.json", "figures"}
    page = runpy.run_path(str(ROOT / "docs" / "results" / "make.py"))["cost_model"](json.loads(done.stdout))
    assert "| S1-iv |" in page
    again = run_evaluation(tmp_path / "p.json", output, output, "tiny", again=True, say=lambda _: None)
    assert json.loads(json.dumps(again.to_dict()))["serial"] == serial
    with pytest.raises(UsageError, match="no measurements"):
        run_evaluation(tmp_path / "p.json", tmp_path / "x", tmp_path, "tiny", again=True, say=lambda _: None)
    with pytest.raises(UsageError, match="of scale tiny"):
        run_evaluation(tmp_path / "p.json", output, output, "full", again=True, say=lambda _: None)

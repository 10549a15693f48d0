"""Comparing two runs: unlike runs are refused, and a difference counts only if the interval of the ratio says so."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from hyperslab.bench.compare import compare
from hyperslab.bench.records import Trial
from hyperslab.bench.results import Run
from hyperslab.errors import UsageError
from hyperslab.report.terminal import comparison_text, print_comparison


def _slower(run: Run, directory: Path, factor: float) -> Run:
    """The same run, on a machine where hdf5 takes `factor` times as long."""
    trials = []
    for trial in run.trials:
        names = [f.name for f in fields(trial) if f.name.endswith("_seconds")]
        timed = {n: v * factor for n in names if (v := getattr(trial, n)) is not None}
        trials.append(replace(trial, **timed) if trial.format == "hdf5" else trial)
    return _with(run, directory, trials)


def _with(run: Run, directory: Path, trials: list[Trial]) -> Run:
    """The run with other trials. Its summaries, which take a second, are compared by nobody."""
    return replace(run, directory=directory, trials=trials)


def test_only_what_changed_differs(run: Run, tmp_path: Path):
    comparison = compare(run, _slower(run, tmp_path, 2.0))
    outcomes = {(row.format == "hdf5", row.outcome) for row in comparison.rows}
    assert outcomes == {(True, "slower"), (False, "no difference")}
    row = next(row for row in comparison.rows if row.format == "hdf5")
    assert row.ratio == pytest.approx(2.0)
    assert row.low is not None
    assert row.high is not None
    assert row.low <= row.ratio <= row.high
    assert "null" not in {row.format for row in comparison.rows}


@pytest.mark.slow
def test_faster_is_told_from_slower(run: Run, tmp_path: Path):
    comparison = compare(run, _slower(run, tmp_path, 0.5))
    assert {row.outcome for row in comparison.rows if row.format == "hdf5"} == {"faster"}


def test_unlike_machines_are_refused_with_what_differs_and_the_flag(run: Run, tmp_path: Path):
    environment = replace(run.description.environment, cpu="Another CPU", file_system="xfs")
    other = replace(run, directory=tmp_path, description=replace(run.description, environment=environment))
    with pytest.raises(UsageError) as refused:
        compare(run, other)
    for needed in ("cpu: Test CPU 9000 against Another CPU", "file_system: ext4 against xfs", "--unlike"):
        assert needed in str(refused.value)
    allowed = compare(run, other, allow_unlike=True)
    assert len(allowed.differences) == 2
    assert allowed.rows


def test_unlike_cases_of_one_name_are_refused(run: Run, tmp_path: Path):
    first, *others = run.description.cases
    changed = (first.model_copy(update={"data": "constant"}), *others)
    other = replace(run, directory=tmp_path, description=replace(run.description, cases=changed))
    with pytest.raises(UsageError, match="case common-io-1, data: uniform against constant"):
        compare(run, other)


def test_cells_of_one_run_only_are_counted(run: Run, tmp_path: Path):
    fewer = _with(run, tmp_path, [t for t in run.trials if t.format != "csv"])
    comparison = compare(run, fewer)
    assert comparison.only_a
    assert all("|csv|" in key for key in comparison.only_a)
    assert comparison.only_b == ()


def test_too_few_trials_decide_nothing(run: Run, tmp_path: Path):
    few = _with(run, tmp_path, [t for t in run.trials if t.trial < 2])
    comparison = compare(run, few)
    assert {row.outcome for row in comparison.rows} == {"unknown"}
    assert {row.low for row in comparison.rows} == {None}


def test_the_terminal_shows_ratio_interval_and_outcome(run: Run, tmp_path: Path):
    stream = StringIO()
    print_comparison(compare(run, _slower(run, tmp_path, 2.0)), Console(file=stream, width=220))
    assert "2.00 [" in stream.getvalue()
    assert "slower" in stream.getvalue()
    assert "n = 7" in stream.getvalue()
    assert re.search(r"hdf5: slower in B in \d+ of \d+ cells\.", stream.getvalue())
    assert "no certain change" in stream.getvalue()


def test_a_slower_machine_is_told_from_a_slower_format(run: Run, tmp_path: Path):
    names = [f.name for f in fields(run.trials[0]) if f.name.endswith("_seconds")]
    trials = [
        replace(trial, **{n: v * 1.5 for n in names if (v := getattr(trial, n)) is not None}) for trial in run.trials
    ]
    comparison = compare(run, _with(run, tmp_path, trials))
    assert comparison.drift == pytest.approx(1.5)
    assert "the machine changed" in comparison_text(comparison)
    assert compare(run, _slower(run, tmp_path, 1.5)).drift is None

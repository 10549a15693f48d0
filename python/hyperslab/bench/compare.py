"""Compare two runs cell by cell. The second run is called faster only if the interval of the ratio says so."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hyperslab.bench.rankings import UNRANKED, headline_metric
from hyperslab.bench.records import Row, Trial
from hyperslab.bench.results import Run
from hyperslab.bench.study import Case
from hyperslab.errors import UsageError
from hyperslab.lab.statistics import interval_of_ratio

Outcome = Literal["faster", "slower", "no difference", "unknown"]
# What makes two cases of the same name different. Sizes, operations and cache states are in the cells' keys.
CASE_MUST_AGREE = ("dtype", "data", "data_file", "conditions", "options", "stored_as", "properties", "replay")


@dataclass(frozen=True)
class ComparisonRow(Row):
    """One cell in both runs: the medians of its headline metric, and their ratio b / a."""

    metric: str
    a_seconds: float
    b_seconds: float
    a_n: int
    b_n: int
    ratio: float | None
    low: float | None  # bootstrap 95 % interval of the ratio; None if either run has too few trials
    high: float | None
    outcome: Outcome  # of b; "unknown" without an interval


@dataclass(frozen=True)
class Comparison:
    """The comparison of two runs."""

    differences: tuple[str, ...]  # of machines and cases, if unlike runs were allowed
    rows: tuple[ComparisonRow, ...]
    only_a: tuple[str, ...]  # keys of cells that are not in the other run
    only_b: tuple[str, ...]


def compare(run_a: Run, run_b: Run, allow_unlike: bool = False) -> Comparison:
    """Compare run b with run a. Raises UsageError if machines or cases differ, unless `allow_unlike`."""
    differences = unlike(run_a, run_b)
    if differences and not allow_unlike:
        listed = "; ".join(differences)
        raise UsageError(
            f"{run_a.directory} and {run_b.directory} are unlike: {listed}. Run both on one machine with one study, "
            "or compare them anyway with --unlike"
        )
    a, b = _accepted(run_a), _accepted(run_b)
    rows = [row for key, trials in a.items() if key in b and (row := _row(trials, b[key])) is not None]
    only_a, only_b = (tuple(key for key in one if key not in other) for one, other in ((a, b), (b, a)))
    return Comparison(tuple(differences), tuple(rows), only_a, only_b)


def unlike(run_a: Run, run_b: Run) -> list[str]:
    """What makes two runs unlike, in words: first their machines, then the cases that both have."""
    differences = run_a.description.environment.differences(run_b.description.environment)
    others = {case.name: case for case in run_b.description.cases}
    for case in run_a.description.cases:
        if case.name in others:
            differences += _case_differences(case, others[case.name])
    return differences


def _case_differences(a: Case, b: Case) -> list[str]:
    pairs = [(name, getattr(a, name), getattr(b, name)) for name in CASE_MUST_AGREE]
    return [f"case {a.name}, {name}: {here} against {there}" for name, here, there in pairs if here != there]


def _accepted(run: Run) -> dict[str, list[Trial]]:
    cells: dict[str, list[Trial]] = defaultdict(list)
    for trial in run.trials:
        if trial.status == "ok" and trial.trial >= 0 and trial.format not in UNRANKED:
            cells[trial.cell_key].append(trial)
    return dict(cells)


def _row(a: list[Trial], b: list[Trial]) -> ComparisonRow | None:
    first = a[0]
    metric = headline_metric(first.operation)
    a_values, b_values = _seconds(a, metric), _seconds(b, metric)
    if not a_values or not b_values:
        return None
    a_seconds, b_seconds = float(np.median(a_values)), float(np.median(b_values))
    low, high = interval_of_ratio(a_values, b_values) or (None, None)
    return ComparisonRow(
        **first.columns,
        metric=metric,
        a_seconds=a_seconds,
        b_seconds=b_seconds,
        a_n=len(a_values),
        b_n=len(b_values),
        ratio=b_seconds / a_seconds if a_seconds else None,
        low=low,
        high=high,
        outcome=_outcome(low, high),
    )


def _seconds(trials: list[Trial], metric: str) -> list[float]:
    return [value for trial in trials if (value := trial.metric(metric)) is not None]


def _outcome(low: float | None, high: float | None) -> Outcome:
    if low is None or high is None:
        return "unknown"
    if high < 1:
        return "faster"
    return "slower" if low > 1 else "no difference"

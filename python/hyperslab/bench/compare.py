"""Compare two runs cell by cell, round by round. The second is called faster only if the interval says so."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hyperslab.bench.rankings import UNRANKED, headline_metric, round_of
from hyperslab.bench.records import Row, Trial
from hyperslab.bench.results import Run
from hyperslab.bench.study import Case
from hyperslab.errors import UsageError
from hyperslab.lab.paired import Ratio, Rounds, ratio_of

Outcome = Literal["faster", "slower", "no difference", "unknown"]
# What makes two cases of the same name different. Sizes, operations and cache states are in the cells' keys.
CASE_MUST_AGREE = ("dtype", "data", "data_file", "conditions", "options", "stored_as", "properties", "replay")

# Everything changed alike if the middle of each of so many formats moved by more than this factor, in one direction.
LEAST_FOR_DRIFT, DRIFTED = 3, 1.05


@dataclass(frozen=True)
class ComparisonRow(Row):
    """One cell in both runs: the medians of its headline metric, and their ratio b / a."""

    metric: str
    a_seconds: float
    b_seconds: float
    a_n: int
    b_n: int
    ratio: float | None
    low: float | None  # exact 95 % interval of the ratio; None if the runs have too few rounds
    high: float | None
    outcome: Outcome  # of b; "unknown" without an interval


@dataclass(frozen=True)
class Comparison:
    """The comparison of two runs."""

    differences: tuple[str, ...]  # of machines and cases, if unlike runs were allowed
    rows: tuple[ComparisonRow, ...]
    only_a: tuple[str, ...]  # keys of cells that are not in the other run
    only_b: tuple[str, ...]
    drift: float | None = None  # by how much everything changed alike, which is the machine rather than the formats

    @property
    def formats(self) -> dict[str, dict[Outcome, int]]:
        """How many cells of each format are faster, slower and so on."""
        counts: dict[str, dict[Outcome, int]] = defaultdict(lambda: defaultdict(int))
        for row in self.rows:
            counts[row.format][row.outcome] += 1
        return counts


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
    return Comparison(tuple(differences), tuple(rows), only_a, only_b, _drift(rows))


def _drift(rows: list[ComparisonRow]) -> float | None:
    """The ratio by which all formats changed, if at least three formats were measured and all changed alike."""
    ratios: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row.ratio:
            ratios[row.format].append(row.ratio)
    middles = [float(np.median(own)) for own in ratios.values()]
    if len(middles) < LEAST_FOR_DRIFT:
        return None
    if min(middles) > DRIFTED or max(middles) < 1 / DRIFTED:
        return float(np.median(middles))
    return None


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
    a_rounds, b_rounds = _rounds(a, metric), _rounds(b, metric)
    compared = ratio_of(a_rounds, b_rounds)
    if compared is None:
        return None
    a_seconds, b_seconds = float(np.median(list(a_rounds.values()))), float(np.median(list(b_rounds.values())))
    return ComparisonRow(
        **first.columns,
        metric=metric,
        a_seconds=a_seconds,
        b_seconds=b_seconds,
        a_n=len(a_rounds),
        b_n=len(b_rounds),
        ratio=compared.value,
        low=compared.low,
        high=compared.high,
        outcome=_outcome(compared),
    )


def _rounds(trials: list[Trial], metric: str) -> Rounds:
    """The seconds of each round, counted from the run's first one, so that rounds of two runs can be pairs."""
    seconds = {round_of(trial): value for trial in trials if (value := trial.metric(metric)) is not None}
    return dict(enumerate(seconds[number] for number in sorted(seconds)))


def _outcome(ratio: Ratio) -> Outcome:
    if ratio.low is None:
        return "unknown"
    if ratio.is_below:
        return "faster"
    return "slower" if ratio.is_above else "no difference"

"""Intervals, the stop rule and rankings claim no more than the trials support."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hyperslab.bench.operations import Operation
from hyperslab.bench.rankings import rank, summarise
from hyperslab.bench.records import BOUNDARIES, METRICS, trial_of
from hyperslab.lab.statistics import interval_of_median


def trial(format_name: str, number: int, seconds: float, status: str = "ok"):
    from hyperslab.bench.records import Cell

    cell = Cell("case", "fair", "matched", format_name, Operation(name="read-all"), (10, 10), 2, "warm")
    blank = trial_of(cell, "float32", number, "failed", "")
    return replace(blank, status=status, reason=None, read_seconds=seconds, open_file_seconds=0.001, decoded_nbytes=800)


def trials(format_name: str, values) -> list:
    return [trial(format_name, k, value) for k, value in enumerate(values)]


def test_few_values_have_no_interval() -> None:
    assert interval_of_median([1.0, 2.0, 3.0, 4.0, 5.0]) is None


def test_the_interval_holds_the_median_and_covers_as_often_as_it_says() -> None:
    random = np.random.default_rng(1)
    covered = 0
    for _ in range(300):
        low, high = interval_of_median(random.normal(10, 1, 15))
        covered += low <= 10 <= high
    assert covered / 300 >= 0.90


def test_a_winner_is_named_only_where_intervals_part() -> None:
    clear = trials("raw", [1.0, 1.1, 1.05, 1.0, 1.1, 1.02]) + trials("csv", [9.0, 9.1, 9.2, 9.0, 9.3, 9.1])
    (ranking,) = rank(summarise(clear))
    assert ranking.winner == "raw"
    assert ranking.tied == ()
    close = trials("raw", [1.0, 1.3, 1.1, 1.2, 1.0, 1.3]) + trials("npy", [1.1, 1.2, 1.3, 1.0, 1.2, 1.1])
    (ranking,) = rank(summarise(close))
    assert ranking.winner is None
    assert set(ranking.tied) == {"raw", "npy"}


def test_without_intervals_there_is_no_winner_however_far_apart() -> None:
    (ranking,) = rank(summarise(trials("raw", [1.0] * 3) + trials("csv", [9.0] * 3)))
    assert ranking.winner is None


def test_warm_up_and_rejected_trials_are_in_no_figure() -> None:
    rows = [*trials("raw", [1.0] * 6), trial("raw", -1, 99.0), trial("raw", 7, 99.0, status="rejected")]
    summary = next(s for s in summarise(rows) if s.metric == "read")
    assert summary.median_seconds == 1.0
    assert summary.n == 6
    assert summary.rejected == 1
    assert summary.per_array_seconds == 0.5
    assert summary.throughput_mbps == pytest.approx(800 / 1e6)


def test_what_was_not_timed_stays_unknown() -> None:
    (trial,) = trials("raw", [1.0])
    assert replace(trial, open_file_seconds=None).metric("write_total") is None
    assert replace(trial, read_seconds=1.0, open_file_seconds=0.5).metric("read_total") == 1.5
    assert {s.metric for s in summarise(trials("raw", [1.0]))} == {"open_file", "read", "open_total", "read_total"}


def test_every_metric_is_a_sum_of_phases() -> None:
    for phases in METRICS.values():
        for phase in phases:
            assert phase in BOUNDARIES
            assert hasattr(trials("raw", [1.0])[0], f"{phase}_seconds")

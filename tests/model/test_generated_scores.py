"""Every score of an evaluation on drawn workloads, computed again by the shortest formula that says what it means."""

from __future__ import annotations

import csv
import itertools
import statistics
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hyperslab.model.accuracy import Outcome
from hyperslab.model.generated.scores import always, score


def random_outcomes(seed: int) -> list[Outcome]:
    random = np.random.default_rng(seed)
    found = []
    for question, layout, library in itertools.product("pqrst", "abc", ("hdf5", "zarr")):
        seconds, error, width = 10 ** random.uniform(-3, 0), 10 ** random.normal(0, 0.3), random.uniform(1, 1.8)
        stated = (seconds * error / 1.5, seconds * error * 1.5)
        low, high = seconds / width, seconds * width
        found.append(Outcome(question, layout, library, seconds, low, high, {"m": seconds * error}, stated))
    return found


def by_hand(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Scores from rows with question, layout, library, seconds, low, high, stated_low, stated_high, guess."""
    pairs = [
        (a, b)
        for a, b in itertools.combinations(rows, 2)
        if a["question"] == b["question"] and (a["layout"] == b["layout"]) != (a["library"] == b["library"])
    ]
    libraries = [pair for pair in pairs if pair[0]["layout"] == pair[1]["layout"]]
    layouts = [pair for pair in pairs if pair[0]["library"] == pair[1]["library"]]

    def part(a, b):
        if None in (a["low"], b["low"]):  # a cell with fewer than six passes has no interval
            return False
        return a["high"] < b["low"] or b["high"] < a["low"]

    def right(a, b):
        return (a["seconds"] < b["seconds"]) == (a["guess"] < b["guess"]) and a["guess"] != b["guess"]

    parted = [pair for pair in libraries if part(*pair)]
    zarr = [pair for pair in parted if min(pair, key=lambda row: row["seconds"])["library"] == "zarr"]
    regrets = []
    for _, group in itertools.groupby(sorted(rows, key=lambda row: row["question"]), lambda row: row["question"]):
        mine = list(group)
        chosen = min(mine, key=lambda row: row["guess"])
        regrets.append(chosen["seconds"] / min(row["seconds"] for row in mine) - 1)
    parted_layouts = [pair for pair in layouts if part(*pair)]
    return {
        "workloads": len(regrets),
        "cells": len(rows),
        "library_accuracy": statistics.mean(right(*pair) for pair in parted) if parted else None,
        "layout_accuracy": statistics.mean(right(*pair) for pair in parted_layouts) if parted_layouts else None,
        "zarr_recall": statistics.mean(right(*pair) for pair in zarr) if zarr else None,
        "rmse_log10": statistics.mean(np.log10(row["guess"] / row["seconds"]) ** 2 for row in rows) ** 0.5,
        "coverage": statistics.mean(row["stated_low"] <= row["seconds"] <= row["stated_high"] for row in rows),
        "regret_median": statistics.median(regrets),
        "regret_p95": float(np.quantile(regrets, 0.95)),
        "regret_worst": max(regrets),
        "ties": len(libraries) - len(parted),
        "layout_ties": len(layouts) - len(parted_layouts),
    }


def row_of(one: Outcome) -> dict[str, Any]:
    assert one.stated is not None
    known = {name: getattr(one, name) for name in ("question", "layout", "library", "seconds", "low", "high")}
    return {**known, "stated_low": one.stated[0], "stated_high": one.stated[1], "guess": one.predicted["m"]}


@pytest.mark.parametrize("seed", range(6))
def test_every_score_by_hand(seed: int) -> None:
    outcomes = random_outcomes(seed)
    found = score(outcomes, "m").to_dict()
    for name, expected in by_hand([row_of(one) for one in outcomes]).items():
        assert found[name] == (None if expected is None else pytest.approx(expected)), name
    assert 0 < found["ties"] < 15, "the drawn intervals neither all part nor all overlap"
    low, high = found["intervals"]["library_accuracy"]
    assert low <= found["library_accuracy"] <= high
    assert found["intervals"]["regret_worst"][1] == found["regret_worst"]


def test_cells_with_too_few_passes_for_an_interval_are_scored_too() -> None:
    outcomes = random_outcomes(0)
    outcomes[::5] = [replace(one, low=None, high=None) for one in outcomes[::5]]
    found = score(outcomes, "m").to_dict()
    assert found["ties"] > score(random_outcomes(0), "m").ties
    for name, expected in by_hand([row_of(one) for one in outcomes]).items():
        assert found[name] == (None if expected is None else pytest.approx(expected)), name


def test_a_perfect_model_and_a_constant_one() -> None:
    outcomes = [Outcome("q", layout, library, seconds, seconds * 0.99, seconds * 1.01, {"m": seconds, "c": 1.0})
                for layout, library, seconds in (("a", "hdf5", 1.0), ("a", "zarr", 2.0), ("b", "hdf5", 4.0),
                                                 ("b", "zarr", 3.0))]  # fmt: skip
    perfect, constant = score(outcomes, "m"), score(outcomes, "c")
    assert (perfect.library_accuracy, perfect.layout_accuracy, perfect.zarr_recall) == (1, 1, 1)
    assert (perfect.regret_worst, perfect.rmse_log10, perfect.coverage) == (0, 0, None)
    assert (constant.library_accuracy, constant.layout_accuracy) == (0, 0), "equal predictions name nothing"
    assert always(outcomes, "hdf5") == always(outcomes, "zarr") == 0.5


def test_pairs_without_intervals_are_ties() -> None:
    outcomes = [Outcome("q", "a", library, 1.0, None, None, {"m": 1.0}) for library in ("hdf5", "zarr")]
    found = score(outcomes, "m")
    assert (found.ties, found.library_pairs, found.library_accuracy) == (1, 0, None)


def rows_of_table(path: Any, model: str) -> list[dict[str, Any]]:
    names = ("seconds", "low", "high", "stated_low", "stated_high")
    with path.open() as stream:
        return [
            {**row, **{name: float(row[name]) if row[name] else None for name in names}, "guess": float(row[model])}
            for row in csv.DictReader(stream)
        ]

"""One recommendation for a whole workload: who may be recommended, how sure that is, and what it says."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from hyperslab.bench.operations import Operation
from hyperslab.bench.rankings import rank, summarise
from hyperslab.bench.recommendations import Recommendation, recommend
from hyperslab.bench.records import Cell, Trial, trial_of
from hyperslab.lab.looks import Looks, one_look
from hyperslab.report.answer_words import recommendation_text, short_text

SIX = one_look(6)
# Seconds of a write and a read.
PACE = {"hdf5": (1.0, 1.0), "zarr3": (3.0, 0.8), "csv": (8.0, 20.0), "raw": (0.5, 0.5)}


def trials(pace: dict[str, tuple[float, float]], count: int = 6, spread: float = 0.02) -> list[Trial]:
    random = np.random.default_rng(4)
    made = []
    for number in range(count):
        drift = random.uniform(1, 3)  # a slow minute of the machine slows everybody
        for name, (write, read) in pace.items():
            for operation, seconds in (("write", write), ("read-all", read)):
                cell = Cell("mine", "fair", "matched", name, Operation(name=operation), (64,), 1, "warm")
                took = seconds * drift * random.lognormal(0, spread)
                phase = {"write_seconds": took, "create_file_seconds": 0.0} if operation == "write" else {}
                phase = phase or {"read_seconds": took, "open_file_seconds": 0.0}
                blank = trial_of(cell, "float32", number, "failed", "")
                made.append(replace(blank, status="ok", reason=None, round=number, decoded_nbytes=256, **phase))
    return made


def recommended(made: list[Trial], looks: Looks = SIX) -> Recommendation:
    (found,) = recommend(rank(summarise(made), looks), looks)
    return found


def test_the_best_over_all_operations_is_recommended_although_another_reads_faster() -> None:
    found = recommended(trials(PACE))
    assert found.recommended == ("hdf5", "matched")
    assert found.confidence == "clear"
    assert found.floor == pytest.approx(0.5, rel=0.1)
    assert found.judged.entries[1].ratio == pytest.approx((3 * 0.8) ** 0.5, rel=0.1)
    text = recommendation_text(found)
    assert text.startswith(
        "Use hdf5 for these 2 operations, each of which counts the same. This is clear (95 %, 6 rounds)"
    )
    assert "Avoid csv, 12" in text
    assert short_text(found).startswith("use hdf5: it is certainly the fastest, and the next best takes 1.5")


def test_bare_bytes_are_the_floor_and_never_recommended() -> None:
    assert "raw" not in {name for name, _ in recommended(trials(PACE)).candidates}
    assert recommend(rank(summarise(trials({"raw": (1.0, 1.0)})))) == []


def test_equals_share_the_recommendation() -> None:
    found = recommended(trials({"hdf5": (1.0, 1.0), "netcdf4": (1.0, 1.0), "csv": (9.0, 9.0)}, spread=0.004))
    assert found.confidence == "shared"
    assert "does as well: within 5 % of its time" in recommendation_text(found)


def test_a_close_race_says_what_it_would_take_and_whether_it_was_given_up() -> None:
    found = recommended(trials({"hdf5": (1.0, 1.0), "netcdf4": (1.03, 1.03)}, spread=0.15))
    assert found.confidence == "open"
    text = recommendation_text(found)
    assert "likely, but not certain after 6 rounds" in text
    assert "--until-decided" in text or "More than 50 rounds" in text
    assert "given up" in recommendation_text(found, until_decided=True)


def test_few_rounds_are_a_first_impression() -> None:
    found = recommended(trials(PACE, count=3), one_look(3))
    assert found.confidence == "first impression"
    assert "first impression from 3 rounds" in recommendation_text(found)
    assert "one time in 4" in recommendation_text(found)


def test_a_candidate_that_cannot_do_every_operation_is_left_out() -> None:
    made = [t for t in trials(PACE) if (t.format, t.operation) != ("csv", "write")]
    found = recommended(made)
    assert found.left_out == ("csv",)
    assert "csv" not in {name for name, _ in found.candidates}


def test_a_candidate_that_stopped_early_in_one_operation_still_has_its_place() -> None:
    made = [t for t in trials(PACE) if not (t.format == "csv" and t.operation == "read-all" and t.trial >= 3)]
    found = recommended(made)
    assert found.recommended == ("hdf5", "matched")
    assert found.judged.avoided[0].name.startswith("csv|")


def test_a_candidate_that_stopped_early_in_every_operation_is_to_be_avoided() -> None:
    """It was said that it may be as fast, an unknown multiple as long."""
    made = [trial for trial in trials(PACE) if trial.format != "csv" or trial.trial < 3]
    found = recommended(made, Looks(6, 50))
    assert found.confidence == "clear"
    assert "Avoid csv" in recommendation_text(found)
    assert "unknown" not in recommendation_text(found)


def test_one_candidate_alone_is_said_to_be_alone() -> None:
    found = recommended(trials({"hdf5": (1.0, 1.0)}))
    assert found.confidence == "alone"
    assert "nothing to compare it with" in recommendation_text(found)


def test_the_readers_name_belongs_to_the_format() -> None:
    found = recommended(trials({"hyperslab": (1.0, 1.0), "csv": (9.0, 9.0)}))
    assert recommendation_text(found).startswith("Use hdf5, read by hyperslab, for these 2 operations")


def test_a_candidate_with_rejected_trials_that_stopped_early_is_to_be_avoided_by_its_factor() -> None:
    """Its operations had two rounds in common: it was said that it may be as fast, an unknown multiple as long."""
    kept = {"write": (0, 1, 3), "read-all": (0, 2, 3)}
    made = [t for t in trials(PACE) if t.format != "csv" or t.trial in kept[t.operation]]
    found = recommended(made, Looks(6, 50))
    assert found.confidence == "clear"
    text = recommendation_text(found)
    assert "Avoid csv, 14" in text
    assert "unknown" not in text
    few = recommended([t for t in made if t.trial < 4 or t.format == "csv"], Looks(6, 50))
    assert few.judged.avoided[0].name.startswith("csv|")
    assert "csv may be" not in recommendation_text(few)


def test_a_rival_without_an_interval_is_told_by_its_factor() -> None:
    pace = {"hdf5": (1.0, 1.0), "netcdf4": (1.01, 1.01), "zarr3": (1.6, 1.6)}
    made = [t for t in trials(pace, spread=0.1) if t.format != "zarr3" or t.trial < 2]
    found = recommended(made, Looks(6, 50))
    text = recommendation_text(found)
    assert "hdf5 and zarr3 may be as fast (0." in text
    assert "times as long, by too few rounds)" in text
    assert found.rounds == 6


def test_an_interrupted_run_calls_nothing_as_fast_that_took_many_times_as_long() -> None:
    """Stopped in the third round, before CSV's turn: others “may be as fast”, though 80 times as long."""
    pace = {"hdf5": (1.0, 1.0), "netcdf4": (1.2, 1.2), "zarr3": (80.0, 80.0), "csv": (90.0, 90.0)}
    found = recommended([t for t in trials(pace, count=3) if t.format != "csv" or t.trial < 2], Looks(6, 50))
    assert found.confidence == "first impression"
    text = recommendation_text(found)
    assert "first impression from 3 rounds" in text
    assert re.search(r"Avoid csv, \d+ times as long", text), "of a slow minute in which it did not run, too"
    assert "may be as fast" not in text
    near = trials({"hdf5": (1.0, 1.0), "netcdf4": (1.02, 1.02), "zarr3": (80.0, 80.0)}, spread=0.1)
    text = recommendation_text(recommended([t for t in near if t.format != "zarr3" or t.trial < 1], Looks(6, 50)))
    assert re.search(r": (netcdf4|hdf5) may be as fast", text), text

"""Evaluate a store profile: replay the paper's experiments, predict each of them, and judge every model the same way.

Our model is compared with the baselines of `baselines.py`. It is also fitted again without each of its extensions: an
extension is worth what the fit loses without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hyperslab.errors import TooFewCells
from hyperslab.model.accuracy import Accuracy, Outcome, accuracy, experiments
from hyperslab.model.baselines import (
    LEAST_SECONDS,
    MEDIAN_OF_TRAINING,
    NEAREST,
    PAPERS_ALGORITHM,
    predicted_by_each,
)
from hyperslab.model.costs import Cost, price
from hyperslab.model.fit import Observation, fit
from hyperslab.model.measuring import CellTimings
from hyperslab.model.paper_experiments import Candidate
from hyperslab.model.predict import predict_cell
from hyperslab.model.store_profile import StoreProfile
from hyperslab.model.terms import BASELINES, EXTENDED, EXTENSIONS, PAPER, Model

MEASURED_AGAIN = "measured again"
# The difference between two of these cache states isolates one phase of a read.
ISOLATED: dict[str, tuple[str, str | None]] = {
    "memory": ("library-warm", None),
    "cache": ("page-warm", "library-warm"),
    "device": ("cold", "page-warm"),
}


@dataclass(frozen=True)
class PhaseFound:
    """One phase of one read in seconds, isolated as the difference between two cache states."""

    question: str  # without the cache state
    layout: str
    library: str
    phase: str
    measured: float
    predicted: float
    total: float  # measured seconds of all phases

    @property
    def share(self) -> float:
        """The phase's share of the whole cold read."""
        return self.measured / self.total

    @property
    def error(self) -> float:
        """The error of the prediction, as a share of the whole read."""
        return (self.predicted - self.measured) / self.total


@dataclass(frozen=True)
class Evaluation:
    """All cells, and how good each model is. `skipped` says which models could not be fitted, and why."""

    outcomes: tuple[Outcome, ...]
    models: dict[str, Accuracy]
    baselines: dict[str, Accuracy]
    ablations: dict[str, Accuracy]  # by the extension left out
    measured_again: Accuracy | None  # predicts half of each cell's passes by the other half: no model can do better
    phases: tuple[PhaseFound, ...]
    held_out: dict[str, float]  # RMSE of log10 over training cells when their layout, or their pattern, is left out
    extrapolating: int  # cells with a variable outside the trained range
    skipped: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for JSON: the accuracy of our model, and that of the other models under the same names."""
        others = {
            "models": {
                name: model_accuracy.to_dict() for name, model_accuracy in self.models.items() if name != EXTENDED.name
            },
            "baselines": {name: model_accuracy.to_dict() for name, model_accuracy in self.baselines.items()},
            "ablations": {name: model_accuracy.to_dict() for name, model_accuracy in self.ablations.items()},
        }
        return {
            **self.models[EXTENDED.name].to_dict(),
            **others,
            MEASURED_AGAIN.replace(" ", "_"): None if self.measured_again is None else self.measured_again.to_dict(),
            "always_one_library": self.always_one(),
            "phases": self.phase_summary(),
            "held_out_rmse_log10": self.held_out,
            "cells": len(self.outcomes),
            "extrapolating_cells": self.extrapolating,
            "skipped": self.skipped,
        }

    def phase_summary(self) -> dict[str, dict[str, float]]:
        """For each isolated phase, its largest share of a read, and the median and worst error, as shares."""
        summary = {}
        for phase in ISOLATED:
            mine = [each for each in self.phases if each.phase == phase]
            if mine:
                errors = np.abs([each.error for each in mine])
                summary[phase] = {
                    "largest_share": max(each.share for each in mine),
                    "median_error": float(np.median(errors)),
                    "worst_error": float(errors.max()),
                }
        return summary

    def always_one(self) -> dict[str, float]:
        """For each library, the share of experiments that it wins: always naming this library is right that often."""
        groups = [group for group in experiments(self.outcomes) if len(group) > 1]
        winners = [min(group, key=lambda outcome: outcome.seconds).library for group in groups]
        libraries = dict.fromkeys(outcome.library for outcome in self.outcomes)
        return {library: winners.count(library) / len(groups) for library in libraries} if groups else {}

    def most_times(self, faster: str, slower: str) -> float | None:
        """How many times as fast one library is as another where its lead is largest.

        None if no experiment has both.
        """
        ratios = []
        for group in experiments(self.outcomes):
            seconds = {outcome.library: outcome.seconds for outcome in group}
            if faster in seconds and slower in seconds:
                ratios.append(seconds[slower] / seconds[faster])
        return max(ratios, default=None)


def evaluate(candidates: Sequence[Candidate], measured: Sequence[CellTimings], profile: StoreProfile) -> Evaluation:
    """Judge every model on measured cells. The cells are in the order of their candidates.

    The coefficients come from the profile's own cells, so no model was fitted to anything that it is judged by.

    Raises
    ------
    Untrained
        The profile has no coefficients for a library or operation that was measured.
    TooFewCells
        The profile has too few cells to fit our model.
    """
    ours = [predict_cell(timings.cell, profile) for timings in measured]
    models = (PAPER, *BASELINES, *(EXTENDED.without(name) for name in EXTENSIONS))
    predicted, skipped = predicted_by_each(models, ours, measured, profile)
    outcomes = tuple(map(outcome_of, candidates, measured, predicted, (each.cost for each in ours)))

    def judged(named: dict[str, str]) -> dict[str, Accuracy]:
        return {title: accuracy(outcomes, name) for title, name in named.items() if name not in skipped}

    baselines = [PAPERS_ALGORITHM, *(model.name for model in BASELINES), MEDIAN_OF_TRAINING, NEAREST]
    return Evaluation(
        outcomes,
        judged({model.name: model.name for model in (EXTENDED, PAPER)}),
        judged({name: name for name in baselines}),
        judged({name: EXTENDED.without(name).name for name in EXTENSIONS}),
        measured_again(candidates, measured),
        tuple(_phases(candidates, outcomes)),
        held_out(profile.cells),
        sum(bool(prediction.cost.extrapolating) for prediction in ours),
        skipped,
    )


def measured_again(candidates: Sequence[Candidate], measured: Sequence[CellTimings]) -> Accuracy | None:
    """How well every second pass of a cell predicts the other passes. This is the noise: no model can do better.

    None if a cell has only one pass.
    """
    pairs = [halves(timings) for timings in measured]
    if not pairs or not all(other.passes for _, other in pairs):
        return None
    outcomes = [
        outcome_of(candidate, one, {MEASURED_AGAIN: other.median_seconds})
        for candidate, (one, other) in zip(candidates, pairs, strict=True)
    ]
    return accuracy(outcomes, MEASURED_AGAIN)


def halves(found: CellTimings) -> tuple[CellTimings, CellTimings]:
    """Every second pass of a cell, and the other passes."""
    return replace(found, passes=found.passes[::2]), replace(found, passes=found.passes[1::2])


def outcome_of(
    candidate: Candidate, found: CellTimings, predicted: dict[str, float], stated: Cost | None = None
) -> Outcome:
    """What was measured of a candidate, what each model predicted, and the interval that our model states."""
    low, high = found.interval or (None, None)
    interval = None if stated is None else (stated.low, stated.high)
    library = candidate.cell.library.name
    return Outcome(candidate.question, candidate.layout, library, found.median_seconds, low, high, predicted, interval)


def _phases(candidates: Sequence[Candidate], outcomes: Sequence[Outcome]) -> Iterable[PhaseFound]:
    """The phases of each read that was measured in all three cache states."""
    by_state: dict[tuple[str, str, str], dict[str, Outcome]] = {}
    for candidate, outcome in zip(candidates, outcomes, strict=True):
        if not candidate.cell.writes:
            asked = candidate.question.removesuffix(f" {candidate.cell.cache}")
            by_state.setdefault((asked, outcome.layout, outcome.library), {})[candidate.cell.cache] = outcome
    for (asked, layout, library), states in by_state.items():
        if not {"cold", "page-warm", "library-warm"} <= states.keys():
            continue
        isolated = [
            (
                phase,
                _beyond(states, pair, lambda o: o.seconds),
                _beyond(states, pair, lambda o: o.predicted[EXTENDED.name]),
            )
            for phase, pair in ISOLATED.items()
        ]
        total = sum(took for _, took, _ in isolated)
        yield from (
            PhaseFound(asked, layout, library, phase, took, guessed, total) for phase, took, guessed in isolated
        )


def _beyond(states: dict[str, Outcome], pair: tuple[str, str | None], seconds: Callable[[Outcome], float]) -> float:
    """How much longer one state takes than another; 0 if noise makes the difference negative."""
    state, less = pair
    return max(seconds(states[state]) - (seconds(states[less]) if less else 0.0), 0.0)


def held_out(cells: Sequence[Observation], model: Model = EXTENDED) -> dict[str, float]:
    """RMSE of log10(predicted / measured) over the training, leaving out one whole layout, or one whole pattern, at a
    time.

    Cells that cannot be fitted without the left-out ones are not part of the figure.
    """
    return {
        name: error
        for name, key in (("layout", lambda cell: cell.layout), ("pattern", lambda cell: cell.workload))
        if (error := _error_left_out(cells, model, key)) is not None
    }


def _error_left_out(cells: Sequence[Observation], model: Model, key: Callable[[Observation], str]) -> float | None:
    errors = []
    for left in dict.fromkeys(map(key, cells)):
        rest = [cell for cell in cells if key(cell) != left]
        out = [cell for cell in cells if key(cell) == left]
        for library, operation in dict.fromkeys((cell.library, cell.operation) for cell in out):
            try:
                coefficients = fit(rest, library, operation, model, resamples=0)
            except TooFewCells:
                continue
            for cell in out:
                if (cell.library, cell.operation) == (library, operation):
                    seconds = price(cell.variables, coefficients, cell.codec).seconds
                    errors.append(np.log10(max(seconds, LEAST_SECONDS) / cell.seconds))
    return float(np.sqrt(np.mean(np.square(errors)))) if errors else None

"""How good predictions are: which library is fastest, how many seconds it takes, and which layout to choose.

A question is what you want to do with an array: a pattern, read or written, in a cache state. Its candidates are pairs
of a layout and a library. An experiment is one layout of a question, with every library: it asks, as the paper does,
which library is faster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")
# From the paper: experiments whose faster library was predicted, and all experiments.
PAPER_RIGHT, PAPER_EXPERIMENTS, PAPER_RMSE = 97, 111, 0.29


@dataclass(frozen=True)
class Outcome:
    """One cell: what was measured, and what each model predicted, in seconds."""

    question: str
    layout: str
    library: str
    seconds: float
    low: float | None  # 95 % interval of the measured median; None if it is unknown
    high: float | None
    predicted: dict[str, float] = field(default_factory=dict)
    stated: tuple[float, float] | None = None  # the 95 % interval that our model states

    def beats(self, other: Outcome) -> bool:
        """Whether this cell is faster and the two intervals do not overlap."""
        return self.high is not None and other.low is not None and self.high < other.low


@dataclass(frozen=True)
class Accuracy:
    """How good one model is. Shares and regrets are fractions of 1. None means that there was nothing to judge."""

    experiments: int
    fastest_accuracy: float | None  # share of all experiments whose faster library was predicted
    decided_experiments: int  # experiments in which the intervals of the libraries do not overlap
    fastest_accuracy_decided: float | None
    rmse_log10: float
    rmse_relative: float
    rmse_seconds: float
    rank_correlation: float | None  # Spearman's, over the candidates of a question; the mean over all questions
    regret_median: float | None  # (time of the candidate that the model chooses / least time) - 1, over all questions
    regret_worst: float | None

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for JSON."""
        return asdict(self)


def accuracy(outcomes: Sequence[Outcome], model: str) -> Accuracy:
    """How well `model` predicts outcomes.

    Parameters
    ----------
    outcomes : Sequence[Outcome]
        What was measured and predicted. At least one.
    model : str
        The name of the model, as in `Outcome.predicted`.

    Returns
    -------
    Accuracy
        Shares of experiments, errors of seconds, and regrets over the questions.

    Raises
    ------
    ValueError
        There is no outcome, or the model does not predict a positive time for one of them.
    """
    if not outcomes:
        raise ValueError("no outcomes: nothing was measured")
    if any(not outcome.predicted.get(model, 0) > 0 for outcome in outcomes):
        raise ValueError(f"{model} does not predict a positive time for every outcome")
    compared = [group for group in experiments(outcomes) if len(group) > 1]
    decided = [group for group in compared if _is_decided(group)]
    real = np.array([outcome.seconds for outcome in outcomes])
    predicted = np.array([outcome.predicted[model] for outcome in outcomes])
    asked = [group for group in questions(outcomes) if len(group) > 1]
    regrets = [regret(group, model) for group in asked]
    correlations = [c for group in asked if (c := _correlation_of(group, model)) is not None]
    return Accuracy(
        experiments=len(compared),
        fastest_accuracy=_mean([is_right(group, model) for group in compared]),
        decided_experiments=len(decided),
        fastest_accuracy_decided=_mean([is_right(group, model) for group in decided]),
        rmse_log10=_rms(np.log10(predicted / real)),
        rmse_relative=_rms(predicted / real - 1),
        rmse_seconds=_rms(predicted - real),
        rank_correlation=_mean(correlations),
        regret_median=float(np.median(regrets)) if regrets else None,
        regret_worst=max(regrets, default=None),
    )


def experiments(outcomes: Iterable[Outcome]) -> list[list[Outcome]]:
    """Outcomes grouped by experiment. Each group has one outcome for each library."""
    return _grouped(outcomes, lambda outcome: (outcome.question, outcome.layout))


def questions(outcomes: Iterable[Outcome]) -> list[list[Outcome]]:
    """Outcomes grouped by question. Each group has one outcome for each candidate."""
    return _grouped(outcomes, lambda outcome: outcome.question)


def is_right(experiment: Sequence[Outcome], model: str) -> bool:
    """Whether the model predicts the fastest library. A tie counts as wrong."""
    best = min(experiment, key=lambda outcome: outcome.seconds)
    return all(best.predicted[model] < other.predicted[model] for other in experiment if other is not best)


def regret(candidates: Sequence[Outcome], model: str) -> float:
    """How much longer the model's choice takes than the fastest candidate, as a share of the fastest time."""
    chosen = min(candidates, key=lambda outcome: outcome.predicted[model])
    return chosen.seconds / min(outcome.seconds for outcome in candidates) - 1


def rank_correlation(a: npt.ArrayLike, b: npt.ArrayLike) -> float | None:
    """Spearman's rank correlation, with ties sharing their rank. None if all values of one side are equal."""
    x, y = _ranks(np.asarray(a, np.float64)), _ranks(np.asarray(b, np.float64))
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def _correlation_of(group: Sequence[Outcome], model: str) -> float | None:
    """The rank correlation of a group. It is 0 for a model that predicts equal times for all candidates."""
    correlation = rank_correlation([o.seconds for o in group], [o.predicted[model] for o in group])
    return 0.0 if correlation is None else correlation


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    _, positions, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: npt.NDArray[np.float64] = (last - (counts - 1) / 2)[positions]
    return ranks


def _is_decided(experiment: Sequence[Outcome]) -> bool:
    best = min(experiment, key=lambda outcome: outcome.seconds)
    return all(best.beats(other) for other in experiment if other is not best)


def _grouped(outcomes: Iterable[Outcome], key: Callable[[Outcome], Hashable]) -> list[list[Outcome]]:
    groups: dict[Hashable, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[key(outcome)].append(outcome)
    return list(groups.values())


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _rms(values: npt.NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(values**2)))

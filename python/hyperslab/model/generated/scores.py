"""Scores of predictions: faster library, faster layout, seconds, stated intervals, and the regret of the choice.

Two candidates part if their measured intervals do not overlap. Pairs that do not part are ties: nobody can say which is
faster, so they count neither for nor against a model. A workload is a question; its choice is a layout and a library.
The intervals of the scores come from drawing questions with replacement, because the cells of one are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from hyperslab.model.accuracy import Outcome, questions, regret

RESAMPLES, SEED = 2000, 16
# The library whose wins are counted apart, because always naming the other one is right most of the time.
RARER = "zarr"
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Scores:
    """How good one model is. Shares and regrets are fractions of 1. None means that there was nothing to judge."""

    workloads: int
    cells: int
    library_pairs: int  # that part
    library_accuracy: float | None
    layout_pairs: int  # that part
    layout_accuracy: float | None
    rmse_log10: float
    coverage: float | None  # share of cells whose measured time is in the stated interval
    zarr_wins: int
    zarr_recall: float | None  # share of the pairs that Zarr wins in which the model says so
    regret_median: float
    regret_p95: float
    regret_worst: float
    ties: int  # pairs of libraries that do not part
    layout_ties: int
    too_close: int  # pairs of libraries that part, whose stated intervals overlap: the model says "too close to call"
    intervals: dict[str, tuple[float, float]]  # 95 %, of each score

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class _Question:
    """What one workload says about a model."""

    library: tuple[bool, ...]  # of each pair that parts: whether the model names the faster one
    zarr: tuple[bool, ...]  # of those that Zarr wins
    layout: tuple[bool, ...]
    ties: int
    layout_ties: int
    too_close: int
    errors: tuple[float, ...]  # log10(predicted / measured) of each cell
    inside: tuple[bool, ...]
    regret: float


def score(outcomes: Sequence[Outcome], model: str) -> Scores:
    """Judge a model, by its name in `Outcome.predicted`. There must be at least one outcome."""
    each = [_asked(group, model) for group in questions(outcomes)]
    shares: dict[str, Callable[[_Question], Sequence[float]]] = {
        "library_accuracy": lambda one: one.library,
        "layout_accuracy": lambda one: one.layout,
        "zarr_recall": lambda one: one.zarr,
        "coverage": lambda one: one.inside,
    }
    squares = _sums(each, lambda one: [error**2 for error in one.errors])
    regrets = np.array([one.regret for one in each])
    drawn = np.random.default_rng(SEED).integers(0, len(each), (RESAMPLES, len(each)))
    figures, intervals = {}, {}
    for name, of in shares.items():
        figures[name], intervals[name] = _share(_sums(each, of), drawn)
    mean_square, interval = _share(squares, drawn)
    assert mean_square is not None  # there is at least one cell
    intervals["rmse_log10"] = interval and (float(np.sqrt(interval[0])), float(np.sqrt(interval[1])))
    for name, percent in (("regret_median", 50), ("regret_p95", 95), ("regret_worst", 100)):
        figures[name] = float(np.percentile(regrets, percent))
        intervals[name] = _middle(np.percentile(regrets[drawn], percent, axis=1))
    return Scores(
        workloads=len(each),
        cells=len(outcomes),
        library_pairs=sum(len(one.library) for one in each),
        layout_pairs=sum(len(one.layout) for one in each),
        rmse_log10=float(np.sqrt(mean_square)),
        zarr_wins=sum(len(one.zarr) for one in each),
        ties=sum(one.ties for one in each),
        layout_ties=sum(one.layout_ties for one in each),
        too_close=sum(one.too_close for one in each),
        intervals={name: ends for name, ends in intervals.items() if ends is not None},
        **figures,  # type: ignore[arg-type] # regrets are never None
    )


def always(outcomes: Sequence[Outcome], library: str) -> float | None:
    """The share of the pairs of libraries that part which one library wins: naming it always is right that often."""
    wins = [winner.library == library for group in questions(outcomes) for winner in _winners(_libraries(group))]
    return float(np.mean(wins)) if wins else None


def _asked(group: Sequence[Outcome], model: str) -> _Question:
    libraries, layouts = list(_libraries(group)), list(_layouts(group))
    parted = [pair for pair in libraries if _parts(*pair)]
    return _Question(
        library=tuple(_is_right(pair, model) for pair in parted),
        zarr=tuple(_is_right(pair, model) for pair in parted if _faster(pair).library == RARER),
        layout=tuple(_is_right(pair, model) for pair in layouts if _parts(*pair)),
        ties=len(libraries) - len(parted),
        layout_ties=sum(not _parts(*pair) for pair in layouts),
        too_close=sum(_overlap(*pair) for pair in parted),
        errors=tuple(float(np.log10(one.predicted[model] / one.seconds)) for one in group),
        inside=tuple(one.stated[0] <= one.seconds <= one.stated[1] for one in group if one.stated is not None),
        regret=regret(group, model),
    )


Pair = tuple[Outcome, Outcome]


def _libraries(group: Iterable[Outcome]) -> Iterable[Pair]:
    """Pairs with the same layout and different libraries."""
    return (pair for pair in combinations(group, 2) if pair[0].layout == pair[1].layout)


def _layouts(group: Iterable[Outcome]) -> Iterable[Pair]:
    """Pairs with the same library and different layouts."""
    return (pair for pair in combinations(group, 2) if pair[0].library == pair[1].library)


def _parts(a: Outcome, b: Outcome) -> bool:
    return a.beats(b) or b.beats(a)


def _overlap(a: Outcome, b: Outcome) -> bool:
    if a.stated is None or b.stated is None:
        return False
    return a.stated[0] <= b.stated[1] and b.stated[0] <= a.stated[1]


def _faster(pair: Pair) -> Outcome:
    return min(pair, key=lambda outcome: outcome.seconds)


def _winners(pairs: Iterable[Pair]) -> Iterable[Outcome]:
    return (_faster(pair) for pair in pairs if _parts(*pair))


def _is_right(pair: Pair, model: str) -> bool:
    """Whether the model predicts less time for the faster one. Equal predictions are wrong."""
    best = _faster(pair)
    other = pair[1] if best is pair[0] else pair[0]
    return best.predicted[model] < other.predicted[model]


# --- shares with intervals -----------------------------------------------------------------------------------


def _sums(each: Sequence[_Question], of: Callable[[_Question], Sequence[float]]) -> tuple[Numbers, Numbers]:
    """For each question, the sum of its values, and how many it has."""
    values = [of(one) for one in each]
    return np.array([sum(one) for one in values], np.float64), np.array([len(one) for one in values], np.float64)


def _share(sums: tuple[Numbers, Numbers], drawn: npt.NDArray[np.int64]) -> tuple[float | None, Any]:
    """The mean over all values, and its interval if questions are drawn again. None if there are no values."""
    totals, counts = sums
    if counts.sum() == 0:
        return None, None
    again, its_counts = totals[drawn].sum(axis=1), counts[drawn].sum(axis=1)
    return float(totals.sum() / counts.sum()), _middle(again[its_counts > 0] / its_counts[its_counts > 0])


def _middle(values: Numbers) -> tuple[float, float]:
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)

"""Accuracies of tables made by hand, and compared with SciPy."""

from __future__ import annotations

import numpy as np
import pytest

from hyperslab.model.accuracy import Outcome, accuracy, rank_correlation


def outcome(
    layout: str, library: str, seconds: float, predicted: float, question: str = "read all", **known
) -> Outcome:
    low, high = known.get("interval", (seconds * 0.9, seconds * 1.1))
    return Outcome(question, layout, library, seconds, low, high, {"m": predicted})


def test_rank_correlations_are_those_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(3)
    for _ in range(50):
        a, b = random.integers(0, 6, (2, 9))  # with ties
        expected = stats.spearmanr(a, b).statistic
        assert rank_correlation(a, b) == pytest.approx(expected)
    assert rank_correlation([1, 1, 1], [1, 2, 3]) is None


TABLE = [
    outcome("a", "hdf5", 1.0, 1.0),
    outcome("a", "zarr", 2.0, 4.0),  # right
    outcome("b", "hdf5", 3.0, 3.0),
    outcome("b", "zarr", 2.9, 3.5),  # wrong, but their intervals overlap
    outcome("c", "hdf5", 8.0, 0.8),  # wrong, and the model's choice among all
    outcome("c", "zarr", 4.0, 4.0),
]


def test_a_table_by_hand() -> None:
    found = accuracy(TABLE, "m")
    assert (found.experiments, found.decided_experiments) == (3, 2)
    assert found.fastest_accuracy == pytest.approx(1 / 3)
    assert found.fastest_accuracy_decided == pytest.approx(1 / 2)
    assert found.regret_median == found.regret_worst == pytest.approx(7.0)  # 8 s were chosen, 1 s is the least
    logs = np.log10([1, 2, 1, 3.5 / 2.9, 0.1, 1])
    assert found.rmse_log10 == pytest.approx(np.sqrt(np.mean(logs**2)))
    assert found.rmse_relative == pytest.approx(np.sqrt(np.mean((10**logs - 1) ** 2)))
    assert found.rmse_seconds == pytest.approx(np.sqrt((4 + 0.36 + 7.2**2) / 6))
    expected = rank_correlation([1, 2, 3, 2.9, 8, 4], [1, 4, 3, 3.5, 0.8, 4])
    assert found.rank_correlation == pytest.approx(expected)


def test_each_question_has_a_choice_of_its_own() -> None:
    other = [outcome("a", "hdf5", 5.0, 1.0, "read row"), outcome("a", "zarr", 4.0, 0.5, "read row")]
    found = accuracy([*TABLE, *other], "m")
    assert found.experiments == 4
    assert found.regret_median == pytest.approx(3.5)
    assert found.regret_worst == pytest.approx(7.0)


def test_perfect_predictions() -> None:
    perfect = [Outcome(o.question, o.layout, o.library, o.seconds, o.low, o.high, {"m": o.seconds}) for o in TABLE]
    found = accuracy(perfect, "m")
    assert found.fastest_accuracy == found.rank_correlation == 1
    assert found.regret_worst == found.rmse_log10 == 0


def test_a_tie_predicts_nothing() -> None:
    found = accuracy([outcome("a", "hdf5", 1.0, 2.0), outcome("a", "zarr", 2.0, 2.0)], "m")
    assert found.fastest_accuracy == 0


def test_unknown_intervals_never_part() -> None:
    found = accuracy([outcome("a", "hdf5", 1, 1, interval=(None, None)), outcome("a", "zarr", 9, 9)], "m")
    assert found.decided_experiments == 0
    assert found.fastest_accuracy_decided is None
    assert found.fastest_accuracy == 1


def test_one_candidate_leaves_nothing_to_choose() -> None:
    found = accuracy([outcome("a", "hdf5", 1.0, 2.0)], "m")
    assert found.experiments == 0
    assert found.fastest_accuracy is None
    assert found.rank_correlation is None
    assert found.regret_worst is None
    assert found.rmse_seconds == 1


def test_nothing_and_nonsense_are_refused() -> None:
    with pytest.raises(ValueError, match="nothing was measured"):
        accuracy([], "m")
    with pytest.raises(ValueError, match="positive"):
        accuracy([outcome("a", "hdf5", 1.0, 0.0)], "m")

"""Exact intervals of paired rounds: against SciPy's exact tests, by simulation, and for whoever looks several times."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from hyperslab.lab.looks import ALL, Looks, one_look
from hyperslab.lab.paired import LEAST_ROUNDS, chance_of, ratio_of


def rounds(values) -> dict[int, float]:
    return dict(enumerate(map(float, values)))


@pytest.mark.parametrize("count", [6, 7, 9, 12, 20])
def test_the_interval_excludes_one_where_scipys_exact_wilcoxon_test_rejects(count: int) -> None:
    wilcoxon = pytest.importorskip("scipy.stats").wilcoxon
    random = np.random.default_rng(count)
    decided = 0
    for _ in range(60):
        first, second = random.lognormal(0, 0.2, count), random.lognormal(random.uniform(0, 0.4), 0.2, count)
        found = ratio_of(rounds(first), rounds(second))
        p = wilcoxon(np.log(second / first), method="exact").pvalue
        assert (found.is_above or found.is_below) == (p <= 0.05)
        decided += p <= 0.05
    assert 0 < decided < 60, "both answers occur"


@pytest.mark.parametrize(("few", "many"), [(3, 6), (4, 4), (5, 5), (3, 10)])
def test_contenders_that_stopped_early_are_judged_as_scipys_exact_rank_sum_test_does(few: int, many: int) -> None:
    mannwhitneyu = pytest.importorskip("scipy.stats").mannwhitneyu
    random = np.random.default_rng(few * 100 + many)
    decided = 0
    for _ in range(60):
        first, second = random.lognormal(0, 0.2, many), random.lognormal(random.uniform(0, 0.8), 0.2, few)
        found = ratio_of(rounds(first), rounds(second))
        p = mannwhitneyu(second, first, method="exact").pvalue
        assert (found.is_above or found.is_below) == (p <= 0.05)
        decided += p <= 0.05
    assert 0 < decided < 60, "both answers occur"


def test_six_rounds_decide_only_if_all_agree_and_five_never_do_by_their_signs() -> None:
    for signs in product((0.9, 1.1), repeat=LEAST_ROUNDS):
        found = ratio_of(rounds([1.0] * LEAST_ROUNDS), rounds(signs))
        assert (found.is_above, found.is_below) == (min(signs) > 1, max(signs) < 1)
    assert chance_of(6) <= ALL < chance_of(5)


def test_the_order_of_rounds_and_a_change_of_unit_mean_nothing_and_sides_mirror() -> None:
    random = np.random.default_rng(3)
    first, second = rounds(random.lognormal(0, 0.3, 8)), rounds(random.lognormal(0.1, 0.3, 8))
    found = ratio_of(first, second)
    shuffled = {k: second[k] for k in reversed(second)}
    assert ratio_of(first, shuffled) == pytest.approx(found)
    assert ratio_of({k: v * 1e3 for k, v in first.items()}, {k: v * 1e3 for k, v in second.items()}) == pytest.approx(
        found
    )
    mirrored = ratio_of(second, first)
    assert (1 / mirrored.value, 1 / mirrored.high, 1 / mirrored.low) == pytest.approx(found[:3])


def test_what_slows_a_whole_round_does_not_hide_a_difference() -> None:
    slow = [1.0, 5.0, 1.0, 20.0, 1.0, 3.0]
    found = ratio_of(rounds(slow), rounds(np.multiply(slow, 1.1)))
    assert found.is_above
    assert found.value == pytest.approx(1.1)


def test_too_few_rounds_give_a_ratio_without_an_interval() -> None:
    found = ratio_of(rounds([1.0] * 3), rounds([30.0] * 3))
    assert (found.value, found.low, found.high) == (pytest.approx(30), None, None)
    assert ratio_of({}, rounds([1.0])) is None


def test_a_time_of_zero_is_the_clocks_resolution() -> None:
    found = ratio_of(rounds([0.0] * 6), rounds([1.0] * 6))
    assert found.is_above
    assert math.isfinite(found.value)


@pytest.mark.parametrize("looks", [Looks(6, 50), Looks(6, 15), Looks(10, 33), one_look(6), one_look(9)])
def test_whoever_looks_at_every_look_is_wrong_in_at_most_one_of_twenty_cases(looks: Looks) -> None:
    """Both contenders are equal, so each difference that is found is an error."""
    random = np.random.default_rng(looks.first * 1000 + looks.most)
    cases = 400
    wrong = 0
    for _ in range(cases):
        first, second = rounds(random.lognormal(0, 0.3, looks.most)), rounds(random.lognormal(0, 0.3, looks.most))
        for count in looks.rounds:
            seen = ratio_of(_first(first, count), _first(second, count), looks.level(count))
            if seen.is_above or seen.is_below:
                wrong += 1
                break
    assert wrong / cases <= 0.05 + 2.3 * math.sqrt(0.05 * 0.95 / cases)


def _first(known: dict[int, float], count: int) -> dict[int, float]:
    return {k: known[k] for k in range(count)}


def test_looks_are_a_plan_and_only_planned_ones_count() -> None:
    looks = Looks(6, 15)
    assert looks.rounds == (6, 10, 15)
    assert [looks.latest(made) for made in (4, 6, 9, 10, 14, 15, 20)] == [4, 6, 6, 10, 10, 15, 15]
    assert [looks.next_after(made) for made in (0, 6, 10, 15)] == [6, 10, 15, None]
    assert one_look(7).rounds == (7,)
    assert one_look(7).level(7) == ALL

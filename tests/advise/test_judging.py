"""What measuring says: a layout is certainly faster, or it is not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from hyperslab.advise.judging import _is_faster
from hyperslab.advise.verifying import Verified

TODAY = [40.1, 44.0, 49.0, 50.3, 61.0, 77.9]


def measured(*demands: list[float]) -> Verified:
    return Verified(cast(Any, SimpleNamespace()), 1.0, 0.5, 2.0, dict(enumerate(demands)))


@pytest.mark.parametrize(
    ("passes", "choice", "is_faster"),
    [
        ([30.7, 32.0, 34.0, 35.6, 37.0, 42.3], 1, True),  # the intervals of the medians overlap
        ([30.7, 32.0, 34.0, 35.6, 37.0, 42.3], 3, True),
        ([30.7, 32.0, 44.5, 49.5, 37.0, 62.3], 1, False),
        ([30.7, 32.0, 34.0, 45.0, 37.0, 50.0], 1, True),
        ([30.7, 32.0, 34.0, 45.0, 37.0, 50.0], 9, False),  # the best of nine is ahead by chance more often
        (TODAY, 1, False),
        ([70.0, 71.0, 72.0, 73.0, 74.0, 75.0], 1, False),
        ([1.0, 1.1], 1, False),
    ],
)
def test_the_rank_sum_test_decides(passes: list[float], choice: int, is_faster: bool) -> None:
    assert _is_faster(measured(passes), measured(TODAY), [1.0], choice) is is_faster
    if len(passes) > 2:
        # It takes seconds to import, in each process that collects tests.
        from scipy.stats import mannwhitneyu

        scipy = mannwhitneyu(passes, TODAY, alternative="two-sided", method="exact").pvalue <= 0.05 / choice
        assert is_faster == (scipy and sorted(passes)[2] < TODAY[2])


def test_demands_are_weighted_pass_by_pass() -> None:
    one = measured([1.0, 2.0, 3.0], [10.0, 20.0])
    assert one.trials([2.0, 0.5]) == [7.0, 14.0]
    assert measured([1.0]).trials([1.0, 1.0]) == []

"""Medians with the intervals that they deserve.

Intervals are 95 % percentile-bootstrap intervals (B. Efron, "Bootstrap methods: another look at the jackknife", 1979),
drawn with a fixed seed so that the same figures always give the same interval.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

RESAMPLES = 2000
SEED = 95
# Below six values even the widest interval, from the least to the largest, holds the median with less than 95 %
# (1 - 2 * 0.5**n): the interval stays unknown rather than pretend.
LEAST_FOR_INTERVAL = 6


def interval_of_median(values: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % bootstrap interval of the median; None for fewer than six values."""
    if len(values) < LEAST_FOR_INTERVAL:
        return None
    return _middle(_medians(values, _drawn(len(values), np.random.default_rng(SEED))))


def interval_of_ratio(a: Sequence[float], b: Sequence[float], *, paired: bool = False) -> tuple[float, float] | None:
    """The 95 % bootstrap interval of median(b) / median(a); None where either has fewer than six values.

    `paired`: value i of one was measured beside value i of the other, so that pairs are drawn.
    """
    if min(len(a), len(b)) < LEAST_FOR_INTERVAL:
        return None
    random = np.random.default_rng(SEED)
    drawn = _drawn(len(a), random)
    medians_a, medians_b = _medians(a, drawn), _medians(b, drawn if paired else _drawn(len(b), random))
    return _middle(medians_b / medians_a) if medians_a.all() else None


def _drawn(count: int, random: np.random.Generator) -> np.ndarray:
    return random.integers(0, count, (RESAMPLES, count))


def _medians(values: Sequence[float], drawn: np.ndarray) -> np.ndarray:
    medians: np.ndarray = np.median(np.asarray(values)[drawn], axis=1)
    return medians


def _middle(resampled: np.ndarray) -> tuple[float, float]:
    low, high = np.percentile(resampled, [2.5, 97.5])
    return float(low), float(high)

"""Medians and ratios with their confidence intervals.

Intervals are 95 % percentile-bootstrap intervals (B. Efron, "Bootstrap methods: another look at the jackknife", 1979).
They are drawn with a fixed seed, so the same figures always give the same interval.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

RESAMPLES = 2000
SEED = 95
# With fewer than six values, even the interval from the least to the largest value contains the median with less than
# 95 % probability (1 - 2 * 0.5**n). So the interval is unknown.
LEAST_FOR_INTERVAL = 6


def interval_of_median(values: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % bootstrap interval of the median, or None if there are fewer than six values."""
    if len(values) < LEAST_FOR_INTERVAL:
        return None
    return _middle(_medians(values, _drawn(len(values), np.random.default_rng(SEED))))


def interval_of_ratio(a: Sequence[float], b: Sequence[float], *, paired: bool = False) -> tuple[float, float] | None:
    """The 95 % bootstrap interval of median(b) / median(a).

    Parameters
    ----------
    a, b : Sequence[float]
        The values of the two sides, for example seconds.
    paired : bool
        Whether value i of `a` was measured next to value i of `b`. Then pairs are drawn.

    Returns
    -------
    tuple[float, float] | None
        Both ends, or None if either side has fewer than six values.
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

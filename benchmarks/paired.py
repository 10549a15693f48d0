"""The ratio of two sides that were timed in turn: what every benchmark here reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 4000


@dataclass(frozen=True)
class PairedRatio:
    """Medians in seconds, ours / peer's, and the ratio's 95 % interval by resampling the pairs."""

    ours_seconds: float
    peer_seconds: float
    ratio: float
    low: float
    high: float


def paired_ratio(ours: Sequence[float], peer: Sequence[float]) -> PairedRatio:
    """The ratio over turns in which both sides ran; turn `i` of one belongs to turn `i` of the other."""
    a, b = np.array(ours), np.array(peer)
    drawn = np.random.default_rng(3).integers(0, len(a), (RESAMPLES, len(a)))
    low, high = np.percentile(np.median(a[drawn], axis=1) / np.median(b[drawn], axis=1), [2.5, 97.5])
    medians = float(np.median(a)), float(np.median(b))
    return PairedRatio(*medians, medians[0] / medians[1], float(low), float(high))

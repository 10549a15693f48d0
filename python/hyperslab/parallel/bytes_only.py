"""P2, the baseline of the paper: a model of bytes alone, without any time to start a request (Xie et al., HPDC 2017).

The model of Titan is fitted to bytes, processes and targets. What the paper says of it, and what we keep, is that it
has no startup time: t = s (k1 + k2 cf), fitted for each direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from hyperslab.parallel.contended_storage import shares


def fit_bytes(
    mib: Sequence[float], processes: Sequence[float], targets: Sequence[float], seconds: Sequence[float]
) -> tuple[float, float]:
    """The coefficients k1 and k2, by least squares of relative errors; neither is negative."""
    table = np.array([[s, s * shares(p, c)] for s, p, c in zip(mib, processes, targets, strict=True)])
    fitted = best_of_subsets(table / np.array(seconds)[:, None], np.ones(len(seconds)))
    return float(fitted[0]), float(fitted[1])


def best_of_subsets(table: npt.NDArray[np.float64], wanted: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Least squares without negative coefficients, for a few columns: the best fit of any subset of them."""
    best, least = np.zeros(table.shape[1]), float("inf")
    columns = range(table.shape[1])
    for size in range(1, table.shape[1] + 1):
        for chosen in map(list, combinations(columns, size)):
            part, *_ = np.linalg.lstsq(table[:, chosen], wanted, rcond=None)
            if (part < 0).any():
                continue
            error = float(((table[:, chosen] @ part - wanted) ** 2).sum())
            if error < least * (1 - 1e-9):
                least, best = error, np.zeros(table.shape[1])
                best[chosen] = part
    return best

"""What a worker measures in one repetition, and how it compares what it read."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from hyperslab.errors import TrialFailed
from hyperslab.lab import cache
from hyperslab.timers import Timers

T = TypeVar("T", int, float)


@dataclass(frozen=True)
class Timing:
    """What one repetition took: seconds by phase, and the counters of `bench.records.Trial`."""

    seconds: dict[str, float]
    cpu_seconds: float | None = None
    peak_rss_nbytes: int | None = None
    device_read_nbytes: int | None = None
    device_write_nbytes: int | None = None
    decoded_nbytes: int = 0
    selection_count: int | None = None
    chunk_count: int | None = None
    read_amplification: float | None = None
    returned_dtype: str | None = None
    verified: bool | None = None
    max_abs_error: float | None = None


class Counters:
    """Device bytes and peak memory during the timed part of a trial."""

    def __init__(self) -> None:
        with suppress(OSError), open("/proc/self/clear_refs", "w") as control:
            control.write("5")  # reset the peak memory: proc(5)
        self._before = cache.device_bytes()

    def measured(self, timers: Timers, decoded_nbytes: int, **facts: Any) -> Timing:
        """The timing so far, from the timers and these counters."""
        after = cache.device_bytes()
        moved = after - self._before if after and self._before else None
        return Timing(
            seconds=timers.seconds,
            cpu_seconds=timers.cpu_seconds,
            peak_rss_nbytes=_peak_rss_nbytes(),
            device_read_nbytes=moved.read if moved else None,
            device_write_nbytes=moved.written if moved else None,
            decoded_nbytes=decoded_nbytes,
            **facts,
        )


def _peak_rss_nbytes() -> int | None:
    try:
        with open("/proc/self/status") as stream:
            line = next(line for line in stream if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(line.split()[1]) * 1024


@dataclass
class Check:
    """Compares what was read with what was written. This is never timed."""

    exact: bool
    skipped: bool = False  # the null format stores nothing to compare
    returned_dtype: str | None = None
    max_abs_error: float | None = None
    compared: int = field(default=0)

    def __call__(self, got: np.ndarray, expected: np.ndarray, what: str) -> None:
        """Raise TrialFailed if the arrays differ by more than the format says."""
        if self.skipped:
            return
        self.compared += 1
        if got.shape != expected.shape:
            raise TrialFailed(f"{what}: shape {got.shape} was read, {expected.shape} was written")
        if np.array_equal(got, expected):
            return
        if self.exact or expected.dtype.kind != "f":
            raise TrialFailed(f"{what}: the elements read are not the elements written")
        error = float(np.max(np.abs(got.astype(np.float64) - expected)))
        self.max_abs_error = max(error, self.max_abs_error or 0.0)

    @property
    def verified(self) -> bool | None:
        """Whether everything that was read was compared. None if nothing could be compared."""
        return True if self.compared else None


def combine(parts: Sequence[Timing]) -> Timing:
    """The timing of a trial that several processes made together: the time of the slowest, the bytes of all."""

    def total(values: list[T | None]) -> T | None:
        known = [value for value in values if value is not None]
        return sum(known[1:], known[0]) if len(known) == len(values) else None

    slowest = max(parts, key=lambda part: sum(part.seconds.values()))
    amplifications = [part.read_amplification for part in parts if part.read_amplification is not None]
    errors = [part.max_abs_error for part in parts if part.max_abs_error is not None]
    return replace(
        slowest,
        cpu_seconds=total([part.cpu_seconds for part in parts]),
        peak_rss_nbytes=total([part.peak_rss_nbytes for part in parts]),
        device_read_nbytes=total([part.device_read_nbytes for part in parts]),
        device_write_nbytes=total([part.device_write_nbytes for part in parts]),
        decoded_nbytes=sum(part.decoded_nbytes for part in parts),
        selection_count=total([part.selection_count for part in parts]),
        chunk_count=total([part.chunk_count for part in parts]),
        read_amplification=float(np.mean(amplifications)) if amplifications else None,
        verified=all(part.verified for part in parts) if all(p.verified is not None for p in parts) else None,
        max_abs_error=max(errors) if errors else None,
    )

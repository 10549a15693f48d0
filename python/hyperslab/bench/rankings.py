"""From trials to summaries and rankings. A winner is named only if the intervals do not overlap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hyperslab.bench.records import METRICS, Summary, Trial
from hyperslab.lab.statistics import interval_of_median

# Metrics that move elements, so that they have a throughput.
MOVES_DATA = frozenset({"write", "append", "read", "write_durable", "write_total", "read_total"})

PointEstimate = Callable[[Sequence[float]], float]


def summarise(trials: Iterable[Trial], point: Callable[[Trial], PointEstimate] | None = None) -> list[Summary]:
    """One Summary for each metric of each cell with accepted trials, in the order of the trials.

    `point` returns a trial's own point estimate by its method (Ambatipudi et al. take the mean, Pourmal the
    best). The default is the median.
    """
    cells: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        cells[trial.cell_key].append(trial)
    return [summary for cell in cells.values() for summary in _summaries_of_cell(cell, point)]


def _summaries_of_cell(cell: list[Trial], point: Callable[[Trial], PointEstimate] | None) -> list[Summary]:
    accepted = [trial for trial in cell if trial.status == "ok" and trial.trial >= 0]
    if not accepted:
        return []
    rejected = sum(trial.status == "rejected" for trial in cell)
    estimate = point(accepted[0]) if point else _median
    summaries = []
    for metric in METRICS:
        values = [value for trial in accepted if (value := trial.metric(metric)) is not None]
        if values:
            summaries.append(_summary(metric, values, accepted, rejected, estimate))
    return summaries


def _median(values: Sequence[float]) -> float:
    return float(np.median(values))


def _summary(
    metric: str, values: list[float], accepted: list[Trial], rejected: int, estimate: PointEstimate
) -> Summary:
    first = accepted[0]
    median = _median(values)
    low, high = interval_of_median(values) or (None, None)
    moved = first.decoded_nbytes if metric in MOVES_DATA else None
    in_file = _file_decoded_nbytes(first)
    return Summary(
        **first.columns,
        metric=metric,
        n=len(values),
        rejected=rejected,
        point_seconds=estimate(values),
        median_seconds=median,
        low_seconds=low,
        high_seconds=high,
        min_seconds=min(values),
        per_array_seconds=median / first.count,
        throughput_mbps=moved / median / 1e6 if moved and median > 0 else None,
        layout=first.layout,
        stored_nbytes=first.stored_nbytes,
        ratio=in_file / first.stored_nbytes if in_file and first.stored_nbytes else None,
    )


def _file_decoded_nbytes(trial: Trial) -> int | None:
    if not trial.operation.startswith("write"):
        return None
    return trial.decoded_nbytes


@dataclass(frozen=True)
class Ranking:
    """Formats that did equal work, the fastest first. `winner` is set only if its interval overlaps with no other."""

    case: str
    method: str
    conditions: str
    operation: str
    shape: str
    count: int
    cache: str
    processes: int
    metric: str
    entries: tuple[Summary, ...]
    winner: str | None
    tied: tuple[str, ...]  # formats that share the first rank if there is no winner


# The headline metric of each operation.
HEADLINE = {
    "create": "write_total",
    "write": "write_total",
    "read": "read_total",
    "overwrite": "write_total",
    "append": "write_total",
}
# These operations do no work worth ranking: they measure the harness.
UNRANKED = frozenset({"null"})


def headline_metric(operation: str) -> str:
    """The metric that ranks an operation: everything that a user waits for, including opening the file."""
    return HEADLINE[operation.split("(")[0].split("-")[0]]


def rank(summaries: Iterable[Summary]) -> list[Ranking]:
    """One Ranking for each group with the same arrays, conditions, operation, cache state and processes."""
    groups: dict[tuple[object, ...], list[Summary]] = defaultdict(list)
    for s in summaries:
        if s.metric == headline_metric(s.operation) and s.format not in UNRANKED:
            key = (s.case, s.method, s.conditions, s.operation, s.shape, s.count, s.cache, s.processes)
            groups[key].append(s)
    return [_ranking(sorted(group, key=lambda s: s.median_seconds)) for group in groups.values()]


def _ranking(ordered: list[Summary]) -> Ranking:
    first = ordered[0]
    tied = tuple(s.format for s in ordered if s is first or not apart(first, s))
    decided = len(ordered) > 1 and len(tied) == 1
    return Ranking(
        case=first.case,
        method=first.method,
        conditions=first.conditions,
        operation=first.operation,
        shape=first.shape,
        count=first.count,
        cache=first.cache,
        processes=first.processes,
        metric=first.metric,
        entries=tuple(ordered),
        winner=first.format if decided else None,
        tied=() if decided else tied,
    )


def apart(faster: Summary, slower: Summary) -> bool:
    """Whether the faster one's interval ends before the slower one's begins. False if either interval is unknown."""
    return (
        faster.high_seconds is not None and slower.low_seconds is not None and faster.high_seconds < slower.low_seconds
    )

"""Selections from a run's summaries that figures, tables and the page share."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import prod

from hyperslab.bench.operations import OPERATIONS
from hyperslab.bench.rankings import UNRANKED
from hyperslab.bench.records import Summary
from hyperslab.bench.results import Run
from hyperslab.bench.study import Case

# The study with speed curves and ratio tables HDF5/LIB.
SPEED_STUDY = "formats-2002"
RATIO_OF = "hdf5"


@dataclass(frozen=True)
class Arrays:
    """The arrays of one file: a size of a series."""

    shape: str
    count: int

    @property
    def elements(self) -> int:
        """Elements of one array."""
        return prod(map(int, self.shape.split("x")))

    @property
    def size(self) -> tuple[int, int]:
        """The key for sorting: the number of all elements, then the number of arrays."""
        return self.elements * self.count, self.count


def arrays_of(summary: Summary) -> Arrays:
    """The arrays of a summary."""
    return Arrays(summary.shape, summary.count)


def sizes(summaries: list[Summary]) -> list[Arrays]:
    """The sizes of a series, smallest first."""
    return sorted({arrays_of(s) for s in summaries}, key=lambda arrays: arrays.size)


# The order of panels, from the creation of a file to its reading.
METRIC_ORDER = ("create_total", "write", "write_durable", "write_total", "append", "open_total", "read", "read_total")


def by_case_and_method(run: Run) -> dict[tuple[str, str], list[Summary]]:
    """The summaries by case and method, without the null format, in the order of the run."""
    groups: dict[tuple[str, str], list[Summary]] = defaultdict(list)
    for summary in run.summaries:
        if summary.format not in UNRANKED:
            groups[summary.case, summary.method].append(summary)
    return dict(groups)


def case_named(run: Run, name: str) -> Case | None:
    """The case as requested; None if run.json does not contain the case of some trials."""
    return next((case for case in run.description.cases if case.name == name), None)


def is_speed_case(case: str) -> bool:
    """Whether a case belongs to the study of 2002, whose figures show throughput against size."""
    return case.startswith(SPEED_STUDY)


def panel_order(summary: Summary, operations: list[str]) -> tuple[int, int]:
    """The key for sorting panels: first the study's order of operations, then the order of metrics."""
    return operations.index(summary.operation), METRIC_ORDER.index(summary.metric)


def operation_name(summary: Summary) -> str:
    """The operation without its parameters."""
    return summary.operation.partition("(")[0]


def moves_nothing_back(summary: Summary) -> bool:
    """Whether the operation writes, overwrites or appends rather than reads."""
    kind = OPERATIONS.get(operation_name(summary))
    return kind is not None and kind.verb != "read"


def published_seconds(summary: Summary) -> float:
    """The seconds that the method itself reports: the published statistic, or the median."""
    return summary.point_seconds if summary.method == "published" else summary.median_seconds


def decoded_megabytes(summary: Summary) -> float | None:
    """The decoded MB that one trial moves; None for metrics that move no data."""
    if summary.throughput_mbps is None:
        return None
    return summary.throughput_mbps * summary.median_seconds


def throughput(summary: Summary) -> float | None:
    """Decoded MB/s, computed with the method's own statistic."""
    moved, seconds = decoded_megabytes(summary), published_seconds(summary)
    return moved / seconds if moved is not None and seconds > 0 else None

"""The ratio tables of the 2002 study: how many times faster HDF5 is than each other library, over all sizes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

from hyperslab.bench.rankings import headline_metric
from hyperslab.bench.records import Summary
from hyperslab.bench.results import Run
from hyperslab.quantities import UNKNOWN, digits
from hyperslab.report.lines import bare_metric
from hyperslab.report.palette import in_order
from hyperslab.report.views import RATIO_OF, by_case_and_method, is_speed_case, operation_name, published_seconds
from hyperslab.report.wording import cache_title

Ratios: TypeAlias = tuple[float, ...]  # one for each size


@dataclass(frozen=True)
class RatioTable:
    """HDF5 compared with each library, for one operation of one case, method, conditions and cache state."""

    case: str
    method: str
    conditions: str
    operation: str
    cache: str
    rows: dict[str, tuple[Ratios, Ratios]]  # of each library: in total and for the operation alone


def ratio_tables(run: Run) -> list[RatioTable]:
    """The ratio tables of all cases of the 2002 study; ratio = the library's seconds / HDF5's seconds."""
    tables = []
    for (case, _), summaries in by_case_and_method(run).items():
        if is_speed_case(case):
            groups: dict[tuple[str, str, str, int], list[Summary]] = defaultdict(list)
            for s in summaries:
                groups[s.conditions, operation_name(s), s.cache, s.processes].append(s)
            tables += [table for group in groups.values() if (table := _table(group)) is not None]
    return tables


def _table(group: list[Summary]) -> RatioTable | None:
    first = group[0]
    others = in_order({s.format for s in group} - {RATIO_OF})
    total, alone = headline_metric(first.operation), bare_metric(first)
    rows = {name: (_ratios(group, name, total), _ratios(group, name, alone)) for name in others}
    kept = {name: row for name, row in rows.items() if any(row)}
    if not kept:
        return None
    return RatioTable(first.case, first.method, first.conditions, operation_name(first), first.cache, kept)


def _ratios(group: list[Summary], library: str, metric: str) -> Ratios:
    """One ratio for each size at which both were measured."""
    wanted = [s for s in group if s.metric == metric]
    ours = {(s.operation, s.shape, s.count): published_seconds(s) for s in wanted if s.format == RATIO_OF}
    pairs = [(published_seconds(s), ours.get((s.operation, s.shape, s.count))) for s in wanted if s.format == library]
    return tuple(theirs / hdf5 for theirs, hdf5 in pairs if hdf5)


def range_text(ratios: Ratios) -> str:
    """Lowest to highest over the sizes, as published, with the median."""
    if not ratios:
        return UNKNOWN
    low, high = digits(min(ratios)), digits(max(ratios))
    reach = low if low == high else f"{low} to {high}"
    return f"{reach} (median {digits(median(ratios))})"


def heading(table: RatioTable) -> str:
    """The heading of a table, in one line."""
    return f"{table.case}: {table.operation}, {table.method}, {table.conditions}, {cache_title(table.cache)}"

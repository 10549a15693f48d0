"""Arrays that are alike get one advice: many of one file, and those of several files with one structure.

Alike are arrays of the same shape, type, chunks and codecs to which the same kinds of calls are made. One of them
stands for all: the calls to the others count as weights, and the advice names all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hyperslab.advise.demand import Demand
from hyperslab.advise.stored import Member, StoredArray, archive_of
from hyperslab.advise.traced_demands import SummarizedTrace, traced_demand
from hyperslab.archive.tree.array import Array
from hyperslab.errors import HyperslabError
from hyperslab.trace.openings import shared_openings, shared_share
from hyperslab.trace.summaries import ArraySummary

# So many kinds of calls to arrays that are alike are priced, those that took most time; they stand for the others.
MOST_DEMANDS = 8
Traced = tuple[SummarizedTrace, Mapping[str, Sequence[ArraySummary]], float]
Kind = tuple[Any, ...]


@dataclass(frozen=True)
class Facts:
    """What the file says of an array: those with equal facts are stored alike."""

    shape: tuple[int, ...]
    dtype: str
    chunks: tuple[int, ...] | None
    filters: tuple[Any, ...]
    max_shape: tuple[int | None, ...]
    format: str

    @property
    def structure(self) -> Kind:
        """Equal for arrays of several files that have one structure, however long their axes are."""
        cut = None if self.chunks is None else tuple(
            0 if chunk >= length else chunk for chunk, length in zip(self.chunks, self.shape, strict=True)
        )  # fmt: skip
        return (len(self.shape), self.dtype, cut, self.filters, self.format)


def facts_of(path: str, names: Iterable[str] | None, options: Mapping[str, Any]) -> dict[str, Facts]:
    """The facts of arrays by name, or of all of a file. Arrays that are missing or cannot be read are left out.

    Raises
    ------
    NoSuchFile
        There is no such file.
    """
    with archive_of(path, options) as archive:
        if names is None:
            return {one.name: _facts(one) for one in archive.walk() if one.is_variable}
        found = ((name, archive.get(name if name.strip("/") else "")) for name in names)
        return {name: _facts(one) for name, one in found if isinstance(one, Array)}


def _facts(one: Array) -> Facts:
    try:
        dtype = repr(one.dtype)
    except HyperslabError as error:
        dtype = str(error)  # whoever describes the array says the same
    filters = (one.codecs, tuple(map(tuple, one.filters)))
    return Facts(tuple(one.shape), dtype, one.chunks, filters, tuple(one.max_shape), one.format)


def grouped(names: Sequence[str], facts: Mapping[str, Facts], traced: Sequence[Traced] = ()) -> list[list[str]]:
    """The names of arrays that are alike, together; the groups that took most time, or have most elements, first."""
    groups: dict[Kind, list[str]] = {}
    for name in names:
        kind = (facts.get(name, name), _calls(name, traced))
        groups.setdefault(kind, []).append(name)
    sizes = {name: int(np.prod(one.shape, dtype=np.int64)) for name, one in facts.items()}
    weights = {name: _seconds(name, traced) if traced else sizes.get(name, 0) for name in names}
    return sorted(groups.values(), key=lambda group: -sum(weights[name] for name in group))


def _calls(name: str, traced: Sequence[Traced]) -> Kind:
    """Which kinds of calls were made to an array."""
    summaries = [one for _, by_name, _ in traced for one in by_name.get(name, ())]
    kinds = {(each.operation, each.name) for one in summaries for each in one.patterns}
    return tuple(sorted(kinds))


def _seconds(name: str, traced: Sequence[Traced]) -> float:
    return sum(weight * one.seconds for _, by_name, weight in traced for one in by_name.get(name, ()))


def traced_demands(group: Sequence[str], traced: Sequence[Traced], stored: StoredArray) -> list[Demand]:
    """What the traces ask of arrays that are alike: each kind of calls once, with the number of arrays as its weight.

    Raises
    ------
    UsageError
        The arrays had another shape when they were traced.
    """
    found: list[tuple[float, int, Demand]] = []
    for one, by_name, weight in traced:
        shared = shared_openings(one.trace) if one.shared is None else one.shared
        kinds: dict[Kind, list[ArraySummary]] = {}
        for name in group:
            for summary in by_name.get(name, ()):
                kinds.setdefault(_kind_of(summary), []).append(summary)
        for listed in kinds.values():
            demand = traced_demand(one, listed[0], stored, weight * len(listed))
            if len(listed) > 1:
                demand = demand.sharing(shared_share(one.trace, (each.rows for each in listed), shared))
            seconds = sum(each.seconds for each in listed)
            found.append((seconds, len(listed), _of_usual_time(demand, listed[0].seconds, seconds / len(listed))))
    found.sort(key=lambda each: -each[0])
    kept = found[:MOST_DEMANDS]
    share = sum(count for _, count, _ in found) / max(1, sum(count for _, count, _ in kept))
    return [demand if share == 1 else replace(demand, weight=demand.weight * share) for _, _, demand in kept]


def _of_usual_time(demand: Demand, seconds: float, mean: float) -> Demand:
    """The demand with the time that such an array usually took: the one that stands for all took most."""
    if not seconds or demand.measured_seconds is None:
        return demand
    return replace(demand, measured_seconds=demand.measured_seconds * mean / seconds)


def _kind_of(summary: ArraySummary) -> Kind:
    array = summary.array
    patterns = tuple((one.operation, one.name, one.lengths, one.count, one.order) for one in summary.patterns)
    opened = (array.library, array.shape, array.chunks, array.cache_nbytes, array.cache_slots)
    return (*opened, summary.read_count, summary.write_count, patterns)


def joined(
    arrays: Sequence[tuple[StoredArray, list[Demand]]], facts: Mapping[Member, Facts]
) -> list[tuple[StoredArray, list[Demand]]]:
    """Those of several files that have one name and one structure, as one: the largest stands for the others."""
    groups: dict[Kind, list[tuple[StoredArray, list[Demand]]]] = {}
    for array, demands in arrays:
        known = facts.get((array.file, array.name))
        names = sorted(name for _, name in array.members)  # they come by the time that each took
        kind = (tuple(names), (array.file,) if known is None else known.structure)
        groups.setdefault(kind, []).append((array, demands))
    made = []
    for group in groups.values():
        largest = max(group, key=lambda each: each[0].nbytes)[0]
        fitting = [each for each in group if all(a <= b for a, b in zip(each[0].shape, largest.shape, strict=True))]
        made.append(_one_of(largest, fitting))
        made += [each for each in group if each not in fitting]
    return made


def _one_of(
    largest: StoredArray, group: Sequence[tuple[StoredArray, list[Demand]]]
) -> tuple[StoredArray, list[Demand]]:
    members = tuple(member for array, _ in group for member in array.members)
    kinds: dict[Kind, Demand] = {}
    for array, demands in group:
        for demand in demands:
            kind = _relative(demand)
            moved = demand if array is largest else replace(demand, shape=largest.shape)
            same = kinds.get(kind)
            kinds[kind] = moved if same is None else _both(same, demand)
    listed = sorted(kinds.values(), key=lambda one: -one.weight * (one.measured_seconds or 0.0))
    kept = listed[:MOST_DEMANDS]
    share = sum(one.weight for one in listed) / sum(one.weight for one in kept)
    return replace(largest, alike=members), [replace(one, weight=one.weight * share) for one in kept]


def _both(one: Demand, other: Demand) -> Demand:
    """The same calls to several arrays, with the time that they took on average."""
    weight = one.weight + other.weight
    spent = [(each.measured_seconds, each.weight) for each in (one, other) if each.measured_seconds is not None]
    mean = sum(seconds * count for seconds, count in spent) / weight if len(spent) == 2 else one.measured_seconds
    shared = sum(each.shared * each.weight for each in (one, other)) / weight
    return replace(one.sharing(shared), weight=weight, measured_seconds=mean)


def _relative(demand: Demand) -> Kind:
    """Equal for calls of the same kind to arrays whose axes have nearly the same lengths."""
    table, places = demand.kinds
    shape = np.array(demand.shape * 2, float)
    lengths = tuple(map(tuple, np.round(table / shape, 2).tolist()))
    counts = tuple(np.round(np.bincount(places) / max(1, len(places)), 2).tolist())
    calls = round(len(demand.steps) / 10 ** max(0, len(str(len(demand.steps))) - 2))  # the first two digits
    return (demand.name, demand.library, demand.caller, demand.cache, demand.writes, lengths, counts, calls)

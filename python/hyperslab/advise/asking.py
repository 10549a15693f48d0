"""From a file and traces, a workload or words to the arrays and what is asked of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hyperslab.advise.alike import facts_of, grouped, traced_demands
from hyperslab.advise.counsel import counsel_on, today_of
from hyperslab.advise.demand import Demand
from hyperslab.advise.results import Counsel
from hyperslab.advise.stored import Member, StoredArray, stored_arrays
from hyperslab.advise.traced_demands import SummarizedTrace, open_trace, summaries_by_name
from hyperslab.advise.with_run import share_served
from hyperslab.advise.words import demand_of
from hyperslab.errors import HyperslabError, NoSuchFile, UsageError
from hyperslab.meant import meant_or_known
from hyperslab.model.cells import CellCache
from hyperslab.model.file_layout import file_and_array
from hyperslab.model.store_profile import StoreProfile
from hyperslab.model.workload import Workload
from hyperslab.model.workload_file import load_workloads
from hyperslab.trace.trace import Trace

MOST_ARRAYS = 8


@dataclass
class Question:
    """The arrays of a file, with what is asked of each, and what was left out."""

    file: str
    arrays: list[tuple[StoredArray, list[Demand]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)  # files that were asked about too
    options: Mapping[str, Any] = field(default_factory=dict)  # how to reach them

    @property
    def files(self) -> list[str]:
        """All files."""
        return [self.file, *self.others]


def ask(
    target: str,
    traces: Sequence[tuple[Path | Trace | SummarizedTrace, float]],
    workload: Path | None,
    like: str | None,
    storage_options: Mapping[str, Any] | None = None,
    *,
    one_by_one: bool = False,
    samples: bool = True,
) -> Question:
    """Find the arrays and what is asked of them.

    Parameters
    ----------
    target : str
        `FILE` or `FILE:ARRAY`.
    traces : Sequence[tuple[Path | Trace | SummarizedTrace, float]]
        Traces, or their paths, with their weights.
    workload : Path | None
        A workload file.
    like : str | None
        Words such as `maps and series`.
    storage_options : Mapping[str, Any] | None
        How to reach the file, as in `open`.
    one_by_one : bool
        Whether arrays that are alike are asked about one by one.
    samples : bool
        Whether to read a sample of the elements of each.

    Returns
    -------
    Question
        The arrays, of those that are alike one for all; with traces, those that took most time come first.

    Raises
    ------
    UsageError
        Not exactly one of the three was given, or it does not fit the file.
    """
    if sum([bool(traces), workload is not None, like is not None]) != 1:
        raise UsageError(
            "say what your program does, in one way: --trace run.trace, --workload accesses.yaml, or "
            '--like "maps and series"; `hyperslab trace -o run.trace -- python your_program.py` records a trace'
        )
    path, name = file_and_array(target)
    question = Question(path, options=storage_options or {})
    named = [f"/{name.strip('/')}"] if name.strip("/") else None
    options = storage_options or {}
    if traces:
        _by_traces(question, named, traces, options, one_by_one=one_by_one, samples=samples)
    elif workload is not None:
        _by_workload(question, named, workload, options)
    else:
        assert like is not None
        _by_words(question, named, like, options, samples=samples)
    if not question.arrays:
        raise UsageError(f"{path} has no array to advise on: {'; '.join(question.notes) or 'it is empty'}")
    if len(question.arrays) > MOST_ARRAYS:
        left = ", ".join(one.name for one, _ in question.arrays[MOST_ARRAYS:][:5])
        question.notes.append(f"only the {MOST_ARRAYS} most important kinds of arrays are looked at; left out: {left}, "
                              "…; name one as FILE:ARRAY")  # fmt: skip
        del question.arrays[MOST_ARRAYS:]
    return question


def _by_words(
    question: Question, named: list[str] | None, like: str, options: Mapping[str, Any], *, samples: bool
) -> None:
    path = question.file
    if named is None:
        known = facts_of(path, None, options)
        groups = grouped(list(known), known)
    else:
        groups = [named]
    arrays = []
    for group in groups[: MOST_ARRAYS * 2]:
        try:
            (stored,) = stored_arrays(path, group[:1], options, question.notes, samples=samples)
        except HyperslabError as error:
            if named is not None:
                raise
            question.notes.append(f"{_listed(group)} left out: {error}")
            continue
        counted = [
            replace(one, weight=one.weight * len(group), served_share=_share_served(stored, one))
            for one in demand_of(like, stored.shape, stored.priced_dtype, stored.dims)
        ]
        arrays.append((replace(stored, alike=_members(path, group)), counted))
    question.arrays += sorted(arrays, key=lambda each: -each[0].nbytes * each[0].count)


def _share_served(stored: StoredArray, demand: Demand) -> float | None:
    """What `hyperslab run` would serve of calls that no trace has; None if it serves nothing of such files."""
    today = today_of(stored, [demand], None)
    return share_served(today, demand) if today.reader == "hdf5" else None


def _members(path: str, group: Sequence[str]) -> tuple[Member, ...]:
    return tuple((path, name) for name in group) if len(group) > 1 else ()


def _listed(group: Sequence[str]) -> str:
    return f"{group[0]} is" if len(group) == 1 else f"{group[0]} and {len(group) - 1:,} arrays like it are"


def _by_traces(
    question: Question,
    named: list[str] | None,
    traces: Sequence[tuple[Path | Trace | SummarizedTrace, float]],
    options: Mapping[str, Any],
    *,
    one_by_one: bool,
    samples: bool,
) -> None:
    path = question.file
    if "://" not in path and not Path(path).exists():
        raise NoSuchFile(
            f"there is no file {path}: if it was moved since it was traced, record your program again with its new path"
        )
    opened = []
    for given, weight in traces:
        one = given if isinstance(given, SummarizedTrace) else open_trace(given)
        where = one.where
        if not one.summaries:
            raise UsageError(f"{where} has no access to any array")
        question.notes += [f"{where}: {note}" for note in one.trace.notes]
        opened.append((one, summaries_by_name(one, path), weight))
    names = list(dict.fromkeys(name for _, summaries, _ in opened for name in summaries))
    if named is not None and named[0] not in names:
        raise UsageError(f"the trace has no access to {named[0]} of {path}{meant_or_known(named[0], names)}")
    asked = named or names
    groups = [[name] for name in asked]
    if len(asked) > 1 and not one_by_one:
        groups = grouped(asked, facts_of(path, asked, options), opened)
    for group in groups[: MOST_ARRAYS * 2]:
        try:
            (stored,) = stored_arrays(path, group[:1], options, question.notes, samples=samples)
            demands = traced_demands(group, opened, stored)
        except HyperslabError as error:
            if named is not None:
                raise
            question.notes.append(f"{_listed(group)} left out: {error}")
            continue
        question.arrays.append((replace(stored, alike=_members(path, group)), demands))


def _by_workload(question: Question, named: list[str] | None, where: Path, options: Mapping[str, Any]) -> None:
    workloads = load_workloads(where)
    if named is not None and len(workloads) > 1:
        wanted = named[0].strip("/")
        if wanted not in workloads:
            raise UsageError(f"{where} has no accesses to {wanted}{meant_or_known(wanted, workloads)}")
        workloads = {wanted: workloads[wanted]}
    for key, workload in workloads.items():
        stored = _stored_for(question, named, key, workload, options)
        question.arrays.append((stored, [_demand(workload, stored, where)]))


def _stored_for(
    question: Question, named: list[str] | None, key: str, workload: Workload, options: Mapping[str, Any]
) -> StoredArray:
    if named is not None or key:
        (stored,) = stored_arrays(question.file, named or [f"/{key}"], options, question.notes)
        listed = [stored]
    else:
        listed = stored_arrays(question.file, None, options, question.notes)
    fitting = [one for one in listed if one.shape == tuple(workload.array.shape)]
    if len(fitting) != 1:
        there = ", ".join(f"{one.name} {one.shape}" for one in listed) or "no array"
        raise UsageError(
            f"the workload's array has the shape {tuple(workload.array.shape)}, but {question.file} has {there}; name "
            "an array as FILE:ARRAY"
        )
    return fitting[0]


def _demand(workload: Workload, stored: StoredArray, where: Path) -> Demand:
    steps = workload.steps()
    only_writes = all(step.operation == "write" for step in steps)
    grows = any(step.length is not None for step in steps)
    settings = workload.hdf5
    made = Demand(
        where.name,
        stored.shape,
        stored.priced_dtype,
        steps,
        cache="new" if only_writes and not grows else "cold",
        cache_nbytes=settings.rdcc_nbytes,
        cache_slots=settings.rdcc_nslots,
    )
    return replace(made, served_share=_share_served(stored, made))


def traced_counsels(
    target: str,
    trace: Path,
    profile: StoreProfile | None,
    storage_options: Mapping[str, Any] | None = None,
    cache: CellCache | None = None,
) -> dict[str, Counsel]:
    """What a traced program makes of the arrays of a file, and what helps it, by the arrays' names.

    Raises
    ------
    UsageError
        The trace is that of another file, or it cannot be read.
    """
    asked = ask(target, [(trace, 1.0)], None, None, storage_options, one_by_one=True).arrays
    return {
        array.name: counsel_on(array, [replace(one, cache=cache or one.cache) for one in demands], profile)
        for array, demands in asked
    }

"""From a file and traces, a workload or words to the arrays and what is asked of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hyperslab.advise.counsel import counsel_on
from hyperslab.advise.demand import Demand
from hyperslab.advise.results import Counsel
from hyperslab.advise.stored import StoredArray, stored_arrays
from hyperslab.advise.traced_demands import open_trace, summaries_by_name, traced_demand
from hyperslab.advise.words import demand_of
from hyperslab.errors import HyperslabError, UsageError
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


def ask(
    target: str,
    traces: Sequence[tuple[Path | Trace, float]],
    workload: Path | None,
    like: str | None,
    storage_options: Mapping[str, Any] | None = None,
) -> Question:
    """Find the arrays and what is asked of them.

    Parameters
    ----------
    target : str
        `FILE` or `FILE:ARRAY`.
    traces : Sequence[tuple[Path | Trace, float]]
        Traces, or their paths, with their weights.
    workload : Path | None
        A workload file.
    like : str | None
        Words such as `maps and series`.
    storage_options : Mapping[str, Any] | None
        How to reach the file, as in `open`.

    Returns
    -------
    Question
        The arrays; with traces, those that took most time come first.

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
    question = Question(path)
    named = [f"/{name.strip('/')}"] if name.strip("/") else None
    options = storage_options or {}
    if traces:
        _by_traces(question, named, traces, options)
    elif workload is not None:
        _by_workload(question, named, workload, options)
    else:
        assert like is not None
        arrays = stored_arrays(path, named, options, question.notes)
        arrays.sort(key=lambda one: -one.nbytes)
        for one in arrays:
            question.arrays.append((one, demand_of(like, one.shape, one.priced_dtype, one.dims)))
    if not question.arrays:
        raise UsageError(f"{path} has no array to advise on: {'; '.join(question.notes) or 'it is empty'}")
    if len(question.arrays) > MOST_ARRAYS:
        left = ", ".join(one.name for one, _ in question.arrays[MOST_ARRAYS:][:5])
        question.notes.append(f"only the {MOST_ARRAYS} most important arrays are looked at; left out: {left}, …; "
                              "name one as FILE:ARRAY")  # fmt: skip
        del question.arrays[MOST_ARRAYS:]
    return question


def _by_traces(
    question: Question,
    named: list[str] | None,
    traces: Sequence[tuple[Path | Trace, float]],
    options: Mapping[str, Any],
) -> None:
    path = question.file
    if "://" not in path and not Path(path).exists():
        raise UsageError(
            f"there is no file {path}: if it was moved since it was traced, record your program again with its new path"
        )
    opened = []
    for given, weight in traces:
        one = open_trace(given)
        where = one.where
        if not one.summaries:
            raise UsageError(f"{where} has no access to any array")
        question.notes += [f"{where}: {note}" for note in one.trace.notes]
        opened.append((one, summaries_by_name(one, path), weight))
    names = list(dict.fromkeys(name for _, summaries, _ in opened for name in summaries))
    if named is not None and named[0] not in names:
        raise UsageError(f"the trace has no access to {named[0]} of {path}{meant_or_known(named[0], names)}")
    for name in named or names[: MOST_ARRAYS * 2]:
        try:
            (stored,) = stored_arrays(path, [name], options, question.notes)
            demands = [
                traced_demand(one, summary, stored, weight)
                for one, summaries, weight in opened
                for summary in summaries.get(name, ())
            ]
        except HyperslabError as error:
            if named is not None:
                raise
            question.notes.append(f"{name} is left out: {error}")
            continue
        question.arrays.append((stored, demands))


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
    return Demand(
        where.name,
        stored.shape,
        stored.priced_dtype,
        steps,
        cache="new" if only_writes and not grows else "cold",
        cache_nbytes=settings.rdcc_nbytes,
        cache_slots=settings.rdcc_nslots,
    )


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
    asked = ask(target, [(trace, 1.0)], None, None, storage_options).arrays
    return {
        array.name: counsel_on(array, [replace(one, cache=cache or one.cache) for one in demands], profile)
        for array, demands in asked
    }

"""Questions about several files: those with one structure get one advice, as one program reads them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hyperslab.advise.alike import Facts, facts_of, joined
from hyperslab.advise.asking import MOST_ARRAYS, Question, ask
from hyperslab.advise.demand import Demand
from hyperslab.advise.stored import Member, StoredArray, stored_arrays
from hyperslab.advise.traced_demands import SummarizedTrace, open_trace
from hyperslab.errors import HyperslabError, UsageError
from hyperslab.model.file_layout import file_and_array
from hyperslab.trace.trace import Trace

Traces = Sequence[tuple[Path | Trace, float]]
Asked = list[tuple[StoredArray, list[Demand]]]


def ask_about(
    targets: Sequence[str],
    traces: Traces,
    workload: Path | None,
    like: str | None,
    storage_options: Mapping[str, Any] | None = None,
) -> Question:
    """Find the arrays of several files and what is asked of them. Without targets, those that the traces name.

    Files that the traces do not name, but that have the structure of one that they do, get its advice.

    Raises
    ------
    UsageError
        Not exactly one of traces, workload and words was given, or it fits none of the files.
    """
    opened = [(open_trace(given), weight) for given, weight in traces]
    listed = list(dict.fromkeys(targets)) or traced_files([one for one, _ in opened])
    if len(listed) == 1:
        return ask(listed[0], opened, workload, like, storage_options)
    options = storage_options or {}
    questions: list[Question] = []
    failed: list[tuple[str, HyperslabError]] = []
    for target in listed:
        try:
            questions.append(ask(target, opened, workload, like, options, samples=False))
        except HyperslabError as error:
            failed.append((target, error))
    if not questions:
        raise failed[0][1]
    return _together(questions, failed, options)


def traced_files(opened: Sequence[SummarizedTrace]) -> list[str]:
    """The local files that traces name, if one of them is there: those that are gone are then left out by name.

    Raises
    ------
    UsageError
        None is there.
    """
    arrays = [summary.array for one in opened for summary in one.summaries]
    files = sorted({one.file for one in arrays if one.is_local})
    if any(Path(file).exists() for file in files):
        return files
    if not opened:
        raise UsageError("name a file: hyperslab advise FILE[:ARRAY], or a trace, whose files are then looked at")
    named = ", ".join(dict.fromkeys(one.file for one in arrays)) or "no file"
    raise UsageError(f"no file of the trace is there: it names {named}; name the file where it is now")


def _together(
    questions: Sequence[Question], failed: Sequence[tuple[str, HyperslabError]], options: Mapping[str, Any]
) -> Question:
    known: dict[Member, Facts] = {}
    for one in questions:
        names = [name for array, _ in one.arrays for _, name in array.members]
        known |= {(one.file, name): facts for name, facts in facts_of(one.file, names, options).items()}
    arrays = joined([each for one in questions for each in one.arrays], known)
    made = Question(questions[0].file, arrays, [], [one.file for one in questions[1:]], options)
    for one in questions:
        made.notes += [note if one.file in note else f"{one.file}: {note}" for note in one.notes]
    for target, error in failed:
        _add_untraced(made, target, error, known, options)
    made.notes = list(dict.fromkeys(made.notes))
    made.arrays.sort(key=lambda each: -_seconds(each[1]))
    if len(made.arrays) > MOST_ARRAYS:
        left = ", ".join(array.title for array, _ in made.arrays[MOST_ARRAYS:][:5])
        made.notes.append(f"only the {MOST_ARRAYS} most important kinds of arrays are looked at; left out: {left}")
        del made.arrays[MOST_ARRAYS:]
    made.arrays = [(_sampled(array, options), demands) for array, demands in made.arrays]
    return made


def _sampled(array: StoredArray, options: Mapping[str, Any]) -> StoredArray:
    """The array with a sample of its elements, which only one file of a structure has to give."""
    (stored,) = stored_arrays(array.file, [array.name], options, [])
    return replace(stored, alike=array.alike)


def _seconds(demands: Sequence[Demand]) -> float:
    return sum(one.weight * (one.measured_seconds or float(one.asked_nbytes)) for one in demands)


def _add_untraced(
    question: Question, target: str, error: HyperslabError, known: Mapping[Member, Facts], options: Mapping[str, Any]
) -> None:
    """Give a file that no trace names the advice for files of its structure; otherwise it is left out, and why."""
    path, name = file_and_array(target)
    try:
        mine = {} if name.strip("/") else facts_of(path, None, options)
    except (HyperslabError, OSError):
        mine = {}
    added = 0
    for place, (array, demands) in enumerate(question.arrays):
        facts = [(each, known.get((file, each))) for file, each in array.members]
        alike = dict.fromkeys(each for each, one in facts if one is not None and _is_like(mine.get(each), one))
        members = (*array.members, *((path, each) for each in alike))
        question.arrays[place] = (replace(array, alike=members if len(members) > 1 else ()), demands)
        added += len(alike)
    if added:
        question.others.append(path)
        question.notes.append(f"{path} is in no trace, but has the same structure, so it gets the same advice")
    else:
        question.notes.append(f"{target} is left out: {error}")


def _is_like(mine: Facts | None, other: Facts) -> bool:
    return mine is not None and mine.structure == other.structure

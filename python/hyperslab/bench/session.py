"""A bench session from request to results: choose cases, check them, start or resume the run, and write the results."""

from __future__ import annotations

import fnmatch
import os
import random
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from pydantic import ValidationError

import hyperslab
from hyperslab.bench.budgets import TimeLimit, looks_of, rule_of
from hyperslab.bench.cells import CellGroup
from hyperslab.bench.dask_workers import DaskWorkers
from hyperslab.bench.execution import Execution
from hyperslab.bench.histories import study as histories
from hyperslab.bench.histories.contenders import LIBRARIES, spelled
from hyperslab.bench.histories.study import HistoryCase
from hyperslab.bench.histories.trials import make, planned, tally_of
from hyperslab.bench.histories.trials import open_journal as open_histories
from hyperslab.bench.rankings import UNRANKED
from hyperslab.bench.results import (
    Run,
    RunDescription,
    load_description,
    load_run,
    open_journal,
    save_description,
    start_run,
    write_tables,
)
from hyperslab.bench.runner import check_groups, expand, expected, run_groups
from hyperslab.bench.scaling import scale_note, scaled
from hyperslab.bench.study import STUDIES_ARE_LISTED, Case, Scale, load, shipped
from hyperslab.bench.user_data import load_user_array
from hyperslab.declared import read
from hyperslab.errors import MissingLibrary, StudyError, UsageError
from hyperslab.formats import availability
from hyperslab.lab.environment import Environment, observe
from hyperslab.lab.rounds import Rounds, exactly
from hyperslab.meant import meant, meant_or_known
from hyperslab.needed import is_there, missing
from hyperslab.progress import Progress, watched
from hyperslab.scratch import scratch_below

DEFAULT_STUDY = "mine"


@dataclass(frozen=True)
class RunRequest:
    """The options of `hyperslab bench`. None means the study's own value."""

    studies: tuple[str, ...] = ()
    output: Path = Path("hyperslab-run")
    scale: Scale = "small"
    methods: tuple[str, ...] = ("fair",)
    formats: tuple[str, ...] | None = None
    conditions: tuple[str, ...] | None = None
    caches: tuple[str, ...] | None = None
    data: str | None = None
    trials: int | None = None
    until_decided: bool = False
    minutes: float | None = None
    scratch: Path | None = None
    resume: bool = False
    seed: int | None = None
    timeout_seconds: float = 900.0
    executor: DaskWorkers | None = field(default=None, compare=False)


# The options that change a case, by the keys that they change.
OPTIONS: dict[str | int, str] = {
    "formats": "--formats",
    "conditions": "--conditions",
    "caches": "--cache",
    "data_file": "--data",
}


FORMER_NAMES = {
    "seed0": "common-io",
    "seed1": "cost-model",
    "seed2": "formats-2002",
    "seed3": "cloud-2020",
    "seed4": "versioned",
}


def choose(names: Sequence[str]) -> list[Case | HistoryCase]:
    """Find cases by name: a case, a family, a pattern such as 'common-io-*', or the path of a study file."""
    chosen: dict[str, Case | HistoryCase] = {}
    known: list[Case | HistoryCase] = [*shipped(), *histories.shipped()]
    for name in names or (DEFAULT_STUDY,):
        if name.endswith((".yaml", ".yml")) or os.sep in name:
            matching = _load(Path(name))
        else:
            name = _current(name)
            matching = [case for case in known if fnmatch.fnmatchcase(case.name, name) or case.family == name]
        if not matching:
            families = sorted({case.family for case in known})
            near = meant(name, [*families, *(case.name for case in known)]) or f"; families: {', '.join(families)}"
            raise StudyError(f"unknown study {name!r}{near}; `hyperslab studies` lists all cases")
        for case in matching:
            if case.name in chosen and chosen[case.name] != case:
                raise StudyError(f"two different studies are named {case.name!r}; rename one")
            chosen[case.name] = case
    return list(chosen.values())


def _current(name: str) -> str:
    """A study by the name that it has now; the first names were numbers."""
    return next((new + name[len(old) :] for old, new in FORMER_NAMES.items() if name.startswith(old)), name)


def _load(path: Path) -> Sequence[Case | HistoryCase]:
    given = read(path, STUDIES_ARE_LISTED)
    return [histories.load(path, given)] if given.get("kind") == histories.KIND else load(path)


@watched("trials")
def run_bench(request: RunRequest, progress: Progress = lambda *_: None, say: Callable[[str], None] = print) -> Run:
    """Run a request, or resume an interrupted run. Returns the finished run, with its tables written.

    After Ctrl-C or on a full disk, the finished trials and their tables remain; the error is raised again afterwards.
    """
    is_new = not request.output.exists()
    _check_output(request.output)
    try:
        description = _resumed(request) if request.resume else _started(request)
    except UsageError:
        if is_new:
            with suppress(OSError):  # it is not there, or not empty
                request.output.rmdir()
        raise
    _check_libraries(description, say)
    scratch_parent = _scratch_parent(request, description.scratch)
    groups = expand(description.cases, description.methods)
    check_groups(groups, scratch_parent, description.environment.memory_nbytes)
    _say_what_is_left_out(description, say)
    if not request.resume:
        start_run(request.output, description)
    with scratch_below(scratch_parent, request.output) as scratch:
        try:
            _measure(request, description, groups, scratch, progress, say)
        except BaseException:
            with suppress(Exception):  # report the interruption, not this error
                finish(request.output)
            raise
    return finish(request.output)


def _measure(
    request: RunRequest,
    description: RunDescription,
    groups: Sequence[CellGroup],
    scratch: Path,
    progress: Progress,
    say: Callable[[str], None],
) -> None:
    execution = Execution(request.timeout_seconds, request.executor)
    plan = [group for case in description.histories for group in planned(case)]
    limit = TimeLimit(request.minutes, [*(len(group.cells) for group in groups), *map(len, plan)])
    with closing(execution.local):
        if groups:
            rule = rule_of(description)
            looks = looks_of(description) if description.trials is None else None
            with open_journal(request.output) as journal:
                rounds = Rounds(rule, description.seed, progress, expected(groups, rule), len(journal), limit.is_over)
                data_files = _save_data_files(description.cases, scratch)
                run_groups(groups, rounds, journal, execution, scratch, data_files, looks, limit)
        if plan and not limit.is_over():
            rule = exactly(description.trials or 1)
            with open_histories(request.output) as made:
                most = sum(map(len, plan)) * rule.most
                rounds = Rounds(rule, description.seed, progress, most, len(made), limit.is_over)
                for group in plan:
                    rounds.run(
                        group,
                        lambda one: made.append(make(one, execution.local, scratch, request.timeout_seconds)),
                        lambda one: tally_of(made.of(one.key)),
                        name=lambda one: one.name,
                    )
    if limit.is_over():
        again = f"hyperslab bench --resume -o {request.output}"
        say(f"the time ({request.minutes:g} minutes) is over; to measure the rest: {again}")


def finish(directory: Path) -> Run:
    """Read a run's journal and write all tables."""
    run = load_run(directory)
    write_tables(run)
    return run


def _save_data_files(cases: Sequence[Case], scratch: Path) -> dict[str, Path]:
    """Save your arrays as .npy files, so that workers can load them whatever format they came from."""
    origins = sorted({case.data_file for case in cases if case.data_file})
    paths = {origin: scratch / f"data-{k}.npy" for k, origin in enumerate(origins)}
    for origin, path in paths.items():
        np.save(path, load_user_array(origin))
    return paths


def _started(request: RunRequest) -> RunDescription:
    chosen = choose(request.studies)
    full = [_adapted(case, request) for case in chosen if isinstance(case, Case)]
    cases = [_in_scale(case, request) for case in full]
    notes = {a.name: note for a, b in zip(full, cases, strict=True) if (note := scale_note(a, b, request.scale))}
    formats = sorted({name for case in cases for name in case.formats})
    return RunDescription(
        version=hyperslab.__version__,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        scale=request.scale,
        methods=request.methods,
        seed=request.seed if request.seed is not None else random.SystemRandom().randrange(2**31),
        cases=tuple(cases),
        environment=observe(_scratch_parent(request, None), formats),
        histories=tuple(_adapted_histories(case, request) for case in chosen if isinstance(case, HistoryCase)),
        scale_notes=notes,
        trials=request.trials,
        until_decided=request.until_decided,
        scratch=None if request.scratch is None else str(request.scratch.absolute()),
    )


def _resumed(request: RunRequest) -> RunDescription:
    """The request of the interrupted run. Raises UsageError on another machine."""
    description = load_description(request.output)
    scratch = _scratch_parent(request, description.scratch)
    here: Environment = observe(scratch, list(description.environment.libraries))
    if differences := description.environment.differences(here):
        raise UsageError(f"{request.output} was started on another machine ({'; '.join(differences)}); start a new run")
    trials = request.trials if request.trials is not None or request.until_decided else description.trials
    until_decided = request.until_decided or (description.until_decided and trials is None)
    changed = replace(description, trials=trials, until_decided=until_decided)
    if changed != description:
        save_description(request.output, changed)
    return changed


def _in_scale(case: Case, request: RunRequest) -> Case:
    made = scaled(case, request.scale)
    # A study's scale may have cache states of its own; the user's have the last word.
    return made if request.caches is None else made.model_copy(update={"caches": list(request.caches)})


def _adapted(case: Case, request: RunRequest) -> Case:
    """The case with the request's data, formats, conditions and cache states, in full size."""
    update: dict[str, object] = {}
    origin = request.data or case.data_file
    if origin is not None:
        if case.properties is not None or case.replay is not None:
            raise UsageError(f"study {case.name} has its own arrays; use --data with `mine` or with your own study")
        data = load_user_array(origin)
        update |= {"data_file": origin, "shapes": [list(data.shape)], "counts": [1], "dtype": str(data.dtype)}
    if request.formats is not None:
        update["formats"] = _kept(case.name, "format", list(request.formats), list(request.formats))
    if request.conditions is not None:
        kept = _kept(case.name, "conditions", list(case.conditions), list(request.conditions))
        update["conditions"] = {name: case.conditions[name] for name in kept}
    if request.caches is not None:
        update["caches"] = list(request.caches)
    changed = case.model_copy(update=update).model_dump()
    try:
        return Case.model_validate(changed)
    except ValidationError as error:
        first = error.errors()[0]
        said = first["msg"].removeprefix("Value error, ").replace("Input should be", f"{first['input']!r} should be")
        raise UsageError(f"{OPTIONS.get(first['loc'][0], f'study {case.name}')}: {said}") from error


def _adapted_histories(case: HistoryCase, request: RunRequest) -> HistoryCase:
    """The study of histories with the request's scale, contenders and compressions."""
    if request.data is not None:
        raise UsageError(f"study {case.name} has its own files; use --data with `mine` or with your own study")
    if request.caches not in (None, ("warm",)):
        raise UsageError(f"study {case.name} reads warm files only; leave --cache out")
    full = case.scaled(request.scale)
    update: dict[str, object] = {}
    if request.formats is not None:
        by_option = {spelled(name): name for name in full.formats}
        kept = _kept(case.name, "format", list(by_option), list(request.formats))
        update["formats"] = [by_option[name] for name in kept]
    if request.conditions is not None:
        update["conditions"] = _kept(case.name, "conditions", full.conditions, list(request.conditions))
    return full.model_copy(update=update)


def _kept(case: str, what: str, known: list[str], asked: list[str]) -> list[str]:
    for name in asked:
        if name not in known:
            raise UsageError(f"study {case} has no {what} {name!r}{meant_or_known(name, known)}")
    return [name for name in known if name in asked]


def _check_libraries(description: RunDescription, say: Callable[[str], None]) -> None:
    """Say, before anything is measured, which formats cannot run here. Raises MissingLibrary if none can."""
    asked = dict.fromkeys(name for case in description.cases for name in case.formats if name not in UNRANKED)
    absent = {name: known for name in asked if isinstance(known := availability(name), MissingLibrary)}
    for name in (name for case in description.histories for name in case.formats):
        asked[name] = None
        library = LIBRARIES.get(name, "h5py")
        if not is_there(library):
            absent[name] = missing(library)
    if absent and len(absent) == len(asked):
        raise MissingLibrary("; ".join(dict.fromkeys(map(str, absent.values()))))
    for reason in dict.fromkeys(map(str, absent.values())):
        names = [name for name, known in absent.items() if str(known) == reason]
        say(f"left out: {', '.join(names)}, because {reason}")


def _say_what_is_left_out(description: RunDescription, say: Callable[[str], None]) -> None:
    if "published" not in description.methods:
        return
    every: list[Case | HistoryCase] = [*description.cases, *description.histories]
    without = [case.name for case in every if isinstance(case, HistoryCase) or not case.replay]
    if without and len(without) < len(every):
        say(f"only by the fair method, because no published one can be repeated: {', '.join(without)}")
    if len(without) == len(every) and list(description.methods) == ["published"]:
        raise UsageError("nothing has a published method; use --method fair")


def _check_output(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise UsageError(
            f"{directory} cannot be written ({error.strerror}); choose another directory with -o"
        ) from error


def _scratch_parent(request: RunRequest, known: str | None) -> Path:
    """Where measured files go: to the request's directory, or to that with which the run began."""
    directory = request.scratch or Path(known or request.output)
    if not directory.is_dir() or not os.access(directory, os.W_OK):
        raise UsageError(f"--scratch {directory} is not a directory that you can write to")
    return directory

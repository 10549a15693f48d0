"""A bench session from request to results: choose cases, check, run or resume, and write what people use."""

from __future__ import annotations

import fnmatch
import os
import random
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import hyperslab
from hyperslab.bench.cells import Group
from hyperslab.bench.dask_workers import DaskWorkers
from hyperslab.bench.ledger import Ledger, Progress
from hyperslab.bench.results import (
    JOURNAL_FILE,
    Journal,
    Run,
    RunDescription,
    load_description,
    load_run,
    load_trials,
    start_run,
    write_tables,
)
from hyperslab.bench.runner import POLICIES, Policy, Runner, check_room, expand
from hyperslab.bench.scaling import scaled
from hyperslab.bench.study import Case, Scale, load, shipped
from hyperslab.bench.user_data import load_user_array
from hyperslab.errors import StudyError, UsageError
from hyperslab.lab.environment import Environment, observe
from hyperslab.lab.scratch import scratch_below

DEFAULT_STUDY = "mine"


@dataclass(frozen=True)
class Request:
    """What a person asked of `hyperslab bench`. None means: as the study says."""

    studies: tuple[str, ...] = ()
    output: Path = Path("hyperslab-run")
    scale: Scale = "small"
    methods: tuple[str, ...] = ("fair",)
    formats: tuple[str, ...] | None = None
    conditions: tuple[str, ...] | None = None
    caches: tuple[str, ...] | None = None
    data: str | None = None
    trials: int | None = None
    scratch: Path | None = None
    resume: bool = False
    seed: int | None = None
    timeout_seconds: float = 900.0
    executor: DaskWorkers | None = field(default=None, compare=False)


def choose(names: Sequence[str]) -> list[Case]:
    """The cases that names mean: a case, a family, a pattern such as 'seed0-*', or the path of a study file."""
    chosen: dict[str, Case] = {}
    known = shipped()
    for name in names or (DEFAULT_STUDY,):
        if name.endswith((".yaml", ".yml")) or os.sep in name:
            found = load(Path(name))
        else:
            found = [case for case in known if fnmatch.fnmatchcase(case.name, name) or case.family == name]
        if not found:
            families = sorted({case.family for case in known})
            raise StudyError(
                f"no study {name!r}; families: {', '.join(families)}; `hyperslab studies` lists every case"
            )
        for case in found:
            if case.name in chosen and chosen[case.name] != case:
                raise StudyError(f"two different studies are called {case.name!r}; rename one")
            chosen[case.name] = case
    return list(chosen.values())


def run_bench(request: Request, progress: Progress = lambda *_: None, say: Callable[[str], None] = print) -> Run:
    """Carry out a request, or go on with an interrupted one; gives the finished run with its tables written.

    Ctrl-C and a full disk leave the finished trials and their tables; both are raised again afterwards.
    """
    _check_output(request.output)
    scratch_parent = _existing(request.scratch or request.output)
    description = _resumed(request) if request.resume else _started(request, scratch_parent)
    cases = description.cases
    groups = expand(cases, description.methods)
    check_room(groups, scratch_parent, description.environment.memory_nbytes)
    _say_what_is_left_out(cases, description.methods, say)
    if not request.resume:
        start_run(request.output, description)
    with scratch_below(scratch_parent, request.output) as scratch:
        _run_groups(request, description, groups, scratch, progress)
    return finish(request.output)


def _run_groups(
    request: Request,
    description: RunDescription,
    groups: Sequence[Group],
    scratch: Path,
    progress: Progress,
) -> None:
    journal = Journal(request.output / JOURNAL_FILE)
    runner = Runner(
        Ledger(journal, load_trials(request.output), progress),
        scratch,
        _policy(request, description.scale),
        seed=description.seed,
        timeout_seconds=request.timeout_seconds,
        executor=request.executor,
        data_files=_save_data_files(description.cases, scratch),
    )
    try:
        runner.run(groups)
    except BaseException:
        with suppress(Exception):  # the interruption is what the user must hear of
            finish(request.output)
        raise
    finally:
        journal.close()


def finish(directory: Path) -> Run:
    """Read a run's journal and write every table that follows from it."""
    run = load_run(directory)
    write_tables(run)
    return run


def _save_data_files(cases: Sequence[Case], scratch: Path) -> dict[str, Path]:
    """Every user's array that a run writes, kept as .npy: workers load it into memory, whatever it came from."""
    origins = sorted({case.data_file for case in cases if case.data_file})
    return {origin: load_user_array(origin).save(scratch / f"data-{k}.npy") for k, origin in enumerate(origins)}


def _started(request: Request, scratch: Path) -> RunDescription:
    cases = [_adapted(case, request) for case in choose(request.studies)]
    formats = sorted({name for case in cases for name in case.formats})
    return RunDescription(
        version=hyperslab.__version__,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        scale=request.scale,
        methods=request.methods,
        seed=request.seed if request.seed is not None else random.SystemRandom().randrange(2**31),
        cases=tuple(cases),
        environment=observe(scratch, formats),
    )


def _resumed(request: Request) -> RunDescription:
    """What the interrupted run was asked; refuses to go on elsewhere than it began."""
    description = load_description(request.output)
    here: Environment = observe(request.output, list(description.environment.libraries))
    if differences := description.environment.differences(here):
        raise UsageError(f"{request.output} was begun on another machine ({'; '.join(differences)}); start a new run")
    return description


def _adapted(case: Case, request: Request) -> Case:
    """The case at the request's scale, for the request's data, formats, conditions and cache states."""
    update: dict[str, object] = {}
    origin = request.data or case.data_file
    if origin is not None:
        if case.properties is not None or case.replay is not None:
            raise UsageError(f"study {case.name} is about its own arrays; --data goes with `mine` or a study of yours")
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
    return scaled(Case.model_validate(changed), request.scale)


def _kept(case: str, what: str, known: list[str], asked: list[str]) -> list[str]:
    for name in asked:
        if name not in known:
            raise UsageError(f"study {case} has no {what} {name!r}; it has {', '.join(known)}")
    return [name for name in known if name in asked]


def _policy(request: Request, scale: Scale) -> Policy:
    policy = POLICIES[scale]
    if request.trials is None:
        return policy
    return replace(policy, least=request.trials, most=request.trials, most_seconds=float("inf"))


def _say_what_is_left_out(cases: Sequence[Case], methods: Sequence[str], say: Callable[[str], None]) -> None:
    if "published" not in methods:
        return
    without = [case.name for case in cases if not case.replay]
    if without:
        say(f"no published method is known for {', '.join(without)}: only --method fair measures it")
    if len(without) == len(cases) and list(methods) == ["published"]:
        raise UsageError("nothing to run by the published method; use --method fair")


def _check_output(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise UsageError(
            f"{directory} cannot be written ({error.strerror}); choose another directory with -o"
        ) from error


def _existing(directory: Path) -> Path:
    if not directory.is_dir() or not os.access(directory, os.W_OK):
        raise UsageError(f"--scratch {directory}: not a directory that can be written")
    return directory

"""An evaluation from request to results: measure (or load earlier measurements), judge, and write the files."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hyperslab.errors import RunError, UsageError
from hyperslab.lab.environment import observe
from hyperslab.lab.rounds import StopRule
from hyperslab.lab.verdict import Verdict
from hyperslab.model.evaluation import Evaluation, evaluate
from hyperslab.model.measuring import CellTimings, disk_nbytes, measure
from hyperslab.model.paper_experiments import SCALES, Candidate, ScaleName, arrays, candidates
from hyperslab.model.store_profile import StoreProfile, load_store_profile
from hyperslab.model.takeaways import judge
from hyperslab.progress import Progress
from hyperslab.quantities import nbytes_text
from hyperslab.replacing import replace_with

MEASURED_FILE = "measured.json"
REPEATS = {"tiny": StopRule(1, 1), "quick": StopRule(6, 6), "full": StopRule(6, 8, most_seconds=5.0)}


@dataclass(frozen=True)
class Done:
    """An evaluation with its notes and warnings."""

    output: Path
    scale: ScaleName
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    environment: dict[str, Any]
    profile: StoreProfile
    measured: tuple[CellTimings, ...]
    missing: int  # cells of experiments that could not be measured
    serial: Evaluation
    verdicts: tuple[Verdict, ...]

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for JSON."""
        return {
            "serial": self.serial.to_dict(),
            "scale": self.scale,
            "scaled": list(self.notes),
            "warnings": list(self.warnings),
            "profile": {"store": self.profile.store, "made_at": self.profile.made_at, "scale": self.profile.scale},
            "environment": self.environment,
            "missing_cells": self.missing,
            "rejected_passes": sum(timings.rejected for timings in self.measured),
            "verdicts": [asdict(verdict) for verdict in self.verdicts],
        }


def run_evaluation(
    store_profile: Path | None,
    output: Path,
    directory: Path,
    scale: ScaleName,
    *,
    again: bool = False,
    progress: Progress = lambda *_: None,
    say: Callable[[str], None] = print,
) -> Done:
    """Run an evaluation and write its results. After Ctrl-C no measured files are left.

    Parameters
    ----------
    store_profile : Path | None
        The store profile to judge; None means the default one.
    output : Path
        The directory of the results.
    directory : Path
        Where the measured files are written.
    scale : ScaleName
        How large the experiments are.
    again : bool
        Use the measurements that `output` already holds.
    progress : Progress
        Called after each pass.
    say : Callable[[str], None]
        Called with notes and warnings.

    Returns
    -------
    Done
        The evaluation with its notes and warnings.

    Raises
    ------
    NotAStoreProfile
        The profile cannot be used.
    UsageError
        A directory cannot be written, or disk or memory is too small.
    """
    profile = load_store_profile(store_profile)
    _make_directories(output, directory)
    warnings = tuple(profile.differs_from_this_machine(directory))
    for reason in warnings:
        say(f"the store profile was made on another machine, or before something changed: {reason}")
    wanted = list(candidates(SCALES[scale]))
    notes = tuple(array.note for array in arrays(SCALES[scale]))
    path = output / MEASURED_FILE
    known = _saved(path, scale) if again else _measure(wanted, directory, scale, path, progress, say)
    planned, measured = _compared(wanted, known)
    evaluation = evaluate(planned, measured, profile)
    here = observe(directory, ["hdf5", "zarr3"]).to_dict()
    verdicts = tuple(judge(evaluation))
    missing = len(wanted) - len(planned)
    done = Done(output, scale, notes, warnings, here, profile, measured, missing, evaluation, verdicts)
    _write(output / "evaluation.json", json.dumps(done.to_dict(), indent=1))
    _write(output / "outcomes.csv", _table(done))
    return done


def _make_directories(*directories: Path) -> None:
    try:
        for directory in directories:
            directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{error.filename} cannot be created ({error.strerror}): choose another directory with -o or --dir"
        ) from error


def _measure(
    planned: list[Candidate],
    directory: Path,
    scale: ScaleName,
    path: Path,
    progress: Progress,
    say: Callable[[str], None],
) -> tuple[CellTimings, ...]:
    cells = [candidate.cell for candidate in planned]
    say(f"{len(cells)} cells; at most {nbytes_text(disk_nbytes(cells))} of disk at a time below {directory}")
    started = time.monotonic()
    measured = tuple(measure(cells, directory, REPEATS[scale], progress=progress, say=say))
    say(f"measured in {time.monotonic() - started:.0f} s")
    document = {"scale": scale, "cells": [each.to_dict() for each in measured]}
    _write(path, json.dumps(document))
    return measured


def _compared(
    wanted: list[Candidate], known: tuple[CellTimings, ...]
) -> tuple[list[Candidate], tuple[CellTimings, ...]]:
    """The candidates that were measured, without experiments in which a library is missing."""
    by_name = {_key(timings): timings for timings in known}
    pairs = [(each, by_name.get(_key(each))) for each in wanted]
    missing = {(each.question, each.layout) for each, timings in pairs if timings is None}
    both = [(each, timings) for each, timings in pairs if timings and (each.question, each.layout) not in missing]
    if not both:
        raise RunError(
            "no experiment was measured, because something keeps emptying the page cache: try again when the "
            "machine is idle"
        )
    return [each for each, _ in both], tuple(timings for _, timings in both)


def _key(each: Candidate | CellTimings) -> tuple[str, str]:
    return each.cell.file_key, each.cell.name


def _saved(path: Path, wanted: ScaleName) -> tuple[CellTimings, ...]:
    try:
        document = json.loads(path.read_text())
        scale, measured = document["scale"], tuple(CellTimings.from_dict(each) for each in document["cells"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} has no measurements ({error}): leave --again out to make them") from error
    if scale != wanted:
        raise UsageError(f"{path} has measurements of scale {scale}: give --{scale}, or leave --again out")
    return measured


def _write(path: Path, text: str) -> None:
    try:
        replace_with(path, text.encode())
    except OSError as error:
        raise RunError(f"{path} cannot be written ({error.strerror})") from error


def _table(done: Done) -> str:
    """A CSV table with the measured and predicted seconds of each cell."""
    models = list(done.serial.outcomes[0].predicted)
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(["question", "layout", "library", "passes", "rejected", "seconds", "low", "high", *models])
    for outcome, timings in zip(done.serial.outcomes, done.measured, strict=True):
        known = [outcome.question, outcome.layout, outcome.library, len(timings.passes), timings.rejected]
        figures = [outcome.seconds, outcome.low, outcome.high, *(outcome.predicted[name] for name in models)]
        table.writerow([*known, *("" if value is None else f"{value:.5g}" for value in figures)])
    return stream.getvalue()

"""An evaluation on drawn workloads, from request to results: draw, measure, judge, and write the files."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hyperslab.errors import Refused, RunError, TrialFailed, Untrained, UsageError
from hyperslab.lab.environment import Environment, observe
from hyperslab.lab.journal import Journal, load_lines
from hyperslab.lab.room import check_room
from hyperslab.lab.rounds import StopRule, trial_count
from hyperslab.model.accuracy import Outcome
from hyperslab.model.baselines import MEDIAN_OF_TRAINING, NEAREST, PAPERS_ALGORITHM, predicted_by_each
from hyperslab.model.calibration_journal import calibration_journal
from hyperslab.model.evaluation import MEASURED_AGAIN, halves, outcome_of
from hyperslab.model.generated.codecs import DrawnRates, rate_key, rates_of_drawn
from hyperslab.model.generated.drawing import LARGE, DrawnSize, DrawnWorkload, draw
from hyperslab.model.generated.scores import Scores, always, score
from hyperslab.model.installed import installed_hdf5, installed_zarr
from hyperslab.model.measuring import CellTimings, disk_nbytes, key_of, measure
from hyperslab.model.paper_experiments import Candidate
from hyperslab.model.predict import Prediction, predict_cell
from hyperslab.model.store_profile import StoreProfile, load_store_profile
from hyperslab.model.terms import BASELINES, EXTENDED, PAPER
from hyperslab.progress import Progress
from hyperslab.quantities import nbytes_text
from hyperslab.replacing import replace_with

# Six passes are the fewest that give an interval of the median.
RULE = StopRule(6, 6)
JOURNAL_FILE, MEASURED_FILE = "generated.measured.jsonl", "generated-measured.jsonl"
CODECS_FILE = "generated-codecs.json"
RESULT_FILE, OUTCOMES_FILE = "generated.json", "generated-outcomes.csv"
WHAT = "an evaluation"


@dataclass(frozen=True)
class Generated:
    """An evaluation on drawn workloads."""

    seed: int
    asked: int  # workloads
    seconds: float
    measured_at: str
    environment: Environment
    profile: StoreProfile
    warnings: tuple[str, ...]
    patterns: dict[str, str]  # by question
    outcomes: tuple[Outcome, ...]
    measured: tuple[CellTimings, ...]
    scores: dict[str, Scores]  # by model; our own first
    constant: dict[str, float]  # by library: how often naming it always is right
    extrapolating: int
    unpredicted: tuple[str, ...]  # cells that our model refuses to price, and why
    skipped: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for JSON. The scores of our model are its first values."""
        ours = self.scores[EXTENDED.name].to_dict()
        return {
            "generated": {
                **ours,
                "seconds": self.seconds,
                "seed": self.seed,
                "asked": self.asked,
                "measured_at": self.measured_at,
                "constant_library": self.constant,
                "by_pattern": {name: scores.to_dict() for name, scores in self.by_pattern().items()},
                "models": {name: scores.to_dict() for name, scores in self.scores.items() if name != EXTENDED.name},
                "extrapolating_cells": self.extrapolating,
                "unpredicted": list(self.unpredicted),
                "rejected_passes": sum(timings.rejected for timings in self.measured),
                "skipped": self.skipped,
                "profile": {key: getattr(self.profile, key) for key in ("store", "made_at", "scale")},
            },
            "environment": self.environment.to_dict(),
            "warnings": list(self.warnings),
        }

    def by_pattern(self) -> dict[str, Scores]:
        """The scores of our model for each pattern."""
        return {
            pattern: score([one for one in self.outcomes if self.patterns[one.question] == pattern], EXTENDED.name)
            for pattern in dict.fromkeys(self.patterns[one.question] for one in self.outcomes)
        }


@dataclass(frozen=True)
class Request:
    """What to evaluate, and where. `minutes` ends it early, after a whole workload."""

    count: int
    seed: int
    output: Path
    directory: Path
    size: DrawnSize = LARGE
    minutes: float | None = None
    resume: bool = False
    again: bool = False


def run_generated(
    store_profile: Path | None,
    request: Request,
    *,
    progress: Progress = lambda *_: None,
    say: Callable[[str], None] = print,
) -> Generated:
    """Draw workloads, measure and predict each of them with every layout and library, and write the results.

    After Ctrl-C no measured files are left, and `resume` continues with the cells that were not measured.

    Raises
    ------
    NotAStoreProfile
        The profile cannot be used.
    UsageError
        A directory cannot be written, disk or memory is too small, or there is nothing to resume.
    RunError
        No workload was measured.
    """
    profile = load_store_profile(store_profile)
    try:
        for directory in (request.output, request.directory):
            directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be created ({error.strerror}): give another -o or --dir") from error
    warnings = tuple(profile.differs_from_this_machine(request.directory))
    for reason in warnings:
        say(f"the store profile was made on another machine, or before something changed: {reason}")
    drawn = draw(request.count, request.seed, request.size)
    planned = [each.candidates((installed_hdf5(), installed_zarr())) for each in drawn]
    environment = observe(request.directory, ["hdf5", "zarr3"])
    started = time.monotonic()
    measured_at = datetime.now(UTC).isoformat(timespec="seconds")
    if request.again:
        known, seconds, measured_at = _saved(request)
    else:
        known = _measured(request, planned, environment, progress, say)
        seconds = time.monotonic() - started
        _keep(request, seconds, measured_at)
    rates = rates_of_drawn([cell for cells in planned for cell in cells], known, request.output / CODECS_FILE, progress)
    done = judged(drawn, planned, known, profile, say, rates)
    made = Generated(request.seed, request.count, round(seconds, 1), measured_at, environment, profile, warnings, *done)
    _write(request.output / RESULT_FILE, json.dumps(made.to_dict(), indent=1) + "\n")
    _write(request.output / OUTCOMES_FILE, _table(made))
    return made


# --- measuring -----------------------------------------------------------------------------------------------


def _measured(
    request: Request,
    planned: Sequence[Sequence[Candidate]],
    environment: Environment,
    progress: Progress,
    say: Callable[[str], None],
) -> list[CellTimings]:
    """Measure workload after workload, in separate processes. The passes of all layouts and libraries take turns."""
    cells = [[candidate.cell for candidate in each] for each in planned]
    most = max(disk_nbytes(each, together=True) for each in cells)
    array = max(cell.array_nbytes for each in cells for cell in each)
    check_room(
        f"evaluating {len(cells)} workloads", most, array, request.directory, environment.memory_nbytes,
        "give another --dir",
    )  # fmt: skip
    say(f"{len(cells)} workloads, {sum(map(len, cells))} cells; at most {nbytes_text(most)} of disk at a time")
    limit = float("inf") if request.minutes is None else time.monotonic() + 60 * request.minutes
    path = request.output / JOURNAL_FILE
    (request.output / CODECS_FILE).unlink(missing_ok=True)
    asked = {"seed": request.seed, "count": request.count, "size": repr(request.size)}
    expected = sum(trial_count(len(each), RULE) for each in cells)
    made = 0
    with calibration_journal(path, asked, environment, resume=request.resume, what=WHAT) as journal:
        for number, each in enumerate(cells, 1):
            if time.monotonic() > limit:
                say(f"stopped after {number - 1} of {len(cells)} workloads: --minutes {request.minutes:g} are over")
                break
            missing = [cell for cell in each if not journal.of(key_of(cell))]
            _measure_one(request, missing, journal, _counted_on(progress, made, expected, number, len(cells)), say)
            made += trial_count(len(each), RULE)
        return [timings for each in cells for cell in each for timings in journal.of(key_of(cell))[:1]]


def _measure_one(
    request: Request,
    cells: list[Any],
    journal: Journal[CellTimings],
    progress: Progress,
    say: Callable[[str], None],
) -> None:
    if not cells:
        return
    measuring = measure(cells, request.directory, RULE, seed=request.seed, together=True, progress=progress, say=say)
    try:
        with closing(measuring):
            for timings in measuring:
                journal.append(timings)
    except (Refused, TrialFailed) as error:
        say(f"{cells[0].name}: not measured: {error}")


def _counted_on(progress: Progress, made: int, expected: int, number: int, count: int) -> Progress:
    """Progress of one workload as part of all."""
    return lambda what, done, _: progress(f"{number} of {count}: {what}", made + done, expected)


def _keep(request: Request, seconds: float, measured_at: str) -> None:
    """Rename the journal of a finished evaluation, so that the next one can start. `--again` reads it."""
    path = request.output / JOURNAL_FILE
    if not path.exists():
        raise RunError("no workload was measured: something keeps emptying the page cache, or --minutes is too small")
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"seconds": round(seconds, 1), "measured_at": measured_at}) + "\n")
    path.replace(request.output / MEASURED_FILE)


def _saved(request: Request) -> tuple[list[CellTimings], float, str]:
    path = request.output / MEASURED_FILE
    try:
        header, *lines, last = load_lines(path)
        asked = header["asked"]
        if (asked["seed"], asked["count"], asked["size"]) != (request.seed, request.count, repr(request.size)):
            raise UsageError(
                f"{path} has measurements of --generated {asked['count']} --seed {asked['seed']}: give these, or "
                "leave --again out"
            )
        return [CellTimings.from_dict(each) for each in lines], float(last["seconds"]), str(last["measured_at"])
    except UsageError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} has no measurements ({error}): leave --again out to make them") from error


# --- judging -------------------------------------------------------------------------------------------------


def judged(
    drawn: Sequence[DrawnWorkload],
    planned: Sequence[Sequence[Candidate]],
    known: Sequence[CellTimings],
    profile: StoreProfile,
    say: Callable[[str], None] = lambda _: None,
    rates: DrawnRates | None = None,
) -> tuple[Any, ...]:
    """The last fields of `Generated`: outcomes and scores of all layouts whose libraries were all measured.

    `rates` has what the codecs cost on samples of the arrays.
    """
    by_key = {key_of(timings.cell): timings for timings in known}
    predicted: list[tuple[Candidate, CellTimings, Prediction]] = []
    unpredicted: list[str] = []
    for each in planned:
        chosen, refused = _predicted(each, by_key, profile, rates or {})
        predicted += chosen
        unpredicted += refused
    for reason in unpredicted:
        say(f"not predicted: {reason}")
    if not predicted:
        raise RunError("no workload was measured and predicted; see the messages above for the reasons")
    candidates, measured, ours = (list(column) for column in zip(*predicted, strict=True))
    by_model, skipped = predicted_by_each((PAPER, *BASELINES), ours, measured, profile)
    outcomes = tuple(map(outcome_of, candidates, measured, by_model, (one.cost for one in ours)))
    names = [PAPERS_ALGORITHM, PAPER.name, *(model.name for model in BASELINES), MEDIAN_OF_TRAINING, NEAREST]
    silent = [replace(one, stated=None) for one in outcomes]  # only our model states intervals
    scores = {EXTENDED.name: score(outcomes, EXTENDED.name)}
    scores |= {name: score(silent, name) for name in names if name not in skipped}
    if again := _measured_again(outcomes, measured):
        scores[MEASURED_AGAIN] = score(again, MEASURED_AGAIN)
    libraries = dict.fromkeys(one.library for one in outcomes)
    shares = {library: always(outcomes, library) for library in libraries}
    return (
        {each.name: each.pattern for each in drawn},
        outcomes,
        tuple(measured),
        scores,
        {library: share for library, share in shares.items() if share is not None},
        sum(bool(one.cost.extrapolating) for one in ours),
        tuple(unpredicted),
        skipped,
    )


def _predicted(
    candidates: Sequence[Candidate], by_key: dict[Any, CellTimings], profile: StoreProfile, rates: DrawnRates
) -> tuple[list[tuple[Candidate, CellTimings, Prediction]], list[str]]:
    """Measured candidates with our predictions. A layout counts only with all of its libraries."""
    predicted, refused, missing = [], [], set()
    for each in candidates:
        timings = by_key.get(key_of(each.cell))
        if timings is None:
            missing.add(each.layout)
            continue
        try:
            prediction = predict_cell(timings.cell, profile, rate=rates.get(rate_key(timings.cell)))
            reason = "; ".join(prediction.cost.unknown)
        except (Untrained, Refused) as error:
            reason = str(error)
        if reason:
            refused.append(f"{each.cell.library.name}, {each.layout}, {each.question}: {reason}")
            missing.add(each.layout)
        else:
            predicted.append((each, timings, prediction))
    return [one for one in predicted if one[0].layout not in missing], refused


def _measured_again(outcomes: Sequence[Outcome], measured: Sequence[CellTimings]) -> list[Outcome]:
    """Half of each cell's passes, predicted by the other half: no model can be better. Empty with a single pass."""
    pairs = [halves(timings) for timings in measured]
    if not all(other.passes for _, other in pairs):
        return []
    return [
        replace(one, seconds=half.median_seconds, predicted={MEASURED_AGAIN: other.median_seconds}, stated=None)
        for one, (half, other) in zip(outcomes, pairs, strict=True)
    ]


def _write(path: Path, text: str) -> None:
    try:
        replace_with(path, text.encode())
    except OSError as error:
        raise RunError(f"{path} cannot be written ({error.strerror})") from error


def _table(made: Generated) -> str:
    """A CSV table with the measured and predicted seconds of each cell."""
    models = [name for name in made.scores if name != MEASURED_AGAIN]
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(["question", "pattern", "layout", "library", "passes", "rejected", "seconds", "low", "high",
                    "stated_low", "stated_high", *models])  # fmt: skip
    for one, timings in zip(made.outcomes, made.measured, strict=True):
        known = [
            one.question,
            made.patterns[one.question],
            one.layout,
            one.library,
            len(timings.passes),
            timings.rejected,
        ]
        figures = [one.seconds, one.low, one.high, *(one.stated or (None, None))]
        figures += [one.predicted[name] for name in models]
        table.writerow([*known, *("" if value is None else f"{value:.5g}" for value in figures)])
    return stream.getvalue()

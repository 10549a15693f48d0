"""Trials by a published study's own method: write all formats, then read all, in the study's fixed order."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperslab.bench import cells
from hyperslab.bench.cells import CellGroup
from hyperslab.bench.operations import OPERATIONS, Operation
from hyperslab.bench.published import PublishedArrays, make_replay
from hyperslab.bench.records import Cell, Trial, trial_of
from hyperslab.errors import HyperslabError, NoSpace, Refused
from hyperslab.lab import cache
from hyperslab.lab.journal import Journal
from hyperslab.lab.rounds import Rounds
from hyperslab.lab.worker import LocalWorkers, Workbench


@dataclass(frozen=True)
class PublishedJob:
    """A worker's task: write or read as a published study did."""

    replay: str
    verb: str
    format: str
    path: Path
    arrays: PublishedArrays
    operation: Operation
    printed: Path  # a real file for what the study printed inside its timers

    def run(self, _: Workbench) -> dict[str, float]:
        """Run the study's own code."""
        replay = make_replay(self.replay)
        verb = replay.write if self.verb == "write" else replay.read
        with (
            open(self.printed, "w") as stream,
            contextlib.redirect_stdout(stream),
            contextlib.redirect_stderr(stream),  # warnings caused by a published program belong to it
        ):
            return verb(self.format, self.path, self.arrays, self.operation)


def run_published(
    journal: Journal[Trial],
    rounds: Rounds,
    workers: LocalWorkers,
    group: CellGroup,
    usable: list[Cell],
    directory: Path,
) -> None:
    """Make the trials of a group by its study's replay, until the time is over.

    A trial that the journal holds completely is not repeated.
    """
    replay = make_replay(group.case.replay or "")
    writes = [cell for cell in usable if OPERATIONS[cell.operation.name].verb == "write"]
    reads = [cell for cell in usable if OPERATIONS[cell.operation.name].verb == "read"]
    for number in range(replay.trials):
        # The first trials, which the study dropped, count as its warm-up.
        trial = number - replay.dropped if number >= replay.dropped else -1 - number
        if all(_has(journal, cell, trial) for cell in writes + reads):
            continue
        if rounds.is_over():
            return
        here = directory / f"trial-{number}"
        here.mkdir()
        for cell in writes + reads:
            if not _has(journal, cell, trial) or OPERATIONS[cell.operation.name].verb == "write":
                rounds.announce(cell.name)
                _trial(journal, workers, group, cell, here, trial)
        shutil.rmtree(here, ignore_errors=True)


def _has(journal: Journal[Trial], cell: Cell, number: int) -> bool:
    return any(trial.trial == number for trial in journal.of(cell.key))


def _trial(
    journal: Journal[Trial], workers: LocalWorkers, group: CellGroup, cell: Cell, here: Path, number: int
) -> None:
    dtype = cells.spec_of(group.case, cell).dtype
    compressed = cells.is_compressed(group.case, cell.conditions)
    verb = OPERATIONS[cell.operation.name].verb
    path = here / f"{cell.format}-{cell.conditions}"
    job = PublishedJob(
        replay=group.case.replay or "",
        verb=verb,
        format=cell.format,
        path=path,
        arrays=PublishedArrays(cell.shape, cell.count, dtype, group.case.properties, compressed),
        operation=cell.operation,
        printed=here / f"{cell.format}.out",
    )
    try:
        seconds: dict[str, float] = workers.worker(cell.format).ask(job)
    except NoSpace:
        raise
    except HyperslabError as error:
        status: Any = "refused" if isinstance(error, Refused) else "failed"
        trial = trial_of(cell, str(dtype), number, status, str(error))
    else:
        trial = _measured(journal, group, cell, number, seconds, path)
    if not _has(journal, cell, number):
        journal.append(trial)


def _measured(
    journal: Journal[Trial], group: CellGroup, cell: Cell, number: int, seconds: dict[str, float], path: Path
) -> Trial:
    stored, files = cache.disk_usage(path) if path.exists() else (None, None)
    figures: dict[str, Any] = {f"{phase}_seconds": value for phase, value in seconds.items()}
    return trial_of(
        cell,
        str(cells.array_dtype(group.case)),
        number,
        "ok",
        position=len(journal),
        layout="the study's own",
        decoded_nbytes=cells.asked_nbytes(group.case, cell),
        stored_nbytes=stored,
        file_count=files,
        **figures,
    )

"""The fair trials of one group: its files, their cache states, and the proof of each trial."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hyperslab.bench import cells
from hyperslab.bench.cells import CellGroup
from hyperslab.bench.execution import Execution
from hyperslab.bench.operations import OPERATIONS
from hyperslab.bench.rankings import headline_metric, round_of
from hyperslab.bench.records import WARM_UP, Cell, Trial, trial_of
from hyperslab.bench.trial import Job, Prepare
from hyperslab.errors import NoSpace, TrialFailed
from hyperslab.formats import make_format
from hyperslab.lab import cache
from hyperslab.lab.environment import pressure
from hyperslab.lab.fields import Field
from hyperslab.lab.journal import Journal
from hyperslab.lab.paired import Rounds
from hyperslab.lab.room import disk_full
from hyperslab.lab.rounds import Tally
from hyperslab.lab.served import ServedFiles
from hyperslab.lab.timers import Timing
from hyperslab.scratch import remove


class FairTrials:
    """The files of one group, and its trials."""

    def __init__(
        self, journal: Journal[Trial], execution: Execution, group: CellGroup, directory: Path, field: Field
    ) -> None:
        self._journal = journal
        self._execution = execution
        self._group = group
        self._served = ServedFiles(directory)
        self._directory = self._served.folder
        self._field = field
        self._prepared: dict[tuple[str, str], tuple[Path, str]] = {}
        self._round = max((trial.round or 0 for cell in group.cells for trial in journal.of(cell.key)), default=0)

    def begin_round(self) -> None:
        """Count a new round: what runs until the next one is compared trial by trial."""
        self._round += 1

    def warm_up(self, cell: Cell) -> None:
        """Make the first trial of a cell. A trial repeated after --resume is recorded again only if it failed."""
        trial = self._made(cell, WARM_UP)
        if trial.status == "failed" or not self._journal.of(cell.key):
            self._journal.append(trial)

    def make(self, cell: Cell) -> None:
        """Make one trial of a cell and record the result."""
        number = sum(trial.trial > WARM_UP for trial in self._journal.of(cell.key))
        self._journal.append(replace(self._made(cell, number), round=self._round))

    def _made(self, cell: Cell, number: int) -> Trial:
        verbs = {"write": self._write, "read": self._read, "modify": self._modify}
        state: dict[str, Any] = {"started_at": datetime.now(UTC).isoformat(timespec="milliseconds"), **pressure()}
        try:
            trial = verbs[OPERATIONS[cell.operation.name].verb](cell, number)
        except TrialFailed as failure:
            dtype = str(cells.spec_of(self._group.case, cell).dtype)
            trial = trial_of(cell, dtype, number, "failed", str(failure))
        except NoSpace as full:
            raise disk_full(self._directory.parent, cell.key, full, "trials") from full
        return replace(trial, position=len(self._journal), **state)

    def close(self) -> None:
        """Stop the file servers, if there are any."""
        self._served.close()

    def _job(self, cell: Cell, path: Path) -> Job:
        options = self._group.case.options.get(cell.format, {})
        spec = cells.spec_of(self._group.case, cell)
        return Job(cell.format, tuple(options.items()), cell.operation, spec, self._field, cell.count, path)

    def _path(self, cell: Cell, what: str) -> Path:
        extension = type(make_format(cell.format)).extension
        return self._directory / f"{what}-{cell.format}-{cell.conditions}{extension}"

    def _write(self, cell: Cell, number: int) -> Trial:
        """Write a new file, which is removed afterwards. Dirty pages of other files are synced first."""
        path = self._path(cell, "write")
        os.sync()
        try:
            measured = self._execution.run(self._group.case, cell, list(self._parts_of_write(cell, path)))
            layout = self._prepare(cell)[1] if number == WARM_UP else self._known_layout(cell)
            return self._trial(cell, number, measured, path, layout)
        finally:
            remove(path)

    def _parts_of_write(self, cell: Cell, path: Path) -> Iterator[Job]:
        """One job; for several processes, one job and one file each, with a share of axis 0."""
        job = self._job(cell, path)
        if cell.processes == 1 or self._group.case.launcher == "mpi":
            yield job
            return
        path.mkdir()
        length = cell.shape[0]
        for part in range(cell.processes):
            rows = length * (part + 1) // cell.processes - length * part // cell.processes
            shape = (rows, *cell.shape[1:])
            share = replace(cell, shape=shape)
            yield replace(
                job,
                spec=cells.spec_of(self._group.case, share),
                field=replace(self._field, shape=shape),
                path=path / f"part-{part}{path.suffix}",
                part=part,
                parts=cell.processes,
            )

    def _read(self, cell: Cell, number: int) -> Trial:
        """Read the file that all reads share, in the cell's cache state."""
        path, layout = self._prepare(cell)
        job = self._job(cell, path)
        if served := cells.server_of(self._group.case, cell):
            url, options = self._served.location(path, served.server or "", served.round_trip_ms)
            job = replace(job, url=url, storage_options=tuple(options.items()))
        jobs = [replace(job, part=k, parts=cell.processes) for k in range(cell.processes)]
        resident = cache.bring_about(cell.cache, cache.files_below(path))
        measured = self._execution.run(self._group.case, cell, jobs)
        trial = self._trial(cell, number, measured, path, layout)
        return self._proved(cell, replace(trial, resident_before=resident))

    def _modify(self, cell: Cell, number: int) -> Trial:
        """Change a file that was written for this trial alone."""
        path = self._path(cell, "modify")
        try:
            layout = self._write_untimed(cell, path)
            resident = cache.bring_about(cell.cache, cache.files_below(path))
            measured = self._execution.run(self._group.case, cell, [self._job(cell, path)])
            return replace(self._trial(cell, number, measured, path, layout), resident_before=resident)
        finally:
            remove(path)

    def _prepare(self, cell: Cell) -> tuple[Path, str]:
        """The file that reads of this cell's format and conditions share, with its true layout."""
        key = (cell.format, cell.conditions)
        if key not in self._prepared:
            path = self._path(cell, "read")
            try:
                self._prepared[key] = (path, self._write_untimed(cell, path))
            except BaseException:
                remove(path)
                raise
        return self._prepared[key]

    def _write_untimed(self, cell: Cell, path: Path) -> str:
        job = self._job(cell, path)
        layout: str = self._execution.local.worker(cell.format).ask(Prepare(job))
        return layout

    def _known_layout(self, cell: Cell) -> str | None:
        known = self._prepared.get((cell.format, cell.conditions))
        return known[1] if known else self._prepare(cell)[1]

    def _trial(self, cell: Cell, number: int, measured: Timing, path: Path, layout: str | None) -> Trial:
        stored, files = cache.disk_usage(path)
        figures: dict[str, Any] = {f"{phase}_seconds": seconds for phase, seconds in measured.seconds.items()}
        figures |= {each.name: getattr(measured, each.name) for each in fields(Timing) if each.name != "seconds"}
        figures |= {"layout": layout, "stored_nbytes": stored, "file_count": files}
        return trial_of(cell, str(cells.spec_of(self._group.case, cell).dtype), number, "ok", **figures)

    def _proved(self, cell: Cell, trial: Trial) -> Trial:
        """The trial, or a rejected copy with the reason if its cache state is not proved."""
        if cell.format == "null" or not trial.stored_nbytes:
            return trial
        if cell.cache != "unknown" and not self._execution.controls_cache(cell):
            return replace(trial, status="rejected", reason="it ran on another machine, whose page cache is unknown")
        least = int(0.9 * trial.stored_nbytes) if cell.operation.name == "read-all" else 1
        reason = cache.why_not(cell.cache, trial.resident_before, trial.device_read_nbytes, least)
        return replace(trial, status="rejected", reason=reason) if reason else trial


def seconds_of(cell: Cell, known: Sequence[Trial]) -> Rounds:
    """The headline seconds of a cell's accepted trials by round."""
    metric = headline_metric(cell.operation.name)
    accepted = [trial for trial in known if trial.trial > WARM_UP and trial.status == "ok"]
    return {round_of(trial): trial.metric(metric) or 0.0 for trial in accepted}


def tally_of(cell: Cell, known: Sequence[Trial]) -> Tally:
    """What the stop rule needs of a cell's trials, by the cell's headline metric."""
    metric = headline_metric(cell.operation.name)
    attempts = [trial for trial in known if trial.trial > WARM_UP]
    seconds = [trial.metric(metric) or 0.0 for trial in attempts if trial.status == "ok"]
    is_over = any(trial.status in ("failed", "refused") for trial in known)
    return Tally(seconds, len(attempts) - len(seconds), is_over)

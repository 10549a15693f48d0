"""Carry out a run: every cell in random order, round after round, until its interval is narrow enough.

A round gives each unfinished cell one trial, in an order drawn anew, so that a slow minute of the machine falls
on all formats alike. Every trial goes to the journal before the next begins; what the journal holds is not done
again. Nothing outside the run's own scratch directory is ever removed.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from hyperslab.bench import cache, cells, mpi
from hyperslab.bench.cells import Group
from hyperslab.bench.environment import pressure
from hyperslab.bench.fields import Field
from hyperslab.bench.patterns import OPERATIONS
from hyperslab.bench.records import Cell, Trial, blank_trial
from hyperslab.bench.results import Journal
from hyperslab.bench.statistics import headline_metric, interval_of_median
from hyperslab.bench.study import Case
from hyperslab.bench.trial import Job, Measured, disk_usage
from hyperslab.bench.worker import LocalWorkers, Prepare
from hyperslab.errors import NoSpace, TrialFailed, UsageError
from hyperslab.formats import make_format

WARM_UP = -1
# Trials of a cell that may fail their proof and be made again, before the cell is left with what it has.
MOST_REJECTED = 3


@dataclass(frozen=True)
class Policy:
    """How many trials a cell gets: `least`, then more until its interval is narrow, its time spent, or `most` made."""

    least: int
    most: int
    precision: float = 0.05  # half width of the median's interval / median
    most_seconds: float = 30.0  # of timed work in one cell


POLICIES = {
    "quick": Policy(3, 3),  # too few for an interval, so quick runs name no winner
    "small": Policy(6, 9, most_seconds=20.0),
    "paper": Policy(10, 30, precision=0.03, most_seconds=600.0),
}


class Executor(Protocol):
    """Whatever runs the parts of one trial: processes here, or those of a Dask cluster."""

    @property
    def controls_cache(self) -> bool:
        """Whether it runs where the bench controls the page cache."""

    def run(self, jobs: Sequence[Job]) -> Measured:
        """Run the parts side by side and combine what they found."""


Progress = Callable[[str, int, int], None]  # what is going on, trials done, trials expected at most


class Runner:
    """Runs groups of cells and writes the journal."""

    def __init__(
        self,
        journal: Journal,
        done: Iterable[Trial],
        scratch: Path,
        policy: Policy,
        *,
        seed: int,
        timeout_seconds: float,
        executor: Executor | None = None,
        data_files: Mapping[str, Path] | None = None,
        progress: Progress = lambda *_: None,
    ) -> None:
        self._journal = journal
        self._scratch = scratch
        self._policy = policy
        self._random = random.Random(seed)
        self._timeout = timeout_seconds
        self._local = LocalWorkers(timeout_seconds)
        self._executor: Executor = executor or self._local
        self._data_files = data_files or {}
        self._progress = progress
        self._trials: dict[str, list[Trial]] = defaultdict(list)
        for trial in done:
            self._trials[trial.cell_key].append(trial)
        self._position = sum(map(len, self._trials.values()))
        self._expected = 0
        self.failures: list[Trial] = []

    def run(self, groups: Sequence[Group]) -> None:
        """Carry out all groups. Raises NoSpace when the disk is full; finished trials are in the journal."""
        self._expected = sum(len(group.cells) * self._trials_of(group) for group in groups)
        try:
            for group in groups:
                self._run_group(group)
        finally:
            self._local.stop()

    def _trials_of(self, group: Group) -> int:
        if group.method == "published":
            from hyperslab.bench.published import make_replay

            return make_replay(group.case.replay or "").trials
        return self._policy.most + 1

    def _run_group(self, group: Group) -> None:
        usable = [cell for cell in group.cells if not self._refuse(group, cell)]
        if not any(self._unfinished(cell) for cell in usable):
            return
        directory = Path(tempfile.mkdtemp(prefix=f"{group.case.name}-", dir=self._scratch))
        try:
            if group.method == "published":
                from hyperslab.bench.published_run import run_published

                run_published(self, group, usable, directory)
            else:
                self._run_fair(group, usable, directory)
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _refuse(self, group: Group, cell: Cell) -> bool:
        reason = cells.refusal(group.case, cell)
        if reason is not None and not self._trials[cell.key]:
            self.record(blank_trial(cell, str(cells.array_dtype(group.case)), 0, "refused", reason))
        return reason is not None

    def record(self, trial: Trial) -> None:
        """Keep a finished trial, in memory and in the journal; a warm-up repeated after --resume is not kept twice."""
        if trial.trial == WARM_UP and trial.status == "ok" and self._trials[trial.cell_key]:
            return
        self._journal.append(trial)
        self._trials[trial.cell_key].append(trial)
        self._position += 1
        if trial.status == "failed":
            self.failures.append(trial)

    def has(self, cell: Cell, trial: int) -> bool:
        """Whether the journal holds this trial already."""
        return any(known.trial == trial for known in self._trials[cell.key])

    @property
    def local(self) -> LocalWorkers:
        """The workers on this machine."""
        return self._local

    @property
    def position(self) -> int:
        """The place of the next trial in the order of execution."""
        return self._position

    def announce(self, group: Group, cell: Cell) -> None:
        """Tell whoever watches what runs now."""
        what = f"{group.case.name} {cell.format} {cell.operation.name} {cell.conditions} {cell.cache}"
        self._progress(what, self._position, max(self._expected, self._position))

    # --- fair trials ----------------------------------------------------------------------------------------

    def _run_fair(self, group: Group, usable: list[Cell], directory: Path) -> None:
        field = replace(group.field, file=self._data_files.get(group.case.data_file or ""))
        bench = _FairGroup(self, group, directory, field)
        for cell in usable:
            if self._unfinished(cell) and not self._attempts(cell):
                bench.trial(cell, WARM_UP)
        while pending := [cell for cell in usable if self._unfinished(cell)]:
            self._random.shuffle(pending)
            for cell in pending:
                bench.trial(cell, len(self._attempts(cell)))
        self._expected -= sum(self._policy.most - len(self._attempts(cell)) for cell in usable)

    def _attempts(self, cell: Cell) -> list[Trial]:
        return [trial for trial in self._trials[cell.key] if trial.trial >= 0]

    def _unfinished(self, cell: Cell) -> bool:
        """Whether a cell needs more trials: the stop rule."""
        if any(trial.status in ("failed", "refused") for trial in self._trials[cell.key]):
            return False
        attempts = self._attempts(cell)
        accepted = sum(trial.status == "ok" for trial in attempts)
        if accepted >= self._policy.most or len(attempts) >= self._policy.most + MOST_REJECTED:
            return False
        metric = headline_metric(cell.operation.name)
        seconds = [t.phases.metric(metric) or 0.0 for t in attempts if t.status == "ok"]
        if len(seconds) < self._policy.least:
            return True
        if sum(seconds) > self._policy.most_seconds:
            return False
        interval = interval_of_median(seconds)
        median = float(np.median(seconds))
        return interval is None or (interval[1] - interval[0]) / 2 > self._policy.precision * median

    def execute(self, group: Group, cell: Cell, jobs: Sequence[Job]) -> Measured:
        """Run the parts of one trial wherever this run's trials run."""
        if group.case.launcher == "mpi":
            return mpi.run(jobs[0], cell.processes, self._timeout)
        return self._executor.run(jobs) if len(jobs) > 1 else self._local.run(jobs)

    def proved(self, cell: Cell, trial: Trial) -> Trial:
        """The trial as it is, or rejected with the reason why its cache state is not proved."""
        if cell.format == "null" or not trial.stored_nbytes:
            return trial
        if cell.processes > 1 and not self._executor.controls_cache and cell.cache != "unknown":
            return replace(trial, status="rejected", reason="it ran on another machine, whose page cache is unknown")
        least = int(0.9 * trial.stored_nbytes) if cell.operation.name == "read-all" else 1
        reason = cache.why_not(cell.cache, trial.resident_before, trial.device_read_nbytes, least)
        return replace(trial, status="rejected", reason=reason) if reason else trial


class _FairGroup:
    """The files of one group, and its trials one by one."""

    def __init__(self, runner: Runner, group: Group, directory: Path, field: Field) -> None:
        self._runner = runner
        self._group = group
        self._directory = directory
        self._field = field
        self._prepared: dict[tuple[str, str], tuple[Path, str]] = {}

    def trial(self, cell: Cell, number: int) -> None:
        """Make one trial of a cell and record what came of it."""
        self._runner.announce(self._group, cell)
        dtype = str(cells.spec_of(self._group.case, cell).dtype)
        verb = {"write": self._write, "read": self._read, "modify": self._modify}
        busy = pressure()
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            trial = verb[OPERATIONS[cell.operation.name].verb](cell, number)
        except TrialFailed as failure:
            trial = blank_trial(cell, dtype, number, "failed", str(failure))
        except NoSpace as full:
            free = shutil.disk_usage(self._directory).free
            raise NoSpace(
                f"the disk below {self._directory.parent} is full ({free / 1e6:.0f} MB left) in {cell.key}: {full}; "
                "free some space or give another --scratch, then --resume; finished trials are kept"
            ) from full
        self._runner.record(
            replace(
                trial,
                position=self._runner.position,
                started_at=started_at,
                io_pressure=busy.io_full_avg10,
                load=busy.load,
            )
        )

    def _job(self, cell: Cell, path: Path) -> Job:
        options = self._group.case.options.get(cell.format, {})
        spec = cells.spec_of(self._group.case, cell)
        return Job(cell.format, tuple(options.items()), cell.operation, spec, self._field, cell.count, path)

    def _path(self, cell: Cell, what: str) -> Path:
        extension = type(make_format(cell.format)).extension
        return self._directory / f"{what}-{cell.format}-{cell.conditions}{extension}"

    def _write(self, cell: Cell, number: int) -> Trial:
        """Into a file that does not exist, removed afterwards; dirty pages of others are synced before."""
        path = self._path(cell, "write")
        os.sync()
        try:
            measured = self._runner.execute(self._group, cell, list(self._parts_of_write(cell, path)))
            layout = self._prepare(cell)[1] if number == WARM_UP else self._known_layout(cell)
            return self._trial(cell, number, measured, path, layout)
        finally:
            _remove(path)

    def _parts_of_write(self, cell: Cell, path: Path) -> Iterator[Job]:
        """One job; or, for several processes, one file each with its share of axis 0."""
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
        """From the file that was prepared once for all reads, in the cache state that the cell names."""
        path, layout = self._prepare(cell)
        job = self._job(cell, path)
        jobs = [replace(job, part=k, parts=cell.processes) for k in range(cell.processes)]
        resident = cache.bring_about(cell.cache, cache.files_below(path))
        measured = self._runner.execute(self._group, cell, jobs)
        trial = self._trial(cell, number, measured, path, layout)
        return self._runner.proved(cell, replace(trial, resident_before=resident))

    def _modify(self, cell: Cell, number: int) -> Trial:
        """A file made for this trial alone, then changed."""
        path = self._path(cell, "modify")
        try:
            layout = self._write_untimed(cell, path)
            resident = cache.bring_about(cell.cache, cache.files_below(path))
            measured = self._runner.execute(self._group, cell, [self._job(cell, path)])
            return replace(self._trial(cell, number, measured, path, layout), resident_before=resident)
        finally:
            _remove(path)

    def _prepare(self, cell: Cell) -> tuple[Path, str]:
        """The file that reads of this cell's format and conditions share, and the layout it really has."""
        key = (cell.format, cell.conditions)
        if key not in self._prepared:
            path = self._path(cell, "read")
            try:
                self._prepared[key] = (path, self._write_untimed(cell, path))
            except BaseException:
                _remove(path)
                raise
        return self._prepared[key]

    def _write_untimed(self, cell: Cell, path: Path) -> str:
        job = self._job(cell, path)
        layout: str = self._runner.local.worker(cell.format).ask(Prepare(job))
        return layout

    def _known_layout(self, cell: Cell) -> str | None:
        known = self._prepared.get((cell.format, cell.conditions))
        return known[1] if known else self._prepare(cell)[1]

    def _trial(self, cell: Cell, number: int, measured: Measured, path: Path, layout: str | None) -> Trial:
        stored, files = disk_usage(path)
        found: dict[str, Any] = {f"{phase}_seconds": seconds for phase, seconds in measured.seconds.items()}
        names = (
            "cpu_seconds peak_rss_nbytes device_read_nbytes device_write_nbytes decoded_nbytes selection_count "
            "chunk_count read_amplification returned_dtype verified max_abs_error"
        )
        found |= {name: getattr(measured, name) for name in names.split()}
        blank = blank_trial(cell, str(cells.spec_of(self._group.case, cell).dtype), number, "failed", "")
        return replace(blank, status="ok", reason=None, layout=layout, stored_nbytes=stored, file_count=files, **found)


def _remove(path: Path) -> None:
    """Remove a file or tree that this run made."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def check_room(groups: Sequence[Group], scratch: Path, memory_nbytes: int | None) -> None:
    """Raise UsageError with figures when a run cannot fit the disk or memory; known before anything runs."""
    for group in groups:
        one = cells.file_nbytes(group.case, group.shape, group.count)
        files = {(cell.format, cell.conditions) for cell in group.cells}
        disk = one * (len(files) + 1)
        free = shutil.disk_usage(scratch).free
        if disk > free:
            raise UsageError(
                f"{group.case.name}: {len(files)} files of {one / 1e9:.1f} GB and one more at a time need "
                f"{disk / 1e9:.1f} GB below {scratch}, which has {free / 1e9:.1f} GB; a smaller --scale, fewer "
                "--formats, or another --scratch"
            )
        array = cells.file_nbytes(group.case, group.shape, 1)
        if memory_nbytes is not None and 3 * array > memory_nbytes:
            raise UsageError(
                f"{group.case.name}: an array of {array / 1e9:.1f} GB is held three times (written, read, compared), "
                f"memory is {memory_nbytes / 1e9:.1f} GB; a smaller --scale"
            )


def expand(cases: Sequence[Case], methods: Sequence[str]) -> list[Group]:
    """Every group of a run, in order. A case without a published method has none by that method."""
    return [
        group
        for case in cases
        for method in methods
        if method == "fair" or case.replay
        for group in cells.groups(case, method)  # type: ignore[arg-type]  # the command line checked the names
    ]

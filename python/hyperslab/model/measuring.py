"""Measure cells: each library in its own process, with proved cache states and interleaved repeats.

The lab's rounds make the passes, as they make the trials of a study. A trial is one named operation on a file that each
case creates anew. A pass is any workload, with a chunk cache and a cache state that a study cannot specify.

The seconds are what a user waits for: opening or creating, the accesses, and closing. Writes also include flushing and
fsync, because libraries defer writing, and nothing is safe until then. For library-warm cells, the seconds are those of
the accesses alone.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, get_args

import numpy as np

from hyperslab._core import Hyperslab, Points
from hyperslab.bench.operations import Operation
from hyperslab.bench.trial import Job, Prepare, array_name, finish
from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import Refused
from hyperslab.formats import make_format
from hyperslab.formats.contract import ArrayFile, ArrayHandle, ArraySpec, Format, Need
from hyperslab.formats.zarr_python import ZarrPython
from hyperslab.lab import cache
from hyperslab.lab.environment import observe
from hyperslab.lab.fields import Field
from hyperslab.lab.room import check_room
from hyperslab.lab.rounds import Rounds, StopRule, Tally, trial_count
from hyperslab.lab.statistics import interval_of_median
from hyperslab.lab.timers import Check, Counters, Timing
from hyperslab.lab.worker import LocalWorkers, Workbench
from hyperslab.memory import return_memory
from hyperslab.model.cells import ModelCell
from hyperslab.model.libraries import Flat, Hdf5, HyperslabEngine, Layout, Zarr
from hyperslab.model.workload import Step, Workload
from hyperslab.progress import Progress
from hyperslab.scratch import remove, scratch_below
from hyperslab.storage.layout import StoredLayout
from hyperslab.timers import Timers, compute_for

PHASES = ("create", "open", "access", "flush", "close", "fsync")
Measurable: TypeAlias = Hdf5 | Zarr | HyperslabEngine | Flat
MEASURABLE: dict[str, type[Measurable]] = {kind.name: kind for kind in get_args(Measurable)}
TIMEOUT_SECONDS = 600.0
RULE = StopRule(6, 6)  # fewer than six passes give no interval of the median


@dataclass(frozen=True)
class CellTimings:
    """One cell with the seconds by phase of each accepted pass."""

    cell: ModelCell  # its layout has the measured ratio
    passes: tuple[dict[str, float], ...]
    rejected: int = 0
    reason: str | None = None  # why the last rejected pass was rejected
    device_read_nbytes: int | None = None  # in the last accepted pass
    stored_nbytes: int | None = None

    @property
    def seconds(self) -> tuple[float, ...]:
        """The seconds of each pass."""
        counted = ("access",) if self.cell.cache == "library-warm" else PHASES
        return tuple(sum(phases.get(phase, 0.0) for phase in counted) for phases in self.passes)

    @property
    def median_seconds(self) -> float:
        """The median over the passes."""
        return float(np.median(self.seconds))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the median, or None if there are fewer than six passes."""
        return interval_of_median(self.seconds)

    def phase_seconds(self, phase: str) -> float | None:
        """The median of one phase, or None if it was not timed."""
        timed = [phases[phase] for phases in self.passes if phase in phases]
        return float(np.median(timed)) if timed else None

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for JSON."""
        cell = self.cell
        return {
            "workload": cell.workload.model_dump(exclude_defaults=True),
            "layout": cell.layout.to_dict(),
            "library": {"name": cell.library.name, **asdict(cell.library)},
            "cache": cell.cache,
            "elements": cell.elements,
            "passes": list(self.passes),
            "rejected": self.rejected,
            "reason": self.reason,
            "device_read_nbytes": self.device_read_nbytes,
            "stored_nbytes": self.stored_nbytes,
        }

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> CellTimings:
        """The inverse of `to_dict`. Raises KeyError, TypeError or ValueError if `given` has another form."""
        library: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in given["library"].items()}
        layout: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in given["layout"].items()}
        cell = ModelCell(
            Workload.model_validate(given["workload"]),
            Layout(**layout),
            MEASURABLE[library.pop("name")](**library),
            given["cache"],
            given["elements"],
        )
        rest = {key: given[key] for key in ("rejected", "reason", "device_read_nbytes", "stored_nbytes")}
        return cls(cell, tuple(given["passes"]), **rest)


def disk_nbytes(cells: Iterable[ModelCell], *, together: bool = False) -> int:
    """The most bytes of disk that measuring needs: one group of files at a time, plus the file being written."""
    return max((_group_nbytes(group) for group in _groups(cells, together=together)), default=0)


def measure(
    cells: Sequence[ModelCell],
    directory: Path,
    rule: StopRule = RULE,
    *,
    seed: int = 0,
    together: bool = False,
    progress: Progress = lambda *_: None,
    say: Callable[[str], None] = lambda _: None,
) -> Generator[CellTimings, None, None]:
    """Measure cells on the file system of `directory`, and yield each group of cells as soon as it is done.

    Cells with the same array and layout form a group. Its files are written once for each library, and removed when the
    group is done. Passes are made in random order, round after round, so that drift affects all cells of a group alike.
    A first pass that is not timed compares what was read or written with what it should be. If no pass of a cell can
    prove its cache state, because another program fills or empties the page cache, `say` reports the cell and it is not
    yielded.

    Parameters
    ----------
    cells : Sequence[ModelCell]
        The cells to measure.
    directory : Path
        Where files are written. They are removed at the end.
    rule : StopRule
        When a cell has enough passes.
    seed : int
        Seed of the order of passes.
    together : bool
        Make the passes of all layouts of an array in turn. This needs disk for all of them.
    progress : Progress
        Called after each pass.
    say : Callable[[str], None]
        Called with a message about each cell that could not be measured.

    Yields
    ------
    CellTimings
        The timings of each measured cell.

    Raises
    ------
    Refused
        A library cannot store a layout or make one of the accesses.
    UsageError
        Disk or memory is too small. This is checked before anything runs.
    TrialFailed
        A worker died, or read other elements than were written.
    """
    for cell in cells:
        _refuse(cell)
    array = max((cell.array_nbytes for cell in cells), default=0)
    hint = "--quick needs less, or give another --dir"
    needed = disk_nbytes(cells, together=together)
    check_room("measuring", needed, array, directory, observe(directory, []).memory_nbytes, hint)
    workers = LocalWorkers(TIMEOUT_SECONDS)
    with scratch_below(directory) as scratch, ExitStack() as ended:
        ended.callback(workers.close)
        make = partial(_LocalPasses, workers, scratch)
        yield from measure_by(make, cells, rule, seed=seed, together=together, progress=progress, say=say)


Key = tuple[str, str, str, str]


def key_of(cell: ModelCell) -> Key:
    """A key for a cell that is the same before and after measuring, which finds the ratio of its codec."""
    return cell.file_key, cell.workload.model_dump_json(exclude_defaults=True), repr(cell.library), cell.cache


class Passes(ABC):
    """The passes of one group of cells, and their timings."""

    def __init__(self) -> None:
        self.found: dict[Key, CellTimings] = {}

    def tally(self, cell: ModelCell) -> Tally:
        """What is known of a cell so far."""
        timings = self.found.get(key_of(cell))
        return Tally(timings.seconds, timings.rejected) if timings else Tally()

    def check(self, cell: ModelCell) -> None:
        """Make a first pass without timing it: it compares what is read or written with what it should be."""
        self.found[key_of(cell)] = CellTimings(self.known(cell), ())
        self.make_pass(cell, check=True)

    def make(self, cell: ModelCell) -> None:
        """Make a pass and record its timing."""
        timings = self.found[key_of(cell)]
        made, reason = self.make_pass(cell)
        if reason is not None:
            timings = replace(timings, rejected=timings.rejected + 1, reason=reason)
        else:
            passes = (*timings.passes, made.seconds)
            timings = replace(timings, passes=passes, device_read_nbytes=made.device_read_nbytes)
        self.found[key_of(cell)] = timings

    def known(self, cell: ModelCell) -> ModelCell:
        """The cell, with the measured ratio of its codec."""
        return cell

    @abstractmethod
    def make_pass(self, cell: ModelCell, *, check: bool = False) -> tuple[Timing, str | None]:
        """Make one pass.

        Returns its timing, and why it does not count, if it does not. With `check`, it never counts.
        """

    def close(self) -> None:  # noqa: B027 - passes without files of their own have nothing to remove
        """Remove the files."""


def measure_by(
    make_passes: Callable[[], Passes],
    cells: Sequence[ModelCell],
    rule: StopRule = RULE,
    *,
    seed: int = 0,
    together: bool = False,
    progress: Progress = lambda *_: None,
    say: Callable[[str], None] = lambda _: None,
) -> Generator[CellTimings, None, None]:
    """Measure cells with passes of any kind. The other parameters are those of `measure`."""
    rounds = Rounds(rule, seed, progress, trial_count(len(cells), rule))
    for group in _groups(cells, together=together):
        with closing(make_passes()) as passes:
            rounds.run(
                group,
                passes.make,
                passes.tally,
                warm_up=passes.check,
                name=lambda cell: cell.name,
                is_cold=lambda cell: cell.cache == "cold",
            )
            for timings in passes.found.values():
                if timings.passes:
                    yield timings
                else:
                    say(f"{timings.cell.name}: no pass was accepted: {timings.reason}")


# --- files --------------------------------------------------------------------------------------------------


class _LocalPasses(Passes):
    """The files of one group. Each is written once and shared; each pass over a new array gets its own file."""

    def __init__(self, workers: LocalWorkers, scratch: Path) -> None:
        super().__init__()
        self._workers = workers
        self._directory = Path(tempfile.mkdtemp(dir=scratch))
        self._written: dict[str, int] = {}
        self._layouts: dict[str, int] = {}

    def known(self, cell: ModelCell) -> ModelCell:
        """The cell, with the measured ratio of its codec."""
        if cell.layout.codec is None:
            return cell
        job = _job(cell, self._path(cell))
        self._write(job)
        ratio = cell.array_nbytes / self._written[job.path.name]
        return replace(cell, layout=replace(cell.layout, ratio=ratio))

    def make_pass(self, cell: ModelCell, *, check: bool = False) -> tuple[Timing, str | None]:
        """Make one pass. Returns its timing, and why its cache state is not proved, if it is not."""
        path = self._path(cell)
        worker = self._workers.worker(_format_of(cell))
        if cell.cache == "new":
            path = path.with_name(f"new-{path.name}")
            os.sync()
            try:
                return worker.ask(Pass(_job(cell, path), cell, check)), None
            finally:
                remove(path)
        job = _job(cell, path)
        self._write(job)
        resident = None if check else _bring_about(cell, cache.files_below(path))
        made: Timing = worker.ask(Pass(job, cell, check))
        if check:
            return made, None
        state = "cold" if cell.cache == "cold" else "warm"
        least = 0 if cell.writes else 1  # writing whole chunks does not have to read any
        return made, cache.why_not(state, resident, made.device_read_nbytes, least)

    def close(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._directory, ignore_errors=True)

    def _path(self, cell: ModelCell) -> Path:
        made = make_format(_format_of(cell))
        index = getattr(cell.library, "index", "")
        number = self._layouts.setdefault(cell.file_key, len(self._layouts))
        return self._directory / f"{made.name}-{index}-{number}{made.extension}"

    def _write(self, job: Job) -> None:
        if job.path.name not in self._written:
            self._workers.worker(job.format).ask(Prepare(job))
            self._written[job.path.name] = cache.disk_usage(job.path)[0]


def _bring_about(cell: ModelCell, paths: Sequence[Path]) -> float | None:
    """Put the files into the cell's cache state. Files that are warm already are left as they are."""
    if cell.cache == "cold":
        return cache.bring_about("cold", paths)
    resident = cache.resident_fraction(paths)
    return resident if resident == 1 else cache.bring_about("warm", paths)


# --- what a worker does -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pass:
    """A worker's task: make the accesses of a cell once. With `check` nothing is timed and each result is compared."""

    job: Job
    cell: ModelCell
    check: bool

    def run(self, bench: Workbench) -> Timing:
        """Open or create, make the accesses, and close."""
        made = self.job.make_format()
        made.library()  # imports the library, so that no pass pays for the import
        source, steps = bench.arrays(self.job.field, self.job.spec.dtype)(0), self.cell.workload.steps()
        new = [np.ascontiguousarray(source[_index(step)]) if _is_write(step) else None for step in steps]
        timers = Timers()
        opened, handle = self._open(made, timers)
        for step in steps if self.cell.cache == "library-warm" else ():
            _read(handle, step)
        verify = Check(exact=True) if self.check else None
        with bench.undisturbed(self._allocated_nbytes(steps)):
            return_memory()  # a program that starts has none that it could use again
            counters = Counters()
            for step, data in zip(steps, new, strict=True):
                with timers("access"):
                    if data is not None:
                        handle.write(data, _hyperslab(step))
                    elif verify is None:
                        _read(handle, step)
                    else:
                        verify(_read(handle, step), source[_index(step)], self.cell.name)
                if verify is None:
                    compute_for(step.compute_seconds)
            if self.cell.writes:
                finish(opened, self.job.path, timers)
            else:
                with timers("close"):
                    opened.close()
        timing = counters.measured(timers, 0)
        if verify is not None and self.cell.writes:
            self._verify_written(made, source, steps, verify)
        return timing

    def _allocated_nbytes(self, steps: list[Step]) -> int:
        """The most memory that is allocated: the largest selection, plus the pages of the file that are not cached."""
        largest = self.cell.workload.largest_nbytes(steps)
        return largest + (self.cell.array_nbytes if self.cell.cache in ("cold", "new") else 0)

    def _open(self, made: Format, timers: Timers) -> tuple[ArrayFile, Any]:
        if self.cell.cache == "new":
            with timers("create"):
                opened = made.create(self.job.path)
                return opened, opened.create_array(array_name(0), self.job.spec)
        if self.cell.cache == "library-warm" and isinstance(made, ZarrPython):
            opened = made.open_in_memory(self.job.path)
            return opened, opened.open_array(array_name(0), self.job.spec)
        with timers("open"):
            opened = made.open(self.job.path, "r+" if self.cell.writes else "r")
            return opened, opened.open_array(array_name(0), self.job.spec)

    def _verify_written(self, made: Format, source: np.ndarray, steps: list[Step], verify: Check) -> None:
        """Compare only what the steps wrote: a new array has nothing else."""
        opened = made.open(self.job.path)
        handle = opened.open_array(array_name(0), self.job.spec)
        for step in filter(_is_write, steps):
            verify(handle.read(_hyperslab(step)), source[_index(step)], self.cell.name)
        opened.close()


def _is_write(step: Step) -> bool:
    return step.operation == "write"


def _read(handle: ArrayHandle, step: Step) -> np.ndarray:
    """Read what a step selects, in one call."""
    return handle.read_points(step.selection) if isinstance(step.selection, Points) else handle.read(step.selection)


def _hyperslab(step: Step) -> Hyperslab:
    assert isinstance(step.selection, Hyperslab)  # `_refuse` lets no others be written
    return step.selection


def _index(step: Step) -> Any:
    """The index of a step's elements in an array of NumPy."""
    selection = step.selection
    return tuple(selection.coordinates.T) if isinstance(selection, Points) else selection.slices


# --- cells as the bench's formats see them ------------------------------------------------------------------


def _format_of(cell: ModelCell) -> str:
    library = cell.library
    if isinstance(library, Zarr):
        return "zarr3" if cell.layout.shard_shape is None else "zarr3-sharded"
    names = {Hdf5: "hdf5", HyperslabEngine: "hyperslab", Flat: "npy"}
    if type(library) not in names:
        raise Refused(f"{library.name} is an algorithm, not a library: it can be counted but not measured")
    return names[type(library)]


def _options_of(cell: ModelCell) -> tuple[tuple[str, Any], ...]:
    library = cell.opened
    if not isinstance(library, Hdf5):
        return ()
    named = {
        "rdcc_nbytes": library.chunk_cache_nbytes,
        "rdcc_nslots": library.chunk_cache_slots,
        "rdcc_w0": library.w0,
        "fills": library.fills,
        "libver": None if library.index == "btree_v1" else "latest",
    }
    return tuple(named.items())


def _spec_of(cell: ModelCell) -> ArraySpec:
    array, library = cell.workload.array, cell.library
    is_cut = not (isinstance(library, Flat) or cell.layout.contiguous)
    chunk_shape = cell.layout.chunk_shape if is_cut else None
    layout = StoredLayout(chunk_shape, cell.layout.shard_shape, codecs=cell.layout.codecs)
    growable = isinstance(library, Hdf5) and library.index == "extensible_array"
    return ArraySpec(tuple(array.shape), np.dtype(array.dtype), layout, growable)


def _job(cell: ModelCell, path: Path) -> Job:
    spec = _spec_of(cell)
    field = Field(cell.field, spec.shape, spec.dtype)
    return Job(_format_of(cell), _options_of(cell), Operation(name="write"), spec, field, 1, path)


def _refuse(cell: ModelCell) -> None:
    """Raise an error if the cell cannot be measured."""
    selects = {access.select for access in cell.workload.accesses}
    if {"append", "lists"} & selects or any(access.reopen for access in cell.workload.accesses):
        raise Refused(f"{cell.name}: opening again, appending, and lists of indices can be priced but not measured")
    if "points" in selects and (cell.writes or not isinstance(cell.library, Hdf5 | Zarr)):
        raise Refused(f"{cell.name}: points can be measured only for reads by HDF5 and Zarr")
    if cell.contradiction:
        raise Refused(f"{cell.name}: {cell.contradiction}")
    if isinstance(cell.library, Hdf5) and (cell.library.growing_axis or cell.library.mpi_writing):
        raise Refused(f"{cell.name}: growth along an axis other than 0, and MPI, cannot be measured")
    if isinstance(cell.library, Hdf5) and cell.library.index == "btree_v2":
        raise Refused(f"{cell.name}: growth along several axes can be counted but not measured")
    chosen = make_format(_format_of(cell), dict(_options_of(cell)))
    if reason := chosen.refusal(_spec_of(cell), Need(slices=True, overwrite=cell.writes and cell.cache != "new")):
        raise Refused(f"{cell.name}: {reason}")


def _groups(cells: Iterable[ModelCell], *, together: bool = False) -> list[list[ModelCell]]:
    """Group cells with the same array and layout, or with the same array, in the order of each group's first cell."""
    groups: dict[str, list[ModelCell]] = {}
    for cell in cells:
        groups.setdefault(repr(cell.workload.array) if together else cell.file_key, []).append(cell)
    return list(groups.values())


def _group_nbytes(group: list[ModelCell]) -> int:
    files: dict[tuple[str, str, str], int] = {}
    for cell in group:
        lengths = zip(cell.workload.array.shape, cell.layout.chunk_shape, strict=True)
        stored = cell.chunk_nbytes * int(np.prod([ceil_div(length, chunk) for length, chunk in lengths]))
        files[cell.file_key, _format_of(cell), getattr(cell.library, "index", "")] = stored
    return sum(files.values()) + (max(files.values()) if any(cell.cache == "new" for cell in group) else 0)

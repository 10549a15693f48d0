"""Measure cells for real: each library in a process of its own, caches brought about and proved, repeats interleaved.

The parts are the bench's: its formats write and open the files, its workers run the accesses, its cache states are
brought about and proved as for its trials. Its runner is not used: a cell of it is one named operation on a file that
every case makes anew, here it is any workload, with a chunk cache and a cache state that a study cannot name.

What counts is what a user waits for: opening or creating, the accesses, closing, and for what writes also flushing and
fsync, since libraries defer writing and until then nothing is safe. Library-warm, it is the accesses alone.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from hyperslab.bench import cache
from hyperslab.bench.environment import observe
from hyperslab.bench.fields import Field
from hyperslab.bench.patterns import Operation
from hyperslab.bench.scratch import scratch_below
from hyperslab.bench.statistics import interval_of_median
from hyperslab.bench.trial import Check, Counters, Job, Timers, Workbench, array_name, disk_usage
from hyperslab.bench.trial import Measured as PassFound
from hyperslab.bench.worker import LocalWorkers, Prepare
from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import Refused, UsageError
from hyperslab.formats import make_format
from hyperslab.formats.contract import ArrayFile, ArraySpec, Codec, Format, Need
from hyperslab.formats.contract import Layout as StoredLayout
from hyperslab.formats.zarr_python import ZarrPython
from hyperslab.model.cells import Cell
from hyperslab.model.libraries import Flat, Hdf5, Layout, Own, Zarr
from hyperslab.model.workload import Step, Workload

PHASES = ("create", "open", "access", "flush", "close", "fsync")
MEASURABLE: dict[str, type[Hdf5 | Zarr | Own | Flat]] = {kind.name: kind for kind in (Hdf5, Zarr, Own, Flat)}
MOST_REJECTED = 6
TIMEOUT_SECONDS = 600.0

Progress = Callable[[str, int, int], None]  # what is going on, passes done, passes expected at most


@dataclass(frozen=True)
class Repeats:
    """How often a cell is measured: `most` times, or, once its passes took `most_seconds`, at least `least` times."""

    least: int = 6  # below this a median has no interval
    most: int = 6
    most_seconds: float = 20.0


@dataclass(frozen=True)
class Measured:
    """What was found of a cell: the seconds by phase of each accepted pass."""

    cell: Cell  # its layout has the ratio that was found
    passes: tuple[dict[str, float], ...]
    rejected: int = 0
    reason: str | None = None  # why the last rejected pass was
    device_read_nbytes: int | None = None  # of the last accepted pass
    stored_nbytes: int | None = None

    @property
    def seconds(self) -> tuple[float, ...]:
        """Seconds of each pass."""
        counted = ("access",) if self.cell.cache == "library-warm" else PHASES
        return tuple(sum(found.get(phase, 0.0) for phase in counted) for found in self.passes)

    @property
    def median_seconds(self) -> float:
        """The median pass."""
        return float(np.median(self.seconds))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the median; None below six passes."""
        return interval_of_median(self.seconds)

    def phase_seconds(self, phase: str) -> float | None:
        """The median of one phase; None where it was not timed."""
        timed = [found[phase] for found in self.passes if phase in found]
        return float(np.median(timed)) if timed else None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        cell = self.cell
        return {
            "workload": cell.workload.model_dump(exclude_defaults=True),
            "layout": asdict(cell.layout),
            "library": {"name": cell.library.name, **asdict(cell.library)},
            "cache": cell.cache,
            "passes": list(self.passes),
            "rejected": self.rejected,
            "reason": self.reason,
            "device_read_nbytes": self.device_read_nbytes,
            "stored_nbytes": self.stored_nbytes,
        }

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Measured:
        """What `to_dict` gave; raises KeyError, TypeError or ValueError where it did not."""
        library = dict(given["library"])
        layout: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in given["layout"].items()}
        cell = Cell(
            Workload.model_validate(given["workload"]),
            Layout(**layout),
            MEASURABLE[library.pop("name")](**library),
            given["cache"],
        )
        rest = {key: given[key] for key in ("rejected", "reason", "device_read_nbytes", "stored_nbytes")}
        return cls(cell, tuple(given["passes"]), **rest)


def disk_nbytes(cells: Iterable[Cell]) -> int:
    """Bytes of disk that measuring needs at most: one group of files at a time, and one that is being written."""
    return max((_group_nbytes(group) for group in _groups(cells)), default=0)


def measure(
    cells: Sequence[Cell],
    directory: Path,
    repeats: Repeats | None = None,
    *,
    seed: int = 0,
    progress: Progress = lambda *_: None,
    say: Callable[[str], None] = lambda _: None,
) -> Generator[Measured, None, None]:
    """Measure cells on the file system of `directory`; gives each group of cells as soon as it is done.

    Cells that share an array and a layout are a group: its files are written once, one for each library, and removed
    when it is done. Passes are made in random order, round after round, so that drift falls on all cells of a group
    alike; what a pass reads, or wrote, is first compared with what it must be, in a pass that nobody times. A cell
    of which no pass proves its state, since another program fills or empties the page cache, is told and not given.

    Raises:
        Refused: A library cannot hold a layout, or do what is asked of it.
        UsageError: Disk or memory are too small; known before anything runs.
        TrialFailed: A worker died, or found other elements than were written.
    """
    groups = _groups(cells)
    for cell in cells:
        _refuse(cell)
    _check_room(groups, directory)
    workers = LocalWorkers(TIMEOUT_SECONDS)
    with scratch_below(directory) as scratch, ExitStack() as ended:
        ended.callback(workers.stop)
        yield from measure_by(lambda: _Files(workers, scratch), cells, repeats, seed=seed, progress=progress, say=say)


class Files(Protocol):
    """What the cells of one group are measured by."""

    def known(self, cell: Cell) -> Cell:
        """The cell with the ratio that its codecs reach."""

    def make_pass(self, cell: Cell, *, check: bool = False) -> tuple[PassFound, str | None]:
        """One pass, and why it does not count, if it does not; with `check` one that never does."""

    def remove(self) -> None:
        """Let go of them."""


def measure_by(
    make_files: Callable[[], Files],
    cells: Sequence[Cell],
    repeats: Repeats | None = None,
    *,
    seed: int = 0,
    progress: Progress = lambda *_: None,
    say: Callable[[str], None] = lambda _: None,
) -> Generator[Measured, None, None]:
    """The same, wherever the files of each group are."""
    repeats = repeats or Repeats()
    made, expected = itertools.count(), len(cells) * (repeats.most + 1)

    def announce(cell: Cell) -> None:
        progress(cell.name, min(next(made), expected - 1), expected)

    order = random.Random(seed)
    for group in _groups(cells):
        files = make_files()
        for found in _measure_group(group, files, repeats, order, announce):
            if found.passes:
                yield found
            else:
                say(f"{found.cell.name}: no pass was accepted: {found.reason}")
        files.remove()


def _measure_group(
    group: list[Cell], files: Files, repeats: Repeats, order: random.Random, announce: Callable[[Cell], None]
) -> list[Measured]:
    found = []
    for cell in group:
        announce(cell)
        found.append(Measured(files.known(cell), ()))
        files.make_pass(cell, check=True)
    places = list(range(len(group)))
    while pending := [k for k in places if _is_pending(found[k], repeats)]:
        order.shuffle(pending)
        # Making one file cold cools all others: cold passes of a round follow each other, before the rest or after it.
        colder = order.choice((True, False))
        for k in sorted(pending, key=lambda k: (group[k].cache == "cold") is colder):
            announce(group[k])
            found[k] = _with_pass(found[k], *files.make_pass(group[k]))
    return found


def _is_pending(measured: Measured, repeats: Repeats) -> bool:
    made = len(measured.passes)
    if made >= repeats.most or made + measured.rejected >= repeats.most + MOST_REJECTED:
        return False
    return made < repeats.least or sum(measured.seconds) < repeats.most_seconds


def _with_pass(measured: Measured, made: PassFound, reason: str | None) -> Measured:
    if reason is not None:
        return replace(measured, rejected=measured.rejected + 1, reason=reason)
    return replace(measured, passes=(*measured.passes, made.seconds), device_read_nbytes=made.device_read_nbytes)


# --- files --------------------------------------------------------------------------------------------------


class _Files:
    """The files of one group: each is written once and shared; new arrays get one of their own for each pass."""

    def __init__(self, workers: LocalWorkers, scratch: Path) -> None:
        self._workers = workers
        self._directory = Path(tempfile.mkdtemp(dir=scratch))
        self._written: dict[str, int] = {}

    def known(self, cell: Cell) -> Cell:
        """The cell with the ratio that its codecs reach."""
        if cell.layout.codec is None:
            return cell
        job = _job(cell, self._path(cell))
        self._write(job)
        ratio = cell.array_nbytes / self._written[job.path.name]
        return replace(cell, layout=replace(cell.layout, ratio=ratio))

    def make_pass(self, cell: Cell, *, check: bool = False) -> tuple[PassFound, str | None]:
        """One pass, and why its cache state is not proved, if it is not."""
        path = self._path(cell)
        worker = self._workers.worker(_format_of(cell))
        if cell.cache == "new":
            path = path.with_name(f"new-{path.name}")
            os.sync()
            try:
                return worker.ask(Pass(_job(cell, path), cell, check)), None
            finally:
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        job = _job(cell, path)
        self._write(job)
        resident = None if check else _bring_about(cell, cache.files_below(path))
        made: PassFound = worker.ask(Pass(job, cell, check))
        if check:
            return made, None
        state = "cold" if cell.cache == "cold" else "warm"
        least = 0 if cell.writes else 1  # what replaces whole chunks need not read any
        return made, cache.why_not(state, resident, made.device_read_nbytes, least)

    def remove(self) -> None:
        """Free the disk."""
        shutil.rmtree(self._directory, ignore_errors=True)

    def _path(self, cell: Cell) -> Path:
        made = make_format(_format_of(cell))
        index = getattr(cell.library, "index", "")
        return self._directory / f"{made.name}-{index}{made.extension}"

    def _write(self, job: Job) -> None:
        if job.path.name not in self._written:
            self._workers.worker(job.format).ask(Prepare(job))
            self._written[job.path.name] = disk_usage(job.path)[0]


def _bring_about(cell: Cell, paths: Sequence[Path]) -> float | None:
    """Put the files into the cell's state; what is warm already is left as it is."""
    if cell.cache == "cold":
        return cache.bring_about("cold", paths)
    resident = cache.resident_fraction(paths)
    return resident if resident == 1 else cache.bring_about("warm", paths)


# --- what a worker does -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pass:
    """Asks a worker to make the accesses of a cell once; with `check` untimed, and each is compared."""

    job: Job
    cell: Cell
    check: bool

    def run(self, bench: Workbench) -> PassFound:
        """Open or create, make the accesses, and close."""
        made = self.job.make_format()
        made.library()  # imports it: no pass pays for that
        source = bench.arrays(self.job)(0)
        steps = self.cell.workload.steps()
        new = [np.ascontiguousarray(source[step.selection.slices]) if _is_write(step) else None for step in steps]
        timers = Timers()
        opened, handle = self._open(made, timers)
        if self.cell.cache == "library-warm":
            for step in steps:
                handle.read(step.selection)
        verify = Check(exact=True) if self.check else None
        with bench.undisturbed(self._allocated_nbytes(steps)):
            counters = Counters()
            with timers("access"):
                for step, data in zip(steps, new, strict=True):
                    if data is not None:
                        handle.write(data, step.selection)
                    elif verify is None:
                        handle.read(step.selection)
                    else:
                        verify(handle.read(step.selection), source[step.selection.slices], self.cell.name)
            self._finish(opened, timers)
        found = counters.measured(timers, 0)
        if verify is not None and self.cell.writes:
            self._verify_written(made, source, steps, verify)
        return found

    def _allocated_nbytes(self, steps: list[Step]) -> int:
        """What is allocated at most: the largest of what is read, and pages of the file that are not cached."""
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

    def _finish(self, opened: ArrayFile, timers: Timers) -> None:
        if self.cell.writes:
            with timers("flush"):
                opened.flush()
        with timers("close"):
            opened.close()
        if self.cell.writes:
            with timers("fsync"):
                cache.make_durable(self.job.path)

    def _verify_written(self, made: Format, source: np.ndarray, steps: list[Step], verify: Check) -> None:
        """Only what the steps wrote: an array that is new has nothing else."""
        opened = made.open(self.job.path)
        handle = opened.open_array(array_name(0), self.job.spec)
        for step in filter(_is_write, steps):
            verify(handle.read(step.selection), source[step.selection.slices], self.cell.name)
        opened.close()


def _is_write(step: Step) -> bool:
    return step.operation == "write"


# --- cells as the bench's formats see them ------------------------------------------------------------------


def _format_of(cell: Cell) -> str:
    library = cell.library
    if isinstance(library, Zarr):
        return "zarr3" if cell.layout.shard_shape is None else "zarr3-sharded"
    names = {Hdf5: "hdf5", Own: "hyperslab", Flat: "npy"}
    if type(library) not in names:
        raise Refused(f"{library.name} is an algorithm, not a library: it can be counted, never measured")
    return names[type(library)]


def _options_of(cell: Cell) -> tuple[tuple[str, Any], ...]:
    library = cell.opened
    if not isinstance(library, Hdf5):
        return ()
    named = {
        "rdcc_nbytes": library.chunk_cache_nbytes,
        "rdcc_nslots": library.chunk_cache_slots,
        "rdcc_w0": library.w0,
        "libver": None if library.index == "btree_v1" else "latest",
    }
    return tuple(named.items())


def _spec_of(cell: Cell) -> ArraySpec:
    array, library = cell.workload.array, cell.library
    shape = tuple(array.shape)
    codecs = () if cell.layout.codec is None else (Codec.parse(cell.layout.codec),)
    is_cut = not (isinstance(library, Flat) or cell.layout.contiguous)
    layout = StoredLayout(cell.layout.chunk_shape if is_cut else None, cell.layout.shard_shape, codecs)
    growable = isinstance(library, Hdf5) and library.index == "extensible_array"
    return ArraySpec(shape, np.dtype(array.dtype), layout, growable)


def _job(cell: Cell, path: Path) -> Job:
    spec = _spec_of(cell)
    # What codecs are given must compress, as measurements do; other elements are as good as noise.
    field = Field("waves" if cell.layout.codec else "uniform", spec.shape, spec.dtype)
    return Job(_format_of(cell), _options_of(cell), Operation(name="write"), spec, field, 1, path)


def _refuse(cell: Cell) -> None:
    """Raise what makes a cell impossible to measure."""
    if any(access.weight != 1 for access in cell.workload.accesses):
        raise UsageError(f"{cell.name}: measuring makes every access once; weights must be 1")
    if cell.cache == "new" and any(access.operation == "read" for access in cell.workload.accesses):
        raise Refused(f"{cell.name}: what is new has nothing to read")
    if cell.cache == "library-warm" and (cell.writes or not isinstance(cell.library, Hdf5 | Zarr)):
        raise Refused(f"{cell.name}: only reads by HDF5 and Zarr can have a library that holds everything")
    if isinstance(cell.library, Hdf5) and (cell.library.growing_axis or cell.library.mpi_writing):
        raise Refused(f"{cell.name}: growth along another axis than 0 and MPI are not measured here")
    if isinstance(cell.library, Hdf5) and cell.library.index == "btree_v2":
        raise Refused(f"{cell.name}: growth along several axes is counted, not measured")
    if isinstance(cell.library, Own) and cell.writes:
        raise Refused(f"{cell.name}: our engine only reads")
    chosen = make_format(_format_of(cell), dict(_options_of(cell)))
    need = Need(slices=True, overwrite=cell.writes and cell.cache != "new")
    if reason := chosen.refusal(_spec_of(cell), need):
        raise Refused(f"{cell.name}: {reason}")


def _groups(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Cells that share an array and a layout, in the order of their first."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.file_key, []).append(cell)
    return list(groups.values())


def _group_nbytes(group: list[Cell]) -> int:
    lengths = zip(group[0].workload.array.shape, group[0].layout.chunk_shape, strict=True)
    stored = group[0].chunk_nbytes * int(np.prod([ceil_div(length, chunk) for length, chunk in lengths]))
    files = {(_format_of(cell), getattr(cell.library, "index", "")) for cell in group}
    return stored * (len(files) + any(cell.cache == "new" for cell in group))


def _check_room(groups: list[list[Cell]], directory: Path) -> None:
    needed = max(map(_group_nbytes, groups), default=0)
    free = shutil.disk_usage(directory).free
    if needed > free:
        raise UsageError(
            f"measuring needs {needed / 1e9:.1f} GB below {directory}, which has {free / 1e9:.1f} GB; "
            "--quick needs less, or give another --dir"
        )
    memory = observe(directory, []).memory_nbytes
    array = max((group[0].array_nbytes for group in groups), default=0)
    if memory is not None and 3 * array > memory:
        raise UsageError(
            f"an array of {array / 1e9:.1f} GB is held three times (written, read, compared), memory is "
            f"{memory / 1e9:.1f} GB; --quick needs less"
        )

"""Calibrate a far store: our own engine reads parts of a file by its URL.

Each pass opens the file anew in a new process, so that no connection is open and nothing is cached. A pass counts only
if its requests are exactly the predicted ones, and no request was repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import hyperslab.archive
from hyperslab.archive.far.remote import shown, stats
from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.group import Group
from hyperslab.errors import UsageError
from hyperslab.formats import make_format
from hyperslab.formats.contract import ArraySpec
from hyperslab.lab.environment import observe
from hyperslab.lab.fields import Field
from hyperslab.lab.rounds import StopRule
from hyperslab.lab.served import ServedFiles
from hyperslab.lab.timers import Timing
from hyperslab.lab.worker import LocalWorkers, Workbench
from hyperslab.model.calibrating import observation_of, profile_of
from hyperslab.model.cells import ModelCell
from hyperslab.model.counting import Variables, count_operations
from hyperslab.model.file_layout import layout_of
from hyperslab.model.libraries import MIB, Caches, HyperslabEngine, Layout
from hyperslab.model.measuring import TIMEOUT_SECONDS, Passes, measure_by
from hyperslab.model.store_profile import StoreProfile, elsewhere
from hyperslab.model.training import Scale
from hyperslab.model.workload import Workload
from hyperslab.progress import Progress, watched
from hyperslab.quantities import nbytes_text
from hyperslab.scratch import scratch_below
from hyperslab.storage.chain import CodecChain
from hyperslab.storage.layout import StoredLayout
from hyperslab.timers import Timers

SERVERS = ("nginx", "versitygw")  # that can be started on this machine
FORMAT = "hyperslab"
LIBRARY = HyperslabEngine(far=True)
COUNTED = ("request_count", "retry_count", "fetched_nbytes")  # from `stats`, over the accesses of a pass


@dataclass(frozen=True)
class FarTrainingSize:
    """How many arrays are read, and how many bytes one call may read at most."""

    array_count: int
    most_nbytes: int
    repeats: StopRule


SIZES: dict[Scale, FarTrainingSize] = {
    "quick": FarTrainingSize(4, 8 * MIB, StopRule(2, 3, 0.1)),
    "full": FarTrainingSize(8, 64 * MIB, StopRule(3, 7, 5.0)),
}
# Decoded bytes of a call's box, and the number of calls.
BOXES = ((8, 1), (8, 6), (64 << 10, 1), (256 << 10, 4), (MIB, 1), (8 * MIB, 1), (64 * MIB, 1))


@dataclass(frozen=True)
class FarFile:
    """A far file. `store` describes what is calibrated and may be published: it has no path, query or secret."""

    store: str
    url: str
    options: dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class FarArray:
    """An array of the file; its layout has the locations of its chunks."""

    name: str
    array: dict[str, Any]  # as in a workload
    layout: Layout

    def cells(self, most_nbytes: int) -> Iterator[ModelCell]:
        """Boxes of many sizes, long and tall, of at most `most_nbytes` bytes. Equal boxes appear once."""
        seen: set[Variables] = set()
        width = np.dtype(self.array["dtype"]).itemsize
        for nbytes, count in BOXES:
            for reverse in (False, True):
                shape = _box(self.array["shape"], max(1, nbytes // width), reverse)
                access = {"select": "random-boxes", "shape": shape, "count": count}
                workload = Workload.model_validate({"array": self.array, "accesses": [access], "seed": 20200615})
                cell = ModelCell(workload, self.layout, LIBRARY, "cold")
                variables = requests_of(cell)
                if 0 < variables.s_rdisk <= most_nbytes and variables not in seen:
                    seen.add(variables)
                    yield cell


def requests_of(cell: ModelCell) -> Variables:
    """The requests that the engine sends to the server for a cell."""
    return count_operations(cell)["read"]


def _box(shape: list[int], element_count: int, reverse: bool) -> list[int]:
    """A box of about `element_count` elements.

    It fills the last axis first (the first axis if `reverse`), then the next one.
    """
    box = [1] * len(shape)
    for axis in range(len(shape)) if reverse else reversed(range(len(shape))):
        box[axis] = min(shape[axis], element_count)
        element_count = max(1, element_count // box[axis])
    return box


def arrays_of(root: Group, most: int) -> list[FarArray]:
    """The largest arrays of an archive whose requests can be predicted, one of each layout."""
    by_layout: dict[str, FarArray] = {}
    readable = [array for array in root.walk() if not (array.damaged or array.unsupported) and array.size]
    for array in sorted(readable, key=lambda array: -array.nbytes):
        layout = layout_of(array) if array.dtype.kind in "iufb" and array.shape else None
        if layout is not None and layout.manifest is not None:
            asked = {"shape": list(array.shape), "dtype": array.dtype.str}
            key = repr((asked, layout.chunk_shape, layout.codec, layout.contiguous))
            by_layout.setdefault(key, FarArray(array.name, asked, layout))
    return list(by_layout.values())[:most]


@dataclass(frozen=True)
class FarPass:
    """A worker's task: open a far file and make the accesses of a workload once."""

    file: FarFile
    array: str
    workload: Workload

    def run(self, bench: Workbench) -> tuple[Timing, dict[str, int]]:
        """Open, make the accesses, and close. Returns the timing, and the engine's counters for the accesses."""
        timers, steps = Timers(), self.workload.steps()
        with bench.undisturbed(self.workload.largest_nbytes(steps)):
            with timers("open"):
                root = hyperslab.open(self.file.url, storage_options=self.file.options)
                array = root[self.array]
                assert isinstance(array, Array)
            before = stats()
            with timers("access"):
                for step in steps:
                    array.read(step.selection)
            after = stats()
            with timers("close"):
                root.close()
        return Timing(timers.seconds), {name: after[name] - before[name] for name in COUNTED}


def why_not(counted: dict[str, int], told: Variables) -> str | None:
    """Why a pass does not count, or None if its requests are the predicted ones and none was repeated."""
    if counted["retry_count"]:
        return f"{counted['retry_count']} requests were repeated"
    made, asked = (counted["request_count"], counted["fetched_nbytes"]), (int(told.n_rdisk), int(told.s_rdisk))
    if made != asked:
        return f"{made[0]} requests of {made[1]} bytes were made, but {asked[0]} of {asked[1]} bytes were predicted"
    return None


class _FarPasses(Passes):
    """Passes over the arrays of one file, each in a new process."""

    def __init__(self, workers: LocalWorkers, file: FarFile, arrays: dict[str, FarArray]) -> None:
        super().__init__()
        self._workers, self._file = workers, file
        self._arrays = arrays  # by `ModelCell.file_key`

    def make_pass(self, cell: ModelCell, *, check: bool = False) -> tuple[Timing, str | None]:
        """Make one pass. Returns its timing, and why it does not count, if it does not."""
        array, worker = self._arrays[cell.file_key], self._workers.worker(FORMAT)
        if check:  # the file's true content is not known here
            return Timing({}), None
        try:
            timing, counted = worker.ask(FarPass(self._file, array.name, cell.workload))
        finally:
            worker.stop()
        return timing, why_not(counted, requests_of(cell))


@watched("passes")
def calibrate_far(
    file: FarFile,
    scale: Scale = "quick",
    *,
    seed: int = 0,
    progress: Progress = lambda *_: None,
    say: Callable[[str], None] = lambda _: None,
) -> StoreProfile:
    """Measure what our own engine's reads from a store cost.

    Parameters
    ----------
    file : FarFile
        The file to read.
    scale : Scale
        `quick` or `full`.
    seed : int
        Seed of the order in which cells are measured.
    progress : Progress
        Called after each trial. Without it, notebooks show a bar after two seconds.
    say : Callable[[str], None]
        Called once, before measuring, with the number of bytes that will be read.

    Returns
    -------
    StoreProfile
        The coefficients of our engine's reads from this store.

    Raises
    ------
    UsageError
        The file has no suitable array.
    ReadError
        The file cannot be read.
    TooFewCells
        The arrays are too small or too similar for a fit.
    """
    size, notes, workers = SIZES[scale], list[str](), LocalWorkers(TIMEOUT_SECONDS)
    with hyperslab.open(file.url, storage_options=file.options) as root:
        far_arrays = arrays_of(root, size.array_count)
    if not far_arrays:
        raise UsageError(
            f"{file.store}: no array of this file can be used: it needs an array of numbers that keeps all of its "
            "chunks in the file, at known offsets; give the URL of an HDF5, NetCDF or FITS file"
        )
    planned = [(array, list(array.cells(size.most_nbytes))) for array in far_arrays]
    cells = [cell for _, cells in planned for cell in cells]
    if not cells:
        raise UsageError(
            f"{file.store}: every part of the file is larger than {size.most_nbytes >> 20} MiB: try --full"
        )
    arrays = {cell.file_key: array for array, cells in planned for cell in cells}
    nbytes = sum(requests_of(cell).s_rdisk for cell in cells) * size.repeats.most
    say(f"{len(cells)} cells; at most {nbytes_text(nbytes)} and {len(cells) * size.repeats.most} openings")
    with ExitStack() as ended:
        ended.callback(workers.close)
        measuring = measure_by(
            lambda: _FarPasses(workers, file, arrays),
            cells,
            size.repeats,
            seed=seed,
            progress=progress,
            say=notes.append,
        )
        measured = list(ended.enter_context(closing(measuring)))
    observed = [observation_of(each, Caches()) for each in measured]
    return profile_of(observed, elsewhere(observe(Path.cwd(), [FORMAT])), file.store, scale, notes, is_far=True)


def at_url(url: str, options: dict[str, Any]) -> FarFile:
    """A file of yours on a server or in a bucket."""
    protocol, _, rest = shown(url).partition("://")
    return FarFile(f"{protocol}://{rest.partition('/')[0]}", url, options)


@contextmanager
def served_here(server: str, round_trip_ms: float, directory: Path, scale: Scale) -> Iterator[FarFile]:
    """A training file on a server that is started on this machine, behind a network with a delay.

    Raises
    ------
    MissingLibrary
        The server, or the library that writes the file, is not installed.
    """
    with scratch_below(directory) as scratch, closing(ServedFiles(scratch)) as files:
        path = files.folder / "training.h5"
        _write(path, _specs(2048 if scale == "quick" else 8192))
        url, options = files.location(path, server, round_trip_ms)
        yield FarFile(f"{server}, {round_trip_ms:g} ms round trip", url, options)


def _specs(row_count: int) -> list[ArraySpec]:
    """Arrays in small adjacent chunks, in larger compressed chunks, and in one piece."""
    deflate = CodecChain.parse("shuffle+deflate:1")
    layouts = [
        StoredLayout((64, 64)),
        StoredLayout((256, 256), codecs=deflate),
        StoredLayout((1024, 1024), codecs=deflate),
        StoredLayout(),
    ]
    dtype = np.dtype("f4")
    return [ArraySpec((row_count + 256 * k, 2048), dtype, layout) for k, layout in enumerate(layouts)]


def _write(path: Path, specs: Iterable[ArraySpec]) -> None:
    made = make_format(FORMAT)
    made.library()
    file = made.create(path)
    for number, spec in enumerate(specs):
        source = Field("waves", spec.shape, spec.dtype)
        file.create_array(f"array_{number}", spec).write(source.array(source.buffer(), 0))
    file.close()

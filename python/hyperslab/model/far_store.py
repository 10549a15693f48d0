"""Calibrate a store far away: our own engine reads parts of a file by its URL.

Each pass opens the file anew, in a process of its own, so that no connection is open and nothing is kept. It counts
only if its requests are those that the model tells, and none was made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import hyperslab.archive
from hyperslab.archive.array import Array
from hyperslab.archive.remote import shown, stats
from hyperslab.archive.tree import Group
from hyperslab.errors import UsageError
from hyperslab.formats import make_format
from hyperslab.formats.contract import ArraySpec, Codec, StoredLayout
from hyperslab.lab.environment import observe
from hyperslab.lab.fields import Field
from hyperslab.lab.rounds import Progress, StopRule
from hyperslab.lab.scratch import scratch_below
from hyperslab.lab.served import ServedFiles
from hyperslab.lab.timers import Timers, Timing
from hyperslab.lab.worker import LocalWorkers, Workbench
from hyperslab.model.calibrate import observation_of, profile_of
from hyperslab.model.cells import ModelCell
from hyperslab.model.counting import Variables, count_operations
from hyperslab.model.file_layout import layout_of
from hyperslab.model.libraries import MIB, Caches, HyperslabEngine, Layout
from hyperslab.model.measuring import TIMEOUT_SECONDS, Passes, measure_by
from hyperslab.model.store_profile import StoreProfile, elsewhere
from hyperslab.model.training import Scale
from hyperslab.model.workload import Workload

SERVERS = ("nginx", "versitygw")  # that can be started here
FORMAT = "hyperslab"
LIBRARY = HyperslabEngine(far=True)
COUNTED = ("request_count", "retry_count", "fetched_nbytes")  # of `stats`, over the accesses of a pass


@dataclass(frozen=True)
class FarTrainingSize:
    """How much is read: of so many arrays, in calls of at most so many bytes."""

    array_count: int
    most_nbytes: int
    repeats: StopRule


SIZES: dict[Scale, FarTrainingSize] = {
    "quick": FarTrainingSize(4, 8 * MIB, StopRule(2, 3, 0.1)),
    "full": FarTrainingSize(8, 64 * MIB, StopRule(3, 7, 5.0)),
}
# Decoded bytes of a call's box, and how many calls are made.
BOXES = ((8, 1), (8, 6), (64 << 10, 1), (256 << 10, 4), (MIB, 1), (8 * MIB, 1), (64 * MIB, 1))


@dataclass(frozen=True)
class FarFile:
    """A file far away; `store` says what is calibrated, for others to read: no path, no query, no secret."""

    store: str
    url: str
    options: dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class FarArray:
    """An array of the file; its layout has the locations of its chunks."""

    name: str
    array: dict[str, Any]  # of a workload
    layout: Layout

    def cells(self, most_nbytes: int) -> Iterator[ModelCell]:
        """Boxes of many sizes, long ones and tall ones, as far as they ask for no more; alike ones once."""
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
    """What a cell makes us ask of the server."""
    return count_operations(cell)["read"]


def _box(shape: list[int], element_count: int, reverse: bool) -> list[int]:
    """About so many elements, as many as there are along the last axis (the first in reverse), then the next one."""
    found = [1] * len(shape)
    for axis in range(len(shape)) if reverse else reversed(range(len(shape))):
        found[axis] = min(shape[axis], element_count)
        element_count = max(1, element_count // found[axis])
    return found


def arrays_of(root: Group, most: int) -> list[FarArray]:
    """The largest arrays of an archive whose requests can be told, one of each layout."""
    found: dict[str, FarArray] = {}
    readable = [array for array in root.walk() if not (array.damaged or array.unsupported) and array.size]
    for array in sorted(readable, key=lambda array: -array.nbytes):
        layout = layout_of(array) if array.dtype.kind in "iufb" and array.shape else None
        if layout is not None and layout.manifest is not None:
            asked = {"shape": list(array.shape), "dtype": array.dtype.str}
            key = repr((asked, layout.chunk_shape, layout.codec, layout.contiguous))
            found.setdefault(key, FarArray(array.name, asked, layout))
    return list(found.values())[:most]


@dataclass(frozen=True)
class FarPass:
    """Asks a worker to open a file far away, and to make the accesses of a workload once."""

    file: FarFile
    array: str
    workload: Workload

    def run(self, bench: Workbench) -> tuple[Timing, dict[str, int]]:
        """Open, make the accesses, and close; gives what the engine counted of the accesses beside the seconds."""
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
    """Why a pass does not count; None if it made the requests that were told, and none twice."""
    if counted["retry_count"]:
        return f"{counted['retry_count']} requests were made again"
    found, asked = (counted["request_count"], counted["fetched_nbytes"]), (int(told.n_rdisk), int(told.s_rdisk))
    if found != asked:
        return f"{found[0]} requests of {found[1]} bytes were made, {asked[0]} of {asked[1]} told"
    return None


class _FarPasses(Passes):
    """Passes over the arrays of one file, each in a new process."""

    def __init__(self, workers: LocalWorkers, file: FarFile, arrays: dict[str, FarArray]) -> None:
        super().__init__()
        self._workers, self._file = workers, file
        self._arrays = arrays  # by `ModelCell.file_key`

    def make_pass(self, cell: ModelCell, *, check: bool = False) -> tuple[Timing, str | None]:
        """One pass, and how its requests differ from those that were told."""
        array, worker = self._arrays[cell.file_key], self._workers.worker(FORMAT)
        if check:  # nothing here knows better than the file what is in it
            return Timing({}), None
        try:
            timing, counted = worker.ask(FarPass(self._file, array.name, cell.workload))
        finally:
            worker.stop()
        return timing, why_not(counted, requests_of(cell))


def calibrate_far(
    file: FarFile,
    scale: Scale = "quick",
    *,
    seed: int = 0,
    progress: Progress = lambda *_: None,
    say: Callable[[str], None] = lambda _: None,
) -> StoreProfile:
    """What our own engine's reads of a store cost; `say` hears beforehand how many bytes they take.

    Raises
    ------
    UsageError
        No array of the file will do.
    ReadError
        The file cannot be read.
    TooFewCells
        Its arrays are too small, or too much alike, for a fit.
    """
    size, notes, workers = SIZES[scale], list[str](), LocalWorkers(TIMEOUT_SECONDS)
    with hyperslab.open(file.url, storage_options=file.options) as root:
        found = arrays_of(root, size.array_count)
    if not found:
        raise UsageError(
            f"{file.store}: the file has no array of numbers whose chunks are all in it, of which the requests can be "
            "told before; give the URL of an HDF5, NetCDF or FITS file"
        )
    planned = [(array, list(array.cells(size.most_nbytes))) for array in found]
    cells = [cell for _, cells in planned for cell in cells]
    if not cells:
        raise UsageError(f"{file.store}: any part of the file takes more than {size.most_nbytes >> 20} MiB; try --full")
    arrays = {cell.file_key: array for array, cells in planned for cell in cells}
    nbytes = sum(requests_of(cell).s_rdisk for cell in cells) * size.repeats.most
    say(f"{len(cells)} cells; at most {nbytes / 1e6:.0f} MB and {len(cells) * size.repeats.most} openings")
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
    """A user's file on a server or in a bucket."""
    protocol, _, rest = shown(url).partition("://")
    return FarFile(f"{protocol}://{rest.partition('/')[0]}", url, options)


@contextmanager
def served_here(server: str, round_trip_ms: float, directory: Path, scale: Scale) -> Iterator[FarFile]:
    """A file for training, on a server that is started here, behind a network that takes its time.

    Raises
    ------
    MissingLibrary
        The server, or what writes the file, is not installed.
    """
    with scratch_below(directory) as scratch, closing(ServedFiles(scratch)) as files:
        path = files.folder / "training.h5"
        _write(path, _specs(2048 if scale == "quick" else 8192))
        url, options = files.location(path, server, round_trip_ms)
        yield FarFile(f"{server}, {round_trip_ms:g} ms round trip", url, options)


def _specs(row_count: int) -> list[ArraySpec]:
    """In small chunks that come together, in larger ones that codecs made, and in one piece."""
    deflate = (Codec("shuffle"), Codec("deflate", 1))
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

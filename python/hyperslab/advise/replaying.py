"""Make calls on a file as a program would, in a worker process, with a proved cache state."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hyperslab._core import Hyperslab, Points
from hyperslab.advise.candidate import Candidate
from hyperslab.advise.demand import permuted
from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import Refused
from hyperslab.formats import make_format
from hyperslab.formats.contract import ArrayHandle, ArraySpec, Format
from hyperslab.lab import cache
from hyperslab.lab.timers import Counters, Timing
from hyperslab.lab.worker import Workbench
from hyperslab.model.workload import Step
from hyperslab.storage.layout import StoredLayout
from hyperslab.timers import Timers

ARRAY = "x"
WRITERS = {"hdf5": "hdf5", "netcdf4": "netcdf4", "zarr2": "zarr2", "zarr3": "zarr3"}


def writer_of(candidate: Candidate) -> str:
    """The format that writes a candidate's file.

    Raises
    ------
    Refused
        None of our formats writes it.
    """
    if candidate.layout.shard_shape is not None:
        return "zarr3-sharded"
    if candidate.format not in WRITERS:
        raise Refused(f"{candidate.format} cannot be written for verifying")
    return WRITERS[candidate.format]


def reader_of(candidate: Candidate) -> tuple[str, dict[str, Any]]:
    """The format that reads a candidate's file, and its options."""
    if candidate.reader == "hyperslab":
        return "hyperslab", {}
    if candidate.reader == "zarr":
        return writer_of(candidate), {}
    nbytes, slots = candidate.cache_nbytes, candidate.cache_slots
    if candidate.by_netcdf and nbytes is None:
        return "netcdf4", {}
    return "hdf5", {} if nbytes is None else {"rdcc_nbytes": nbytes, "rdcc_nslots": slots}


def spec_of(candidate: Candidate, shape: tuple[int, ...], dtype: np.dtype[Any]) -> ArraySpec:
    """The array as the candidate stores it."""
    stored = shape if candidate.order is None else tuple(shape[axis] for axis in candidate.order)
    layout = candidate.layout
    if layout.contiguous:
        return ArraySpec(stored, dtype, StoredLayout())
    chunk = tuple(min(pair) for pair in zip(layout.chunk_shape, stored, strict=True))
    shard = None
    if layout.shard_shape is not None:
        lengths = zip(layout.shard_shape, chunk, stored, strict=True)
        shard = tuple(max(c, min(s, ceil_div(n, c) * c) // c * c) for s, c, n in lengths)
    return ArraySpec(stored, dtype, StoredLayout(chunk, shard, codecs=candidate.encoding))


@dataclass(frozen=True)
class WriteFile:
    """A worker's task: write the elements in a candidate's layout."""

    candidate: Candidate
    spec: ArraySpec
    elements: Path  # .npy, in today's order of axes
    target: Path

    def run(self, bench: Workbench) -> int:  # noqa: ARG002 - a task's signature
        """Write the file. Returns its bytes."""
        source = np.load(self.elements, mmap_mode="r")
        if self.candidate.order is not None:
            source = source.transpose(self.candidate.order)
        made = make_format(writer_of(self.candidate))
        opened = made.create(self.target)
        opened.create_array(ARRAY, self.spec).write(np.ascontiguousarray(source))
        opened.close()
        cache.make_durable(self.target)
        return cache.disk_usage(self.target)[0]


@dataclass(frozen=True)
class Calls:
    """The calls of a demand as plain numbers, which another process can receive."""

    operations: tuple[str, ...]
    numbers: tuple[npt.NDArray[np.int64], ...]  # start, stride, count, block; or the rows of points
    reopens: tuple[str, ...] = ()  # what is closed and opened again before each: "file", "array" or ""

    @classmethod
    def of(cls, steps: list[Step], order: tuple[int, ...] | None) -> Calls:
        """The calls of these steps, for an array whose axes are stored in another order if `order` is given."""
        mine = steps if order is None else [permuted(step, order) for step in steps]
        numbers = []
        for step in mine:
            selection = step.selection
            if isinstance(selection, Points):
                numbers.append(selection.coordinates)
            else:
                numbers.append(
                    np.array([selection.start, selection.stride, selection.count, selection.block], np.int64)
                )
        return cls(tuple(_kind(step) for step in mine), tuple(numbers), tuple(_reopened(step) for step in mine))

    def selections(self) -> list[Hyperslab | Points]:
        """The selections."""
        return [
            Points(numbers) if kind == "points" else Hyperslab(*(row.tolist() for row in numbers))
            for kind, numbers in zip(self.operations, self.numbers, strict=True)
        ]


def _reopened(step: Step) -> str:
    """What the program closed and opened again before a call."""
    return "file" if step.reopens else "array" if getattr(step, "reopens_array", False) else ""


def _kind(step: Step) -> str:
    return "points" if isinstance(step.selection, Points) else step.operation


@dataclass
class _Opened:
    """The file and the array as they are open; nothing else refers to the array."""

    file: Any
    array: Any


@dataclass(frozen=True)
class Replay:
    """A worker's task: make the calls once. With `checks`, compare what is read with the elements, and time nothing."""

    candidate: Candidate
    spec: ArraySpec
    path: Path
    elements: Path
    calls: Calls
    is_new: bool
    checks: bool = False

    def run(self, bench: Workbench) -> Timing:
        """Open or create, make the calls, and close."""
        name, options = reader_of(self.candidate)
        made = make_format(name, options)
        made.library()  # imports the library, so that no pass pays for the import
        source = np.load(self.elements, mmap_mode="r")
        if self.candidate.order is not None:
            source = source.transpose(self.candidate.order)
        selections = self.calls.selections()
        new = [
            np.ascontiguousarray(source[_key(one)]) if kind == "write" else None
            for kind, one in zip(self.calls.operations, selections, strict=True)
        ]
        timers = Timers()
        with bench.undisturbed(max(int(one.size) for one in selections) * self.spec.dtype.itemsize):
            counters = Counters()  # opening reads ahead: a small file is then read as a whole
            opened = _Opened(*self._open(made, timers))
            if self.checks:
                self._compare(opened.array, selections, source)
            else:
                with timers("access"):
                    self._make_calls(made, opened, list(zip(selections, new, strict=True)))
            with timers("close"):
                opened.array = None
                opened.file.close()
            if any(data is not None for data in new):
                with timers("fsync"):
                    cache.make_durable(self.path)
        return counters.measured(timers, 0)

    def _make_calls(self, made: Format, opened: _Opened, calls: list[tuple[Hyperslab | Points, Any]]) -> None:
        """Make the calls, and close and open the file or the array as the program does."""
        mode: Any = "r+" if "write" in self.calls.operations else "r"
        for place, (one, data) in enumerate(calls):
            again = self.calls.reopens[place] if place < len(self.calls.reopens) else ""
            if again:
                opened.array = None  # HDF5 forgets an array's chunks when nobody has it open any more
                if again == "file":
                    opened.file.close()
                    opened.file = made.open(self.path, mode)
                opened.array = opened.file.open_array(ARRAY, self.spec)
            if data is not None:
                opened.array.write(data, one)
            elif isinstance(one, Points):
                opened.array.read_points(one)
            else:
                opened.array.read(one)

    def _open(self, made: Format, timers: Timers) -> tuple[Any, ArrayHandle]:
        if self.is_new:
            with timers("create"):
                opened = make_format(writer_of(self.candidate)).create(self.path)
                return opened, opened.create_array(ARRAY, self.spec)
        mode: Any = "r+" if "write" in self.calls.operations else "r"
        with timers("open"):
            opened = made.open(self.path, mode)
            return opened, opened.open_array(ARRAY, self.spec)

    def _compare(self, handle: ArrayHandle, selections: list[Hyperslab | Points], source: npt.NDArray[Any]) -> None:
        for kind, one in zip(self.calls.operations[:CHECKED], selections[:CHECKED], strict=True):
            if kind == "write":
                continue
            got = handle.read_points(one) if isinstance(one, Points) else handle.read(one)
            if not np.array_equal(got, source[_key(one)], equal_nan=source.dtype.kind == "f"):
                raise Refused(f"{self.candidate.title}: the elements read are not those of the file")


CHECKED = 50


def _key(one: Hyperslab | Points) -> Any:
    if isinstance(one, Points):
        return tuple(one.coordinates.T)
    try:
        return one.slices
    except ValueError:  # blocks of several elements with gaps
        lists = [
            (a + s * np.arange(n)[:, None] + np.arange(b)).ravel()
            for a, s, n, b in zip(one.start, one.stride, one.count, one.block, strict=True)
        ]
        return np.ix_(*lists)

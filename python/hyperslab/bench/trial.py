"""One fair trial as it runs in a worker: what is timed, and what must not be timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hyperslab._core import ChunkGrid, Hyperslab
from hyperslab.bench.operations import OPERATIONS, Operation, selections
from hyperslab.errors import Refused
from hyperslab.formats import make_format
from hyperslab.formats.contract import ArrayFile, ArrayHandle, ArraySpec, Format
from hyperslab.lab import cache
from hyperslab.lab.fields import Field
from hyperslab.lab.timers import Check, Counters, Timing
from hyperslab.lab.worker import Workbench
from hyperslab.storage.layout import StoredLayout
from hyperslab.timers import Timers


@dataclass(frozen=True)
class Job:
    """One fair trial, with everything it needs. It is one of `parts` if several processes share a trial."""

    format: str
    options: tuple[tuple[str, Any], ...]
    operation: Operation
    spec: ArraySpec
    field: Field
    count: int
    path: Path
    part: int = 0
    parts: int = 1
    url: str | None = None  # for reads, if a server has the file
    storage_options: tuple[tuple[str, Any], ...] = ()
    start_at: float | None = None  # time.monotonic() at which the processes of a trial start together

    def make_format(self) -> Format:
        """The format with the study's options."""
        return make_format(self.format, dict(self.options))

    def open(self, made: Format) -> ArrayFile:
        """Open the file for reading, from its server if it has one."""
        return made.open(self.path) if self.url is None else made.open_url(self.url, dict(self.storage_options))

    def run(self, bench: Workbench) -> Timing:
        """Run the trial and measure it."""
        verbs = {"write": write, "read": read, "modify": modify}
        do = verbs[OPERATIONS[self.operation.name].verb]
        source = bench.arrays(self.field, self.spec.dtype)
        made = self.make_format()
        made.library()  # imports the library, so that no trial pays for the import
        _wait_until(self.start_at)
        # Pages of the file in the page cache, and an array in the program.
        with bench.undisturbed(self.spec.nbytes * (self.count + 1) // self.parts):
            return do(self, made, source)


@dataclass(frozen=True)
class Prepare:
    """A worker's task: write the file that reads will use."""

    job: Job

    def run(self, bench: Workbench) -> str:
        """Write the file without timing it. Returns the layout that the library chose."""
        made = self.job.make_format()
        whole = replace(self.job, operation=Operation(name="write"))
        _write_file(whole, made, bench.arrays(self.job.field, self.job.spec.dtype), Timers())
        return _layout_in(made, self.job)


def _layout_in(made: Format, job: Job) -> str:
    try:
        opened = made.open(job.path)
    except Refused:
        return _layout_in_words(job.spec.layout, made)
    try:
        return _layout_in_words(opened.describe(array_name(0)).layout, made)
    except Refused:
        return _layout_in_words(job.spec.layout, made)
    finally:
        opened.close()


def _layout_in_words(layout: StoredLayout | None, made: Format) -> str:
    return made.default_layout if layout is None else layout.words


def array_name(index: int) -> str:
    """The name of array number `index` in every file of the bench."""
    return f"array_{index:05d}"


def _wait_until(moment: float | None) -> None:
    while moment is not None and time.monotonic() < moment:
        time.sleep(0.0005)


# --- writing ------------------------------------------------------------------------------------------------


def write(job: Job, made: Format, source: Callable[[int], np.ndarray]) -> Timing:
    """Create, write, flush, close and fsync. Then read everything back without timing it."""
    timers, counters = Timers(), Counters()
    _write_file(job, made, source, timers)
    if job.operation.name == "create":
        return counters.measured(timers, 0)
    measured = counters.measured(timers, job.spec.nbytes * job.count)
    check = _check_of(made)
    opened = made.open(job.path)
    for i in range(job.count):
        expected = source(i)
        check(_native(opened.open_array(array_name(i), job.spec).read(), job.spec.dtype), expected, array_name(i))
    opened.close()
    return replace(measured, verified=check.verified, max_abs_error=check.max_abs_error)


def _write_file(job: Job, made: Format, source: Callable[[int], np.ndarray], timers: Timers) -> None:
    with timers("create_file"):
        target = made.create(job.path)
    if job.operation.name == "write-separate":
        handles = []
        for i in range(job.count):
            with timers("create_array"):
                handles.append(target.create_array(array_name(i), job.spec))
        for i, handle in enumerate(handles):
            _write_array(job, handle, source(i), timers)
    else:
        for i in range(job.count):
            data = source(i)
            with timers("create_array"):
                handle = target.create_array(array_name(i), job.spec)
            if job.operation.name != "create":
                _write_array(job, handle, data, timers)
    finish(target, job.path, timers)


def _write_array(job: Job, handle: ArrayHandle, data: np.ndarray, timers: Timers) -> None:
    if job.operation.name == "write-fields":
        for name in data.dtype.names or ():
            values = np.ascontiguousarray(data[name])
            with timers("write"):
                handle.write_field(name, values)
        return
    with timers("write"):
        handle.write(data)


# --- reading ------------------------------------------------------------------------------------------------


def read(job: Job, made: Format, source: Callable[[int], np.ndarray]) -> Timing:
    """Open the file and arrays, read the selections, and close. Each read is compared with what was written."""
    wanted = _arrays_wanted(job)
    asked = _selections_wanted(job)
    check = _check_of(made)
    timers, counters = Timers(), Counters()
    with timers("open_file"):
        opened = job.open(made)
    decoded = 0
    for i in wanted:
        expected = source(i)
        with timers("open_array"):
            handle = opened.open_array(array_name(i), job.spec)
        decoded += _read_array(job, handle, asked, expected, timers, check)
    with timers("close"):
        opened.close()
    return counters.measured(
        timers,
        decoded,
        selection_count=len(asked) * len(wanted),
        returned_dtype=check.returned_dtype,
        verified=check.verified,
        max_abs_error=check.max_abs_error,
        **_chunks_touched(job, asked, len(wanted)),
    )


def _arrays_wanted(job: Job) -> list[int]:
    if job.operation.name == "read-last-array":
        return [job.count - 1]
    return list(range(job.count)) if job.parts == 1 or job.count == 1 else list(range(job.part, job.count, job.parts))


def _selections_wanted(job: Job) -> list[Hyperslab]:
    """This part's share: whole selections in turn, or one selection cut along axis 0."""
    asked = selections(job.operation, job.spec.shape)
    if job.parts == 1 or job.count > 1:
        return asked
    if len(asked) >= job.parts:
        return asked[job.part :: job.parts]
    (whole,) = asked
    slices = list(whole.slices)
    indices = range(job.spec.shape[0])[slices[0]]
    low, high = (len(indices) * k // job.parts for k in (job.part, job.part + 1))
    mine = indices[low:high]
    slices[0] = slice(mine.start, mine.stop, mine.step)
    return [Hyperslab.from_slices(tuple(slices), job.spec.shape)]


def _read_array(
    job: Job, handle: ArrayHandle, asked: Sequence[Hyperslab], expected: np.ndarray, timers: Timers, check: Check
) -> int:
    if job.spec.dtype.fields is not None and "fields" in job.operation.name:
        return _read_fields(job, handle, expected, timers, check)
    whole = len(asked) == 1 and asked[0].shape == job.spec.shape
    with timers("read"):
        got = [handle.read()] if whole else handle.read_many(asked)
        native = [_native(part, job.spec.dtype) for part in got]
    check.returned_dtype = got[0].dtype.str if got and got[0].dtype.fields is None else None
    for part, selection in zip(native, asked, strict=True):
        check(part, expected[selection.slices], f"{job.operation.name} of {selection!r}")
    return sum(part.nbytes for part in native)


def _read_fields(job: Job, handle: ArrayHandle, expected: np.ndarray, timers: Timers, check: Check) -> int:
    names = list(job.spec.dtype.names or ())
    if job.operation.name == "read-half-fields":
        calls = [names[: max(1, len(names) // 2)]]
    else:
        drawn = np.random.default_rng(len(names)).permutation(len(names))[: job.operation.count or 16]
        calls = [[names[k]] for k in sorted(drawn)]
    decoded = 0
    for fields in calls:
        with timers("read"):
            got = handle.read_fields(fields)
        decoded += sum(got[name].nbytes for name in fields)
        for name in fields:
            check(got[name], expected[name], f"field {name}")
    return decoded


def _native(part: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """The array in memory, C-contiguous and in native byte order, so that you can compute with it.

    Copies only if needed.
    """
    return np.ascontiguousarray(part, dtype)


def _check_of(made: Format) -> Check:
    return Check(exact=made.capabilities.exact, skipped=made.name == "null")


def _chunks_touched(job: Job, asked: Sequence[Hyperslab], arrays: int) -> dict[str, Any]:
    """How many chunks the selections touch, and how many elements are decoded for each element selected."""
    layout = job.spec.layout
    if layout is None or layout.contiguous:
        return {}
    grid = ChunkGrid(job.spec.shape, layout.chunk_shape)
    totals = [grid.totals(selection) for selection in asked]
    elements = sum(t.element_count for t in totals)
    decoded = sum(t.decoded_element_count for t in totals)
    return {
        "chunk_count": arrays * sum(t.chunk_count for t in totals),
        "read_amplification": decoded / elements if elements else None,
    }


# --- changing -----------------------------------------------------------------------------------------------


def modify(job: Job, made: Format, source: Callable[[int], np.ndarray]) -> Timing:
    """Open an existing file and change it: overwrite part of each array in place, or append to each."""
    change = append if job.operation.name == "append" else overwrite
    timers, counters = Timers(), Counters()
    with timers("open_file"):
        opened = made.open(job.path, "r+")
    decoded, expected = 0, []
    for i in range(job.count):
        before, patch = source(i), source(i + 1)
        with timers("open_array"):
            handle = opened.open_array(array_name(i), job.spec)
        after, moved = change(job, handle, before, patch, timers)
        expected.append(after)
        decoded += moved
    finish(opened, job.path, timers)
    measured = counters.measured(timers, decoded)
    check = _check_of(made)
    again = made.open(job.path)
    for i, after in enumerate(expected):
        grown = replace(job.spec, shape=after.shape)
        got = _native(again.open_array(array_name(i), grown).read(), job.spec.dtype)
        check(got, after, f"{array_name(i)} after {job.operation.name}")
    again.close()
    return replace(measured, verified=check.verified, max_abs_error=check.max_abs_error)


def overwrite(
    job: Job, handle: ArrayHandle, before: np.ndarray, patch: np.ndarray, timers: Timers
) -> tuple[np.ndarray, int]:
    """Overwrite the middle tenth (or `fraction`, or `shape`) of an array. Returns what the array must then hold."""
    region = Operation(name="read-hyperslab", shape=job.operation.shape, fraction=job.operation.fraction or 0.1)
    (selection,) = selections(region, job.spec.shape)
    data = np.ascontiguousarray(patch[selection.slices][::-1])
    with timers("write"):
        handle.write(data, selection)
    after = before.copy()
    after[selection.slices] = data
    return after, data.nbytes


def append(
    job: Job, handle: ArrayHandle, before: np.ndarray, patch: np.ndarray, timers: Timers
) -> tuple[np.ndarray, int]:
    """Append a tenth (or `fraction`) of an array's length along axis 0."""
    added = patch[: max(1, round(before.shape[0] * (job.operation.fraction or 0.1)))]
    with timers("append"):
        handle.append(added)
    return np.concatenate([before, added]), added.nbytes


def finish(written: ArrayFile, path: Path, timers: Timers) -> None:
    """Sync what was written to the device, and close the file."""
    with timers("flush"):
        written.flush()
    with timers("close"):
        written.close()
    with timers("fsync"):
        cache.make_durable(path)

"""What follows from a call's own counts and selection: elements that are handled one by one, waiting, covered reads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from hyperslab._core import Hyperslab, Points
from hyperslab.chunk_grid import ceil_div
from hyperslab.model.libraries import Hdf5, Library, Zarr
from hyperslab.model.step_forms import StepForms, forms_of
from hyperslab.model.workload import Step

Column: TypeAlias = npt.NDArray[np.float64]  # a number for each call

# The size of a typical L2 cache of a core.
NEAR_NBYTES = 1 << 20
LINE_NBYTES = 64
MOST_MARKED = 1 << 22
# The largest allocation that glibc keeps for the next one (DEFAULT_MMAP_THRESHOLD_MAX).
KEPT_NBYTES = 32 << 20
# Zarr-python reads this many chunks of a call at a time (`async.concurrency`).
MOST_SIDE_BY_SIDE = 10
# The first bytes of a request take longer than the rest: the device works on all pieces of a long one at a time.
SHORT_NBYTES = 256 << 10
# HDF5 reads shorter runs of an array in one piece through a buffer of so many bytes (`sieve_buf_size`).
SIEVE_NBYTES = 64 << 10
# Rough seconds of computing, and of a byte from the device: they only decide which reads a call's computing covers.
COPY_SECONDS, COPIED_BYTE_SECONDS, DECODED_BYTE_SECONDS, ELEMENT_SECONDS = 5e-9, 2e-10, 1e-9, 4e-8
CALL_SECONDS, REQUEST_SECONDS, DEVICE_BYTE_SECONDS = 6e-6, 6e-7, 5.5e-10


def one_by_one(library: Hdf5 | Zarr, step: Step, *, in_one_piece: bool = False) -> int:
    """How many elements of a selection a library handles one by one.

    HDF5 walks through all elements if the selection has gaps, because the shape of the elements in the file then
    differs from that in memory. It does not if there is only one axis, or one element. It walks twice through a list of
    points: once for the file, once for memory. In an array without chunks there is nothing to find out about memory: it
    copies run by run, and walks through points once. NumPy, which copies for Zarr, copies whole lines, unless the
    elements of a line are not next to each other.
    """
    selection = step.selection
    size = int(selection.size)
    if size <= 1:
        return 0
    if in_one_piece and isinstance(library, Hdf5):
        return size if isinstance(selection, Points) and step.lists is None else 0
    if isinstance(selection, Points):
        if step.lists is None:
            return 2 * size if isinstance(library, Hdf5) else size
        return size if isinstance(library, Hdf5) or step.lists[-1] is not None else 0
    gaps = _gaps(selection)
    has_gaps = any(gaps) or step.lists is not None
    walks = has_gaps and len(gaps) > 1 if isinstance(library, Hdf5) else gaps[-1]
    return size if walks else 0


def _gaps(selection: Hyperslab) -> list[bool]:
    """Along which axes there are elements between the selected ones."""
    lengths = zip(selection.stride, selection.count, selection.block, strict=True)
    return [count > 1 and stride > block for stride, count, block in lengths]


def stepped_runs(step: Step) -> int:
    """How many runs of elements that are next to each other a selection with gaps has. 0 without gaps."""
    selection = step.selection
    if isinstance(selection, Points) or not any(gaps := _gaps(selection)):
        return 0
    return int(selection.size) // (1 if gaps[-1] else int(selection.shape[-1]))


def spread_nbytes(step: Step, width: int) -> int:
    """The bytes of memory lines that a selection with a step along the last axis touches."""
    selection = step.selection
    if isinstance(selection, Points) or not _gaps(selection)[-1]:
        return 0
    return int(selection.size) * min(LINE_NBYTES, int(selection.stride[-1]) * width)


def numpy_axis(step: Step, chunk_shape: Sequence[int]) -> int:
    """The axis along which NumPy copies what a selection has in a chunk: the last one with several elements."""
    selection = step.selection
    if isinstance(selection, Points):
        return selection.ndim - 1
    lengths = [min(pair) for pair in zip(selection.shape, chunk_shape, strict=True)]
    return max((axis for axis, length in enumerate(lengths) if length > 1), default=len(lengths) - 1)


def numpy_spread_nbytes(step: Step, chunk_shape: Sequence[int], width: int) -> int:
    """The bytes of memory lines that NumPy touches where neighbours are not next to each other: in the chunk, and in
    the result.
    """
    selection, axis = step.selection, numpy_axis(step, chunk_shape)
    if isinstance(selection, Points) or axis == selection.ndim - 1:
        return spread_nbytes(step, width)
    within, result = (width * prod(shape[axis + 1 :]) for shape in (chunk_shape, selection.shape))
    within *= int(selection.stride[axis]) if selection.block[axis] == 1 else 1
    return int(selection.size) * sum(min(LINE_NBYTES, stride) for stride in (within, result) if stride > width)


def touched_chunk_count(steps: Sequence[Step], shape: Sequence[int], chunk_shape: Sequence[int]) -> tuple[int, int]:
    """How many different chunks all selections together touch, as if steps skipped none, and how many elements of the
    array these chunks have. At most `MOST_MARKED` chunks are looked at one by one; of more, all are taken to be
    touched.
    """
    grid = tuple(ceil_div(length, chunk) for length, chunk in zip(shape, chunk_shape, strict=True))
    if prod(grid) > MOST_MARKED:
        return prod(grid), prod(shape)
    forms = forms_of(steps)
    marks = _marked(forms, chunk_shape, grid)
    for step in forms.different:
        if isinstance(step.selection, Points) and step.selection.size:
            marks[tuple((step.selection.coordinates // np.array(chunk_shape)).T)] = True
    inside = marks.astype(float)
    for axis, (length, chunk) in enumerate(zip(shape, chunk_shape, strict=True)):
        last = [slice(None)] * axis + [slice(-1, None)]
        inside[tuple(last)] *= (length - (grid[axis] - 1) * chunk) / chunk
    return int(marks.sum()), round(float(inside.sum()) * prod(chunk_shape))


def _marked(forms: StepForms, chunk_shape: Sequence[int], grid: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Which chunks of the grid boxes touch: how many begin and end at each chunk is summed along all axes."""
    changes = np.zeros([count + 1 for count in grid], np.int64)
    selections = [step.selection for step in forms.different]
    is_box = np.array([isinstance(one, Hyperslab) and one.size > 0 for one in selections], bool)[forms.places]
    if is_box.any():
        extents = [_extents(one) if isinstance(one, Hyperslab) else [0] * len(grid) for one in selections]
        starts = forms.starts[is_box]
        lengths = np.array(extents, np.int64).reshape(len(extents), len(grid))[forms.places[is_box]]
        chunk = np.array(chunk_shape, np.int64)
        ends = (starts // chunk, (starts + lengths - 1) // chunk + 1)
        for corner in product((0, 1), repeat=len(grid)):
            places = tuple(ends[end][:, axis] for axis, end in enumerate(corner))
            np.add.at(changes, places, (-1) ** sum(corner))
    for axis in range(len(grid)):
        changes = changes.cumsum(axis=axis)
    marked: npt.NDArray[np.bool_] = changes[tuple(slice(count) for count in grid)] > 0
    return marked


def _extents(box: Hyperslab) -> list[int]:
    """From the first to the last index along each axis."""
    return [s * (c - 1) + b for s, c, b in zip(box.stride, box.count, box.block, strict=True)]


def fresh_nbytes(sizes: npt.ArrayLike) -> int:
    """The bytes of results in memory that the process has not touched before: its pages come from the system.

    The allocator keeps what is freed for the next result, unless that is larger, or larger than what it ever keeps.
    """
    given = np.asarray(sizes, np.int64)
    kept = np.maximum.accumulate(np.minimum(given, KEPT_NBYTES))
    before = np.concatenate([np.zeros(1, np.int64), kept])[:-1]
    return int(np.where(given > KEPT_NBYTES, given, np.maximum(given - before, 0)).sum())


def skips_lines(step: Step) -> bool:
    """Whether there are lines between those that a selection has: each is a span of its own for HDF5, in the file."""
    selection = step.selection
    if isinstance(selection, Points):
        return True
    several = [axis for axis in range(selection.ndim - 1) if selection.shape[axis] > 1]
    return (
        bool(several)
        and selection.count[several[-1]] > 1
        and selection.stride[several[-1]] > selection.block[several[-1]]
    )


def far(column: dict[str, Column], rows_nbytes: Column) -> float:
    """Copies of short runs, times the doublings of what was passed since the neighbouring memory was touched."""
    copies, touched = column["n_memcpy"], column["n_chunk"]
    length = column["s_memcpy"] / np.maximum(copies, 1)
    passed = copies / np.maximum(touched, 1) * np.maximum(length, LINE_NBYTES)
    doublings = np.log2(np.maximum(passed / NEAR_NBYTES, 1))
    return float(np.where((length < LINE_NBYTES) & (rows_nbytes > length), copies * doublings, 0.0).sum())


def direct_nbytes(column: dict[str, Column], array_nbytes: int) -> float:
    """Take the copies out of the counts of those calls to an array in one piece whose runs are too long for HDF5's
    sieve buffer: a request brings each of them into the caller's memory. Returns the bytes of these runs.
    """
    length = column["s_memcpy"] / np.maximum(column["n_memcpy"], 1)
    is_direct = length > min(array_nbytes, SIEVE_NBYTES)
    nbytes = float(column["s_memcpy"][is_direct].sum())
    column["n_memcpy"][is_direct] = column["s_memcpy"][is_direct] = 0.0
    return nbytes


def device_bytes(
    column: dict[str, Column], elements: Column, pauses: Column, *, reads_side_by_side: bool
) -> dict[str, float]:
    """The bytes of the device by what the reader does meanwhile: it waits, or it computes, or it never needs them.

    `pauses` are the seconds for which the program does something else after each call.
    """
    nbytes, requests, waited, needed = column["s_rdisk"], column["n_rseek"], column["s_rseek"], column["s_rneed"]
    if reads_side_by_side:
        requests = column["n_rdisk"]
        side_by_side = np.clip(requests, 1, MOST_SIDE_BY_SIDE)
        waited, requests = nbytes / side_by_side, requests / side_by_side
        needed = nbytes - waited
    computing = (
        CALL_SECONDS
        + REQUEST_SECONDS * (column["n_cache"] + column["n_rdisk"])
        + COPY_SECONDS * column["n_memcpy"]
        + COPIED_BYTE_SECONDS * column["s_memcpy"]
        + DECODED_BYTE_SECONDS * column["s_decode"]
        + ELEMENT_SECONDS * elements
    )
    ahead, computed = nbytes - waited, computing / DEVICE_BYTE_SECONDS
    exposed = float(waited.sum()) + _still_coming(ahead, needed, computed, pauses / DEVICE_BYTE_SECONDS)
    hidden = max(float(nbytes.sum()) - exposed, 0.0)
    covered = min(hidden, float(np.minimum(ahead, computed).sum()))
    return {
        "s_rseek": float(waited.sum()),
        "s_rshort": float(np.minimum(waited, requests * SHORT_NBYTES).sum()),
        "s_covered": covered,
        "s_later": hidden - covered,
        "s_exposed": exposed,
    }


def _still_coming(asked: Column, needed: Column, computed: Column, paused: Column) -> float:
    """Of the bytes that are read ahead, those that a call still waits for.

    The device brings what was asked for, in this order, while the reader computes, in this call and in later ones, and
    while the program does something else between them: so many bytes in each. A call that needs more than has come
    waits for the rest.
    """
    busy = np.flatnonzero((asked > 0) | (needed > 0))
    wanted, least = np.cumsum(asked)[busy], np.cumsum(needed)[busy]
    begun, during = (np.cumsum(computed + paused) - computed - paused)[busy], computed[busy]
    between = begun - np.concatenate([[0.0], (begun + during)[:-1]])[: len(busy)]
    waited_for = came = before = 0.0
    for most, reached, idle, more in zip(*(each.tolist() for each in (wanted, least, between, during)), strict=True):
        came = min(min(came + idle, before) + more, most)
        before = most
        if came < reached:
            waited_for += reached - came
            came = reached
    return waited_for


class StepFacts(NamedTuple):
    """What follows from one call's selection, in numbers."""

    lines: float
    apart: float  # the share of its spans that a line has to itself: 1/2 in the memory, 1/2 in the file
    one_by_one: float
    stepped_runs: float
    spread_nbytes: float
    row_nbytes: float
    nbytes: float


def facts_of(
    steps: Sequence[Step], chunk_shape: tuple[int, ...], library: Library, width: int, *, in_one_piece: bool = False
) -> npt.NDArray[np.float64]:
    """The `StepFacts` of all calls, a row for each. Calls of one form share theirs, but for where they begin."""
    different, places, starts = forms_of(steps)
    facts = np.array([_facts(step, chunk_shape, library, width, in_one_piece) for step in different], np.float64)
    facts = facts.reshape(len(different), len(StepFacts._fields))[places]
    if chunk_shape and steps:
        _set_lines(facts, different, places, starts, chunk_shape, library)
    return facts


def _set_lines(
    facts: npt.NDArray[np.float64],
    different: Sequence[Step],
    places: npt.NDArray[np.intp],
    starts: npt.NDArray[np.int64],
    chunk_shape: tuple[int, ...],
    library: Library,
) -> None:
    """Set how many lines each box has, counted in each chunk, which depends on where it begins, and how far apart.

    Lines that fill the selection's last axis follow each other in memory, and then it hardly matters to HDF5 whether
    they do so in the file. Of an array of (16000, 128) float64, h5py reads lines of chunks with all 128 columns in 150
    to 200 ns beyond their elements, and lines of narrower chunks in 340 ns, or 510 ns if there are lines between them
    in the file (libhdf5 2.0, warm).
    """
    rows = [(*_line_row(step, chunk_shape, library), skips_lines(step)) for step in different]
    axis, reach, count, block, across, skips = np.array(rows, np.int64)[places].T
    first, chunk = starts[np.arange(len(places)), axis], np.array(chunk_shape, np.int64)[axis]
    spans = (first + reach) // chunk - first // chunk + 1
    touched = np.where(block == 1, np.minimum(spans, count), spans)
    facts[:, 0] = np.where(across >= 0, across * touched, facts[:, 0])
    facts[:, 1] = np.where(across >= 0, (touched > 1) * (1 + skips) / 2, facts[:, 1])


def _line_row(step: Step, chunk_shape: tuple[int, ...], library: Library) -> tuple[int, ...]:
    """The axis of a box's lines, how far one reaches, its count and block, and how many there are: -1 for points."""
    selection = step.selection
    if isinstance(selection, Points) or not selection.size:
        return 0, 0, 0, 0, -1
    axis = numpy_axis(step, chunk_shape) if isinstance(library, Zarr) else selection.ndim - 1
    count, block = selection.count[axis], selection.block[axis]
    reach = selection.stride[axis] * (count - 1) + block - 1
    return axis, reach, count, block, int(selection.size) // int(selection.shape[axis])


def _listed_lines(step: Step, chunk: tuple[int, ...]) -> int:
    """The lines of a call that lists elements: each point, or neighbours in the last list, counted in each chunk."""
    selection = step.selection
    size = int(selection.size)
    if isinstance(selection, Hyperslab) or step.lists is None or not size:
        return size
    along = np.unique(selection.coordinates[:, -1])
    breaks = np.diff(along) != 1
    if chunk:
        breaks |= np.diff(along // chunk[-1]) != 0
    return size // len(along) * (1 + int(breaks.sum()))


def _facts(step: Step, chunk: tuple[int, ...], library: Library, width: int, in_one_piece: bool) -> StepFacts:
    is_zarr, selection = isinstance(library, Zarr), step.selection
    return StepFacts(
        _listed_lines(step, chunk),  # those of boxes are set later
        float(isinstance(selection, Points)),  # that of boxes is set later
        one_by_one(library, step, in_one_piece=in_one_piece) if isinstance(library, Hdf5 | Zarr) else 0,
        stepped_runs(step) if isinstance(library, Hdf5) and not in_one_piece else 0,
        numpy_spread_nbytes(step, chunk, width) if is_zarr else spread_nbytes(step, width),
        selection.shape[-1] * width,
        int(selection.size) * width,
    )

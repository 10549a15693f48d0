"""What a trace asks of its arrays: the trace is opened and summarized once, and every command prices the same calls."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hyperslab._core import Hyperslab, Points
from hyperslab.advise.demand import STRETCHES, Demand, RecordedProgram
from hyperslab.advise.stored import NETCDF, StoredArray, stored_arrays
from hyperslab.errors import HyperslabError, NoSuchFile, UsageError
from hyperslab.model.cells import CellCache
from hyperslab.model.libraries import Layout
from hyperslab.model.workload import Step
from hyperslab.storage.chain import PLAIN, Codec, CodecChain
from hyperslab.trace.growing import with_largest_shapes
from hyperslab.trace.openings import by_process, idle_before, openings_of, shared_openings
from hyperslab.trace.recording.log import BOUNDS, BOXES, FAILED, HYPERSLAB, LISTS, POINTS
from hyperslab.trace.selection import Slabs, hyperslabs, list_axes
from hyperslab.trace.served import served_share
from hyperslab.trace.summaries import ArraySummary, summaries_of
from hyperslab.trace.table import OPERATIONS, TracedArray
from hyperslab.trace.trace import Trace

MOST_ELEMENTS = 400_000
"""Of the calls of an array that list elements, which are counted one by one: of more, the lists count as steps."""
MOST_INDICES = 4_000_000
"""Along one axis, of a call that lists indices."""
MOST_CALLS = 20_000
"""Of an array: of more accesses, stretches from all over the trace are priced."""
LIBRARY_OF = {
    "h5py": "hdf5", "netCDF": "hdf5", "PyTables": "hdf5", "HDF5": "hdf5", "zarr": "zarr", "hyperslab": "hyperslab",
}  # fmt: skip
"""The library of the cost model that stands for the one that made an access."""


FourLists = tuple[list[int], list[int], list[int], list[int]]
Lists = tuple[tuple[int, ...] | None, ...]
Selected = tuple[Hyperslab | Points, Lists | None]


class SummarizedTrace(NamedTuple):
    """A trace with the summaries of its arrays; the array that took most time comes first."""

    where: Path
    trace: Trace
    summaries: list[ArraySummary]
    shared: npt.NDArray[np.bool_] | None = None
    """The accesses whose file was opened for another array before (`shared_openings`); None: nobody looked yet."""
    idle_ns: npt.NDArray[np.int64] | None = None
    """The nanoseconds before each access in which the program made none (`idle_before`); None: nobody looked yet."""


def open_trace(given: Path | Trace) -> SummarizedTrace:
    """Open a trace, if it is not open yet, and summarize it.

    Raises
    ------
    UsageError
        There is no trace, or it cannot be read.
    NotATrace
        It is something else.
    """
    where = Path("the trace") if isinstance(given, Trace) else given
    try:
        trace = with_largest_shapes(given if isinstance(given, Trace) else Trace.open(where))
    except FileNotFoundError as error:
        made = f"hyperslab trace -o {where} -- python your_program.py"
        raise NoSuchFile(f"there is no trace {where}: record one with `{made}`") from error
    except OSError as error:
        raise UsageError(f"{where} cannot be read: {error.strerror or error}") from error
    return SummarizedTrace(where, trace, summaries_of(trace), shared_openings(trace), idle_before(trace))


def summaries_by_name(one: SummarizedTrace, path: str) -> dict[str, list[ArraySummary]]:
    """The summaries of the arrays of a file, by their paths; several libraries may have opened one array.

    Raises
    ------
    UsageError
        The trace has no access to this file. The message names the files that it has.
    """
    by_name: dict[str, list[ArraySummary]] = {}
    for summary in one.summaries:
        if _is_same(summary.array.file, path) and len(_rows(one.trace, summary)):
            by_name.setdefault(_path_of(summary.array.array), []).append(summary)
    if not by_name:
        files = list(dict.fromkeys(summary.array.file for summary in one.summaries))
        there = ", ".join(files[:5]) or "no access at all"
        raise UsageError(
            f"{one.where} is the trace of another file: it has {there}, but not {path}; name that file, or record "
            f"your program again: hyperslab trace -o {one.where} -- python your_program.py"
        )
    return by_name


def traced_demand(
    one: SummarizedTrace,
    summary: ArraySummary,
    stored: StoredArray,
    weight: float = 1.0,
    cache: CellCache | None = None,
) -> Demand:
    """What a trace asks of one array.

    Raises
    ------
    UsageError
        The array had another shape when the trace was recorded, or nothing was selected.
    """
    trace, array = one.trace, summary.array
    _check_shape(array, stored.shape, one.where)
    steps, rows, notes, starts = _steps(one, summary.rows)
    if not steps:
        raise UsageError(f"{one.where} selects nothing of {array.array}")
    # A program that only writes fills a new array; its blocks are written into an array of the final shape.
    writes_only = all(step.operation == "write" for step in steps)
    by_hdf5 = LIBRARY_OF.get(array.library) == "hdf5" and array.cache_nbytes is not None
    nbytes, slots = (array.cache_nbytes, array.cache_slots) if by_hdf5 else (None, None)
    if slots == 0:  # as h5py says of a cache of 0 bytes; HDF5 cannot be asked for that
        nbytes, slots = 0, 1
    return Demand(
        one.where.name,
        stored.shape,
        stored.priced_dtype,
        steps,
        weight,
        cache or ("new" if writes_only else "cold"),
        LIBRARY_OF.get(array.library),
        array.library,
        nbytes,
        slots,
        tuple(notes),
        _decodes(trace, array.library),
        " ".join(map(str, trace.program.get("arguments", []))) or "python your_program.py",
        len(summary.rows),
        len(rows),
        float(trace.columns["duration_ns"][rows].sum()) / 1e9,
        summary,
        served_share(trace, summary),
        starts,
        _recorded_program(trace, array.file),
    )


def traced_array(summary: ArraySummary) -> StoredArray:
    """A traced array as its file has it today, with a sample; as it was recorded if the file is gone or has changed."""
    array = summary.array
    if array.is_local and Path(array.file).exists():
        try:
            (stored,) = stored_arrays(array.file, [array.array], {}, [])
        except (HyperslabError, OSError, ValueError):
            return _recorded(array)  # it has changed, or our engine cannot read it
        if stored.dtype.itemsize == array.element_nbytes and _fits(array, stored.shape):
            return stored
    return _recorded(array)


def _recorded(array: TracedArray) -> StoredArray:
    library = LIBRARY_OF.get(array.library, "hdf5")
    codecs = [name for name in array.filters if name not in ("shuffle", "fletcher32", "bytes")]
    ratio = array.nbytes / array.stored_nbytes if codecs and array.stored_nbytes else None
    shuffle = [Codec("shuffle")] if "shuffle" in array.filters else []
    encoding = CodecChain([*shuffle, Codec.parse(codecs[-1])]) if codecs and ratio else PLAIN
    is_whole = array.chunks is None
    chunks = array.shape if array.chunks is None else array.chunks
    layout = Layout(chunks, array.shards, ratio, encoding.without_shuffle, is_whole)
    by_suffix = "netcdf4" if array.file.lower().endswith(NETCDF) else "hdf5"
    return StoredArray(
        array.file,
        array.array,
        array.shape,
        np.dtype(array.dtype) if _is_plain(array) else np.dtype(f"V{array.element_nbytes}"),
        None,
        "zarr3" if library == "zarr" else by_suffix,
        library,
        layout,
        encoding,
        array.stored_nbytes or array.nbytes,
        1,
    )


def _is_plain(array: TracedArray) -> bool:
    try:
        return np.dtype(array.dtype).itemsize == array.element_nbytes and np.dtype(array.dtype).kind != "O"
    except (TypeError, ValueError):
        return False


def _rows(trace: Trace, summary: ArraySummary) -> npt.NDArray[np.intp]:
    """The accesses that did not fail."""
    rows = summary.rows
    result: npt.NDArray[np.intp] = rows[trace.columns["flags"][rows] & FAILED == 0]
    return result


def _stretches(count: int) -> npt.NDArray[np.intp]:
    """All places, or stretches from all over: neighbours stay together, so that what a cache keeps is seen."""
    if count <= MOST_CALLS:
        return np.arange(count)
    length = MOST_CALLS // STRETCHES
    firsts = np.linspace(0, count - length, STRETCHES).astype(int)
    return (firsts[:, None] + np.arange(length)).ravel()


def _chosen(one: SummarizedTrace, rows: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.intp], int, list[list[bool]]]:
    """The accesses that are looked at, of how many, and whether each opens the array, its file, begins a process, and
    opens the file for all its arrays.

    What is left out in between may have opened them too: that counts once.
    """
    trace, shared = one.trace, shared_openings(one.trace) if one.shared is None else one.shared
    ordered = by_process(trace, rows)
    is_kept = trace.columns["flags"][ordered] & FAILED == 0
    count = int(np.count_nonzero(is_kept))
    places = _stretches(count) if count == len(ordered) else np.flatnonzero(is_kept)[_stretches(count)]
    begun = [_since_before(each, places) for each in openings_of(trace, ordered, shared)]
    begun[-1][:1] = (~shared[ordered[:1]]).tolist()
    return ordered[places], count, begun


def _since_before(opened: npt.NDArray[np.bool_], places: npt.NDArray[np.intp]) -> list[bool]:
    """For each of some places, whether there was an opening since the place before; none before the first."""
    if not opened.any():  # most programs open everything once
        return [False] * len(places)
    numbers = np.cumsum(opened)[places]
    result: list[bool] = (np.diff(numbers, prepend=numbers[:1]) > 0).tolist()
    return result


def _steps(
    one: SummarizedTrace, rows: npt.NDArray[np.intp]
) -> tuple[list[Step], npt.NDArray[np.intp], list[str], frozenset[int]]:
    """The calls that stand for the accesses, the accesses that are looked at, how the two differ, and where processes
    begin.
    """
    trace, where = one.trace, one.where
    chosen, count, (again, file_again, begins, own) = _chosen(one, rows)
    steps: list[Step] = []
    starts: set[int] = set()
    arrays = trace.columns["array"]
    listed = even = irregular = looked_at = 0
    opens_array = opens_file = is_first = is_own = False
    most_elements = MOST_ELEMENTS
    is_plain, plain = _plain(trace, chosen)
    pauses = _pauses(idle_before(trace) if one.idle_ns is None else one.idle_ns, rows, chosen)
    for place, row in enumerate(chosen.tolist()):
        if len(steps) >= MOST_CALLS:
            break
        looked_at += 1
        opens_array, opens_file = opens_array or again[place], opens_file or file_again[place]
        is_first, is_own = is_first or begins[place], is_own or own[place]
        operation = OPERATIONS[int(trace.columns["operation"][row] != 0)]
        if is_plain[place]:
            start, stride, block_count, block = plain[place].tolist()
            selections = _not_empty([(start, stride, block_count, block)])
        else:
            kind, numbers = trace.selection(row)
            shape = trace.arrays[arrays[row]].shape
            found = _listed(kind, numbers, shape, most_elements) if operation == "read" else None
            if found is not None:
                selections = [found]
                most_elements -= int(found[0].size) if isinstance(found[0], Points) else 0
                even += isinstance(found[0], Hyperslab)
            else:
                slabs = hyperslabs(kind, numbers, shape, MOST_CALLS - len(steps))
                selections = _not_empty([_four_lists(each) for each in slabs])
                irregular += kind == BOUNDS
                listed += len(selections) > 1
        for boxes_left, (selection, lists) in enumerate(selections, 1 - len(selections)):
            if is_first:
                starts.add(len(steps))
            opening = (
                opens_file,
                pauses[place] * (boxes_left == 0),
                opens_array and not opens_file,
                float(not is_own and (opens_file or not steps)),
            )
            steps.append(Step(operation, selection, lists, None, *opening))  # type: ignore[arg-type]
            opens_array = opens_file = is_first = is_own = False
    said = (
        (count - looked_at, f"{looked_at:,} of {count:,} accesses are priced, from all over the trace"),
        (listed, f"{listed:,} accesses to several boxes, or to very many points, count as one for each box"),
        (even, f"{even:,} accesses that list very many elements count as if these were at even distances"),
        (irregular, f"{irregular:,} irregular accesses count as the boxes around them"),
    )
    notes = [f"{where.name}: {text}" for happened, text in said if happened]
    return steps, chosen[:looked_at], notes, frozenset(starts)


def _pauses(idle_ns: npt.NDArray[np.int64], rows: npt.NDArray[np.intp], chosen: npt.NDArray[np.intp]) -> list[float]:
    """The seconds after each of some accesses to an array, until the next one to it, in which no access was made."""
    places = np.searchsorted(rows, chosen)
    nexts = rows[np.minimum(places + 1, len(rows) - 1)]
    result: list[float] = ((idle_ns[nexts] - idle_ns[rows[places]]) / 1e9).tolist()
    return result


def _not_empty(parts: list[FourLists]) -> list[Selected]:
    """The boxes that select anything."""
    return [(Hyperslab(*each), None) for each in parts if 0 not in each[2] and 0 not in each[3]]


def _listed(kind: int, numbers: npt.NDArray[np.int64], shape: tuple[int, ...], most: int) -> Selected | None:
    """The elements of one call that lists points, or indices along each axis; None for others, and for very many.

    Indices that make more than `most` elements count as so many at even distances.
    """
    if kind == POINTS and 0 < len(numbers) <= most * len(shape):
        return Points(numbers.reshape(-1, len(shape))), None
    axes = _indices(kind, numbers, shape)
    if axes is None:
        return None
    if prod(map(len, axes)) > most:
        return Hyperslab(*zip(*map(_at_even_distances, axes), strict=True)), ()
    lists = tuple(
        None if len(each) == length else tuple(each.tolist()) for each, length in zip(axes, shape, strict=True)
    )
    return Points(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))), lists


def _at_even_distances(indices: npt.NDArray[np.int64]) -> tuple[int, int, int, int]:
    """Start, stride, count and block of as many indices, from the first one on, and not beyond the last one."""
    first, last, count = int(indices.min()), int(indices.max()), len(np.unique(indices))
    stride = (last - first) // max(count - 1, 1)
    return (first, 1, 1, count) if stride <= 1 else (first, stride, count, 1)


def _indices(kind: int, numbers: npt.NDArray[np.int64], shape: tuple[int, ...]) -> list[npt.NDArray[np.int64]] | None:
    """The indices along each axis whose combinations a call selects; None if it selects others, or very many.

    HDF5 takes neighbours in a list together, so it lists boxes.
    """
    if kind == LISTS:
        along = [
            [(int(index), 1, 1) for index in each] if isinstance(each, np.ndarray) else [tuple(each)]
            for each in list_axes(numbers, len(shape))
        ]
        size = None
    else:
        boxes = numbers.reshape(-1, 2, len(shape)) if kind == BOXES and shape else numbers[:0]
        if len(boxes) < 2 or len(boxes) > MOST_CALLS:
            return None
        size = float(boxes[:, 1].prod(axis=1, dtype=np.float64).sum())
        along = [
            [(start, 1, length) for start, length in np.unique(boxes[:, :, axis], axis=0).tolist()]
            for axis in range(len(shape))
        ]
    if not all(0 < sum(count for *_, count in each) <= MOST_INDICES for each in along):
        return None
    axes = [np.concatenate([np.arange(count) * stride + start for start, stride, count in each]) for each in along]
    if size is None:
        return axes
    axes = [np.unique(each) for each in axes]
    return axes if prod(map(len, axes)) == size else None


def _plain(trace: Trace, rows: npt.NDArray[np.intp]) -> tuple[list[bool], npt.NDArray[np.int64]]:
    """Which of some accesses to an array select one hyperslab, and the start, stride, count and block of those.

    Nearly all do, and they are taken apart together.
    """
    ndim = len(trace.arrays[trace.columns["array"][rows[0]]].shape) if len(rows) else 0
    is_plain = (trace.columns["kind"][rows] == HYPERSLAB) & (ndim > 0)
    places = trace.offsets[rows[is_plain]][:, None] + np.arange(4 * ndim)
    lists = np.zeros((len(rows), 4, ndim), np.int64)
    lists[is_plain] = np.moveaxis(trace.numbers[places].reshape(len(places), ndim, 4), 2, 1)
    lists[:, 1] = np.maximum(lists[:, 1], lists[:, 3])
    result: list[bool] = is_plain.tolist()
    return result, lists


def _four_lists(slabs: Slabs) -> FourLists:
    """Start, stride, count and block, each with an entry for every axis."""
    start, stride, count, block = ([axis[place] for axis in slabs] for place in range(4))
    return start, [max(a, b) for a, b in zip(stride, block, strict=True)], count, block


def _decodes(trace: Trace, library: str) -> frozenset[int] | None:
    """The filters that a library of the program had; it may have imported some after its first reads."""
    known = [one.decodes for one in trace.arrays if one.library == library and one.decodes is not None]
    return frozenset().union(*known) if known else None


def _fits(array: TracedArray, shape: tuple[int, ...]) -> bool:
    return len(array.shape) == len(shape) and all(a <= b for a, b in zip(array.shape, shape, strict=True))


def _check_shape(array: TracedArray, shape: tuple[int, ...], where: Path) -> None:
    if not _fits(array, shape):
        raise UsageError(
            f"{where}: {array.array} had the shape {array.shape} when it was traced, but now it has {shape}: the file "
            "has changed, so record your program again"
        )


def _path_of(name: str) -> str:
    return f"/{name.strip('/')}"


def _recorded_program(trace: Trace, file: str) -> RecordedProgram:
    """How the program was started, and whether it wrote to this file."""
    writers = np.unique(trace.columns["array"][trace.columns["operation"] != 0]).tolist()
    said = trace.program
    return RecordedProgram(
        tuple(said.get("arguments", ())),
        said.get("directory"),
        said.get("exit_status"),
        trace.seconds,
        any(trace.arrays[number].file == file for number in writers),
    )


def _is_same(traced: str, path: str) -> bool:
    if traced == path:
        return True
    try:
        return Path(traced).resolve() == Path(path).resolve()
    except OSError:
        return False

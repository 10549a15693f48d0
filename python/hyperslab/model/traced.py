"""A trace as a workload: what one array of it was asked, in order, to be priced in any layout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import PrivateAttr

from hyperslab._core import Hyperslab
from hyperslab.errors import HyperslabError, Refused
from hyperslab.model.file_layout import layout_of_file
from hyperslab.model.libraries import Layout
from hyperslab.model.workload import Step, Workload
from hyperslab.trace.recording.log import BOUNDS
from hyperslab.trace.selection import hyperslabs
from hyperslab.trace.table import OPERATIONS, TracedArray
from hyperslab.trace.trace import Trace

MOST_STEPS = 200_000
"""Of an array: later accesses are left out, and the notes say so."""
LIBRARY_OF = {
    "h5py": "hdf5", "netCDF": "hdf5", "PyTables": "hdf5", "HDF5": "hdf5", "zarr": "zarr", "hyperslab": "hyperslab",
}  # fmt: skip
"""The library of the cost model that stands for the one that made an access."""


class TracedWorkload(Workload):
    """The accesses of a trace to one array. Points and lists of indices count as one call for each of their boxes."""

    _steps: list[Step] = PrivateAttr(default_factory=list)
    _notes: list[str] = PrivateAttr(default_factory=list)

    def steps(self) -> list[Step]:
        """The calls in the order of the trace."""
        return list(self._steps)

    @property
    def notes(self) -> list[str]:
        """How the workload differs from what the program did."""
        return list(self._notes)


class TracedSteps(NamedTuple):
    """The calls that stand for accesses of a trace, and how they differ from them."""

    steps: list[Step]
    looked_at: int  # accesses, of those that were asked for
    listed: int  # accesses that several calls stand for
    irregular: int  # accesses that the box around them stands for


def traced_steps(trace: Trace, rows: Sequence[int]) -> TracedSteps:
    """The calls of some rows of a trace, at most about `MOST_STEPS`. What selects nothing is left out."""
    steps: list[Step] = []
    listed = irregular = looked_at = 0
    for row in rows:
        if len(steps) >= MOST_STEPS:
            break
        looked_at += 1
        kind, numbers = trace.selection(row)
        shape = trace.arrays[trace.columns["array"][row]].shape
        parts = hyperslabs(kind, numbers, shape, MOST_STEPS - len(steps))
        irregular += kind == BOUNDS
        listed += len(parts) > 1
        operation = OPERATIONS[int(trace.columns["operation"][row] != 0)]
        for slabs in parts:
            start, stride, count, block = (list(numbers) for numbers in zip(*slabs, strict=True))
            step = [max(a, b) for a, b in zip(stride, block, strict=True)]
            if 0 not in count and 0 not in block:
                steps.append(Step(operation, Hyperslab(start, step, count, block)))  # type: ignore[arg-type]
    return TracedSteps(steps, looked_at, listed, irregular)


def workload_of(trace: Trace, array: TracedArray, rows: Sequence[int]) -> TracedWorkload:
    """The workload of some rows of a trace, all of them accesses to one array.

    Raises
    ------
    Refused
        The array has no axes or no elements, or nothing of it was selected.
    """
    if not array.shape or 0 in array.shape:
        raise Refused(f"{array.array} of {array.file} has the shape {array.shape}: there is nothing to price")
    seen = traced_steps(trace, rows)
    steps, notes = seen.steps, []
    if seen.looked_at < len(rows):
        notes.append(f"only the first {seen.looked_at} of {len(rows)} accesses are priced")
    if not steps:
        raise Refused(f"the trace selects nothing of {array.array} of {array.file}")
    if seen.listed:
        notes.append(f"{seen.listed} accesses to points, lists or several boxes are priced as one call for each box")
    if seen.irregular:
        notes.append(f"{seen.irregular} irregular accesses are priced as the boxes around them")
    kinds = dict.fromkeys(step.operation for step in steps)
    dtype = array.dtype if _is_plain(array) else f"V{array.element_nbytes}"
    asked = {"shape": list(array.shape), "dtype": dtype}
    found = TracedWorkload.model_validate(
        {"array": asked, "accesses": [{"select": "all", "operation": kind} for kind in kinds]}
    )
    found._steps, found._notes = steps, notes
    return found


def _is_plain(array: TracedArray) -> bool:
    try:
        return np.dtype(array.dtype).itemsize == array.element_nbytes and np.dtype(array.dtype).kind != "O"
    except TypeError:
        return False


def layout_of_traced(array: TracedArray, workload: Workload) -> Layout:
    """Today's layout: that of the file if it is still there, with its chunks' locations; otherwise as recorded."""
    if Path(array.file).exists() and array.library != "zarr":
        try:
            return layout_of_file(f"{array.file}:{array.array}", workload)
        except (HyperslabError, OSError):
            pass  # it has changed, or our engine cannot read it
    is_encoded = any(name not in ("shuffle", "fletcher32", "bytes") for name in array.filters)
    ratio = array.nbytes / array.stored_nbytes if is_encoded and array.stored_nbytes else None
    codecs = [name for name in array.filters if name not in ("shuffle", "fletcher32", "bytes")]
    is_whole = array.chunks is None
    chunks = array.shape if array.chunks is None else array.chunks
    return Layout(chunks, array.shards, ratio, codecs[-1] if codecs and ratio else None, is_whole)

"""What a trace asks of the arrays of a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hyperslab.advise.demand import Demand
from hyperslab.errors import UsageError
from hyperslab.model.traced import LIBRARY_OF, traced_steps
from hyperslab.model.workload import Step
from hyperslab.trace.recording.log import FAILED
from hyperslab.trace.table import TracedArray
from hyperslab.trace.trace import Trace


def rows_by_array(trace: Trace, path: str, where: Path) -> dict[str, list[int]]:
    """The accesses of a trace to each array of a file, in order; the array that took most time comes first.

    Raises
    ------
    UsageError
        The trace has no access to this file. The message names the files that it has.
    """
    mine = [place for place, one in enumerate(trace.arrays) if _is_same(one.file, path)]
    numbers = trace.columns["array"]
    if not mine or not np.isin(numbers, mine).any():
        files = list(dict.fromkeys(one.file for one in trace.arrays))
        there = ", ".join(files[:5]) or "no access at all"
        raise UsageError(
            f"{where} is the trace of another file: it has {there}, but not {path}; name that file, or record "
            f"your program again: hyperslab trace -o {where} -- python your_program.py"
        )
    found: dict[str, list[int]] = {}
    seconds: dict[str, float] = {}
    flags = trace.columns["flags"]
    for row in np.flatnonzero(np.isin(numbers, mine) & (flags & FAILED == 0)).tolist():
        name = _path_of(trace.arrays[numbers[row]].array)
        found.setdefault(name, []).append(row)
        seconds[name] = seconds.get(name, 0.0) + float(trace.columns["duration_ns"][row])
    return {name: found[name] for name in sorted(found, key=lambda one: -seconds[one])}


def traced_demand(
    trace: Trace, rows: Sequence[int], shape: tuple[int, ...], dtype: str, weight: float, where: Path
) -> Demand:
    """What some rows of a trace ask of one array.

    Raises
    ------
    UsageError
        The array had another shape when the trace was recorded, or nothing was selected.
    """
    numbers = trace.columns["array"]
    last = trace.arrays[numbers[rows[-1]]]
    steps, notes = _steps(trace, rows, shape, where)
    operations = {step.operation for step in steps}
    # A program that only writes fills a new array; its blocks are written into an array of the final shape.
    cache = "new" if operations == {"write"} else "cold"
    if last.cache_nbytes is None or LIBRARY_OF.get(last.library) != "hdf5":
        settings: tuple[int | None, int | None] = (None, None)
    else:
        settings = (last.cache_nbytes, last.cache_slots)
    return Demand(
        where.name,
        shape,
        dtype,
        steps,
        weight,
        cache,  # type: ignore[arg-type] # one of two literals
        LIBRARY_OF.get(last.library),
        last.library,
        *settings,
        tuple(notes),
        _decodes(trace, last.library),
    )


def _decodes(trace: Trace, library: str) -> frozenset[int] | None:
    """The filters that a library of the program had; it may have imported some after its first reads."""
    known = [one.decodes for one in trace.arrays if one.library == library and one.decodes is not None]
    return frozenset().union(*known) if known else None


def _steps(trace: Trace, rows: Sequence[int], shape: tuple[int, ...], where: Path) -> tuple[list[Step], list[str]]:
    numbers = trace.columns["array"]
    for number in dict.fromkeys(numbers[row] for row in rows):
        _check_shape(trace.arrays[number], shape, where)
    found = traced_steps(trace, rows)
    notes: list[str] = []
    if found.looked_at < len(rows):
        notes.append(f"{where.name}: only the first {found.looked_at:,} of {len(rows):,} accesses are looked at")
    if not found.steps:
        raise UsageError(f"{where} selects nothing of {trace.arrays[numbers[rows[0]]].array}")
    if found.listed:
        notes.append(
            f"{where.name}: {found.listed:,} accesses to points, lists or several boxes count as one for each box"
        )
    if found.irregular:
        notes.append(f"{where.name}: {found.irregular:,} irregular accesses count as the boxes around them")
    return found.steps, notes


def _check_shape(array: TracedArray, shape: tuple[int, ...], where: Path) -> None:
    if len(array.shape) != len(shape) or any(a > b for a, b in zip(array.shape, shape, strict=True)):
        raise UsageError(
            f"{where}: {array.array} had the shape {array.shape} when it was traced, but now it has {shape}: the file "
            "has changed, so record your program again"
        )


def _path_of(name: str) -> str:
    return f"/{name.strip('/')}"


def _is_same(traced: str, path: str) -> bool:
    if traced == path:
        return True
    try:
        return Path(traced).resolve() == Path(path).resolve()
    except OSError:
        return False

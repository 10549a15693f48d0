"""Which opening of an array each access belongs to: HDF5 forgets the chunks of an array when it is closed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hyperslab.trace.recording.log import FILE_REOPENED, REOPENED
from hyperslab.trace.table import AccessTable, is_held_once

Rows = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]


class Opened(NamedTuple):
    """For each of some accesses to one array, in order, whether something was opened for it again.

    The first access of all follows the first opening, which is none of these.
    """

    arrays: Mask
    """The array was, alone or with its file."""
    files: Mask
    """Its file was."""
    processes: Mask
    """Another process begins, which opens both for itself."""
    own_files: Mask
    """Its file was, and for no other array before."""


def by_process(table: AccessTable, rows: Rows) -> Rows:
    """The accesses of one process after the other: each has a cache of its own."""
    if not len(rows) or is_held_once(table.columns["process"]):
        return rows
    processes = table.columns["process"][rows]
    if (processes == processes[0]).all():
        return rows
    _, first, number = np.unique(processes, return_index=True, return_inverse=True)
    result: Rows = rows[np.argsort(first[number.reshape(-1)], kind="stable")]
    return result


def openings_of(table: AccessTable, rows: Rows, shared: Mask | None = None) -> Opened:
    """Which accesses to one array follow an opening, in the order of `by_process`.

    `shared` are the accesses of the table whose file is open already (`shared_openings`); none, if nobody asks.
    """
    flags, begins = table.columns["flags"][rows], np.zeros(len(rows), bool)
    if not is_held_once(table.columns["process"]):
        processes = table.columns["process"][rows]
        begins[1:] = processes[1:] != processes[:-1]
    is_file = begins | (flags & FILE_REOPENED != 0)
    is_array = is_file | (flags & REOPENED != 0)
    if len(rows):
        is_file[0] = is_array[0] = False  # the first access of all follows the first opening
    is_own = is_file if shared is None else is_file & ~shared[rows]
    return Opened(is_array, is_file, begins, is_own)


def shared_openings(table: AccessTable) -> Mask:
    """For each access that follows an opening of its array's file, whether it was opened for another array before.

    A process that reads three arrays of a file opens it once, and again when one of them finds that it was closed.
    """
    numbers, flags = table.columns["array"], table.columns["flags"]
    shared = np.zeros(len(table), bool)
    files = [(one.library, one.file) for one in table.arrays]
    places = {file: place for place, file in enumerate(dict.fromkeys(files))}
    file_of = np.array([places[file] for file in files], np.int64)
    alone = np.bincount(file_of, minlength=len(places)) == 1
    if alone.all() or not len(table):
        return shared
    events = np.union1d(np.flatnonzero(flags & FILE_REOPENED), _firsts(table))
    events = events[~alone[file_of[numbers[events]]]]
    seen: dict[tuple[int, int], set[int]] = {}
    processes = table.columns["process"][events].tolist()
    for row, process, array in zip(events.tolist(), processes, numbers[events].tolist(), strict=True):
        known = seen.setdefault((process, int(file_of[array])), set())
        if array in known:
            known.clear()
        shared[row] = bool(known)
        known.add(array)
    return shared


def shared_share(table: AccessTable, each: Iterable[Rows], shared: Mask) -> float:
    """Of the openings of their files that several arrays see, the share of those in which another array came first.

    `each` are the accesses to one of the arrays.
    """
    count = own = 0
    for rows in each:
        opened = openings_of(table, by_process(table, rows), shared)
        count += 1 + int(opened.files.sum())
        own += int(not shared[rows[0]]) + int(opened.own_files.sum())
    return 1 - own / count


def idle_before(table: AccessTable) -> npt.NDArray[np.int64]:
    """For each access, the nanoseconds from the start of the clock in which the program made no access before it.

    Those of accesses at the same time, of several threads or processes, count twice as busy, so as nothing idle.
    """
    starts, took = table.columns["start_ns"], table.columns["duration_ns"]
    idle: npt.NDArray[np.int64] = np.maximum.accumulate(starts - (np.cumsum(took) - took))
    return idle


def _firsts(table: AccessTable) -> Rows:
    """The first access of each process to each array."""
    keys = table.columns["process"].astype(np.int64) * max(len(table.arrays), 1) + table.columns["array"]
    result: Rows = np.unique(keys, return_index=True)[1]
    return result

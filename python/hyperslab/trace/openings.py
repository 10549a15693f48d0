"""Which opening of an array each access belongs to: HDF5 forgets the chunks of an array when it is closed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hyperslab.trace.recording.log import FILE_REOPENED, REOPENED
from hyperslab.trace.table import AccessTable

Rows = npt.NDArray[np.intp]
Openings = npt.NDArray[np.int64]


class Opened(NamedTuple):
    """For each of some accesses to one array, in order, a number that rises where it was opened again."""

    arrays: Openings
    """When the array was, alone or with its file."""
    files: Openings
    """When its file was."""
    processes: Openings
    """When another process begins, which opens both for itself."""


def by_process(table: AccessTable, rows: Rows) -> Rows:
    """The accesses of one process after the other: each has a cache of its own."""
    processes = table.columns["process"][rows]
    if not len(rows) or (processes == processes[0]).all():
        return rows
    _, first, number = np.unique(processes, return_index=True, return_inverse=True)
    result: Rows = rows[np.argsort(first[number.reshape(-1)], kind="stable")]
    return result


def openings_of(table: AccessTable, rows: Rows) -> Opened:
    """The openings that accesses to one array belong to, in the order of `by_process`."""
    flags, processes = table.columns["flags"][rows], table.columns["process"][rows]
    begins = np.zeros(len(rows), bool)
    begins[1:] = processes[1:] != processes[:-1]
    is_file = begins | (flags & FILE_REOPENED != 0)
    is_array = is_file | (flags & REOPENED != 0)
    if len(rows):
        is_file[0] = is_array[0] = False  # the first access of all follows the first opening
    return Opened(np.cumsum(is_array), np.cumsum(is_file), np.cumsum(begins))

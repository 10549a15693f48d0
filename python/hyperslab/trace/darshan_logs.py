"""Darshan's logs as traces.

Darshan counts what a program reads and writes for each file, and for each array of HDF5 if it was built for that. With
its extended tracing (DXT) it also has each access: an offset and a length in a file. If the file is still there, these
become accesses to chunks.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hyperslab.errors import MissingLibrary, NoSuchFile, NotATrace
from hyperslab.needed import need
from hyperslab.regular_files import open_regular
from hyperslab.trace.byte_ranges import Row, Rows, bytes_of, mapped
from hyperslab.trace.recording.log import BOUNDS, COLLECTIVE, HYPERSLAB, READ, WRITE
from hyperslab.trace.table import AccessTable, TracedArray

LIBRARY = "Darshan"
_OF_FILES = ("DXT_POSIX", "DXT_MPIIO")
_SUMMED = (
    "for some files, the log only has how much was read and written in all: run the program with "
    "DXT_ENABLE_IO_TRACE=1 to get each access"
)


def read_darshan(path: Path) -> AccessTable:
    """Read a Darshan log.

    Raises
    ------
    MissingLibrary
        PyDarshan is not installed, or without its library.
    NotATrace
        The file is no Darshan log.
    """
    need("reading a Darshan log", "darshan")
    try:
        import darshan
    except RuntimeError as error:  # where it has no wheel for this Python, pip installs it without libdarshan-util
        raise MissingLibrary(f"PyDarshan cannot find its library: use Python 3.11 or 3.12 ({error})") from error
    if not path.exists():
        raise NoSuchFile(errno.ENOENT, "there is no Darshan log", str(path))
    open_regular(path).close()
    try:
        report = darshan.DarshanReport(str(path), read_all=False)
    except (RuntimeError, KeyError, UnicodeDecodeError) as error:
        raise NotATrace(f"{path} is not a Darshan log, or it is damaged: {error}") from error
    rows, notes = Rows({}, []), []
    arrays = list(_counted(report, "H5D"))
    files_of_arrays = {array.rpartition(":")[0] for array, _, _ in arrays}
    traced = _traced(report, rows, {file for file in files_of_arrays if not os.path.isfile(file)})  # noqa: PTH113
    summed = [_add_array(rows, *one) for one in arrays if one[0].rpartition(":")[0] not in traced]
    known = traced | files_of_arrays
    counted = (one for module in ("POSIX", "MPI-IO") for one in _counted(report, module) if one[0] not in known)
    summed += [_add_file(rows, *one) for one in _once(counted)]
    notes += [_SUMMED] if any(summed) else []
    if not rows.rows:
        modules = ", ".join(sorted(report.modules)) or "none"
        notes.append(f"the log has no accesses to files by POSIX, MPI-IO or HDF5 (its modules: {modules})")
    job = report.metadata["job"]
    program = {"arguments": str(report.metadata["exe"]).split(), "seconds": float(job.get("run_time") or 0) or None}
    return mapped(rows.table(notes, program))


def _traced(report: Any, rows: Rows, but: set[str]) -> set[str]:
    """Add the accesses that DXT has, by the highest level that saw the system's reads. Returns the files."""
    traced_files: set[str] = set()
    for module in _OF_FILES:
        if module not in report.modules:
            continue
        report.mod_read_all_dxt_records(module, dtype="dict", warnings=False)
        records = [(report.name_records.get(one["id"]), one) for one in report.records[module].to_numpy()]
        mine = {file for file, _ in records if file is not None and file not in traced_files | but}
        for file in sorted(mine):
            _add_segments(rows, file, [one for name, one in records if name == file])
        traced_files |= mine
    return traced_files


def _add_segments(rows: Rows, file: str, records: list[dict[str, Any]]) -> None:
    """Add each access to a file."""
    accesses = [
        (record["rank"], operation, one["offset"], one["length"], one["start_time"], one["end_time"])
        for record in records
        for operation, name in ((READ, "read_segments"), (WRITE, "write_segments"))
        for one in record[name]
    ]
    accesses = [one for one in accesses if one[2] >= 0 and one[3] > 0]
    size = max((offset + length for _, _, offset, length, _, _ in accesses), default=0)
    if os.path.isfile(file):  # noqa: PTH113
        size = max(size, os.path.getsize(file))  # noqa: PTH202
    array = bytes_of(LIBRARY, file, size)
    for rank, operation, offset, length, begun, ended in accesses:
        times = (int(begun * 1e9), max(int((ended - begun) * 1e9), 0))
        numbers = [offset, 1, length, 1]
        number = rows.number(array)
        rows.rows.append(Row(*times, rank, 0, operation, 0, number, 0, length, HYPERSLAB, numbers))


# How the names of a module's counters begin.
_PREFIXES = {"H5D": "H5D_", "POSIX": "POSIX_", "MPI-IO": "MPIIO_"}
Counted = tuple[str, dict[str, Any], int]
"""A file, or a file and an array of it; what was counted; the process, -1 for all together."""


def _counted(report: Any, module: str) -> Iterator[Counted]:
    """What a module of Darshan has counted: of each file or array, and each process."""
    if module not in report.modules:
        return
    report.mod_read_all_records(module, dtype="numpy", warnings=False)
    names = report.counters[module]
    for record in report.records[module].to_numpy():
        name = report.name_records.get(record["id"])
        values = dict(zip(names["counters"], record["counters"].tolist(), strict=True))
        values |= dict(zip(names["fcounters"], record["fcounters"].tolist(), strict=True))
        if name is not None:
            short = {key.removeprefix(_PREFIXES[module]): value for key, value in values.items()}
            yield str(name), short, int(record["rank"])


def _once(counted: Iterator[Counted]) -> list[Counted]:
    """The first module's counts of each file."""
    first_counts: dict[tuple[str, int], Counted] = {}
    for one in counted:
        first_counts.setdefault((one[0], one[2]), one)
    return list(first_counts.values())


def _add_array(rows: Rows, name: str, values: dict[str, Any], rank: int) -> bool:
    """Add one row for all reads of an array by a process, and one for all writes."""
    file, _, array = name.rpartition(":")
    width = max(int(values.get("DATATYPE_SIZE", 1)), 1)
    most = max(int(values["BYTES_READ"]), int(values["BYTES_WRITTEN"])) // width
    count = int(values.get("DATASPACE_NPOINTS", 0))
    described = TracedArray(LIBRARY, file, array, (count if count > 0 else max(most, 1),), element_nbytes=width)
    flags = COLLECTIVE if values.get("USE_MPIIO_COLLECTIVE", 0) > 0 else 0
    return _add_sums(rows, described, values, rank, flags)


def _add_file(rows: Rows, file: str, values: dict[str, Any], rank: int) -> bool:
    """The same for a file."""
    ends = [int(values.get(f"MAX_BYTE_{name}", 0)) + 1 for name in ("READ", "WRITTEN")]
    size = max(*ends, int(values["BYTES_READ"]), int(values["BYTES_WRITTEN"]), 1)
    return _add_sums(rows, bytes_of(LIBRARY, file, size, "(all arrays)"), values, rank, 0)


def _add_sums(rows: Rows, array: TracedArray, values: dict[str, Any], rank: int, flags: int) -> bool:
    is_any = False
    for operation, name, title in ((READ, "READ", "READ"), (WRITE, "WRITTEN", "WRITE")):
        nbytes = int(values[f"BYTES_{name}"])
        if nbytes > 0:
            begun = float(values.get(f"F_{title}_START_TIMESTAMP", 0))
            times = (int(begun * 1e9), int(float(values.get(f"F_{title}_TIME", 0)) * 1e9))
            number, numbers = rows.number(array), [0, array.shape[0]]
            rows.rows.append(Row(*times, rank, 0, operation, flags, number, 0, nbytes, BOUNDS, numbers))
            is_any = True
    return is_any

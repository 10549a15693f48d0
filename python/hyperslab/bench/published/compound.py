"""The study's tables: HDF5's compound type with h5py and pandas, compared with CSV with pandas and csv.writer.

These are the programs of 2023 (figures 31-33). They wrote HDF5 only property by property, so the operations `write` and
`write-fields` are the same. They wrote CSV by rows (`write`) and by columns (`write-fields`). Written by rows, the rows
are as long as the number of rows (B8), so a million rows could not be written. Beyond the 1024 rows of figures 31 and
32, `write` is by columns, which is all that figure 33 can show. `read` always reads the table that was written by
columns, because only that one has the properties.

The publication leaves one thing open: here, a CSV by columns is a data frame that is filled column by column and saved
once.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar, Literal

import numpy as np

from hyperslab.bench.operations import Operation
from hyperslab.bench.published import PublishedArrays, Replay
from hyperslab.bench.published.common_io import copy_and_rename, random_array
from hyperslab.errors import Refused
from hyperslab.needed import missing

TABLE = "Dataset"
MOST_ROWS_BY_ROW = 1024


class Compound(Replay):
    """A table of float32 properties, in HDF5 and in CSV."""

    name: ClassVar[str] = "common-io-compound"
    source: ClassVar[str] = "Ambatipudi et al. 2023, figures 31-33; programs of 2023"
    formats: ClassVar[tuple[str, ...]] = ("hdf5-compound", "csv")
    trials: ClassVar[int] = 5
    dropped: ClassVar[int] = 0
    statistic: ClassVar[Literal["mean", "min"]] = "mean"
    faults: ClassVar[Mapping[str, str]] = {
        "B8": "both files are read whole by pandas inside every timer; CSV by rows has rows as long as the number "
        "of rows, and its random numbers are made inside the timer; CSV by columns gains a column of indices; "
        "writes were milliseconds and reads seconds on one axis (here all are seconds)",
        "B9": "nothing is synced to the device",
        "B10": "the file was just written and is read from the page cache",
    }

    def write(self, format_name: str, path: Path, arrays: PublishedArrays, operation: Operation) -> dict[str, float]:
        """Write as published, and leave a table with all properties at `path`."""
        if operation.name not in ("write", "write-fields"):
            raise Refused(f"{self.name} does not support {operation.name}: the study wrote by columns and by rows")
        original = path.with_name(f"{path.name}.original")
        by_row = operation.name == "write" and _rows(arrays) <= MOST_ROWS_BY_ROW
        seconds = self._writers[format_name](original, arrays, by_row)
        copy_and_rename(original, path)
        return {"write": seconds}

    def read(self, format_name: str, path: Path, arrays: PublishedArrays, operation: Operation) -> dict[str, float]:
        """Read the whole table with pandas and then select from memory, all in one timer."""
        if operation.name not in _READS:
            raise Refused(f"{self.name} does not support {operation.name}; it supports {', '.join(_READS)}")
        load = _load_hdf5 if format_name == "hdf5-compound" else _load_csv
        start = perf_counter()
        _READS[operation.name](load(path), _properties(arrays))
        return {"read": perf_counter() - start}

    @property
    def _writers(self) -> Mapping[str, Callable[[Path, PublishedArrays, bool], float]]:
        return {"hdf5-compound": _write_hdf5, "csv": _write_csv}


def _write_hdf5(path: Path, arrays: PublishedArrays, _: bool) -> float:
    """Write property by property. Each one rewrites every record."""
    import h5py

    names = _properties(arrays)
    writing = 0.0
    with h5py.File(path, "w") as file:
        table = file.create_dataset(TABLE, arrays.shape, np.dtype([(name, "f4") for name in names]))
        for name in names:
            data = random_array(arrays.shape)
            start = perf_counter()
            table[name] = data
            writing += perf_counter() - start
    return writing


def _write_csv(path: Path, arrays: PublishedArrays, by_row: bool) -> float:
    by_columns = _write_csv_by_columns(path, arrays)
    if not by_row:
        return by_columns
    rows_path = path.with_name(f"{path.name}.rows")
    seconds = _write_csv_by_rows(rows_path, _rows(arrays))
    rows_path.unlink()
    return seconds


def _write_csv_by_columns(path: Path, arrays: PublishedArrays) -> float:
    columns = {name: random_array(arrays.shape) for name in _properties(arrays)}
    frame = _pandas().DataFrame(index=range(_rows(arrays)))
    start = perf_counter()
    for name, data in columns.items():
        frame[name] = data
    frame.to_csv(path)
    return perf_counter() - start


def _write_csv_by_rows(path: Path, rows: int) -> float:
    start = perf_counter()
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream)
        for _ in range(rows):
            writer.writerow(random_array((rows,)))
    return perf_counter() - start


def _load_hdf5(path: Path) -> Any:
    return _pandas().read_hdf(path, key=TABLE)


def _load_csv(path: Path) -> Any:
    return _pandas().read_csv(path)


def _everything(frame: Any, _: list[str]) -> None:
    frame.iloc[:]


def _each_column(frame: Any, names: list[str]) -> None:
    for name in names:
        frame[name]


def _each_row(frame: Any, _: list[str]) -> None:
    for row in range(len(frame)):
        frame.iloc[row]


def _half_of_each_row(frame: Any, names: list[str]) -> None:
    half = len(names) // 2
    for row in range(len(frame)):
        frame.iloc[row, :half]


_READS: Mapping[str, Callable[[Any, list[str]], None]] = {
    "read-all": _everything,
    "read-fields": _each_column,
    "read-random-rows": _each_row,
    "read-half-fields": _half_of_each_row,
}


def _rows(arrays: PublishedArrays) -> int:
    return arrays.shape[0]


def _properties(arrays: PublishedArrays) -> list[str]:
    if arrays.properties is None:
        raise Refused("common-io-compound writes tables: a study that replays it must give the number of `properties`")
    return [f"p{index}" for index in range(arrays.properties)]


def _pandas() -> Any:
    try:
        import pandas as pd
        import tables  # noqa: F401  (what pandas.read_hdf reads with)
    except ImportError as error:
        raise missing(error.name or "tables") from error
    return pd

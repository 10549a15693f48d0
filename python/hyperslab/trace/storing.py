"""Traces as Parquet files: a row for each access, and what belongs to the whole trace in the file's metadata."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hyperslab.arrow import number_column, value_column
from hyperslab.errors import NoSuchFile, NotATrace
from hyperslab.needed import need
from hyperslab.regular_files import open_regular
from hyperslab.replacing import replacing
from hyperslab.trace.described import checked_program, checked_texts
from hyperslab.trace.raw_logs import read_logs
from hyperslab.trace.table import COLUMNS, OPERATIONS, AccessTable, TracedArray, to_json

VERSION = 1
KEY = b"hyperslab.trace"
LOGS = ".logs"
"""What is appended to a trace's path to name the folder of its raw logs."""
ROWS_OF_A_GROUP = 1 << 17
ROWS_OF_A_BATCH = 1 << 13
READ_NBYTES = 1 << 16
# For people who read the file with other tools; we have them from the metadata.
_WORDS = ("library", "file", "name", "shape", "chunks", "dtype", "filters", "cache")


def logs_of(path: Path) -> Path:
    """The folder of a trace's raw logs, while its program runs."""
    return path.with_name(path.name + LOGS)


def opened(path: Path) -> AccessTable:
    """Open a trace of either form."""
    if path.is_dir():
        return _checked(path)
    if path.exists():
        return _read(path)
    if logs_of(path).is_dir():
        return _checked(logs_of(path))
    raise NoSuchFile(errno.ENOENT, "there is no trace", str(path))


def _checked(folder: Path) -> AccessTable:
    if not any(folder.glob("*.log")) and not (folder / "program.json").exists():
        raise NotATrace(f"{folder} is a folder without raw logs of hyperslab")
    return read_logs(folder)


def write(trace: AccessTable, path: Path) -> None:
    """Write a trace, row group by row group, into a new file that takes the name in the end."""
    need("saving a trace", "pyarrow")
    import pyarrow.parquet as pq

    described = {
        "version": VERSION,
        "arrays": [to_json(array) for array in trace.arrays],
        "memory_types": trace.memory_types,
        "notes": trace.notes,
        "program": trace.program,
    }
    schema = _schema().with_metadata({KEY: json.dumps(described).encode()})
    with replacing(path) as beside, pq.ParquetWriter(beside, schema, compression="zstd", compression_level=5) as writer:
        for table in _tables(trace, schema):
            writer.write_table(table)


def _schema() -> Any:
    import pyarrow as pa

    words = [(name, pa.dictionary(pa.int32(), pa.string())) for name in (*_WORDS, "operation_name", "memory_dtype")]
    numbers = [(name, pa.from_numpy_dtype(np.dtype(dtype))) for name, dtype in COLUMNS.items()]
    return pa.schema([*numbers, ("selection", pa.list_(pa.int64())), *words])


def _tables(trace: AccessTable, schema: Any) -> Iterator[Any]:
    import pyarrow as pa

    words = {name: value_column(texts, str) for name, texts in _texts(trace).items()}
    operations = value_column(OPERATIONS, str)
    for first in range(0, max(len(trace), 1), ROWS_OF_A_GROUP):
        rows = slice(first, min(first + ROWS_OF_A_GROUP, len(trace)))
        columns = {name: column[rows] for name, column in trace.columns.items()}
        offsets = trace.offsets[rows.start : rows.stop + 1]
        numbers = trace.numbers[offsets[0] : offsets[-1]]
        arrays: list[Any] = [number_column(columns[name]) for name in COLUMNS]
        arrays.append(
            pa.ListArray.from_arrays(number_column((offsets - offsets[0]).astype(np.int32)), number_column(numbers))
        )
        arrays += [pa.DictionaryArray.from_arrays(number_column(columns["array"]), words[name]) for name in _WORDS]
        arrays.append(pa.DictionaryArray.from_arrays(number_column(columns["operation"].astype(np.int32)), operations))
        arrays.append(pa.DictionaryArray.from_arrays(number_column(columns["memory_type"]), words["memory_dtype"]))
        yield pa.Table.from_arrays(arrays, schema=schema)


def _texts(trace: AccessTable) -> dict[str, list[str]]:
    arrays = trace.arrays
    texts = {
        "library": [one.library for one in arrays],
        "file": [one.file for one in arrays],
        "name": [one.array for one in arrays],
        "shape": ["x".join(map(str, one.shape)) for one in arrays],
        "chunks": ["x".join(map(str, one.chunks or ())) for one in arrays],
        "dtype": [one.dtype for one in arrays],
        "filters": [",".join(one.filters) for one in arrays],
        "cache": [_cache_text(one) for one in arrays],
        "memory_dtype": trace.memory_types,
    }
    return {name: list(map(_encodable, column)) for name, column in texts.items()}


def _encodable(text: str) -> str:
    """Text without what UTF-8 does not have: names of files are bytes."""
    return text.encode("utf-8", "backslashreplace").decode()


def _cache_text(array: TracedArray) -> str:
    if array.cache_nbytes is None:
        return ""
    return f"{array.cache_nbytes} bytes, {array.cache_slots} slots, w0 {array.cache_w0}"


def _read(path: Path) -> AccessTable:
    need("opening a trace", "pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    open_regular(path).close()  # a pipe would let pyarrow wait
    try:
        file = pq.ParquetFile(path, buffer_size=READ_NBYTES, pre_buffer=False)
        said = (file.schema_arrow.metadata or {}).get(KEY)
        if said is None:
            raise NotATrace(f"{path} is a Parquet file, but not a trace")
        described = _described(json.loads(said), path)
        return _assembled(described, file)
    except (pa.ArrowException, OSError, LookupError, TypeError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, NotATrace) or getattr(error, "errno", None) is not None:  # the system's error
            raise
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise NotATrace(f"{path} is not a trace, or it is damaged: {said}; record the program again") from error


def _described(described: Any, path: Path) -> dict[str, Any]:
    """What belongs to the whole trace, if it is what we write."""
    if not isinstance(described, dict):
        raise TypeError("what it says of itself is not an object")
    if described.get("version") != VERSION:
        message = f"{path} is a trace of version {described.get('version')}; this hyperslab reads {VERSION}"
        raise NotATrace(f"{message}: record the program again, or use the hyperslab that recorded it")
    arrays = described["arrays"]
    if not isinstance(arrays, list) or not all(isinstance(one, dict) for one in arrays):
        raise TypeError("its arrays are not a list of objects")
    return {
        "arrays": [TracedArray.of(one) for one in arrays],
        "memory_types": checked_texts(described["memory_types"], "memory_types"),
        "notes": checked_texts(described["notes"], "notes"),
        "program": checked_program(described["program"]),
    }


def _assembled(described: dict[str, Any], file: Any) -> AccessTable:
    """The table of accesses, in NumPy arrays. No row can be absent.

    Few rows are decoded at a time: a long trace at once would need several times its memory.
    """
    import pyarrow as pa

    groups = [file.metadata.row_group(place) for place in range(file.metadata.num_row_groups)]
    count = sum(group.num_rows for group in groups)
    columns = {name: np.empty(count, dtype) for name, dtype in COLUMNS.items()}
    offsets = np.zeros(count + 1, np.int64)
    numbers = np.empty(sum(map(_value_count, groups)), np.int64)
    row = end = 0
    for batch in file.iter_batches(ROWS_OF_A_BATCH, columns=[*COLUMNS, "selection"], use_threads=False):
        rows = slice(row, row + batch.num_rows)
        for name, column in columns.items():
            column[rows] = _elements(batch[name], column.dtype)
        starts, taken = _selections(batch["selection"])
        offsets[rows.start + 1 : rows.stop + 1] = starts[1:] + end
        numbers[end : end + len(taken)] = taken
        row, end = rows.stop, end + len(taken)
    if row != count:
        raise ValueError("it has fewer rows than it says")
    pa.default_memory_pool().release_unused()
    columns = {name: _once(column) for name, column in columns.items()}
    return AccessTable(columns=columns, offsets=offsets, numbers=numbers[:end], **described)


def _once(column: np.ndarray) -> np.ndarray:
    """A column whose rows are all the same, held once: most programs are a single process with a single thread."""
    is_same = len(column) > ROWS_OF_A_BATCH and column.min() == column.max()
    return np.broadcast_to(column[0], column.shape) if is_same else column


def _value_count(group: Any) -> int:
    """The most numbers that the selections of a row group may have; an empty selection counts as one."""
    columns = [group.column(place) for place in range(group.num_columns)]
    return sum(one.num_values for one in columns if one.path_in_schema.startswith("selection."))


def _selections(listed: Any) -> tuple[np.ndarray, np.ndarray]:
    """Where the selection of each row begins, with the end of the last one, and the numbers of all."""
    import pyarrow as pa

    if listed.null_count or not pa.types.is_list(listed.type):
        raise ValueError("it has rows without numbers")
    offsets = _elements(listed.offsets, np.dtype(np.int64))
    return offsets - offsets[0], _elements(listed.values, np.dtype(np.int64))[offsets[0] : offsets[-1]]


def _elements(array: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """The numbers of an array of pyarrow's, which must fit.

    Its own `to_numpy` imports pandas, if that is there, and its `cast` all functions of pyarrow.
    """
    import pyarrow as pa

    if not pa.types.is_integer(array.type) or array.null_count:
        raise ValueError("it has rows without numbers")
    stored = np.dtype(array.type.to_pandas_dtype())
    content = array.buffers()[1]
    numbers = np.frombuffer(content or b"", stored, len(array), array.offset * stored.itemsize if content else 0)
    if stored == dtype or not len(numbers):
        return numbers.astype(dtype, copy=False)
    most = np.iinfo(dtype)
    if int(numbers.min()) < most.min or int(numbers.max()) > most.max:
        raise ValueError(f"it has numbers that are not {dtype}")
    return numbers.astype(dtype)

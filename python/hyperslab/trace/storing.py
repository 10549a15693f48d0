"""Traces as Parquet files: a row for each access, and what belongs to the whole trace in the file's metadata."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

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

    words = {name: pa.array(texts, pa.string()) for name, texts in _texts(trace).items()}
    for first in range(0, max(len(trace), 1), ROWS_OF_A_GROUP):
        rows = slice(first, min(first + ROWS_OF_A_GROUP, len(trace)))
        columns = {name: column[rows] for name, column in trace.columns.items()}
        offsets = trace.offsets[rows.start : rows.stop + 1]
        numbers = trace.numbers[offsets[0] : offsets[-1]]
        arrays: list[Any] = [pa.array(columns[name]) for name in COLUMNS]
        arrays.append(pa.ListArray.from_arrays(pa.array((offsets - offsets[0]).astype(np.int32)), pa.array(numbers)))
        arrays += [pa.DictionaryArray.from_arrays(pa.array(columns["array"]), words[name]) for name in _WORDS]
        arrays.append(pa.DictionaryArray.from_arrays(pa.array(columns["operation"].astype(np.int32)), list(OPERATIONS)))
        arrays.append(pa.DictionaryArray.from_arrays(pa.array(columns["memory_type"]), words["memory_dtype"]))
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
        file = pq.ParquetFile(path)
        said = (file.schema_arrow.metadata or {}).get(KEY)
        if said is None:
            raise NotATrace(f"{path} is a Parquet file, but not a trace")
        described = _described(json.loads(said), path)
        return _assembled(described, file.read([*COLUMNS, "selection"]))
    except (pa.ArrowException, OSError, LookupError, TypeError, ValueError, RecursionError) as error:
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


def _assembled(described: dict[str, Any], table: Any) -> AccessTable:
    """The table of accesses, in NumPy arrays. No row can be absent."""
    import pyarrow as pa

    are_whole = all(pa.types.is_integer(table[name].type) for name in COLUMNS)
    if not are_whole or any(one.null_count for one in table.columns) or not pa.types.is_list(table["selection"].type):
        raise ValueError("it has rows without numbers")
    listed = table["selection"].combine_chunks()
    lengths = _elements(listed.value_lengths(), np.dtype(np.int64))
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
    numbers = _elements(listed.flatten(), np.dtype(np.int64))
    if len(numbers) != offsets[-1]:
        raise ValueError("its selections do not fit its rows")
    columns = {name: _elements(table[name].combine_chunks(), np.dtype(dtype)) for name, dtype in COLUMNS.items()}
    return AccessTable(columns=columns, offsets=offsets, numbers=numbers, **described)


def _elements(array: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """The numbers of an array of pyarrow's, which must fit. Its own `to_numpy` imports pandas, if that is there."""
    import pyarrow as pa

    fitting = array.cast(pa.from_numpy_dtype(dtype))
    if fitting.null_count:
        raise ValueError("it has rows without numbers")
    content = fitting.buffers()[1]
    return np.frombuffer(content or b"", dtype, len(fitting), fitting.offset * dtype.itemsize if content else 0)

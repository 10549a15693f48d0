"""kerchunk's references in Parquet: a folder with one document of metadata, and tables of chunks for each array.

The layout is that of `LazyReferenceMapper` in fsspec's `implementations/reference.py`: `.zmetadata`, and for each array
files `refs.N.parq` with the chunks from `N * record_size`. The tables of an array are read when it is first used.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hyperslab._core import ArchiveFile
from hyperslab.archive.far.remote import SourceResolver
from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import DamagedFile, Unsupported
from hyperslab.needed import missing
from hyperslab.regular_files import open_regular, read_regular

NO_FILE = np.uint32(2**32 - 1)
MOST_CHUNKS = 1 << 26  # of one array
Table = tuple[tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[int, bytes]], list[str]]


class ParquetReferences:
    """A folder of references with its parsed document."""

    def __init__(self, folder: Path, document: Mapping[str, Any], resolver: SourceResolver) -> None:
        self.folder = folder
        self.resolver = resolver
        documents, record_size = document.get("metadata"), document.get("record_size")
        if not isinstance(documents, dict) or not isinstance(record_size, int):
            raise DamagedFile(f"{folder / '.zmetadata'}: metadata must be an object, and record_size an integer")
        if not 0 < record_size <= MOST_CHUNKS:
            raise DamagedFile(f"{folder / '.zmetadata'}: record_size is {record_size}, not 1 to {MOST_CHUNKS}")
        self.documents: dict[str, Any] = documents
        self.record_size = record_size

    @staticmethod
    def found(path: str, resolver: SourceResolver) -> ParquetReferences | None:
        """The references in a folder; None if the folder holds something else."""
        folder = Path(path)
        metadata = folder / ".zmetadata"
        if not metadata.is_file() or (folder / ".zgroup").exists():
            return None
        text = read_regular(metadata)
        if b'"record_size"' not in text:
            return None
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DamagedFile(f"{metadata}: {error}") from error
        return ParquetReferences(folder, document, resolver) if "record_size" in document else None

    def opened(self, chunk_cache_nbytes: int) -> ArchiveFile:
        """Open the archive that the references describe."""
        documents = {key: json.dumps(value).encode() for key, value in self.documents.items()}
        return ArchiveFile.of_tables(
            documents, self.table, str(self.folder), chunk_cache_nbytes, self.resolver.for_document(str(self.folder))
        )

    def table(self, array: str) -> Table:
        """Read the chunks of an array.

        Returns
        -------
        Table
            For each chunk the index of its file, its offset and its length in bytes; the inline chunks; and the names
            of the files.

        Raises
        ------
        DamagedFile
            A table cannot be read, or has wrong columns or a wrong length.
        Unsupported
            The array has too many chunks.
        MissingLibrary
            pyarrow is not installed.
        """
        count = min(self._chunk_count(array), self._row_count(array))
        if count > MOST_CHUNKS:
            raise Unsupported(f"array {array} of {self.folder} has more than {MOST_CHUNKS} references")
        files, inline = np.full(count, NO_FILE), dict[int, bytes]()
        offsets, lengths = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
        names: dict[str, int] = {}
        for start in range(0, count, self.record_size):
            file = self.folder / array / f"refs.{start // self.record_size}.parq"
            if not file.exists():  # none of its chunks was ever written
                continue
            columns = self._columns(file)
            part = slice(start, min(start + self.record_size, count))
            own = slice(0, part.stop - start)
            files[part], is_stored = _numbered(columns["path"], names, own)
            offsets[part] = np.where(is_stored, _numbers(columns["offset"], file, own), 0)
            lengths[part] = np.where(is_stored, _numbers(columns["size"], file, own), 0)
            for row in np.flatnonzero(columns["raw"].is_valid().to_numpy(zero_copy_only=False)[own]).tolist():
                raw = columns["raw"][row].as_py()
                inline[start + row] = raw.encode() if isinstance(raw, str) else bytes(raw)
        self.resolver.check(names)
        return (files, offsets, lengths, inline), list(names)

    def _chunk_count(self, array: str) -> int:
        try:
            zarray = self.documents[f"{array}/.zarray"]
            lengths = zip(zarray["shape"], zarray["chunks"], strict=True)
            return math.prod(ceil_div(length, chunk) for length, chunk in lengths)
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise DamagedFile(f"array {array} of {self.folder}: its .zarray does not describe a chunk grid") from error

    def _row_count(self, array: str) -> int:
        """The number of rows up to the end of the last table."""
        tables = (self.folder / array).glob("refs.*.parq")
        numbers = (int(number) for number in (table.name.split(".")[1] for table in tables) if number.isdecimal())
        return (max(numbers, default=-1) + 1) * self.record_size

    def _columns(self, file: Path) -> dict[str, Any]:
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError as error:
            raise missing("pyarrow", "reading references in Parquet") from error
        try:
            with open_regular(file) as stream:
                table = parquet.ParquetFile(stream).read(["path", "offset", "size", "raw"])
            columns = {name: table[name].combine_chunks() for name in ("path", "offset", "size", "raw")}
        except (OSError, KeyError, pyarrow.ArrowException) as error:
            raise DamagedFile(f"{file} is not a table of references: {error}") from error
        if table.num_rows != self.record_size:
            raise DamagedFile(f"{file} has {table.num_rows} rows, not {self.record_size} as .zmetadata says")
        return columns


def _numbered(paths: Any, names: dict[str, int], rows: slice) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Number the paths, adding new ones to `names`; also return which rows have a path."""
    import pyarrow

    paths = paths if isinstance(paths, pyarrow.DictionaryArray) else paths.dictionary_encode()
    known = [
        NO_FILE if path is None else names.setdefault(str(path), len(names)) for path in paths.dictionary.to_pylist()
    ]
    indices = paths.indices.fill_null(len(known)).to_numpy()[rows]
    numbers = np.array([*known, NO_FILE], np.uint32)[indices]
    return numbers, numbers != NO_FILE


def _numbers(column: Any, file: Path, rows: slice) -> npt.NDArray[Any]:
    numbers = column.fill_null(0).to_numpy()[rows]
    if numbers.dtype.kind not in "iu" or (numbers < 0).any():
        raise DamagedFile(f"{file}: offsets or sizes are not integers of at least 0")
    return np.asarray(numbers, np.uint64)

"""Comma-separated values: a text format that every program can read, but none can read fast.

Specification: RFC 4180, https://www.rfc-editor.org/rfc/rfc4180. Library: pandas (`to_csv`, `read_csv`). Each array
is one file `NAME.csv` in a directory. The last axis becomes the columns, all other axes together the rows; a 1-D
array has one value per line. Numbers are written with enough digits to read back the same bits. Compound arrays have
one column per field and a header line.

To read a part, pandas still scans all lines before it; `read_many` parses the file once and slices in memory. Rows
with very many columns (10^5 and more) are slow, because pandas keeps one object per column.

Cannot express: shape and dtype (you give them when you open the array), the payload and sign of NaN, overwriting in
place, nested names.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from hyperslab._core import Hyperslab
from hyperslab.errors import Refused, UsageError
from hyperslab.formats.contract import ArrayFile, ArrayHandle, ArraySpec, Capabilities, Format, Installed, imported
from hyperslab.formats.directory import DirectoryFile


class Csv(Format):
    """Comma-separated values through pandas."""

    name: ClassVar[str] = "csv"
    extension: ClassVar[str] = ".csv"
    capabilities: ClassVar[Capabilities] = Capabilities(
        empty=False,
        overwrite=False,
        append=True,
        compound=True,
        many_arrays=False,
        byte_order="text",
        self_describing=False,
        notes="2-D text; reading a part scans all lines before it; NaN loses its sign and payload",
    )
    default_layout: ClassVar[str] = "lines of text"

    @classmethod
    def library(cls) -> Installed:
        """Pandas."""
        return Installed("pandas", imported("pandas").__version__)

    def create(self, path: Path) -> ArrayFile:
        """Make the directory."""
        path.mkdir()
        return CsvFile(path, ".csv", writable=True)

    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:
        """Find the directory."""
        return CsvFile(path, ".csv", writable=mode == "r+")


class CsvFile(DirectoryFile):
    """A directory of NAME.csv files."""

    def _create(self, path: Path, spec: ArraySpec) -> CsvArray:
        path.touch(exist_ok=False)
        return CsvArray(path, spec)

    def _open(self, path: Path, spec: ArraySpec | None) -> CsvArray:
        if spec is None:
            raise UsageError(f"{path}: a CSV file does not record shape and dtype; give a spec to open it")
        return CsvArray(path, spec)


class CsvArray(ArrayHandle):
    """One text file; every method opens, parses and closes it."""

    def __init__(self, path: Path, spec: ArraySpec) -> None:
        self._path = path
        self._shape = spec.shape
        self._dtype = spec.dtype

    def write(self, data: np.ndarray, selection: Hyperslab | None = None) -> None:
        """Print the whole array."""
        if selection is not None and selection.shape != self._shape:
            raise Refused(f"{self._path}: csv can only write whole arrays, because lines have no fixed length")
        self._print(data, "w")

    def append(self, data: np.ndarray) -> None:
        """Print more lines."""
        self._print(data, "a")
        self._shape = (self._shape[0] + data.shape[0], *self._shape[1:])

    def read(self, selection: Hyperslab | None = None) -> np.ndarray:
        """Parse everything, or only the lines and columns that hold the selection."""
        if self._dtype.fields is not None:
            whole = self.read_fields(list(self._dtype.fields))
            return whole if selection is None else whole[selection.slices]
        if selection is None:
            return self._parse(0, self._line_count, None).reshape(self._shape)
        if selection.size == 0:
            return np.empty(selection.shape, self._dtype)
        lines, columns = self._positions(selection.slices)
        first = int(lines[0])
        parsed = self._parse(first, int(lines[-1]) - first + 1, columns)
        return np.ascontiguousarray(parsed[lines - first]).reshape(selection.shape)

    def read_many(self, selections: Sequence[Hyperslab]) -> list[np.ndarray]:
        """Parse everything once and slice in memory."""
        whole = self.read()
        return [np.array(whole[selection.slices], order="C") for selection in selections]

    def read_fields(self, fields: Sequence[str]) -> np.ndarray:
        """Parse only these columns."""
        dtypes = {name: _native(self._dtype[name]) for name in fields}
        frame = imported("pandas").read_csv(self._path, usecols=list(fields), dtype=dtypes, **_exact())
        out = np.empty(len(frame), list(dtypes.items()))
        for name in fields:
            out[name] = frame[name].to_numpy()
        return out

    @property
    def _line_count(self) -> int:
        return int(np.prod(self._shape[:-1] if len(self._shape) > 1 else self._shape, dtype=np.int64))

    @property
    def _column_count(self) -> int:
        return self._shape[-1] if len(self._shape) > 1 else 1

    def _print(self, data: np.ndarray, mode: str) -> None:
        compound = self._dtype.fields is not None
        table = data if compound else data.reshape(-1, self._column_count) if data.size else np.empty((0, 0))
        header = compound and mode == "w"
        imported("pandas").DataFrame(table).to_csv(self._path, mode=mode, index=False, header=header, na_rep="nan")

    def _parse(self, first: int, count: int, columns: range | None) -> np.ndarray:
        width = self._column_count if columns is None else len(columns)
        if not count * width:
            return np.empty((count, width), _native(self._dtype))
        frame = imported("pandas").read_csv(
            self._path,
            header=None,
            dtype=_native(self._dtype),
            skiprows=first,
            nrows=count,
            usecols=columns,
            **_exact(),
        )
        return np.ascontiguousarray(frame.to_numpy())

    def _positions(self, slices: tuple[slice, ...]) -> tuple[np.ndarray, range]:
        """The line numbers and the column range of a selection."""
        ranges = [range(piece.start, piece.stop, piece.step) for piece in slices]
        columns = ranges.pop() if len(ranges) > 1 else range(1)
        extents = self._shape[: len(ranges)]
        grid = np.meshgrid(*(np.asarray(index) for index in ranges), indexing="ij")
        return np.ravel_multi_index([axis.ravel() for axis in grid], extents), columns


def _native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype.newbyteorder("=")


def _exact() -> dict[str, str]:
    """The argument that makes `read_csv` round correctly; pandas 3.1 deprecates it, because it always does."""
    major, minor = map(int, imported("pandas").__version__.split(".")[:2])
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}

"""`Trace`: the accesses of a program, recorded by `hyperslab trace` or `record`."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from hyperslab.trace import storing
from hyperslab.trace.checking import without_invalid
from hyperslab.trace.table import AccessTable


class Trace(AccessTable):
    """The accesses of a program in the order in which they began: a table with a row for each.

    `hyperslab trace` and `record` make traces; `Trace.open` opens one. `columns` has the table as NumPy arrays, without
    the selections: that of row k is `numbers[offsets[k]:offsets[k + 1]]`, and `columns["kind"]` says what they mean
    (docs/trace.md). Iterating gives one `TracedAccess` after another, with everything decoded.
    """

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open a trace: a Parquet file, or a folder of raw logs that a killed `hyperslab trace` left behind.

        Raises
        ------
        NotATrace
            The path is no trace, or one of another version.
        FileNotFoundError
            There is nothing at this path.
        """
        return cls(**vars(without_invalid(storing.opened(Path(path)))))

    def save(self, path: str | Path) -> None:
        """Write the trace as a Parquet file.

        Raises
        ------
        MissingLibrary
            pyarrow is not installed.
        """
        storing.write(self, Path(path))

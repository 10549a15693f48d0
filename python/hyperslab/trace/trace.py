"""`Trace`: the accesses of a program, recorded by `hyperslab trace` or `record`."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from hyperslab.archive.views import display_html
from hyperslab.quantities import nbytes_text
from hyperslab.trace import storing
from hyperslab.trace.checking import without_invalid
from hyperslab.trace.table import OPERATIONS, AccessTable


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

    def __repr__(self) -> str:
        return f"<hyperslab.Trace: {len(self)} accesses to {len(self.arrays)} arrays>"

    def _repr_html_(self) -> str:
        columns = self.columns
        cells = []
        for number, array in enumerate(self.arrays):
            own = columns["array"] == number
            reads = int((own & (columns["operation"] == OPERATIONS.index("read"))).sum())
            moved, busy = int(columns["nbytes"][own].sum()), columns["duration_ns"][own].sum() / 1e9
            shape = " × ".join(map(str, array.shape))
            cells.append((array.title, shape, reads, int(own.sum()) - reads, nbytes_text(moved), f"{busy:.3g}"))
        titles = ["array", "shape", "reads", "writes", "decoded", "seconds"]
        program = " ".join(map(str, self.program.get("arguments", [])))
        name = f"of {program}: {len(self)} accesses" if program else f"{len(self)} accesses"
        table = display_html.rows("hyperslab.Trace", name, titles, cells, self.notes)
        return table + display_html.drawn("trace_figures", self)

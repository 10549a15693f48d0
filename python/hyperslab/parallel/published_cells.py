"""Published measurements of parallel I/O: one row a cell, such as the year of Cori in `tables/cori.csv`."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, TypeAlias, cast

from hyperslab.errors import UsageError, printable
from hyperslab.regular_files import read_regular

Mode: TypeAlias = Literal["shared", "file-per-process"]
MIB_PER_GB = 1e9 / 2**20
MIB_PER_MB = 1e6 / 2**20
NEEDED = ("file_system", "app", "direction", "mode", "processes", "gbytes", "mb_per_request", "osts", "mib_s_median")
CHOICES = {"direction": ("read", "write"), "mode": ("shared", "file-per-process")}
# Of the columns that a table must have, these may be empty or 0 in a row; an evaluation says what it assumes then.
MAY_BE_EMPTY = ("mb_per_request", "osts")
ALWAYS_GIVEN = tuple(name for name in NEEDED if name not in MAY_BE_EMPTY)
MOST_NBYTES, MOST_CELLS = 10_000_000, 400
MOST_PROCESSES = 10**8
# Values of any real machine lie between these; beyond them, arithmetic would overflow.
LEAST_VALUE, MOST_VALUE = 1e-9, 1e15


@dataclass(frozen=True)
class PublishedCell:
    """What many runs of one program had in common, and the median of their bandwidths.

    `seconds` follow from it: Darshan divides the bytes of a run by the time of its slowest process.
    """

    line: int
    file_system: str
    app: str
    direction: Literal["read", "write"]
    mode: Mode
    processes: int
    gbytes: float
    mib_s_median: float
    partition: str = ""
    files: float | None = None
    mb_per_request: float | None = None
    osts: float | None = None
    nodes: float | None = None
    mib_s_q25: float | None = None
    mib_s_q75: float | None = None
    scatter_log10: float | None = None

    @property
    def mib_per_process(self) -> float:
        """MiB that one process reads or writes."""
        return self.gbytes * MIB_PER_GB / self.processes

    @property
    def seconds(self) -> float:
        """The time of the slowest process in the median run."""
        return self.gbytes * MIB_PER_GB / self.mib_s_median

    @property
    def request_mib(self) -> float | None:
        """The average size of a POSIX request, in MiB."""
        return None if self.mb_per_request is None else self.mb_per_request * MIB_PER_MB

    @property
    def name(self) -> str:
        """The cell in a few words, such as `cori-knl ior read shared 4096`."""
        return f"{self.partition or self.file_system} {self.app} {self.direction} {self.mode} {self.processes}"


TEXTS = ("file_system", "app", "direction", "mode", "partition")
NUMBERS = tuple(each.name for each in fields(PublishedCell) if each.name not in (*TEXTS, "line"))


def own_tables() -> dict[str, Path]:
    """The tables of the package by name."""
    return {path.stem: path for path in sorted((Path(__file__).parent / "tables").glob("*.csv"))}


def table_path(named: str) -> Path:
    """The path of a table of the package, or of the user's own CSV file.

    Raises
    ------
    UsageError
        There is neither a table nor a file of this name.
    """
    own = own_tables()
    if named in own:
        return own[named]
    path = Path(named)
    if not path.is_file():
        raise UsageError(f"{named} is neither a file nor a table of hyperslab's: the tables are {', '.join(own)}")
    return path


def read_cells(path: Path) -> list[PublishedCell]:
    """The cells of a CSV file. Lines that begin with # are comments.

    Raises
    ------
    UsageError
        The file cannot be read, lacks a column, or has a value that cannot be right. The message names the line.
    """
    try:
        if path.stat().st_size > MOST_NBYTES:
            raise UsageError(f"{path} has more than {MOST_NBYTES} bytes: it is not a table of cells")
        text = read_regular(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read as a CSV file: {error}") from error
    # Comments become empty lines, so that the reader's line numbers are those of the file.
    kept = "\n".join("" if each.startswith("#") else each for each in text.splitlines())
    rows = csv.reader(io.StringIO(kept))
    try:
        header = [each.strip() for each in next((row for row in rows if any(row)), [])]
        _check_header(path, max(rows.line_num, 1), header)
        cells = [_cell(path, rows.line_num, header, row) for row in rows if any(each.strip() for each in row)]
    except csv.Error as error:
        raise UsageError(f"{path}, line {rows.line_num}: {error}") from error
    if len(cells) > MOST_CELLS:
        raise UsageError(f"{path}, line {cells[MOST_CELLS].line}: a table has at most {MOST_CELLS} cells, one a median")
    if not cells:
        raise UsageError(f"{path}, line {max(rows.line_num, 1)}: there are no cells below the names of the columns")
    return cells


def _check_header(path: Path, line: int, header: Sequence[str]) -> None:
    missing = [name for name in NEEDED if name not in header]
    if missing:
        raise UsageError(
            f"{path}, line {line}: the column{'s' * (len(missing) > 1)} {', '.join(missing)} "
            f"{'are' if len(missing) > 1 else 'is'} missing; a table needs {', '.join(NEEDED)}"
        )
    twice = sorted({name for name in header if name and header.count(name) > 1})
    if twice:
        raise UsageError(f"{path}, line {line}: the column {twice[0]} is there twice")


def _cell(path: Path, line: int, header: Sequence[str], row: Sequence[str]) -> PublishedCell:
    if len(row) != len(header):
        raise UsageError(f"{path}, line {line}: has {len(row)} values for {len(header)} columns")
    given = {name: value.strip() for name, value in zip(header, row, strict=True)}
    values: dict[str, object] = {"line": line}
    for name in TEXTS:
        value = given.get(name, "")
        if not value and name in NEEDED:
            raise UsageError(f"{path}, line {line}: {name} is empty")
        if name in CHOICES and value not in CHOICES[name]:
            raise UsageError(f"{path}, line {line}: {name} is {value!r}: write {' or '.join(CHOICES[name])}")
        values[name] = printable(value)
    for name in NUMBERS:
        values[name] = _number(path, line, name, given.get(name, ""))
    processes = cast(float, values["processes"])
    if processes != int(processes) or processes > MOST_PROCESSES:
        raise UsageError(f"{path}, line {line}: processes is {given['processes']}: write a whole number")
    values["processes"] = int(processes)
    return PublishedCell(**values)  # type: ignore[arg-type]


def _number(path: Path, line: int, name: str, text: str) -> float | None:
    if text.lower() in ("", "nan", "na", "null"):
        if name in ALWAYS_GIVEN:
            raise UsageError(f"{path}, line {line}: {name} is empty")
        return None
    try:
        value = float(text)
    except ValueError:
        raise UsageError(f"{path}, line {line}: {name} is {text!r}, which is not a number") from None
    if value == 0 and name not in ALWAYS_GIVEN:
        # Nothing has 0 targets or requests of 0 bytes: the program that made the table did not know them.
        return 0.0 if name == "scatter_log10" else None
    if not LEAST_VALUE <= value <= MOST_VALUE:
        raise UsageError(
            f"{path}, line {line}: {name} is {text}: write a number from {LEAST_VALUE:g} to {MOST_VALUE:g}"
        )
    return value


def matching(cells: Sequence[PublishedCell], conditions: str) -> list[PublishedCell]:
    """The cells that satisfy conditions such as `app=ior` or `app=ior,processes=512`; `a=b|c` allows two values.

    Raises
    ------
    UsageError
        A condition has no equals sign, names no column, or no cell satisfies all of them.
    """
    known = [*TEXTS, *NUMBERS]
    chosen = list(cells)
    for each in conditions.split(","):
        name, equals, values = (part.strip() for part in each.partition("="))
        if not equals or name not in known:
            raise UsageError(f"the condition {each.strip()!r} must be COLUMN=VALUE with a column of {', '.join(known)}")
        chosen = [cell for cell in chosen if _is_one_of(getattr(cell, name), values.split("|"))]
    if not chosen:
        raise UsageError(f"no cell satisfies {conditions!r}: there is nothing to calibrate on")
    return chosen


def _is_one_of(value: object, texts: Sequence[str]) -> bool:
    for text in texts:
        try:
            if value == text.strip() or (isinstance(value, int | float) and value == float(text)):
                return True
        except ValueError:
            continue
    return False

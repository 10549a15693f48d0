"""The table of a trace: the accesses of a program, in order."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from hyperslab.trace.described import MOST, check_fields
from hyperslab.trace.recording.log import COLLECTIVE, FAILED, FILE_REOPENED, REOPENED
from hyperslab.trace.selection import NAMES, Numbers

OPERATIONS = ("read", "write")
COLUMNS: dict[str, Any] = {
    "start_ns": np.int64, "duration_ns": np.int64, "process": np.int64, "thread": np.uint64, "operation": np.uint8,
    "flags": np.uint8, "array": np.int32, "memory_type": np.int32, "nbytes": np.int64, "kind": np.uint8,
}  # fmt: skip


@dataclass(frozen=True)
class TracedArray:
    """An array as a program had it open. None stands for what the recorder could not know."""

    library: str
    file: str
    array: str
    shape: tuple[int, ...]
    chunks: tuple[int, ...] | None = None
    shards: tuple[int, ...] | None = None
    dtype: str = ""
    element_nbytes: int = 1
    filters: tuple[str, ...] = ()
    layout: str = "unknown"
    cache_nbytes: int | None = None
    cache_slots: int | None = None
    cache_w0: float | None = None
    stored_nbytes: int | None = None
    decodes: tuple[int, ...] | None = None  # filters of HDF5 that the program's own library has

    @classmethod
    def of(cls, described: dict[str, Any]) -> Self:
        """From the JSON of a log; fields of later versions are ignored."""
        known = {one.name for one in fields(cls)}
        known_fields = {name: value for name, value in described.items() if name in known}
        for name in ("shape", "chunks", "shards", "filters", "decodes"):
            if known_fields.get(name) is not None:
                known_fields[name] = tuple(known_fields[name])
        return cls(**known_fields)

    def __post_init__(self) -> None:
        """Refuse what cannot be an array: descriptions come from files.

        Raises
        ------
        ValueError
            A field has another type, or not one entry for each axis of the shape.
        """
        check_fields(self)
        for name in ("shape", "chunks", "shards"):
            lengths = getattr(self, name)
            if lengths is None:
                continue
            if math.prod(lengths) >= MOST:
                raise ValueError(f"{name} is {str(lengths)[:60]}: no array has so many elements")
            if self.shape and len(lengths) != len(self.shape):
                raise ValueError(f"{name} has {len(lengths)} axes, and shape has {len(self.shape)}")

    @property
    def is_given(self) -> bool:
        """Whether the program gave its library an open file of Python's, whose `repr` is then all that names it."""
        return self.file.startswith("<") and self.file.endswith(">")

    @property
    def is_local(self) -> bool:
        """Whether its file is one of this machine, with a path."""
        return not self.is_given and "://" not in self.file

    @property
    def title(self) -> str:
        """The name of its file and its own name."""
        if self.is_given:
            return f"{self.file[1:-1].partition(' at 0x')[0]}:{self.array}"
        return f"{self.file.rstrip('/').rpartition('/')[2]}:{self.array}"

    @property
    def nbytes(self) -> int:
        """The decoded bytes of the whole array."""
        return math.prod(self.shape) * self.element_nbytes

    @property
    def chunk_nbytes(self) -> int | None:
        """The decoded bytes of a chunk; None without chunks."""
        return None if self.chunks is None else math.prod(self.chunks) * self.element_nbytes


class TracedAccess(NamedTuple):
    """One access of a trace."""

    start_seconds: float
    seconds: float
    process: int
    thread: int
    operation: str
    array: TracedArray
    memory_type: str
    nbytes: int
    selection_kind: str
    selection: list[int]
    is_collective: bool
    has_failed: bool
    reopens_array: bool
    """Whether the array was closed and opened again since the access before, by the same process."""
    reopens_file: bool
    """Whether its file was, too."""


@dataclass
class AccessTable:
    """The accesses of a program in the order in which they began: a row for each."""

    arrays: list[TracedArray] = field(default_factory=list)
    columns: dict[str, npt.NDArray[Any]] = field(
        default_factory=lambda: {name: np.empty(0, dtype) for name, dtype in COLUMNS.items()}
    )
    offsets: Numbers = field(default_factory=lambda: np.zeros(1, np.int64))
    numbers: Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    memory_types: list[str] = field(default_factory=lambda: [""])
    notes: list[str] = field(default_factory=list)
    """What is missing, and why: a process that was killed, a full disk."""
    program: dict[str, Any] = field(default_factory=dict)
    """`arguments`, `directory`, `seconds` and `exit_status` of the program, its `machine`, and `files` (the bytes of
    each, and when it was last changed), as far as they are known."""

    def __len__(self) -> int:
        return len(self.columns["start_ns"])

    def __getitem__(self, row: int) -> TracedAccess:
        columns = self.columns
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of a trace with {len(self)} accesses")
        row %= len(self)
        flags = int(columns["flags"][row])
        return TracedAccess(
            columns["start_ns"][row] / 1e9,
            columns["duration_ns"][row] / 1e9,
            int(columns["process"][row]),
            int(columns["thread"][row]),
            OPERATIONS[int(columns["operation"][row] != 0)],
            self.arrays[columns["array"][row]],
            self.memory_types[columns["memory_type"][row]],
            int(columns["nbytes"][row]),
            NAMES[int(columns["kind"][row])],
            self.selection(row)[1].tolist(),
            bool(flags & COLLECTIVE),
            bool(flags & FAILED),
            bool(flags & REOPENED),
            bool(flags & FILE_REOPENED),
        )

    def selection(self, row: int) -> tuple[int, Numbers]:
        """The kind of the selection of a row, and its numbers."""
        return int(self.columns["kind"][row]), self.numbers[self.offsets[row] : self.offsets[row + 1]]

    @property
    def is_complete(self) -> bool:
        """Whether every process said at its end that it had written all accesses."""
        return not self.notes

    @property
    def seconds(self) -> float:
        """How long the program ran, or from the first access to the end of the last one if that is not known."""
        known = self.program.get("seconds")
        if known is not None:
            return float(known)
        if not len(self):
            return 0.0
        stops = self.columns["start_ns"] + self.columns["duration_ns"]
        return float(stops.max() - self.columns["start_ns"].min()) / 1e9

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} accesses to {len(set(self.arrays))} arrays>"


def to_json(array: TracedArray) -> dict[str, Any]:
    """A dictionary for JSON."""
    return asdict(array)


def is_held_once(column: npt.NDArray[Any]) -> bool:
    """Whether all rows of a column are one number in memory, as a long trace that is opened has them."""
    return column.strides == (0,)

"""The records of a run: Cell (what is measured), Trial (one measurement), and the boundaries of the timers."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from hyperslab.bench.operations import Operation

WARM_UP = -1  # the number of a cell's first trial, which statistics do not use
Method = Literal["fair", "published"]
# A study asks for cold, warm or unknown. A file to write is new. `cache` defines these states.
CacheState = Literal["cold", "warm", "unknown", "new"]
Status = Literal["ok", "rejected", "refused", "failed"]

# The boundaries of every timer, in the order in which they run. The report prints this table.
BOUNDARIES: dict[str, str] = {
    "create_file": "create the empty file, store or directory",
    "create_array": "define each array: name, shape, dtype, layout",
    "write": "give the elements of every array to the library; includes whatever the library does immediately",
    "flush": "ask the library to give its buffers to the operating system",
    "close": "close the arrays and the file; includes what the library deferred",
    "fsync": "fsync every new file and directory (syncfs if there are more than 64): the data are on the device",
    "open_file": "open the file; includes all parsing by the library",
    "open_array": "open each array by name",
    "read": "read each selection into memory as native-endian elements; includes converting the byte order",
    "append": "grow axis 0 and write the new elements",
}
CREATE = ("create_file", "create_array")
WRITE = ("write", "append", "flush", "close", "fsync")
OPEN = ("open_file", "open_array")
# The metrics that people compare: sums of phases, defined only here.
METRICS: dict[str, tuple[str, ...]] = {
    **{phase: (phase,) for phase in BOUNDARIES},
    "create_total": CREATE,
    "write_durable": WRITE,  # until the data are on the device
    "write_total": CREATE + OPEN + WRITE,  # changing an array opens it first, creating one includes that
    "open_total": OPEN,
    "read_total": (*OPEN, "read", "close"),
}
# A sum is meaningful only if one of these phases was timed: reads close files too, but have no `write_total`.
ESSENTIAL: dict[str, tuple[str, ...]] = {
    "write_durable": ("write", "append"),
    "write_total": ("create_file", "write", "append"),
    "read_total": ("read",),
}


@dataclass(frozen=True)
class Cell:
    """One point of a study. The trials of a cell differ only in when they ran."""

    case: str
    method: Method
    conditions: str
    format: str
    operation: Operation
    shape: tuple[int, ...]
    count: int
    cache: CacheState
    processes: int = 1

    @property
    def name(self) -> str:
        """The cell's name for people."""
        return f"{self.case} {self.format} {self.operation.name} {self.conditions} {self.cache}"

    @property
    def key(self) -> str:
        """Identifies the cell within a run, also after an interruption."""
        shape = "x".join(map(str, self.shape))
        parts = (self.case, self.method, self.conditions, self.format, self.operation.label, shape)
        return "|".join([*parts, str(self.count), self.cache, str(self.processes)])


@dataclass(frozen=True)
class Row:
    """The columns that identify the cell of a table's row."""

    case: str
    method: str
    conditions: str
    format: str
    operation: str
    shape: str  # such as 1024x1024
    dtype: str
    count: int  # arrays in the file
    cache: str
    processes: int

    @property
    def cell_key(self) -> str:
        """The key of this row's Cell."""
        parts = (self.case, self.method, self.conditions, self.format, self.operation, self.shape)
        return "|".join([*parts, str(self.count), self.cache, str(self.processes)])

    @property
    def columns(self) -> dict[str, Any]:
        """Only these columns, for another row of the same cell."""
        return {field.name: getattr(self, field.name) for field in fields(Row)}


@dataclass(frozen=True)
class Trial(Row):
    """One timed repetition with its proof, and one row of trials.parquet. Unknown values are None."""

    trial: int  # 0, 1, …; or WARM_UP
    status: Status
    reason: str | None = None
    position: int | None = None  # in the order in which the run made its trials
    started_at: str | None = None
    layout: str | None = None  # the layout that the library chose
    create_file_seconds: float | None = None
    create_array_seconds: float | None = None
    write_seconds: float | None = None
    flush_seconds: float | None = None
    close_seconds: float | None = None
    fsync_seconds: float | None = None
    open_file_seconds: float | None = None
    open_array_seconds: float | None = None
    read_seconds: float | None = None
    append_seconds: float | None = None
    cpu_seconds: float | None = None
    peak_rss_nbytes: int | None = None
    device_read_nbytes: int | None = None  # by /proc/self/io, during the timed part
    device_write_nbytes: int | None = None
    resident_before: float | None = None  # fraction of the file in the page cache before a read, by mincore
    decoded_nbytes: int | None = None  # elements read or written, as they are in memory
    stored_nbytes: int | None = None  # bytes of all files on disk
    file_count: int | None = None
    selection_count: int | None = None  # calls of a read
    chunk_count: int | None = None  # chunks that the selections touch, in this layout
    read_amplification: float | None = None  # decoded elements of touched chunks / elements selected
    returned_dtype: str | None = None  # before conversion
    verified: bool | None = None  # the elements read equal the elements written
    max_abs_error: float | None = None  # if they do not, for formats that are not exact
    io_pressure: float | None = None  # PSI full avg10 before the trial, per cent
    load: float | None = None  # one-minute load average before the trial
    round: int | None = None  # trials of one round ran one after the other, in random order

    def metric(self, name: str) -> float | None:
        """The seconds of a metric, or None if the metric does not apply to this operation."""
        seconds = {phase: getattr(self, f"{phase}_seconds") for phase in METRICS[name]}
        if all(seconds[phase] is None for phase in ESSENTIAL.get(name, METRICS[name])):
            return None
        return float(sum(value for value in seconds.values() if value is not None))

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for JSON, CSV and Parquet."""
        return asdict(self)


def trial_of(cell: Cell, dtype: str, trial: int, status: Status, reason: str | None = None, **figures: Any) -> Trial:
    """A trial of a cell: with its figures if it is accepted, otherwise with the reason."""
    return Trial(
        case=cell.case,
        method=cell.method,
        conditions=cell.conditions,
        format=cell.format,
        operation=cell.operation.label,
        shape="x".join(map(str, cell.shape)),
        dtype=dtype,
        count=cell.count,
        cache=cell.cache,
        processes=cell.processes,
        trial=trial,
        status=status,
        reason=reason,
        **figures,
    )


@dataclass(frozen=True)
class Summary(Row):
    """One metric of one cell over its accepted trials, and one row of summary.csv."""

    metric: str
    n: int  # accepted trials
    rejected: int  # trials whose proof failed
    point_seconds: float  # the method's own estimate: median (fair), mean or best (published)
    median_seconds: float
    low_seconds: float | None  # bootstrap 95 % interval of the median; None if n < 6
    high_seconds: float | None
    min_seconds: float
    per_array_seconds: float  # median / number of arrays
    throughput_mbps: float | None  # decoded MB/s (decimal) at the median; None for metrics without data
    layout: str | None
    stored_nbytes: int | None
    ratio: float | None  # decoded bytes of the file / stored bytes
    rounds: tuple[tuple[int, float], ...] = field(default=(), metadata={"column": False})  # (round, seconds)

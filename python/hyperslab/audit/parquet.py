"""The audits of all files as one Parquet table: a row for each file, the worst first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from hyperslab.audit.file_audit import FileAudit
from hyperslab.audit.ledger import Ledger
from hyperslab.errors import printable
from hyperslab.replacing import replacing

ROWS = 10_000  # that stand in memory at a time
TEXTS = ("name", "grade", "reason", "format", "main_array", "error", "code")
NUMBERS = (
    "nbytes", "request_count", "round_count", "fetched_nbytes", "metadata_nbytes", "place_count", "array_count",
    "tiny_array_count", "decoded_nbytes", "stored_nbytes", "chunk_count", "stored_chunk_count", "missing_chunk_count",
)  # fmt: skip
SECONDS = ("open_seconds", "seconds", "local_seconds", "saved_seconds", "main_chunk_nbytes")
LISTS = ("codecs", "foreign_filters", "unmet", "notes")
SHAPES = ("main_shape", "main_chunks")


def write_parquet(path: Path, ledger: Ledger) -> None:
    """Write the table. An existing file is replaced when everything is written."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    fields = [(name, pa.string()) for name in TEXTS] + [(name, pa.int64()) for name in NUMBERS]
    fields += [(name, pa.float64()) for name in (*SECONDS, "remedy_seconds")]
    fields += [(name, pa.list_(pa.string())) for name in (*LISTS, "faults", "commands")]
    fields += [(name, pa.list_(pa.int64())) for name in SHAPES]
    schema = pa.schema(fields)
    with replacing(path) as beside, pq.ParquetWriter(str(beside), schema) as writer:
        for batch in _batches(ledger.worst_first()):
            writer.write_table(pa.Table.from_pylist(list(map(_row, batch)), schema=schema))


def _batches(audits: Iterator[FileAudit]) -> Iterator[list[FileAudit]]:
    while batch := list(islice(audits, ROWS)):
        yield batch


def _row(audit: FileAudit) -> dict[str, Any]:
    row = {name: getattr(audit, name) for name in (*TEXTS, *NUMBERS, *SECONDS, *SHAPES)}
    row |= {name: list(getattr(audit, name)) for name in LISTS}
    row["faults"] = [fault.kind for fault in audit.faults]
    row["commands"] = [] if audit.remedy is None else list(audit.remedy.commands)
    row["remedy_seconds"] = None if audit.remedy is None else audit.remedy.seconds
    return {name: _encodable(value) for name, value in row.items()}


def _encodable(value: Any) -> Any:
    """Text that UTF-8 can hold: a name of a file may be any bytes."""
    if isinstance(value, list):
        return [_encodable(one) for one in value]
    return printable(value) if isinstance(value, str) and not value.isascii() else value

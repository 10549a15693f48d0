"""Read raw logs (`recording/log.py` describes them). What is cut off or damaged ends a log; the rest is read."""

from __future__ import annotations

import contextlib
import json
import os
import struct
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hyperslab.errors import NotATrace
from hyperslab.preloading import content as content_of
from hyperslab.preloading import users_folders
from hyperslab.trace.described import checked_program
from hyperslab.trace.recording import log
from hyperslab.trace.selection import NAMES
from hyperslab.trace.table import COLUMNS, AccessTable, TracedArray

PROGRAM = "program.json"
UNWRITTEN = "the log could not be written"
_MOST = 1 << 62  # of any number; only damage makes them larger


@dataclass
class _Gathered:
    """What the logs have said so far."""

    numbers_of: dict[str, int] = field(default_factory=dict)
    arrays: list[TracedArray] = field(default_factory=list)
    types: dict[str, int] = field(default_factory=lambda: {"": 0})
    rows: list[tuple[int, ...]] = field(default_factory=list)
    parts: list[bytes] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    arguments: list[str] | None = None
    begun_ns: int | None = None


def say_program(folder: Path, facts: dict[str, Any]) -> None:
    """Write beside the logs what is known of the program: `arguments`, `seconds`, `exit_status` and such."""
    with contextlib.suppress(OSError):  # a full disk
        (folder / PROGRAM).write_text(json.dumps(facts))


def read_logs(folder: Path) -> AccessTable:
    """Read a folder of raw logs.

    Raises
    ------
    NotATrace
        A log has another version.
    """
    gathered = _Gathered()
    for path in (path for one in users_folders(str(folder)) for path in sorted(Path(one).glob("*.log"))):
        _read_log(path, gathered)
    program: dict[str, Any] = {} if gathered.arguments is None else {"arguments": gathered.arguments}
    try:
        said = json.loads((folder / PROGRAM).read_text())
        program |= checked_program(said)
    except (OSError, ValueError, RecursionError):
        gathered.notes.append("the end of the program was not recorded: `hyperslab trace` was killed")
    origin = program.pop("begun_ns", gathered.begun_ns) or 0
    return _assembled(gathered, program, origin if abs(origin) < _MOST else 0)


def _assembled(gathered: _Gathered, program: dict[str, Any], origin: int) -> AccessTable:
    table = np.array(gathered.rows, np.int64).reshape(-1, len(COLUMNS))
    order = np.argsort(table[:, 0], kind="stable")
    columns = {name: table[order, place].astype(dtype) for place, (name, dtype) in enumerate(COLUMNS.items())}
    columns["start_ns"] -= origin
    lengths = np.array([len(part) // 8 for part in gathered.parts], np.int64)[order]
    numbers = np.frombuffer(b"".join(gathered.parts[k] for k in order), "<i8").astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return AccessTable(gathered.arrays, columns, offsets, numbers, list(gathered.types), gathered.notes, program)


def _read_log(path: Path, gathered: _Gathered) -> None:
    try:
        content = content_of(str(path))
    except OSError as error:
        gathered.notes.append(f"the log {path.name} cannot be read: {error.strerror}")
        return
    if len(content) < log.HEADER.size:
        gathered.notes.append(f"the log {path.name} ends in its header, so its accesses are unknown")
        return
    magic, version, process, _, state, errno, _, monotonic, lost, count = log.HEADER.unpack_from(content)
    if magic != log.MAGIC:
        raise NotATrace(f"{path} is not a raw log of hyperslab")
    if version != log.VERSION:
        message = f"{path} has version {version} of the raw log; this hyperslab reads version {log.VERSION}"
        raise NotATrace(f"{message}: record the program again, or use the hyperslab that recorded it")
    gathered.begun_ns = min(gathered.begun_ns or monotonic, monotonic)
    before = len(gathered.rows)
    problem = _read_records(content, process, gathered)
    access_count = len(gathered.rows) - before
    last = max((row[0] + row[1] for row in gathered.rows[before:]), default=monotonic)
    where = f"process {process}: the trace ends {(last - monotonic) / 1e9:.3f} s after its first access began to be "
    where += f"recorded, with {access_count} accesses"
    if state == log.STOPPED:
        missing = f", and {lost} are missing" if lost else ""
        gathered.notes.append(f"{where}{missing}: {UNWRITTEN} ({os.strerror(errno)})")
    elif problem is not None:
        gathered.notes.append(f"{where}: {problem}")
    elif state not in (log.ENDED, log.REPLACED):
        gathered.notes.append(f"{where}: the process was killed, or left without telling")
    elif count != access_count:
        gathered.notes.append(f"{where}, but there were {count}")


def _read_records(content: bytes, process: int, gathered: _Gathered) -> str | None:
    """Read the records of a log to its end, or to where it is cut; then say how."""
    arrays: dict[int, int] = {}
    ndims: dict[int, int] = {}
    texts = {0: 0}
    place, end = log.HEADER.size, len(content)
    head, record = log.ACCESS, log.RECORD
    while place < end:
        if place + record.size > end:
            return f"its log is cut off at byte {place}"
        length, kind = record.unpack_from(content, place)
        if length == kind == 0:  # a mapped log is longer than what was written
            return None
        body, stop = place + record.size, place + record.size + length
        if stop > end:
            return f"its log is cut off at byte {place}"
        place = stop + -stop % log.ALIGNMENT
        try:
            if kind == log.ACCESSED:
                fields = head.unpack_from(content, body)
                start, duration, thread, nbytes, array, text, operation, flags, selected = fields
                part = content[body + head.size : stop]
                is_right = selected in NAMES and _fits(selected, len(part) // 8, ndims[array]) and len(part) % 8 == 0
                if not is_right or max(start, duration, thread, nbytes) >= _MOST:
                    return f"its log is damaged at byte {body}"
                words = (operation, flags, arrays[array], texts[text])
                row = (start, duration, process, thread, *words, nbytes, selected)
                gathered.rows.append(row)
                gathered.parts.append(part)
            elif kind == log.ELEMENT:
                if not _read_element(content[body:stop], process, gathered, arrays, ndims, texts):
                    return f"its log is damaged at byte {body}"
            else:
                _read_other(kind, content[body:stop], gathered, arrays, ndims, texts)
        except (struct.error, AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError):
            return f"its log is damaged at byte {body}"
    return None


def _read_element(
    body: bytes, process: int, gathered: _Gathered, arrays: dict[int, int], ndims: dict[int, int], texts: dict[int, int]
) -> bool:
    """Read a short record. Returns whether it makes sense."""
    head = log.ELEMENT_ACCESS
    start, thread, duration, array, text, operation, flags = head.unpack_from(body)
    number, ndim = arrays[array], ndims[array]
    if len(body) != head.size + 8 * ndim or max(start, thread) >= _MOST:
        return False
    numbers = [1] * (4 * ndim)
    numbers[::4] = struct.unpack_from(f"<{ndim}q", body, head.size)
    words = (operation, flags, number, texts[text])
    nbytes = gathered.arrays[number].element_nbytes
    gathered.rows.append((start, duration, process, thread, *words, nbytes, log.HYPERSLAB))
    gathered.parts.append(struct.pack(f"<{4 * ndim}q", *numbers))
    return True


def _fits(kind: int, count: int, ndim: int) -> bool:
    """Whether a selection can have so many numbers."""
    if kind in (log.ALL, log.NOTHING):
        return count == 0
    if kind == log.HYPERSLAB:
        return count == 4 * ndim
    if kind == log.BOUNDS:
        return count == 2 * ndim
    step = {log.BOXES: 2 * ndim, log.POINTS: ndim}.get(kind)
    return count >= ndim if step is None else step > 0 and count % step == 0


def _together(before: TracedArray, again: TracedArray) -> TracedArray:
    """What two descriptions of one array say together."""
    stored = before.stored_nbytes if again.stored_nbytes is None else again.stored_nbytes
    if before.decodes is None or again.decodes is None:
        decodes = again.decodes if before.decodes is None else before.decodes
    else:
        decodes = tuple(sorted({*before.decodes, *again.decodes}))
    return replace(before, stored_nbytes=stored, decodes=decodes)


def _read_other(
    kind: int, body: bytes, gathered: _Gathered, arrays: dict[int, int], ndims: dict[int, int], texts: dict[int, int]
) -> None:
    if kind == log.ARRAY:
        described = json.loads(body[log.NUMBER.size :])
        array = TracedArray.of(described)
        # The stored bytes are only known of files that are not written to, and a program may import filters later.
        text = repr(replace(array, stored_nbytes=None, decodes=None))
        (number,) = log.NUMBER.unpack_from(body)
        if text not in gathered.numbers_of:
            gathered.numbers_of[text] = len(gathered.arrays)
            gathered.arrays.append(array)
        else:
            at = gathered.numbers_of[text]
            gathered.arrays[at] = _together(gathered.arrays[at], array)
        arrays[number], ndims[number] = gathered.numbers_of[text], len(array.shape)
    elif kind == log.TEXT:
        (number,) = log.NUMBER.unpack_from(body)
        texts[number] = gathered.types.setdefault(body[log.NUMBER.size :].decode(), len(gathered.types))
    elif kind == log.EVENT and gathered.arguments is None:
        gathered.arguments = list(map(str, json.loads(body).get("arguments") or []))

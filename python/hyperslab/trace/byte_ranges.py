"""Accesses to the bytes of a file, as accesses to the arrays whose chunks lie there.

Some recorders only see bytes: those of libc's reads, and Darshan's. Each of their files is an array of bytes in the
trace, until `mapped` opens the file and looks up its chunks. What touches a chunk with codecs needs all of it. Bytes
without codecs are elements, so exactly these are selected. What touches no chunk, such as headers and chunk indexes,
stays an access to bytes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hyperslab.errors import HyperslabError
from hyperslab.trace.chunk_places import ChunkPlaces, TouchedChunk
from hyperslab.trace.recording.log import ALL, BOUNDS, BOXES, HYPERSLAB, MOST_NUMBERS
from hyperslab.trace.table import COLUMNS, AccessTable, TracedArray

LAYOUT = "bytes"
NAME = "(bytes)"


class Row(NamedTuple):
    """One access, as the columns of a table have it, and its selection."""

    start_ns: int
    duration_ns: int
    process: int
    thread: int
    operation: int
    flags: int
    array: int
    memory_type: int
    nbytes: int
    kind: int
    numbers: Sequence[int]


@dataclass
class Rows:
    """A table that grows."""

    arrays: dict[TracedArray, int]
    rows: list[Row]

    def number(self, array: TracedArray) -> int:
        """The number of an array in the table."""
        return self.arrays.setdefault(array, len(self.arrays))

    def table(self, notes: list[str], program: dict[str, Any], memory_types: list[str] | None = None) -> AccessTable:
        """All rows, in the order in which the accesses began."""
        rows = sorted(self.rows, key=lambda row: row.start_ns)
        columns = {name: np.array([row[k] for row in rows], dtype) for k, (name, dtype) in enumerate(COLUMNS.items())}
        offsets = np.cumsum([0, *(len(row.numbers) for row in rows)]).astype(np.int64)
        numbers = np.array([number for row in rows for number in row.numbers], np.int64)
        return AccessTable(list(self.arrays), columns, offsets, numbers, memory_types or [""], notes, program)


def bytes_of(library: str, file: str, nbytes: int, name: str = NAME) -> TracedArray:
    """A file as an array of bytes."""
    return TracedArray(library, file, name, (nbytes,), dtype="|u1", layout=LAYOUT)


def mapped(table: AccessTable) -> AccessTable:
    """The table with accesses to chunks in place of accesses to their bytes, where the file is still there."""
    places = _places_of(table)
    if not places:
        return table
    rows = Rows({array: number for number, array in enumerate(table.arrays)}, [])
    going: dict[tuple[int, ...], Row] = {}
    for number in range(len(table)):
        row = _row(table, number)
        known = places.get(row.array)
        if known is None:
            rows.rows.append(row)
            continue
        key = (row.array, row.process, row.thread, row.operation)
        before = going.pop(key, None)
        if before is not None and _goes_on(before, row, known):
            row = _joined(before, row)
        elif before is not None:
            _add(rows, before, known, table.arrays[before.array])
        going[key] = row
    for row in going.values():
        _add(rows, row, places[row.array], table.arrays[row.array])
    return rows.table(table.notes, table.program, table.memory_types)


def _places_of(table: AccessTable) -> dict[int, ChunkPlaces]:
    """Where the chunks are, for each array of bytes whose file is there. Notes in the table say why others are not."""
    places_by_array: dict[int, ChunkPlaces] = {}
    opened: dict[str, ChunkPlaces | None] = {}
    for number, array in enumerate(table.arrays):
        if (array.layout, array.array) == (LAYOUT, NAME):
            if array.file not in opened:
                opened[array.file] = _opened(array.file, table.notes)
            places = opened[array.file]
            if places is not None:
                places_by_array[number] = places
    return places_by_array


def _opened(path: str, notes: list[str]) -> ChunkPlaces | None:
    if not os.path.isfile(path):  # noqa: PTH113
        notes.append(f"{path} is not there any more, so its accesses are to bytes, and not to arrays")
        return None
    try:
        return ChunkPlaces.of_file(path)
    except (HyperslabError, OSError) as error:
        notes.append(f"accesses to {path} are to bytes, and not to arrays: {error}")
        return None


def _row(table: AccessTable, number: int) -> Row:
    values = [int(table.columns[name][number]) for name in COLUMNS]
    return Row._make([*values, table.selection(number)[1].tolist()])


def _range(row: Row) -> tuple[int, int]:
    """The first byte, and the one behind the last."""
    start, _, count, block = row.numbers if row.kind == HYPERSLAB else (0, 1, row.nbytes, 1)
    return start, start + count * block


def _goes_on(before: Row, row: Row, places: ChunkPlaces) -> bool:
    """Whether a chunk with codecs was read in several calls, one behind the other: that is one access to the chunk."""
    stop = _range(before)[1]
    return stop == _range(row)[0] and places.is_within_encoded(stop)


def _joined(before: Row, row: Row) -> Row:
    start, stop = _range(before)[0], _range(row)[1]
    return before._replace(
        duration_ns=before.duration_ns + row.duration_ns,
        nbytes=stop - start,
        kind=HYPERSLAB,
        numbers=[start, 1, stop - start, 1],
    )


def _add(rows: Rows, row: Row, places: ChunkPlaces, array: TracedArray) -> None:
    """Add what an access to bytes touches of each array; the access itself if it touches no chunk."""
    touched = places.touched(*_range(row))
    if not touched:
        rows.rows.append(row)
        return
    total = sum(one.touched_nbytes for one in touched)
    for number in dict.fromkeys(one.array for one in touched):
        mine = [one for one in touched if one.array == number]
        described = places.described(number, array.library)
        count, kind, numbers = _selection(mine, described.shape)
        share = sum(one.touched_nbytes for one in mine)
        rows.rows.append(
            row._replace(
                duration_ns=row.duration_ns * share // max(total, 1),
                array=rows.number(described),
                nbytes=count * described.element_nbytes,
                kind=kind,
                numbers=numbers,
            )
        )


def _selection(touched: list[TouchedChunk], shape: tuple[int, ...]) -> tuple[int, int, list[int]]:
    """The number of elements of boxes, and the selection that they make."""
    boxes = [box for one in touched for box in one.boxes]
    count = sum(int(np.prod(lengths, dtype=object)) for _, lengths in boxes)
    if count == int(np.prod(shape, dtype=object)):
        return count, ALL, []
    if len(boxes) == 1:
        starts, lengths = boxes[0]
        return count, HYPERSLAB, [n for axis in zip(starts, lengths, strict=True) for n in (axis[0], 1, axis[1], 1)]
    if 2 * len(shape) * len(boxes) <= MOST_NUMBERS:
        return count, BOXES, [n for starts, lengths in boxes for n in (*starts, *lengths)]
    first = np.array([starts for starts, _ in boxes], np.int64)
    last = first + np.array([lengths for _, lengths in boxes], np.int64)
    low, high = first.min(axis=0), last.max(axis=0)
    return count, BOUNDS, [*low.tolist(), *(high - low).tolist()]

"""`HashRows`: writes the rows of a hash table. It encodes only the new rows with LZF, never the old ones again."""

from __future__ import annotations

from typing import Any

import h5py

from hyperslab._core import lzf
from hyperslab.versions.layout.names import HASH_TABLE_DTYPE, Array

MOST_COPIED = 264  # bytes, in one step of LZF
ROW_NBYTES = HASH_TABLE_DTYPE.itemsize


class HashRows:
    """Appends rows to a hash table.

    Parameters
    ----------
    table : h5py.Dataset
        The hash table.
    filters : list[tuple[int, int]] | None
        The filters of the table, each with one parameter; None if libhdf5 must encode it.
    known : Array
        The rows that it holds already.
    """

    def __init__(self, table: Any, filters: list[tuple[int, int]] | None, known: Array) -> None:
        self._table = table
        self._chunk_length: int = table.chunks[0]
        self._is_ours = table.dtype == HASH_TABLE_DTYPE and filters == [(h5py.h5z.FILTER_LZF, 0)]
        last = len(known) // self._chunk_length * self._chunk_length
        self._waiting = known[last:].tobytes() if self._is_ours else b""  # rows of the last chunk, not encoded yet
        self._encoded = bytearray()

    def write(self, first: int, rows: Array) -> None:
        """Store rows from row `first` on, which is either the number of rows or 0."""
        while len(rows):
            within = first % self._chunk_length
            some = rows[: self._chunk_length - within]
            if not within:
                self._encoded.clear()
                self._waiting = b""
            self._encoded += lzf(self._waiting + some.tobytes()) if self._is_ours else b""
            self._waiting = b""
            self._write(first, within, some)
            first, rows = first + len(some), rows[len(some) :]

    def _write(self, first: int, within: int, rows: Array) -> None:
        empty_nbytes = (self._chunk_length - within - len(rows)) * ROW_NBYTES
        stored = b"".join((self._encoded, _zeros(empty_nbytes)))
        if self._is_ours and len(stored) < self._chunk_length * ROW_NBYTES:
            self._table.id.write_direct_chunk((first - within,), stored)
            return
        space = self._table.id.get_space()
        space.select_hyperslab((first,), (len(rows),))
        self._table.id.write(h5py.h5s.create_simple((len(rows),)), space, rows)


def _zeros(count: int) -> bytes:
    """That many zeros in LZF: one zero, and copies of it."""
    if not count:
        return b""
    whole, rest = divmod(count - 1, MOST_COPIED)
    if rest < 3:
        last = bytes([rest - 1, *bytes(rest)]) if rest else b""
    else:
        last = bytes([(rest - 2) << 5, 0]) if rest < 9 else bytes([7 << 5, rest - 9, 0])
    return b"\0\0" + bytes([7 << 5, MOST_COPIED - 9, 0]) * whole + last

"""What proves the chunks of a damaged file: their SHA-256, which was stored beside them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hyperslab.archive.array import Array as ArchiveArray
from hyperslab.archive.tree import Group
from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import DamagedFile, ReadError
from hyperslab.versions.layout.elements import as_elements
from hyperslab.versions.layout.names import DATA, Array, chunk_hash
from hyperslab.versions.layout.slots import MISSING, MOST_CHUNKS, Slots, grid_slots, stored_length

READING = (ReadError, KeyError, ValueError, TypeError)
Shape = tuple[int, ...]


class Evidence:
    """The chunks of an array, over all versions, and what is known of each.

    `is_moved`: a deletion by versioned-hdf5 moved chunks, and was interrupted before it wrote their hashes anew.
    `is_torn`: after that, so that some versions' mappings are old and some new.

    Parameters
    ----------
    root : Group
        Of the file.
    path : str
        The array's path in a version.

    Raises
    ------
    DamagedFile
        There are no chunks that could be read at all.
    """

    def __init__(self, root: Group, path: str) -> None:
        group = root[f"{DATA}/{path}"]
        raw = group["raw_data"] if isinstance(group, Group) else None
        if not isinstance(raw, ArchiveArray) or raw.chunks is None:
            raise DamagedFile(f"{DATA}/{path}/raw_data is no array in chunks")
        self.raw = raw
        self.chunk_shape = raw.chunks
        self.count = min(raw.shape[0] // self.chunk_shape[0], MOST_CHUNKS)
        self.table_damage: str | None = None
        self.digests: dict[int, bytes] = {}
        try:
            self.digests = self._stored_digests(group)
        except READING as error:
            self.table_damage = f"the table of hashes cannot be read: {error}"
        self.is_moved = max(self.digests, default=-1) >= self.count
        self.is_torn = False
        self._checked: dict[tuple[int, Shape], int | str] = {}
        self._found_by: dict[Shape, dict[bytes, int]] = {}

    def _stored_digests(self, group: Any) -> dict[int, bytes]:
        table = group["hash_table"]
        count = int(table.attrs["largest_index"])
        rows = table[: min(count, stored_length(table))]
        slots = (rows["shape"][:, 0] // self.chunk_shape[0]).tolist()
        hashes = np.ascontiguousarray(rows["hash"]).reshape(-1, 32)
        return {slot: digest.tobytes() for slot, digest in zip(slots, hashes, strict=True) if digest.any()}

    def slots_of(self, array: ArchiveArray) -> Slots:
        """Of each chunk of a version's array its slot.

        Raises
        ------
        DamagedFile
            It is not made of whole chunks.
        """
        slots = grid_slots(array, self.chunk_shape)
        if slots is None:
            raise DamagedFile("it is not made of whole chunks")
        last = int(slots.max(initial=MISSING))
        if last >= self.count and last not in self.digests:
            self.is_torn = True  # there were more chunks when its mappings were written
            raise DamagedFile(f"it shows chunk {last} of {self.count}")
        return slots

    def chunk(self, slot: int) -> Array:
        """A chunk, whole, by its slot; text as `str`."""
        length, *others = self.chunk_shape
        box = (slice(slot * length, (slot + 1) * length), *(slice(other) for other in others))
        read: Array = np.asarray(as_elements(np.asarray(self.raw[box]), self.raw.dtype))
        return read

    def proved(self, slot: int, shape: Shape) -> int:
        """Where the chunk is that a mapping to a slot means, by its hash: mostly there.

        Raises
        ------
        DamagedFile
            Its bytes are nowhere in the file, or cannot be read.
        """
        key = (slot, shape)
        if key not in self._checked:
            self._checked[key] = self._check(slot, shape)
        found = self._checked[key]
        if isinstance(found, str):
            raise DamagedFile(found)
        return found

    def _check(self, slot: int, shape: Shape) -> int | str:
        wanted = self.digests.get(slot)
        try:
            digest = self._digest(slot, shape)
        except READING as error:
            if wanted is None:
                return f"chunk {slot} cannot be read: {error}"
            digest = b""
        if wanted is None or digest == wanted:
            return slot  # without a hash it can be read, which is all that is known: see `is_proof_missing`
        if shape not in self._found_by:
            self._found_by[shape] = self._all_digests(shape)
        found = self._found_by[shape].get(wanted)
        if found is None:
            return f"chunk {slot} has another SHA-256 than was stored"
        self.is_moved = True
        return found

    def is_proof_missing(self, slots: Slots) -> bool:
        """Whether there is no hash of some of these chunks."""
        return any(slot not in self.digests for slot in np.unique(slots[slots != MISSING]).tolist())

    def _digest(self, slot: int, shape: Shape) -> bytes:
        valid = tuple(slice(length) for length in shape)
        return chunk_hash(self.chunk(slot)[valid])

    def _all_digests(self, shape: Shape) -> dict[bytes, int]:
        """Where the content of each hash is, as if all chunks had this valid shape."""
        found: dict[bytes, int] = {}
        for slot in self._stored_slots():
            try:
                found.setdefault(self._digest(slot, shape), slot)
            except READING:
                continue
        return found

    def _stored_slots(self) -> list[int]:
        """The slots of the chunks that are in the file: fewer than there is room for, where a shape is damaged."""
        axes = zip(self.raw.shape[1:], self.chunk_shape[1:], strict=True)
        columns = max(1, math.prod(ceil_div(length, chunk) for length, chunk in axes))
        found = [segment.indices() // np.uint64(columns) for segment in self.raw.segments()]
        slots: list[int] = np.unique(np.concatenate(found)).tolist() if found else []
        return [slot for slot in slots if slot < self.count]

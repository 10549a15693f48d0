"""The proof that chunks of a damaged file are good: the SHA-256 stored beside them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from hyperslab.archive.tree.array import Array as ArchiveArray
from hyperslab.archive.tree.group import Group
from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import DamagedFile, ReadError, UsageError
from hyperslab.versions.layout.elements import as_elements, fill_element
from hyperslab.versions.layout.fingerprints import description
from hyperslab.versions.layout.names import DATA, Array, chunk_hash
from hyperslab.versions.layout.padding import has_padding
from hyperslab.versions.layout.slots import MISSING, MOST_CHUNKS, Slots, grid_slots, stored_length

# Catch UsageError before these, which it is one of: too little memory, or a missing library, proves nothing.
READING = (ReadError, KeyError, ValueError, TypeError)
Shape = tuple[int, ...]
SPARSEST = 1024  # slots to one row of a table of hashes


class Evidence:
    """The chunks of an array, over all versions, and what is known of each.

    `is_moved`: versioned-hdf5 moved chunks to delete versions, and was interrupted before it wrote the new hashes.
    `is_torn`: it was interrupted after that, so that the mappings of some versions are old and those of others new.

    Parameters
    ----------
    root : Group
        The root of the file.
    path : str
        The path of the array in a version.

    Raises
    ------
    DamagedFile
        None of the chunks can be read.
    """

    has_key: Any
    keys: Slots

    def __init__(self, root: Group, path: str) -> None:
        group = root[f"{DATA}/{path}"]
        raw = group["raw_data"] if isinstance(group, Group) else None
        if not isinstance(raw, ArchiveArray) or raw.chunks is None:
            raise DamagedFile(f"{DATA}/{path}/raw_data is not an array in chunks")
        self.raw = raw
        self.chunk_shape: tuple[int, ...] = raw.chunks
        self.count: int = min(raw.shape[0] // self.chunk_shape[0], MOST_CHUNKS)
        self.table_damage: str | None = None
        self.table_number: int | None = None
        self.digests: dict[int, bytes] = {}
        try:
            self.digests = self._stored_digests(group)
        except UsageError:
            raise
        except READING as error:
            self.table_damage = f"the table of hashes cannot be read: {error}"
        self.keys, self.has_key = self._keys()
        self.description: bytes | None = self._description()
        self.is_moved: bool = max(self.digests, default=-1) >= self.count
        self.is_torn: bool = False
        self._checked: dict[tuple[int, Shape], int | str] = {}
        self._unprovable: set[tuple[int, Shape]] = set()
        self._found_by: dict[Shape, dict[bytes, int]] = {}

    def _stored_digests(self, group: Any) -> dict[int, bytes]:
        table = group["hash_table"]
        self.table_number = table._number
        count = int(table.attrs["largest_index"])
        rows = table[: min(count, stored_length(table))]
        slots = (rows["shape"][:, 0] // self.chunk_shape[0]).tolist()
        hashes = np.ascontiguousarray(rows["hash"]).reshape(-1, 32)
        return {slot: digest.tobytes() for slot, digest in zip(slots, hashes, strict=True) if digest.any()}

    def _keys(self) -> tuple[Slots, npt.NDArray[np.bool_]]:
        """The first 8 bytes of the hash of the chunk in each slot, as fingerprints use them, and which are known."""
        most = max(self.count, SPARSEST * len(self.digests))  # a damaged row may name any slot
        known = {slot: digest for slot, digest in self.digests.items() if 0 <= slot < most}
        length = max(known, default=-1) + 1
        keys, has_key = np.zeros(length, "<i8"), np.zeros(length, bool)
        for slot, digest in known.items():
            keys[slot], has_key[slot] = int.from_bytes(digest[:8], "little", signed=True), True
        return keys, has_key

    def _description(self) -> bytes | None:
        """The mark of how the array is stored, as fingerprints have it."""
        try:
            fill = None if self.raw.dtype.hasobject else fill_element(self.raw.dtype, self.raw.fill_value)
            return description(self.raw.dtype, self.chunk_shape, fill)
        except UsageError:
            raise
        except READING:
            return None

    def slots_of(self, array: ArchiveArray) -> Slots:
        """The slot of each chunk of a version's array, as its mappings say.

        Raises
        ------
        DamagedFile
            The array is not made of whole chunks.
        """
        slots = grid_slots(array, self.chunk_shape)
        if slots is None:
            raise DamagedFile("it is not made of whole chunks")
        return slots

    def check_exist(self, slots: Slots) -> None:
        """Refuse mappings to chunks that do not exist.

        Raises
        ------
        DamagedFile
            One leads to such a chunk.
        """
        last = int(slots.max(initial=MISSING))
        if last >= self.count and last not in self.digests:
            self.is_torn = True  # there were more chunks when its mappings were written
            raise DamagedFile(f"it shows chunk {last} of {self.count}")

    def chunk(self, slot: int) -> Array:
        """A whole chunk by its slot, with text as `str`."""
        length, *others = self.chunk_shape
        box = (slice(slot * length, (slot + 1) * length), *(slice(other) for other in others))
        read: Array = np.asarray(as_elements(np.asarray(self.raw[box]), self.raw.dtype))
        return read

    def proved(self, slot: int, shape: Shape, *, keep_unproved: bool = False) -> int:
        """The slot that holds the chunk that was in a slot, according to its hash; usually the same slot.
        `keep_unproved` also takes a chunk whose hash proves nothing.

        Raises
        ------
        DamagedFile
            The file does not hold its bytes, or they cannot be read.
        """
        key = (slot, shape)
        if key not in self._checked:
            self._checked[key] = self._check(slot, shape)
        proved_slot = self._checked[key]
        if keep_unproved and key in self._unprovable:
            return slot
        if isinstance(proved_slot, str):
            raise DamagedFile(proved_slot)
        return proved_slot

    def _check(self, slot: int, shape: Shape) -> int | str:
        wanted = self.digests.get(slot)
        try:
            digest = self._digest(slot, shape)
        except UsageError:
            raise
        except READING as error:
            if wanted is None:
                return f"chunk {slot} cannot be read: {error}"
            digest = b""
        if wanted is None or digest == wanted:
            return slot  # without a hash nothing more is known than that it can be read, see `is_proof_missing`
        if shape not in self._found_by:
            self._found_by[shape] = self._all_digests(shape)
        same_slot = self._found_by[shape].get(wanted)
        if same_slot is None and digest and has_padding(self.raw.dtype):
            self._unprovable.add((slot, shape))
            return f"chunk {slot} cannot be proved: its SHA-256 covers bytes between the fields, which mean nothing"
        if same_slot is None:
            return f"chunk {slot} does not have the SHA-256 that was stored"
        self.is_moved = True
        return same_slot

    def is_proof_missing(self, slots: Slots) -> bool:
        """Whether some of these chunks have no hash."""
        return any(slot not in self.digests for slot in np.unique(slots[slots != MISSING]).tolist())

    def _digest(self, slot: int, shape: Shape) -> bytes:
        valid = tuple(slice(length) for length in shape)
        return chunk_hash(self.chunk(slot)[valid])

    def _all_digests(self, shape: Shape) -> dict[bytes, int]:
        """The slot of the chunk with each hash, as if all chunks had this valid shape."""
        slots: dict[bytes, int] = {}
        for slot in self._stored_slots():
            try:
                slots.setdefault(self._digest(slot, shape), slot)
            except UsageError:
                raise
            except READING:
                continue
        return slots

    def _stored_slots(self) -> list[int]:
        """The slots of the chunks that are in the file: fewer than the array has room for if its shape is damaged."""
        axes = zip(self.raw.shape[1:], self.chunk_shape[1:], strict=True)
        columns = max(1, math.prod(ceil_div(length, chunk) for length, chunk in axes))
        rows = [segment.indices() // np.uint64(columns) for segment in self.raw.segments()]
        slots: list[int] = np.unique(np.concatenate(rows)).tolist() if rows else []
        return [slot for slot in slots if slot < self.count]

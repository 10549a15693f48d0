"""`ChunkStack`: all chunks that an array ever had, read by their slots; like `ChunkStore`, but without h5py."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hyperslab.archive.tree.array import Array as ArchiveArray
from hyperslab.archive.tree.group import Group
from hyperslab.cached import cached_property
from hyperslab.errors import DamagedFile, HyperslabError, Unsupported
from hyperslab.versions.layout.elements import fill_element, read_chunks
from hyperslab.versions.layout.names import DATA, FIRST_VERSION, HASH_TABLE_DTYPE, VERSIONS, Array
from hyperslab.versions.layout.padding import without_fields
from hyperslab.versions.layout.reading import parsed
from hyperslab.versions.layout.slots import MISSING, Slots, check_chunk_count, stored_length


class ChunkStack:
    """The chunks of one array, over all versions.

    Parameters
    ----------
    path : str
        The path of the array in a version.
    raw : ArchiveArray
        The stack of chunks.
    table : ArchiveArray
        The table of their hashes.

    Raises
    ------
    DamagedFile
        The arrays contradict the layout.
    Unsupported
        The stack has room for too many chunks.
    """

    def __init__(self, path: str, raw: ArchiveArray, table: ArchiveArray) -> None:
        self.path = path
        self.raw = raw
        self._table = table
        for part in (raw, table):
            if part.damaged:
                raise DamagedFile(f"{part.name} of {part.filename}: {part.damaged}")
        chunk_shape = raw.chunks or tuple(int(length) for length in np.atleast_1d(raw.attrs.get("chunks", ())))
        if len(chunk_shape) != raw.ndim or not raw.ndim or min(chunk_shape) < 1 or raw.shape[1:] != chunk_shape[1:]:
            raise DamagedFile(
                f"{raw.name} of {raw.filename} is not a stack of chunks: shape {raw.shape}, chunks {chunk_shape}"
            )
        self.chunk_shape = chunk_shape
        check_chunk_count(f"{raw.name} in {raw.filename}", raw.shape, chunk_shape, Unsupported)
        if "largest_index" not in table.attrs:
            raise DamagedFile(f"{table.name} of {table.filename} does not say how many of its rows count")
        self.count: int = int(table.attrs["largest_index"])

    @classmethod
    def of(cls, root: Group, array: str) -> ChunkStack:
        """The stack of one array, given the root of a file and the array's path in a version.

        Raises
        ------
        DamagedFile
            There is none.
        """
        parts = []
        for name in (f"{DATA}/{array}/raw_data", f"{DATA}/{array}/hash_table"):
            part = root.get(name)
            if not isinstance(part, ArchiveArray):
                raise DamagedFile(f"{root.filename}: there is no array {name}")
            parts.append(part)
        return cls(array, *parts)

    @property
    def slot_count(self) -> int:
        """The number of slots. Those from `count` on were left by commits that were cut short."""
        return self.raw.shape[0] // self.chunk_shape[0]

    @cached_property
    def fill(self) -> Any:
        """The element that stands where nothing is stored."""
        return fill_element(self.raw.dtype, self.raw.fill_value)

    @cached_property
    def rows(self) -> Array:
        """The rows of the table that count: `hash`, and as `shape` the rows of the stack that it belongs to.

        Raises
        ------
        DamagedFile
            The table is shorter than its count, or holds something else.
        """
        if self._table.dtype != HASH_TABLE_DTYPE or not 0 <= self.count <= stored_length(self._table):
            said = f"the count says {self.count} rows, but the table has {self._table.shape[0]} of {self._table.dtype}"
            raise DamagedFile(f"{self._table.name} of {self._table.filename}: {said}")
        return np.asarray(self._table[: self.count])

    @cached_property
    def stored_nbytes(self) -> npt.NDArray[np.int64]:
        """The bytes that the chunk in each slot takes in the file."""
        lengths = np.zeros(self.slot_count, np.int64)
        for segment in self.raw.segments():
            lengths[segment.indices().astype(np.int64)] = segment.lengths()
        return lengths

    def load(self, slots: Slots) -> Array:
        """Chunks by their slots, stacked along a new first axis; slot -1 gives a chunk of the fill value."""
        stored = slots != MISSING
        wanted, inverse = np.unique(slots[stored], return_inverse=True)
        read = read_chunks(self.raw, self.chunk_shape, wanted)
        if np.array_equal(wanted, slots):
            return read
        chunks: Array = np.full((len(slots), *read.shape[1:]), self.fill, read.dtype)
        without_fields(chunks)[stored] = without_fields(read)[inverse]
        return chunks


def chunk_stacks(path: str) -> tuple[dict[str, ChunkStack], dict[str, str]]:
    """The stacks of all arrays that a file's versions ever had, and the damage, both by the paths of the arrays."""
    root = parsed(path, 0, (f"{VERSIONS}/{FIRST_VERSION}", f"{DATA}/**"))
    data = root[DATA]
    stacks: dict[str, ChunkStack] = {}
    problems: dict[str, str] = {}
    waiting = [("", data)]
    while waiting:
        prefix, group = waiting.pop()
        assert isinstance(group, Group)
        for name in group:
            if not prefix and name == "versions":
                continue
            try:
                child = group[name]
                if isinstance(child, Group):
                    waiting.append((f"{prefix}{name}/", child))
                elif name == "raw_data" and prefix and "hash_table" in group:  # without one, no version may have it
                    table = group["hash_table"]
                    if not isinstance(table, ArchiveArray):
                        raise DamagedFile("hash_table is not an array")
                    stacks[prefix[:-1]] = ChunkStack(prefix[:-1], child, table)
            except (KeyError, OSError, HyperslabError) as error:
                problems[prefix[:-1] or name] = str(error.args[0] if error.args else error)
    return stacks, problems

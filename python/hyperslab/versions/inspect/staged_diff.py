"""The changes of a version that you are making, as the difference to the version that it is based on.

Staged chunks are hashed as in a commit, so that a chunk with the elements of a stored one counts as unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from hyperslab._core import ChunkTable
from hyperslab.errors import FileChanged
from hyperslab.versions.commit.chunk_store import ChunkStore
from hyperslab.versions.commit.commit import Chunks, TouchedChunks, WholeChunks
from hyperslab.versions.inspect.chunk_maps import ChunkMap, ChunkMaps, VersionMap
from hyperslab.versions.inspect.diff import Side, Stacks, VersionDiff, compared
from hyperslab.versions.layout.names import DATA, Array, chunk_hash
from hyperslab.versions.layout.padding import filled
from hyperslab.versions.layout.slots import MISSING
from hyperslab.versions.stage.staged_array import StagedArray
from hyperslab.versions.stage.staged_group import StagedGroup

DIGEST = "V32"
_Known = TypeVar("_Known")


def staged_difference(root: StagedGroup, versions: Any) -> VersionDiff:
    """Compare a version that you are making with its parent.

    Parameters
    ----------
    root : StagedGroup
        The staged version.
    versions : VersionedFile
        The `VersionedFile` that it is staged in.

    Returns
    -------
    VersionDiff
        What the version changes.
    """
    versions._check_whole()
    path, file = versions.path, versions._file
    old = VersionMap("", {}) if root.base is None else ChunkMaps(path)[root.base.name.rpartition("/")[2]]
    new, sides = VersionMap(versions._staging or "", dict(root.attrs)), dict[int, StagedSide]()
    stacks = Stacks(path, (old,))
    for array in _staged_arrays(new, old, root, ""):
        side = StagedSide.of(array, stacks, file)
        new.arrays[array.name] = side.map
        sides[id(side.map)] = side
    return compared(old, new, lambda one: sides.get(id(one)) or Side(one, stacks))


def _staged_arrays(new: VersionMap, old: VersionMap, group: StagedGroup, prefix: str) -> list[StagedArray]:
    """The staged arrays. Everything else goes into the new map, where untouched parts are those of the parent."""
    staged = []
    for name, child in group.touched():
        path = f"{prefix}{name}"
        if isinstance(child, StagedGroup):
            new.groups[path] = child.attrs
            staged += _staged_arrays(new, old, child, f"{path}/")
        elif isinstance(child, StagedArray):
            staged.append(child)
        else:
            inner = (f"{path}/",) if isinstance(child, Mapping) else ()
            new.groups.update(_at(path, inner, old.groups))
            new.arrays.update(_at(path, inner, old.arrays))
            new.problems.update(_at(path, inner, old.problems))
    return staged


def _at(path: str, inner: tuple[str, ...], known: Mapping[str, _Known]) -> dict[str, _Known]:
    """Everything at a path or below it."""
    return {one: described for one, described in known.items() if one == path or one.startswith(inner)}


@dataclass(frozen=True)
class StagedSide(Side):
    """A staged array. Its elements are read from memory, and from stored chunks."""

    source: Chunks
    digests: bytes  # of the chunks in memory, when the comparison began
    fill: Any

    @classmethod
    def of(cls, array: StagedArray, stacks: Stacks, file: Any) -> StagedSide:
        """Hash the staged chunks of an array."""
        source = TouchedChunks(array) if array.whole is None else WholeChunks(array)
        digests = source.digests(source.numbers)
        if f"{DATA}/{array.name}/raw_data" in file:
            source.slots[source.numbers], _ = ChunkStore(file, array.name).find(digests)
        else:
            nothing = chunk_hash(filled(array.chunks, array.fillvalue, array.dtype))
            source.slots[source.numbers], _ = ChunkTable(b"", np.empty(0, np.int64)).find(digests, nothing, 0)
        described = ChunkMap(array.name, array.shape, array.dtype, array.chunks, source.slots, dict(array.attrs))
        return cls(described, stacks, source, digests, array.fillvalue)

    def chunks(self, indices: npt.NDArray[np.int64]) -> Array:
        """Chunks by their indices; the fill value stands where the array has none.

        Raises
        ------
        FileChanged
            The array was changed after the comparison.
        """
        source, numbers = self.source, self.numbers(indices)
        is_staged = np.isin(numbers, source.numbers)
        slots = np.where(is_staged, MISSING, self.slots(numbers))
        if (slots != MISSING).any():
            chunks = self.stacks[self.map.path].load(slots)
        else:
            chunks = np.full((len(indices), *self.map.chunk_shape), self.fill, self.map.dtype)
        if is_staged.any():
            staged = numbers[is_staged]
            wanted = np.frombuffer(self.digests, DIGEST)[np.searchsorted(source.numbers, staged)]
            if source.digests(staged) != wanted.tobytes():
                raise FileChanged(f"{self.map.path} was changed after the comparison: compare again")
            chunks[is_staged] = source.gather(staged)
        return chunks

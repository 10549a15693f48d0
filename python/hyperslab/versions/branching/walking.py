"""`Walk`: from a version of an array back to all that it comes from, children before their parents. Each version is
laid out once, although several others are compared with it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hyperslab.errors import DamagedFile
from hyperslab.versions.branching.ancestry import children_first
from hyperslab.versions.branching.chunk_states import ABSENT, fits, states
from hyperslab.versions.inspect.chunk_maps import ChunkMap, ChunkMaps, VersionMap
from hyperslab.versions.layout.refs import Refs
from hyperslab.versions.layout.slots import MISSING, Slots
from hyperslab.versions.layout.table import VersionTable
from hyperslab.versions.stage.selection import Selected

Grid = tuple[int, ...]


@dataclass(frozen=True)
class Side:
    """An array as a version has it; None if its chunks are not like those of the array that was asked for.

    `states` has, for each chunk of the grid that was asked for, its slot, or `ABSENT` outside the array.
    """

    version: VersionMap
    array: ChunkMap | None
    grid: Grid
    states: Slots

    @property
    def name(self) -> str:
        """The name of the version."""
        return self.version.name

    def same(self, other: Side, numbers: Slots) -> npt.NDArray[np.bool_]:
        """Which of some chunks, by their linear indices, are equal in another version: those in the same slot, or
        nowhere with the same valid shape.
        """
        if self.array is not None and self.array is other.array:
            return np.ones(len(numbers), bool)
        own = self.states[numbers]
        same: npt.NDArray[np.bool_] = np.asarray(own == other.states[numbers])
        if self.array is None or other.array is None or self.array.shape == other.array.shape:
            return same
        return np.asarray(
            same & ((own != MISSING) | fits(self.array, other.array.shape, self.grid).reshape(-1)[numbers])
        )


class Step(NamedTuple):
    """A version on the way back, and its parents."""

    own: Side
    parents: list[Side]

    def changed(self, numbers: Slots) -> Slots:
        """Those of some chunks that no parent has, by their linear indices."""
        if not self.parents:
            return np.asarray(numbers[self.own.states[numbers] != ABSENT])
        for parent in self.parents:
            numbers = np.asarray(numbers[~self.own.same(parent, numbers)])
        return numbers


class Walk:
    """The way back from a version of an array.

    Parameters
    ----------
    table : VersionTable
        All versions.
    refs : Refs
        What was merged into what.
    version : str
        The version to start from.
    array : str
        The path of the array.

    Raises
    ------
    KeyError
        The version has no such array.
    DamagedFile
        The array is damaged.
    """

    def __init__(self, table: VersionTable, refs: Refs, version: str, array: str) -> None:
        self._table, self._refs, self._version, self._path = table, refs, version, array
        self._maps = ChunkMaps(table.path, array)
        found = self._maps[version].arrays.get(array)
        if found is None:
            raise KeyError(f"version {version!r} of {table.path} has no array {array!r}")
        if found.problem is not None or found.slots is None:
            raise DamagedFile(f"{array} in version {version!r} of {table.path}: {found.problem}")
        self.array = found
        self._laid_out: tuple[ChunkMap | None, Slots] | None = None  # unchanged arrays follow each other

    def steps(self, wanted: Container[str] | None = None) -> Iterator[Step]:
        """Each version that the first one comes from, children first; with `wanted`, only those that are in it by then.

        A version is looked at once its parents are parsed, and then forgotten.

        Raises
        ------
        DamagedFile
            The ancestors form a circle, or the array is damaged in one of them.
        """
        table, known, position = self._table, dict[str, Side](), 0
        order = children_first([self._version], table, self._refs)
        parents = {name: self._refs.parents_of(name, table) for name in order}
        for parsed in self._maps.each(order):
            known[parsed.name] = self._side(parsed)
            while position < len(order) and all(one in known for one in (order[position], *parents[order[position]])):
                name = order[position]
                position += 1
                if wanted is None or name in wanted:
                    yield Step(known[name], [known[one] for one in parents[name]])
                del known[name]
        if position < len(order):
            said = f"the ancestors of version {self._version!r} of {table.path} form a circle"
            raise DamagedFile(f"{said}: verify the file")

    def _side(self, version: VersionMap) -> Side:
        found, shown = version.arrays.get(self._path), self.array
        if found is not None and found.problem is not None:
            raise DamagedFile(f"{self._path} in version {version.name!r}: {found.problem}")
        if found is None or found.slots is None or found.chunk_shape != shown.chunk_shape:
            found = None
        if self._laid_out is None or self._laid_out[0] is not found:
            self._laid_out = found, states(found, shown.grid_shape).reshape(-1)
        return Side(version, found, shown.grid_shape, self._laid_out[1])


def touched(asked: Selected, array: ChunkMap) -> Slots:
    """The linear indices of the chunks that a selection of an array touches."""
    chunks = np.zeros(array.grid_shape, bool)
    if asked.is_empty:
        return np.empty(0, np.int64)
    if asked.boxes is not None:
        axes = zip(asked.boxes, array.chunk_shape, strict=True)
        along = [np.unique((start + step * np.arange(count)) // chunk) for (start, step, count), chunk in axes]
        chunks[np.ix_(*along)] = True
    else:
        chunks[tuple(indices // chunk for indices, chunk in zip(asked.indices, array.chunk_shape, strict=True))] = True
    return np.flatnonzero(chunks)

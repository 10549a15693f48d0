"""`blame` and `history`: which versions changed the chunks of an array, from the mappings alone. No chunk is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hyperslab.archive.tree.indexing import Key
from hyperslab.chunk_grid import chunk_counts
from hyperslab.errors import DamagedFile
from hyperslab.versions.branching.ancestry import children_first
from hyperslab.versions.branching.chunk_states import ABSENT, same_states, states
from hyperslab.versions.inspect.chunk_maps import ChunkMap, ChunkMaps, VersionMap
from hyperslab.versions.layout.refs import Refs
from hyperslab.versions.layout.table import Version, VersionTable
from hyperslab.versions.stage.selection import Selected, selected

Chunks = npt.NDArray[np.bool_]  # of the whole grid: those in question


@dataclass(frozen=True)
class Change:
    """A version that changed chunks of an array, how many of those you asked for, and who made it and why."""

    version: Version
    chunk_count: int
    author: str | None
    message: str | None

    @property
    def name(self) -> str:
        """The name of the version."""
        return self.version.name


@dataclass(frozen=True)
class Blame:
    """Which version last changed each chunk.

    `indices` (chunk × axis) are those of the chunks that you asked for, and `numbers` the position in `changes` of the
    version that last changed each of them. `changes` begin with the oldest.
    """

    path: str
    version: str
    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    indices: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64]
    changes: tuple[Change, ...]

    def at(self, *index: int) -> Change:
        """The version that last changed the chunk with an element.

        Raises
        ------
        IndexError
            The element is not in a chunk that you asked for.
        """
        asked = np.array(index) // self.chunk_shape
        rows = np.flatnonzero((self.indices == asked).all(axis=1))
        if not len(rows):
            raise IndexError(f"{index} is in none of the chunks of {self.path} that you asked for")
        return self.changes[int(self.numbers[rows[0]])]


class _Step(NamedTuple):
    """A version with the chunks that it changed, and, for each of its parents, those that it took from there."""

    version: VersionMap
    changed: Chunks
    taken: dict[str, Chunks]


def blame(path: str, table: VersionTable, refs: Refs, version: str, array: str, key: Key) -> Blame:
    """Find the version that last changed each chunk; see `VersionedFile.blame`."""
    maps = ChunkMaps(path, array)
    shown = _shown(maps, version, array, path)
    asked = touched(shown, key)
    waiting, found = {version: asked}, list[tuple[VersionMap, Chunks]]()
    for step in _steps(maps, table, refs, version, array, shown, waiting):
        mine = waiting.pop(step.version.name)
        left = mine & step.changed
        if left.any():
            found.append((step.version, left))
        mine = mine & ~step.changed
        for parent, same in step.taken.items():
            passed = mine & same
            mine = mine & ~same
            if passed.any():
                waiting[parent] = waiting.get(parent, False) | passed
        if not waiting:
            break
    found.reverse()
    numbers = np.full(asked.shape, -1, np.int64)
    for number, (_, chunks) in enumerate(found):
        numbers[chunks] = number
    changes = tuple(_change(table, one, int(np.count_nonzero(chunks))) for one, chunks in found)
    return Blame(array, version, shown.shape, shown.chunk_shape, np.argwhere(asked), numbers[asked], changes)


def history(path: str, table: VersionTable, refs: Refs, version: str, array: str, key: Key) -> list[Change]:
    """Find all versions that changed any of some chunks, newest first; see `VersionedFile.history`."""
    maps = ChunkMaps(path, array)
    shown = _shown(maps, version, array, path)
    asked, changes = touched(shown, key), []
    for step in _steps(maps, table, refs, version, array, shown, None):
        count = int(np.count_nonzero(step.changed & asked))
        if count:
            changes.append(_change(table, step.version, count))
    return changes


def touched(array: ChunkMap, key: Key) -> Chunks:
    """The chunks of an array's grid that a selection touches."""
    asked: Selected = selected(key, array.shape)
    chunks = np.zeros(array.grid_shape, bool)
    if asked.is_empty:
        return chunks
    if asked.boxes is not None:
        axes = zip(asked.boxes, array.chunk_shape, strict=True)
        along = [np.unique((start + step * np.arange(count)) // chunk) for (start, step, count), chunk in axes]
        chunks[np.ix_(*along)] = True
        return chunks
    chunks[tuple(indices // chunk for indices, chunk in zip(asked.indices, array.chunk_shape, strict=True))] = True
    return chunks


def _shown(maps: ChunkMaps, version: str, array: str, path: str) -> ChunkMap:
    found = maps[version].arrays.get(array)
    if found is None:
        raise KeyError(f"version {version!r} of {path} has no array {array!r}")
    if found.problem is not None or found.slots is None:
        raise DamagedFile(f"{array} in version {version!r} of {path}: {found.problem}")
    return found


def _steps(
    maps: ChunkMaps,
    table: VersionTable,
    refs: Refs,
    version: str,
    array: str,
    shown: ChunkMap,
    wanted: dict[str, Chunks] | None,
) -> Iterator[_Step]:
    """Each version that the asked one comes from, children first; with `wanted`, only those that are in it by then.

    A version is looked at once its parents are parsed, and then forgotten.

    Raises
    ------
    DamagedFile
        The ancestors form a circle, or the array is damaged in one of them.
    """
    order = children_first([version], table, refs)
    parents = {name: refs.parents_of(name, table) for name in order}
    known: dict[str, VersionMap] = {}
    position = 0
    for parsed in maps.each(order):
        known[parsed.name] = parsed
        while position < len(order) and all(one in known for one in (order[position], *parents[order[position]])):
            name = order[position]
            position += 1
            if wanted is None or name in wanted:
                yield _step(known[name], [known[one] for one in parents[name]], array, shown)
            del known[name]
    if position < len(order):
        raise DamagedFile(f"the ancestors of version {version!r} of {table.path} form a circle: verify the file")


def _step(version: VersionMap, parents: Sequence[VersionMap], array: str, shown: ChunkMap) -> _Step:
    grid = chunk_counts(shown.shape, shown.chunk_shape)
    own = _usable(version, array, shown)
    here, changed, taken = states(own, grid), np.ones(grid, bool), {}
    for parent in parents:
        other = _usable(parent, array, shown)
        same = same_states(here, states(other, grid), own, other, grid)
        taken[parent.name] = same
        changed &= ~same
    if not parents:
        changed = here != ABSENT
    return _Step(version, changed, taken)


def _usable(version: VersionMap, array: str, shown: ChunkMap) -> ChunkMap | None:
    """The array of a version, if it is made of chunks like those of the one that was asked for."""
    found = version.arrays.get(array)
    if found is not None and found.problem is not None:
        raise DamagedFile(f"{array} in version {version.name!r}: {found.problem}")
    if found is None or found.slots is None or found.chunk_shape != shown.chunk_shape:
        return None
    return found


def _change(table: VersionTable, version: VersionMap, count: int) -> Change:
    texts = {name: version.attributes.get(name) for name in ("author", "message")}
    return Change(table[version.name], count, *(_text(texts[name]) for name in ("author", "message")))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None

"""`blame` and `history`: which versions changed the chunks of an array, from the mappings alone. No chunk is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hyperslab.archive.tree.indexing import Key
from hyperslab.versions.branching.walking import Walk, touched
from hyperslab.versions.inspect.chunk_maps import VersionMap
from hyperslab.versions.layout.refs import Refs
from hyperslab.versions.layout.slots import Slots
from hyperslab.versions.layout.table import Version, VersionTable
from hyperslab.versions.stage.selection import selected


@dataclass(frozen=True)
class Change:
    """A version that changed chunks of an array, how many of those you asked for, and who made it and why.

    `element_count` is None if you did not ask for elements.
    """

    version: Version
    chunk_count: int
    author: str | None
    message: str | None
    element_count: int | None = None

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


def blame(table: VersionTable, refs: Refs, version: str, array: str, key: Key) -> Blame:
    """Find the version that last changed each chunk; see `VersionedFile.blame`."""
    walk = Walk(table, refs, version, array)
    shown = walk.array
    asked = touched(selected(key, shown.shape), shown)
    waiting, found = {version: asked}, list[tuple[VersionMap, Slots]]()
    for step in walk.steps(waiting) if len(asked) else ():
        mine = waiting.pop(step.own.name)
        for parent in step.parents:
            same = step.own.same(parent, mine)
            if same.any():
                before = waiting.get(parent.name)
                waiting[parent.name] = mine[same] if before is None else np.concatenate([before, mine[same]])
                mine = mine[~same]
        if len(mine):
            found.append((step.own.version, mine))
        if not waiting:
            break
    found.reverse()
    numbers = np.full(shown.grid_shape, -1, np.int64).reshape(-1)
    for number, (_, chunks) in enumerate(found):
        numbers[chunks] = number
    changes = tuple(change_of(table, one, len(chunks)) for one, chunks in found)
    indices = np.stack(np.unravel_index(asked, shown.grid_shape), axis=1).astype(np.int64)
    return Blame(array, version, shown.shape, shown.chunk_shape, indices, numbers[asked], changes)


def history(table: VersionTable, refs: Refs, version: str, array: str, key: Key) -> list[Change]:
    """Find all versions that changed any of some chunks, newest first; see `VersionedFile.history`."""
    walk = Walk(table, refs, version, array)
    asked, changes = touched(selected(key, walk.array.shape), walk.array), []
    for step in walk.steps():
        count = len(step.changed(asked))
        if count:
            changes.append(change_of(table, step.own.version, count))
    return changes


def change_of(table: VersionTable, version: VersionMap, chunk_count: int, element_count: int | None = None) -> Change:
    """What a version changed, with who made it and why."""
    author, message = (_text(version.attributes.get(name)) for name in ("author", "message"))
    return Change(table[version.name], chunk_count, author, message, element_count)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None

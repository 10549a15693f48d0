"""`ElementBlame`: which version last changed each element. Only chunks that differ between versions are read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hyperslab.archive.tree.indexing import Key
from hyperslab.errors import UsageError
from hyperslab.journal.signals import raise_pending_signals
from hyperslab.versions.branching.blaming import Change, change_of
from hyperslab.versions.branching.chunk_states import ABSENT, inside
from hyperslab.versions.branching.walking import Side, Step, Walk, touched
from hyperslab.versions.inspect.chunk_maps import VersionMap
from hyperslab.versions.inspect.chunk_stack import ChunkStack
from hyperslab.versions.inspect.regions import unequal
from hyperslab.versions.layout.names import DATA, FIRST_VERSION, VERSIONS
from hyperslab.versions.layout.reading import parsed
from hyperslab.versions.layout.refs import Refs
from hyperslab.versions.layout.slots import MISSING, Slots
from hyperslab.versions.layout.table import VersionTable
from hyperslab.versions.stage.selection import Selected, selected
from hyperslab.versions.stage.staged_chunks import StagedChunks

MOST_ELEMENTS = 1 << 27  # in the chunks that a selection touches: four bytes each
BATCH_NBYTES = 16 << 20  # bytes of chunks to compare at a time, for each of the two versions
NOT_ASKED = -1


@dataclass(frozen=True)
class ElementBlame:
    """Which version last changed each element.

    `numbers` has the shape of `array[selection]`: the position in `changes` of the version that last changed each
    element. `changes` begin with the oldest.
    """

    path: str
    version: str
    numbers: npt.NDArray[np.int64]
    changes: tuple[Change, ...]

    def at(self, *index: int) -> Change:
        """The version that last changed an element, by its index in `array[selection]`.

        Raises
        ------
        IndexError
            The selection has no such element.
        """
        number = self.numbers[index]
        if np.ndim(number):
            raise IndexError(f"{index} is not one element: the selection has the shape {self.numbers.shape}")
        return self.changes[int(number)]


class _Waiting(NamedTuple):
    """Elements that are as they are in one version: rows of the slab (chunks), and what marks the elements in each."""

    rows: Slots
    labels: Slots


def blame_elements(table: VersionTable, refs: Refs, version: str, array: str, key: Key) -> ElementBlame:
    """Find the version that last changed each element; see `VersionedFile.blame_elements`."""
    walk = Walk(table, refs, version, array)
    asked = selected(key, walk.array.shape)
    numbers = touched(asked, walk.array)
    count = len(numbers) * math.prod(walk.array.chunk_shape)
    if count > MOST_ELEMENTS:
        said = f"the chunks of this selection of {array} have {count} elements, more than {MOST_ELEMENTS}"
        raise UsageError(f"{said}: ask for a part of it, or for chunks instead of elements")
    if not len(numbers):
        return ElementBlame(array, version, np.empty(asked.shape, np.int64), ())
    root = parsed(table.path, 0, (f"{VERSIONS}/{FIRST_VERSION}", f"{DATA}/{array}/*"))
    search = _Search(ChunkStack.of(root, array), walk, asked, numbers)
    search.search(version)
    return search.found(table, version)


class _Search:
    """Goes back from a version, and compares the chunks that differ.

    Each element of the touched chunks has a label in `slab`; all elements of a chunk with one label are as they are in
    one version. Chunks that a version shares with a parent only move on, whatever they hold. Where chunks differ, the
    elements that the parent has too get a new label, which moves on.
    """

    def __init__(self, stack: ChunkStack, walk: Walk, asked: Selected, numbers: Slots) -> None:
        self._stack, self._walk, self._asked, self._numbers = stack, walk, asked, numbers
        shown, dtype = walk.array, np.dtype(np.int32)
        nothing = np.full(math.prod(shown.grid_shape), MISSING, np.int64)
        self._chunks = StagedChunks(shown.shape, shown.chunk_shape, dtype, NOT_ASKED, nothing, lambda _: self._slab)
        self._chunks.stage(numbers)
        self._chunks.write(asked, np.zeros(asked.full_shape, dtype))
        self._rows = self._chunks.rows.reshape(-1)[numbers]
        self._slab: Any = self._chunks.slab
        labels = np.arange(len(numbers), dtype=dtype)
        some = self._slab[self._rows]
        wide = labels.reshape(-1, *(1,) * len(shown.chunk_shape))
        self._slab[self._rows] = np.where(some == NOT_ASKED, NOT_ASKED, wide)
        self._label_count = len(numbers)
        self._owners: list[tuple[VersionMap, _Waiting]] = []

    def search(self, version: str) -> None:
        """Find the version of each label."""
        positions = np.arange(len(self._numbers))
        waiting = {version: _Waiting(positions, positions)}
        for step in self._walk.steps(waiting):
            raise_pending_signals()
            mine = waiting.pop(step.own.name)
            for parent in step.parents:
                same = step.own.same(parent, self._numbers[mine.rows])
                _add(waiting, parent.name, _Waiting(mine.rows[same], mine.labels[same]))
                mine = _Waiting(mine.rows[~same], mine.labels[~same])
            for parent in step.parents:
                _add(waiting, parent.name, self._taken(step, parent, mine))
            if len(mine.rows):
                self._owners.append((step.own.version, mine))
            if not waiting:
                return

    def _taken(self, step: Step, parent: Side, mine: _Waiting) -> _Waiting:
        """The elements, of chunks that differ, that a parent has too, with new labels."""
        there = parent.states[self._numbers[mine.rows]] != ABSENT
        mine = _Waiting(mine.rows[there], mine.labels[there])
        if parent.array is None or not len(mine.rows):
            return _Waiting(mine.rows[:0], mine.labels[:0])
        nbytes = max(1, self._stack.raw.dtype.itemsize * math.prod(self._stack.chunk_shape))
        batch, taken = max(1, BATCH_NBYTES // nbytes), list[_Waiting]()
        while len(mine.rows):  # a chunk has several labels if elements came back here on several ways: one at a time
            _, firsts = np.unique(mine.rows, return_index=True)
            for at in range(0, len(firsts), batch):
                some = firsts[at : at + batch]
                taken.append(self._split(step.own, parent, _Waiting(mine.rows[some], mine.labels[some])))
            mine = _Waiting(np.delete(mine.rows, firsts), np.delete(mine.labels, firsts))
        return _Waiting(*map(np.concatenate, zip(*taken, strict=True)))

    def _split(self, own: Side, parent: Side, some: _Waiting) -> _Waiting:
        numbers = self._numbers[some.rows]
        here, before = self._stack.load(own.states[numbers]), self._stack.load(parent.states[numbers])
        grid, array = self._walk.array.grid_shape, parent.array
        assert array is not None
        indices = np.stack(np.unravel_index(numbers, grid), axis=1)
        wide = some.labels.reshape(-1, *(1,) * len(array.chunk_shape))
        rows = self._rows[some.rows]
        slab = self._slab[rows]
        equal = (slab == wide) & inside(array.shape, indices, array.chunk_shape) & ~unequal(here, before)
        any_equal = equal.reshape(len(equal), -1).any(axis=1)
        labels = np.full(len(rows), NOT_ASKED, np.int64)
        labels[any_equal] = self._label_count + np.arange(int(any_equal.sum()))
        self._label_count += int(any_equal.sum())
        self._slab[rows] = np.where(equal, labels.reshape(wide.shape), slab)
        return _Waiting(some.rows[any_equal], labels[any_equal])

    def found(self, table: VersionTable, version: str) -> ElementBlame:
        """What was found."""
        owners = list(reversed(self._owners))
        owner_of, row_of = np.full((2, self._label_count), -1, np.int64)
        for position, (_, waiting) in enumerate(owners):
            owner_of[waiting.labels], row_of[waiting.labels] = position, waiting.rows
        labels = self._chunks.read(self._asked).reshape(self._asked.shape)
        numbers = owner_of[labels]
        counts = np.bincount(numbers.reshape(-1), minlength=len(owners))
        used = np.unique(labels)
        pairs = np.unique(np.stack([owner_of[used], row_of[used]]), axis=1)
        chunk_counts = np.bincount(pairs[0], minlength=len(owners))
        kept = np.flatnonzero(counts)
        renumbered = np.cumsum(counts > 0) - 1
        changes = tuple(
            change_of(table, owners[one][0], int(chunk_counts[one]), int(counts[one])) for one in kept.tolist()
        )
        return ElementBlame(self._walk.array.path, version, np.asarray(renumbered[numbers]), changes)


def _add(waiting: dict[str, _Waiting], name: str, more: _Waiting) -> None:
    if not len(more.rows):
        return
    before = waiting.get(name)
    waiting[name] = more if before is None else _Waiting(*map(np.concatenate, zip(before, more, strict=True)))

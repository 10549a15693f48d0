"""`Stats`: how many bytes versions hold, and how much of that is stored only once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hyperslab.archive.views import display_html
from hyperslab.progress import Progress
from hyperslab.quantities import nbytes_text
from hyperslab.versions.inspect.chunk_maps import ChunkMap, ChunkMaps, VersionMap
from hyperslab.versions.inspect.chunk_stack import ChunkStack, chunk_stacks
from hyperslab.versions.inspect.stored_bytes import StoredBytes
from hyperslab.versions.layout.slots import Slots
from hyperslab.versions.layout.table import VersionTable

NOBODY, SEVERAL = -1, -2


@dataclass(frozen=True)
class VersionSize:
    """What a version holds. Bytes of chunks are None if an array's table of chunks is damaged.

    Text of variable length counts only its pointers.
    """

    name: str
    array_count: int
    nbytes: int  # of all elements, in memory
    chunk_count: int  # chunks with a mapping
    stored_nbytes: int | None  # of its chunks in the file, each once
    new_nbytes: int | None  # of its chunks that the parent does not have
    own_nbytes: int | None = None  # of its chunks that no other version has; deleting it would free them

    @property
    def shared_nbytes(self) -> int | None:
        """Bytes in the file of the chunks that its parent has too."""
        return None if self.stored_nbytes is None or self.new_nbytes is None else self.stored_nbytes - self.new_nbytes


@dataclass(frozen=True)
class ArraySize:
    """All chunks that an array ever had: used by versions, used by none, and left by commits that were cut short."""

    path: str
    version_count: int
    chunk_count: int
    stored_nbytes: int
    unreferenced_count: int
    unreferenced_nbytes: int
    uncommitted_count: int
    uncommitted_nbytes: int


@dataclass(frozen=True)
class Stats:
    """What the versions of a file hold, and how much of it is stored only once."""

    path: str
    file_nbytes: int
    versions: tuple[VersionSize, ...]
    arrays: tuple[ArraySize, ...]
    problems: dict[str, str] = field(default_factory=dict)  # damaged arrays, which are not counted

    @property
    def nbytes(self) -> int:
        """Bytes in memory of the elements of all versions together."""
        return sum(version.nbytes for version in self.versions)

    @property
    def stored_nbytes(self) -> int:
        """Bytes in the file of the chunks of all versions, each once."""
        return sum(array.stored_nbytes for array in self.arrays)

    @property
    def unreferenced_nbytes(self) -> int:
        """Bytes of chunks that were committed, but that no version uses any more."""
        return sum(array.unreferenced_nbytes for array in self.arrays)

    @property
    def uncommitted_nbytes(self) -> int:
        """Bytes of chunks left by commits that were cut short. Later commits use this space."""
        return sum(array.uncommitted_nbytes for array in self.arrays)

    @property
    def other_nbytes(self) -> int:
        """Bytes of the file that are not chunks of arrays: mappings, tables, text and free space."""
        return self.file_nbytes - self.stored_nbytes - self.unreferenced_nbytes - self.uncommitted_nbytes

    @property
    def deduplication_ratio(self) -> float | None:
        """How many times more bytes the chunks would take if versions shared none; None if that is unknown."""
        stored = [version.stored_nbytes for version in self.versions]
        known = sum(nbytes for nbytes in stored if nbytes is not None)
        return None if None in stored or not self.stored_nbytes else known / self.stored_nbytes

    def _repr_html_(self) -> str:
        cells = (
            (
                one.name,
                f"{one.array_count:,}",
                nbytes_text(one.nbytes),
                f"{one.chunk_count:,}",
                *map(nbytes_text, (one.stored_nbytes, one.shared_nbytes, one.own_nbytes)),
            )
            for one in self.versions
        )
        ratio = self.deduplication_ratio
        notes = [
            f"{nbytes_text(self.file_nbytes)} in the file",
            f"{nbytes_text(self.stored_nbytes)} in chunks of versions"
            + ("" if ratio is None else f" (without sharing: {ratio:.3g} times as much)"),
            f"{nbytes_text(self.unreferenced_nbytes)} in chunks that no version uses",
            f"{nbytes_text(self.uncommitted_nbytes)} left by interrupted commits",
            f"{nbytes_text(self.other_nbytes)} in mappings, tables, text and free space",
            *(f"{name} was not counted: {problem}" for name, problem in self.problems.items()),
        ]
        titles = ("version", "arrays", "in memory", "chunks", "stored", "shared with parent", "only here")
        return display_html.rows("hyperslab.Stats", self.path, titles, cells, notes)


def stats(path: str, table: VersionTable, progress: Progress | None = None) -> Stats:
    """Count what the versions of a file hold; see `VersionedFile.stats`.

    Raises
    ------
    FileChanged
        Another file replaced this one meanwhile.
    """
    with StoredBytes(path) as stored:
        stacks, problems = chunk_stacks(path)
        tally = Tally(stacks)
        sizes = []
        for done, (version, parent) in enumerate(with_parents(ChunkMaps(path), table), 1):
            sizes.append(tally.count(version, parent))
            if progress is not None:
                progress(version.name, done, len(table))
        stored.check()
    own = tally.own_nbytes(len(sizes))
    versions = [
        size if size.stored_nbytes is None else replace(size, own_nbytes=nbytes)
        for size, nbytes in zip(sizes, own.tolist(), strict=True)
    ]
    arrays = tuple(tally.array_size(name) for name in sorted(stacks))
    return Stats(path, Path(path).stat().st_size, tuple(versions), arrays, problems)


def with_parents(maps: ChunkMaps, table: VersionTable) -> Iterator[tuple[VersionMap, VersionMap | None]]:
    """The map of each version, oldest first, with that of its parent; None if it has no parent, or that was deleted."""
    for version in maps.each(list(table)):
        parent = table[version.name].parent
        yield version, maps[parent] if parent is not None and parent in table else None


class Tally:
    """Counts chunks over versions.

    Parameters
    ----------
    stacks : dict[str, ChunkStack]
        The chunks that arrays ever had, by the paths of the arrays.
    """

    def __init__(self, stacks: dict[str, ChunkStack]) -> None:
        self._stacks = stacks
        self._version_counts = dict.fromkeys(stacks, 0)
        # For each slot: the number of the only version that uses its chunk, or NOBODY, or SEVERAL.
        self._owners = {path: np.full(stack.slot_count, NOBODY, np.int32) for path, stack in stacks.items()}
        self._number = 0

    def count(self, version: VersionMap, parent: VersionMap | None) -> VersionSize:
        """Count a version."""
        stored, new, chunk_count = 0, 0, 0
        for path, array in version.arrays.items():
            before = None if parent is None else parent.arrays.get(path)
            chunk_count += 0 if array.slots is None else int(np.count_nonzero(array.slots >= 0))
            if path not in self._stacks:
                continue
            self._version_counts[path] += 1
            used, nbytes = self._used(array), self._stacks[path].stored_nbytes
            owners = self._owners[path]
            owners[used] = np.where(owners[used] == NOBODY, self._number, SEVERAL)
            stored += int(nbytes[used].sum())
            if before is not array:
                known = np.zeros(len(nbytes), bool)
                known[[] if before is None else self._used(before)] = True
                new += int(nbytes[used[~known[used]]].sum())
        self._number += 1
        is_known = all(path in self._stacks and array.problem is None for path, array in version.arrays.items())
        size = VersionSize(version.name, len(version.arrays), version.nbytes, chunk_count, stored, new)
        return (
            size
            if is_known
            else VersionSize(version.name, len(version.arrays), version.nbytes, chunk_count, None, None)
        )

    def _used(self, array: ChunkMap) -> Slots:
        """The slots of an array's chunks that exist."""
        return array.used_slots[array.used_slots < len(self._owners[array.path])]

    def own_nbytes(self, version_count: int) -> npt.NDArray[np.int64]:
        """The bytes of the chunks that only one version has, for each version counted."""
        own = np.zeros(version_count, np.int64)
        for path, owners in self._owners.items():
            alone = owners >= 0
            np.add.at(own, owners[alone], self._stacks[path].stored_nbytes[alone])
        return own

    def array_size(self, path: str) -> ArraySize:
        """The result for an array."""
        stack, is_used = self._stacks[path], self._owners[path] != NOBODY
        nbytes, is_committed = stack.stored_nbytes, np.arange(stack.slot_count) < stack.count
        parts = [is_used, ~is_used & is_committed, ~is_used & ~is_committed]
        counted = [number for part in parts for number in (int(part.sum()), int(nbytes[part].sum()))]
        return ArraySize(path, self._version_counts[path], *counted)

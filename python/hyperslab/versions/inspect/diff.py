"""`VersionDiff`: the differences between two versions, from their mappings alone. Elements are read only when you ask
for them, and only where chunks differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hyperslab.archive.tree.array import Array as ArchiveArray
from hyperslab.archive.views import display_html
from hyperslab.cached import cached_property
from hyperslab.errors import DamagedFile, FileChanged, Unsupported
from hyperslab.progress import Progress
from hyperslab.quantities import UNKNOWN
from hyperslab.versions.inspect.chunk_maps import ChunkMap, ChunkMaps, VersionMap, chunk_map
from hyperslab.versions.inspect.chunk_stack import ChunkStack
from hyperslab.versions.inspect.regions import Boxes, joined, unequal, within
from hyperslab.versions.layout.elements import same_value
from hyperslab.versions.layout.names import DATA, VERSIONS, Array
from hyperslab.versions.layout.reading import parsed
from hyperslab.versions.layout.slots import MISSING, check_chunk_count

Status = Literal["added", "removed", "changed"]
OUTSIDE = -2
BATCH_NBYTES = 32 << 20  # bytes of chunks to compare at a time, for each version


class Change(NamedTuple):
    """A value before and after; None where there is no value."""

    before: Any
    after: Any


@dataclass(frozen=True)
class ChangedElements:
    """What changed in the elements of an array.

    `count` elements of both versions differ, bit by bit; `added_count` and `removed_count` exist in only one version.
    `boxes` (int64, box × axis × start and stop) cover the differing elements: exactly, for an array with one axis;
    otherwise with the smallest box in each chunk, where adjacent boxes are joined if that gives a box. `values` holds
    the least and the largest of them before and after, if they are numbers.
    """

    count: int
    added_count: int
    removed_count: int
    boxes: Boxes
    values: Change

    @property
    def bounds(self) -> tuple[tuple[int, int], ...] | None:
        """The smallest box around all changes, as start and stop on each axis; None if nothing changed."""
        if not len(self.boxes):
            return None
        starts, stops = self.boxes[:, :, 0].min(axis=0), self.boxes[:, :, 1].max(axis=0)
        return tuple(zip(starts.tolist(), stops.tolist(), strict=True))


class ChangedChunk(NamedTuple):
    """A chunk that differs, with its elements before and after; None if the array does not reach that far."""

    chunk_index: tuple[int, ...]
    before: Array | None
    after: Array | None


class ArrayDiff:
    """The differences in an array between two versions.

    `chunks` (int64, chunk × axis) holds the indices of the chunks that differ, including those that only one version
    has. It is None if the mappings of a version are damaged; `problem` then says how. `attributes` holds those that
    differ.
    """

    def __init__(self, path: str, before: Side | None, after: Side | None) -> None:
        self.path = path
        self.before: ChunkMap | None = None if before is None else before.map
        self.after: ChunkMap | None = None if after is None else after.map
        self._sides = (before, after)
        maps = [one for one in (self.before, self.after) if one is not None]
        problems = {one.problem: None for one in maps if one.problem}
        if len({one.chunk_shape for one in maps}) > 1:
            problems[f"its chunks are {maps[0].chunk_shape} and {maps[1].chunk_shape}"] = None
        self.problem: str | None = "; ".join(problems) or None
        self.attributes: dict[str, Change] = (
            changed_values(maps[0].attributes, maps[1].attributes) if len(maps) > 1 else {}
        )

    @property
    def status(self) -> Status:
        """Whether the array was added, was removed, or changed."""
        return "added" if self.before is None else "removed" if self.after is None else "changed"

    @property
    def shape(self) -> Change:
        """The shapes before and after."""
        return Change(*(None if one is None else one.shape for one in (self.before, self.after)))

    @property
    def dtype(self) -> Change:
        """The dtypes before and after."""
        return Change(*(None if one is None else one.dtype for one in (self.before, self.after)))

    @property
    def chunk_shape(self) -> tuple[int, ...]:
        """The shape of the chunks; that of the later version if they differ."""
        described = self.after or self.before
        assert described is not None
        return described.chunk_shape

    @cached_property
    def chunks(self) -> npt.NDArray[np.int64] | None:
        """The indices of the chunks that differ."""
        return None if self.problem else changed_chunks(self.before, self.after)

    @property
    def chunk_count(self) -> int | None:
        """The number of chunks that differ."""
        return None if self.chunks is None else len(self.chunks)

    @property
    def is_changed(self) -> bool:
        """Whether anything differs."""
        same = self.shape.before == self.shape.after and self.dtype.before == self.dtype.after
        return self.status != "changed" or not same or bool(self.attributes) or self.chunk_count != 0

    def changed_chunks(self) -> Iterator[ChangedChunk]:
        """The chunks that differ, read a few at a time.

        Raises
        ------
        DamagedFile
            The chunks cannot be read.
        """
        for indices, before, after in self._batches(self._known_chunks()):
            for row, index in enumerate(indices.tolist()):
                valid = [self._valid(one, index) for one in (self.before, self.after)]
                parts = [
                    None if key is None else side[row][key] for key, side in zip(valid, (before, after), strict=True)
                ]
                yield ChangedChunk(tuple(index), *parts)

    def coordinates(self) -> Iterator[npt.NDArray[np.int64]]:
        """The coordinates (element × axis) of the elements that differ in both versions, some at a time."""
        for indices, differ, _, _ in self._compared():
            rows, *inside = np.nonzero(differ)
            yield indices[rows] * self.chunk_shape + np.stack(inside, axis=1)

    def elements(self, progress: Progress | None = None) -> ChangedElements:
        """Compare the elements of the chunks that differ. They are read only once, and the result is kept.

        Parameters
        ----------
        progress : callable, optional
            Called with the path of the array, the number of chunks read so far, and the number of chunks to read.

        Returns
        -------
        ChangedElements
            The number of changes, where they are, and the range of their values.

        Raises
        ------
        DamagedFile
            The chunks cannot be read.
        """
        if "_elements" not in self.__dict__:
            self.__dict__["_elements"] = self._read_elements(progress or (lambda *_: None))
        elements: ChangedElements = self.__dict__["_elements"]
        return elements

    def _read_elements(self, progress: Progress) -> ChangedElements:
        count, done, boxes = 0, 0, [np.empty((0, len(self.chunk_shape), 2), np.int64)]
        bounds = (_Bounds(), _Bounds())
        for indices, differ, before, after in self._compared():
            count += int(np.count_nonzero(differ))
            boxes.append(within(differ, indices * self.chunk_shape))
            for one, elements in zip(bounds, (before, after), strict=True):
                one.add(elements, differ)
            done += len(indices)
            progress(self.path, done, len(self._known_chunks()))
        common = math.prod(self._common_shape)
        sizes = [0 if one is None else math.prod(one.shape) for one in (self.before, self.after)]
        values = Change(*(one.found for one in bounds))
        return ChangedElements(count, sizes[1] - common, sizes[0] - common, joined(np.concatenate(boxes)), values)

    @property
    def _common_shape(self) -> tuple[int, ...]:
        """The shape of the box that both arrays have in common."""
        if self.before is None or self.after is None or len(self.before.shape) != len(self.after.shape):
            return (0,)
        return tuple(map(min, self.before.shape, self.after.shape))

    def _known_chunks(self) -> npt.NDArray[np.int64]:
        if self.chunks is None:
            raise DamagedFile(f"{self.path}: {self.problem}")
        return self.chunks

    def _compared(self) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_], Array, Array]]:
        """The indices of chunks that both versions have, a mask of the elements that differ, and the elements."""
        common = np.asarray(self._common_shape, np.int64)
        if not common.all():
            return
        chunks = self._known_chunks()
        origins = chunks * self.chunk_shape
        for indices, before, after in self._batches(chunks[(origins < common).all(axis=1)]):
            differ = unequal(before, after)
            if differ.ndim > 1 + len(common):  # elements that are arrays
                differ = np.asarray(differ.any(axis=tuple(range(1 + len(common), differ.ndim))))
            for axis, chunk in enumerate(self.chunk_shape):
                rest = common[axis] - indices[:, axis] * chunk
                for row in np.flatnonzero(rest < chunk):
                    outside: tuple[Any, ...] = (row, *[slice(None)] * axis, slice(int(rest[row]), None))
                    differ[outside] = False
            yield indices, differ, before, after

    def _batches(self, chunks: npt.NDArray[np.int64]) -> Iterator[tuple[npt.NDArray[np.int64], Any, Any]]:
        """Chunks of both versions, a few at a time; the fill value stands where a version has none."""
        described = self.after or self.before
        assert described is not None
        width = 64 if described.dtype is None or described.dtype.hasobject else described.dtype.itemsize
        step = max(1, BATCH_NBYTES // max(1, width * math.prod(self.chunk_shape)))
        for start in range(0, len(chunks), step):
            indices = chunks[start : start + step]
            before, after = (None if side is None else side.chunks(indices) for side in self._sides)
            yield indices, before, after

    def _valid(self, one: ChunkMap | None, index: list[int]) -> tuple[slice, ...] | None:
        """The part of a chunk that is inside the array of a version."""
        if one is None:
            return None
        left = [
            length - position * chunk
            for length, position, chunk in zip(one.shape, index, self.chunk_shape, strict=True)
        ]
        if min(left) <= 0:
            return None
        return tuple(slice(0, min(rest, chunk)) for rest, chunk in zip(left, self.chunk_shape, strict=True))

    def __repr__(self) -> str:
        counted = "mappings damaged" if self.chunk_count is None else f"{self.chunk_count} chunks differ"
        return f"<hyperslab.ArrayDiff {self.path!r}: {self.status}, {counted}>"


class _Bounds:
    """The least and the largest of numbers that arrive in parts."""

    def __init__(self) -> None:
        self.found: tuple[Any, Any] | None = None

    def add(self, elements: Array, chosen: npt.NDArray[np.bool_]) -> None:
        if elements.dtype.kind not in "biuf" or elements.shape != chosen.shape or not chosen.any():
            return
        picked = elements[chosen]
        least, largest = np.fmin.reduce(picked), np.fmax.reduce(picked)
        if self.found is not None:
            least, largest = np.fmin(least, self.found[0]), np.fmax(largest, self.found[1])
        self.found = (least, largest)


@dataclass(frozen=True)
class VersionDiff:
    """The differences between two versions: arrays by path, groups of only one version, attributes of groups in both.

    The path of the version itself is "".
    """

    before: str
    after: str
    arrays: dict[str, ArrayDiff]
    added_groups: list[str] = field(default_factory=list)
    removed_groups: list[str] = field(default_factory=list)
    attributes: dict[str, dict[str, Change]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs, as far as the file can be read."""
        return not (self.arrays or self.added_groups or self.removed_groups or self.attributes or self.problems)

    def __getitem__(self, path: str) -> ArrayDiff:
        return self.arrays[path]

    def _repr_html_(self) -> str:
        cells = (
            (
                one.path,
                one.status,
                " → ".join(dict.fromkeys(" × ".join(map(str, each)) for each in one.shape if each is not None)),
                UNKNOWN if one.chunk_count is None else f"{one.chunk_count:,}",
                ", ".join(one.attributes),
            )
            for one in self.arrays.values()
        )
        notes = [f"new group: {name}" for name in self.added_groups]
        notes += [f"group that is gone: {name}" for name in self.removed_groups]
        notes += [
            f"attributes of {path or 'the version'}: {', '.join(names)}" for path, names in self.attributes.items()
        ]
        notes += [f"{path}: {problem}" for path, problem in self.problems.items()]
        titles = ("array", "what", "shape", "chunks that differ", "attributes that differ")
        name = f"{self.before} → {self.after}" + (": they are the same" if self.is_empty else "")
        return display_html.rows("hyperslab.VersionDiff", name, titles, cells, notes)


def diff(path: str, before: str, after: str) -> VersionDiff:
    """Compare two versions of a file, given their names.

    Raises
    ------
    DamagedFile
        A version is damaged.
    """
    maps = ChunkMaps(path)
    old, new = maps.each([before]), maps.each([after])
    versions = next(old), next(new)
    stacks = Stacks(path, versions)
    return compared(*versions, lambda one: Side(one, stacks))


def compared(old: VersionMap, new: VersionMap, side_of: Callable[[ChunkMap], Side]) -> VersionDiff:
    """Compare the maps of two versions; `side_of` says where the elements of an array are read from."""
    arrays = {}
    for name in sorted(old.arrays.keys() | new.arrays.keys()):
        one, other = old.arrays.get(name), new.arrays.get(name)
        if one is other:  # one object in the file, or unchanged
            continue
        difference = ArrayDiff(name, *(None if array is None else side_of(array) for array in (one, other)))
        if difference.is_changed:
            arrays[name] = difference
    attributes = {"": changed_values(old.attributes, new.attributes)}
    for name in sorted(old.groups.keys() & new.groups.keys()):
        attributes[name] = changed_values(old.groups[name], new.groups[name])
    return VersionDiff(
        old.name,
        new.name,
        arrays,
        sorted(new.groups.keys() - old.groups.keys()),
        sorted(old.groups.keys() - new.groups.keys()),
        {name: difference for name, difference in attributes.items() if difference},
        {**old.problems, **new.problems},
    )


def changed_chunks(before: ChunkMap | None, after: ChunkMap | None) -> npt.NDArray[np.int64]:
    """The indices of the chunks that differ, or that only one version has. The mappings must be undamaged."""
    maps = [one for one in (before, after) if one is not None]
    whole = tuple(map(max, *(one.grid_shape for one in maps))) if len(maps) > 1 else maps[0].grid_shape
    check_chunk_count(maps[0].path, whole, (1,) * len(whole), Unsupported)
    tables = []
    for one in (before, after):
        table = np.full(whole, OUTSIDE, np.int64)
        if one is not None and one.slots is not None:
            table[tuple(map(slice, one.grid_shape))] = one.slots.reshape(one.grid_shape)
        tables.append(table)
    return np.argwhere(tables[0] != tables[1])


def changed_values(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Change]:
    """The attributes that differ."""
    changes = {name: Change(before.get(name), after.get(name)) for name in [*before, *after]}
    return {name: change for name, change in changes.items() if not same_value(*change)}


class Stacks(dict[str, ChunkStack]):
    """The stacks of some versions' arrays, opened when you ask for them."""

    def __init__(self, path: str, versions: tuple[VersionMap, ...]) -> None:
        self._path = path
        self._versions = versions

    def __missing__(self, array: str) -> ChunkStack:
        raw, table = (f"{DATA}/{array}/{name}" for name in ("raw_data", "hash_table"))
        held = {f"{VERSIONS}/{one.name}/{array}": one.arrays[array] for one in self._versions if array in one.arrays}
        root = parsed(self._path, 0, (raw, table, *held))
        for name, one in held.items():
            stacked = root.get(name)
            now = chunk_map(array, stacked) if isinstance(stacked, ArchiveArray) else None
            if now is None or now.shape != one.shape or len(changed_chunks(now, one)):
                raise FileChanged(f"{self._path}: versions were deleted or rewritten meanwhile: compare them again")
        self[array] = ChunkStack.of(root, array)
        return self[array]


@dataclass(frozen=True)
class Side:
    """An array of one version, and where its elements are read from."""

    map: ChunkMap
    stacks: Stacks

    def chunks(self, indices: npt.NDArray[np.int64]) -> Array:
        """Chunks by their indices; the fill value stands where the array has none.

        Raises
        ------
        DamagedFile
            The chunks cannot be read.
        """
        stack = self.stacks[self.map.path]
        if self.map.slots is None or stack.chunk_shape != self.map.chunk_shape:
            raise DamagedFile(f"{stack.raw.filename}: {self.map.path!r} gives a wrong shape for its chunks")
        return stack.load(self.slots(self.numbers(indices)))

    def slots(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The slots of chunks, by their linear indices; -1 if a chunk is not stored or does not exist."""
        assert self.map.slots is not None
        slots = np.full(len(numbers), MISSING, np.int64)
        slots[numbers != MISSING] = self.map.slots[numbers[numbers != MISSING]]
        return slots

    def numbers(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The linear indices of chunks; -1 if the array does not have the chunk."""
        numbers = np.full(len(indices), MISSING, np.int64)
        inside = (indices < self.map.grid_shape).all(axis=1)
        numbers[inside] = np.ravel_multi_index(tuple(indices[inside].T), self.map.grid_shape)
        return numbers

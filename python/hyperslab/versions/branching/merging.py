"""Three-way merges. Which chunks each side changed follows from the mappings: chunks that only one side changed are
neither read nor written. Chunks that both changed are merged element by element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from hyperslab.errors import DamagedFile, MergeConflict, UsageError
from hyperslab.journal.signals import raise_pending_signals
from hyperslab.versions.branching.chunk_states import Sides, inside
from hyperslab.versions.inspect.chunk_maps import ChunkMap, VersionMap
from hyperslab.versions.inspect.regions import Boxes, joined, unequal, within
from hyperslab.versions.layout.elements import same_value
from hyperslab.versions.layout.names import ARRAY_BOOKKEEPING, Array
from hyperslab.versions.stage.attributes import StagedAttributes
from hyperslab.versions.stage.staged_array import StagedArray
from hyperslab.versions.stage.staged_group import StagedGroup

Resolve: TypeAlias = 'Literal["raise", "ours", "theirs"] | Callable[[Array, Array, Array], Any]'
Kind = Literal["elements", "shape", "attribute", "object"]
BATCH_NBYTES = 32 << 20  # bytes of chunks to compare at a time, for each of the three versions
MOST_NAMED = 5


@dataclass(frozen=True)
class Conflict:
    """Something that both sides changed in different ways.

    `boxes` (int64, box × axis × start and stop) cover the `count` elements of an array, as in `ChangedElements`. `name`
    is that of an attribute.
    """

    path: str
    kind: Kind
    name: str | None = None
    count: int = 0
    boxes: Boxes | None = None

    def __str__(self) -> str:
        if self.kind == "elements":
            boxes = [] if self.boxes is None else self.boxes[:MOST_NAMED].tolist()
            where = "; ".join(", ".join(f"{start}:{stop}" for start, stop in box) for box in boxes)
            return f"{self.path}: {self.count} elements [{where}]"
        if self.kind == "attribute":
            return f"attribute {self.name!r} of {self.path}"
        return f"{self.path}: its shape" if self.kind == "shape" else f"{self.path}: whether it exists, and as what"


class Three(NamedTuple):
    """A version, group, array or value before both sides changed it, in ours, and in theirs; None if there is none."""

    base: Any
    ours: Any
    theirs: Any


@dataclass
class Merging:
    """Merges theirs into a staged version that begins as ours.

    Parameters
    ----------
    staged
        The version that is being made.
    maps
        What the three versions hold.
    theirs
        The group of their version.
    resolve
        Which side counts where both changed the same; or a function of the three arrays of such elements.
    in_hdf5
        Attributes with the types that they have in the file, without some names.
    """

    staged: StagedGroup
    maps: Three
    theirs: Mapping[str, Any]
    resolve: Resolve
    in_hdf5: Callable[..., Mapping[str, Any]]
    conflicts: list[Conflict] = field(default_factory=list)

    def merge(self) -> None:
        """Merge everything.

        Raises
        ------
        MergeConflict
            Both sides changed the same in different ways, and `resolve` does not say which counts.
        """
        held = [*(one for one in self.maps if one is not None)]
        for one in held:
            for path, problem in one.problems.items():
                raise DamagedFile(f"{path!r} of version {one.name!r} cannot be merged: {problem}")
        paths = sorted({path for one in held for path in (*one.groups, *one.arrays)})
        objects = {path: Three(*(_object(one, path) for one in self.maps)) for path in paths}
        taken = {path: self._taken(path, three) for path, three in objects.items()}
        for path in reversed(paths):
            if taken[path] == "theirs" and _kind(objects[path].theirs) != _kind(objects[path].ours):
                self._remove(path)
        for path in paths:
            raise_pending_signals()
            self._put(path, objects[path], taken[path])
        open_ = [one for one in self.conflicts if self.resolve == "raise" or _needs_a_side(one, self.resolve)]
        if open_:
            self._refuse(open_)

    def _refuse(self, conflicts: list[Conflict]) -> None:
        named = "; ".join(map(str, conflicts[:MOST_NAMED]))
        more = f"; and {len(conflicts) - MOST_NAMED} more" if len(conflicts) > MOST_NAMED else ""
        how = "nothing was merged: say which side counts with conflict='ours' or 'theirs'"
        error = MergeConflict(f"both sides changed {named}{more}: {how}")
        error.conflicts = tuple(conflicts)
        raise error

    def _taken(self, path: str, three: Three) -> str:
        """Whose object counts as a whole: "ours" (which is staged already), "theirs", or "both"."""
        if _same(three.ours, three.theirs) or _same(three.base, three.theirs):
            return "ours"
        if _same(three.base, three.ours):
            return "theirs"
        kinds = {_kind(one) for one in three[1:]}
        if len(kinds) == 1:
            return "both"
        self.conflicts.append(Conflict(path, "object"))
        return "theirs" if self.resolve == "theirs" else "ours"

    def _remove(self, path: str) -> None:
        if path in self.staged:
            found = self.staged[path]
            if isinstance(found, StagedArray) or not len(found):
                del self.staged[path]

    def _put(self, path: str, three: Three, taken: str) -> None:
        """Put what theirs changed into the staged version."""
        if taken == "ours" or three.theirs is None:
            return
        if not isinstance(three.theirs, ChunkMap):
            if path in self.staged and isinstance(self.staged[path], StagedArray):
                return  # both sides made something else of it, which is a conflict
            group = self.staged.require_group(path)
            ours = three.ours if isinstance(three.ours, Mapping) else None
            self._attributes(path, Three(three.base, ours, three.theirs), group.attrs, self.theirs[path].attrs)
            return
        self._array(path, three)

    def _array(self, path: str, three: Three) -> None:
        problems = {one.problem for one in three if isinstance(one, ChunkMap) and one.problem}
        if problems:
            raise DamagedFile(f"{path!r} cannot be merged: {problems.pop()}: hyperslab.versions.repair may help")
        stored = self.theirs[path]
        if not isinstance(three.ours, ChunkMap):
            array = self.staged.add_stored(path, stored)
            array.attrs.update(self.in_hdf5(stored.attrs, ARRAY_BOOKKEEPING))
            return
        array = self.staged[path]  # type: ignore[assignment]
        base = three.base if isinstance(three.base, ChunkMap) else None
        three = Three(base, three.ours, three.theirs)
        names = Three(*(None if one is None else one.attributes for one in three))
        self._attributes(path, names, array.attrs, stored.attrs)
        if array.whole is not None:
            raise UsageError(f"{path!r} is not made of whole chunks: write its elements again before you merge it")
        self._elements(path, array, Sides(three.base, three.ours, three.theirs))

    def _attributes(self, path: str, three: Three, staged: StagedAttributes, stored: Mapping[str, Any]) -> None:
        base, ours, theirs = ({} if one is None else one for one in three)
        typed = None
        for name in sorted({*base, *theirs}):
            old, own, other = base.get(name), ours.get(name), theirs.get(name)
            if same_value(own, other) or same_value(old, other):
                continue
            if not same_value(old, own):
                self.conflicts.append(Conflict(path, "attribute", name))
                if self.resolve != "theirs":
                    continue
            typed = typed or self.in_hdf5(stored, ARRAY_BOOKKEEPING)
            if name in typed:
                staged[name] = typed[name]
            else:
                staged.pop(name, None)

    def _elements(self, path: str, array: StagedArray, sides: Sides) -> None:
        shape, is_clear = sides.merged_shape(self.resolve == "theirs")
        if not is_clear or self._loses(array, sides, shape):
            self.conflicts.append(Conflict(path, "shape"))
            shape = sides.theirs.shape if self.resolve == "theirs" else sides.ours.shape
        if shape != array.shape:
            array.resize(shape)
        plan = sides.plan(shape)
        array.adopt(plan.adopted, plan.slots)
        count, boxes = 0, [np.empty((0, array.ndim, 2), np.int64)]
        step = max(1, BATCH_NBYTES // max(1, math.prod(array.chunks) * array.dtype.itemsize))
        for first in range(0, len(plan.both), step):
            raise_pending_signals()
            numbers = plan.both[first : first + step]
            clash = self._mixed(array, sides, shape, numbers)
            count += int(np.count_nonzero(clash))
            indices = np.stack(np.unravel_index(numbers, array.staged.grid_shape), axis=1)
            boxes.append(within(clash, indices * np.array(array.chunks)))
        if count:
            self.conflicts.append(Conflict(path, "elements", None, count, joined(np.concatenate(boxes))))

    def _loses(self, array: StagedArray, sides: Sides, shape: tuple[int, ...]) -> bool:
        """Whether a side changed elements that the other one cut off."""
        for side in (sides.ours, sides.theirs):
            for index in sides.changed_beyond(side, shape):
                chunks, there = zip(*(self._chunk(array, one, index[None]) for one in (sides.base, side)), strict=True)
                outside = ~inside(shape, index[None], array.chunks)
                differ = (there[0] != there[1]) | (unequal(*chunks) & there[0])
                if (differ & outside & there[1]).any():
                    return True
        return False

    def _chunk(
        self, array: StagedArray, side: ChunkMap | None, indices: npt.NDArray[np.int64]
    ) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Chunks of a side, and which of their elements exist."""
        if side is None:
            return array.staged.of_slots(np.full(len(indices), -1)), np.zeros((len(indices), *array.chunks), bool)
        within_grid = (indices < side.grid_shape).all(axis=1)
        slots = np.full(len(indices), -1, np.int64)
        assert side.slots is not None
        slots[within_grid] = side.slots.reshape(side.grid_shape)[tuple(indices[within_grid].T)]
        return array.staged.of_slots(slots), inside(side.shape, indices, array.chunks)

    def _mixed(
        self, array: StagedArray, sides: Sides, shape: tuple[int, ...], numbers: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Merge the elements of chunks that both sides changed. Returns where they clash."""
        indices = np.stack(np.unravel_index(numbers, array.staged.grid_shape), axis=1)
        (old, is_old), (own, is_own), (other, is_other) = (self._chunk(array, one, indices) for one in sides)
        own_new = (is_old != is_own) | (unequal(old, own) & is_old)
        other_new = (is_old != is_other) | (unequal(old, other) & is_old)
        valid = inside(shape, indices, array.chunks)
        clash = own_new & other_new & is_own & is_other & unequal(own, other) & valid
        take = valid & is_other & ((other_new & ~own_new) | ~is_own | (clash & (self.resolve == "theirs")))
        result = own.copy()
        result[~is_own] = array.fillvalue
        result[take] = other[take]
        if callable(self.resolve) and clash.any():
            result[clash] = _resolved(self.resolve, old[clash], own[clash], other[clash])
        result[~valid] = array.fillvalue
        array.staged.stage(numbers, np.ones(len(numbers), bool))
        array.staged.slab[array.staged.rows.reshape(-1)[numbers]] = result
        return np.asarray(clash)


def _resolved(resolve: Callable[[Array, Array, Array], Any], *three: Array) -> Array:
    found = np.asarray(resolve(*(one.copy() for one in three)), three[1].dtype)
    if found.shape != three[1].shape:
        raise UsageError(f"the function for conflicts returned the shape {found.shape} instead of {three[1].shape}")
    return found


def _needs_a_side(conflict: Conflict, resolve: Resolve) -> bool:
    return callable(resolve) and conflict.kind != "elements"


def _object(version: VersionMap | None, path: str) -> Any:
    """A group's attributes, an array's map, or None."""
    if version is None:
        return None
    return version.arrays[path] if path in version.arrays else version.groups.get(path)


def _kind(found: Any) -> str:
    return "nothing" if found is None else "array" if isinstance(found, ChunkMap) else "group"


def _same(one: Any, other: Any) -> bool:
    """Whether two objects are equal, by their metadata and mappings alone."""
    if one is other or _kind(one) != _kind(other):
        return one is other
    if isinstance(one, ChunkMap):
        if one.problem is not None or other.problem is not None:
            return False
        if one.shape != other.shape or not np.array_equal(one.slots, other.slots):  # type: ignore[arg-type]
            return False
        one, other = one.attributes, other.attributes
    return one.keys() == other.keys() and all(same_value(one[name], other[name]) for name in one)

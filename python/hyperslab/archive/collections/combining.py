"""Decide for each array how the files of a collection combine: concatenate, share, convert, leave out or refuse."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NoReturn, TypedDict

import numpy as np

from hyperslab._core import ArchiveFile, combine, counterparts
from hyperslab.archive.conventions import cf, times
from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.open_file import OpenFile
from hyperslab.cached import cached_property
from hyperslab.errors import HyperslabError, NotCombinable

Numbers = np.ndarray[Any, Any]

# Attributes that change what the numbers mean, so they must be equal. Others may differ; the first file's are kept.
MEANING = ("units", "calendar", "standard_name", "positive", "cell_methods", "grid_mapping", "formula_terms",
           "flag_values", "flag_masks", "flag_meanings")  # fmt: skip
# Arrays that must be equal are compared in batches of the first size. Arrays above the second are refused.
COMPARED_NBYTES, MOST_COMPARED_NBYTES = 64 << 20, 256 << 20


class Combining(TypedDict, total=False):
    """The keyword arguments of `hyperslab.open` that say how to combine files."""

    concat: str | int | None
    differing: Literal["refuse", "first"]
    missing: Literal["refuse", "drop"]
    order: Literal["check", "sort", "any"]
    leave_out: Iterable[str]


@dataclass(frozen=True)
class Options:
    """How to combine files: the arguments of `hyperslab.open`, with defaults."""

    concat: str | int | None = None
    differing: Literal["refuse", "first"] = "refuse"
    missing: Literal["refuse", "drop"] = "refuse"
    order: Literal["check", "sort", "any"] = "check"
    leave_out: tuple[str, ...] = ()


@dataclass
class ArrayRecipe:
    """How to make one array of a collection from those of its files. The compiled part reads these fields."""

    files: list[int]
    arrays: list[int]
    kinds: list[int]
    axis: int | None
    is_stacked: bool = False
    conversions: dict[int, cf.Conversion] = field(default_factory=dict)
    element: str | None = None
    dropped: list[str] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)
    values: tuple[str, list[int], bytes] | None = None


class Row:
    """The arrays of one path, in the files that have it."""

    arrays: Any
    axes: Any
    files: Any
    kinds: Any
    lengths: Any
    path: Any

    def __init__(self, files: Sequence[OpenFile], columns: tuple[Any, ...]) -> None:
        self.path, self.files, self.arrays, self.kinds, self.axes, self.lengths = columns
        self._open = files

    @cached_property
    def entries(self) -> list[int]:
        """For each kind, the position of its first array."""
        first: dict[int, int] = {}
        for position, kind in enumerate(self.kinds):
            first.setdefault(kind, position)
        return [first[kind] for kind in range(len(first))]

    @cached_property
    def samples(self) -> list[Array]:
        """The first array of each kind."""
        return [Array(self._open[self.files[position]], self.arrays[position], self.path) for position in self.entries]

    @cached_property
    def attributes(self) -> list[dict[str, Any]]:
        """The attributes of each kind."""
        return [cf.attributes(sample) for sample in self.samples]

    @property
    def axis(self) -> int | None:
        """The axis to concatenate along; None for an array that all files share."""
        axis: int | None = self.axes[0]
        return axis

    @property
    def group(self) -> str:
        """The path of the group that holds the array."""
        return self.path.rpartition("/")[0] or "/"

    def recipe(self, positions: Iterable[int] | None = None) -> ArrayRecipe:
        """A recipe of the arrays at these positions, or of all, without any conversion."""
        if positions is None:
            return ArrayRecipe(self.files, self.arrays, self.kinds, self.axis)
        chosen = list(positions)
        files, arrays, kinds = ([own[position] for position in chosen] for own in (self.files, self.arrays, self.kinds))
        return ArrayRecipe(files, arrays, kinds, self.axis)

    def refuse(self, kind: int, what: str, remedy: str = "") -> NoReturn:
        """Refuse to combine this kind of array with the first.

        Raises
        ------
        NotCombinable
            Always.
        """
        one, other = (
            self.samples[0].filename,
            (self.samples[kind].filename if kind else self._open[self.files[-1]].path),
        )
        remedy = remedy or f'leave_out=["{self.path.lstrip("/")}"] opens the files without it'
        raise NotCombinable(f"{self.path} of {one} and {other} cannot be combined: {what}; {remedy}")


class Combination:
    """Files, and the decision for each of their arrays."""

    files: Sequence[OpenFile]
    options: Options

    def __init__(self, files: Sequence[OpenFile], options: Options) -> None:
        self.files, self.options = files, options
        along = options.concat
        matched = counterparts(
            [file.core for file in files],
            along if isinstance(along, str) else None,
            along if isinstance(along, int) else None,
            sorted(cf.BOOKKEEPING),
        )
        self.groups: list[tuple[str, int, int]] = matched[0]
        left_out = {f"/{name.strip('/')}" for name in options.leave_out}
        rows = (Row(files, columns) for columns in matched[1])
        self.rows: dict[Any, Row] = {row.path: row for row in rows if row.path not in left_out}
        if along is not None and all(row.axis is None for row in self.rows.values()):
            raise NotCombinable(f"no array of {files[0].path} has the dimension {along!r} to concatenate along")
        self._joined: dict[str, tuple[str, list[Numbers]]] = {}

    def recipes(self) -> dict[str, ArrayRecipe]:
        """How to make each array, by its path.

        Raises
        ------
        NotCombinable
            Two files cannot be combined; the message names them and the difference.
        """
        made = {path: self.recipe(row) for path, row in self.rows.items()}
        return {path: recipe for path, recipe in made.items() if recipe is not None}

    def recipe(self, row: Row) -> ArrayRecipe | None:
        """How to make one array; None to leave it out."""
        if len(row.files) < len(self.files) and (row.axis is not None or self.options.concat is not None):
            lacking = next(file for number, file in enumerate(self.files) if number not in set(row.files))
            if self.options.missing == "drop":
                return None
            raise NotCombinable(
                f'{row.path} is in {row.samples[0].filename} but not in {lacking.path}; missing="drop" leaves it out'
            )
        self._check_shapes(row)
        return self._shared(row) if row.axis is None else self._concatenated(row)

    def _check_shapes(self, row: Row) -> None:
        first = row.samples[0]
        for kind, sample in enumerate(row.samples):
            if row.axes[row.entries[kind]] != row.axis or sample.dims != first.dims or sample.ndim != first.ndim:
                row.refuse(kind, f"the dimensions are {_dims(first)} and {_dims(sample)}")
            pairs = zip(sample.shape, first.shape, strict=True)
            if any(one != other for axis, (one, other) in enumerate(pairs) if axis != row.axis):
                row.refuse(kind, f"the shapes are {first.shape} and {sample.shape}")

    def _shared(self, row: Row) -> ArrayRecipe:
        recipe = row.recipe([0])
        if self.options.differing == "first" or len(row.files) == 1:
            return recipe
        remedy = 'differing="first" takes the first file\'s'
        for kind in range(len(row.samples)):
            self._check_meaning(row, kind, remedy)
        if row.samples[0].is_variable and row.samples[0].size:
            self._compare(row, remedy)
        return recipe

    def _check_meaning(self, row: Row, kind: int, remedy: str = "", ignored: Iterable[str] = ()) -> None:
        one, other = row.attributes[0], row.attributes[kind]
        for name in (name for name in MEANING if name not in ignored):
            a, b = one.get(name), other.get(name)
            if type(a) is not type(b) or not np.array_equal(np.asarray(a), np.asarray(b)):
                row.refuse(kind, f"the attribute {name} is {_said(a)} in the one and {_said(b)} in the other", remedy)

    def _compare(self, row: Row, remedy: str) -> None:
        """Refuse arrays whose elements are not equal in all files."""
        first, count = row.samples[0], len(row.files)
        if first.nbytes > MOST_COMPARED_NBYTES:
            row.refuse(len(row.samples) - 1, f"{first.nbytes} bytes are too many to compare", remedy)
        converted = self._converted(row, remedy)
        step = max(1, COMPARED_NBYTES // max(1, first.nbytes))
        expected = self._elements(row, [0], converted)[0]
        for start in range(1, count, step):
            chosen = list(range(start, min(count, start + step)))
            for position, elements in zip(chosen, self._elements(row, chosen, converted), strict=True):
                if not _are_equal(expected, elements):
                    one, other = first.filename, self.files[row.files[position]].path
                    raise NotCombinable(f"{row.path} is not the same in {one} and {other}; {remedy}")

    def _elements(self, row: Row, chosen: Sequence[int], converted: ArrayRecipe) -> Sequence[Any]:
        """Read the whole arrays of some of the files."""
        if row.samples[0].dtype.hasobject:
            return [Array(self.files[row.files[position]], row.arrays[position], row.path)[...] for position in chosen]
        conversions, element = converted.conversions, converted.element
        recipe = replace(row.recipe(chosen), axis=0, is_stacked=True, conversions=conversions, element=element)
        return list(self.read(recipe, row.path))

    def read(self, recipe: ArrayRecipe, path: str) -> Numbers:
        """Read all elements of the array that a recipe makes."""
        core = self.combined([(path, recipe)], [(0, 0, [])], "", 0)
        stored = core.array(0, path)
        shape = stored.shape or ()
        out = np.empty(shape, stored.dtype)
        stored.read_into([(0, 1, length, 1) for length in shape], out.reshape(-1).view(np.uint8), None, is_reused=False)
        return out

    def combined(
        self, recipes: list[tuple[str, ArrayRecipe]], groups: list[Any], version: str, chunk_cache_nbytes: int
    ) -> ArchiveFile:
        """Make the archive of these groups and arrays."""
        cores = [file.core for file in self.files]
        return combine(self.name, version, cores, groups, recipes, chunk_cache_nbytes)

    @property
    def name(self) -> str:
        """The name of the collection, for messages."""
        first, last = self.files[0].path, self.files[-1].path
        return first if len(self.files) == 1 else f"{first} … {last} ({len(self.files)} files)"

    def _concatenated(self, row: Row) -> ArrayRecipe:
        clocks = self._clocks(row)
        if clocks is not None:
            return self._timed(row, clocks)
        for kind in range(len(row.samples)):
            self._check_meaning(row, kind)
        if row.samples[0].dtype.hasobject and len(row.files) > 1:
            row.refuse(len(row.samples) - 1, "elements of variable length cannot be concatenated")
        return self._converted(row)

    def _converted(self, row: Row, remedy: str = "") -> ArrayRecipe:
        """Give all files one dtype. Numbers stay packed if all files pack them alike; otherwise they are unpacked."""
        recipe, attrs = row.recipe(), row.attributes
        native = [sample.dtype.newbyteorder("=") for sample in row.samples]
        alike = all(cf.packed_alike(attrs[0], other) for other in attrs[1:])
        if alike and all(dtype == native[0] for dtype in native[1:]):
            _check_names(row, remedy)
            recipe.element = _element(row.samples[0].dtype) if len(row.samples) > 1 else None
            return recipe
        for kind, dtype in enumerate(native):
            if dtype.kind not in "iuf":
                row.refuse(kind, f"the dtypes are {row.samples[0].dtype} and {row.samples[kind].dtype}", remedy)
        if alike and not cf.is_packed(attrs[0]):
            recipe.element = np.result_type(*native).str
            return recipe
        decoded = []
        for kind, sample in enumerate(row.samples):
            try:
                dtype, recipe.conversions[kind] = cf.decoding(sample.dtype, attrs[kind])
            except HyperslabError as error:
                row.refuse(kind, f"they are packed differently ({error})", remedy)
            decoded.append(dtype)
        recipe.element = np.result_type(*decoded).str
        recipe.dropped = [*cf.PACKING, *cf.OF_PACKED]
        return recipe

    def _clocks(self, row: Row) -> list[tuple[str, str]] | None:
        """The units and calendar of each file's times, if they differ and must be converted."""
        parent = self._time_of.get(row.path)
        own = [attrs.get("units") for attrs in row.attributes]
        if parent is not None and not any(own):
            of_file = dict(zip(parent.files, self._told(parent), strict=True))
            told = [of_file[file] for file in row.files if file in of_file]
        elif all(isinstance(unit, str) and " since " in unit for unit in own):
            told = self._told(row)
        else:
            return None
        is_packed_alike = all(cf.packed_alike(row.attributes[0], other) for other in row.attributes)
        return None if len(set(told)) == 1 and is_packed_alike else told

    def _told(self, row: Row) -> list[tuple[str, str]]:
        each = [(str(attrs.get("units")), str(attrs.get("calendar", "standard"))) for attrs in row.attributes]
        return [each[kind] for kind in row.kinds]

    @cached_property
    def _time_of(self) -> dict[str, Row]:
        """For the path of each bounds array, the times that it belongs to; bounds have no units of their own."""
        by_bounds = {}
        for row in self.rows.values():
            for name in ("bounds", "climatology"):
                bounds = row.attributes[0].get(name) if row.axis is not None else None
                if isinstance(bounds, str):
                    by_bounds[f"{row.group.rstrip('/')}/{bounds}"] = row
        return by_bounds

    def _timed(self, row: Row, told: list[tuple[str, str]]) -> ArrayRecipe:
        """Read the times now, since they are few, and convert them to the reference time of the first file."""
        parent = self._time_of.get(row.path, row)
        if parent.path not in self._joined:
            self._join(parent, told)
        if row.path not in self._joined:
            row.refuse(len(row.samples) - 1, "the units of the bounds differ from those of their times")
        for kind in range(len(row.samples)):
            self._check_meaning(row, kind, ignored=("units", "calendar"))
        unit, numbers = self._joined[row.path]
        whole = np.concatenate(numbers, axis=row.axis or 0)
        recipe = row.recipe()
        recipe.values = (whole.dtype.str, list(whole.shape), whole.tobytes())
        recipe.dropped = [*cf.PACKING, *cf.OF_PACKED]
        if "units" in row.attributes[0]:
            recipe.dropped.append("units")
            recipe.texts = [("units", unit)]
        return recipe

    def _join(self, parent: Row, told: list[tuple[str, str]]) -> None:
        """Convert times and their bounds to one unit."""
        bounds = [self.rows[path] for path, row in self._time_of.items() if row is parent and path in self.rows]
        together = [parent, *(row for row in bounds if row.files == parent.files and row.axis is not None)]
        arrays = []
        try:
            clocks = [times.Clock.of(*one) for one in told]
            arrays = [self._raw(row) for row in together]
            unit, numbers = times.joined(clocks, arrays)
        except times.NoCommonTime as error:
            position = next((position for position, one in enumerate(told) if one != told[0]), len(told) - 1)
            one, other = told[0], told[position]
            what = f"units {one[0]!r} and {other[0]!r}, calendars {one[1]!r} and {other[1]!r}: {error}"
            parent.refuse(parent.kinds[position], what)
        for row, own in zip(together, numbers, strict=True):
            self._joined[row.path] = (unit, own)

    def _raw(self, row: Row) -> list[Numbers]:
        """Read the stored numbers of each file."""
        parts: dict[int, Numbers] = {}
        for kind, sample in enumerate(row.samples):
            chosen = [position for position, own in enumerate(row.kinds) if own == kind]
            whole = self.read(row.recipe(chosen), row.path)
            attrs = row.attributes[kind]
            masked = [np.asarray(attrs[name]) for name in cf.MASKS if name in attrs]
            if any(np.isin(whole, values).any() for values in masked):
                raise times.NoCommonTime(f"some times of {sample.filename} are masked")
            if "scale_factor" in attrs or "add_offset" in attrs or "_Unsigned" in attrs:
                raise times.NoCommonTime(f"times of {sample.filename} are packed")
            ends = np.cumsum([row.lengths[position] for position in chosen])
            parts.update(zip(chosen, np.split(whole, ends[:-1], axis=row.axis or 0), strict=True))
        return [parts[position] for position in range(len(row.files))]


def _check_names(row: Row, remedy: str) -> None:
    """Refuse arrays whose equal numbers stand for different names."""
    first = row.samples[0].dtype.metadata
    for kind, sample in enumerate(row.samples):
        if sample.dtype.metadata != first:
            row.refuse(kind, "the names of their values differ", remedy)


def _element(dtype: np.dtype[Any]) -> str | None:
    """The dtype of numbers as the compiled part expects it; None if it cannot be converted."""
    return dtype.str if dtype.kind in "iuf" and dtype.itemsize <= 8 and dtype.metadata is None else None


def _are_equal(one: Any, other: Any) -> bool:
    a, b = np.asarray(one), np.asarray(other)
    return a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))


def _dims(array: Array) -> str:
    return str(array.dims if array.dims is not None else f"{array.ndim} without names")


def _said(value: Any) -> str:
    return "absent" if value is None else repr(value.tolist() if isinstance(value, np.ndarray | np.generic) else value)

"""Open several files as one archive: `hyperslab.open(["2019.nc", "2020.nc"], concat="time")`.

Every array is a list of segments, each with the chunks, codecs, dtype and packing of its file. No data are copied, and
opening reads only coordinates and small arrays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from hyperslab.archive.collections.combining import ArrayRecipe, Combination, Combining, Options
from hyperslab.archive.collections.source_files import Located, are_many, located
from hyperslab.archive.collections.source_files import opened as opened_files
from hyperslab.archive.far.allowed import Locations
from hyperslab.archive.far.remote import Remote
from hyperslab.archive.tree.group import Group, root_of
from hyperslab.archive.tree.open_file import OpenFile
from hyperslab.errors import NotAllowed, NotCombinable, UsageError
from hyperslab.meant import meant

CHOICES = {"differing": ("refuse", "first"), "missing": ("refuse", "drop"), "order": ("check", "sort", "any")}
MOST_REOPENED = 8


def opened(
    paths: Any,
    storage_options: Mapping[str, Any],
    chunk_cache_nbytes: int,
    combining: Combining,
    cache_nbytes: int = 0,
    allowed: Locations | None = None,
) -> Group:
    """Open a collection and return its root group; the arguments are those of `hyperslab.open`.

    Raises
    ------
    NotCombinable
        Two files cannot be combined.
    """
    options = _options(combining)
    places = tuple(located(paths, storage_options, cache_nbytes, allowed))
    return root_of(OpenCollection(places, options, chunk_cache_nbytes))


def _options(combining: Combining) -> Options:
    known = Options.__dataclass_fields__
    unknown = [name for name in combining if name not in known]
    if unknown:
        near = meant(unknown[0], known)
        raise TypeError(
            f"open() has no argument {', '.join(unknown)}{near}; to combine files it has {', '.join(known)}"
        )
    for name, choices in CHOICES.items():
        if combining.get(name, choices[0]) not in choices:
            raise UsageError(f"{name}={combining.get(name)!r} is not one of {', '.join(map(repr, choices))}")
    leave_out = combining.get("leave_out", ())
    return Options(
        combining.get("concat"),
        combining.get("differing", "refuse"),
        combining.get("missing", "refuse"),
        combining.get("order", "check"),
        (leave_out,) if isinstance(leave_out, str) else tuple(leave_out),
    )


class OpenCollection(OpenFile):
    """Several open files as one archive, shared by all of its groups and arrays."""

    chunk_cache_nbytes: int
    located: tuple[Located, ...]
    options: Options

    def __init__(self, located: tuple[Located, ...], options: Options, chunk_cache_nbytes: int) -> None:
        self.located, self.options, self.chunk_cache_nbytes = located, options, chunk_cache_nbytes
        self._links, self._others = {}, {}
        files = opened_files(list(located))
        combination = Combination(files, options)
        if options.order == "sort":
            files = [files[number] for number in _sorted(combination)]
            combination = Combination(files, options)
        recipes = combination.recipes()
        _check_dimensions(combination, recipes)
        if options.order == "check":
            _check_order(combination)
        self.path: str = combination.name
        versions = "\n".join(f"{file.path} {file.token('')[2]}" for file in files)
        self._digest = hashlib.blake2b(versions.encode(), digest_size=16).hexdigest()
        self._files = files
        made = [(path, recipe) for path, recipe in recipes.items()]
        self._core = combination.combined(made, _groups(combination, list(recipes)), self._digest, chunk_cache_nbytes)

    @property
    def is_remote(self) -> bool:
        """Whether any of the files is remote."""
        return any(not isinstance(file, Group) and isinstance(file[0], Remote) for file in self.located)

    def owns(self, path: str) -> bool:
        """Whether any of the files owns this path."""
        return any(file.owns(path) for file in self._files)

    def check_allowed(self, path: str) -> None:
        """Check that one of the files may lead to this path or URL; raise `NotAllowed` if none may."""
        for file in self._files:
            with suppress(NotAllowed):
                file.check_allowed(path)
                return
        self._files[0].check_allowed(path)

    @property
    def url(self) -> str | None:
        """None: a collection has no URL of its own."""
        return None

    @property
    def opened_urls(self) -> list[str]:
        """The URLs of its files."""
        return [url for file in self._files for url in file.opened_urls]

    @property
    def opened_paths(self) -> list[str]:
        """The paths or URLs of its files."""
        return [path for file in self._files for path in file.opened_paths]

    def token(self, name: str) -> tuple[Any, ...]:
        """Dask's token of a group or array: the same in every process until one of the files changes."""
        return ("hyperslab", self.options, self._digest, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_collection, (_Recollection(self.located, self.options, self.chunk_cache_nbytes, self._digest),))


class _Recollection:
    """What opens a collection again. A process opens equal ones only once."""

    def __init__(self, located: tuple[Located, ...], options: Options, chunk_cache_nbytes: int, digest: str) -> None:
        self.located, self.options, self.chunk_cache_nbytes, self.digest = located, options, chunk_cache_nbytes, digest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Recollection) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Any, ...]:
        return (self.digest, self.options, self.chunk_cache_nbytes)


@lru_cache(MOST_REOPENED)
def _collection(recollected: _Recollection) -> OpenCollection:
    return OpenCollection(recollected.located, recollected.options, recollected.chunk_cache_nbytes)


def _groups(combination: Combination, paths: Sequence[str]) -> list[tuple[int, int, list[tuple[str, str, int]]]]:
    """For each group, its file, its number in that file, and its links by name, kind and number."""
    numbers = {path: number for number, (path, _, _) in enumerate(combination.groups)}
    links: dict[str, list[tuple[str, str, int]]] = {path: [] for path in numbers}
    named = [(path, "array", number) for number, path in enumerate(paths)]
    named += [(path, "group", number) for path, number in numbers.items() if path != "/"]
    for path, kind, number in named:
        parent, _, name = path.rpartition("/")
        links[parent or "/"].append((name, kind, number))
    return [(file, number, links[path]) for path, file, number in combination.groups]


def _check_dimensions(combination: Combination, recipes: Mapping[str, ArrayRecipe]) -> None:
    """Refuse arrays of a group that give one dimension different lengths."""
    seen: dict[tuple[str, str], tuple[int, str]] = {}
    for path in recipes:
        row = combination.rows[path]
        sample = row.samples[0]
        for axis, name in enumerate(sample.dims or ()):
            length = sum(row.lengths) if axis == row.axis else sample.shape[axis]
            of_files = f"{path} of {sample.filename if row.axis is None else combination.name}"
            known, other = seen.setdefault((row.group, name), (length, of_files))
            if known != length:
                said = f"the dimension {name} has {known} elements in {other}, but {length} in {of_files}"
                raise NotCombinable(f"{said}; leave one of the arrays out: leave_out=[...]")


def _coordinates(combination: Combination) -> dict[str, list[np.ndarray[Any, Any]]]:
    """The coordinates along the concatenated dimension, by path, file by file."""
    by_path = {}
    for row in combination.rows.values():
        is_coordinate = row.path.rpartition("/")[2] == combination.options.concat and row.axis == 0
        if not is_coordinate or row.samples[0].ndim != 1 or not row.samples[0].is_variable:
            continue
        recipe = combination.recipe(row)
        if recipe is None or row.samples[0].dtype.kind not in "iuf":
            continue
        ends = np.cumsum(row.lengths)
        by_path[row.path] = np.split(combination.read(recipe, row.path), ends[:-1])
    return by_path


def _sorted(combination: Combination) -> list[int]:
    """The numbers of the files, by the first coordinate of each."""
    coordinates = _coordinates(combination)
    if not coordinates:
        raise NotCombinable(f'order="sort": no file has coordinates along {combination.options.concat!r} to sort by')
    parts = next(iter(coordinates.values()))
    if len(parts) != len(combination.files) or not all(part.size for part in parts):
        raise NotCombinable('order="sort": some files have no coordinates to sort by; give the files in order')
    return sorted(range(len(parts)), key=lambda number: parts[number][0])


def _check_order(combination: Combination) -> None:
    """Refuse files whose coordinates overlap or are out of order."""
    for path, parts in _coordinates(combination).items():
        files = (combination.files[number].path for number in combination.rows[path].files)
        ends = [(part.min(), part.max(), file) for part, file in zip(parts, files, strict=True) if part.size]
        rising = [one[1] < other[0] for one, other in pairwise(ends)]
        is_up = 2 * sum(rising) >= len(rising)
        for one, other in pairwise(ends):
            if one[1] < other[0] if is_up else one[0] > other[1]:
                continue
            said = f"{path} is {one[0]} to {one[1]} in {one[2]}, then {other[0]} to {other[1]} in {other[2]}"
            remedy = 'order="sort" puts files in order, order="any" concatenates them as given'
            raise NotCombinable(f"{said}: the files overlap or are out of order; {remedy}")


__all__ = ["OpenCollection", "are_many", "opened"]

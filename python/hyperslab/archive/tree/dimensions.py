"""Name every axis of every array of a group, as netCDF libraries do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal

from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.group import Group, groups_by_path, root_of

Names = dict[str, tuple[str, ...]]
Numbering = Literal["sort", "access"]
Dimension = tuple[str, int, bool]  # name, length, and whether the dimension is unlimited


def dimension_names(arrays: Mapping[str, Array]) -> Names:
    """Name the dimensions of the arrays of one group, without regard to other groups.

    An axis without a name gets the name that netCDF-C gives it: `phony_dim_0`, `phony_dim_1`, and so on. There is one
    name for each length, in the order of appearance, and a further one if an array has two axes of the same length.

    Parameters
    ----------
    arrays : Mapping[str, Array]
        The arrays by name.

    Returns
    -------
    dict[str, tuple[str, ...]]
        The name of each axis, by the name of the array.
    """
    phony: list[Dimension] = []
    return {name: array.dims or _matching(array, phony, len(phony), False)[0] for name, array in arrays.items()}


class PhonyDimensions:
    """Names for dimensions without a name, numbered through a whole file, so that its groups fit one tree of xarray.

    `"sort"` numbers as netCDF-C does. The numbers begin after the number of named dimensions, and the groups in a group
    come before its own arrays. An axis takes the name of a dimension of its group that has the same length, and that is
    unlimited if the axis is; otherwise it gets a new name. `"access"` numbers as h5netcdf does by default: each group
    comes before the groups in it.

    Parameters
    ----------
    top : Group
        The group that is opened.
    numbering : {"sort", "access"}
        How to number.
    """

    def __init__(self, top: Group, numbering: Numbering = "sort") -> None:
        self._top = top
        self._numbering = numbering
        self._known: dict[tuple[int, int], Names] = {}

    def names(self, group: Group) -> Names:
        """Return the name of each axis of each array in a group, by the name of the array."""
        arrays = group.arrays
        if all(array.dims is not None for array in arrays.values()):
            return {name: array.dims or () for name, array in arrays.items()}
        if group.key not in self._known:
            self._number(group)
        return self._known[group.key]

    def _number(self, group: Group) -> None:
        """Name all axes in the file of a group."""
        root = root_of(group.opened)
        groups = [each for _, each in groups_by_path(root)]
        if group.key not in {each.key for each in groups}:
            groups = [each for _, each in groups_by_path(group)]  # a version is not in the tree of the file
        if self._numbering == "access":
            self._known.update(_by_access(groups))
        else:
            self._known.update(_as_netcdf(groups))


def _as_netcdf(groups: list[Group]) -> dict[tuple[int, int], Names]:
    """Name dimensions as netCDF-C does when it opens a file (`nc4_rec_match_dimscales` in its `hdf5open.c`)."""
    arrays = {group.key: group.arrays for group in groups}
    named = {key: _named(named_axes) for key, named_axes in arrays.items()}
    number = sum(len(dimensions) for dimensions in named.values())
    names: dict[tuple[int, int], Names] = {}
    for group in _inner_first(groups):
        known, names[group.key] = named[group.key], {}
        for name, array in arrays[group.key].items():
            named_axes = array.dims
            if named_axes is None:
                named_axes, number = _matching(array, known, number, True)
            names[group.key][name] = named_axes
    return names


def _inner_first(groups: list[Group]) -> list[Group]:
    """Sort groups so that each comes after the groups in it. In `groups`, each comes before them."""
    inside: dict[tuple[int, int], list[Group]] = {group.key: [] for group in groups}
    seen = {groups[0].key}
    for group in groups:
        for child in group.groups.values():
            if child.key not in seen and child.key in inside:
                seen.add(child.key)
                inside[group.key].append(child)
    ordered, waiting = [], [groups[0]]
    while waiting:  # this visits each group before those in it, the last of these first; the reverse is what we need
        group = waiting.pop()
        ordered.append(group)
        waiting += inside[group.key]
    return ordered[::-1]


def _named(arrays: Mapping[str, Array]) -> list[Dimension]:
    """Return the dimensions that HDF5's dimension scales in a group define."""
    scales = ((name, array) for name, array in arrays.items() if array.ndim and _is_scale(array))
    return [(name, array.shape[0], array.max_shape[:1] == (None,)) for name, array in scales]


def _is_scale(array: Array) -> bool:
    return dict(array.attrs.readable()).get("CLASS") in ("DIMENSION_SCALE", b"DIMENSION_SCALE")


def _matching(array: Array, known: list[Dimension], number: int, is_strict: bool) -> tuple[tuple[str, ...], int]:
    """Name the axes of an array by dimensions of equal length, and add new dimensions to `known`.

    Returns
    -------
    tuple[tuple[str, ...], int]
        The name of each axis, and the number for the next new dimension.
    """
    taken: list[str] = []
    most = array.max_shape
    for axis, length in enumerate(array.shape):
        grows = is_strict and axis < len(most) and most[axis] is None
        free = (name for name, other, may in known if other == length and may == grows and name not in taken)
        name = next(free, None)
        if name is None:
            name, number = f"phony_dim_{number}", number + 1
            known.append((name, length, grows))
        taken.append(name)
    return tuple(taken), number


def _by_access(groups: list[Group]) -> dict[tuple[int, int], Names]:
    """Name dimensions as h5netcdf does, group by group."""
    number, names = 0, {}
    for group in groups:
        arrays = group.arrays
        known = _named(arrays)
        wanted: Counter[int] = Counter()
        for array in arrays.values():
            if array.dims is None:
                wanted |= Counter(array.shape)
        there = Counter(length for _, length, _ in known)
        for length, count in wanted.items():
            for _ in range(there[length], count):
                known.append((f"phony_dim_{number}", length, False))
                number += 1
        free = [(name, length, False) for name, length, _ in known]
        names[group.key] = {
            name: array.dims or _matching(array, free, number, False)[0] for name, array in arrays.items()
        }
    return names

"""Name every axis of every array of a group, as netCDF libraries do."""

from __future__ import annotations

from collections.abc import Mapping

from hyperslab.archive.array import Array


def dimension_names(arrays: Mapping[str, Array]) -> dict[str, tuple[str, ...]]:
    """The names of the dimensions of each array, by the name of the array.

    An axis without a name gets the name that netCDF-C gives it: `phony_dim_0`, `phony_dim_1`, and so on. There is one
    name for each length, in the order of appearance, and another one where an array has two axes of the same length.
    """
    phony: list[int] = []  # the length of each generated name
    return {name: array.dims or _phony(array.shape, phony) for name, array in arrays.items()}


def _phony(shape: tuple[int, ...], phony: list[int]) -> tuple[str, ...]:
    taken: list[int] = []
    for length in shape:
        free = (number for number, known in enumerate(phony) if known == length and number not in taken)
        number = next(free, len(phony))
        if number == len(phony):
            phony.append(length)
        taken.append(number)
    return tuple(f"phony_dim_{number}" for number in taken)

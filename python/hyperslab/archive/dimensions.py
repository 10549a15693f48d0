"""Names for every axis of every array of a group, as netCDF readers give them."""

from __future__ import annotations

from collections.abc import Mapping

from hyperslab.archive.array import Array


def dimension_names(arrays: Mapping[str, Array]) -> dict[str, tuple[str, ...]]:
    """The names of each array's dimensions, by the array's name.

    An axis that the file leaves without a name gets one as netCDF-C would give it: `phony_dim_0`, `phony_dim_1`, ...,
    one name for each length in the order of their appearance, and one more where an array has two axes of a length.
    """
    phony: list[int] = []  # the length that stands behind each made-up name
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

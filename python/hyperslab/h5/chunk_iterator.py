"""Iterate over the chunks of a dataset, or over the parts of the chunks that a selection covers."""

from __future__ import annotations

import itertools
from typing import Any

from hyperslab.chunk_grid import ceil_div


class ChunkIterator:
    """Yields a tuple of slices for each chunk; the index on the last axis changes fastest.

    Parameters
    ----------
    shape : tuple of int
        The shape of the dataset.
    chunks : tuple of int or None
        The shape of a chunk.
    selection : int, slice, tuple of these, or None
        Iterate only over the chunks that the selection touches, and cut them at its bounds.

    Raises
    ------
    TypeError
        The dataset has no chunks.
    ValueError
        The selection has another number of axes, is empty, or reaches beyond the dataset.
    """

    def __init__(self, shape: tuple[int, ...], chunks: tuple[int, ...] | None, selection: Any = None) -> None:
        if not chunks:
            raise TypeError("Chunked dataset required")
        self._chunks = chunks
        self._bounds = _bounds(shape, selection)
        numbers = [
            range(start // chunk, ceil_div(stop, chunk))
            for (start, stop), chunk in zip(self._bounds, chunks, strict=True)
        ]
        self._places = itertools.product(*numbers)

    def __iter__(self) -> ChunkIterator:
        return self

    def __next__(self) -> tuple[slice, ...]:
        place = next(self._places)
        return tuple(
            slice(max(number * chunk, start), min((number + 1) * chunk, stop), 1)
            for number, chunk, (start, stop) in zip(place, self._chunks, self._bounds, strict=True)
        )


def _bounds(shape: tuple[int, ...], selection: Any) -> list[tuple[int, int]]:
    """Return start and stop of the selection on each axis.

    Raises
    ------
    ValueError
        The selection has another number of axes, is empty, or reaches beyond the dataset.
    """
    if selection is None:
        items: list[Any] = [slice(0, length) for length in shape]
    elif isinstance(selection, slice | int):
        items = [selection]
    else:
        items = list(selection)
    if len(items) != len(shape):
        raise ValueError("Invalid selection - selection region must have same rank as dataset")
    bounds = []
    for item, length in zip(items, shape, strict=True):
        if isinstance(item, int):
            start, stop = item, item + 1
        elif isinstance(item, slice):
            start, stop = item.start or 0, item.stop or length
        else:
            raise AssertionError(f"{item}: Selection object must be a slice or integer")
        if start < 0 or stop > length or stop <= start:
            raise ValueError("Invalid selection - selection region must be within dataset space")
        bounds.append((start, stop))
    return bounds

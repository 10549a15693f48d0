"""Count the chunks of a grid, and grow them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

# Decoded bytes of a chunk that suits reading from afar: at least, and at most where we choose it.
ENOUGH_NBYTES, MOST_GROWN_NBYTES = 4 << 20, 16 << 20


def ceil_div(count: int, size: int) -> int:
    """The quotient, rounded up."""
    return -(-count // size)


def chunk_counts(shape: Iterable[int], chunk_shape: Iterable[int]) -> tuple[int, ...]:
    """The number of chunks along each axis."""
    return tuple(ceil_div(length, chunk) for length, chunk in zip(shape, chunk_shape, strict=True))


def chunks_for_cloud(shape: Sequence[int], chunks: Sequence[int], element_nbytes: int) -> tuple[int, ...]:
    """Today's chunks, grown to at least 4 MiB along the slowest axis, then the next; or cut to at most 16 MiB there."""
    grown = [max(1, min(chunk, length)) for chunk, length in zip(chunks, shape, strict=True)]
    for axis, length in enumerate(shape):
        nbytes = prod(grown) * element_nbytes
        if nbytes >= ENOUGH_NBYTES:
            break
        grown[axis] = min(length, grown[axis] * ceil_div(ENOUGH_NBYTES, max(nbytes, 1)))
    for axis in range(len(grown)):
        nbytes = prod(grown) * element_nbytes
        if nbytes > MOST_GROWN_NBYTES:
            grown[axis] = max(1, grown[axis] * MOST_GROWN_NBYTES // nbytes)
    return tuple(grown)

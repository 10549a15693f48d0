"""Count the chunks of a grid."""

from __future__ import annotations

from collections.abc import Iterable


def ceil_div(count: int, size: int) -> int:
    """The quotient, rounded up."""
    return -(-count // size)


def chunk_counts(shape: Iterable[int], chunk_shape: Iterable[int]) -> tuple[int, ...]:
    """The number of chunks along each axis."""
    return tuple(ceil_div(length, chunk) for length, chunk in zip(shape, chunk_shape, strict=True))

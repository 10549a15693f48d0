"""`SlabEncoder`: encodes the chunks of a slab with our threads, whatever file they go to."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from hyperslab._core import encode_chunks
from hyperslab.chunk_grid import ceil_div
from hyperslab.storage.chain import Step

Box: TypeAlias = tuple[slice, ...]
Bytes: TypeAlias = npt.NDArray[np.uint8]
# Gets the number of a chunk in its slab, its bytes, or None if it is left out, and the mask of skipped filters.
Take: TypeAlias = Callable[[int, bytes | None, int], None]


@dataclass(frozen=True)
class SlabEncoder:
    """How the chunks of an array are encoded.

    Attributes
    ----------
    chunk_shape
        The shape of a chunk.
    steps
        How to encode chunks.
    fill
        One element with the fill value.
    threads
        How many threads encode.
    leaves_out_fill
        Whether chunks that hold nothing but the fill value are not stored.
    """

    chunk_shape: tuple[int, ...]
    steps: tuple[Step, ...]
    fill: bytes
    threads: int | None
    leaves_out_fill: bool = False

    def starts(self, box: Box) -> npt.NDArray[np.int64]:
        """Where the chunks of a slab begin, one row for each, in order."""
        grid = self.grid(box)
        if not grid:
            return np.zeros((1, 0), np.int64)
        index = np.stack(np.unravel_index(np.arange(math.prod(grid)), grid), axis=-1)
        rows: npt.NDArray[np.int64] = index * np.array(self.chunk_shape) + [one.start for one in box]
        return rows

    def grid(self, box: Box) -> tuple[int, ...]:
        """How many chunks a slab has along each axis."""
        return tuple(ceil_div(one.stop - one.start, chunk) for one, chunk in zip(box, self.chunk_shape, strict=True))

    def encode(self, box: Box, data: Bytes, take: Take) -> int:
        """Encode the chunks of a slab and hand them over in order. Returns the checksum of the slab."""
        return folded(encode_chunks(
            data, _shapes(box, self.chunk_shape), self.fill, list(self.steps), take, self.threads, self.leaves_out_fill
        ))  # fmt: skip

    def checksum(self, box: Box, data: Bytes) -> int:
        """The checksum of a slab, which does not depend on the codec."""
        return folded(encode_chunks(data, _shapes(box, self.chunk_shape), self.fill, [], None, self.threads))


def crc32c(data: Bytes) -> int:
    """The CRC-32C of bytes."""
    size = [len(data)]
    return int(encode_chunks(data, (size, size), b"\0", [], None, 1)[0]) if len(data) else 0


def folded(checksums: npt.NDArray[np.uint32]) -> int:
    """One number for a slab: the checksum of the checksums of its chunks."""
    return crc32c(np.ascontiguousarray(checksums).view(np.uint8))


def _shapes(box: Box, chunk_shape: tuple[int, ...]) -> tuple[list[int], list[int]]:
    return [one.stop - one.start for one in box] or [1], list(chunk_shape) or [1]

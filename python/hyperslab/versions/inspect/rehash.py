"""Hashes chunks again, and compares the hashes with those in the table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Set
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from hyperslab._core import hash_chunks
from hyperslab.errors import DamagedFile
from hyperslab.versions.inspect.chunk_stack import ChunkStack
from hyperslab.versions.layout.names import Array, chunk_hash
from hyperslab.versions.layout.padding import cleared, has_padding
from hyperslab.versions.layout.slots import Slots

# By slot, the shapes of the parts of a chunk that are inside the arrays of versions.
Shapes: TypeAlias = Mapping[int, Mapping[tuple[int, ...], None]]
BATCH_NBYTES = 16 << 20  # with four times as much, new memory takes a third of the time
POINTED_NBYTES = 256  # assumed memory of an element of variable length


class Rehashed(NamedTuple):
    """The number of chunks hashed so far, and what is wrong with the last ones, by their slots; and those of which
    nothing is proved, because others hashed them with bytes that mean nothing.
    """

    done: int
    problems: dict[int, str]
    unproved: list[int]


def rehashed(
    stack: ChunkStack, slots: Slots, row_of: Slots, shapes: Shapes, guessed: Set[int] = frozenset()
) -> Iterator[Rehashed]:
    """Hash chunks, many at a time.

    Parameters
    ----------
    stack : ChunkStack
        The chunks.
    slots : Slots
        The chunks to hash.
    row_of : Slots
        For each slot, the row of the table that holds its hash.
    shapes : Shapes
        The shapes of chunks of which versions show only a part.
    guessed : Set[int]
        The chunks whose shapes are only possible: it is enough if one fits, and with several axes none may fit.

    Raises
    ------
    Unsupported
        The chunks cannot be decoded here.
    """
    dtype = stack.raw.dtype
    width = POINTED_NBYTES if dtype.hasobject else dtype.itemsize
    step = max(1, BATCH_NBYTES // max(1, width * math.prod(stack.chunk_shape)))
    hashes = stack.rows["hash"]
    for start in range(0, len(slots), step):
        problems, unproved = dict[int, str](), list[int]()
        waiting = [slots[start : start + step]]
        while waiting:
            batch = waiting.pop()
            try:
                chunks = stack.load(batch)
            except DamagedFile as error:
                if len(batch) > 1:  # find out which chunk it is
                    waiting += [batch[len(batch) // 2 :], batch[: len(batch) // 2]]
                else:
                    problems[int(batch[0])] = f"it cannot be decoded: {error}"
                continue
            wrong = _wrong(stack, batch, chunks, hashes[row_of[batch]], shapes, guessed)
            if wrong and has_padding(stack.raw.dtype):
                again = _wrong(stack, batch, cleared(chunks), hashes[row_of[batch]], shapes, guessed)
                unproved += [slot for slot in wrong if slot in again]
            else:
                problems |= wrong
        yield Rehashed(min(start + step, len(slots)), problems, unproved)


def _wrong(
    stack: ChunkStack, slots: Slots, chunks: Array, wanted: Array, shapes: Shapes, guessed: Set[int]
) -> dict[int, str]:
    problems = {}
    is_whole = (_whole_hashes(stack, chunks) == wanted).all(axis=1).tolist()
    for row, slot in enumerate(slots.tolist()):
        parts = shapes.get(slot)
        if parts is None:
            fits = [is_whole[row]]
        else:
            digest = wanted[row].tobytes()
            fits = [chunk_hash(chunks[row][tuple(map(slice, shape))]) == digest for shape in parts]
        if slot in guessed and (any(fits) or len(stack.chunk_shape) > 1):
            continue
        if not any(fits):
            problems[slot] = "its elements do not have the hash in the table"
        elif parts is not None and not all(fits):
            wrong = next(shape for shape, fit in zip(parts, fits, strict=True) if not fit)
            problems[slot] = f"a version shows {wrong} of it, and that part was not hashed"
    return problems


def _whole_hashes(stack: ChunkStack, chunks: Array) -> npt.NDArray[np.uint8]:
    """The hash of each whole chunk (chunk × byte)."""
    if chunks.dtype.hasobject:
        digests = b"".join(map(chunk_hash, chunks))
    else:
        shape = (len(chunks) * stack.chunk_shape[0], *stack.chunk_shape[1:])
        flat = np.ascontiguousarray(chunks).reshape(-1).view(np.uint8)
        numbers = np.arange(len(chunks))
        digests = hash_chunks(flat, (shape, stack.chunk_shape), numbers, stack.raw.dtype.itemsize)
    return np.frombuffer(digests, np.uint8).reshape(len(chunks), 32)

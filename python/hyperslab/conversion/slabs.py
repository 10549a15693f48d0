"""`SlabPlan`: the parts of an array that are read and written one after the other, in bounded memory.

A slab is a box of whole chunks of the target. Slabs that cut chunks of the source decode them several times, so the
plan looks for the slab shape within the memory that decodes least. If even that decodes much, an intermediate file is
cheaper: `Passes` says which.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import TooLargeForMemory

# A slab need not be larger than this many bytes, if that does not let it decode less: it then stays in nearer caches.
SMALL_NBYTES = 16 << 20
# Decoding everything this often takes about as long as one more pass through an intermediate file.
MOST_DECODES = 2.5
MOST_CANDIDATES = 20_000
# Above this many slabs along an axis, the decodes are estimated.
MOST_COUNTED = 4096


@dataclass(frozen=True)
class SlabPlan:
    """Slabs of one shape over an array.

    Attributes
    ----------
    shape
        The array's.
    slab_shape
        A multiple of the target's chunks on each axis, or the whole axis.
    decodes
        How often the chunks of the source are decoded, on average.
    """

    shape: tuple[int, ...]
    slab_shape: tuple[int, ...]
    decodes: float

    @property
    def count(self) -> int:
        """How many slabs there are."""
        return math.prod(ceil_div(length, slab) for length, slab in zip(self.shape, self.slab_shape, strict=True))

    def keeps_order(self, unit: tuple[int, ...]) -> bool:
        """Whether the chunks of a grid come in its order, if the chunks of one slab after another do."""
        parts = [ceil_div(length, slab) for length, slab in zip(self.shape, self.slab_shape, strict=True)]
        last = max((axis for axis, count in enumerate(parts) if count > 1), default=0)
        return all(slab <= chunk for slab, chunk in zip(self.slab_shape[:last], unit[:last], strict=True))

    def boxes(self) -> Iterator[tuple[slice, ...]]:
        """The slabs in C order."""
        axes = [range(0, length, slab) for length, slab in zip(self.shape, self.slab_shape, strict=True)]
        for starts in itertools.product(*axes):
            ends = zip(starts, self.slab_shape, self.shape, strict=True)
            yield tuple(slice(start, min(start + slab, length)) for start, slab, length in ends)


@dataclass(frozen=True)
class Passes:
    """How an array is rechunked: in one pass over slabs of the target, or in two with an intermediate file between.

    Attributes
    ----------
    target
        The slabs that are written.
    source
        The slabs that are read into the intermediate file; None in one pass.
    """

    target: SlabPlan
    source: SlabPlan | None


def passes(
    shape: tuple[int, ...],
    source_chunks: tuple[int, ...] | None,
    target_chunks: tuple[int, ...],
    width: int,
    memory: int,
) -> Passes:
    """Plan the passes over an array.

    Parameters
    ----------
    shape : tuple[int, ...]
        The array's shape.
    source_chunks : tuple[int, ...] | None
        The source's chunk shape; None if any part can be read by itself.
    target_chunks : tuple[int, ...]
        What is written at once: a chunk or a shard.
    width : int
        Bytes of an element.
    memory : int
        The largest number of bytes of a slab.

    Raises
    ------
    TooLargeForMemory
        One chunk of the target, or of the source, is larger.
    """
    one = slab_plan(shape, source_chunks, target_chunks, width, memory)
    if source_chunks is None or one.decodes <= MOST_DECODES:
        return Passes(one, None)
    clipped = tuple(map(min, source_chunks, shape))
    if math.prod(clipped) * width > memory:
        return Passes(one, None)
    return Passes(one, slab_plan(shape, source_chunks, source_chunks, width, memory))


def slab_plan(
    shape: tuple[int, ...],
    source_chunks: tuple[int, ...] | None,
    target_chunks: tuple[int, ...],
    width: int,
    memory: int,
) -> SlabPlan:
    """The slab shape within the memory that decodes least; among equals the smallest that is not too small."""
    chunks = tuple(max(1, min(chunk, length)) for chunk, length in zip(target_chunks, shape, strict=True))
    source = source_chunks or (1,) * len(shape)
    least = math.prod(chunks) * max(width, 1)
    if least > memory:
        said = f"a chunk of the target has {least} bytes in memory, but only {memory} may be used"
        raise TooLargeForMemory(f"{said}: allow more memory, or choose smaller chunks")
    per_axis = [
        [(slab, _decodes(length, slab, theirs)) for slab in _candidates(length, own, theirs)]
        for length, own, theirs in zip(shape, chunks, source, strict=True)
    ]
    while math.prod(map(len, per_axis)) > MOST_CANDIDATES:
        longest = max(per_axis, key=len)
        longest[:] = [longest[0], *longest[2:-1:2], longest[-1]] if len(longest) > 2 else longest[:1]
    best: tuple[tuple[float, float, tuple[int, ...]], tuple[int, ...]] | None = None
    for combined in itertools.product(*per_axis):
        slab = tuple(length for length, _ in combined)
        nbytes = math.prod(slab) * max(width, 1)
        if nbytes > memory:
            continue
        decodes = math.prod(count for _, count in combined)
        # Below the small size larger is better, above it smaller; and long rows are better than tall blocks.
        size = abs(math.log(max(nbytes, 1) / min(SMALL_NBYTES, memory)))
        key = (round(decodes, 3), size, tuple(-length for length in reversed(slab)))
        if best is None or key < best[0]:
            best = (key, slab)
    assert best is not None  # the smallest candidates fit
    return SlabPlan(shape, best[1], best[0][0])


def _candidates(length: int, chunk: int, source: int) -> list[int]:
    """Lengths of a slab on an axis: multiples of the target's chunks, where possible of the source's chunks too."""
    steps = {chunk, max(length, 1)}
    step = chunk
    while step < length:
        steps.add(step)
        step *= 2
    common = math.lcm(chunk, source)
    step = common
    while step < length:
        steps.add(step)
        step *= 2
    return sorted(min(one, max(length, 1)) for one in steps)


def _decodes(length: int, slab: int, source: int) -> float:
    """How often the chunks along an axis are decoded."""
    if length == 0:
        return 1.0
    if length // slab >= MOST_COUNTED:
        return max(1.0, (slab + source - 1) / slab * length / source / ceil_div(length, source))
    starts = range(0, length, slab)
    touches = sum(ceil_div(min(start + slab, length), source) - start // source for start in starts)
    return max(1.0, touches / ceil_div(length, source))

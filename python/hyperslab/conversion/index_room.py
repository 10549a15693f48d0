"""`IndexRoom`: room in front of the chunks of a new HDF5 file, which libhdf5 fills with their indexes.

First everything is created, which puts headers, attributes and links at the front of the file. Then the plan tells how
many chunks each array gets, and so how large its index becomes. Room of that size follows, and after it all elements.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import h5py

from hyperslab.chunk_grid import ceil_div
from hyperslab.conversion.filling import Filler, Filling
from hyperslab.conversion.wishes import Wish, shape_of
from hyperslab.errors import HyperslabError
from hyperslab.libhdf5 import loaded

if TYPE_CHECKING:
    from hyperslab.archive.tree.group import Group

# Half of the most chunks in a node of a chunk index. In wider ones, chunks that come out of order move much.
WIDTHS = (8, 16, 32, 64, 128, 256, 512, 1024)
USUAL_WIDTH = 32  # libhdf5's
MOST_HEAP_NBYTES = (1 << 32) - 1  # libhdf5 keeps the size in 32 bits
# Indexes that are smaller together come with the first bytes that a reader fetches.
SMALL_NBYTES = 256 << 10
ENTRY_NBYTES = 48  # of a chunk with three axes in a B-tree

# The HDF5 File Format Specification 3.0, III.A.1 (B-trees, version 1), and what libhdf5 leaves in a node that it splits
# because it is full: nine tenths if it is the last one, else half.
NODE_HEAD_NBYTES, CHILD_NBYTES = 24, 8
LAST_SPLIT = 0.9
# III.A.2 (B-trees, version 2), VII.C (fixed arrays), VII.D (extensible arrays), with libhdf5's settings.
BTREE2_NODE_NBYTES, BTREE2_SPARE = 2048, 1.1
PAGE_COUNT, SMALL_PARTS_NBYTES = 1024, 1024
FIRST_BLOCK_COUNT, BLOCK_HEAD_NBYTES = 16, 32


@dataclass(frozen=True)
class Indexed:
    """A chunked array of the new file, whose chunks will get an index.

    Attributes
    ----------
    array
        The array, low-level.
    stored_count
        How many chunks will be stored.
    is_in_order
        Whether each chunk that is written stands behind all before it in the grid.
    """

    array: Any
    stored_count: int
    is_in_order: bool = False

    @classmethod
    def of_filling(cls, filling: Filling, filler: Filler) -> Indexed | None:
        """An array that is filled; None if it has no chunks."""
        target: Any = filling.target
        if 0 in filling.shape or target.array.get_create_plist().get_layout() != h5py.h5d.CHUNKED:
            return None
        count = math.prod(ceil_div(length, chunk) for length, chunk in zip(filling.shape, filling.unit, strict=True))
        if filling.stored_count is not None:
            count = min(count, filling.stored_count)
        is_whole = filling.given is not None
        keeps_order = is_whole or filler.plan(filling).target.keeps_order(filling.unit)
        return cls(target.array, count, target.is_replayable and keeps_order)

    @classmethod
    def of_small(cls, array: Any) -> Indexed | None:
        """An array that libhdf5 writes; None if it has no chunks."""
        plist = array.get_create_plist()
        if plist.get_layout() != h5py.h5d.CHUNKED or 0 in array.shape:
            return None
        grid = (ceil_div(length, chunk) for length, chunk in zip(array.shape, plist.get_chunk(), strict=True))
        return cls(array, math.prod(grid))


class IndexRoom:
    """Room for the chunk indexes of a file, between what describes its arrays and their elements.

    Parameters
    ----------
    target : h5py.File
        The new file, in which all objects exist and no chunk.
    low : int
        The oldest version of libhdf5 that must read it.
    width : int
        Half of the most chunks in a node of an index.
    """

    def __init__(self, target: h5py.File, low: int, width: int = USUAL_WIDTH) -> None:
        self._target = target
        self._low = low
        self._width = width
        self._behind: Any = None

    def reserve(self, arrays: Iterable[Indexed | None]) -> int:
        """Leave a hole for the indexes of these arrays; returns its bytes.

        libhdf5 aggregates metadata only in drivers of its own, but it fills holes first. A group of the first format
        has a heap of a size of our choice. When the group goes, its heap is a hole, because something stands behind it.
        Both groups have no name, so they leave no trace in any other.
        """
        library = loaded()
        is_latest = self._low >= h5py.h5f.LIBVER_V110
        nbytes = sum(index_nbytes(one, self._width, is_latest=is_latest) for one in arrays if one is not None)
        if library is None or not nbytes:
            return 0
        library.set_bounds(self._target.id.id, h5py.h5f.LIBVER_EARLIEST, h5py.h5f.LIBVER_LATEST)
        settings = h5py.h5p.create(h5py.h5p.GROUP_CREATE)
        library.set_heap_nbytes(settings.id, min(nbytes, MOST_HEAP_NBYTES))
        hole = h5py.h5g.create(self._target.id, None, gcpl=settings)
        self._behind = h5py.h5g.create(self._target.id, None)
        del hole
        library.set_bounds(self._target.id.id, self._low, h5py.h5f.LIBVER_LATEST)
        return nbytes

    def close(self) -> None:
        """Forget what stands behind the room."""
        self._behind = None


def index_nbytes(one: Indexed, half: int, *, is_latest: bool) -> int:
    """How many bytes libhdf5 takes for the index of an array, whose nodes have room for twice `half` chunks.

    For the first kind of index it is exact if chunks come in order; otherwise it is at least what is needed.
    """
    count = one.stored_count
    if not count:
        return 0
    plist = one.array.get_create_plist()
    ndim = int(one.array.rank)
    if not is_latest:
        key_nbytes = 8 + 8 * (ndim + 1)
        node_nbytes = NODE_HEAD_NBYTES + 2 * half * CHILD_NBYTES + (2 * half + 1) * key_nbytes
        return node_count(count, half, is_in_order=one.is_in_order) * node_nbytes
    chunk_nbytes = math.prod(plist.get_chunk()) * one.array.get_type().get_size()
    element = 8 if not plist.get_nfilters() else 12 + min(8, 1 + (chunk_nbytes.bit_length() + 7) // 8)
    return _latest_nbytes(one.array, plist.get_chunk(), count, element)


def node_count(chunks: int, half: int, *, is_in_order: bool) -> int:
    """How many nodes a B-tree has, if a node has room for twice `half` chunks."""
    most = 2 * half
    left = int(most * LAST_SPLIT) if is_in_order else half
    total, level = 0, chunks
    while True:
        level = 1 if level <= most else 1 + ceil_div(level - most, left)
        total += level
        if level == 1:
            return total


def _latest_nbytes(array: Any, chunk_shape: tuple[int, ...], count: int, element: int) -> int:
    """The bytes of the kinds of index that libhdf5 1.10 brought."""
    space = array.get_space()
    shape, limits = space.get_simple_extent_dims(), space.get_simple_extent_dims(maxdims=True)
    growing = sum(limit == h5py.h5s.UNLIMITED for limit in limits)
    if growing > 1:
        record = element + 8 * len(shape)
        return int(BTREE2_SPARE * (2 * count * record + 2 * BTREE2_NODE_NBYTES)) + SMALL_PARTS_NBYTES
    if not growing:
        grid = math.prod(ceil_div(limit, chunk) for limit, chunk in zip(limits, chunk_shape, strict=True))
        return 0 if grid == 1 else grid * element + ceil_div(grid, PAGE_COUNT) * 5 + SMALL_PARTS_NBYTES
    grid = math.prod(ceil_div(length, chunk) for length, chunk in zip(shape, chunk_shape, strict=True))
    return SMALL_PARTS_NBYTES + sum(
        blocks * (length * element + BLOCK_HEAD_NBYTES + ceil_div(length, PAGE_COUNT) * 5)
        for blocks, length in _data_blocks(grid)
    )


def _data_blocks(count: int) -> Iterator[tuple[int, int]]:
    """How many blocks of which length an extensible array of so many elements has."""
    left, number = count, 0
    while left > 0:
        most, length = 1 << (number // 2), FIRST_BLOCK_COUNT << ((number + 1) // 2)
        blocks = min(most, ceil_div(left, length))
        yield blocks, length
        left -= blocks * length
        number += 1


def oldest(source: h5py.File) -> int:
    """The oldest libhdf5 that must read a copy of a file: the one that can read the file."""
    version = source.id.get_create_plist().get_version()[0]
    if version < 2:
        return int(h5py.h5f.LIBVER_EARLIEST)
    return int(h5py.h5f.LIBVER_V18 if version == 2 else h5py.h5f.LIBVER_V110)


def set_chunk_index_width(creation: Any, counts: list[int]) -> int:
    """Let a node of a chunk index hold as many chunks as makes the indexes of all arrays smallest, and flat.

    Each level of an index is one more round when the file is opened from afar, unless all come with the first bytes.

    Parameters
    ----------
    creation : Any
        The property list of the new file.
    counts : list[int]
        How many chunks each array has.

    Returns
    -------
    int
        Half of the most chunks in a node.
    """
    library = loaded()
    if library is None or sum(counts) * ENTRY_NBYTES <= SMALL_NBYTES:
        return USUAL_WIDTH
    width = min(WIDTHS, key=lambda half: (sum(_if_half_full(count, half) for count in counts) * half, half))
    library.set_chunk_index_width(creation.id, width)
    return width


def _if_half_full(chunks: int, half: int) -> int:
    return node_count(chunks, half, is_in_order=False)


def planned_counts(root: Group, wish: Wish) -> list[int]:
    """About how many chunks each array of a copy of an archive will have."""
    counts = []
    for array in root.walk():
        own = wish.of(array.name.removeprefix(root.name).strip("/"))
        if own.is_contiguous or not array.shape or 0 in array.shape:
            continue
        try:
            kept = array.chunks
            chunks = shape_of(own.chunks, array.shape, array.dims, kept)
            if chunks is None:
                continue
            grid = math.prod(ceil_div(length, chunk) for length, chunk in zip(array.shape, chunks, strict=True))
            stored = array.stored_chunk_count if chunks == kept else grid
        except HyperslabError:  # it is refused when its turn comes
            continue
        counts.append(grid if stored is None else min(grid, stored))
    return [count for count in counts if count]

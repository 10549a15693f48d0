"""Committing a staged version: chunks, hashes, their count, virtual arrays, the version itself, and last that it is the
current one. Until its group is linked, which is one step, no version is there: nobody sees half of one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol, TypeAlias

import h5py
import numpy as np

from hyperslab._core import gather_chunks, hash_chunks, hash_staged
from hyperslab.archive.array import Array as ArchiveArray
from hyperslab.archive.tree import Group
from hyperslab.versions.attributes import put_text
from hyperslab.versions.chunk_store import ChunkStore, as_bytes, fill_hash
from hyperslab.versions.interruption import let_through
from hyperslab.versions.layout import VERSIONS, Array, chunk_hash
from hyperslab.versions.staged_array import StagedArray
from hyperslab.versions.staged_chunks import MISSING, Places
from hyperslab.versions.staged_group import StagedGroup
from hyperslab.versions.virtual import VirtualArrays

StoreOf: TypeAlias = "Callable[[StagedArray], ChunkStore]"
BATCH_NBYTES = 1 << 22


def write_version(
    file: h5py.Group,
    root: StagedGroup,
    parent: str | None,
    bookkeeping: dict[str, Any],
    store_of: StoreOf,
    arrays: VirtualArrays,
) -> h5py.Group:
    """Write all of a version, into a group that no link leads to yet.

    Args:
        file: Where it goes.
        root: What it holds.
        parent: The name of the version before, if arrays are to be taken from it.
        bookkeeping: Attributes that the layout wants.
        store_of: Gives the chunks of an array's path.
        arrays: Makes virtual arrays.
    """
    versions = file[VERSIONS]
    group = h5py.Group(h5py.h5g.create(versions.id, None))
    before = None if parent is None else versions[parent]
    _Writing(store_of, arrays).group(group, before, root)
    arrays.finish()
    for name, value in {**root.attrs, **bookkeeping}.items():
        if isinstance(value, str):
            put_text(group, name, value)
        else:
            group.attrs[name] = value
    return group


class _Writing(NamedTuple):
    store_of: StoreOf
    arrays: VirtualArrays

    def group(self, group: h5py.Group, before: h5py.Group | None, staged: StagedGroup) -> None:
        for name, child in staged.touched():
            if isinstance(child, StagedGroup):
                made = group.create_group(name)
                for key, value in child.attrs.items():
                    made.attrs[key] = value
                self.group(made, None if child.base is None else before[name], child)  # type: ignore[index]
            elif isinstance(child, StagedArray):
                self.array(group, before, name, child)
            else:
                assert before is not None
                _link(group, before, name, child)

    def array(self, group: h5py.Group, before: h5py.Group | None, name: str, array: StagedArray) -> None:
        if not array.is_changed and before is not None and not _attributes_changed(array):
            _link(group, before, name, array.base)
            return
        store = self.store_of(array)
        places = store_chunks(array, store)
        self.arrays.create(group, name, array.shape, places, store, array.fillvalue, array.attrs)


def _link(group: h5py.Group, before: h5py.Group, name: str, child: Group | ArchiveArray | None) -> None:
    """An array that did not change is one more link to what is there: versions that are committed never change.

    Groups are made anew: where versions share one, versioned-hdf5 rewrites its arrays once for each of them when it
    deletes versions, and takes the wrong chunks.
    """
    if not isinstance(child, Group):
        encoded = name.encode()
        group.id.links.create_hard(encoded, before.id, encoded)  # which opens nothing
        return
    made, old = group.create_group(name), before[name]
    for key, value in old.attrs.items():
        made.attrs[key] = value
    for inner in child:
        _link(made, old, inner, child[inner])


def _attributes_changed(array: StagedArray) -> bool:
    assert array.base is not None
    before = {name: array.base.attrs[name] for name in array.base.attrs if name in array.attrs}
    if len(before) != len(array.attrs) or len(array.base.attrs) != len(array.attrs) + 2:
        return True
    return any(not _same(before[name], array.attrs[name]) for name in array.attrs)


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    left, right = np.asarray(one), np.asarray(other)
    return left.dtype == right.dtype and left.shape == right.shape and left.tolist() == right.tolist()


def store_chunks(array: StagedArray, store: ChunkStore) -> Places:
    """Store the chunks of an array that are new, and give the place of every one; -1 of those that need none.

    While some chunks are stored, the next ones are hashed.
    """
    source = WholeChunks(array) if array.whole is not None else TouchedChunks(array)
    nothing = fill_hash(store.chunk_shape, array.fillvalue, array.dtype)
    places, length = source.places, store.chunk_shape[0]
    inner = math.prod(source.grid_shape[1:])
    step = max(1, BATCH_NBYTES // max(1, math.prod(store.chunk_shape) * array.dtype.itemsize))
    batches = [source.numbers[first : first + step] for first in range(0, len(source.numbers), step)]
    for numbers, digests in zip(batches, one_ahead(source.digests, batches), strict=True):
        let_through()
        places[numbers], new = store.find(digests, nothing)
        if len(new):
            stored = numbers[new]
            lengths = np.minimum(length, array.shape[0] - stored // inner * length)
            store.append(np.frombuffer(digests, "V32")[new].tobytes(), source.gather(stored), lengths)
    return places


def one_ahead(make: Callable[[Places], bytes], batches: list[Places]) -> Iterator[bytes]:
    """What `make` gives of each batch; the next one is made meanwhile, by another thread."""
    if len(batches) < 2:
        yield from map(make, batches)
        return
    with ThreadPoolExecutor(1) as ahead:
        waiting = ahead.submit(make, batches[0])
        for batch in batches[1:]:
            made, waiting = waiting.result(), ahead.submit(make, batch)
            yield made
        yield waiting.result()


class Chunks(Protocol):
    """Chunks of an array that may be new: their linear indices, and the places of all its chunks so far."""

    grid_shape: tuple[int, ...]
    places: Places
    numbers: Places

    def digests(self, numbers: Places) -> bytes:
        """The hashes of some of them."""

    def gather(self, numbers: Places) -> Array:
        """Some of them, whole, with one axis more in front."""


class TouchedChunks:
    """The chunks that are staged."""

    def __init__(self, array: StagedArray) -> None:
        self._staged = array.staged
        self._slots = array.staged.slots.reshape(-1)
        self.grid_shape = array.staged.grid_shape
        self.places = array.staged.stored.reshape(-1).copy()
        self.numbers = np.flatnonzero(self._slots != MISSING)

    def digests(self, numbers: Places) -> bytes:
        """The hashes of some of them."""
        staged, slots = self._staged, self._slots[numbers]
        if staged.slab.dtype.hasobject:
            indices = np.stack(np.unravel_index(numbers, staged.grid_shape), axis=1).tolist()
            chunks = (
                staged.slab[slot][staged.valid(index)] for slot, index in zip(slots.tolist(), indices, strict=True)
            )
            return b"".join(map(chunk_hash, chunks))
        shapes = (staged.shape, staged.chunk_shape)
        return hash_staged(as_bytes(staged.slab), slots, numbers, shapes, staged.slab.itemsize)

    def gather(self, numbers: Places) -> Array:
        """Some of them, whole, with one axis more in front."""
        return self._staged.slab[self._slots[numbers]]


class WholeChunks:
    """All chunks of an array that is in memory in one piece."""

    def __init__(self, array: StagedArray) -> None:
        assert array.whole is not None
        self._whole, self._chunk_shape = array.whole, array.chunks
        self._fill = array.fillvalue
        axes = zip(array.shape, array.chunks, strict=True)
        self.grid_shape = tuple(-(-length // chunk) for length, chunk in axes)
        self.numbers = np.arange(math.prod(self.grid_shape))
        self.places = np.full(len(self.numbers), MISSING, np.int64)

    def digests(self, numbers: Places) -> bytes:
        """The hashes of some of them."""
        if self._whole.dtype.hasobject:
            return b"".join(chunk_hash(self._part(number)) for number in numbers.tolist())
        shapes = (self._whole.shape, self._chunk_shape)
        return hash_chunks(as_bytes(self._whole), shapes, numbers, self._whole.itemsize)

    def gather(self, numbers: Places) -> Array:
        """Some of them, whole, with one axis more in front."""
        whole, chunk_shape = self._whole, self._chunk_shape
        first, last = int(numbers[0]) * chunk_shape[0], (int(numbers[-1]) + 1) * chunk_shape[0]
        if whole.ndim == 1 and len(numbers) * chunk_shape[0] == last - first and last <= len(whole):
            return whole[first:last].reshape(-1, *chunk_shape)
        if not whole.dtype.hasobject:
            fill = np.asarray(self._fill, whole.dtype).tobytes()
            chunks = gather_chunks(as_bytes(whole), (whole.shape, chunk_shape), numbers, fill)
            return chunks.view(whole.dtype).reshape(-1, *chunk_shape)
        out: Array = np.full((len(numbers), *chunk_shape), self._fill, whole.dtype)
        for slot, number in enumerate(numbers.tolist()):
            part = self._part(number)
            out[slot][tuple(slice(length) for length in part.shape)] = part
        return out

    def _part(self, number: int) -> Array:
        axes = zip(np.unravel_index(number, self.grid_shape), self._chunk_shape, strict=True)
        part: Array = self._whole[tuple(slice(int(at) * chunk, (int(at) + 1) * chunk) for at, chunk in axes)]
        return part

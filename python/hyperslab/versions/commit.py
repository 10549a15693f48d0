"""Committing a staged version: chunks, hashes, their count, virtual arrays, the version itself, and last that it is the
current one. Until its group is linked, which is one step, no version is there: nobody sees half of one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import h5py
import numpy as np

from hyperslab._core import hash_chunks
from hyperslab.archive.array import Array as ArchiveArray
from hyperslab.archive.tree import Group
from hyperslab.versions.chunk_store import ChunkStore, fill_hash
from hyperslab.versions.layout import VERSIONS, Array, chunk_hash
from hyperslab.versions.staged_array import StagedArray
from hyperslab.versions.staged_chunks import MISSING, Places
from hyperslab.versions.staged_group import StagedGroup
from hyperslab.versions.virtual import create_virtual

StoreOf: TypeAlias = "Callable[[StagedArray], ChunkStore]"


def write_version(
    file: h5py.Group, root: StagedGroup, parent: str | None, bookkeeping: dict[str, Any], store_of: StoreOf
) -> h5py.Group:
    """Write all of a version, into a group that no link leads to yet.

    Args:
        file: Where it goes.
        root: What it holds.
        parent: The name of the version before, if arrays are to be taken from it.
        bookkeeping: Attributes that the layout wants.
        store_of: Gives the chunks of an array's path.
    """
    versions = file[VERSIONS]
    group = h5py.Group(h5py.h5g.create(versions.id, None))
    before = None if parent is None else versions[parent]
    _write_group(group, before, root, store_of)
    for name, value in {**root.attrs, **bookkeeping}.items():
        group.attrs[name] = value
    return group


def _write_group(group: h5py.Group, before: h5py.Group | None, staged: StagedGroup, store_of: StoreOf) -> None:
    for name, child in staged.touched():
        if isinstance(child, StagedGroup):
            made = group.create_group(name)
            for key, value in child.attrs.items():
                made.attrs[key] = value
            _write_group(made, None if child.base is None else before[name], child, store_of)  # type: ignore[index]
        elif isinstance(child, StagedArray):
            _write_array(group, before, name, child, store_of)
        else:
            assert before is not None
            _link(group, before, name, child)


def _link(group: h5py.Group, before: h5py.Group, name: str, child: Group | ArchiveArray) -> None:
    """An array that did not change is one more link to what is there: versions that are committed never change.

    Groups are made anew: where versions share one, versioned-hdf5 rewrites its arrays once for each of them when it
    deletes versions, and takes the wrong chunks.
    """
    if not isinstance(child, Group):
        group[name] = before[name]
        return
    made = group.create_group(name)
    for key, value in before[name].attrs.items():
        made.attrs[key] = value
    for inner in child:
        _link(made, before[name], inner, child[inner])


def _write_array(
    group: h5py.Group, before: h5py.Group | None, name: str, array: StagedArray, store_of: StoreOf
) -> None:
    if not array.is_changed and array.base is not None and before is not None and not _attributes_changed(array):
        _link(group, before, name, array.base)
        return
    store = store_of(array)
    places = store_chunks(array, store)
    made = create_virtual(group, name, array.shape, places, store.raw, array.fillvalue)
    for key, value in array.attrs.items():
        made.attrs[key] = value
    made.attrs["raw_data"] = store.raw.name
    made.attrs["chunks"] = store.chunk_shape


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
    """Store the chunks of an array that are new, and give the place of every one; -1 of those that need none."""
    hashed = whole_chunks(array) if array.whole is not None else staged_chunks(array)
    nothing = fill_hash(store.chunk_shape, array.fillvalue, array.dtype)
    places = hashed.places
    new: dict[bytes, int] = {}
    sources: list[int] = []
    for number, digest in zip(hashed.numbers, hashed.digests, strict=True):
        place = MISSING if digest == nothing else store.place(digest)
        if place is None:
            place = new.setdefault(digest, store.count + len(new))
            if place == store.count + len(sources):
                sources.append(number)
        places[number] = place
    if sources:
        inner = math.prod(hashed.grid_shape[1:])
        length, chunk = array.shape[0], store.chunk_shape[0]
        lengths = np.minimum(chunk, length - np.asarray(sources, np.int64) // inner * chunk)
        store.append(list(new), hashed.gather(sources), lengths)
    return places


class Hashed(NamedTuple):
    """Chunks of an array that may be new: their linear indices and hashes, and the places of all its chunks so far."""

    grid_shape: tuple[int, ...]
    places: Places
    numbers: list[int]
    digests: list[bytes]
    gather: Callable[[list[int]], Array]  # some of them, whole, by their linear indices


def staged_chunks(array: StagedArray) -> Hashed:
    """The chunks that are staged."""
    staged = array.staged
    slots = staged.slots.reshape(-1)
    numbers = np.flatnonzero(slots != MISSING)
    indices = np.stack(np.unravel_index(numbers, staged.grid_shape), axis=1).tolist()
    digests = [
        chunk_hash(staged.slab[slot][staged.valid(index)])
        for slot, index in zip(slots[numbers].tolist(), indices, strict=True)
    ]
    gather = lambda wanted: staged.slab[slots[wanted]]  # noqa: E731
    return Hashed(staged.grid_shape, staged.stored.reshape(-1).copy(), numbers.tolist(), digests, gather)


def whole_chunks(array: StagedArray) -> Hashed:
    """All chunks of an array that is in memory in one piece."""
    whole, chunk_shape = array.whole, array.chunks
    assert whole is not None
    grid_shape = tuple(-(-length // chunk) for length, chunk in zip(whole.shape, chunk_shape, strict=True))

    def box(number: int) -> tuple[slice, ...]:
        index = np.unravel_index(number, grid_shape)
        return tuple(
            slice(int(place) * chunk, (int(place) + 1) * chunk) for place, chunk in zip(index, chunk_shape, strict=True)
        )

    def gather(wanted: list[int]) -> Array:
        first, last = wanted[0], wanted[-1] + 1
        if whole.ndim == 1 and len(wanted) == last - first and last * chunk_shape[0] <= len(whole):
            return whole[first * chunk_shape[0] : last * chunk_shape[0]].reshape(-1, *chunk_shape)
        out: Array = np.full((len(wanted), *chunk_shape), array.fillvalue, array.dtype)
        for slot, number in enumerate(wanted):
            part = whole[box(number)]
            out[slot][tuple(slice(length) for length in part.shape)] = part
        return out

    count = math.prod(grid_shape)
    if whole.dtype.hasobject:
        digests = [chunk_hash(whole[box(number)]) for number in range(count)]
    else:
        hashes = hash_chunks(whole.reshape(-1).view(np.uint8), whole.shape, chunk_shape, whole.itemsize)
        digests = [hashes[place : place + 32] for place in range(0, len(hashes), 32)]
    return Hashed(grid_shape, np.full(count, MISSING, np.int64), list(range(count)), digests, gather)

"""Deletes versions: each array keeps only the chunks that a remaining version shows.

Chunks are copied as they are stored, without decoding them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from hyperslab.archive.tree.array import Array as ArchiveArray
from hyperslab.errors import DamagedFile, Unsupported
from hyperslab.journal.signals import raise_pending_signals
from hyperslab.meant import meant
from hyperslab.versions.commit.attributes import copy_attributes
from hyperslab.versions.commit.chunk_store import room, row_count, table_in
from hyperslab.versions.commit.codec_options import filters_in
from hyperslab.versions.inspect.stored_bytes import StoredBytes
from hyperslab.versions.layout.names import DATA, FIRST_VERSION, VERSIONS, Array
from hyperslab.versions.layout.reading import parsed, version_table
from hyperslab.versions.layout.slots import MISSING, Slots, slots_of
from hyperslab.versions.layout.table import VersionTable
from hyperslab.versions.layout.version_group import check_chunks
from hyperslab.versions.rewrite.rewriting import (
    MakeChunks,
    NewChunks,
    Raw,
    RewritePlan,
    Target,
    arrays_of,
    version_groups,
)


def deletion(file: h5py.File, names: str | Iterable[str], known: VersionTable | None = None) -> RewritePlan:
    """Plan the deletion of versions. The parent of a deleted version takes over its children.

    Parameters
    ----------
    file : h5py.File
        The file.
    names : str or iterable of str
        The names of the versions.
    known : VersionTable, optional
        All versions, if they are known; by default they are read.

    Raises
    ------
    TypeError
        A name is not text.
    ValueError
        A version does not exist, or there are no names.
    DamagedFile
        A version that stays cannot be read, so the chunks that it needs are unknown.
    """
    is_one = isinstance(names, str | bytes) or not isinstance(names, Iterable)
    deleted: set[Any] = {names} if is_one else set(names)
    for name in deleted:
        if not isinstance(name, str):
            raise TypeError(f"{name!r} is not the name of a version: names are text")
    if not deleted:
        raise ValueError("there are no versions to delete: name one; `repack` writes the file again and keeps all")
    return _without(file, deleted, known)


def _without(file: h5py.File, deleted: set[str], known: VersionTable | None = None) -> RewritePlan:
    versions = version_table(file.filename) if known is None else known
    for name in sorted(deleted):
        if name not in versions:
            near = meant(name, versions)
            raise ValueError(f"there is no version {name!r} in {file.filename} to delete{near}")
    all_parents = {name: version.parent or FIRST_VERSION for name, version in versions.items()}

    def remaining(name: str) -> str:
        while name in deleted:
            name = all_parents[name]
        return name

    kept = [name for name in versions if name not in deleted]
    parents = {name: remaining(all_parents[name]) for name in kept if all_parents[name] in deleted}
    current = remaining(file[VERSIONS].attrs["current_version"])
    used = used_chunks(file, kept)
    arrays: dict[str, MakeChunks | None] = {}
    for path in stores(file[DATA]):
        if path not in used:
            arrays[path] = None
        elif not used[path].all():
            arrays[path] = partial(compacted, path=path, kept=np.flatnonzero(used[path]))
    return RewritePlan(frozenset(kept), current, arrays, parents)


def nothing(file: h5py.File) -> RewritePlan:
    """Plan to keep all versions. Rewriting a file by this plan only drops what no version needs."""
    return _without(file, set())


def stores(group: h5py.Group, prefix: str = "") -> Iterator[str]:
    """The paths of all arrays that have chunks in a file. Each has a table of hashes from now on."""
    for name in group:
        if not prefix and name == "versions":
            continue
        child = group.get(name) if group.get(name, getclass=True) is h5py.Group else None
        if child is not None:
            if isinstance(child.get("raw_data"), h5py.Dataset) and isinstance(table_in(child), h5py.Dataset):
                yield f"{prefix}{name}"
            yield from stores(child, f"{prefix}{name}/")


def used_chunks(file: h5py.File, versions: list[str]) -> dict[str, npt.NDArray[np.bool_]]:
    """Find the chunks that some versions show, for each array."""
    used: dict[str, npt.NDArray[np.bool_]] = {}
    cut: dict[str, tuple[int, ...]] = {}
    seen: set[tuple[int, int]] = set()
    for _, group in version_groups(file.filename, versions):
        for path, array in arrays_of(group):
            key = (id(array._file), array._number)
            if key in seen and path in used:
                continue
            seen.add(key)
            if path not in used:
                raw = file[f"{DATA}/{path}/raw_data"]
                used[path], cut[path] = np.zeros(room(raw), bool), raw.chunks
            check_chunks(array, tuple(int(length) for length in array.attrs["chunks"]), cut[path])
            slots = slots_of(array, path, len(used[path]))
            if slots is not None:
                used[path][slots[slots != MISSING]] = True
    return used


def compacted(target: Target, path: str, kept: Slots) -> NewChunks:
    """Store some chunks of an array, given by ascending slots, as all chunks that it has."""
    old, group = target.source[f"{DATA}/{path}"], target.root[DATA].require_group(path)
    old_raw, old_table = old["raw_data"], old["hash_table"]
    length = old_raw.chunks[0]
    raw = created_like(group, "raw_data", old_raw, (len(kept) * length, *old_raw.shape[1:]))
    if target.is_elsewhere and _has_pointers(old_raw):
        for slot, source in enumerate(kept.tolist()):
            raw[slot * length : (slot + 1) * length] = old_raw[source * length : (source + 1) * length]
    else:
        origin = (0,) * (raw.ndim - 1)
        for slot, stored, mask in stored_chunks(target.source.filename, path, old_raw, kept):
            raw.id.write_direct_chunk((slot * length, *origin), stored, mask)
    rows = rows_of(old_table, old_raw, kept)
    table = created_like(group, "hash_table", old_table, (max(1, len(kept)),))
    table[: len(kept)] = rows
    table.attrs["largest_index"] = len(kept)
    new_slots = np.full(room(old_raw) + 1, MISSING, np.int64)  # the last element stands for MISSING
    new_slots[kept] = np.arange(len(kept))

    def slots(base: ArchiveArray) -> Slots:
        old_slots = slots_of(base, path, room(old_raw))
        assert old_slots is not None
        return new_slots[old_slots]

    fill = 0 if old_raw.fillvalue is None else old_raw.fillvalue
    return NewChunks(Raw.of(path, raw), fill, slots)


def rows_of(table: Any, raw: Any, kept: Slots) -> Array:
    """Return the rows of the hash table for the chunks that stay, renumbered as if there were no others.

    A chunk without a row gets a hash of zeros, which belongs to no chunk: versioned-hdf5's `rebuild_hashtables` leaves
    out one of two equal chunks.

    Parameters
    ----------
    table : h5py.Dataset
        The hash table.
    raw : h5py.Dataset
        The stack of chunks.
    kept : Slots
        The slots of the chunks that stay.

    Raises
    ------
    DamagedFile
        The table names chunks that do not exist.
    """
    length = raw.chunks[0]
    rows = table[: row_count(table)]
    starts = rows["shape"][:, 0] // length
    row_of = np.full(room(raw), MISSING, np.int64)
    if len(starts) and (starts.min() < 0 or starts.max() >= len(row_of)):
        raise DamagedFile(f"{table.name} in {table.file.filename} names chunks that do not exist")
    row_of[starts] = np.arange(len(rows))
    is_known = row_of[kept] != MISSING
    made = np.zeros(len(kept), table.dtype)
    made["shape"] = kept[:, None] * length + (0, length)
    made[is_known] = rows[row_of[kept[is_known]]]
    made["shape"] += ((np.arange(len(kept)) - kept) * length)[:, None]
    return made


def created_like(group: h5py.Group, name: str, old: Any, shape: tuple[int, ...]) -> Any:
    """Create an empty array of another length, but otherwise like an existing one, with its attributes and codecs."""
    filters_in(old)  # HDF5 creates no array whose codecs it lacks
    space = h5py.h5s.create_simple(shape, old.id.get_space().get_simple_extent_dims(True))
    options = old.id.get_create_plist()
    options.set_obj_track_times(False)  # as h5py does; the same chunks then make the same bytes at any time
    made = h5py.h5d.create(group.id, name.encode(), old.id.get_type(), space, options)
    copy_attributes(old.id, made)
    return h5py.Dataset(made)


def _has_pointers(raw: Any) -> bool:
    """Whether elements are stored elsewhere in the file, so that their chunks mean nothing in another file."""
    return bool(raw.id.get_type().detect_class(h5py.h5t.VLEN) or raw.dtype.hasobject)


def stored_chunks(file: str, path: str, raw: Any, slots: Slots) -> Iterator[tuple[int, Any, int]]:
    """Chunks as they are stored, in the order of the slots: the number of each slot in `slots`, the bytes of its chunk,
    and which codecs it was stored without. Chunks that are not stored are left out.
    """
    array = parsed(file, 0, (f"{DATA}/{path}/raw_data",))[f"{DATA}/{path}/raw_data"]
    assert isinstance(array, ArchiveArray)
    try:
        [segment] = array.segments()
    except Unsupported:
        for number, slot in enumerate(slots.tolist()):
            mask, stored = raw.id.read_direct_chunk((slot * raw.chunks[0], *(0,) * (raw.ndim - 1)))
            yield number, stored, mask
        return
    indices = segment.indices().astype(np.int64)
    rows = np.searchsorted(indices, slots)
    is_there = rows < len(indices)
    is_there[is_there] = indices[rows[is_there]] == slots[is_there]
    rows = rows[is_there]
    numbers, masks = np.flatnonzero(is_there).tolist(), segment.filter_masks()[rows].tolist()
    ranges = zip(segment.offsets()[rows].tolist(), segment.lengths()[rows].tolist(), strict=True)
    with StoredBytes(file) as opened:
        contents = opened.ranges((file, offset, length) for offset, length in ranges)
        for number, mask, stored in zip(numbers, masks, contents, strict=True):
            raise_pending_signals()
            yield number, stored, mask

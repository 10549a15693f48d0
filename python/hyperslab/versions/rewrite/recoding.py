"""Changes the chunk shape, dtype, fill value or codecs of an array, in all of its versions.

Each new chunk is made once, however many versions show it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import h5py
import numpy as np

from hyperslab.archive.tree.array import Array as ArchiveArray
from hyperslab.chunk_grid import ceil_div, chunk_counts
from hyperslab.errors import UsageError
from hyperslab.journal.signals import raise_pending_signals
from hyperslab.versions.commit.chunk_store import ChunkStore, is_text, make_store, room, row_count, table_in
from hyperslab.versions.commit.codec_options import codec_options, filters_in
from hyperslab.versions.layout.elements import as_elements, fill_element
from hyperslab.versions.layout.names import (
    DATA,
    DEFAULT_CHUNK_LENGTH,
    FIRST_VERSION,
    VERSIONS,
    Array,
    chunk_hash,
    text_bytes,
)
from hyperslab.versions.layout.padding import cleared, element_bytes, without_fields
from hyperslab.versions.layout.slots import MISSING, Slots, slots_of
from hyperslab.versions.rewrite.deletion import created_like
from hyperslab.versions.rewrite.rewriting import NewChunks, Raw, RewritePlan, Target

CODECS = ("compression", "compression_opts", "shuffle", "fletcher32", "scaleoffset")
# The bytes of new chunks to hold in memory at a time.
BATCH_NBYTES = 32 << 20

Convert: TypeAlias = "Callable[[Any], Array]"


def modification(file: h5py.File, path: str, asked: dict[str, Any], codecs: dict[str, Any]) -> RewritePlan:
    """Plan to change how an array is stored.

    Parameters
    ----------
    file : h5py.File
        The file with the array.
    path : str
        The path of the array.
    asked : dict[str, Any]
        `chunks`, `dtype` and `fillvalue`; None keeps what there is.
    codecs : dict[str, Any]
        Options of h5py; None turns one off. Options that are missing stay as they are.

    Raises
    ------
    KeyError
        The array does not exist.
    TypeError
        The elements cannot be cast to the dtype.
    ValueError
        The chunks have another number of axes, or the options contradict each other.
    """
    if unknown := codecs.keys() - set(CODECS):
        raise TypeError(f"{', '.join(sorted(unknown))}: there is no such option")
    if f"{DATA}/{path}/raw_data" not in file:
        raise KeyError(f"no version in {file.filename} has an array {path!r}")
    raw = file[f"{DATA}/{path}/raw_data"]
    dtype = raw.dtype if asked["dtype"] is None else _stored_dtype(asked["dtype"])
    _check_kinds(path, raw.dtype, dtype)
    chunk_shape = _chunk_shape(path, asked["chunks"], raw.chunks)
    old_fill = fill_element(raw.dtype, raw.fillvalue)
    fill = old_fill if asked["fillvalue"] is None else asked["fillvalue"]
    if is_text(dtype) and fill not in ("", b"", 0, None):
        raise ValueError(f"{path}: the fill value of text of variable length must be '', not {fill!r}")
    fill = "" if is_text(dtype) else np.asarray(fill).astype(dtype)[()]
    stays = dtype == raw.dtype and chunk_shape == raw.chunks and _same(fill, old_fill)

    def make(target: Target) -> NewChunks:
        if stays:
            return _encoded_anew(target, path, codecs)
        store = _new_store(target, path, dtype, chunk_shape, fill, codecs)
        convert = _conversion(raw.dtype, dtype, old_fill, fill)
        chunks = RecodedChunks(store, convert, fill, raw.chunks)
        return NewChunks(Raw.of(path, store.raw), fill, lambda base: chunks.slots(base, path, store))

    versions = file[VERSIONS]
    kept = frozenset(name for name in versions if name != FIRST_VERSION)
    current = versions.attrs["current_version"]
    if stays:
        return RewritePlan(kept, current, {path: make} if codecs else {})
    return RewritePlan(kept, current, {path: make}, read=frozenset((path,)))


def _stored_dtype(asked: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.dtype(asked) if asked is not str else np.dtypes.StringDType()
    text: np.dtype[Any] = h5py.string_dtype()
    return text if dtype.kind == "T" or (dtype.kind == "O" and not is_text(dtype)) else dtype


def _check_kinds(path: str, old: np.dtype[Any], new: np.dtype[Any]) -> None:
    if old == new:
        return
    for dtype, other in ((old, new), (new, old)):
        if (dtype.hasobject and not is_text(dtype)) or (is_text(dtype) and other.kind not in "SO"):
            raise TypeError(f"{path}: elements of {old} cannot become {new}")
    if (old.kind == "V") != (new.kind == "V"):
        raise TypeError(f"{path}: elements of {old} cannot become {new}")


def _chunk_shape(path: str, asked: Any, old: tuple[int, ...]) -> tuple[int, ...]:
    if asked is None:
        return old
    if asked is True:
        if len(old) > 1:
            raise NotImplementedError(f"{path}: give the chunks of an array with {len(old)} axes")
        return (DEFAULT_CHUNK_LENGTH,)
    lengths = (asked,) if isinstance(asked, int) else tuple(asked)
    if len(lengths) != len(old) or any(isinstance(one, bool) or int(one) != one or one < 1 for one in lengths):
        raise ValueError(f"{path}: chunks of {asked} do not fit an array with {len(old)} axes")
    return tuple(int(length) for length in lengths)


def _same(one: Any, other: Any) -> bool:
    left, right = np.asarray(one), np.asarray(other)
    return (
        left.dtype == right.dtype and element_bytes(left, left.dtype) == element_bytes(right, right.dtype)
        if left.dtype.kind != "O"
        else one == other
    )


def _conversion(old: np.dtype[Any], new: np.dtype[Any], old_fill: Any, fill: Any) -> Convert:
    """A function that casts elements, and replaces the old fill value with the new one."""
    cast_fill = old_fill if is_text(new) else b"" if is_text(old) else np.asarray(old_fill).astype(new)[()]
    refills = not is_text(new) and not _same(cast_fill, fill)

    def convert(read: Any) -> Array:
        if is_text(new):
            return np.asarray(as_elements(read, new), object)
        elements: Array = np.asarray(read)
        if is_text(old):
            as_bytes = [text_bytes(one) for one in elements.reshape(-1)]
            elements = np.array(as_bytes, "S").reshape(elements.shape)
        elements = np.array(elements.astype(new), order="C")
        if refills:
            elements[elements == cast_fill] = fill
        return elements

    return convert


def _new_store(
    target: Target, path: str, dtype: np.dtype[Any], chunk_shape: tuple[int, ...], fill: Any, codecs: dict[str, Any]
) -> ChunkStore:
    """Create an empty store for other chunks, with the codecs of the old one unless others are asked for."""
    old = target.source[f"{DATA}/{path}/raw_data"]
    before = codec_options(filters_in(old))
    if codecs.get("compression", before.get("compression")) != before.get("compression"):
        before["compression_opts"] = None  # those in the file are of another codec
    options = {**before, **codecs}
    if is_text(dtype) and options.get("scaleoffset") is not None:
        raise UsageError(f"{path}: scaleoffset is for numbers")
    options = {name: value for name, value in options.items() if value is not None and value is not False}
    make_store(target.root, path, dtype, chunk_shape, None if is_text(dtype) else fill, options)
    return ChunkStore(target.root, path)


def _encoded_anew(target: Target, path: str, codecs: dict[str, Any]) -> NewChunks:
    """Store the same chunks in the same slots, with other codecs. Virtual arrays stay as they are."""
    old = target.source[f"{DATA}/{path}"]
    old_raw, old_table = old["raw_data"], table_in(old)
    fill = fill_element(old_raw.dtype, old_raw.fillvalue)
    group = target.root[DATA].require_group(path)
    store = _new_store(target, path, old_raw.dtype, old_raw.chunks, fill, codecs)
    del group["hash_table"]
    count = room(old_raw)  # includes chunks without a hash
    rows = row_count(old_table)
    created = created_like(group, "hash_table", old_table, (max(1, rows),))
    created[:rows] = old_table[:rows]
    length = old_raw.chunks[0]
    store.raw.resize((count * length, *old_raw.shape[1:]))
    step = max(1, BATCH_NBYTES // max(1, math.prod(old_raw.chunks) * old_raw.dtype.itemsize)) * length
    for start in range(0, count * length, step):
        raise_pending_signals()
        stop = min(start + step, count * length)
        store.raw[start:stop] = old_raw[start:stop]
    return NewChunks(Raw.of(path, store.raw), fill, None)


class RecodedChunks:
    """Makes the new chunks of versions from what the versions show, each only once."""

    def __init__(self, store: ChunkStore, convert: Convert, fill: Any, old_chunk_shape: tuple[int, ...]) -> None:
        self._store = store
        self._convert = convert
        self._fill = fill
        self._old_chunk_shape = old_chunk_shape
        self._known: dict[bytes, int] = {}  # new slots, by the old chunks that a new chunk is made of
        self._last: tuple[tuple[int, ...], Slots, Slots] | None = None  # a shape, old slots, new ones

    def slots(self, base: ArchiveArray, path: str, store: ChunkStore) -> Slots:
        """The slot of each new chunk of a version's array. Chunks that are not there yet are stored."""
        chunk_shape, shape = store.chunk_shape, base.shape
        old = slots_of(base, path, None)
        assert old is not None
        if self._last is not None and self._last[0] == shape and np.array_equal(self._last[1], old):
            return self._last[2]  # usually nothing changed from one version to the next
        flat = old
        old_grid = chunk_counts(shape, self._old_chunk_shape)
        grid = chunk_counts(shape, chunk_shape)
        old = old.reshape(old_grid)
        slots = np.full(math.prod(grid), MISSING, np.int64)
        batch: list[tuple[bytes, tuple[slice, ...]]] = []
        waiting: dict[bytes, list[int]] = {}
        most = max(1, BATCH_NBYTES // max(1, math.prod(chunk_shape) * store.raw.dtype.itemsize))
        for number, index in enumerate(np.ndindex(grid)):
            key, box = self._made_of(old, index, shape)
            if key in self._known:
                slots[number] = self._known[key]
                continue
            if key not in waiting:
                batch.append((key, box))
            waiting.setdefault(key, []).append(number)
            if len(batch) == most:
                self._make(base, batch, waiting, slots)
        self._make(base, batch, waiting, slots)
        store.settle()
        self._last = shape, flat, slots
        return slots

    def _made_of(self, old: Slots, index: tuple[int, ...], shape: tuple[int, ...]) -> tuple[bytes, tuple[slice, ...]]:
        """What identifies a new chunk: the old chunks it is made of, its start in the first of them, and its shape."""
        box, of, where = [], [], []
        axes = zip(index, self._store.chunk_shape, self._old_chunk_shape, shape, strict=True)
        for position, chunk, old_chunk, length in axes:
            start, stop = position * chunk, min((position + 1) * chunk, length)
            box.append(slice(start, stop))
            of.append(slice(start // old_chunk, ceil_div(stop, old_chunk)))
            where += [start % old_chunk, stop - start]
        return old[tuple(of)].tobytes() + np.array(where).tobytes(), tuple(box)

    def _make(
        self,
        base: ArchiveArray,
        batch: list[tuple[bytes, tuple[slice, ...]]],
        waiting: dict[bytes, list[int]],
        into: Slots,
    ) -> None:
        raise_pending_signals()
        store = self._store
        chunks: Array = np.full((len(batch), *store.chunk_shape), self._fill, store.raw.dtype)
        digests, lengths = [], []
        for row, (_, box) in enumerate(batch):
            elements = cleared(self._convert(base[box]))
            without_fields(chunks[row])[tuple(slice(length) for length in elements.shape)] = without_fields(elements)
            digests.append(chunk_hash(elements))
            lengths.append(elements.shape[0])
        slots, new = store.find(b"".join(digests))
        for (key, _), slot in zip(batch, slots.tolist(), strict=True):
            self._known[key] = slot
            into[waiting[key]] = slot
        if len(new):
            added = b"".join(digests[row] for row in new.tolist())
            store.append(added, without_fields(chunks)[new].view(chunks.dtype), np.asarray(lengths, np.int64)[new])
        batch.clear()
        waiting.clear()

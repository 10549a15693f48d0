"""`Receiving`: puts what an archive holds into a version. Chunks that the version before has are neither decoded nor
written; others are decoded and hashed, and those that no version has are stored, if possible with the bytes they have.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hyperslab._core import filters_of, hash_staged
from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.group import Group, groups_by_path
from hyperslab.chunk_grid import chunk_counts
from hyperslab.errors import DamagedFile, HyperslabError, Refused, UsageError
from hyperslab.journal.signals import raise_pending_signals
from hyperslab.versions.commit.chunk_store import ChunkStore, ChunkStores, is_text
from hyperslab.versions.commit.codec_options import codec_options, filters_in
from hyperslab.versions.commit.commit import DIGEST_NBYTES, WholeChunks, store_of
from hyperslab.versions.inspect.regions import runs
from hyperslab.versions.layout.elements import as_elements, fill_element, same_value
from hyperslab.versions.layout.names import (
    ARRAY_BOOKKEEPING,
    DATA,
    VERSION_BOOKKEEPING,
    VERSIONS,
    bookkeeping,
    path_in_version,
    raw_path,
)
from hyperslab.versions.layout.padding import element_bytes, has_padding
from hyperslab.versions.layout.slots import MISSING, Slots, check_chunk_count
from hyperslab.versions.stage.attributes import StagedAttributes
from hyperslab.versions.stage.staged_array import StagedArray
from hyperslab.versions.stage.staged_group import StagedGroup
from hyperslab.versions.transfer.ahead import Compared
from hyperslab.versions.transfer.portable import SCALES, portable_value
from hyperslab.versions.transfer.stored_grid import NOWHERE, Mask, StoredGrid

BATCH_NBYTES = 16 << 20
POINTED_NBYTES = 256  # assumed memory of an element of variable length


@dataclass
class Received:
    """What became of the chunks of a version.

    Attributes
    ----------
    chunk_count
        All chunks.
    same_count
        Chunks that the version before has.
    found_count
        Chunks that another version, or another place, has.
    new_count
        Chunks that were stored.
    nbytes
        The stored bytes of all chunks in the source, as far as they are known.
    left_out
        What a version cannot hold, by path, with the reason.
    """

    chunk_count: int = 0
    same_count: int = 0
    found_count: int = 0
    new_count: int = 0
    nbytes: int = 0
    left_out: dict[str, str] = field(default_factory=dict)


@dataclass
class Receiving:
    """Puts archives into versions of a file.

    Attributes
    ----------
    stores
        The chunks of the file's arrays.
    chunks
        The chunk shapes of new arrays by path; "" stands for all others.
    skip_unsupported
        Leave out what a version cannot hold, instead of refusing it.
    """

    stores: ChunkStores
    chunks: Mapping[str, tuple[int, ...]]
    skip_unsupported: bool = False
    received: Received = field(default_factory=Received)
    _compared: Compared = field(default_factory=dict, init=False)
    _memory: npt.NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8), init=False)

    def memory(self, nbytes: int) -> npt.NDArray[np.uint8]:
        """Memory for chunks, which is the same for all versions: new memory takes as long as what is read into it."""
        if len(self._memory) < nbytes:
            self._memory = np.empty(nbytes, np.uint8)
        return self._memory[:nbytes]

    def put(
        self, staged: StagedGroup, source: Group, before: Group | None, compared: Compared | None = None
    ) -> Received:
        """Make a staged version hold what `source` holds. `before` is what the version before was made from, and
        `compared` has the arrays of both that were compared already.

        Raises
        ------
        Refused
            It holds something that a version cannot hold.
        UsageError
            An array has another type or fill value than in the versions before.
        DamagedFile
            The source cannot be read.
        """
        self.received, self._compared = Received(), compared or {}
        names = [""]
        self._attributes(staged.attrs, source, "")
        for path, group in groups_by_path(source):
            inner = path.strip("/")
            if inner:
                names.append(inner)
                self._attributes(self._group(staged, inner).attrs, group, inner)
            for name in list(group.arrays):
                raise_pending_signals()
                full = f"{inner}/{name}".lstrip("/")
                if self._array(staged, full, group[name], before):
                    names.append(full)
        remove_others(staged, frozenset(names))
        return self.received

    def _group(self, staged: StagedGroup, path: str) -> StagedGroup:
        if path in staged and isinstance(staged[path], StagedArray):
            del staged[path]
        return staged.require_group(path)

    def _attributes(self, staged: StagedAttributes, source: Group | Array, path: str) -> None:
        """Make the attributes those of the source. Those that are the same already stay as they are stored."""
        layout = bookkeeping(source.name, is_array=isinstance(source, Array))
        reserved = ARRAY_BOOKKEEPING if isinstance(source, Array) else () if path else VERSION_BOOKKEEPING
        wanted: dict[str, Any] = {}
        for name in source.attrs:
            if name in layout:
                continue
            try:
                if name in reserved:
                    raise UsageError("versions need this name for themselves")
                one = portable_value(source.attrs, name)
                if name not in staged or not same_value(staged[name], one):
                    staged[name] = one
                wanted[name] = one
            except (HyperslabError, TypeError, ValueError) as error:
                if name in SCALES:
                    self.received.left_out[f"{path}@{name}"] = "versions have no dimension scales"
                else:
                    self._leave_out(f"{path}@{name}", str(error))
        for name in [name for name in staged if name not in wanted]:
            del staged[name]

    def _leave_out(self, path: str, reason: str) -> None:
        if not self.skip_unsupported:
            raise Refused(f"{path} cannot be in a version: {reason}: leave it out with skip_unsupported")
        self.received.left_out[path] = reason

    def _array(self, staged: StagedGroup, path: str, array: Group | Array, before: Group | None) -> bool:
        assert isinstance(array, Array)
        reason = _unsupported(array, path)
        if reason is not None:
            self._leave_out(path, reason)
            return False
        found = before.get(path) if before is not None else None
        target = staged.get(path)
        if isinstance(target, StagedGroup):
            del staged[path]
        is_new = not isinstance(target, StagedArray) or target.whole is not None or not isinstance(found, Array)
        if is_new or not isinstance(target, StagedArray):
            target = self._new(staged, path, array)
        store = store_of(target, self.stores)
        _check_same(store, array, path)
        check_chunk_count(path, array.shape, store.chunk_shape)
        old = found if isinstance(found, Array) and not is_new else None
        _Filling(self, array, target, store, *self._grids(path, array, old)).fill()
        self._attributes(target.attrs, array, path)
        return True

    def _grids(
        self, path: str, array: Array, old: Array | None
    ) -> tuple[StoredGrid | None, StoredGrid | None, Mask | None]:
        """Where the chunks of an array and of the one before it are, and which are equal, if that is known already."""
        pair = self._compared.get(path)
        if pair is None or old is None or (pair.new.shape, pair.new.chunk_shape) != (array.shape, array.chunks):
            return StoredGrid.of(array), None if old is None else StoredGrid.of(old), None
        return pair

    def _new(self, staged: StagedGroup, path: str, array: Array) -> StagedArray:
        """Stage an array like the source, without elements."""
        known = f"{DATA}/{path}/raw_data" in self.stores.file
        asked = None if known else self.chunks.get(path, self.chunks.get("", array.chunks))
        if asked is not None and len(asked) != array.ndim:
            raise UsageError(f"{path} has {array.ndim} axes: chunks of {asked} do not fit")
        options = {} if known else codec_options(_filters(array))
        fill = {} if array.dtype.hasobject else {"fillvalue": _fill(array)}
        return staged.put_array(path, array.shape, array.dtype, chunks=asked, **fill, **options)


@dataclass
class _Filling:
    """Gives each chunk of a staged array its slot."""

    receiving: Receiving
    array: Array
    target: StagedArray
    store: ChunkStore
    stored: StoredGrid | None
    old: StoredGrid | None
    equal: Mask | None

    def fill(self) -> None:
        array, target, store, received = self.array, self.target, self.store, self.receiving.received
        grid = chunk_counts(array.shape, store.chunk_shape)
        count = math.prod(grid)
        same, slots = self._same(grid)
        received.chunk_count += count
        received.same_count += int(same.sum())
        received.nbytes += 0 if self.stored is None else int(self.stored.lengths[self.stored.lengths > 0].sum())
        if same.all() and array.shape == target.shape and target.base is not None:
            return
        numbers = np.flatnonzero(~same)
        is_copied = self.stored is not None and self.stored.chunk_shape == store.chunk_shape
        if is_copied and self.stored is not None:
            numbers = numbers[self.stored.offsets[numbers] != NOWHERE]
        whole = tuple(length // chunk for length, chunk in zip(array.shape, store.chunk_shape, strict=True))
        index = (
            np.stack(np.unravel_index(numbers, grid), axis=1) if len(numbers) else np.empty((0, array.ndim), np.int64)
        )
        is_edge = (index >= whole).any(axis=1)
        can_copy = is_copied and self._is_alike()
        nbytes = math.prod(store.chunk_shape) * (POINTED_NBYTES if array.dtype.hasobject else array.dtype.itemsize)
        most = max(1, BATCH_NBYTES // max(1, nbytes))
        if not (can_copy and self._is_plain() and self._store_plain(numbers[~is_edge], slots, nbytes, most)):
            for box in _boxes(index[~is_edge], whole, most):
                self._store(box, grid, slots, can_copy)
        for at in index[is_edge].tolist():
            self._store([(one, one + 1) for one in at], grid, slots, False)
        if target.shape != array.shape:
            target.resize(array.shape)
        target.adopt(np.arange(count), slots)

    def _same(self, grid: tuple[int, ...]) -> tuple[Any, Slots]:
        """Which chunks are those of the version before; and the slots of these."""
        array, target, chunk_shape = self.array, self.target, self.store.chunk_shape
        slots = np.full(math.prod(grid), MISSING, np.int64)
        same = np.zeros(len(slots), bool)
        if self.stored is None or self.old is None or target.base is None or self.old.shape != target.shape:
            return same, slots
        equal = self.stored.same(self.old) if self.equal is None else self.equal
        same = equal if self.stored.chunk_shape == chunk_shape else ~self.stored.covered(~equal, chunk_shape)
        axes, shapes = [], zip(array.shape, target.shape, chunk_shape, grid, strict=True)
        for length, before, chunk, many in shapes:
            starts = np.arange(many) * chunk
            axes.append(np.clip(length - starts, 0, chunk) == np.clip(before - starts, 0, chunk))
        fitting = np.ones((), bool)
        for along in axes:
            fitting = np.logical_and.outer(fitting, along)
        same &= fitting.reshape(-1)
        places = np.unravel_index(np.flatnonzero(same), grid)
        slots[same] = target.staged.stored[places]
        return same, slots

    def _is_alike(self) -> bool:
        """Whether the stored bytes of a chunk mean the same in the file with the versions."""
        if self.stored is None or self.array.dtype != self.store.dtype or has_padding(self.store.dtype):
            return False  # what means nothing is zeros in chunks that we hash, but anything in those of others
        return self.stored.fits(_filters(self.array), filters_in(self.store.raw))

    def _is_plain(self) -> bool:
        """Whether the stored bytes of a whole chunk are its elements as we hash them."""
        return not _filters(self.array) and not self.store.dtype.hasobject

    def _store_plain(self, numbers: Slots, slots: Slots, nbytes: int, most: int) -> bool:
        """Find or store whole chunks without codecs, many at a time: what is read is hashed and written as it is.
        Returns False, with nothing done, if a chunk has another length.
        """
        stored, store, received = self.stored, self.store, self.receiving.received
        if stored is None or (stored.lengths[numbers] != nbytes).any():
            return False
        memory = self.receiving.memory(most * nbytes).reshape(most, nbytes)
        shapes, width = (self.array.shape, store.chunk_shape), store.dtype.itemsize
        for first in range(0, len(numbers), most):
            raise_pending_signals()
            some = numbers[first : first + most]
            rows = memory[: len(some)]
            if not stored.gather(some, rows):
                raise DamagedFile(f"{self.array.name} of {self.array.filename}: the file ends within its chunks")
            digests = hash_staged(rows.reshape(-1), np.arange(len(some)), some, shapes, width)
            slots[some], new = store.find(digests)
            received.new_count += len(new)
            received.found_count += len(some) - len(new)
            if len(new):
                chosen = rows if len(new) == len(rows) else rows[new]
                chunks = chosen.view(store.dtype).reshape(-1, *store.chunk_shape)
                lengths = np.full(len(new), store.chunk_shape[0], np.int64)
                store.append(np.frombuffer(digests, f"V{DIGEST_NBYTES}")[new].tobytes(), chunks, lengths)
        return True

    def _store(self, box: list[tuple[int, int]], grid: tuple[int, ...], slots: Slots, can_copy: bool) -> None:
        """Find or store the chunks of a box of the grid."""
        raise_pending_signals()
        array, store, received = self.array, self.store, self.receiving.received
        axes = zip(box, store.chunk_shape, array.shape, strict=True)
        part = tuple(slice(start * chunk, min(stop * chunk, length)) for (start, stop), chunk, length in axes)
        is_one = all(stop - start == 1 for start, stop in box)  # which one thread decodes before others have started
        elements = as_elements(np.asarray(array.read(part, threads=1 if is_one else None)), store.dtype)
        held = StagedArray(self.target.name, store.chunk_shape, store.dtype, self.target.fillvalue, whole=elements)
        chunks = WholeChunks(held)
        numbers = np.ravel_multi_index(np.ix_(*(range(*one) for one in box)), grid).reshape(-1).astype(np.int64)
        digests = chunks.digests(chunks.numbers)
        slots[numbers], new = store.find(digests)
        received.new_count += len(new)
        received.found_count += len(numbers) - len(new)
        if not len(new):
            return
        inner = math.prod(grid[1:])
        length = store.chunk_shape[0]
        lengths = np.minimum(length, array.shape[0] - numbers[new] // inner * length)
        chosen = np.frombuffer(digests, f"V{DIGEST_NBYTES}")[new].tobytes()
        if can_copy and self.stored is not None:
            store.append_stored(chosen, self.stored.read(numbers[new]), lengths)
        else:
            store.append(chosen, chunks.gather(chunks.numbers[new]), lengths)


def _boxes(index: Any, grid: tuple[int, ...], most: int) -> Iterator[list[tuple[int, int]]]:
    """Boxes of a grid that together are some chunks of it, in order: as many rows at a time as fit, else single
    chunks.
    """
    if not len(index):
        return
    inner = math.prod(grid[1:])
    rows, counts = np.unique(index[:, 0], return_counts=True)
    rest = [(0, count) for count in grid[1:]]
    full = rows[counts == inner] if inner <= most else rows[:0]
    for start, stop in runs(full).tolist() if len(full) else ():
        step = max(1, most // inner)
        yield from ([(first, min(stop, first + step)), *rest] for first in range(start, stop, step))
    yield from ([(at, at + 1) for at in one] for one in index[~np.isin(index[:, 0], full)].tolist())


def _unsupported(array: Array, path: str) -> str | None:
    """Why a version cannot hold an array; None if it can."""
    if array.damaged:
        raise DamagedFile(f"{array.name} of {array.filename}: {array.damaged}")
    if "%" in path or path.split("/", 1)[0] == "versions":
        return "versions cannot have arrays with this name"
    if array.is_null or not array.ndim:
        return "it has no axes, which the layout of versions cannot store"
    if array.unsupported:
        return array.unsupported
    dtype = array.dtype
    if dtype.hasobject and not is_text(dtype):
        return "its elements have a variable length, and are no text"
    return "its elements are arrays" if dtype.subdtype is not None else None


def _check_same(store: ChunkStore, array: Array, path: str) -> None:
    """Refuse an array that cannot be another version of the one at its path."""
    if array.dtype != store.dtype and not (is_text(array.dtype) and is_text(store.dtype)):
        said = f"{path} has the dtype {array.dtype} in {array.filename}, and {store.dtype} in the versions before"
        raise UsageError(f"{said}: convert one of them first (`modify_metadata` changes all versions)")
    if array.ndim != len(store.chunk_shape):
        raise UsageError(f"{path} has {array.ndim} axes in {array.filename}, and {len(store.chunk_shape)} before")
    if not store.dtype.hasobject and element_bytes(_fill(array), store.dtype) != element_bytes(store.fill, store.dtype):
        said = f"{path} has the fill value {_fill(array)} in {array.filename}, and {store.fill} in the versions before"
        raise UsageError(f"{said}: convert one of them first (`modify_metadata` changes all versions)")


def _fill(array: Array) -> Any:
    return fill_element(array.dtype, array.fill_value)


def _filters(array: Array) -> list[tuple[int, Any]]:
    """The HDF5 filters of an array; of a version's array those of its chunks. Other formats have none."""
    if f"/{VERSIONS}/" in array.name:
        return list(filters_of(array.filename, raw_path(path_in_version(array.name))))
    return list(array.filters)


def remove_others(staged: StagedGroup, names: frozenset[str], prefix: str = "") -> None:
    """Remove everything that was not put there."""
    for name in list(staged):
        path = f"{prefix}{name}"
        if path not in names:
            del staged[name]
        elif isinstance(staged[name], StagedGroup):
            remove_others(staged[name], names, f"{path}/")  # type: ignore[arg-type]

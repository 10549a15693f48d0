"""`ChunkStore`: all chunks that an array ever had, and the table of their hashes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import numpy.typing as npt
from h5py._objects import phil

from hyperslab import libhdf5
from hyperslab._core import ChunkTable
from hyperslab.cached import cached_property
from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import DamagedFile, Unsupported
from hyperslab.versions.commit.attributes import integer, put_integer, put_integers
from hyperslab.versions.commit.codec_options import filters_in
from hyperslab.versions.commit.hash_rows import HashRows
from hyperslab.versions.layout.fingerprints import Fingerprints, keys_of, with_few_chunks
from hyperslab.versions.layout.names import (
    DATA,
    HASH_TABLE_CHUNK_LENGTH,
    HASH_TABLE_DTYPE,
    Array,
    chunk_hash,
)
from hyperslab.versions.layout.padding import as_stored, element_bytes, filled
from hyperslab.versions.layout.slots import check_chunk_count

if TYPE_CHECKING:
    from hyperslab.journal.journaled_file import JournaledFile

TABLE, COUNT = "hash_table", "largest_index"
TABLE_NBYTES = 1 << 19  # of its chunks that libhdf5 keeps; one of versioned-hdf5 has 196,608
# More slots without a hash than this cannot be left over from commits: the shape is damaged.
MOST_GAPS = 1 << 22
OUR_FILTERS = (h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32, h5py.h5z.FILTER_LZF)


def make_store(
    file: h5py.Group, path: str, dtype: Any, chunk_shape: tuple[int, ...], fill: Any, options: dict[str, Any]
) -> None:
    """Create the arrays for an array's chunks and hashes, without any chunk."""
    group, raw_dtype = file[DATA].require_group(path), np.dtype(dtype)
    raw = group.create_dataset(
        "raw_data",
        shape=(0, *chunk_shape[1:]),
        maxshape=(None, *chunk_shape[1:]),
        chunks=chunk_shape,
        dtype=dtype,
        fillvalue=None if fill is None else as_stored(fill, raw_dtype),
        **options,
    )
    put_integers(raw, "chunks", chunk_shape)
    if TABLE in group:  # of chunks that are gone
        del group[TABLE]
    table_in(group)


def table_in(group: h5py.Group) -> Any:
    """The table of an array's hashes. If there is none, it is created, and no chunk has a known hash.

    versioned-hdf5's `rebuild_hashtables` deletes the table of an array that no version has any more.
    """
    if TABLE in group:
        return group[TABLE]
    table = group.create_dataset(
        TABLE,
        shape=(1,),
        maxshape=(None,),
        chunks=(HASH_TABLE_CHUNK_LENGTH,),
        dtype=HASH_TABLE_DTYPE,
        compression="lzf",
    )
    table.attrs[COUNT] = 0
    return table


class ChunkStore:
    """The chunks of one array, over all versions. It only grows.

    Parameters
    ----------
    file : h5py.Group
        The file, or the group that holds the versions.
    path : str
        The path of the array in a version.
    journaled : JournaledFile | None
        What libhdf5 writes to, if the file is ours.
    """

    def __init__(self, file: h5py.Group, path: str, journaled: JournaledFile | None = None) -> None:
        group = file[f"{DATA}/{path}"]
        self.path = path
        self._journaled = journaled
        self.raw: Any = with_few_chunks(group, "raw_data", 0)  # chunks are read and written as a whole
        table_in(group)
        self._table: Any = with_few_chunks(group, TABLE, TABLE_NBYTES)
        self.chunk_shape: tuple[int, ...] = self.raw.chunks
        self.name: str = self.raw.name
        self.dtype: np.dtype[Any] = self.raw.dtype
        self._row_count = row_count(self._table)
        rows = self._table[: self._row_count]
        slots = np.ascontiguousarray(rows["shape"][:, 0] // self.chunk_shape[0])
        # versioned-hdf5's `rebuild_hashtables` leaves rows out, even of chunks that versions show: it keeps one of
        # two equal chunks. So the count covers every slot that the stack has room for.
        self.count: int = max(self._row_count, int(slots.max(initial=-1)) + 1, room(self.raw))
        if self.count > self._row_count + MOST_GAPS:
            said = f"{self.name} in {self.raw.file.filename} has room for {self.count} chunks"
            raise DamagedFile(f"{said}, and {self._row_count} hashes: hyperslab.versions.repair may help")
        self._slots = ChunkTable(np.ascontiguousarray(rows["hash"]).tobytes(), slots)
        self._filters = filters_of(self.raw)
        self._rows = HashRows(self._table, filters_of(self._table), rows)
        self._new: list[tuple[bytes, npt.NDArray[np.int64]]] = []  # chunks whose hashes are not stored yet
        self._keys = [keys_of(rows, self.chunk_shape[0])]  # by slot, in pieces

    @property
    def keys(self) -> npt.NDArray[np.int64]:
        """The first 8 bytes of the hash of the chunk in each slot."""
        if len(self._keys) > 1:
            self._keys = [np.concatenate(self._keys)]
        return self._keys[0]

    @property
    def table_address(self) -> int:
        """The address of the table of hashes in the file."""
        return int(h5py.h5o.get_info(self._table.id).addr)

    @property
    def is_current(self) -> bool:
        """Whether nobody else has added chunks or replaced these tables."""
        return bool(self.raw and self._table) and integer(self._table, COUNT) == self._row_count

    def read(self, slots: npt.NDArray[np.int64]) -> Array:
        """Chunks by their slots, stacked along a new first axis."""
        length = self.chunk_shape[0]
        return np.stack([self.raw[slot * length : (slot + 1) * length] for slot in slots.tolist()])

    @cached_property
    def _nothing(self) -> bytes:
        """The hash of a chunk that holds only the fill value. Such a chunk is never stored."""
        fill = "" if self.dtype.hasobject else self.fill[()]
        return chunk_hash(filled(self.chunk_shape, fill, self.dtype))

    def find(self, digests: bytes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The slots where chunks with these hashes are, or will be, and the numbers of the chunks that are new.

        Chunks that hold only the fill value have the slot -1.
        """
        return self._slots.find(digests, self._nothing, self.count)

    def append(self, digests: bytes, chunks: Array, lengths: npt.NDArray[np.int64]) -> None:
        """Store new chunks. They count only after `settle`.

        Parameters
        ----------
        digests : bytes
            The hashes of the chunks.
        chunks : Array
            The chunks, whole, stacked along a new first axis.
        lengths : npt.NDArray[np.int64]
            How many rows of each chunk are inside the array.
        """
        first = self._make_room(len(chunks))
        self._write(first, chunks)
        self._note(digests, first, lengths)

    def append_stored(
        self, digests: bytes, chunks: Iterable[tuple[bytes, int]], lengths: npt.NDArray[np.int64]
    ) -> None:
        """Store new chunks with the bytes that another file has for them; otherwise like `append`.

        Parameters
        ----------
        digests : bytes
            The hashes of the chunks.
        chunks : Iterable[tuple[bytes, int]]
            The stored bytes of each chunk, and which codecs were skipped.
        lengths : npt.NDArray[np.int64]
            How many rows of each chunk are inside the array.
        """
        first = self._make_room(len(lengths))
        origin, is_left_out = (0,) * (len(self.chunk_shape) - 1), False
        for slot, (stored, mask) in enumerate(chunks, first):
            self.raw.id.write_direct_chunk((slot * self.chunk_shape[0], *origin), stored, mask)
            is_left_out |= bool(mask)
        if is_left_out:
            self._look_up_anew()
        self._note(digests, first, lengths)

    def _make_room(self, count: int) -> int:
        """Make the stack longer by some chunks. Returns the slot of the first."""
        self.raw.id.set_extent(((self.count + count) * self.chunk_shape[0], *self.chunk_shape[1:]))
        return self.count

    def _note(self, digests: bytes, first: int, lengths: npt.NDArray[np.int64]) -> None:
        """Note chunks that were stored."""
        self._slots.add(digests, first)
        known = sum(map(len, self._keys))
        self._keys += [np.zeros(first - known, np.int64), np.frombuffer(digests, "<i8").reshape(-1, 4)[:, 0]]
        self._new.append((digests, lengths))
        self.count = first + len(lengths)

    def settle(self) -> None:
        """Store the hashes of new chunks, and last their count."""
        if not self._new:
            return
        digests = b"".join(digests for digests, _ in self._new)
        lengths = np.concatenate([lengths for _, lengths in self._new])
        self._new.clear()
        length, last = self.chunk_shape[0], self.count
        first = last - len(lengths)
        begin = first if first == self._row_count else 0
        rows = np.zeros(last - begin, HASH_TABLE_DTYPE)
        starts = np.arange(begin, last) * length
        rows["shape"] = np.stack([starts, starts + length], axis=1)
        if begin < first:  # write all rows again, in the order of slots; a hash of zeros belongs to no chunk
            known = self._table[: self._row_count]
            rows[known["shape"][:, 0] // length] = known
        new = rows[first - begin :]
        new["hash"] = np.frombuffer(digests, np.uint8).reshape(-1, 32)
        new["shape"][:, 1] = new["shape"][:, 0] + lengths
        self._table.id.set_extent((last,))
        self._rows.write(begin, rows)
        put_integer(self._table, COUNT, last)
        self._row_count = last

    def _write(self, first: int, chunks: Array) -> None:
        """Store chunks: directly if we know all their filters, otherwise through libhdf5."""
        library = libhdf5.loaded()
        if library is None or self._filters is None:
            if not self.dtype.hasobject:
                chunks = chunks.view(self.dtype)  # which knows the encoding of text of fixed length
            self.raw[first * self.chunk_shape[0] :] = chunks.reshape(-1, *self.chunk_shape[1:])
            return
        data = as_bytes(chunks)
        with phil, nullcontext() if self._journaled is None else self._journaled.lasting(data):
            left_out = library.write_chunks(self.raw.id.id, first, data, self._filters)
        if left_out:
            self._look_up_anew()

    def _look_up_anew(self) -> None:
        """Make libhdf5 look up the last chunk in its index again. Releases 1.10 to 2.0 remember its position until the
        shape changes, but not which filters were left out, so they would decode what is not encoded.
        """
        shape = self.raw.shape
        self.raw.id.set_extent((shape[0] + 1, *shape[1:]))
        self.raw.id.set_extent(shape)

    def check_same(self, dtype: Any, chunk_shape: tuple[int, ...] | None, fill: Any) -> None:
        """Refuse an array that contradicts the array of earlier versions at its path.

        Raises
        ------
        ValueError
            The dtype, chunks or fill value differ.
        """
        theirs = self.raw.dtype
        if dtype is not None and dtype != theirs and not (is_text(dtype) and is_text(theirs)):
            raise ValueError(f"{self.path} has the dtype {theirs} in earlier versions, not {dtype}")
        if chunk_shape is not None and chunk_shape != self.chunk_shape:
            raise ValueError(f"{self.path} has chunks of {self.chunk_shape} in earlier versions, not {chunk_shape}")
        if fill is not None and not is_text(theirs) and element_bytes(fill, theirs) != element_bytes(self.fill, theirs):
            raise ValueError(f"{self.path} has the fill value {self.raw.fillvalue} in earlier versions, not {fill}")

    @property
    def fill(self) -> Array:
        """The fill value."""
        stored = self.raw.fillvalue
        return np.zeros((), self.dtype) if stored is None else np.asarray(stored, self.dtype)


class ChunkStores:
    """The chunks of all arrays of a file.

    Parameters
    ----------
    file : h5py.Group
        The file, or the group that holds the versions.
    journaled : JournaledFile | None
        What libhdf5 writes to, if the file is ours.
    """

    file: Any

    def __init__(self, file: h5py.Group, journaled: JournaledFile | None) -> None:
        self.file, self._journaled = file, journaled
        self._found: dict[str, ChunkStore] = {}
        self.fingerprints: Fingerprints = Fingerprints(file, is_ours=journaled is not None)
        self.commit_held: Callable[[], None] | None = None  # if versions may wait for the next commit

    def of_path(self, path: str, make: Callable[[], None] | None = None) -> ChunkStore:
        """The chunks of an array that has some, or for which `make` makes their arrays."""
        store = self._found.get(path)
        if store is None or not store.is_current:
            if make is not None and f"{DATA}/{path}/raw_data" not in self.file:
                make()
            store = self._found[path] = ChunkStore(self.file, path, self._journaled)
        return store

    def ready_to_parse(self) -> None:
        """Commit what is to be parsed. Raise `FileReplaced` if the path of a file that is ours leads to another file,
        or to none.
        """
        if self.commit_held is not None:
            self.commit_held()
        if self._journaled is not None:
            self._journaled.check_is_named()

    def settle(self) -> None:
        """Store the hashes of all new chunks."""
        for store in self._found.values():
            store.settle()


def row_count(table: Any) -> int:
    """How many rows of a table of hashes count.

    Raises
    ------
    DamagedFile
        The count is larger than the table.
    """
    count = integer(table, COUNT)
    most = min(table.shape[0], table.id.get_num_chunks() * table.chunks[0]) if table.chunks else table.shape[0]
    if not 0 <= count <= most:
        said = f"the count says {count} rows, but the table has {most}"
        raise DamagedFile(f"{table.name} in {table.file.filename}: {said}: hyperslab.versions.repair may help")
    return count


def room(raw: Any) -> int:
    """How many chunks a stack has room for; every chunk that a version shows is one of them.

    Raises
    ------
    Unsupported
        There are more than fit in memory.
    """
    check_chunk_count(f"{raw.name} in {raw.file.filename}", raw.shape, raw.chunks, Unsupported)
    return int(ceil_div(raw.shape[0], raw.chunks[0]))


def is_text(dtype: Any) -> bool:
    """Whether elements are text of variable length."""
    return bool(dtype.kind == "T" or (dtype.kind == "O" and h5py.check_string_dtype(dtype) is not None))


def filters_of(raw: Any) -> list[tuple[int, int]] | None:
    """The numbers of an array's filters, in order, each with its parameter; None if libhdf5 must encode its chunks."""
    if raw.dtype.hasobject:
        return None
    filters = []
    for number, values in filters_in(raw):
        if number not in OUR_FILTERS:
            return None
        filters.append((number, int(values[0]) if number in (h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE) else 0))
    return filters


def as_bytes(array: Array) -> npt.NDArray[np.uint8]:
    """The bytes of an array's elements, in C order."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)

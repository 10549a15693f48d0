"""Virtual arrays with exactly one mapping for each stored chunk, which versioned-hdf5 relies on."""

from __future__ import annotations

import struct
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from hyperslab import libhdf5
from hyperslab._core import mappings_block
from hyperslab.chunk_grid import chunk_counts
from hyperslab.errors import DamagedFile
from hyperslab.journal.journaled_file import JournaledFile
from hyperslab.versions.commit.attributes import put_integers, put_text
from hyperslab.versions.layout.padding import as_stored, element_bytes
from hyperslab.versions.layout.slots import MISSING, Slots

UNKNOWN_POSITION = b"\xff" * 8 + bytes(4)  # of the mappings, in a virtual array without any
HEAP_POSITION = np.dtype([("count", "<u4"), ("address", "<u8"), ("index", "<u4")])
LAYOUT, CONTINUATION = 0x08, 0x10  # messages of an object header
VIRTUAL = 3
MOST_WAITING_NBYTES = 1 << 26


class VirtualArrays:
    """Creates the virtual arrays of a commit.

    libhdf5 takes 10 to 20 µs and some kB of memory for each mapping. In a file that only we have open, we write all
    mappings of an array to the heap at once, with the bytes that libhdf5 would write, and put their position into the
    object header. libhdf5 forgets closed objects (see `writing.opened`), so it never holds anything else. In other
    files, and in those with superblock 2 or 3, libhdf5 adds one mapping after another.

    Parameters
    ----------
    file : h5py.File
        The file to write to.
    journaled : JournaledFile | None
        What libhdf5 writes to, if the file is ours.
    """

    def __init__(self, file: h5py.File, journaled: JournaledFile | None) -> None:
        self._file = file
        is_ours = journaled is not None and libhdf5.loaded() is not None
        self._journaled = journaled if is_ours and _is_plain(journaled) else None  # type: ignore[arg-type]
        self._waiting: list[tuple[int, npt.NDArray[np.uint8]]] = []
        self._waiting_nbytes = 0

    @property
    def is_fast(self) -> bool:
        """Whether mappings are written in one piece."""
        return self._journaled is not None

    def create(self, group: h5py.Group, name: str, shape: tuple[int, ...], slots: Slots, raw: Any, fill: Any) -> Any:
        """Create a virtual array without attributes.

        It is complete only after `finish`. Close it before that, and before you create the next one; until then no
        other link may lead to it. The parameters are those of `create_virtual`.
        """
        if self._waiting_nbytes > MOST_WAITING_NBYTES:
            self.finish()
        block = None
        if self._journaled is not None and (slots != MISSING).any():
            block = mappings_block(raw.name, shape, raw.chunks, np.ascontiguousarray(slots))
        made = create_virtual(group, name, shape, slots if block is None else slots[:0], raw, fill)
        if block is not None:
            self._waiting.append((h5py.h5o.get_info(made.id).addr, block))
            self._waiting_nbytes += block.nbytes
        return made

    def finish(self) -> None:
        """Write the mappings of all arrays created since. They must be closed."""
        if not self._waiting or self._journaled is None:
            return
        waiting, self._waiting, self._waiting_nbytes = self._waiting, [], 0
        stored = self._put_into_heap(self._journaled, [block for _, block in waiting])
        for (header, block), position in zip(waiting, np.frombuffer(stored, HEAP_POSITION).tolist(), strict=True):
            count, address, index = position
            if count != block.nbytes:
                raise DamagedFile(f"{self._journaled.path}: libhdf5 stored {count} bytes of {block.nbytes}")
            self._journaled.seek(_position_of_mappings(self._journaled, header))
            self._journaled.write(struct.pack("<QI", address, index))

    def _put_into_heap(self, journaled: JournaledFile, blocks: list[npt.NDArray[np.uint8]]) -> bytes:
        """Write bytes to the heap, and return the entries that say where they are.

        Elements of variable length are heap objects, and so are mappings. The array that holds such elements is never
        linked: it disappears when it is closed, and its heap objects stay.
        """
        kind = h5py.vlen_dtype(np.uint8)
        elements = np.empty(len(blocks), kind)
        for entry, block in enumerate(blocks):
            elements[entry] = block
        element = h5py.h5t.py_create(kind, logical=True)
        lent = h5py.h5d.create(self._file.id, None, element, h5py.h5s.create_simple((len(blocks),)))
        try:
            lent.write(h5py.h5s.ALL, h5py.h5s.ALL, elements, h5py.h5t.py_create(kind))
            lent.flush()
            return journaled.at(lent.get_offset(), len(blocks) * HEAP_POSITION.itemsize)
        finally:
            del lent


def put_bookkeeping(made: h5py.Dataset, raw_name: str, chunk_shape: tuple[int, ...]) -> None:
    """Give a virtual array the attributes that the layout needs."""
    put_text(made, "raw_data", raw_name)
    put_integers(made, "chunks", chunk_shape)


def _is_plain(journaled: JournaledFile) -> bool:
    """Whether object headers have version 1, without checksums, and addresses have 8 bytes."""
    start = journaled.at(0, 16)
    return start[:8] == b"\x89HDF\r\n\x1a\n" and start[8] < 2 and start[13:15] == b"\x08\x08"


def _position_of_mappings(journaled: JournaledFile, header: int) -> int:
    """The position of the address of the mappings, in the object header of a virtual array without mappings."""
    version, nbytes = struct.unpack("<B7xI4x", journaled.at(header, 16))
    blocks = [(header + 16, nbytes)] if version == 1 else []
    for start, length in blocks:  # the list grows in the loop
        messages, at = journaled.at(start, length), 0
        while at + 8 <= length:
            kind, count = struct.unpack_from("<HH", messages, at)
            at += 8
            if kind == CONTINUATION:
                blocks.append(struct.unpack_from("<QQ", messages, at))
            elif kind == LAYOUT and messages[at + 1] == VIRTUAL and messages[at + 2 : at + 14] == UNKNOWN_POSITION:
                return start + at + 2
            at += count
    raise DamagedFile(f"{journaled.path}: the object header at {header} is not that of the new virtual array")


def create_virtual(group: h5py.Group, name: str, shape: tuple[int, ...], slots: Slots, raw: Any, fill: Any) -> Any:
    """Create a virtual array of chunks of `raw`, without attributes.

    Parameters
    ----------
    group : h5py.Group
        The group to create it in.
    name : str
        Its name in the group.
    shape : tuple[int, ...]
        Its shape.
    slots : Slots
        The slot in `raw` of each chunk of its grid, in C order; -1 for the fill value.
    raw : h5py.Dataset
        The stack of all chunks, along axis 0.
    fill : scalar
        The fill value. Text of variable length ignores it and is always filled with "".

    Returns
    -------
    h5py.Dataset
        The virtual array.
    """
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.VIRTUAL)
    dtype = raw.dtype
    if dtype.kind != "O" and element_bytes(fill, dtype).strip(b"\0"):
        text = h5py.check_string_dtype(dtype)  # for text of fixed length, h5py would store an address as fill value
        plist.set_fill_value(as_stored(fill, dtype if text is None else h5py.string_dtype(text.encoding)))
    target = h5py.h5s.create_simple(shape)
    source = h5py.h5s.create_simple(raw.shape)
    library = libhdf5.loaded()
    if not len(slots):
        pass
    elif library is None:
        add_mappings_through_h5py(plist, target, source, shape, raw, slots)
    else:
        ids = (plist.id, target.id, source.id)
        library.add_mappings(ids, raw.name, shape, raw.chunks, np.ascontiguousarray(slots))
    target.select_all()
    made = h5py.h5d.create(group.id, name.encode(), raw.id.get_type(), target, plist)
    return h5py.Dataset(made)


def add_mappings_through_h5py(
    plist: Any, target: Any, source: Any, shape: tuple[int, ...], raw: Any, slots: Slots
) -> None:
    """Add the mapping of each chunk through h5py: like `LibHdf5.add_mappings`, but slower, with any h5py."""
    chunk_shape = raw.chunks
    name = raw.name.encode()
    grid_shape = chunk_counts(shape, chunk_shape)
    stored = np.flatnonzero(slots != MISSING)
    starts = np.stack(np.unravel_index(stored, grid_shape), axis=1) * chunk_shape
    blocks = np.minimum(np.asarray(shape) - starts, chunk_shape)
    one = (1,) * len(shape)
    rest = (0,) * (len(shape) - 1)
    rows = (slots[stored] * chunk_shape[0]).tolist()
    for start, block, row in zip(starts.tolist(), blocks.tolist(), rows, strict=True):
        target.select_hyperslab(tuple(start), one, block=tuple(block))
        source.select_hyperslab((row, *rest), one, block=tuple(block))
        plist.set_virtual(target, b".", name, source)

"""`Hdf5Array`: a chunked array of a new HDF5 file, whose chunks we encode; and arrays that libhdf5 writes."""

from __future__ import annotations

import math
from typing import Any

import h5py
import numpy as np
from h5py._objects import phil

from hyperslab._core import encode_chunks, write_slab
from hyperslab.chunk_grid import ceil_div
from hyperslab.conversion.codecs import BITSHUFFLE, Filter, Step
from hyperslab.conversion.filling import Box, Bytes, folded
from hyperslab.conversion.journal import Finished
from hyperslab.conversion.partial_file import PartialFile, Unwatched
from hyperslab.errors import UsageError
from hyperslab.versions.commit.libhdf5 import address


class Hdf5Array:
    """A chunked array. Our threads encode its chunks, and libhdf5 stores them as they are.

    Parameters
    ----------
    file : PartialFile | Unwatched
        What libhdf5 writes to.
    array : h5py.h5d.DatasetID
        The array.
    chunk_shape : tuple[int, ...]
        The shape of a chunk.
    steps : list[Step]
        How to encode chunks.
    fill : bytes
        One element with the fill value.
    threads : int | None
        How many threads encode.
    leaves_out_fill : bool
        Whether chunks that hold nothing but the fill value are not stored.
    """

    def __init__(
        self,
        file: PartialFile | Unwatched,
        array: Any,
        chunk_shape: tuple[int, ...],
        steps: list[Step],
        fill: bytes,
        threads: int | None,
        *,
        leaves_out_fill: bool,
    ) -> None:
        self._file = file
        self._array = array
        self._chunk_shape = chunk_shape
        self._steps = steps
        self._fill = fill
        self._threads = threads
        self._leaves_out_fill = leaves_out_fill

    @property
    def chunk_shape(self) -> tuple[int, ...]:
        """The shape of a chunk."""
        return self._chunk_shape

    def write(self, box: Box, data: Bytes) -> Finished:
        """Encode and write a slab."""
        function = address("H5Dwrite_chunk")
        if function is None:
            raise UsageError("h5py's libhdf5 is older than 1.10.4: install a newer h5py to convert")
        shape = [one.stop - one.start for one in box]
        start = [one.start for one in box]
        shapes = (shape, list(self._chunk_shape))
        with phil:
            try:
                checksums, sizes, masks = write_slab(
                    function, self._array.id, start, data, shapes, self._fill, self._steps, self._threads,
                    self._leaves_out_fill,
                )  # fmt: skip
            except RuntimeError:
                check(self._file)
                raise
        return Finished(folded(checksums), sizes, masks)

    is_replayable = True

    def replay(self, box: Box, finished: Finished) -> None:
        """Let libhdf5 give the chunks of a slab their places again."""
        assert finished.sizes is not None
        grid = [ceil_div(one.stop - one.start, chunk) for one, chunk in zip(box, self._chunk_shape, strict=True)]
        for number in np.flatnonzero(finished.sizes).tolist():
            index = np.unravel_index(number, grid)
            start = tuple(
                one.start + int(at) * chunk for one, at, chunk in zip(box, index, self._chunk_shape, strict=True)
            )
            mask = int(finished.masks[number]) if finished.masks is not None else 0
            stand_in = self._file.stand_in(int(finished.sizes[number]))
            self._array.write_direct_chunk(start, stand_in, mask)


class WrittenByLibhdf5:
    """An array that libhdf5 writes: contiguous, or with filters that only libhdf5 applies."""

    def __init__(self, file: PartialFile, array: Any, dtype: np.dtype[Any], unit: tuple[int, ...]) -> None:
        self._file = file
        self._array = array
        self._dtype = dtype
        self._unit = unit

    @property
    def chunk_shape(self) -> tuple[int, ...]:
        """The unit of checksums."""
        return self._unit

    def write(self, box: Box, data: Bytes) -> Finished:
        """Write a slab."""
        shape = tuple(one.stop - one.start for one in box)
        elements = data.view(self._dtype.base).reshape((*shape, *self._dtype.shape))
        there = self._array.get_space()
        if shape:
            there.select_hyperslab(tuple(one.start for one in box), shape)
        here = h5py.h5s.create_simple(shape) if shape else h5py.h5s.create(h5py.h5s.SCALAR)
        try:
            self._array.write(here, there, np.ascontiguousarray(elements), self._array.get_type())
        except (OSError, RuntimeError):
            check(self._file)
            raise
        shapes = (list(shape) or [1], list(self._unit) or [1])
        width = data.nbytes // max(math.prod(shape), 1)
        return Finished(folded(encode_chunks(data, shapes, bytes(width), [], None)), None, None)

    is_replayable = False

    def replay(self, box: Box, finished: Finished) -> None:
        """Never called: libhdf5 decides what it writes, so it writes it again."""


def check(file: PartialFile | Unwatched) -> None:
    """Raise the error of the disk that libhdf5 only reported as its own."""
    if file.failure is not None:
        raise file.failure


def creation_list(old: Any | None, chunk_shape: tuple[int, ...] | None, filters: list[Filter]) -> Any:
    """The property list of a new array, with everything of an old one that does not concern its layout."""
    has_elsewhere = old is not None and (old.get_external_count() or old.get_layout() == h5py.h5d.VIRTUAL)
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE) if old is None or has_elsewhere else old.copy()
    if old is not None and not has_elsewhere and made.get_nfilters():
        made.remove_filter(h5py.h5z.FILTER_ALL)
    if chunk_shape is None:
        if old is None or has_elsewhere or old.get_layout() == h5py.h5d.CHUNKED:
            made.set_layout(h5py.h5d.CONTIGUOUS)
        return made
    made.set_chunk(chunk_shape)
    if made.get_alloc_time() != h5py.h5d.ALLOC_TIME_INCR:
        made.set_alloc_time(h5py.h5d.ALLOC_TIME_INCR)
    for number, flags, values in filters:
        # The filter itself puts three values in front when an array is created.
        own = values[3:] if number == BITSHUFFLE and h5py.h5z.filter_avail(number) else values
        made.set_filter(number, flags, tuple(own))
    return made


def filters_of(plist: Any) -> list[Filter]:
    """The filters of a property list: number, flags and parameters of each."""
    found = [plist.get_filter(index) for index in range(plist.get_nfilters())]
    return [(number, flags, values) for number, flags, values, _ in found]

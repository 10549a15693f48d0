"""`Hdf5Array`: a chunked array of a new HDF5 file, whose chunks we encode; and arrays that libhdf5 writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any

import h5py
import numpy as np

from hyperslab.conversion.encoding import Box, Bytes, SlabEncoder, folded
from hyperslab.conversion.journal import Finished
from hyperslab.conversion.partial_file import PartialFile, Unwatched
from hyperslab.errors import UsageError
from hyperslab.journal.signals import defer_signals, raise_pending_signals
from hyperslab.libhdf5 import loaded
from hyperslab.storage.chain import OPTIONAL, Filter
from hyperslab.storage.hdf5_plugins import has_codec
from hyperslab.storage.table import FIRST_PLUGIN, parameters_put_before

FOREIGN_PLUGINS: set[int] = set()  # filters whose plugins have refused arrays in this process


class Hdf5Array:
    """A chunked array. Our threads encode its chunks, and libhdf5 stores them as they are.

    Parameters
    ----------
    file : PartialFile | Unwatched
        What libhdf5 writes to.
    array : h5py.h5d.DatasetID
        The array.
    encoder : SlabEncoder
        How to encode its chunks.
    """

    is_replayable = True

    def __init__(self, file: PartialFile | Unwatched, array: Any, encoder: SlabEncoder) -> None:
        self._file = file
        self.array = array
        self.encoder = encoder
        self.elsewhere: EncodesForHdf5 = EncodesForHdf5(replace(encoder, threads=1))

    @defer_signals()
    def write(self, box: Box, data: Bytes) -> Finished:
        """Encode and write a slab."""
        library = loaded()
        if library is None:
            raise UsageError("h5py's libhdf5 is older than 1.10.4: install a newer h5py to convert")
        shape = [one.stop - one.start for one in box]
        start = [one.start for one in box]
        encoder = self.encoder
        shapes = (shape, list(encoder.chunk_shape))
        try:
            checksums, sizes, masks = library.write_slab(
                self.array.id, start, data, shapes, encoder.fill, list(encoder.steps), encoder.threads,
                encoder.leaves_out_fill,
            )  # fmt: skip
        except RuntimeError:
            check(self._file)
            raise
        return Finished(folded(checksums), sizes, masks)

    @defer_signals()
    def put(self, box: Box, made: Encoded) -> Finished:
        """Write a slab that another process encoded."""
        sizes = np.zeros(len(made.chunks), np.uint64)
        masks = np.zeros(len(made.chunks), np.uint32)
        starts = self.encoder.starts(box)
        for number, (encoded, mask) in enumerate(made.chunks):
            if encoded is not None:
                sizes[number], masks[number] = len(encoded), mask
                self._put(tuple(starts[number].tolist()), encoded, mask)
        return Finished(made.checksum, sizes, masks)

    @defer_signals()
    def replay(self, box: Box, finished: Finished) -> None:
        """Let libhdf5 give the chunks of a slab their places again."""
        assert finished.sizes is not None
        starts = self.encoder.starts(box)
        for number in np.flatnonzero(finished.sizes).tolist():
            mask = int(finished.masks[number]) if finished.masks is not None else 0
            self._put(tuple(starts[number].tolist()), self._file.stand_in(int(finished.sizes[number])), mask)

    def _put(self, start: tuple[int, ...], encoded: bytes | memoryview, mask: int) -> None:
        try:
            self.array.write_direct_chunk(start, encoded, mask)
        except (OSError, RuntimeError):
            check(self._file)
            raise


@dataclass(frozen=True)
class Encoded:
    """A slab that was encoded: its checksum, and the bytes of each chunk (None if it is left out) with its mask."""

    checksum: int
    chunks: list[tuple[bytes | None, int]]


@dataclass(frozen=True)
class EncodesForHdf5:
    """Encodes slabs in another process; only this one writes the file."""

    encoder: SlabEncoder

    def make(self, box: Box, data: Bytes) -> Encoded:
        """Encode a slab."""
        chunks: list[tuple[bytes | None, int]] = []
        checksum = self.encoder.encode(box, data, lambda _, encoded, mask: chunks.append((encoded, mask)))
        return Encoded(checksum, chunks)


class WrittenByLibhdf5:
    """An array that libhdf5 writes: contiguous, or with filters that only libhdf5 applies.

    Parameters
    ----------
    file : PartialFile | Unwatched
        What libhdf5 writes to.
    array : h5py.h5d.DatasetID
        The array.
    dtype : np.dtype[Any]
        The dtype of its elements.
    encoder : SlabEncoder
        Without steps: only for checksums.
    """

    is_replayable = False
    elsewhere = None

    def __init__(self, file: PartialFile | Unwatched, array: Any, dtype: np.dtype[Any], encoder: SlabEncoder) -> None:
        self._file = file
        self.array = array
        self._dtype = dtype
        self.encoder = encoder

    @defer_signals()
    def write(self, box: Box, data: Bytes) -> Finished:
        """Write a slab."""
        shape = tuple(one.stop - one.start for one in box)
        elements = data.view(self._dtype.base).reshape((*shape, *self._dtype.shape))
        there = self.array.get_space()
        if shape:
            there.select_hyperslab(tuple(one.start for one in box), shape)
        here = h5py.h5s.create_simple(shape) if shape else h5py.h5s.create(h5py.h5s.SCALAR)
        try:
            self.array.write(here, there, np.ascontiguousarray(elements), self.array.get_type())
        except (OSError, RuntimeError):
            check(self._file)
            raise
        return Finished(self.encoder.checksum(box, data), None, None)

    def put(self, box: Box, made: Any) -> Finished:
        """Never called: no other process can do it."""
        raise NotImplementedError

    def replay(self, box: Box, finished: Finished) -> None:
        """Never called: libhdf5 decides what it writes, so it writes it again."""


def check(file: PartialFile | Unwatched) -> None:
    """Raise the error of the disk that libhdf5 only reported as its own."""
    if file.failure is not None:
        raise file.failure


def created_array(parent: Any, name: bytes, kind: Any, space: Any, settings: Any) -> Any:
    """Create an array. Its filters need not be able to encode: our threads do that.

    h5py's libhdf5 may find the plugins of another libhdf5 (importing netCDF4 sets HDF5_PLUGIN_PATH). They decode, but
    the array is refused when they look at its properties in their own libhdf5. So it is created without them.
    """
    raise_pending_signals()
    plugins = {number for number, flags, _ in filters_of(settings) if number >= FIRST_PLUGIN and flags & OPTIONAL}
    with _without_plugins() if plugins & FOREIGN_PLUGINS else nullcontext():
        try:
            return h5py.h5d.create(parent, name, kind, space, settings)
        except ValueError:
            if not plugins:
                raise
    FOREIGN_PLUGINS.update(plugins)
    for number in plugins:
        with suppress(RuntimeError, ValueError):  # it is not loaded, or in use
            h5py.h5z.unregister_filter(number)
    with _without_plugins():
        return h5py.h5d.create(parent, name, kind, space, settings)


@contextmanager
def _without_plugins() -> Iterator[None]:
    """Keep libhdf5 from loading plugins."""
    library = loaded()
    if library is None:
        yield
        return
    before, library.plugins = library.plugins, 0
    try:
        yield
    finally:
        library.plugins = before


def creation_list(
    old: Any | None, chunk_shape: tuple[int, ...] | None, filters: list[Filter], *, keeps_chunks: bool = False
) -> Any:
    """The property list of a new array, with everything of an old one that does not concern its layout.

    Setting chunks forgets that chunks at the edge have no filters, so it must not be done if they are copied as stored.
    Nothing is kept of the list of an array in external files, because no call removes their names from a list.
    """
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE) if old is None or old.get_external_count() else old.copy()
    has_filters = (
        bool(filters)
        and filters_of(made) == filters
        and not any(parameters_put_before(number) for number, *_ in filters)
    )
    if made.get_nfilters() and not has_filters:
        made.remove_filter(h5py.h5z.FILTER_ALL)
    if chunk_shape is None:
        if made.get_layout() in (h5py.h5d.CHUNKED, h5py.h5d.VIRTUAL):
            made.set_layout(h5py.h5d.CONTIGUOUS)
        return made
    if not keeps_chunks:
        made.set_chunk(chunk_shape)
    if made.get_alloc_time() != h5py.h5d.ALLOC_TIME_INCR:
        made.set_alloc_time(h5py.h5d.ALLOC_TIME_INCR)
    for number, flags, values in [] if has_filters else filters:
        # Some filters put values in front themselves when an array is created. To ask for others loads their plugins.
        put_before = parameters_put_before(number)
        own = values[put_before:] if put_before and h5py.h5z.filter_avail(number) else values
        with _without_plugins() if number in FOREIGN_PLUGINS else nullcontext():
            made.set_filter(number, flags, tuple(own))
    return made


def lacking(filters: Sequence[Filter]) -> str | None:
    """Why libhdf5 cannot create an array with these filters; None if it can."""
    missing = [number for number, flags, _ in filters if not flags & OPTIONAL and not has_codec(number)]
    if not missing:
        return None
    return f"its filter {missing[0]} is not installed, and HDF5 does not create arrays without it: install hdf5plugin"


def filters_of(plist: Any) -> list[Filter]:
    """The filters of a property list: number, flags and parameters of each."""
    filters = [plist.get_filter(index) for index in range(plist.get_nfilters())]
    return [(number, flags, values) for number, flags, values, _ in filters]

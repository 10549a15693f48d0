"""A version as a plain HDF5 file: its chunks are copied as they are stored, with types, codecs and fill values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from hyperslab.archive.array import Array as ArchiveArray
from hyperslab.archive.tree import Group
from hyperslab.chunk_grid import chunk_counts
from hyperslab.errors import DamagedFile, UsageError
from hyperslab.journal.locks import shared
from hyperslab.progress import Progress
from hyperslab.replacing import replacing
from hyperslab.versions.commit.attributes import copy_attribute, copy_attributes
from hyperslab.versions.commit.codec_options import filters_in
from hyperslab.versions.inspect.stored_bytes import StoredBytes
from hyperslab.versions.layout.elements import as_elements
from hyperslab.versions.layout.names import ARRAY_BOOKKEEPING, VERSION_BOOKKEEPING, raw_path, text_bytes

if TYPE_CHECKING:
    from hyperslab.versions.inspect.export import Exported

REPORTED_CHUNKS = 256
SLAB_NBYTES = 64 << 20


def write_hdf5(group: Group, stored: StoredBytes, target: Path, done: Exported, progress: Progress) -> None:
    """Write a version, and record what was written in `done`."""
    nodes: list[tuple[str, Group | ArchiveArray]] = []
    group.visititems(lambda path, node: nodes.append((path, node)))
    arrays = []
    with replacing(target) as beside, h5py.File(beside, "w") as file:
        with _source(group.filename) as source:
            stored.check()
            copy_attributes(source[group.name].id, file["/"].id, VERSION_BOOKKEEPING)
            for path, node in nodes:
                if isinstance(node, Group):
                    copy_attributes(source[node.name].id, file.require_group(path).id)
                    continue
                made = _made(file, path, node, source)
                for name in (one for one in node.attrs if one not in ARRAY_BOOKKEEPING):
                    # by name: HDF5 decodes all mappings of an array that it opens, and cannot if its path has a "%"
                    attribute = h5py.h5a.open(source.id, text_bytes(name), obj_name=text_bytes(node.name))
                    copy_attribute(attribute, made.id)
                arrays.append((path, node, made))
        for path, array, made in arrays:
            _copy_chunks(path, array, stored, made, done, progress)
            done.array_count += 1


@contextmanager
def _source(path: str) -> Iterator[Any]:
    """Open the file with h5py, for types and attributes. This never happens while a commit overwrites them."""
    with shared(path):
        try:
            try:
                file = h5py.File(path, "r", locking=False)
            except OSError:
                file = h5py.File(path, "r")  # this process already has it open with locking
        except OSError as error:
            raise UsageError(f"h5py cannot open {path}, whose types are needed: {error}") from error
        with file:
            yield file


def _made(file: Any, path: str, array: ArchiveArray, source: Any) -> Any:
    """Create an array without elements, with the type, codecs and fill value of the version's chunks."""
    if raw_path(path) not in source:
        raise DamagedFile(f"{array.filename}: the chunks of {path!r} are missing")
    raw = source[raw_path(path)]
    filters_in(raw)  # HDF5 creates no array whose codecs it lacks
    space = h5py.h5s.create_simple(array.shape, (h5py.h5s.UNLIMITED,) * array.ndim)  # a chunk may exceed the shape
    parent, _, name = path.rpartition("/")
    where = file[parent] if parent else file
    made = h5py.h5d.create(where.id, name.encode(), raw.id.get_type(), space, raw.id.get_create_plist())
    return h5py.Dataset(made)


def _copy_chunks(
    path: str, array: ArchiveArray, stored: StoredBytes, made: Any, done: Exported, progress: Progress
) -> None:
    segments = array.segments()
    if array.damaged:
        raise DamagedFile(f"{array.name} of {array.filename}: {array.damaged}")
    if array.dtype.hasobject or len(segments) > 1 or any(one.chunk_shape != made.chunks for one in segments):
        _encode_again(array, made)
        done.encoded_again.append(path)
        return
    for segment in segments:
        grid_shape = chunk_counts(array.shape, made.chunks)
        indices = np.stack(np.unravel_index(segment.indices().astype(np.int64), grid_shape), axis=1)
        files, masks = array.file_paths(), segment.filter_masks().tolist()
        columns = zip(segment.files().tolist(), segment.offsets().tolist(), segment.lengths().tolist(), strict=True)
        ranges = ((files[file], offset, length) for file, offset, length in columns)
        starts = (indices * made.chunks).tolist()
        for count, (start, mask, chunk) in enumerate(zip(starts, masks, stored.ranges(ranges), strict=True), 1):
            made.id.write_direct_chunk(tuple(start), chunk, mask)
            done.nbytes += len(chunk)
            if count % REPORTED_CHUNKS == 0 or count == len(starts):
                progress(path, count, len(starts))
        done.chunk_count += len(starts)


def _encode_again(array: ArchiveArray, made: Any) -> None:
    """Read the elements, and let HDF5 store them, some rows at a time."""
    row_nbytes = max(1, array.dtype.itemsize * math.prod(array.shape[1:]))
    rows = max(1, SLAB_NBYTES // row_nbytes // made.chunks[0]) * made.chunks[0]
    for start in range(0, array.shape[0], rows) if array.size else ():
        elements = np.asarray(array[start : start + rows])
        made[start : start + rows] = as_elements(elements, array.dtype)

"""Virtual arrays with exactly one mapping a stored chunk: what versioned-hdf5 relies on."""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np

from hyperslab.versions.staged_chunks import MISSING, Places


def create_virtual(group: h5py.Group, name: str, shape: tuple[int, ...], places: Places, raw: Any, fill: Any) -> Any:
    """A virtual array of chunks of `raw`.

    Args:
        group: Where it goes.
        name: Its name there.
        shape: Its shape.
        places: Of each chunk of its grid, in C order, the place in `raw`; -1 where the fill value is.
        raw: All chunks, stacked along axis 0.
        fill: What its elements are that are in no chunk; not heeded for text of any length, which is then empty.
    """
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.VIRTUAL)
    if raw.dtype.kind != "O" and np.asarray(fill, raw.dtype).tobytes().strip(b"\0"):
        plist.set_fill_value(np.asarray(fill, raw.dtype))
    target = h5py.h5s.create_simple(shape)
    add_mappings(plist, target, shape, raw.chunks, places, raw)
    made = h5py.h5d.create(group.id, name.encode(), raw.id.get_type(), target, plist)
    return h5py.Dataset(made)


def add_mappings(
    plist: Any, target: Any, shape: tuple[int, ...], chunk_shape: tuple[int, ...], places: Places, raw: Any
) -> None:
    """Add the mapping of each chunk, through h5py."""
    source = h5py.h5s.create_simple(raw.shape)
    name = raw.name.encode()
    grid_shape = tuple(-(-length // chunk) for length, chunk in zip(shape, chunk_shape, strict=True))
    stored = np.flatnonzero(places != MISSING)
    starts = np.stack(np.unravel_index(stored, grid_shape), axis=1) * chunk_shape
    blocks = np.minimum(np.asarray(shape) - starts, chunk_shape)
    one = (1,) * len(shape)
    rest = (0,) * (len(shape) - 1)
    rows = (places[stored] * chunk_shape[0]).tolist()
    for start, block, row in zip(starts.tolist(), blocks.tolist(), rows, strict=True):
        target.select_hyperslab(tuple(start), one, block=tuple(block))
        source.select_hyperslab((row, *rest), one, block=tuple(block))
        plist.set_virtual(target, b".", name, source)
    target.select_all()

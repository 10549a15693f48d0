"""Virtual arrays with exactly one mapping a stored chunk: what versioned-hdf5 relies on."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import h5py
import numpy as np
from h5py._objects import phil

from hyperslab._core import add_mappings
from hyperslab.versions.staged_chunks import MISSING, Places

FUNCTIONS = ("H5Sselect_hyperslab", "H5Pset_virtual")


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
        text = h5py.check_string_dtype(raw.dtype)  # of some length: h5py stores its address, unless we say of any
        plist.set_fill_value(np.asarray(fill, raw.dtype if text is None else h5py.string_dtype(text.encoding)))
    target = h5py.h5s.create_simple(shape)
    source = h5py.h5s.create_simple(raw.shape)
    functions = loaded_functions()
    if functions is None:
        add_mappings_through_h5py(plist, target, source, shape, raw, places)
    else:
        ids = (plist.id, target.id, source.id)
        with phil:
            add_mappings(functions, ids, raw.name, shape, raw.chunks, np.ascontiguousarray(places))
    target.select_all()
    made = h5py.h5d.create(group.id, name.encode(), raw.id.get_type(), target, plist)
    return h5py.Dataset(made)


def add_mappings_through_h5py(
    plist: Any, target: Any, source: Any, shape: tuple[int, ...], raw: Any, places: Places
) -> None:
    """Add the mapping of each chunk as h5py does it: the same as `add_mappings`, slowly, with any h5py."""
    chunk_shape = raw.chunks
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


@cache
def loaded_functions() -> tuple[int, int] | None:
    """Addresses of what `add_mappings` calls, in the libhdf5 that h5py uses; None if it is not found."""
    if h5py.version.hdf5_version_tuple < (1, 10, 0):
        return None
    try:
        library = ctypes.CDLL(h5py.h5s.__file__)  # its own symbols, and those of the libraries that it was linked to
        functions = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in FUNCTIONS]
    except (OSError, AttributeError):
        return None
    first, second = functions
    return (first, second) if first and second else None

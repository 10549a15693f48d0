"""What codecs cost a program that calls HDF5 by a certain library: each brings its own libhdf5, with its own zlib.

PyTables' wheel decodes deflate about 2.7 times as slowly as h5py's. So a sample is written by h5py, and read by the
library that the program has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np

from hyperslab.model.codec_sample import REPEATS, MeasuredCodec, SampleSeconds, compared_with_none
from hyperslab.storage.chain import CodecChain
from hyperslab.storage.hdf5_plugins import h5py_with_own_plugins
from hyperslab.timers import Timers


def _by_h5py(path: str) -> float:
    import h5py

    with h5py.File(path) as file:
        return _timed(partial(file["x"].__getitem__, ()))


def _by_netcdf(path: str) -> float:
    import netCDF4

    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        return _timed(partial(file["x"].__getitem__, slice(None)))


def _by_pytables(path: str) -> float:
    import tables

    with tables.open_file(path) as file:
        return _timed(file.get_node("/x").read)


# The libraries that call HDF5, by `Candidate.calling_library`, and how each reads the sample.
CALLERS: dict[str, Callable[[str], float]] = {"h5py": _by_h5py, "netCDF4": _by_netcdf, "PyTables": _by_pytables}


def measured_by(
    caller: str, sample: np.ndarray, chunk: tuple[int, ...], chains: Iterable[CodecChain]
) -> dict[CodecChain, MeasuredCodec]:
    """Measure chains of codecs as a library that calls HDF5 decodes them; those that it lacks are left out.

    Parameters
    ----------
    caller : str
        One of `CALLERS`.
    sample : np.ndarray
        The elements. They may be compound: HDF5 shuffles by their width.
    chunk : tuple[int, ...]
        The chunk shape to cut them into.
    chains : Iterable[CodecChain]
        The chains.
    """
    return compared_with_none(sample.nbytes, chains, lambda chain, path: _seconds(caller, sample, chunk, chain, path))


def _seconds(
    caller: str, sample: np.ndarray, chunk: tuple[int, ...], chain: CodecChain, path: Path
) -> SampleSeconds | None:
    """The least seconds to read the sample, and those to write it; None if the library cannot do it."""
    try:
        written, nbytes = _write(path, sample, chunk, chain)
        return SampleSeconds((min(CALLERS[caller](str(path)) for _ in range(REPEATS)), written), nbytes)
    except Exception:  # each library has its own exceptions for a filter or a type that it lacks
        return None


def _write(path: Path, sample: np.ndarray, chunk: tuple[int, ...], chain: CodecChain) -> tuple[float, int]:
    h5py = h5py_with_own_plugins()
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_chunk(chunk)
    width = sample.dtype.itemsize
    for number, flags, values in chain.hdf5(width, int(np.prod(chunk)) * width)[0]:
        made.set_filter(number, flags, values)
    with h5py.File(path, "w") as file:
        kind = h5py.h5t.py_create(sample.dtype, logical=True)
        array = h5py.Dataset(h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple(sample.shape), made))
        seconds = _timed(lambda: (array.__setitem__((), sample), file.flush()))
        return seconds, int(array.id.get_storage_size())


def _timed(call: Callable[[], object]) -> float:
    timers = Timers()
    with timers("call"):
        call()
    return timers.seconds["call"]

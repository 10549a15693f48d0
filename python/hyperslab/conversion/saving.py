"""`save`: writes a dataset of xarray as xarray does, but with all cores encoding.

xarray encodes the variables by its conventions and creates the file with its own engines. Only the elements of chunked
variables are written by us: chunks are encoded by our threads and stored as they are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hyperslab._core import ZarrArray as ArrayToWrite
from hyperslab.archive.zarr.encoding import document_of, steps_of
from hyperslab.conversion.checking import ZARR_DOCUMENTS
from hyperslab.conversion.converting import format_of, usual_memory
from hyperslab.conversion.encoding import Box, Bytes, SlabEncoder
from hyperslab.conversion.filling import Filler, Filling, Target
from hyperslab.conversion.journal import Finished
from hyperslab.conversion.meter import Meter
from hyperslab.conversion.reading import NON_COORDINATE_PREFIX
from hyperslab.conversion.wishes import usual_chunk_shape
from hyperslab.errors import DamagedFile, Unsupported, UsageError
from hyperslab.meant import meant_or_known
from hyperslab.needed import is_there, need, need_h5py
from hyperslab.replacing import replacing
from hyperslab.storage.chain import Step

# Below this, xarray writes a variable itself: encoding takes no time. In NetCDF4 it may only be tiny and in one piece:
# chunks and much else would otherwise stand in front of the chunk indexes.
SMALL_NBYTES = 1 << 18
TINY_NBYTES = 1 << 10
ROWS_NBYTES = 64 << 20


class Collector:
    """Takes the place of xarray's writer: keeps the large variables for us, and writes the others at once.

    Parameters
    ----------
    least_nbytes : int
        How many bytes a large variable has at least.
    keeps_chunks : bool
        Whether to keep all variables with chunks too.
    """

    def __init__(self, least_nbytes: int = SMALL_NBYTES, *, keeps_chunks: bool = False) -> None:
        self._least_nbytes = least_nbytes
        self._keeps_chunks = keeps_chunks
        self.kept: list[tuple[Any, Any]] = []

    def add(self, source: Any, target: Any, region: Any = None) -> None:
        """Keep a variable, or write it."""
        is_ours = source.dtype.kind in "biufcSmM" and source.ndim > 0 and source.size > 0
        is_large = source.nbytes >= self._least_nbytes or (self._keeps_chunks and _has_chunks(target))
        if region is None and is_ours and is_large and not _is_rounded(target):
            self.kept.append((source, target))
        elif region:
            target[region] = np.asarray(source)
        else:
            target[...] = np.asarray(source)

    def sync(self, compute: bool = True, **_: Any) -> None:
        """Nothing is left to compute."""


def save(
    given: Any,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    encoding: Mapping[str, Any] | None = None,
    unlimited_dims: Any = None,
    threads: int | None = None,
    memory: int | None = None,
    sync: bool = True,
) -> Path:
    """Write a dataset of xarray to NetCDF4 or Zarr as xarray does, with all cores encoding.

    The file appears under its name when it is complete, and replaces one that is there.

    Parameters
    ----------
    given : Any
        A dataset or a data array with a name; variables may be arrays of Dask.
    path : str | os.PathLike[str]
        Where to write.
    format : {"netcdf4", "zarr2", "zarr3"} | None
        The format; by default that of the suffix.
    encoding : Mapping[str, Any] | None
        As for `to_netcdf` and `to_zarr`: for each variable its dtype, chunks, compression, and so on.
    unlimited_dims : Any
        Dimensions that can grow, for NetCDF4.
    threads : int | None
        How many threads encode; by default one per core.
    memory : int | None
        The most bytes to use for slabs of Dask's arrays; by default half of what is available.
    sync : bool
        Whether to sync the result to disk before it gets its name.

    Returns
    -------
    Path
        The path of the result.

    Raises
    ------
    UsageError
        The format is unknown, or the options contradict each other.
    NoSpace
        The disk is full.
    """
    need("saving datasets", "xarray")
    target = Path(os.fspath(path))
    if hasattr(given, "to_dataset") and not hasattr(given, "data_vars"):
        given = given.to_dataset(name=given.name or "__xarray_dataarray_variable__")
    chosen = format_of(target, format)
    encodings = {name: dict(settings) for name, settings in (encoding or {}).items()}
    unknown = [name for name in encodings if name not in given.variables]
    if unknown:
        raise UsageError(
            f"there is no variable {unknown[0]!r} to encode{meant_or_known(unknown[0], map(str, given.variables))}"
        )
    most = usual_memory() if memory is None else memory
    if most < 1:
        raise UsageError("memory must be at least 1")
    if chosen in ("netcdf4", "hdf5"):
        need_h5py("saving NetCDF4")
        with replacing(target, is_synced=sync) as beside:
            _netcdf(given, beside, encodings, unlimited_dims, _Unjournaled(beside.parent, most), threads)
        return target
    need("saving Zarr", "zarr")
    with replacing(target, is_folder=True, is_synced=sync, marks=ZARR_DOCUMENTS) as beside:
        filler = _Unjournaled(beside.parent, most)
        _zarr(given, beside, 2 if chosen == "zarr2" else 3, encodings, filler, threads)
    return target


class _Unjournaled(Filler):
    """Fills arrays without a journal: an interrupted save starts again."""

    def __init__(self, folder: Path, memory: int) -> None:
        super().__init__(_NoJournal(folder), memory, Meter(None))  # type: ignore[arg-type]


class _NoJournal:
    def __init__(self, folder: Path) -> None:
        self.folder = folder  # of intermediate files: /tmp may be memory
        self.finished: Mapping[tuple[str, int], Finished] = {}

    def add(self, array: str, slab: int, finished: Finished) -> None:
        """Keep nothing."""


def _dump(
    given: Any, store: Any, encoding: dict[str, Any], unlimited_dims: Any, collector: Collector
) -> list[tuple[Any, Any]]:
    """Let xarray encode a dataset and create everything in a store."""
    try:
        from xarray.backends.writers import dump_to_store
    except ImportError:  # before 2026
        from xarray.backends.api import dump_to_store  # type: ignore[attr-defined,no-redef]
    dump: Any = dump_to_store
    dump(given, store, collector, encoding=encoding, unlimited_dims=unlimited_dims)
    return collector.kept


def _netcdf(
    given: Any, path: Path, encoding: dict[str, Any], unlimited_dims: Any, filler: Filler, threads: int | None
) -> None:
    import h5py

    from hyperslab.conversion.index_room import Indexed, IndexRoom, oldest

    if unlimited_dims is None:
        unlimited_dims = given.encoding.get("unlimited_dims", None)
    if isinstance(unlimited_dims, str):
        unlimited_dims = [unlimited_dims]
    store = _netcdf_store(path)
    collector = Collector(TINY_NBYTES, keeps_chunks=True)
    try:
        dumped = _dump(given, store, encoding, unlimited_dims, collector)
        kept = [(source, target.variable_name) for source, target in dumped]
    finally:
        store.close()
    with h5py.File(path, "r+") as file:
        fillings, by_h5py = [], []
        for source, name in kept:
            other = f"{NON_COORDINATE_PREFIX}{name}"  # then the array with the plain name is only a dimension
            array = file[other] if other in file else file[name]
            if array.shape != source.shape:
                array.resize(source.shape)
            is_plain = array.chunks is None and not hasattr(source, "compute")
            if array.dtype.itemsize == source.dtype.itemsize and not is_plain:
                fillings.append(_hdf5_filling(name, source, array, threads))
            else:
                by_h5py.append((source, array))
        room = IndexRoom(file, oldest(file))
        filled = [Indexed.of_filling(filling, filler) for filling in fillings]
        room.reserve([*filled, *(Indexed.of_small(array.id) for _, array in by_h5py)])
        filler.fill(fillings)
        for source, array in by_h5py:
            _by_rows(source, _Texts(array) if array.dtype.kind == "S" else array)
        room.close()


def _hdf5_filling(name: str, source: Any, array: Any, threads: int | None) -> Filling:
    from hyperslab.conversion.hdf5_target import Hdf5Array, WrittenByLibhdf5, filters_of
    from hyperslab.conversion.partial_file import Unwatched
    from hyperslab.storage.chain import hdf5_steps

    fill = np.asarray(array.fillvalue, array.dtype).tobytes()
    unit = array.chunks or usual_chunk_shape(array.shape, array.dtype.itemsize)
    filters = filters_of(array.id.get_create_plist())
    steps = hdf5_steps([(number, values) for number, _, values in filters])
    target: Target
    if array.chunks is None or steps is None:
        target = WrittenByLibhdf5(Unwatched(), array.id, array.dtype, SlabEncoder(unit, (), fill, threads))
    else:
        target = Hdf5Array(Unwatched(), array.id, SlabEncoder(unit, tuple(steps), fill, threads))
    return _filling(name, source, array.dtype, unit, fill, target)


def _by_rows(source: Any, target: Any) -> None:
    """Let the library write an array some rows at a time: nothing is encoded, or the library converts elements."""
    row = max(1, source.nbytes // source.shape[0])
    unit = (getattr(target, "shards", None) or getattr(target, "chunks", None) or (1,))[0]
    step = max(1, ROWS_NBYTES // (row * unit)) * unit
    for start in range(0, source.shape[0], step):
        target[start : start + step] = _elements(source[start : start + step])


class _Texts:
    """Writes text of fixed length as it is. h5py's own type would cut it: netCDF's ends in a zero, for which a single
    character has no room."""

    chunks = None

    def __init__(self, array: Any) -> None:
        self._array = array

    def __setitem__(self, rows: slice, elements: np.ndarray[Any, Any]) -> None:
        import h5py

        there = self._array.id.get_space()
        there.select_hyperslab((rows.start, *(0 for _ in elements.shape[1:])), elements.shape)
        here = h5py.h5s.create_simple(elements.shape)
        plain = np.ascontiguousarray(elements, self._array.dtype)
        self._array.id.write(here, there, plain, self._array.id.get_type())


def _variable(target: Any) -> Any:
    """The variable of netCDF4 or h5netcdf behind what xarray writes to; None if it is another thing."""
    return target.get_array(needs_lock=False) if hasattr(target, "get_array") else None


def _has_chunks(target: Any) -> bool:
    """Whether a variable is stored in chunks."""
    variable = _variable(target)
    if hasattr(variable, "chunking"):
        return bool(variable.chunking() != "contiguous")
    return getattr(variable, "chunks", None) is not None


def _is_rounded(target: Any) -> bool:
    """Whether netCDF4 rounds what is written to a variable: our engine would not."""
    variable = _variable(target)
    if not hasattr(variable, "ncattrs"):
        return False
    return "least_significant_digit" in variable.ncattrs() or bool(getattr(variable, "quantization", lambda: None)())


def _elements(part: Any) -> Any:
    """The elements of a part of an array, which may be one of Dask."""
    return np.asarray(part.compute() if hasattr(part, "compute") else part)


def _netcdf_store(path: Path) -> Any:
    """A store of xarray's for a new file, with whichever of its engines is installed."""
    if not is_there("h5netcdf"):
        need("saving NetCDF4", "netCDF4")
    if is_there("netCDF4"):
        from xarray.backends import NetCDF4DataStore

        store: Any = NetCDF4DataStore
        return store.open(str(path), mode="w", format="NETCDF4")
    from xarray.backends import H5NetCDFStore

    return H5NetCDFStore.open(str(path), mode="w")


def _zarr(given: Any, path: Path, version: int, encoding: dict[str, Any], filler: Filler, threads: int | None) -> None:
    from xarray.backends import ZarrStore

    from hyperslab.conversion.zarr_target import ZarrArray

    store = ZarrStore.open_group(str(path), mode="w", zarr_format=version, consolidate_on_close=True, write_empty=True)
    fillings = []
    for source, target in _dump(given, store, encoding, None, Collector()):
        document = document_of(target.metadata)
        ours = None if document is None else _ours(document, target.dtype)
        if document is None or ours is None or target.dtype.itemsize != source.dtype.itemsize:
            _by_rows(source, target)
            continue
        dtype, steps = ours
        fill = np.asarray(0 if target.fill_value is None else target.fill_value, dtype).tobytes()
        encoder = SlabEncoder(target.chunks, tuple(steps), fill, threads)
        writer = ZarrArray(path / target.path, json.loads(document), encoder)
        fillings.append(_filling(target.path, source, dtype, target.shards or target.chunks, fill, writer))
    filler.fill(fillings)
    store.close()


def _ours(document: bytes, dtype: np.dtype[Any]) -> tuple[np.dtype[Any], list[Step]] | None:
    """The dtype as stored and the steps of our encoder for an array of zarr-python; None if that has to write."""
    try:
        array = ArrayToWrite(document, "")
        stored = array.dtype
    except (Unsupported, DamagedFile, UsageError):
        return None
    steps = steps_of(document, dtype.itemsize) if array.is_writable and not dtype.hasobject else None
    return None if steps is None else (dtype.newbyteorder(stored.byteorder), steps)


def _filling(
    name: str,
    source: Any,
    dtype: np.dtype[Any],
    unit: tuple[int, ...],
    fill: bytes,
    target: Target,
) -> Filling:
    is_dask = hasattr(source, "compute") and hasattr(source, "chunks")
    own = tuple(max(lengths) for lengths in source.chunks) if is_dask else None

    def read(box: Box, data: Bytes) -> None:
        elements = _elements(source[box])
        shape = tuple(one.stop - one.start for one in box)
        data.view(dtype).reshape(shape)[...] = elements

    is_there = isinstance(source, np.ndarray) and source.flags.c_contiguous and source.dtype == dtype
    given = source.reshape(-1).view(np.uint8) if is_there else None
    return Filling(name, tuple(source.shape), dtype.itemsize, fill, own, unit, read, target, given)

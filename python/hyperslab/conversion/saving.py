"""`save`: writes a dataset of xarray as xarray does, but with all cores encoding.

xarray encodes the variables by its conventions and creates the file with its own engines. Only the elements of chunked
variables are written by us: chunks are encoded by our threads and stored as they are.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hyperslab.conversion.converting import format_of, usual_memory
from hyperslab.conversion.filling import Box, Bytes, Filler, Filling, Target
from hyperslab.conversion.journal import Finished
from hyperslab.conversion.zarr_steps import zarr_steps
from hyperslab.errors import UsageError
from hyperslab.meant import meant_or_known
from hyperslab.needed import is_there, need, need_h5py
from hyperslab.replacing import replacing

# Below this, xarray writes a variable itself: encoding takes no time.
SMALL_NBYTES = 1 << 18


class Collector:
    """Takes the place of xarray's writer: keeps the large variables for us, and writes the others at once."""

    def __init__(self) -> None:
        self.kept: list[tuple[Any, Any]] = []

    def add(self, source: Any, target: Any, region: Any = None) -> None:
        """Keep a variable, or write it."""
        is_large = source.nbytes >= SMALL_NBYTES and source.dtype.kind in "biufcSmM" and source.ndim > 0
        if region is None and is_large:
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
    found = format_of(target, format)
    encodings = {name: dict(settings) for name, settings in (encoding or {}).items()}
    unknown = [name for name in encodings if name not in given.variables]
    if unknown:
        raise UsageError(
            f"there is no variable {unknown[0]!r} to encode{meant_or_known(unknown[0], map(str, given.variables))}"
        )
    filler = _Unjournaled(memory or usual_memory(), threads)
    if found in ("netcdf4", "hdf5"):
        need_h5py("saving NetCDF4")
        with replacing(target, is_synced=sync) as beside:
            _netcdf(given, beside, encodings, unlimited_dims, filler, threads)
        return target
    need("saving Zarr", "zarr")
    with replacing(target, is_folder=True, is_synced=sync) as beside:
        _zarr(given, beside, 2 if found == "zarr2" else 3, encodings, filler, threads)
    return target


class _Unjournaled(Filler):
    """Fills arrays without a journal: an interrupted save starts again."""

    def __init__(self, memory: int, threads: int | None) -> None:
        super().__init__(_NoJournal(), memory, threads, None)  # type: ignore[arg-type]


class _NoJournal:
    folder = None
    finished: Mapping[tuple[str, int], Finished] = {}

    def add(self, array: str, slab: int, finished: Finished) -> None:
        """Keep nothing."""


def _dump(given: Any, store: Any, encoding: dict[str, Any], unlimited_dims: Any) -> Collector:
    """Let xarray encode a dataset and create everything in a store."""
    try:
        from xarray.backends.writers import dump_to_store
    except ImportError:  # before 2026
        from xarray.backends.api import dump_to_store  # type: ignore[attr-defined,no-redef]
    collector = Collector()
    dump: Any = dump_to_store
    dump(given, store, collector, encoding=encoding, unlimited_dims=unlimited_dims)
    return collector


def _netcdf(
    given: Any, path: Path, encoding: dict[str, Any], unlimited_dims: Any, filler: Filler, threads: int | None
) -> None:
    import h5py

    from hyperslab.conversion.codecs import hdf5_steps
    from hyperslab.conversion.hdf5_target import Hdf5Array
    from hyperslab.conversion.partial_file import Unwatched

    if unlimited_dims is None:
        unlimited_dims = given.encoding.get("unlimited_dims", None)
    if isinstance(unlimited_dims, str):
        unlimited_dims = [unlimited_dims]
    store = _netcdf_store(path)
    try:
        kept = _dump(given, store, encoding, unlimited_dims).kept
        by_libraries = []
        ours = []
        for source, target in kept:
            name = target.variable_name
            chunks = _chunks_of(store, name)
            if chunks is None:
                target[...] = np.asarray(source)
            else:
                ours.append((source, name, target))
    finally:
        store.close()
    with h5py.File(path, "r+") as file:
        fillings = []
        for source, name, _ in ours:
            array = file[name] if name in file else file[f"_nc4_non_coord_{name}"]
            steps = hdf5_steps([(number, values) for number, values in _filters(array)])
            if steps is None or array.dtype.itemsize != source.dtype.itemsize:
                by_libraries.append((source, array))
                continue
            if array.shape != source.shape:
                array.resize(source.shape)
            fill = np.asarray(array.fillvalue, array.dtype).tobytes()
            writer = Hdf5Array(Unwatched(), array.id, array.chunks, steps, fill, threads, leaves_out_fill=False)
            fillings.append(_filling(name, source, array.dtype, array.chunks, fill, writer))
        filler.fill(fillings)
        for source, array in by_libraries:
            if array.shape != source.shape:
                array.resize(source.shape)
            array[...] = np.asarray(source)


def _filters(array: Any) -> list[tuple[int, tuple[int, ...]]]:
    settings = array.id.get_create_plist()
    found = [settings.get_filter(index) for index in range(settings.get_nfilters())]
    return [(number, values) for number, _, values, _ in found]


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


def _chunks_of(store: Any, name: str) -> tuple[int, ...] | None:
    variable = store.ds.variables[name]
    if hasattr(variable, "chunking"):
        found = variable.chunking()
        return None if found == "contiguous" else tuple(found)
    return variable.chunks if variable.chunks is None else tuple(variable.chunks)


def _zarr(given: Any, path: Path, version: int, encoding: dict[str, Any], filler: Filler, threads: int | None) -> None:
    from xarray.backends import ZarrStore

    from hyperslab.conversion.zarr_target import ZarrArray

    store = ZarrStore.open_group(str(path), mode="w", zarr_format=version, consolidated=True, write_empty=True)
    fillings = []
    for source, target in _dump(given, store, encoding, None).kept:
        described = zarr_steps(target)
        if described is None or target.dtype.itemsize != source.dtype.itemsize:
            target[...] = np.asarray(source)
            continue
        chunks, shards, steps = described
        fill = np.asarray(0 if target.fill_value is None else target.fill_value, target.dtype).tobytes()
        folder = path / target.path
        writer = ZarrArray(folder, version, chunks, shards, steps, fill, threads, leaves_out_fill=False)
        fillings.append(_filling(target.path, source, target.dtype, shards or chunks, fill, writer))
    filler.fill(fillings)
    store.close()


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
        part = source[box]
        elements = np.asarray(part.compute() if is_dask else part)
        shape = tuple(one.stop - one.start for one in box)
        data.view(dtype).reshape(shape)[...] = elements

    return Filling(name, tuple(source.shape), dtype.itemsize, fill, own, unit, read, target)

"""netCDF-4 through netCDF4-python: HDF5 files with netCDF's dimensions, what climate data comes in.

Specification: https://docs.unidata.ucar.edu/nug/current/file_format_specifications.html. Library:
netCDF4-python (netCDF-C and HDF5 inside). Each array has dimensions of its own; a growable one has an
unlimited first dimension. Masking and scaling are off: what is read is what is in the file.

Without a layout, the library's default: fixed dimensions are contiguous, an unlimited one is chunked by one
row, and everything is prefilled. A layout that is asked for is not prefilled. netCDF-C defers the
definition of arrays until the first write.

With blosc, netCDF-C 4.10 fails on a chunk that does not become smaller instead of storing it as it is; the
error says so. Cannot express: shuffle without deflate (netCDF4-python drops it silently), lzf, codecs or
growth without chunks, shards. netCDF-C has a chunk cache of its own size; this format leaves it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from hyperslab._core import Hyperslab
from hyperslab.errors import MissingLibrary, TrialFailed, UsageError
from hyperslab.formats.contract import (
    ArrayFile,
    ArrayHandle,
    ArraySpec,
    Capabilities,
    Codec,
    Format,
    Installed,
    Need,
    StoredLayout,
)

# our codec -> what netCDF4-python calls it, and the flag that netCDF-C was built with it
_COMPRESSIONS = {
    "deflate": ("zlib", None),
    "zstd": ("zstd", "__has_zstandard_support__"),
    "blosc-lz4": ("blosc_lz4", "__has_blosc_support__"),
    "blosc-zstd": ("blosc_zstd", "__has_blosc_support__"),
}


class NetCDF4(Format):
    """netCDF-4 through netCDF4-python."""

    name: ClassVar[str] = "netcdf4"
    extension: ClassVar[str] = ".nc4"
    aliases: ClassVar[tuple[str, ...]] = (".nc",)
    capabilities: ClassVar[Capabilities] = Capabilities(
        codecs=frozenset(["shuffle", *_COMPRESSIONS]),
        chunks=True,
        append=True,
        byte_order="either",
        notes="shuffle only with deflate; blosc fails on incompressible chunks; codecs and growth need chunks",
    )
    default_layout: ClassVar[str] = "contiguous, prefilled"

    @classmethod
    def library(cls) -> Installed:
        """netCDF4-python, the netCDF-C and the HDF5 in it."""
        netcdf = import_netcdf()
        parts = (("netCDF-C", netcdf.__netcdf4libversion__), ("HDF5", netcdf.__hdf5libversion__))
        return Installed("netCDF4-python", netcdf.__version__, parts)

    def create(self, path: Path) -> ArrayFile:
        """Create an empty file."""
        return NetCDFFile(import_netcdf().Dataset(path, "x", format="NETCDF4"))

    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:
        """Open a file; netCDF-C reads the description of every array now."""
        return NetCDFFile(open_dataset(path, mode))

    def _reasons(self, spec: ArraySpec, need: Need) -> Iterator[str]:
        yield from super()._reasons(spec, need)
        if spec.layout is None:
            return
        if spec.layout.chunk_shape is None and spec.layout.codecs:
            yield "netCDF-4 codecs need chunks; give a chunk shape"
        if spec.layout.chunk_shape is None and spec.growable:
            yield "netCDF-4 arrays can grow only in chunks; give a chunk shape"
        yield from _codec_reasons([codec.name for codec in spec.layout.codecs])


def _codec_reasons(names: list[str]) -> Iterator[str]:
    if len(names) > 1 and names != ["shuffle", "deflate"]:
        yield f"netCDF4-python has no codec chain {'+'.join(names)}; use one codec, or shuffle+deflate"
    if names == ["shuffle"]:
        yield "netCDF4-python drops shuffle unless deflate follows it"
    for name in names:
        _, flag = _COMPRESSIONS.get(name, (None, None))
        if flag and not getattr(import_netcdf(), flag, 0):
            yield f"this netCDF-C was built without {name}; pip install netCDF4 has it"


class NetCDFFile(ArrayFile):
    """An open netCDF file of any variant."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def create_array(self, name: str, spec: ArraySpec) -> ArrayHandle:
        """Define the dimensions and the variable."""
        dimensions = [f"{name.replace('/', '_')}_{axis}" for axis in range(len(spec.shape))]
        for axis, dimension in enumerate(dimensions):
            self._dataset.createDimension(dimension, None if spec.growable and axis == 0 else spec.shape[axis])
        options = {} if spec.layout is None else self._options(spec.layout)
        return NetCDFArray(self._define(name, spec.dtype, dimensions, options))

    def open_array(self, name: str, spec: ArraySpec | None = None) -> ArrayHandle:  # noqa: ARG002 - says it itself
        """Look the variable up; netCDF-C has read its description when the file was opened."""
        return NetCDFArray(self._variable(name))

    def array_names(self) -> list[str]:
        """Every variable, in all groups."""
        return list(_names(self._dataset, ""))

    def describe(self, name: str) -> ArraySpec:
        """What the file says."""
        variable = self._variable(name)
        chunks = variable.chunking()
        growable = bool(variable.ndim) and variable.get_dims()[0].isunlimited()
        layout = StoredLayout(
            tuple(chunks) if isinstance(chunks, list) else None, None, tuple(_codecs(variable.filters()))
        )
        return ArraySpec(variable.shape, variable.dtype, layout, growable)

    def flush(self) -> None:
        """nc_sync."""
        with _writing(self._dataset.filepath()):
            self._dataset.sync()

    def close(self) -> None:
        """Close the file."""
        with _writing(self._dataset.filepath()):
            self._dataset.close()

    def _define(self, name: str, dtype: np.dtype[Any], dimensions: list[str], options: dict[str, Any]) -> Any:
        if dtype.isnative:
            return self._dataset.createVariable(name, dtype.newbyteorder("="), dimensions, **options)
        endian = {"<": "little", ">": "big"}[dtype.byteorder]
        return self._dataset.createVariable(name, dtype, dimensions, endian=endian, **options)

    def _options(self, layout: StoredLayout) -> dict[str, Any]:
        """The keyword arguments of createVariable that say this layout."""
        options: dict[str, Any] = {"fill_value": False}
        if layout.chunk_shape is None:
            return options | {"contiguous": True}
        options |= {
            "chunksizes": layout.chunk_shape,
            "shuffle": Codec("shuffle") in layout.codecs,
            "blosc_shuffle": 1,
        }
        for codec in layout.codecs:
            if codec.name in _COMPRESSIONS:
                options["compression"] = _COMPRESSIONS[codec.name][0]
                options["complevel"] = 4 if codec.level is None else codec.level
        return options

    def _variable(self, name: str) -> Any:
        try:
            return self._dataset[name]
        except (IndexError, KeyError) as error:
            names = ", ".join(self.array_names())
            raise UsageError(f"{self._dataset.filepath()} has no array {name!r}; it has {names}") from error


class NetCDFArray(ArrayHandle):
    """An open variable."""

    def __init__(self, variable: Any) -> None:
        self._variable = variable
        variable.set_auto_maskandscale(False)

    def write(self, data: np.ndarray, selection: Hyperslab | None = None) -> None:
        """nc_put_vara or nc_put_vars."""
        self._put(... if selection is None else selection.slices, data)

    def read(self, selection: Hyperslab | None = None) -> np.ndarray:
        """nc_get_vara or nc_get_vars."""
        found: np.ndarray = self._variable[... if selection is None else selection.slices]
        return found

    def append(self, data: np.ndarray) -> None:
        """Write behind the last row, which makes the unlimited dimension grow."""
        row_count = self._variable.shape[0]
        self._put(slice(row_count, row_count + data.shape[0]), data)

    def _put(self, place: Any, data: np.ndarray) -> None:
        with _writing(f"array {self._variable.name!r}"):
            self._variable[place] = data


@contextmanager
def _writing(what: str) -> Iterator[None]:
    """netCDF-C compresses when its cache is full, at a flush or at the end: each of them may be what fails."""
    try:
        yield
    except RuntimeError as error:
        raise TrialFailed(
            f"netCDF cannot write {what}: {error}; if the codec is blosc: netCDF's fails on chunks that do not "
            "become smaller, use zstd or deflate"
        ) from error


def _names(group: Any, prefix: str) -> Iterator[str]:
    yield from (prefix + name for name in group.variables)
    for name, child in group.groups.items():
        yield from _names(child, f"{prefix}{name}/")


def _codecs(filters: dict[str, Any] | None) -> Iterator[Codec]:
    """netCDF4-python's description of a filter chain as codecs, in the order of application."""
    if filters is None:
        return
    if filters["shuffle"]:
        yield Codec("shuffle")
    if filters["szip"]:
        yield Codec("szip")
    for key, name in (("zlib", "deflate"), ("zstd", "zstd"), ("bzip2", "bzip2")):
        if filters[key]:
            yield Codec(name, filters["complevel"])
    if filters["blosc"]:
        kind = {0: "-noshuffle", 1: "", 2: "-bitshuffle"}[filters["blosc"]["shuffle"]]
        name = filters["blosc"]["compressor"].replace("blosc_", "blosc-")
        yield Codec(name + kind, filters["complevel"])
    if filters["fletcher32"]:
        yield Codec("fletcher32")


def open_dataset(path: Path, mode: str) -> Any:
    """A netCDF file of any variant, opened."""
    try:
        return import_netcdf().Dataset(path, mode)
    except OSError as error:
        raise UsageError(f"{path}: netCDF cannot open it: {error}") from error


@cache
def import_netcdf() -> Any:
    """netCDF4-python."""
    try:
        import netCDF4
    except ImportError as error:
        raise MissingLibrary("netcdf needs netCDF4: pip install 'hyperslab[formats]' or pip install netCDF4") from error
    return netCDF4

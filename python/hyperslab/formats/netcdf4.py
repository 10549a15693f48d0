"""netCDF-4 through netCDF4-python: HDF5 files with netCDF's dimensions, the usual format of climate data.

Specification: https://docs.unidata.ucar.edu/nug/current/file_format_specifications.html. Library: netCDF4-python
(which contains netCDF-C and HDF5). Each array has its own dimensions; the first dimension of a growable array is
unlimited. Masking and scaling are off, so a read returns the values in the file.

If you give no layout, the library's defaults apply: arrays with fixed dimensions are contiguous, an array with an
unlimited dimension has chunks of one row, and everything is prefilled. If you give a layout, the file is not
prefilled. netCDF-C defers the definition of arrays until the first write.

With blosc, netCDF-C 4.10 fails on a chunk that does not become smaller, instead of storing it uncompressed; the
error message says so. Cannot express: shuffle without deflate (netCDF4-python drops it silently), lzf, codecs or
growth without chunks, shards. netCDF-C chooses the size of its chunk cache; this format does not change it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from hyperslab._core import Hyperslab
from hyperslab.errors import TrialFailed, UsageError
from hyperslab.formats.contract import (
    ArrayFile,
    ArrayHandle,
    ArraySpec,
    Capabilities,
    Format,
    Installed,
    Need,
    imported,
)
from hyperslab.storage.chain import Codec, CodecChain
from hyperslab.storage.layout import StoredLayout
from hyperslab.storage.table import TABLE

# our codec -> its name in netCDF4-python, and the flag that says whether netCDF-C was built with it
_FLAGS = {"zstd": "__has_zstandard_support__", "blosc": "__has_blosc_support__"}
_COMPRESSIONS = {
    row.name: (row.netcdf, _FLAGS.get(row.netcdf.partition("_")[0])) for row in TABLE if row.netcdf and row.step
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
        """netCDF4-python, and the netCDF-C and HDF5 that it contains."""
        netcdf = imported("netCDF4")
        parts = (("netCDF-C", netcdf.__netcdf4libversion__), ("HDF5", netcdf.__hdf5libversion__))
        return Installed("netCDF4-python", netcdf.__version__, parts)

    def create(self, path: Path) -> ArrayFile:
        """Create an empty file."""
        return NetCDFFile(imported("netCDF4").Dataset(path, "x", format="NETCDF4"))

    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:
        """Open a file; netCDF-C reads the description of every array now."""
        return NetCDFFile(open_dataset(path, mode))

    def _reasons(self, spec: ArraySpec, need: Need) -> Iterator[str]:
        yield from super()._reasons(spec, need)
        if spec.layout is None:
            return
        if spec.layout.contiguous and spec.layout.codecs:
            yield "netCDF-4 codecs need chunks; give a chunk shape"
        if spec.layout.contiguous and spec.growable:
            yield "netCDF-4 arrays can grow only in chunks; give a chunk shape"
        yield from _codec_reasons([codec.name for codec in spec.layout.codecs])


def _codec_reasons(names: list[str]) -> Iterator[str]:
    if len(names) > 1 and names != ["shuffle", "deflate"]:
        yield f"netCDF4-python has no codec chain {'+'.join(names)}; use one codec, or shuffle+deflate"
    if names == ["shuffle"]:
        yield "netCDF4-python drops shuffle unless deflate follows it"
    for name in names:
        _, flag = _COMPRESSIONS.get(name, (None, None))
        if flag and not getattr(imported("netCDF4"), flag, 0):
            yield f"this netCDF-C was built without {name}; install one that has it with pip install netCDF4"


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

    def open_array(self, name: str, spec: ArraySpec | None = None) -> ArrayHandle:  # noqa: ARG002 - the file describes itself
        """Look up the variable; netCDF-C read its description when it opened the file."""
        return NetCDFArray(self._variable(name))

    def array_names(self) -> list[str]:
        """The names of all variables in all groups."""
        return list(_names(self._dataset, ""))

    def describe(self, name: str) -> ArraySpec:
        """Read shape, dtype and layout from the file."""
        variable = self._variable(name)
        chunks = variable.chunking()
        growable = bool(variable.ndim) and variable.get_dims()[0].isunlimited()
        layout = StoredLayout(
            tuple(chunks) if isinstance(chunks, list) else None, codecs=CodecChain(_codecs(variable.filters()))
        )
        return ArraySpec(variable.shape, variable.dtype, layout, growable)

    def flush(self) -> None:
        """Call nc_sync."""
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
        """The keyword arguments of createVariable for this layout."""
        options: dict[str, Any] = {"fill_value": False}
        if layout.contiguous:
            return options | {"contiguous": True}
        options |= {"chunksizes": layout.chunk_shape, "shuffle": Codec("shuffle") in layout.codecs, "blosc_shuffle": 1}
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
        """Call nc_put_vara or nc_put_vars."""
        self._put(... if selection is None else selection.slices, data)

    def read(self, selection: Hyperslab | None = None) -> np.ndarray:
        """Call nc_get_vara or nc_get_vars."""
        elements: np.ndarray = self._variable[... if selection is None else selection.slices]
        return elements

    def append(self, data: np.ndarray) -> None:
        """Write after the last row, which makes the unlimited dimension grow."""
        row_count = self._variable.shape[0]
        self._put(slice(row_count, row_count + data.shape[0]), data)

    def _put(self, key: Any, data: np.ndarray) -> None:
        with _writing(f"array {self._variable.name!r}"):
            self._variable[key] = data


@contextmanager
def _writing(what: str) -> Iterator[None]:
    """Name what failed: netCDF-C may compress at a write, a flush or a close, so each of these can fail."""
    try:
        yield
    except RuntimeError as error:
        raise TrialFailed(
            f"netCDF cannot write {what}: {error}; if the codec is blosc, use zstd or deflate instead: netCDF's blosc "
            "fails on chunks that do not become smaller"
        ) from error


def _names(group: Any, prefix: str) -> Iterator[str]:
    yield from (prefix + name for name in group.variables)
    for name, child in group.groups.items():
        yield from _names(child, f"{prefix}{name}/")


def _codecs(filters: dict[str, Any] | None) -> Iterator[Codec]:
    """The codecs of a filter chain that netCDF4-python describes, in the order of encoding."""
    if filters is None:
        return
    if filters["shuffle"]:
        yield Codec("shuffle")
    for row in TABLE:
        if row.netcdf and filters.get(row.netcdf):
            yield Codec(row.name, filters["complevel"] if row.most else None)
    if blosc := filters["blosc"]:
        cname = blosc["compressor"].removeprefix("blosc_")
        yield Codec.of_zarr("blosc", {"cname": cname, "shuffle": blosc["shuffle"], "clevel": filters["complevel"]})
    if filters["fletcher32"]:
        yield Codec("fletcher32")


def open_dataset(path: Path, mode: str) -> Any:
    """Open a netCDF file of any variant."""
    try:
        return imported("netCDF4").Dataset(path, mode)
    except OSError as error:
        raise UsageError(f"{path}: netCDF cannot open it: {error}") from error

"""The classic netCDF formats through netCDF4-python: big-endian arrays after one header.

Specification: https://docs.unidata.ucar.edu/nug/current/file_format_specifications.html. Library: netCDF4-python
(which contains netCDF-C). Option `variant`: "classic" (CDF-1) or "64bit-offset" (CDF-2, the default). The file is
big-endian; the library converts to this machine's byte order.

The header comes first, so defining an array after you have written another moves the data of the file; define all
arrays before you write any. One array of a file can grow, because there is one record dimension.

Limits: one array (or one row of a growable array) has at most 2 GiB - 4 bytes in "classic" and 4 GiB - 4 bytes in
"64bit-offset". Cannot express: unsigned and 64-bit integers (CDF-5 could), chunks, codecs, groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from hyperslab.errors import Refused, UsageError
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
from hyperslab.formats.netcdf4 import NetCDF4, NetCDFFile, open_dataset
from hyperslab.storage.layout import StoredLayout

_VARIANTS = {"classic": ("NETCDF3_CLASSIC", 2**31 - 4), "64bit-offset": ("NETCDF3_64BIT_OFFSET", 2**32 - 4)}


@dataclass(frozen=True)
class NetCDF3(Format):
    """Classic netCDF through netCDF4-python."""

    variant: Literal["classic", "64bit-offset"] = "64bit-offset"

    name: ClassVar[str] = "netcdf3"
    extension: ClassVar[str] = ".nc3"
    aliases: ClassVar[tuple[str, ...]] = (".cdf",)
    capabilities: ClassVar[Capabilities] = Capabilities(
        dtypes=frozenset(["int8", "int16", "int32", "float32", "float64"]),
        append=True,
        byte_order="big",
        notes="the library converts the byte order; one growable array per file",
    )
    default_layout: ClassVar[str] = "contiguous, prefilled"

    def __post_init__(self) -> None:
        if self.variant not in _VARIANTS:
            raise UsageError(f"netcdf3 variant {self.variant!r}: the known ones are {', '.join(_VARIANTS)}")

    @classmethod
    def library(cls) -> Installed:
        """netCDF4-python, as for netcdf4."""
        return NetCDF4.library()

    def create(self, path: Path) -> ArrayFile:
        """Create an empty file."""
        dataset = imported("netCDF4").Dataset(path, "w", clobber=False, format=_VARIANTS[self.variant][0])
        return NetCDF3File(dataset)

    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:
        """Open a file."""
        return NetCDF3File(open_dataset(path, mode))

    def _reasons(self, spec: ArraySpec, need: Need) -> Iterator[str]:
        yield from super()._reasons(spec, need)
        limit_nbytes = _VARIANTS[self.variant][1]
        nbytes = spec.nbytes // max(spec.shape[0], 1) if spec.growable else spec.nbytes
        if nbytes > limit_nbytes:
            what = "rows" if spec.growable else "arrays"
            yield f"netCDF-3 {self.variant} holds {what} of at most {limit_nbytes} bytes, but these have {nbytes}"


class NetCDF3File(NetCDFFile):
    """An open classic netCDF file."""

    def create_array(self, name: str, spec: ArraySpec) -> ArrayHandle:
        """Define the dimensions and the variable."""
        if "/" in name:
            raise Refused(f"array name {name!r}: netCDF-3 has no groups; use a name without '/'")
        if spec.growable and any(dimension.isunlimited() for dimension in self._dataset.dimensions.values()):
            raise Refused(f"array {name!r}: netCDF-3 has one record dimension, so a file has one growable array")
        return super().create_array(name, spec)

    def _define(self, name: str, dtype: np.dtype[Any], dimensions: list[str], options: dict[str, Any]) -> Any:
        # The file is big-endian in any case; the library accepts only this machine's types.
        return self._dataset.createVariable(name, dtype.newbyteorder("="), dimensions, **options)

    def _options(self, layout: StoredLayout) -> dict[str, Any]:  # noqa: ARG002 - contiguous is the only layout
        return {"fill_value": False}

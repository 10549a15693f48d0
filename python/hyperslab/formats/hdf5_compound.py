"""Tables in HDF5: a compound type, with one record per row whose fields lie side by side in the file.

Specification and library: as in hdf5. An array has one axis, the rows; its dtype is structured, and its fields are
numbers. `read_fields` and `write_field` give HDF5 a memory type with only the named fields; HDF5 still reads (and
for writing, rewrites) whole records.

The description of the type is one message in the object header, which may have at most 64 KiB. With five-character
names, that is 1092 fields of any number type in the old file format, and 2340 with `libver="latest"`, which is the
default here for this reason. hyperslab tries a type on a file in memory, and refuses it if it does not fit.

Cannot express: arrays that are not tables (use hdf5), tables with several axes, shards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from hyperslab.errors import Refused
from hyperslab.formats.contract import ArrayFile, ArrayHandle, ArraySpec, Capabilities, Need
from hyperslab.formats.hdf5 import Hdf5, Hdf5Array, Hdf5File, import_h5py


@dataclass(frozen=True)
class Hdf5Compound(Hdf5):
    """HDF5 compound types through h5py."""

    libver: str | None = "latest"

    name: ClassVar[str] = "hdf5-compound"
    extension: ClassVar[str] = ".h5"
    aliases: ClassVar[tuple[str, ...]] = ()
    capabilities: ClassVar[Capabilities] = replace(
        Hdf5.capabilities,
        compound=True,
        urls=False,
        field_write=True,
        max_ndim=1,
        notes="tables only; the description of the type may not exceed 64 KiB",
    )

    def create(self, path: Path) -> ArrayFile:
        """Create an empty file."""
        return Hdf5TableFile(self._open(path, "x"))

    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:
        """Open a file."""
        return Hdf5TableFile(self._open(path, mode))

    def _reasons(self, spec: ArraySpec, need: Need) -> Iterator[str]:
        yield from super()._reasons(spec, need)
        if spec.dtype.fields is None:
            yield "stores only compound types; use hdf5"
        elif not self._fits(spec.dtype):
            fields = len(spec.dtype.fields)
            yield f"the description of {fields} fields exceeds HDF5's 64 KiB ({self._format})"

    def _fits(self, dtype: np.dtype[Any]) -> bool:
        with import_h5py().File("fits", "w", libver=self.libver, driver="core", backing_store=False) as file:
            try:
                file.create_dataset("table", (0,), dtype)
            except ValueError:
                return False
        return True

    @property
    def _format(self) -> str:
        return "library's default file format" if self.libver is None else f"libver {self.libver!r}"


class Hdf5TableFile(Hdf5File):
    """An open HDF5 file of tables."""

    def create_array(self, name: str, spec: ArraySpec) -> ArrayHandle:
        """Create the table."""
        if spec.dtype.fields is None:
            raise Refused(f"array {name!r} of {spec.dtype}: hdf5-compound stores only compound types; use hdf5")
        return Hdf5Table(self._create_dataset(name, spec))

    def open_array(self, name: str, spec: ArraySpec | None = None) -> ArrayHandle:  # noqa: ARG002 - the file describes itself
        """Open the table."""
        return Hdf5Table(self._dataset(name))


class Hdf5Table(Hdf5Array):
    """An open table."""

    def read_fields(self, fields: Sequence[str]) -> np.ndarray:
        """Read these fields of all rows."""
        rows: np.ndarray = self._dataset.fields(list(fields))[()]
        return rows

    def write_field(self, field_name: str, data: np.ndarray) -> None:
        """Write one field of all rows."""
        self._dataset[field_name] = data

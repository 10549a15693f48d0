"""The null format does nothing, so that the harness can measure itself.

Writing drops the data. Reading returns zeros that were allocated when the array was created or opened. The format
accepts every study. Its times are a floor: a smaller difference between two formats means nothing.

Library: none. Cannot express: anything; only an empty directory is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from hyperslab._core import Hyperslab
from hyperslab.errors import UsageError
from hyperslab.formats.contract import ArrayFile, ArrayHandle, ArraySpec, Capabilities, Format, Installed
from hyperslab.storage.table import written_names


class Null(Format):
    """The format that stores nothing."""

    name: ClassVar[str] = "null"
    extension: ClassVar[str] = ".null"
    capabilities: ClassVar[Capabilities] = Capabilities(
        codecs=written_names("hdf5"),
        chunks=True,
        shards=True,
        append=True,
        compound=True,
        field_write=True,
        byte_order="either",
        self_describing=False,
        exact=False,
        notes="reads return zeros; measures the harness itself",
    )
    default_layout: ClassVar[str] = "nothing"

    @classmethod
    def library(cls) -> Installed:
        """Only NumPy, for the zeros."""
        return Installed("none", "-", (("NumPy", np.__version__),))

    def create(self, path: Path) -> ArrayFile:
        """Make an empty directory, so that the path exists."""
        path.mkdir()
        return NullFile()

    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:  # noqa: ARG002 - nothing to open
        """Check that the directory exists."""
        if not path.is_dir():
            raise UsageError(f"{path} is not a directory of the null format")
        return NullFile()


class NullFile(ArrayFile):
    """Holds nothing."""

    def create_array(self, name: str, spec: ArraySpec) -> ArrayHandle:  # noqa: ARG002 - nothing has a name
        """Allocate the zeros."""
        return NullArray(spec)

    def open_array(self, name: str, spec: ArraySpec | None = None) -> ArrayHandle:
        """Allocate the zeros."""
        if spec is None:
            raise UsageError(f"array {name!r}: the null format does not record shape and dtype; give a spec to open it")
        return NullArray(spec)

    def close(self) -> None:
        """Nothing to close."""


class NullArray(ArrayHandle):
    """The zeros of one array; every read returns a view of them."""

    def __init__(self, spec: ArraySpec) -> None:
        self._zeros = np.zeros(spec.shape, spec.dtype)
        self._flat = self._zeros.reshape(-1)

    def write(self, data: np.ndarray, selection: Hyperslab | None = None) -> None:
        """Drop the data."""

    def read(self, selection: Hyperslab | None = None) -> np.ndarray:
        """Return zeros of the selection's shape."""
        if selection is None:
            return self._zeros
        return self._flat[: selection.size].reshape(selection.shape)

    def append(self, data: np.ndarray) -> None:
        """Drop the data."""

    def read_fields(self, fields: Sequence[str]) -> np.ndarray:
        """Return zeros for the fields."""
        dtype = np.dtype([(name, self._zeros.dtype[name]) for name in fields])
        return self._flat.view(np.uint8)[: self._flat.size * dtype.itemsize].view(dtype)

    def write_field(self, field_name: str, data: np.ndarray) -> None:
        """Drop the data."""

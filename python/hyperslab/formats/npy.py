"""NumPy's own files (NPY): a small header, then the elements.

Specification: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. Library: NumPy. Each array is
one file `NAME.npy` in a directory. You can also open a single `.npy` file; its array has the name of the file. Whole
arrays are written with `tofile` and read with `fromfile`, as in `np.save` and `np.load`. Parts are accessed through
`np.memmap` and copied, so a read never returns a lazy array.

Cannot express: chunks, codecs, growth, several arrays in one file, nested names.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal

import numpy as np

from hyperslab._core import Hyperslab
from hyperslab.errors import UsageError
from hyperslab.formats.contract import ArrayFile, ArrayHandle, ArraySpec, Capabilities, Format, Installed
from hyperslab.formats.directory import DirectoryFile, open_descriptor
from hyperslab.storage.layout import StoredLayout

# NumPy's own limit of 10,000 bytes guards its parser against hostile files, but stops at about 600 fields.
_LARGEST_HEADER_NBYTES = 1 << 20


class Npy(Format):
    """NumPy's own file format."""

    name: ClassVar[str] = "npy"
    extension: ClassVar[str] = ".npy"
    capabilities: ClassVar[Capabilities] = Capabilities(
        empty=False,
        compound=True,
        field_write=True,
        many_arrays=False,
        byte_order="either",
        notes="parts are read through a memory mapping and copied",
    )
    default_layout: ClassVar[str] = "contiguous"

    @classmethod
    def library(cls) -> Installed:
        """NumPy."""
        return Installed("NumPy", np.__version__)

    def create(self, path: Path) -> ArrayFile:
        """Make the directory."""
        path.mkdir()
        return NpyFile(path, self.extension, writable=True)

    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:
        """Find the directory or the single file."""
        if path.is_file():
            return SingleNpyFile(path, writable=mode == "r+")
        return NpyFile(path, self.extension, writable=mode == "r+")


class NpyFile(DirectoryFile):
    """A directory of NAME.npy files."""

    def _create(self, path: Path, spec: ArraySpec) -> NpyArray:
        stream = os.fdopen(open_descriptor(path, os.O_RDWR | os.O_CREAT | os.O_EXCL), "w+b")
        header = {"descr": np.lib.format.dtype_to_descr(spec.dtype), "fortran_order": False, "shape": spec.shape}
        _write_header(stream, header)
        stream.flush()
        return NpyArray(stream, spec.shape, spec.dtype, "C", stream.tell(), writable=True)

    def _open(self, path: Path, spec: ArraySpec | None) -> NpyArray:  # noqa: ARG002 - the file describes itself
        flags = os.O_RDWR if self._writable else os.O_RDONLY
        stream = os.fdopen(open_descriptor(path, flags), "r+b" if self._writable else "rb")
        shape, dtype, order = _header(stream, path)
        return NpyArray(stream, shape, dtype, order, stream.tell(), self._writable)

    def describe(self, name: str) -> ArraySpec:
        """Read shape and dtype from the header."""
        path = self._path(name)
        with path.open("rb") as stream:
            shape, dtype, _ = _header(stream, path)
        return ArraySpec(shape, dtype, StoredLayout())


class SingleNpyFile(NpyFile):
    """A single .npy file; its only array has the name of the file."""

    def __init__(self, path: Path, writable: bool) -> None:
        super().__init__(path.parent, path.suffix, writable)
        self._only = path.stem

    def create_array(self, name: str, spec: ArraySpec) -> NpyArray:  # noqa: ARG002 - never possible
        """Raise UsageError, because a .npy file holds one array."""
        raise UsageError(f"{self._only}{self._extension} holds one array; create a directory for {name!r}")

    def array_names(self) -> list[str]:
        """The file's name without its extension."""
        return [self._only]


class NpyArray(ArrayHandle):
    """One open .npy file."""

    def __init__(
        self,
        stream: BinaryIO,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        order: Literal["C", "F"],
        offset: int,
        writable: bool,
    ) -> None:
        self._stream = stream
        self._shape = shape
        self._dtype = dtype
        self._order: Literal["C", "F"] = order
        self._offset = offset
        self._writable = writable

    def write(self, data: np.ndarray, selection: Hyperslab | None = None) -> None:
        """Write a whole array with `tofile`, a part through a memory mapping."""
        if selection is not None or self._order == "F":
            self._mapped()[... if selection is None else selection.slices] = data
            return
        self._stream.seek(self._offset)
        data.astype(self._dtype, order="C", copy=False).tofile(self._stream)

    def read(self, selection: Hyperslab | None = None) -> np.ndarray:
        """Read a whole array with `fromfile`, a part through a memory mapping."""
        if selection is not None:
            return np.array(self._mapped()[selection.slices], order="C")
        self._stream.seek(self._offset)
        count = int(np.prod(self._shape, dtype=np.int64))
        return np.fromfile(self._stream, self._dtype, count).reshape(self._shape, order=self._order)

    def read_fields(self, fields: Sequence[str]) -> np.ndarray:
        """Read these fields of all rows through a memory mapping."""
        out = np.empty(self._shape, [(name, self._dtype[name]) for name in fields])
        out[...] = self._mapped()[list(fields)]
        return out

    def write_field(self, field_name: str, data: np.ndarray) -> None:
        """Write one field of all rows through a memory mapping."""
        self._mapped()[field_name] = data

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def _mapped(self) -> np.ndarray:
        if 0 in self._shape:
            return np.empty(self._shape, self._dtype)  # an empty range cannot be mapped
        mode: Literal["r", "r+"] = "r+" if self._writable else "r"
        mapped = np.memmap(self._stream, self._dtype, mode, self._offset, self._shape, self._order)
        return mapped.view(np.ndarray)


def _write_header(stream: BinaryIO, header: dict[str, Any]) -> None:
    """Write the header in the oldest version of the format that can hold it, as np.save does."""
    try:
        np.lib.format.write_array_header_1_0(stream, header)
    except ValueError:
        np.lib.format.write_array_header_2_0(stream, header)


def _header(stream: BinaryIO, path: Path) -> tuple[tuple[int, ...], np.dtype[Any], Literal["C", "F"]]:
    try:
        version = np.lib.format.read_magic(stream)
        if version > (2, 0):
            raise ValueError(f"version {version} of the format (field names beyond Latin-1) is not supported")
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran_order, dtype = read(stream, max_header_size=_LARGEST_HEADER_NBYTES)
    except ValueError as error:
        raise UsageError(f"{path} cannot be read as a NumPy file: {error}") from error
    if dtype.hasobject:
        raise UsageError(f"{path} holds pickled Python objects, which could run any code, so it is not read")
    return shape, dtype, "F" if fortran_order else "C"

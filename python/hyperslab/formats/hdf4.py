"""HDF4's scientific data sets: the format of NASA's older archives.

Specification: https://support.hdfgroup.org/products/hdf4/ (HDF4 Specification and Developer's Guide). Library: pyhdf
(which contains HDF 4.2). An array is contiguous, or deflated as one stream. The file is big-endian; the library
converts to native order. A growable array has an unlimited dimension, and HDF4 stores it in linked blocks.

If you give a layout, the array is not prefilled. If you give none, the library's default applies: parts that are
never written hold the fill value.

Cannot express: 64-bit integers; chunks (pyhdf has no call for them: chunked files can be read, but are described as
contiguous); overwriting part of a deflated array, or growing it; arrays or files of 2 GiB or more; more than 5000
arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from hyperslab._core import Hyperslab
from hyperslab.errors import UsageError
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

_DEFAULT_LEVEL = 6  # zlib's own
_SIZE_LIMIT = 2**31 - 1
_TYPES = {  # NumPy's name -> member of pyhdf's SDC
    "int8": "INT8",
    "uint8": "UINT8",
    "int16": "INT16",
    "uint16": "UINT16",
    "int32": "INT32",
    "uint32": "UINT32",
    "float32": "FLOAT32",
    "float64": "FLOAT64",
}


class Hdf4(Format):
    """HDF4 scientific data sets through pyhdf."""

    name: ClassVar[str] = "hdf4"
    extension: ClassVar[str] = ".hdf"
    aliases: ClassVar[tuple[str, ...]] = (".hdf4", ".h4")
    capabilities: ClassVar[Capabilities] = Capabilities(
        dtypes=frozenset(_TYPES),
        codecs=frozenset(["deflate"]),
        append=True,
        byte_order="big",
        notes="deflate is one stream over the whole array: written whole, never grown or changed in part",
    )
    default_layout: ClassVar[str] = "contiguous"

    @classmethod
    def library(cls) -> Installed:
        """Pyhdf and the HDF4 in it."""
        imported("pyhdf.SD")
        from pyhdf.HDF import getlibversion

        major, minor, release, _ = getlibversion()
        return Installed("pyhdf", version("pyhdf"), (("HDF4", f"{major}.{minor}.{release}"),))

    def create(self, path: Path) -> ArrayFile:
        """Create an empty file."""
        if path.exists():
            raise UsageError(f"{path} exists already: choose another name")
        constants = imported("pyhdf.SD").SDC
        return Hdf4File(path, constants.WRITE | constants.CREATE)

    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:
        """Open the file and read its directory."""
        return Hdf4File(path, imported("pyhdf.SD").SDC.READ if mode == "r" else imported("pyhdf.SD").SDC.WRITE)

    def _reasons(self, spec: ArraySpec, need: Need) -> Iterator[str]:
        yield from super()._reasons(spec, need)
        if spec.nbytes > _SIZE_LIMIT:
            yield "cannot store arrays of 2 GiB or more"
        if not spec.shape or 0 in spec.shape[1:] or (0 in spec.shape and not spec.growable):
            yield "cannot store an array without axes or without elements"
        if spec.layout is None or not spec.layout.codecs:
            return
        if len(spec.layout.codecs) > 1:
            yield "applies at most one codec"
        if need.overwrite:
            yield "cannot rewrite part of a deflated array in place"
        if need.append or spec.growable:
            yield "cannot grow a deflated array"


class Hdf4File(ArrayFile):
    """An open HDF4 file."""

    def __init__(self, path: Path, mode: int) -> None:
        from pyhdf.error import HDF4Error
        from pyhdf.SD import SD

        self._path = path
        self._error = HDF4Error
        self._handles: list[Hdf4Array] = []
        try:
            self._file = SD(str(path), mode)
        except HDF4Error as error:
            raise UsageError(f"{path}: HDF4 cannot open it: {error}") from error

    def create_array(self, name: str, spec: ArraySpec) -> ArrayHandle:
        """Define a data set."""
        constants = imported("pyhdf.SD").SDC
        self._file.setfillmode(constants.FILL if spec.layout is None else constants.NOFILL)
        shape = (constants.UNLIMITED, *spec.shape[1:]) if spec.growable else spec.shape
        dataset = self._file.create(name, getattr(constants, _TYPES[spec.dtype.name]), shape)
        for codec in spec.layout.codecs if spec.layout is not None else ():
            level = _DEFAULT_LEVEL if codec.level is None else codec.level
            dataset.setcompress(constants.COMP_DEFLATE, level)
        return self._kept(dataset)

    def open_array(self, name: str, spec: ArraySpec | None = None) -> ArrayHandle:  # noqa: ARG002 - the file describes itself
        """Find a data set by its name."""
        return self._kept(self._dataset(name))

    def array_names(self) -> list[str]:
        """The names of all data sets."""
        return list(self._file.datasets())

    def describe(self, name: str) -> ArraySpec:
        """Read shape, dtype and codecs of a data set from the file."""
        dataset = self._dataset(name)
        _, axis_count, lengths, number, _ = dataset.info()
        shape = tuple(lengths) if axis_count > 1 else (int(np.ravel(lengths)[0]),)
        codecs = self._codecs(dataset)
        dataset.endaccess()
        for dtype_name, member in _TYPES.items():
            if getattr(imported("pyhdf.SD").SDC, member) == number:
                return ArraySpec(shape, np.dtype(dtype_name), StoredLayout(codecs=codecs))
        raise UsageError(f"{self._path}: {name!r} has HDF4's number type {number}, which is not a NumPy number")

    def close(self) -> None:
        """Close the data sets and the file."""
        for handle in self._handles:
            handle.close()
        self._handles.clear()
        self._file.end()

    def _kept(self, dataset: Any) -> Hdf4Array:
        handle = Hdf4Array(dataset)
        self._handles.append(handle)
        return handle

    def _dataset(self, name: str) -> Any:
        try:
            return self._file.select(name)
        except self._error as error:
            raise UsageError(f"{self._path} has no array {name!r}") from error

    def _codecs(self, dataset: Any) -> CodecChain:
        constants = imported("pyhdf.SD").SDC
        try:
            kind, *values = dataset.getcompress()
        except self._error:
            return CodecChain()  # pyhdf raises this error for an uncompressed data set
        if kind == constants.COMP_NONE:
            return CodecChain()
        if kind == constants.COMP_DEFLATE:
            return CodecChain([Codec("deflate", values[0])])
        names = {constants.COMP_RLE: "rle", constants.COMP_SKPHUFF: "skiphuff", constants.COMP_SZIP: "szip"}
        return CodecChain([Codec(names.get(kind, f"hdf4-{kind}"))])


class Hdf4Array(ArrayHandle):
    """An open data set."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def write(self, data: np.ndarray, selection: Hyperslab | None = None) -> None:
        """Convert and write."""
        *lengths, growable = *np.ravel(self._dataset.info()[2]), self._dataset.isrecord()
        if selection is not None:
            lengths = list(selection.shape)
        elif growable:
            lengths[0] = data.shape[0]
        if list(data.shape) != lengths:
            wanted = tuple(map(int, lengths))
            raise UsageError(f"hdf4: the data have shape {data.shape}, the selection has {wanted}")
        if selection is None:
            self._dataset.set(data, [0] * data.ndim, list(data.shape), [1] * data.ndim)
        else:
            self._dataset.set(data, *_start_count_stride(selection))

    def read(self, selection: Hyperslab | None = None) -> np.ndarray:
        """Read and convert."""
        if selection is None:
            return np.asarray(self._dataset.get())
        return np.asarray(self._dataset.get(*_start_count_stride(selection)))

    def append(self, data: np.ndarray) -> None:
        """Write after the last row."""
        end = int(np.ravel(self._dataset.info()[2])[0])
        self._dataset.set(data, [end] + [0] * (data.ndim - 1), list(data.shape), [1] * data.ndim)

    def close(self) -> None:
        """Release the data set; the library then writes its buffers."""
        self._dataset.endaccess()


def _start_count_stride(selection: Hyperslab) -> tuple[list[int], list[int], list[int]]:
    slices = selection.slices
    return [piece.start for piece in slices], list(selection.shape), [piece.step or 1 for piece in slices]

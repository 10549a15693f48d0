"""The interface of every format: ArraySpec, Capabilities, and the operations on a file.

A `Format` is stateless. `create` and `open` return an `ArrayFile`, which returns `ArrayHandle`s. The bench times
each method as a separate operation. So a method must not do the work of another one early or late, if the library
lets you separate the two; where the library itself defers work (netCDF4 creates variables when the definition ends),
the format may defer it too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from hyperslab._core import Hyperslab, Points
from hyperslab.errors import Refused
from hyperslab.needed import missing
from hyperslab.storage.layout import StoredLayout

NUMERIC_DTYPES = frozenset(
    ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
)


@dataclass(frozen=True)
class ArraySpec:
    """An array to create, or to open if the format does not describe itself.

    `layout=None` means the library's own default, which a newcomer gets. `growable` lets axis 0 grow.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    layout: StoredLayout | None = None
    growable: bool = False

    @property
    def nbytes(self) -> int:
        """Decoded size in bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


@dataclass(frozen=True)
class Capabilities:
    """What a format can do. The conformance suite checks every claim."""

    dtypes: frozenset[str] = NUMERIC_DTYPES
    codecs: frozenset[str] = frozenset()
    contiguous: bool = True
    chunks: bool = False
    shards: bool = False
    sharded_only: bool = False  # chunks are always stored in shards, so a condition must give a shard shape
    max_ndim: int | None = None
    slices: bool = True  # reads part of an array without decoding or returning all of it
    strided: bool = True  # every k-th element, in one call
    overwrite: bool = True  # rewrites part of an existing array in place
    append: bool = False  # grows axis 0 of an existing array
    compound: bool = False  # structured dtypes
    field_write: bool = False  # writes one field of a compound array without changing the others
    empty: bool = True  # can create an array without writing it
    many_arrays: bool = True  # several arrays in one file; otherwise one file per array in a directory
    urls: bool = False  # reads files by URL from HTTP servers and S3
    threads: bool = False  # the library decodes or fetches with its own threads
    byte_order: Literal["native", "big", "either", "text"] = "native"  # in the file; either: that of the dtype
    self_describing: bool = True  # shape and dtype are in the file
    exact: bool = True  # data that are read equal the data that were written, bit by bit
    notes: str = ""


class ArrayHandle(ABC):
    """One open array. Selections are `Hyperslab`s; `selection.slices` gives NumPy slices where block is 1."""

    @abstractmethod
    def write(self, data: np.ndarray, selection: Hyperslab | None = None) -> None:
        """Write `data` (native byte order, C order) to the whole array, or to `selection`."""

    @abstractmethod
    def read(self, selection: Hyperslab | None = None) -> np.ndarray:
        """Read everything, or `selection`, into memory, in the library's own byte order; never lazily."""

    def read_points(self, points: Points) -> np.ndarray:  # noqa: ARG002 - the interface's signature
        """Read listed elements in one call, in the order of the list."""
        raise Refused(f"{type(self).__module__} cannot read listed elements in one call")

    def read_many(self, selections: Sequence[Hyperslab]) -> list[np.ndarray]:
        """Read several selections. A format without random access parses once and slices in memory."""
        return [self.read(selection) for selection in selections]

    def append(self, data: np.ndarray) -> None:  # noqa: ARG002 - the interface's signature
        """Grow axis 0 by `data.shape[0]` and write `data` there."""
        raise Refused(f"{type(self).__module__} cannot append")

    def read_fields(self, fields: Sequence[str]) -> np.ndarray:  # noqa: ARG002 - the interface's signature
        """For compound arrays: read these fields of all rows, as a structured array of shape (rows,)."""
        raise Refused(f"{type(self).__module__} has no compound arrays")

    def close(self) -> None:  # noqa: B027 - doing nothing is right for an array without a descriptor of its own
        """Close what the array holds open; does nothing if each method opens and closes the file itself."""

    def write_field(self, field_name: str, data: np.ndarray) -> None:  # noqa: ARG002 - the interface's signature
        """For compound arrays: write one field of all rows; `data` has shape (rows,)."""
        raise Refused(f"{type(self).__module__} has no compound arrays")


class ArrayFile(ABC):
    """An open file, store or directory that holds named arrays."""

    @abstractmethod
    def create_array(self, name: str, spec: ArraySpec) -> ArrayHandle:
        """Create an array as `spec` describes it, without prefilling if the library allows that."""

    @abstractmethod
    def open_array(self, name: str, spec: ArraySpec | None = None) -> ArrayHandle:
        """Open an existing array. `spec` is needed only if `self_describing` is False."""

    def array_names(self) -> list[str]:
        """The names of the arrays, as `--data FILE:ARRAY` takes them; nested names contain '/'."""
        raise Refused("this format does not list its arrays")

    def describe(self, name: str) -> ArraySpec:  # noqa: ARG002 - the interface's signature
        """The shape and dtype of an array, and the layout that the library actually chose."""
        raise Refused("this format does not describe its arrays")

    def flush(self) -> None:  # noqa: B027 - doing nothing is right for a library that does not buffer
        """Pass the library's buffers on to the operating system; does nothing if the library does not buffer."""

    @abstractmethod
    def close(self) -> None:
        """Close every array and the file."""


@dataclass(frozen=True)
class Need:
    """What a trial needs from a format beyond storing the array itself."""

    slices: bool = False
    strided: bool = False
    overwrite: bool = False
    append: bool = False
    compound: bool = False
    field_write: bool = False
    empty: bool = False
    urls: bool = False


@dataclass(frozen=True)
class Installed:
    """The software behind a format. Reports show it, and every run records it."""

    name: str
    version: str
    parts: tuple[tuple[str, str], ...] = field(default=())  # for example (("HDF5", "2.0.0"),)


@cache
def imported(module: str) -> Any:
    """Import the library of a format. Raises MissingLibrary, which says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise missing(module.partition(".")[0]) from error


def installed_version(module: str) -> str:
    """The version of a library that is named as its module is. Raises MissingLibrary, which says how to install it.

    The module is not imported, which takes zarr a third of a second.
    """
    try:
        is_there = find_spec(module) is not None
    except ImportError as error:
        raise missing(module) from error
    if not is_there:
        raise missing(module)
    try:
        return version(module)
    except PackageNotFoundError:  # it is only in a folder of PYTHONPATH
        return str(imported(module).__version__)


class Format(ABC):
    """One way to store arrays on disk. Stateless; the study gives the options of the format."""

    name: ClassVar[str]
    extension: ClassVar[str]  # of the file or directory, with its dot
    aliases: ClassVar[tuple[str, ...]] = ()  # other extensions that --data FILE recognises
    capabilities: ClassVar[Capabilities]
    default_layout: ClassVar[str]  # what a newcomer gets, for example "blosc-lz4, guessed chunks"

    @classmethod
    @abstractmethod
    def library(cls) -> Installed:
        """The library in use; raises MissingLibrary, which says how to install it."""

    @abstractmethod
    def create(self, path: Path) -> ArrayFile:
        """Create an empty file (or directory) at `path`, which must not exist."""

    @abstractmethod
    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:
        """Open an existing file (or directory) to read or to change it."""

    def open_url(self, url: str, storage_options: Mapping[str, Any]) -> ArrayFile:  # noqa: ARG002 - the interface's signature
        """Open for reading a file made by `create` that is now on a server; the options are those of s3fs."""
        raise Refused(f"{self.name} cannot read URLs")

    def refusal(self, spec: ArraySpec, need: Need) -> str | None:
        """Why this format cannot do it, or None. Formats with further rules extend `_reasons`."""
        return next(self._reasons(spec, need), None)

    def _reasons(self, spec: ArraySpec, need: Need) -> Iterator[str]:
        can = self.capabilities
        yield from _dtype_reasons(spec.dtype, can)
        if can.max_ndim is not None and len(spec.shape) > can.max_ndim:
            yield f"stores at most {can.max_ndim} dimensions, but the array has {len(spec.shape)}"
        if spec.layout is not None:
            yield from _layout_reasons(spec, spec.layout, can)
        if spec.growable and not can.append:
            yield _NEED_REASONS["append"]
        yield from (reason for name, reason in _NEED_REASONS.items() if getattr(need, name) and not getattr(can, name))


_NEED_REASONS = {
    "slices": "cannot read part of an array",
    "strided": "cannot read every k-th element in one call",
    "overwrite": "cannot rewrite part of an array in place",
    "append": "cannot append",
    "compound": "has no compound types",
    "empty": "cannot create an array without writing it",
    "urls": "cannot read URLs",
    "field_write": "cannot write one field without rewriting the others",
}


def _dtype_reasons(dtype: np.dtype[Any], can: Capabilities) -> Iterator[str]:
    fields = [dtype] if dtype.fields is None else [field_dtype for field_dtype, *_ in dtype.fields.values()]
    if dtype.fields is not None and not can.compound:
        yield _NEED_REASONS["compound"]
    for unsupported in sorted({plain.name for plain in fields} - can.dtypes):
        yield f"cannot store {unsupported}"
    if can.byte_order == "native" and not dtype.isnative:
        yield "can store only this machine's byte order"


def _layout_reasons(spec: ArraySpec, layout: StoredLayout, can: Capabilities) -> Iterator[str]:
    if layout.contiguous and not can.contiguous:
        yield "cannot store arrays contiguously"
    if not layout.contiguous:
        if not can.chunks:
            yield "cannot choose chunks"
        if len(layout.chunk_shape) != len(spec.shape) or min(layout.chunk_shape, default=1) < 1:
            yield f"chunk shape {layout.chunk_shape} does not fit an array of shape {spec.shape}"
    if layout.shard_shape is not None and not can.shards:
        yield "has no shards"
    for codec in layout.codecs:
        if codec.name not in can.codecs:
            yield f"has no codec {codec.name}" + (f" (has: {', '.join(sorted(can.codecs))})" if can.codecs else "")

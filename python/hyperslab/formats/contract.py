"""What every format promises: the nouns Codec, StoredLayout, ArraySpec, Capabilities and the verbs of a file.

A `Format` is stateless. `create` and `open` give an `ArrayFile`; that gives `ArrayHandle`s. Each verb is one
operation that the bench times on its own, so none may do another's work early or late where the library lets
it be told apart; what a library defers (netCDF4 creates variables when the definition ends) it may defer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from hyperslab._core import Hyperslab
from hyperslab.errors import Refused

NUMERIC_DTYPES = frozenset(
    ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
)


@dataclass(frozen=True)
class Codec:
    """One step of a codec chain: `deflate`, `zstd`, `blosc-zstd`, `shuffle`, … and its level where it has one.

    `blosc-*` codecs include Blosc's own byte shuffle; do not add `shuffle` to them.
    """

    name: str
    level: int | None = None

    @classmethod
    def parse(cls, text: str) -> Codec:
        """`deflate:4` -> Codec("deflate", 4); `shuffle` -> Codec("shuffle")."""
        name, _, level = text.partition(":")
        if level and not level.isdigit():
            raise Refused(f"codec {text!r}: the part after ':' is a level, a whole number; for example deflate:4")
        return cls(name, int(level) if level else None)

    def __str__(self) -> str:
        return self.name if self.level is None else f"{self.name}:{self.level}"


@dataclass(frozen=True)
class StoredLayout:
    """How an array's elements are laid in storage. `chunk_shape=None` means contiguous."""

    chunk_shape: tuple[int, ...] | None = None
    shard_shape: tuple[int, ...] | None = None
    codecs: tuple[Codec, ...] = ()

    def __str__(self) -> str:
        shape = "contiguous" if self.chunk_shape is None else "chunks " + "×".join(map(str, self.chunk_shape))
        if self.shard_shape is not None:
            shape += ", shards " + "×".join(map(str, self.shard_shape))
        return shape + (", " + "+".join(map(str, self.codecs)) if self.codecs else ", uncompressed")


@dataclass(frozen=True)
class ArraySpec:
    """An array to create, or to open where the format does not describe itself.

    `layout=None` asks for the library's own default, what a newcomer gets. `growable` makes axis 0 appendable.
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
    """What a format can do; everything claimed here is proved by the conformance suite."""

    dtypes: frozenset[str] = NUMERIC_DTYPES
    codecs: frozenset[str] = frozenset()
    contiguous: bool = True
    chunks: bool = False
    shards: bool = False
    sharded_only: bool = False  # chunks are always kept in shards, so that conditions must give a shard shape
    max_ndim: int | None = None
    slices: bool = True  # reads part of an array without decoding or returning all of it
    strided: bool = True  # every k-th element, in one call
    overwrite: bool = True  # rewrites part of an existing array in place
    append: bool = False  # grows axis 0 of an existing array
    compound: bool = False  # structured dtypes
    field_write: bool = False  # writes one field of a compound array, leaving the others alone
    empty: bool = True  # creates an array that is not written yet
    many_arrays: bool = True  # several arrays in one file; if not, one file per array in a directory
    urls: bool = False  # reads files by their URLs, from HTTP servers and S3
    threads: bool = False  # the library decodes or fetches with threads of its own
    byte_order: Literal["native", "big", "either", "text"] = "native"  # in the file; either: as the dtype says
    self_describing: bool = True  # shape and dtype are in the file
    exact: bool = True  # what is read equals what was written, bit by bit
    notes: str = ""


class ArrayHandle(ABC):
    """One open array. Selections are `Hyperslab`s; `selection.slices` gives NumPy slices where block is 1."""

    @abstractmethod
    def write(self, data: np.ndarray, selection: Hyperslab | None = None) -> None:
        """Write `data` (native byte order, C order) to the whole array, or to `selection`."""

    @abstractmethod
    def read(self, selection: Hyperslab | None = None) -> np.ndarray:
        """Read everything, or `selection`, into memory. Byte order is the library's own; never a lazy mapping."""

    def read_many(self, selections: Sequence[Hyperslab]) -> list[np.ndarray]:
        """Read several selections. A format without random access parses once and cuts in memory."""
        return [self.read(selection) for selection in selections]

    def append(self, data: np.ndarray) -> None:  # noqa: ARG002 - the contract's signature
        """Grow axis 0 by `data.shape[0]` and write `data` there."""
        raise Refused(f"{type(self).__module__} cannot append")

    def read_fields(self, fields: Sequence[str]) -> np.ndarray:  # noqa: ARG002 - the contract's signature
        """Compound arrays: the named fields of all rows, as a structured array of shape (rows,)."""
        raise Refused(f"{type(self).__module__} has no compound arrays")

    def write_field(self, field_name: str, data: np.ndarray) -> None:  # noqa: ARG002 - the contract's signature
        """Compound arrays: one field of all rows; `data` has shape (rows,)."""
        raise Refused(f"{type(self).__module__} has no compound arrays")


class ArrayFile(ABC):
    """An open file, store or directory that holds named arrays."""

    @abstractmethod
    def create_array(self, name: str, spec: ArraySpec) -> ArrayHandle:
        """Create an array as `spec` says; without prefilling where the library allows that."""

    @abstractmethod
    def open_array(self, name: str, spec: ArraySpec | None = None) -> ArrayHandle:
        """Open an existing array. `spec` is needed only where `self_describing` is False."""

    def array_names(self) -> list[str]:
        """The arrays that can be opened by name, for `--data FILE:ARRAY`; nested ones with '/'."""
        raise Refused("this format does not list its arrays")

    def describe(self, name: str) -> ArraySpec:  # noqa: ARG002 - the contract's signature
        """Shape, dtype and the layout that the library really chose for an array."""
        raise Refused("this format does not describe its arrays")

    def flush(self) -> None:  # noqa: B027 - doing nothing is right where nothing is buffered
        """Hand what the library buffers to the operating system; nothing where it does not buffer."""

    @abstractmethod
    def close(self) -> None:
        """Close every array and the file."""


@dataclass(frozen=True)
class Need:
    """What a trial asks of a format beyond storing the array itself."""

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
    """The software behind a format: shown in reports, recorded with every run."""

    name: str
    version: str
    parts: tuple[tuple[str, str], ...] = field(default=())  # for example (("HDF5", "2.0.0"),)


class Format(ABC):
    """One way to keep arrays on disk. Stateless; `options` are the format's own, given by the study."""

    name: ClassVar[str]
    extension: ClassVar[str]  # of the file or directory, with its dot
    aliases: ClassVar[tuple[str, ...]] = ()  # other extensions that --data FILE recognises
    capabilities: ClassVar[Capabilities]
    default_layout: ClassVar[str]  # what a newcomer gets, in words: "contiguous", "blosc-lz4, guessed chunks"

    @classmethod
    @abstractmethod
    def library(cls) -> Installed:
        """The library in use; raises MissingLibrary with how to install it."""

    @abstractmethod
    def create(self, path: Path) -> ArrayFile:
        """Create an empty file (or directory) at `path`, which must not exist."""

    @abstractmethod
    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:
        """Open an existing one to read, or to change."""

    def open_url(self, url: str, storage_options: Mapping[str, Any]) -> ArrayFile:  # noqa: ARG002 - the contract's
        """Open, to read, what `create` made and a server now has; options are those of s3fs."""
        raise Refused(f"{self.name} reads no URLs")

    def refusal(self, spec: ArraySpec, need: Need) -> str | None:
        """Why this format cannot do it, or None. A format with rules of its own extends this."""
        return next(self._reasons(spec, need), None)

    def _reasons(self, spec: ArraySpec, need: Need) -> Iterator[str]:
        can = self.capabilities
        yield from _dtype_reasons(spec.dtype, can)
        if can.max_ndim is not None and len(spec.shape) > can.max_ndim:
            yield f"at most {can.max_ndim} dimensions, {len(spec.shape)} asked"
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
    "empty": "creates an array only as it is written",
    "urls": "reads no URLs",
    "field_write": "cannot write one field and leave the others alone",
}


def _dtype_reasons(dtype: np.dtype[Any], can: Capabilities) -> Iterator[str]:
    fields = [dtype] if dtype.fields is None else [field_dtype for field_dtype, *_ in dtype.fields.values()]
    if dtype.fields is not None and not can.compound:
        yield _NEED_REASONS["compound"]
    for unsupported in sorted({plain.name for plain in fields} - can.dtypes):
        yield f"cannot store {unsupported}"
    if can.byte_order == "native" and not dtype.isnative:
        yield "stores only this machine's byte order"


def _layout_reasons(spec: ArraySpec, layout: StoredLayout, can: Capabilities) -> Iterator[str]:
    if layout.chunk_shape is None and not can.contiguous:
        yield "cannot store arrays contiguously"
    if layout.chunk_shape is not None:
        if not can.chunks:
            yield "cannot choose chunks"
        if len(layout.chunk_shape) != len(spec.shape) or min(layout.chunk_shape, default=1) < 1:
            yield f"chunk shape {layout.chunk_shape} does not fit an array of shape {spec.shape}"
    if layout.shard_shape is not None and not can.shards:
        yield "has no shards"
    for codec in layout.codecs:
        if codec.name not in can.codecs:
            yield f"has no codec {codec.name}" + (f" (has: {', '.join(sorted(can.codecs))})" if can.codecs else "")

"""TileDB's dense arrays: a directory `NAME.tdb` per array, with a new fragment for every write.

Specification: https://github.com/TileDB-Inc/TileDB/blob/main/format_spec/FORMAT.md. Library: tiledb (TileDB-Py).
Chunks are TileDB's space tiles; `shuffle`, `deflate` and `zstd` are its filters ByteShuffle, Gzip and Zstd. A
contiguous layout is one tile, and an array of one tile is described as contiguous. `tiledb.from_numpy` makes such an
array too, so it is the default here. TileDB reads and writes in its own threads.

TileDB changes nothing in place: rewriting a part adds a fragment, and reading merges the fragments in order of their
time. Every `write` opens the array, writes one fragment and commits it. To read every k-th element, the format reads
all elements in between and picks the wanted ones.

Option: `threads`, for computing and for I/O (None: the library's default).

Cannot express: growth (the domain is fixed when the array is created), tiles larger than the array, writing every
k-th element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from hyperslab._core import Hyperslab
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
from hyperslab.formats.directory import DirectoryFile
from hyperslab.storage.chain import Codec, CodecChain
from hyperslab.storage.layout import StoredLayout

_FILTERS = {"shuffle": "ByteShuffleFilter", "deflate": "GzipFilter", "zstd": "ZstdFilter"}
_NAMES = {filter_name: name for name, filter_name in _FILTERS.items()}


@dataclass(frozen=True)
class TileDB(Format):
    """TileDB's dense arrays."""

    threads: int | None = None

    name: ClassVar[str] = "tiledb"
    extension: ClassVar[str] = ".tiledb"
    capabilities: ClassVar[Capabilities] = Capabilities(
        codecs=frozenset(_FILTERS),
        chunks=True,
        many_arrays=False,
        threads=True,
        byte_order="native",
        notes="every write adds a fragment, even if it overwrites; a strided read reads all elements in between",
    )
    default_layout: ClassVar[str] = "one tile, uncompressed"

    @classmethod
    def library(cls) -> Installed:
        """TileDB-Py and the C++ library that it contains."""
        tiledb = imported("tiledb")
        return Installed("tiledb", tiledb.__version__, (("TileDB", ".".join(map(str, tiledb.libtiledb.version()))),))

    def create(self, path: Path) -> ArrayFile:
        """Make the directory."""
        path.mkdir()
        return TileDBFile(path, self._context(), writable=True)

    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:
        """Find the directory."""
        return TileDBFile(path, self._context(), writable=mode == "r+")

    def _context(self) -> Any:
        if self.threads is None:
            return imported("tiledb").default_ctx()
        levels = ("sm.compute_concurrency_level", "sm.io_concurrency_level")
        return imported("tiledb").Ctx(dict.fromkeys(levels, self.threads))

    def _reasons(self, spec: ArraySpec, need: Need) -> Iterator[str]:
        yield from super()._reasons(spec, need)
        if not spec.shape or 0 in spec.shape:
            yield "cannot store an array without axes or without elements"
        chunk_shape = spec.layout.chunk_shape if spec.layout is not None else None
        if chunk_shape and any(tile > length for tile, length in zip(chunk_shape, spec.shape, strict=False)):
            yield f"a tile of {chunk_shape} is larger than the array"


class TileDBFile(DirectoryFile):
    """A directory of TileDB arrays."""

    def __init__(self, root: Path, context: Any, writable: bool) -> None:
        super().__init__(root, ".tdb", writable)
        self._context = context

    def describe(self, name: str) -> ArraySpec:
        """Read shape, dtype and layout from the array's schema."""
        schema = imported("tiledb").ArraySchema.load(str(self._path(name)), ctx=self._context)
        if schema.sparse or schema.nattr != 1:
            raise UsageError(f"{self._path(name)}: only dense arrays with one attribute can be read")
        attribute = schema.attr(0)
        tiles = tuple(int(schema.domain.dim(axis).tile) for axis in range(schema.ndim))
        codecs = CodecChain(_codec(step) for step in attribute.filters)
        return ArraySpec(
            schema.shape, attribute.dtype, StoredLayout(None if tiles == schema.shape else tiles, codecs=codecs)
        )

    def _create(self, path: Path, spec: ArraySpec) -> TileDBArray:
        imported("tiledb").Array.create(str(path), _schema(spec, self._context), ctx=self._context)
        return TileDBArray(path, self._context, self._writable)

    def _open(self, path: Path, spec: ArraySpec | None) -> TileDBArray:  # noqa: ARG002 - the file describes itself
        array = TileDBArray(path, self._context, self._writable)
        array.load()
        return array


class TileDBArray(ArrayHandle):
    """An array; TileDB opens it either for reading or for writing."""

    def __init__(self, path: Path, context: Any, writable: bool) -> None:
        self._path = path
        self._context = context
        self._writable = writable
        self._reader: Any = None

    def load(self) -> Any:
        """Open the array for reading, which loads its schema and the list of its fragments."""
        if self._reader is None:
            self._reader = imported("tiledb").open(str(self._path), "r", ctx=self._context)
        return self._reader

    def write(self, data: np.ndarray, selection: Hyperslab | None = None) -> None:
        """Write one fragment."""
        if not self._writable:
            raise UsageError(f"{self._path} was opened for reading only")
        slices = ... if selection is None else selection.slices
        if selection is not None and any((piece.step or 1) != 1 for piece in selection.slices):
            raise Refused("tiledb cannot write every k-th element")
        with imported("tiledb").open(str(self._path), "w", ctx=self._context) as writer:
            writer[slices] = data
        # A reader sees only the fragments that existed when it was opened.
        self.close()

    def read(self, selection: Hyperslab | None = None) -> np.ndarray:
        """Read and decode every tile that the selection touches, in every fragment."""
        return np.asarray(self.load()[... if selection is None else selection.slices])

    def close(self) -> None:
        """Close the reader."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def _schema(spec: ArraySpec, context: Any) -> Any:
    tiledb = imported("tiledb")
    layout = spec.layout or StoredLayout()
    tiles = layout.chunk_shape or spec.shape
    dimensions = [
        tiledb.Dim(name=f"axis_{axis}", domain=(0, length - 1), tile=tile, dtype=np.uint64, ctx=context)
        for axis, (length, tile) in enumerate(zip(spec.shape, tiles, strict=True))
    ]
    filters = tiledb.FilterList([_filter(codec) for codec in layout.codecs], ctx=context)
    attribute = tiledb.Attr(name="", dtype=spec.dtype, filters=filters, ctx=context)
    return tiledb.ArraySchema(domain=tiledb.Domain(*dimensions, ctx=context), attrs=[attribute], ctx=context)


def _filter(codec: Codec) -> Any:
    kind = getattr(imported("tiledb"), _FILTERS[codec.name])
    return kind() if codec.level is None else kind(level=codec.level)


def _codec(step: Any) -> Codec:
    kind = type(step).__name__
    level = getattr(step, "level", None)
    return Codec(_NAMES.get(kind, kind), None if level is None or level < 0 else int(level))

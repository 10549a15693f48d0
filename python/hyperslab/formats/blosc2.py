"""Blosc2's N-dimensional arrays: one `NAME.b2nd` file per array in a directory.

Specification: https://github.com/Blosc/c-blosc2/blob/main/README_B2ND_METALAYER.rst. Library: blosc2
(python-blosc2). The library divides each chunk into blocks, whose size it chooses, and decodes the blocks one by one
in its own threads. `blosc-lz4` and `blosc-zstd` use Blosc2's byte shuffle. Without a codec, the level is 0: data are
stored uncompressed. If you give no layout, the library guesses chunks and uses blosc-zstd level 5. With a codec, a
chunk whose elements are all equal is stored as one value, whatever the level.

Option: `threads`, for encoding and decoding (None: the library's default).

Cannot express: a contiguous layout, chunks of 2 GiB or more, codecs other than Blosc's, nested names.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
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
from hyperslab.formats.directory import DirectoryFile
from hyperslab.storage.chain import Codec, CodecChain
from hyperslab.storage.layout import StoredLayout

_DEFAULT_LEVEL = 5
_CHUNK_LIMIT = 2**31 - 1
_COMPRESSORS = {"blosc-lz4": "LZ4", "blosc-zstd": "ZSTD"}  # ours -> members of blosc2.Codec


@dataclass(frozen=True)
class Blosc2(Format):
    """Blosc2's NDArray files."""

    threads: int | None = None

    name: ClassVar[str] = "blosc2"
    extension: ClassVar[str] = ".b2dir"
    capabilities: ClassVar[Capabilities] = Capabilities(
        codecs=frozenset(_COMPRESSORS),
        contiguous=False,
        chunks=True,
        append=True,
        many_arrays=False,
        threads=True,
        byte_order="either",
        notes="at most one codec; blocks inside chunks are the library's choice; constant chunks are one value",
    )
    default_layout: ClassVar[str] = "guessed chunks, blosc-zstd:5"

    @classmethod
    def library(cls) -> Installed:
        """python-blosc2 and the C library in it."""
        blosc2 = imported("blosc2")
        return Installed("blosc2", blosc2.__version__, (("C-Blosc2", blosc2.blosclib_version.split(" ")[0]),))

    def create(self, path: Path) -> ArrayFile:
        """Make the directory."""
        path.mkdir()
        return Blosc2File(path, self.threads, writable=True)

    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:
        """Find the directory."""
        return Blosc2File(path, self.threads, writable=mode == "r+")

    def _reasons(self, spec: ArraySpec, need: Need) -> Iterator[str]:
        yield from super()._reasons(spec, need)
        if spec.layout is None:
            return
        if len(spec.layout.codecs) > 1:
            yield "applies at most one codec"
        if math.prod(spec.layout.chunk_shape or ()) * spec.dtype.itemsize > _CHUNK_LIMIT:
            yield "cannot store chunks of 2 GiB or more"


class Blosc2File(DirectoryFile):
    """A directory of NAME.b2nd files."""

    def __init__(self, root: Path, threads: int | None, writable: bool) -> None:
        super().__init__(root, ".b2nd", writable)
        self._lib = imported("blosc2")
        self._threads = threads

    def describe(self, name: str) -> ArraySpec:
        """Read shape, dtype and layout from the array's file."""
        array = self._lib.open(str(self._path(name)), mode="r")
        return ArraySpec(array.shape, array.dtype, StoredLayout(array.chunks, codecs=_codecs(array.cparams)))

    def _create(self, path: Path, spec: ArraySpec) -> Blosc2Array:
        if path.exists():
            raise UsageError(f"{path} exists already: choose another name")
        arguments: dict[str, Any] = {"dtype": spec.dtype, "urlpath": str(path), "mode": "w"}
        if spec.layout is not None:
            arguments["chunks"] = spec.layout.chunk_shape
            arguments["cparams"] = self._cparams(spec.layout.codecs)
        return Blosc2Array(self._threaded(self._lib.empty(spec.shape, **arguments)))

    def _open(self, path: Path, spec: ArraySpec | None) -> Blosc2Array:  # noqa: ARG002 - the file describes itself
        array = self._lib.open(str(path), mode="a" if self._writable else "r")
        return Blosc2Array(self._threaded(array))

    def _cparams(self, codecs: CodecChain) -> Any:
        if not codecs:
            return self._lib.CParams(clevel=0)
        level = _DEFAULT_LEVEL if codecs[0].level is None else codecs[0].level
        return self._lib.CParams(codec=self._lib.Codec[_COMPRESSORS[codecs[0].name]], clevel=level)

    def _threaded(self, array: Any) -> Any:
        if self._threads is not None:
            array.schunk.cparams = replace(array.schunk.cparams, nthreads=self._threads)
            array.schunk.dparams = replace(array.schunk.dparams, nthreads=self._threads)
        return array


class Blosc2Array(ArrayHandle):
    """An array; the library opens its file for each access."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def write(self, data: np.ndarray, selection: Hyperslab | None = None) -> None:
        """Encode and store every chunk that is touched."""
        self._array[... if selection is None else selection.slices] = data

    def read(self, selection: Hyperslab | None = None) -> np.ndarray:
        """Read and decode every block that is touched."""
        return np.asarray(self._array[... if selection is None else selection.slices])

    def append(self, data: np.ndarray) -> None:
        """Grow the array, then store the chunks."""
        start, *rest = self._array.shape
        self._array.resize((start + data.shape[0], *rest))
        self._array[start:] = data


def _codecs(cparams: Any) -> CodecChain:
    if cparams.clevel == 0:
        return CodecChain()
    filters = {name.name for name in cparams.filters}
    suffix = "" if "SHUFFLE" in filters else "-bitshuffle" if "BITSHUFFLE" in filters else "-noshuffle"
    return CodecChain([Codec(f"blosc-{cparams.codec.name.lower()}{suffix}", cparams.clevel)])

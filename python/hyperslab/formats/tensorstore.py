"""Zarr version 3 through TensorStore, Google's C++ library.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html. Library: tensorstore, with its driver
`zarr3` over files. It reads and writes in parallel in its own threads, without a cache. `deflate` is the codec gzip;
`blosc-*` include byte shuffle. A contiguous layout is one chunk, and an array of one chunk is described as
contiguous. If you give no layout, TensorStore's default applies: chunks of 1 Mi elements, uncompressed.

Options: `threads` (TensorStore's data_copy_concurrency) and `file_io_concurrency`, which are upper limits (None: the
library's default); `fsync`. By default TensorStore calls fsync for every file that it writes. No other format here
does, so fsync is off unless you set the option.

Cannot express: shuffle alone, more than 2 GiB in an encoded chunk. Shards are possible.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
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
from hyperslab.formats.zarr_metadata import (
    V3_CODECS,
    encoded_chunk_reasons,
    shard_reasons,
    v3_codec,
    v3_codec_json,
    v3_serializer_json,
    v3_stored_dtype,
)
from hyperslab.storage.chain import CodecChain
from hyperslab.storage.layout import StoredLayout

_INDEX = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]


@dataclass(frozen=True)
class TensorStore(Format):
    """Zarr version 3 through TensorStore."""

    threads: int | None = None
    file_io_concurrency: int | None = None
    fsync: bool = False

    name: ClassVar[str] = "tensorstore"
    extension: ClassVar[str] = ".zarr"
    capabilities: ClassVar[Capabilities] = Capabilities(
        codecs=V3_CODECS,
        chunks=True,
        shards=True,
        append=True,
        threads=True,
        byte_order="either",
        notes="the files of zarr3; no fsync unless the option asks for it, unlike the library's default",
    )
    default_layout: ClassVar[str] = "chunks of 1 Mi elements, uncompressed"

    @classmethod
    def library(cls) -> Installed:
        """TensorStore."""
        imported("tensorstore")
        return Installed("tensorstore", version("tensorstore"))

    def create(self, path: Path) -> ArrayFile:
        """Create the directory and a group's metadata, so that any Zarr library can open it."""
        path.mkdir()
        (path / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group"}))
        return TensorStoreFile(path, self._context(), writable=True)

    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:
        """Find the directory; nothing is read, because the group has no content of its own."""
        if not path.is_dir():
            raise UsageError(f"{path} is not a directory")
        return TensorStoreFile(path, self._context(), writable=mode == "r+")

    def _context(self) -> Any:
        limits: dict[str, Any] = {"cache_pool": {"total_bytes_limit": 0}, "file_io_sync": self.fsync}
        if self.threads is not None:
            limits["data_copy_concurrency"] = {"limit": self.threads}
        if self.file_io_concurrency is not None:
            limits["file_io_concurrency"] = {"limit": self.file_io_concurrency}
        return imported("tensorstore").Context(limits)

    def _reasons(self, spec: ArraySpec, need: Need) -> Iterator[str]:
        yield from super()._reasons(spec, need)
        yield from encoded_chunk_reasons(spec)
        yield from shard_reasons(spec)


class TensorStoreFile(ArrayFile):
    """A directory of arrays."""

    def __init__(self, path: Path, context: Any, writable: bool) -> None:
        self._path = path
        self._context = context
        self._writable = writable

    def create_array(self, name: str, spec: ArraySpec) -> ArrayHandle:
        """Write the array's metadata."""
        wanted = {
            **self._location(name),
            "metadata": _metadata(spec),
            "store_data_equal_to_fill_value": spec.layout is not None,
        }
        return TensorStoreArray(imported("tensorstore").open(wanted, context=self._context, create=True).result())

    def open_array(self, name: str, spec: ArraySpec | None = None) -> ArrayHandle:  # noqa: ARG002 - the file describes itself
        """Read the array's metadata."""
        return TensorStoreArray(self._store(name))

    def array_names(self) -> list[str]:
        """The directories whose zarr.json describes an array."""
        documents = (path for path in self._path.rglob("zarr.json") if path.parent != self._path)
        arrays = (path for path in documents if json.loads(path.read_text()).get("node_type") == "array")
        return sorted(str(path.parent.relative_to(self._path)) for path in arrays)

    def describe(self, name: str) -> ArraySpec:
        """Read shape, dtype and layout from the array's metadata."""
        store = self._store(name)
        metadata = store.spec().to_json()["metadata"]
        codecs, layout = _codecs_and_layout(metadata)
        return ArraySpec(store.shape, v3_stored_dtype(store.dtype.numpy_dtype, codecs[0]), layout)

    def close(self) -> None:
        """Do nothing, because every write waits until it is complete."""

    def _location(self, name: str) -> dict[str, Any]:
        return {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{self._path}/{name}/"}}

    def _store(self, name: str) -> Any:
        wanted = {**self._location(name), "store_data_equal_to_fill_value": True}
        try:
            opened = imported("tensorstore").open(
                wanted, context=self._context, open=True, read=True, write=self._writable or None
            )
            return opened.result()
        except ValueError as error:
            raise UsageError(f"{self._path}: TensorStore cannot open an array {name!r}: {error}") from error


class TensorStoreArray(ArrayHandle):
    """An open array."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def write(self, data: np.ndarray, selection: Hyperslab | None = None) -> None:
        """Encode and store every chunk that the selection touches, and wait until that is done."""
        self._part(selection).write(data).result()

    def read(self, selection: Hyperslab | None = None) -> np.ndarray:
        """Read and decode every chunk that the selection touches."""
        return np.asarray(self._part(selection).read().result())

    def append(self, data: np.ndarray) -> None:
        """Rewrite the metadata, then store the chunks."""
        start, *rest = self._store.shape
        stop = start + data.shape[0]
        self._store = self._store.resize(exclusive_max=[stop, *rest]).result()
        self._store[start:stop].write(data).result()

    def _part(self, selection: Hyperslab | None) -> Any:
        return self._store if selection is None else self._store[selection.slices]


def _metadata(spec: ArraySpec) -> dict[str, Any]:
    serializer = v3_serializer_json(spec.dtype)
    metadata: dict[str, Any] = {"shape": list(spec.shape), "data_type": spec.dtype.name, "codecs": [serializer]}
    if spec.layout is None:
        return metadata
    layout = spec.layout
    chunk_shape = list(layout.chunk_shape or (max(length, 1) for length in spec.shape))
    codecs = [serializer, *(v3_codec_json(codec, spec.dtype.itemsize) for codec in layout.codecs)]
    if layout.shard_shape is not None:
        inner = {"chunk_shape": chunk_shape, "codecs": codecs, "index_codecs": _INDEX}
        codecs = [{"name": "sharding_indexed", "configuration": inner}]
    grid = {"chunk_shape": list(layout.shard_shape or chunk_shape)}
    return {**metadata, "chunk_grid": {"name": "regular", "configuration": grid}, "codecs": codecs}


def _codecs_and_layout(metadata: dict[str, Any]) -> tuple[list[dict[str, Any]], StoredLayout]:
    chunk_shape = tuple(metadata["chunk_grid"]["configuration"]["chunk_shape"])
    codecs, shard_shape = metadata["codecs"], None
    if codecs[0]["name"] == "sharding_indexed":
        inner = codecs[0]["configuration"]
        chunk_shape, shard_shape, codecs = tuple(inner["chunk_shape"]), chunk_shape, inner["codecs"]
    whole = shard_shape is None and chunk_shape == tuple(metadata["shape"])
    named = CodecChain(v3_codec(codec) for codec in codecs if codec["name"] != "bytes")
    return codecs, StoredLayout(None if whole else chunk_shape, shard_shape, codecs=named)

"""A codec pipeline for zarr-python that reads and writes a whole selection at once, in parallel.

Use it with `zarr.config.set({"codec_pipeline.path": "hyperslab.archive.zarr_pipeline.Pipeline"})`. It reads
`ZarrStore`, and Zarr hierarchies in local folders, on web servers and in object stores, whichever store of zarr-python
opens them. It writes to any store, with our encoder, what `zarr.encoding.steps_of` says is ours. zarr-python itself
handles all other stores, elements and codecs; the results are the same.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import zarr.abc.codec
from zarr.abc.codec import Codec, CodecPipeline
from zarr.abc.store import Store
from zarr.codecs import ShardingCodec
from zarr.codecs._v2 import V2Codec
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import Buffer, NDBuffer
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.core.config import config
from zarr.core.metadata import ArrayMetadata, ArrayV2Metadata

from hyperslab._core import Points, ZarrArray
from hyperslab.archive.far.remote import Remote
from hyperslab.archive.tree.indexing import normalize
from hyperslab.archive.zarr.batch import Batch, batch_of
from hyperslab.archive.zarr.encoding import document_of, steps_of
from hyperslab.archive.zarr.folder import location_of_keys
from hyperslab.archive.zarr.writing import Writer, fill_of
from hyperslab.archive.zarr_store import ZarrStore
from hyperslab.cached import cached_property
from hyperslab.errors import DamagedFile, Unsupported, UsageError
from hyperslab.memory import aligned_empty

TELLS_STATUS = hasattr(zarr.abc.codec, "GetResult")


class Statuses(Sequence[dict[str, str]]):
    """Whether each chunk of a batch exists, as far as this is known without a request. It is looked up when somebody
    asks, because zarr-python does not after the reads that are ours.

    Parameters
    ----------
    store : Store | None
        The store of the chunks.
    items : list[Any]
        zarr-python's batch.
    """

    def __init__(self, store: Store | None, items: list[Any]) -> None:
        self._store = store
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, number: Any) -> Any:
        location = location_of_keys(self._store, "")
        path = f"{location}/{self._items[number][0].path}"
        is_missing = isinstance(location, str) and not os.path.exists(path)  # noqa: PTH110
        return {"status": "missing" if is_missing else "present"}


@dataclass(frozen=True)
class Pipeline(CodecPipeline):
    """zarr-python's own pipeline, except that hyperslab does the reads and writes that it can do."""

    inner: BatchedCodecPipeline
    store: Store | None = None
    metadata: ArrayMetadata | None = None

    @classmethod
    def from_codecs(cls, codecs: Iterable[Codec]) -> Self:
        """Make a pipeline for an array whose store is unknown."""
        return cls(BatchedCodecPipeline.from_codecs(codecs))

    @classmethod
    def from_array_metadata_and_store(cls, array_metadata: ArrayMetadata, store: Store) -> Self:
        """Make a pipeline for an array of a store."""
        codecs: list[Codec]
        if isinstance(array_metadata, ArrayV2Metadata):
            codecs = [V2Codec(filters=array_metadata.filters, compressor=array_metadata.compressor)]
        else:
            codecs = list(array_metadata.codecs)
        return cls(BatchedCodecPipeline.from_codecs(codecs), store, array_metadata)

    def evolve_from_array_spec(self, array_spec: ArraySpec) -> Self:
        """Adapt the pipeline to arrays with this specification."""
        return type(self)(self.inner.evolve_from_array_spec(array_spec), self.store, self.metadata)

    @property
    def supports_partial_decode(self) -> bool:
        """Do what zarr-python's own pipeline does."""
        return bool(self.inner.supports_partial_decode)

    @property
    def supports_partial_encode(self) -> bool:
        """Do what zarr-python's own pipeline does."""
        return bool(self.inner.supports_partial_encode)

    def __iter__(self) -> Iterator[Codec]:
        return iter(self.inner)

    def validate(self, **described: Any) -> None:
        """Do what zarr-python's own pipeline does."""
        self.inner.validate(**described)

    def compute_encoded_size(self, byte_length: int, array_spec: ArraySpec) -> int:
        """Do what zarr-python's own pipeline does."""
        return int(self.inner.compute_encoded_size(byte_length, array_spec))

    async def decode(self, chunks: Iterable[tuple[Buffer | None, ArraySpec]]) -> Iterable[NDBuffer | None]:
        """Do what zarr-python's own pipeline does."""
        return await self.inner.decode(chunks)

    async def encode(self, chunks: Iterable[tuple[NDBuffer | None, ArraySpec]]) -> Iterable[Buffer | None]:
        """Do what zarr-python's own pipeline does."""
        return await self.inner.encode(chunks)

    async def write(self, batch: Iterable[Any], value: NDBuffer, drop_axes: tuple[int, ...] = ()) -> None:
        """Write the parts of chunks that a batch names from `value`."""
        items = list(batch)
        writer = self._writer(items[0][1]) if items else None
        try:
            if writer is not None and await writer.write(items, value, drop_axes):
                return
        except Unsupported:  # found out only by encoding or decoding
            self._writers.clear()
            self._writers[""] = None
        await self.inner.write(items, value, drop_axes)

    def _writer(self, spec: ArraySpec) -> Writer | None:
        if "" not in self._writers:
            self._writers[""] = None if self.store is None else _writer_of(self.metadata, self.store, spec, self.inner)
        return self._writers[""]

    @cached_property
    def _writers(self) -> dict[str, Writer | None]:
        """What writes, once it is known; None if zarr-python has to."""
        return {}

    async def read(self, batch: Iterable[Any], out: NDBuffer, drop_axes: tuple[int, ...] = ()) -> Any:
        """Read the parts of chunks that a batch names into `out`.

        Since zarr-python 3.2 the result says for each chunk whether it exists. zarr-python only uses this if
        `array.read_missing_chunks` is false, and then its own pipeline reads. Otherwise a chunk counts as present if
        another request to its store would be needed to find out.
        """
        items = list(batch)
        if items:
            read = await asyncio.to_thread(self._read_and_tell, items, out.as_ndarray_like(), drop_axes)
            if read is not None:
                return read[1]
        return await self.inner.read(items, out, drop_axes)

    def _read_and_tell(self, items: list[Any], out: Any, drop_axes: tuple[int, ...]) -> tuple[bool, Any] | None:
        """Both in one thread, since it takes as long to go to another one as to read a small chunk."""
        if not self._read(items, out, drop_axes):
            return None
        return True, Statuses(self.store, items) if TELLS_STATUS else None

    @cached_property
    def _opened(self) -> dict[str, tuple[ZarrArray | None, np.dtype[Any]]]:
        """The opened arrays by path, with their dtypes; None for an array that hyperslab cannot read."""
        return {}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.inner, self.store, self.metadata)

    def _read(self, items: list[Any], out: Any, drop_axes: tuple[int, ...]) -> bool:
        """Read a batch if hyperslab can, and return whether it did."""
        if self.metadata is None or not isinstance(out, np.ndarray):
            return False
        if isinstance(self.store, ZarrStore):
            batch = batch_of(items, out.shape, drop_axes, self.metadata)
            if batch is None:
                return False
            array = self.store.array(batch.path)
            is_direct = out.dtype == array.dtype and out.flags.c_contiguous
            read = array.read(batch.selection, out=out if is_direct else None)
            if read is not out:
                out[...] = read
            return True
        return self._read_keys(items, out, drop_axes)

    def _read_keys(self, items: list[Any], out: np.ndarray[Any, Any], drop_axes: tuple[int, ...]) -> bool:
        spec = items[0][1]
        if not getattr(spec.config, "read_missing_chunks", True):
            return False
        path = self._path(items[0][0].path, len(spec.shape))
        array, dtype = self._array(path, spec)
        if array is None or out.dtype.newbyteorder("=") != dtype.newbyteorder("="):
            return False
        is_direct = out.dtype == dtype and out.flags.c_contiguous
        try:
            if is_direct and not drop_axes and _read_box(array, items, out):
                return True
            batch = batch_of(items, out.shape, drop_axes, self.metadata)
            if batch is None:
                return False
            read = out if is_direct else aligned_empty(out.shape, dtype)
            _read(array, batch, read)
        except Unsupported:  # found out only by decoding: a rare variant of a codec
            self._opened[path] = None, dtype
            return False
        if not is_direct:
            out[...] = read
        return True

    def _path(self, key: str, ndim: int) -> str:
        """The path of the array, which comes before the name of its chunk in a key."""
        depth = self._depth.get(ndim)
        if depth is None:
            assert self.metadata is not None
            depth = self._depth[ndim] = self.metadata.encode_chunk_key((0,) * ndim).count("/") + 1
        return key.rsplit("/", depth)[0] if key.count("/") >= depth else ""

    @cached_property
    def _depth(self) -> dict[int, int]:
        """How many parts of a key name its chunk."""
        return {}

    def _array(self, path: str, spec: ArraySpec) -> tuple[ZarrArray | None, np.dtype[Any]]:
        if path not in self._opened:
            location = location_of_keys(self.store, path)
            array = None if location is None else _array_of(self.metadata, location, spec)
            self._opened[path] = array, np.dtype("V") if array is None else array.dtype
        return self._opened[path]


def _array_of(
    metadata: ArrayMetadata | None, location: str | Remote, spec: ArraySpec, document: bytes | None = None
) -> ZarrArray | None:
    assert metadata is not None
    document = document or document_of(metadata)
    if document is None:
        return None
    native = spec.dtype.to_native_dtype()
    try:
        folder = location.file() if isinstance(location, Remote) else location
        dtype = ZarrArray(document, folder, None).dtype
    except (Unsupported, DamagedFile, UsageError):  # zarr-python may be able to read it, or raises its own error
        return None
    if dtype.hasobject or dtype.newbyteorder("=") != native.newbyteorder("="):
        return None
    fill = np.asarray(fill_of(spec), native).astype(dtype)
    return ZarrArray(document, folder, fill.tobytes())


def _writer_of(
    metadata: ArrayMetadata | None, store: Store, spec: ArraySpec, inner: BatchedCodecPipeline
) -> Writer | None:
    if metadata is None or isinstance(store, ZarrStore):
        return None
    shards = [one for one in getattr(metadata, "codecs", ()) if isinstance(one, ShardingCodec)]
    if any(getattr(one, "subchunk_write_order", None) == "colexicographic" for one in shards):
        return None  # somebody asked for it; our order is that of C, also where zarr-python's default is Morton's
    document = document_of(metadata)
    array = None if document is None else _array_of(metadata, "", spec, document)
    if document is None or array is None or not array.is_writable:
        return None
    steps = steps_of(document, array.dtype.itemsize)
    return None if steps is None else Writer(array, steps, inner, store, keeps_outside=bool(shards))


def _read_box(array: ZarrArray, items: list[Any], out: np.ndarray[Any, Any]) -> bool:
    """Read items that are one box of the array, as slices without steps are; return whether they are."""
    taken = items[0][2]
    if not isinstance(taken, tuple) or out.ndim != sum(isinstance(one, slice) for one in taken):
        return False
    lengths = iter(out.shape)
    shape = [next(lengths) if isinstance(one, slice) else 1 for one in taken]
    return array.read_items(items, shape, out.reshape(-1).view(np.uint8), config.get("threading.max_workers"))


def _read(array: ZarrArray, batch: Batch, out: np.ndarray[Any, Any]) -> None:
    flat, threads = out.reshape(-1).view(np.uint8), config.get("threading.max_workers")
    if isinstance(batch.selection, Points):
        array.read_points_into(batch.shape, batch.selection, flat, threads)
    else:
        array.read_into(batch.shape, list(normalize(batch.selection, batch.shape).axes), flat, threads)

"""A codec pipeline for zarr-python that reads a whole selection of a `ZarrStore` at once, in parallel.

`zarr.config.set({"codec_pipeline.path": "hyperslab.archive.zarr_pipeline.Pipeline"})`. Without it zarr-python asks the
store for one chunk after the other and copies each twice. Arrays of other stores go zarr-python's own way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from zarr.abc.codec import Codec, CodecPipeline
from zarr.abc.store import Store
from zarr.codecs._v2 import V2Codec
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import Buffer, NDBuffer
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.core.metadata import ArrayMetadata, ArrayV2Metadata

from hyperslab.archive.zarr_store import ZarrStore

Part = tuple[tuple[int, ...], tuple[Any, ...], tuple[Any, ...]]  # a chunk's index, what is taken of it, where it goes


@dataclass(frozen=True)
class Pipeline(CodecPipeline):
    """zarr-python's own pipeline, but for reads of a `ZarrStore`."""

    inner: BatchedCodecPipeline
    store: Store | None = None

    @classmethod
    def from_codecs(cls, codecs: Iterable[Codec]) -> Self:
        """For arrays whose store is not known."""
        return cls(BatchedCodecPipeline.from_codecs(codecs))

    @classmethod
    def from_array_metadata_and_store(cls, array_metadata: ArrayMetadata, store: Store) -> Self:
        """For the arrays of a store."""
        codecs: list[Codec]
        if isinstance(array_metadata, ArrayV2Metadata):
            codecs = [V2Codec(filters=array_metadata.filters, compressor=array_metadata.compressor)]
        else:
            codecs = list(array_metadata.codecs)
        return cls(BatchedCodecPipeline.from_codecs(codecs), store)

    def evolve_from_array_spec(self, array_spec: ArraySpec) -> Self:
        """The same for arrays of this kind."""
        return type(self)(self.inner.evolve_from_array_spec(array_spec), self.store)

    @property
    def supports_partial_decode(self) -> bool:
        """As zarr-python's."""
        return bool(self.inner.supports_partial_decode)

    @property
    def supports_partial_encode(self) -> bool:
        """As zarr-python's."""
        return bool(self.inner.supports_partial_encode)

    def __iter__(self) -> Iterator[Codec]:
        return iter(self.inner)

    def validate(self, **described: Any) -> None:
        """As zarr-python's."""
        self.inner.validate(**described)

    def compute_encoded_size(self, byte_length: int, array_spec: ArraySpec) -> int:
        """As zarr-python's."""
        return int(self.inner.compute_encoded_size(byte_length, array_spec))

    async def decode(self, chunks: Iterable[tuple[Buffer | None, ArraySpec]]) -> Iterable[NDBuffer | None]:
        """As zarr-python's."""
        return await self.inner.decode(chunks)

    async def encode(self, chunks: Iterable[tuple[NDBuffer | None, ArraySpec]]) -> Iterable[Buffer | None]:
        """As zarr-python's."""
        return await self.inner.encode(chunks)

    async def write(self, batch: Iterable[Any], value: NDBuffer, drop_axes: tuple[int, ...] = ()) -> None:
        """As zarr-python's."""
        await self.inner.write(batch, value, drop_axes)

    async def read(self, batch: Iterable[Any], out: NDBuffer, drop_axes: tuple[int, ...] = ()) -> None:
        """Read the parts of chunks that a batch names to their places in `out`."""
        items = list(batch)
        if not isinstance(self.store, ZarrStore) or not items:
            await self.inner.read(items, out, drop_axes)
            return
        await asyncio.to_thread(_read, self.store, items, out.as_ndarray_like(), drop_axes)


def _read(store: ZarrStore, items: list[Any], out: Any, drop_axes: tuple[int, ...]) -> None:
    path, _ = place_of(store, items[0][0])
    array, chunk_shape = store.array(path), store.chunk_shape(path)
    parts = [(place_of(store, getter)[1], _tuple(taken), _tuple(goes)) for getter, _, taken, goes, *_ in items]
    boxes = joined(parts, chunk_shape, array.shape)
    if boxes is None:
        for part in parts:
            _read_part(array, chunk_shape, part, out, drop_axes)
        return
    selection, target = boxes
    view = out[(*target, ...)]  # a view also where nothing is left but an element
    read = array.read(selection, out=view if view.dtype == array.dtype and view.flags.c_contiguous else None)
    if read is not view:
        out[target] = read


def place_of(store: ZarrStore, getter: Any) -> tuple[str, tuple[int, ...]]:
    """The array and the chunk that a byte getter of the store is for."""
    place = store._chunk_place(getter.path)
    if place is None:
        raise KeyError(f"{getter.path!r} is no chunk of {store!r}")
    return place


def _tuple(selection: Any) -> tuple[Any, ...]:
    return selection if isinstance(selection, tuple) else (selection,)


def joined(
    parts: list[Part], chunk_shape: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[tuple[slice | int, ...], tuple[slice, ...]] | None:
    """The one box of the array that all parts together are, and where it goes; None if they are no box."""
    selection: list[slice | int] = []
    target: list[slice] = []
    count = 1
    kept = iter(range(len(parts[0][2])))
    for axis, chunk in enumerate(chunk_shape):
        takes = {index[axis]: taken[axis] for index, taken, _ in parts if len(taken) == len(chunk_shape)}
        count *= len(takes)
        if all(isinstance(take, int | np.integer) for take in takes.values()) and len(takes) == 1:
            ((index, take),) = takes.items()
            selection.append(index * chunk + int(take))
            continue
        place = next(kept, None)
        box = _joined_axis(takes, chunk, shape[axis])
        goes = None if place is None else [where[place] for _, _, where in parts]
        if box is None or goes is None or not all(isinstance(where, slice) for where in goes):
            return None
        selection.append(box)
        target.append(slice(min(where.start for where in goes), max(where.stop for where in goes)))
    return (tuple(selection), tuple(target)) if count == len(parts) else None


def _joined_axis(takes: dict[int, Any], chunk: int, length: int) -> slice | None:
    """The slice of an axis that the slices of its chunks are together."""
    if not all(isinstance(take, slice) and (take.step or 1) >= 1 for take in takes.values()):
        return None
    ranges = [range(*take.indices(chunk)) for _, take in sorted(takes.items())]
    starts = [index * chunk + part.start for index, part in zip(sorted(takes), ranges, strict=True) if part]
    lasts = [index * chunk + part[-1] for index, part in zip(sorted(takes), ranges, strict=True) if part]
    if len(starts) != len(takes):
        return None
    step = ranges[0].step if len(ranges[0]) > 1 or len(ranges) == 1 else starts[1] - starts[0]
    whole = range(starts[0], min(lasts[-1] + 1, length), step)
    is_even = all(start == last + step for last, start in zip(lasts, starts[1:], strict=False))
    same_steps = all(len(part) < 2 or part.step == step for part in ranges)
    return slice(whole.start, whole.stop, step) if is_even and same_steps else None


def _read_part(array: Any, chunk_shape: tuple[int, ...], part: Part, out: Any, drop_axes: tuple[int, ...]) -> None:
    """One chunk as zarr-python does it: whole, then what is asked of it."""
    index, taken, goes = part
    box = tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, chunk_shape, strict=True))
    chosen = np.asarray(array.read(box))[taken]
    out[goes] = chosen.squeeze(axis=drop_axes) if drop_axes else chosen

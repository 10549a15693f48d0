"""Write what zarr-python hands to a codec pipeline, with our encoder."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from zarr.abc.store import Store
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import NDBuffer
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.core.common import concurrent_map
from zarr.core.config import config
from zarr.storage import LocalStore

from hyperslab._core import ZarrArray, ZarrParts
from hyperslab.storage.chain import Step

# Of keys that are merged here, or that are encoded for a store that is no local folder, so much is held at a time.
MOST_NBYTES = 64 << 20
Items: TypeAlias = Sequence[Any]
Values: TypeAlias = np.ndarray[Any, Any]


def fill_of(spec: ArraySpec) -> Any:
    """What stands in a chunk that is not stored."""
    return spec.dtype.default_scalar() if spec.fill_value is None else spec.fill_value


@dataclass(frozen=True)
class Writer:
    """How an array is written.

    Attributes
    ----------
    array
        The array.
    steps
        How its chunks are encoded.
    inner
        zarr-python's own pipeline, which decodes what is merged with a selection of scattered elements.
    store
        The store of its keys.
    keeps_outside
        Whether the elements that a key has outside of the array stay, as zarr-python keeps those of shards: they come
        back when the array grows.
    """

    array: ZarrArray
    steps: list[Step]
    inner: BatchedCodecPipeline
    store: Store
    keeps_outside: bool = False

    async def write(self, items: Items, value: NDBuffer, drop_axes: tuple[int, ...]) -> bool:
        """Write a batch if it is one of ours, and return whether it was written."""
        spec = items[0][1]
        given: Any = value.as_ndarray_like()
        shape = self.array.key_shape
        if not isinstance(given, np.ndarray) or given.dtype != spec.dtype.to_native_dtype():
            return False
        if any(each.shape != shape for _, each, *_ in items):
            return False
        if self.keeps_outside:
            items = [(*one[:4], one[4] and _is_all(one[2], shape)) for one in items]
        values = None if drop_axes else self._values(items[0][2], given)
        is_local = type(self.store) is LocalStore
        for some in _groups(items, len(items) if is_local and values is not None else self._few):
            parts = None if values is None else ZarrParts.of(some, values.shape, given.ndim == 0)
            if values is None or parts is None:
                for few in _groups(some, self._few):
                    merged = await self._merged(few, given, drop_axes)
                    await self._put(few, ZarrParts.whole([item[0].path for item in few], shape), merged)
            else:
                await self._put(some, parts, values)
        return True

    @property
    def _few(self) -> int:
        """How many keys are decoded at a time."""
        return max(1, MOST_NBYTES // max(1, math.prod(self.array.key_shape) * self.array.dtype.itemsize))

    def _values(self, taken: Any, given: Values) -> Values | None:
        """The values as stored, with an axis for each integer; None if only NumPy's rules say where they go."""
        if not isinstance(taken, tuple) or len(taken) != len(self.array.key_shape):
            return None
        if given.ndim == 0:
            return np.full(self.array.key_shape, given, self.array.dtype)
        if given.ndim != sum(isinstance(one, slice) for one in taken):
            return None
        lengths = iter(given.shape)
        shape = tuple(next(lengths) if isinstance(one, slice) else 1 for one in taken)
        return np.ascontiguousarray(given, self.array.dtype).reshape(shape)

    async def _merged(self, items: Items, given: Values, drop_axes: tuple[int, ...]) -> Values:
        """The keys after a selection of any kind was written into them, one after the other along the first axis."""
        stored = await concurrent_map(
            [(item[0], item[1].prototype) for item in items if not item[4]],
            lambda setter, prototype: setter.get(prototype=prototype),
            config.get("async.concurrency"),
        )
        kept = [item for item in items if not item[4]]
        decoded = await self.inner.decode((old, item[1]) for old, item in zip(stored, kept, strict=True))
        olds = {id(item): old for item, old in zip(kept, decoded, strict=True)}
        first, *others = self.array.key_shape
        merged = np.empty((first * len(items), *others), self.array.dtype)
        for number, item in enumerate(items):
            _, spec, taken, goes, _ = item
            chunk, old = merged[number * first : (number + 1) * first], olds.get(id(item))
            chunk[...] = fill_of(spec) if old is None else old.as_ndarray_like()
            values = given if given.ndim == 0 or taken == () else given[goes]
            if drop_axes and values.ndim:
                values = values[tuple(None if axis in drop_axes else slice(None) for axis in range(chunk.ndim))]
            chunk[taken] = values
        return merged

    async def _put(self, items: Items, parts: ZarrParts, values: Values) -> None:
        leaves_out_fill = not items[0][1].config.write_empty_chunks
        asked = (self.steps, leaves_out_fill, config.get("threading.max_workers"))
        given = (values.reshape(-1).view(np.uint8), values.shape)
        if type(self.store) is LocalStore:
            if not self.store._is_open:
                await self.store._open()
            self.store._check_writable()
            await asyncio.to_thread(self.array.write_keys, parts, str(self.store.root), given, asked)
            return
        olds: list[bytes | None] = [None] * len(items)
        kept = parts.kept
        read = await concurrent_map(
            [(items[number][0], items[number][1].prototype) for number in kept],
            lambda setter, prototype: setter.get(prototype=prototype),
            config.get("async.concurrency"),
        )
        for number, old in zip(kept, read, strict=True):
            olds[number] = None if old is None else old.to_bytes()
        made = await asyncio.to_thread(self.array.encode_keys, parts, olds, given, asked)
        await concurrent_map(
            [(item[0], item[1].prototype, bytes_) for item, bytes_ in zip(items, made, strict=True)],
            _set,
            config.get("async.concurrency"),
        )


def _is_all(taken: Any, shape: tuple[int, ...]) -> bool:
    """Whether a selection has all elements of a key, also those outside of the array."""
    if not isinstance(taken, tuple) or len(taken) != len(shape):
        return False
    return all(
        isinstance(one, slice) and (one.start or 0, one.stop, one.step or 1) == (0, length, 1)
        for one, length in zip(taken, shape, strict=True)
    )


async def _set(setter: Any, prototype: Any, stored: bytes | None) -> None:
    if stored is None:
        await setter.delete()
    else:
        await setter.set(prototype.buffer.from_bytes(stored))


def _groups(items: Items, step: int) -> Iterator[Items]:
    return (items[start : start + step] for start in range(0, len(items), step))

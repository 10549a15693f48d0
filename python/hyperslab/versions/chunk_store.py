"""`ChunkStore`: all chunks that an array ever had, and the table of their hashes."""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from hyperslab.versions.layout import (
    DATA,
    HASH_TABLE_CHUNK_LENGTH,
    HASH_TABLE_DTYPE,
    Array,
    chunk_hash,
)


class ChunkStore:
    """The chunks of one array, over all versions. It only ever grows.

    Args:
        file: Where it is.
        path: The array's path in a version.
    """

    def __init__(self, file: h5py.Group, path: str) -> None:
        group = file[f"{DATA}/{path}"]
        self.path = path
        self.raw: Any = group["raw_data"]
        self._table: Any = group["hash_table"]
        self.chunk_shape: tuple[int, ...] = self.raw.chunks
        self.count = int(self._table.attrs["largest_index"])
        rows = self._table[: self.count]
        starts = (rows["shape"][:, 0] // self.chunk_shape[0]).tolist()
        hashes = np.ascontiguousarray(rows["hash"]).tobytes()
        digests = (hashes[place : place + 32] for place in range(0, len(hashes), 32))
        self._places: dict[bytes, int] = dict(zip(digests, starts, strict=True))

    @classmethod
    def create(
        cls, file: h5py.Group, path: str, dtype: Any, chunk_shape: tuple[int, ...], fill: Any, options: dict[str, Any]
    ) -> ChunkStore:
        """A new one, without any chunk."""
        group = file[DATA].require_group(path)
        raw = group.create_dataset(
            "raw_data",
            shape=(0, *chunk_shape[1:]),
            maxshape=(None, *chunk_shape[1:]),
            chunks=chunk_shape,
            dtype=dtype,
            fillvalue=fill,
            **options,
        )
        raw.attrs["chunks"] = chunk_shape
        table = group.create_dataset(
            "hash_table",
            shape=(1,),
            maxshape=(None,),
            chunks=(HASH_TABLE_CHUNK_LENGTH,),
            dtype=HASH_TABLE_DTYPE,
            compression="lzf",
        )
        table.attrs["largest_index"] = 0
        return cls(file, path)

    @property
    def is_current(self) -> bool:
        """Whether nobody else added chunks, or put other tables in the place of these."""
        return bool(self.raw and self._table) and int(self._table.attrs["largest_index"]) == self.count

    def place(self, digest: bytes) -> int | None:
        """Where a chunk with this hash is; None if there is none."""
        return self._places.get(digest)

    def append(self, digests: list[bytes], chunks: Array, lengths: npt.NDArray[np.int64]) -> None:
        """Store new chunks: first they themselves, then their hashes, and last how many count.

        Args:
            digests: The hash of each.
            chunks: The chunks, each whole, with one axis more in front.
            lengths: How many rows of each are inside their array.
        """
        if not digests:
            return
        length = self.chunk_shape[0]
        first, last = self.count, self.count + len(digests)
        self.raw.resize((last * length, *self.chunk_shape[1:]))
        if not self.raw.dtype.hasobject:
            chunks = chunks.view(self.raw.dtype)  # which knows the encoding of text of some length
        self.raw[first * length :] = chunks.reshape(-1, *self.chunk_shape[1:])
        rows = np.empty(len(digests), HASH_TABLE_DTYPE)
        rows["hash"] = np.frombuffer(b"".join(digests), np.uint8).reshape(-1, 32)
        starts = np.arange(first, last) * length
        rows["shape"] = np.stack([starts, starts + lengths], axis=1)
        self._table.resize((last,))
        self._table[first:] = rows
        self._table.attrs["largest_index"] = last
        self._places.update(zip(digests, range(first, last), strict=True))
        self.count = last

    def check_same(self, dtype: Any, chunk_shape: tuple[int, ...] | None, fill: Any) -> None:
        """Refuse an array that contradicts what earlier versions had under its path.

        Raises:
            ValueError: dtype, chunks or fill value differ.
        """
        theirs = self.raw.dtype
        if dtype is not None and dtype != theirs and not (is_text(dtype) and is_text(theirs)):
            raise ValueError(f"{self.path} has the dtype {theirs} in earlier versions, not {dtype}")
        if chunk_shape is not None and chunk_shape != self.chunk_shape:
            raise ValueError(f"{self.path} has chunks of {self.chunk_shape} in earlier versions, not {chunk_shape}")
        if fill is not None and not is_text(theirs) and np.asarray(fill, theirs).tobytes() != self.fill.tobytes():
            raise ValueError(f"{self.path} has the fill value {self.raw.fillvalue} in earlier versions, not {fill}")

    @property
    def fill(self) -> Array:
        """The fill value."""
        return np.asarray(0 if self.raw.fillvalue is None else self.raw.fillvalue, self.raw.dtype)


def is_text(dtype: Any) -> bool:
    """Whether elements are text of any length."""
    return bool(dtype.kind == "T" or (dtype.kind == "O" and h5py.check_string_dtype(dtype) is not None))


def fill_hash(chunk_shape: tuple[int, ...], fill: Any, dtype: np.dtype[Any]) -> bytes:
    """The hash of a chunk that is nothing but the fill value: such a chunk is never stored."""
    return chunk_hash(np.full(chunk_shape, fill, dtype))

"""`StoredLayout`: how an array is cut into chunks and encoded, for formats, for the cost model and for advice."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from hyperslab.storage.chain import PLAIN, CodecChain

Index: TypeAlias = Literal["btree_v1", "btree_v2", "fixed_array", "extensible_array", "none"]
Column: TypeAlias = npt.NDArray[np.uint64]
Manifest: TypeAlias = tuple[Column, Column, Column]  # linear indices, offsets, stored lengths
_AS_BEFORE: Any = object()


@dataclass(frozen=True, init=False)
class StoredLayout:
    """How an array is cut into chunks and encoded.

    `ratio` is decoded bytes per stored byte, or None without codecs. `codec` is the text of the codecs, as `hyperslab
    formats` names them, or a `CodecChain`; it does not change the cost model's counts. Without a chunk shape the array
    is `contiguous`: in one piece (HDF5's word). The cost model then wants the array's shape as the chunk shape. If it
    is `compact` as well, it is in its object header. `max_shape` says how far the array may grow, with None for an axis
    without a limit.

    The rest is known of existing files. `manifest` has the locations of their chunks; without it, all chunks exist and
    follow each other in row-major order. `index` is the chunk index of an HDF5 file, and `wide_lengths` says whether
    it stores lengths in eight bytes. With None, the index is the one that HDF5 would make.
    """

    chunk_shape: tuple[int, ...]
    shard_shape: tuple[int, ...] | None
    ratio: float | None
    codecs: CodecChain
    contiguous: bool
    manifest: Manifest | None = field(repr=False, compare=False)
    compact: bool
    max_shape: tuple[int | None, ...] | None
    index: Index | None
    wide_lengths: bool

    def __init__(
        self,
        chunk_shape: tuple[int, ...] | None = None,
        shard_shape: tuple[int, ...] | None = None,
        ratio: float | None = None,
        codec: CodecChain | str | None = _AS_BEFORE,
        contiguous: bool = False,
        manifest: Manifest | None = None,
        compact: bool = False,
        max_shape: tuple[int | None, ...] | None = None,
        index: Index | None = None,
        wide_lengths: bool = False,
        *,
        codecs: CodecChain = PLAIN,
    ) -> None:
        given = codecs if codec is _AS_BEFORE else codec
        set_field = object.__setattr__  # it is frozen
        set_field(self, "chunk_shape", () if chunk_shape is None else chunk_shape)
        set_field(self, "shard_shape", shard_shape)
        set_field(self, "ratio", ratio)
        set_field(self, "codecs", given if isinstance(given, CodecChain) else CodecChain.read(given))
        set_field(self, "contiguous", contiguous or chunk_shape is None)
        set_field(self, "manifest", manifest)
        set_field(self, "compact", compact)
        set_field(self, "max_shape", max_shape)
        set_field(self, "index", index)
        set_field(self, "wide_lengths", wide_lengths)

    @property
    def codec(self) -> str | None:
        """The text of the codecs; None without any."""
        return str(self.codecs) if self.codecs else None

    def __str__(self) -> str:
        """The layout in the form that `--layout` takes, or `compact`."""
        if self.contiguous:
            return "compact" if self.compact else "contiguous"
        parts = [self.chunk_shape] if self.shard_shape is None else [self.chunk_shape, self.shard_shape]
        shapes = "/".join("x".join(map(str, part)) for part in parts)
        return shapes if self.ratio is None else f"{shapes}:{self.codec or ''}={self.ratio:g}"

    @property
    def words(self) -> str:
        """The layout in words."""
        shape = "contiguous" if self.contiguous else "chunks " + "×".join(map(str, self.chunk_shape))
        if self.shard_shape is not None:
            shape += ", shards " + "×".join(map(str, self.shard_shape))
        return f"{shape}, {self.codecs if self.codecs else 'uncompressed'}"

    def to_dict(self) -> dict[str, Any]:
        """The arguments that make it again, as JSON can express them except for `manifest`."""
        named = {"codec" if one.name == "codecs" else one.name: one.name for one in fields(self)}
        arguments = {key: getattr(self, name) for key, name in named.items()}
        return {**arguments, "codec": self.codec}

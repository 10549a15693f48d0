"""The rows of zarr-python's codec pipelines: one chunk, a few and all of them, read and written through an open array.

Every pipeline has an array of its own. A write overwrites the chunks that are there: ours writes each file beside and
renames it, as zarr-python's local store does; zarrs truncates the file and writes into it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import peers
from comparison import OURS, Row, Side
from files import Files

from hyperslab.lab import cache

CODECS = ("zstd", "blosc-lz4", "gzip", "uncompressed")
SIDES = {"64 KiB": 128, "1 MiB": 512}  # of a square chunk of float32
CHUNKS_PER_AXIS, PER_SHARD = 8, 4
NAMES = {"hyperslab": OURS, "zarrs": "zarrs", "fused": "Fused"}
TURNS, SHORT = 21, 10


def pipelines(files: Files, verb: str) -> Iterator[Row]:
    """Reads or writes, by codec, size of chunks, with and without shards."""
    for codec in CODECS:
        for size, side in SIDES.items():
            for is_sharded in (False, True):
                yield from _rows(files, verb, codec, size, side, is_sharded)


def _rows(files: Files, verb: str, codec: str, size: str, side: int, is_sharded: bool) -> Iterator[Row]:
    shape = (side * CHUNKS_PER_AXIS,) * 2
    data = np.resize(files.data, shape)
    layout = f"{size} chunks{' in shards' if is_sharded else ''}"
    name = f"pipelines-{codec}-{side}{'-sharded' if is_sharded else ''}"
    folders = {one: files.made(f"{name}-{one}", _maker(data, codec, side, is_sharded)) for one in NAMES}
    unit = side * (PER_SHARD if is_sharded and verb == "write" else 1)
    for what, across, down in (("one", unit, unit), ("a few", 2 * unit, 2 * unit), ("all", *shape)):
        key = (slice(0, across), slice(0, down))
        is_short = what != "all" and (verb == "read" or across * down * data.itemsize <= 1 << 20)
        per_turn = SHORT if is_short else 1
        yield Row(
            key=f"{name}-{verb}-{what.replace(' ', '-')}",
            work=f"zarr-python {verb}s {what}, {codec}, {layout}",
            files=[path for folder in folders.values() for path in cache.files_below(folder)] if verb == "read" else [],
            expected=data[key],
            sides={NAMES[one]: _side(one, folder, key, data, verb, per_turn) for one, folder in folders.items()},
            targets={"zarrs": 1.0, **({"Fused": 1.0} if verb == "read" else {})},
            turns=TURNS,
            per_turn=per_turn,
        )


def _maker(data: np.ndarray, codec: str, side: int, is_sharded: bool) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        import zarr

        compressors: dict[str, Any] = {
            "zstd": zarr.codecs.ZstdCodec(level=3),
            "blosc-lz4": zarr.codecs.BloscCodec(cname="lz4", clevel=5, shuffle=zarr.codecs.BloscShuffle.shuffle),
            "gzip": zarr.codecs.GzipCodec(level=4),
            "uncompressed": None,
        }
        shutil.rmtree(folder, ignore_errors=True)
        shards = (side * PER_SHARD,) * 2 if is_sharded else None
        chosen = compressors[codec]
        zarr.create_array(folder, data=data, chunks=(side, side), shards=shards, compressors=chosen)

    return make


def _side(
    name: str, folder: Path, key: tuple[slice, slice], data: np.ndarray, verb: str, per_turn: int
) -> Callable[[], Side]:
    def ready() -> Side:
        array, values = peers.through_pipeline(name, folder), data[key].copy()

        def read() -> Any:
            for _ in range(per_turn - 1):
                array[key]
            return array[key]

        def write() -> None:
            for _ in range(per_turn):
                array[key] = values

        def written(_: Any) -> Any:
            return peers.through_pipeline("zarr-python", folder)[key]

        return Side(read) if verb == "read" else Side(write, written)

    return ready

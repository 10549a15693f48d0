"""The rows of the speed table: each with its peers and targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import combiners
import indexers
import numpy as np
import peers
from comparison import OURS, Row, Side
from files import Files

from hyperslab.lab import cache
from hyperslab.memory import aligned_empty

LARGE_CACHE_NBYTES = 1 << 30  # holds every decoded chunk of the field
OUR_FLOOR, LIBDEFLATE_FLOOR = "floor of our inflate", "floor of libdeflate"


def whole(make: Callable[[], peers.Read]) -> Callable[[], Side]:
    """A side that reads everything. It is prepared when it is needed."""

    def ready() -> Side:
        read = make()
        return Side(lambda: read(...), peers.checksum)

    return ready


def deflate(files: Files) -> Iterator[Row]:
    """W1: everything, deflated and shuffled."""
    path = files.hdf5("deflate")

    def floor(decoder: str) -> Side:
        return Side(peers.InflateFloor(path, decoder).read, peers.FloorOutput.checksum)

    yield Row(
        key="deflate",
        work="everything, deflate+shuffle",
        files=[path],
        expected=peers.checksum(files.data),
        sides={
            OURS: whole(lambda: peers.by_hyperslab(path)),
            "h5py": whole(lambda: peers.by_h5py(path)),
            "hidefix": whole(lambda: peers.by_hidefix(path)),
            OUR_FLOOR: lambda: floor("ours"),
            LIBDEFLATE_FLOOR: lambda: floor("libdeflate"),
        },
        targets={"h5py": 0.23, "hidefix": 0.96, OUR_FLOOR: 1.05},
        turns=15,
    )


def zarr(files: Files) -> Iterator[Row]:
    """W1 as Zarr 3: everything, with the two codecs that are fastest for its readers."""
    readers = {
        OURS: peers.by_hyperslab,
        "zarrs": partial(peers.by_zarr, "zarrs"),
        "tensorstore": partial(peers.by_zarr, "tensorstore"),
    }
    return _by_codec(files, "zarr", "everything", readers, {"zarrs": 0.95, "tensorstore": 0.95}, 25)


def pipeline(files: Files) -> Iterator[Row]:
    """Everything through zarr-python, `zarr.open(...)[...]`, by its codec pipelines."""
    readers = {
        OURS: partial(peers.by_pipeline, "hyperslab"),
        "zarr-python": partial(peers.by_pipeline, "zarr-python"),
        "zarrs": partial(peers.by_pipeline, "zarrs"),
    }
    return _by_codec(files, "pipeline", "zarr.open(...)[...]", readers, {"zarr-python": 0.6, "zarrs": 0.95}, 9)


def _by_codec(
    files: Files,
    key: str,
    work: str,
    readers: Mapping[str, Callable[[Path], peers.Read]],
    targets: Mapping[str, float],
    turns: int,
) -> Iterator[Row]:
    for codec in ("zstd:3", "blosc-lz4:5"):
        path = files.zarr(codec)
        yield Row(
            key=f"{key}-{codec.split(':')[0]}",
            work=f"{work}, Zarr 3, {codec}",
            files=cache.files_below(path),
            expected=peers.checksum(files.data),
            sides={name: whole(partial(reader, path)) for name, reader in readers.items()},
            targets=targets,
            turns=turns,
        )


def uncompressed(files: Files) -> Iterator[Row]:
    """W3: everything, not compressed, into a new array and into an existing one."""
    data, plain = files.data, files.plain
    for layout in ("chunked", "contiguous"):
        path, native = files.hdf5(layout), files.zarr(None)
        fresh = {
            OURS: whole(lambda path=path: peers.by_hyperslab(path)),
            "two-thread preadv": whole(lambda: peers.by_preadv(plain, data.shape, data.dtype, None)),
            "h5py": whole(lambda path=path: peers.by_h5py(path)),
            "hidefix": whole(lambda path=path: peers.by_hidefix(path)),
        }
        if layout == "chunked":
            fresh["zarrs, Zarr 3"] = whole(lambda native=native: peers.by_zarr("zarrs", native))
        out = aligned_empty(data.shape, data.dtype)
        reused = {
            OURS: whole(lambda path=path, out=out: peers.by_hyperslab_into(path, out)),
            "two-thread preadv": whole(lambda out=out: peers.by_preadv(plain, data.shape, data.dtype, out)),
            "h5py": whole(lambda path=path, out=out: peers.by_h5py_into(path, out)),
        }
        for kind, sides in (("new array", fresh), ("reused array", reused)):
            yield Row(
                key=f"{layout}-{kind.split()[0]}",
                work=f"everything, uncompressed, {layout}, {kind}",
                files=[path, plain, *cache.files_below(native)],
                expected=peers.checksum(data),
                sides=sides,
                targets={"two-thread preadv": 1.15},
                turns=15,
            )


def selections(shape: tuple[int, ...]) -> dict[str, list[Any]]:
    """The selections of W2: boxes and points anywhere, columns along the first axis."""
    random = np.random.default_rng(11)
    lengths = [min(8, shape[0]), 64, 64]

    def positions(count: int, room: list[int]) -> list[list[int]]:
        return random.integers(0, [length + 1 for length in room], (count, 3)).tolist()

    corners = positions(10, [whole - length for whole, length in zip(shape, lengths, strict=True)])
    last = [length - 1 for length in shape]
    boxes = [tuple(slice(a, a + length) for a, length in zip(corner, lengths, strict=True)) for corner in corners]
    return {
        "box (8, 64, 64)": boxes,
        "point": [tuple(index) for index in positions(24, last)],
        "column [:, i, j]": [(slice(None), i, j) for _, i, j in positions(2, last)],
    }


def parts(files: Files) -> Iterator[Row]:
    """W2: small selections of the deflated array, with no decoded chunk cached and with all of them cached."""
    path = files.hdf5("deflate")
    for name, keys in selections(files.data.shape).items():

        def each(read: peers.Read, keys: list[Any] = keys) -> Side:
            return Side(lambda: [read(key) for key in keys])

        both = {"hidefix": lambda each=each: each(peers.by_hidefix(path))}
        cold = {
            OURS: lambda each=each: each(peers.by_hyperslab(path)),
            "h5py": lambda each=each: each(peers.by_h5py(path)),
            **both,
        }
        warm = {
            OURS: lambda each=each: each(peers.by_hyperslab(path, LARGE_CACHE_NBYTES)),
            "h5py, its chunk cache": lambda each=each: each(peers.by_h5py(path, LARGE_CACHE_NBYTES)),
            **both,
        }
        for kind, sides, most in (("nothing cached", cold, 0.75), ("again, chunks cached", warm, 0.05)):
            yield Row(
                key=f"{name.split()[0]}-{kind.split(',')[0].split()[0]}",
                work=f"{name}, {kind}",
                files=[path],
                expected=[files.data[key] for key in keys],
                sides=sides,
                targets={"hidefix": most},
                per_turn=len(keys),
            )


def index(files: Files, shrink: int = 1) -> Iterator[Row]:
    """W5: find all chunks, of one array with very many chunks and of very many arrays."""
    chunks, groups = 102_400 // shrink, 20 // shrink
    path = files.many_chunks(chunks, 10)
    yield _index_row("index-chunks", f"index of {chunks:,} chunks", path, ["x"], chunks * 40)
    path, names = files.many_arrays(groups)
    yield _index_row("index-arrays", f"index of {len(names):,} arrays", path, names, len(names) * 256)


def _index_row(key: str, work: str, path: Path, names: list[str], stored_nbytes: int) -> Row:
    return Row(
        key=key,
        work=work,
        files=[path],
        expected=stored_nbytes,
        sides={
            OURS: lambda: indexers.by_hyperslab(lambda: path),
            "hidefix": lambda: indexers.by_hidefix(path, names),
            "kerchunk": lambda: indexers.by_kerchunk(lambda: path),
            "VirtualiZarr": lambda: indexers.by_virtualizarr(lambda: f"file://{path}", indexers.local_registry),
            "h5py chunk_iter": lambda: indexers.by_h5py(lambda: path),
        },
        targets={"hidefix": 0.65},
        turns=7,
    )


def tiny(files: Files, shrink: int = 1) -> Iterator[Row]:
    """A file with 200,000 chunks of 64 bytes: its index, and reading everything."""
    count = 200_000 // shrink
    path = files.many_chunks(count, 16)
    yield Row(
        key="tiny-index",
        work=f"index of {count:,} chunks of 64 bytes",
        files=[path],
        expected=count * 64,
        sides={
            OURS: lambda: indexers.by_hyperslab(lambda: path),
            "hidefix": lambda: indexers.by_hidefix(path, ["x"]),
            "h5py chunk_iter": lambda: indexers.by_h5py(lambda: path),
        },
        most_seconds=0.050,
    )
    yield Row(
        key="tiny-read",
        work=f"everything of {count:,} chunks of 64 bytes",
        files=[path],
        expected=peers.checksum(files.small_rows(count, 16)),
        sides={
            OURS: whole(lambda: peers.by_hyperslab(path)),
            "hidefix": whole(lambda: peers.by_hidefix(path)),
            "h5py": whole(lambda: peers.by_h5py(path)),
        },
    )


def collection(files: Files, shrink: int = 1) -> Iterator[Row]:
    """Files of one month each, indexed and concatenated along time."""
    count = 1000 // shrink
    paths = files.many_files(count)
    yield Row(
        key="collection",
        work=f"index of {count:,} NetCDF files and concatenation",
        files=paths,
        expected=count * 10 * 16 * 16 * 4,
        sides={
            OURS: lambda: combiners.by_hyperslab(paths),
            "VirtualiZarr": lambda: combiners.by_virtualizarr(paths),
            "kerchunk": lambda: combiners.by_kerchunk(paths),
        },
        targets={"VirtualiZarr": 0.1, "kerchunk": 0.1},
        turns=3,
    )

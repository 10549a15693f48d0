"""The rows of remote reading: each with its peers and targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import far_peers
import numpy as np
import peers
from comparison import OURS, Row, Side
from far_peers import DelayedFile
from files import CHUNK, Files

from hyperslab.lab import serving

NEAR, FARTHER = 0.020, 0.025  # seconds each way
W8_PLANES = 16  # 64 MiB in 64 chunks
SMALL_CHUNKS = 10_000
TURNS, SMALL_TURNS = 9, 3


def most_runs(turns: int) -> int:
    """The most runs of one side in a row: its check, a warm-up, the turns, as many repeats, and one counted run."""
    return 2 * turns + 3


@dataclass
class Network:
    """One web server for all files, with delayed connections to it."""

    server: serving.Nginx
    stack: ExitStack

    def file(self, path: Path, seconds: float) -> DelayedFile:
        """A file in the server's folder, with a delay of `seconds` each way."""
        return DelayedFile(path, self.server, self.stack.enter_context(serving.far(self.server.port, seconds)))


Sides = dict[str, Callable[[], Side]]


def hyperslab_of_64_mb(files: Files, network: Network, quick: bool) -> Iterator[Row]:
    """W8: a hyperslab of 64 MiB of the deflated field, from nothing and with the index ready."""
    path = files.hdf5("deflate")
    first = 0 if quick else 40
    key = np.s_[first : first + W8_PLANES]
    expected = peers.checksum(files.data[key])
    file = network.file(path, NEAR)

    def nothing(make: Callable[[], Callable[[str], Any]]) -> Callable[[], Side]:
        return lambda: far_peers.from_nothing(file, make(), key, peers.checksum)

    def ready(make: Callable[[], Callable[[str], Any]], url: Callable[[], str] = file.url) -> Callable[[], Side]:
        return lambda: far_peers.from_ready(url, make(), key, peers.checksum, most_runs(TURNS))

    yield Row(
        key="w8-nothing",
        work="64 MiB hyperslab, 20 ms each way, from nothing",
        files=[path],
        expected=expected,
        sides={
            OURS: nothing(lambda: far_peers.by_hyperslab),
            "VirtualiZarr": nothing(far_peers.by_virtualizarr),
            "h5py + fsspec": nothing(lambda: far_peers.by_h5py(None)),
            "h5py + fsspec, 8 MiB blocks": nothing(lambda: far_peers.by_h5py(far_peers.LARGE_BLOCK_NBYTES)),
        },
        targets={"VirtualiZarr": 0.5},
    )
    yield Row(
        key="w8-ready",
        work="64 MiB hyperslab, 20 ms each way, index ready",
        files=[path],
        expected=expected,
        sides={
            OURS: ready(lambda: far_peers.by_hyperslab),
            "kerchunk + zarr": ready(lambda: far_peers.by_kerchunk(path)),
            "icechunk": ready(far_peers.by_icechunk, file.url_without_port),
            "VirtualiZarr": ready(far_peers.by_virtualizarr),
        },
        targets={"kerchunk + zarr": 0.85, "icechunk": 0.85, "VirtualiZarr": 0.85},
    )


def indices(makers: dict[str, Callable[[Path], None]], files: Files, network: Network, quick: bool) -> Iterator[Row]:
    """Find all chunks of files like those of archives, with metadata scattered among the data."""
    for name, make in list(makers.items())[-1 if quick else 0 :]:
        path = files.made(f"{name}.nc", make)
        yield Row(
            key=f"index-{name}",
            work=f"index of a {name.upper()}-like file, 20 ms each way",
            files=[path],
            expected=far_peers.indexers.by_hyperslab(lambda path=path: path).run(),
            sides=far_peers.indexers_of(network.file(path, NEAR)),
            targets={"VirtualiZarr": 0.25, "kerchunk": 0.25, "h5py + fsspec": 0.25},
            turns=1 if quick else 4,
        )


def small_chunks(files: Files, network: Network, quick: bool) -> Iterator[Row]:
    """Very many chunks of 32 KiB, with the index ready."""
    count = SMALL_CHUNKS // (10 if quick else 1)
    path = files.small_deflated(count)
    file = network.file(path, FARTHER)
    turns = 1 if quick else SMALL_TURNS

    def side(make: Callable[[], Callable[[str], Any]]) -> Callable[[], Side]:
        return lambda: far_peers.from_ready(file.url, make(), np.s_[:], peers.checksum, most_runs(turns))

    yield Row(
        key="small-chunks",
        work=f"{count:,} chunks of 32 KiB, 25 ms each way, index ready",
        files=[path],
        expected=peers.checksum(files.small_planes(count)),
        sides={
            OURS: side(lambda: far_peers.by_hyperslab),
            "kerchunk + zarr": side(lambda: far_peers.by_kerchunk(path)),
            "VirtualiZarr": side(far_peers.by_virtualizarr),
        },
        targets={"kerchunk + zarr": 0.2, "VirtualiZarr": 0.2},
        turns=turns,
    )


def needed_nbytes(path: Path, planes: slice) -> int:
    """The stored bytes of the chunks of some planes of array `x`, by h5py."""
    import h5py

    found = []
    with h5py.File(path) as file:
        file["x"].id.chunk_iter(lambda chunk: found.append((chunk.chunk_offset[0] // CHUNK[0], chunk.size)))
    inside = range(*planes.indices(1 << 40))
    return sum(nbytes for plane, nbytes in found if plane in inside)

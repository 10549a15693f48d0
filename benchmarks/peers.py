"""The peers: how each reads the same bytes. A peer raises ImportError or a similar error if it is not installed.

All of them run on two processors (`read_speed.py` removes the others), and with two threads if this can be set: hidefix
and zarrs by RAYON_NUM_THREADS, TensorStore and hyperslab by an argument. h5py decodes on the calling thread.
"""

from __future__ import annotations

import math
import os
import subprocess
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from comparison import ROOT

import hyperslab
from hyperslab.formats import make_format
from hyperslab.memory import aligned_empty

THREADS = 2
EVERYTHING = (slice(None),) * 3
Read = Callable[[Any], Any]
PACKAGES = ("h5py", "hidefix", "kerchunk", "virtualizarr", "zarr", "zarrs", "tensorstore", "numpy", "xarray")
FAR_PACKAGES = ("h5py", "kerchunk", "virtualizarr", "icechunk", "zarr", "obstore", "fsspec", "aiohttp", "numpy")


def versions(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """The version of every peer, or that it is not installed."""
    found = {"hyperslab": hyperslab.__version__, "HDF5 of h5py": h5py.version.hdf5_version}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def by_hyperslab(path: Path, chunk_cache_nbytes: int = 0) -> Read:
    """`array[key]` as a new array."""
    array = hyperslab.open(path, chunk_cache_nbytes=chunk_cache_nbytes)["x"]
    return lambda key: array.read(key, threads=THREADS)


def by_hyperslab_into(path: Path, out: np.ndarray) -> Read:
    """Read everything into `out`."""
    array = hyperslab.open(path)["x"]
    return lambda key: array.read(key, out=out, threads=THREADS)


def by_h5py(path: Path, chunk_cache_nbytes: int = 0) -> Read:
    """`array[key]`, with cache slots for all chunks, so that no chunk displaces another."""
    slots = 1_000_003 if chunk_cache_nbytes else 521
    array = h5py.File(path, rdcc_nbytes=chunk_cache_nbytes, rdcc_nslots=slots)["x"]
    return lambda key: array[key]


def by_h5py_into(path: Path, out: np.ndarray) -> Read:
    """Read everything into `out`."""
    array = h5py.File(path)["x"]

    def read(_: Any) -> np.ndarray:
        array.read_direct(out)
        return out

    return read


def by_hidefix(path: Path) -> Read:
    """`array[key]` of an index that is ready. hidefix does not keep decoded chunks."""
    import hidefix

    array = hidefix.Index(path)["x"]
    return lambda key: array[EVERYTHING[: len(array.shape())] if key is ... else key]


def by_zarr(name: str, path: Path) -> Read:
    """Read a whole Zarr 3 array with zarrs or TensorStore."""
    array = make_format(name, {"threads": THREADS}).open(path).open_array("x")
    return lambda _: array.read()


PIPELINES = {
    "hyperslab": "hyperslab.archive.zarr_pipeline.Pipeline",
    "zarrs": "zarrs.ZarrsCodecPipeline",
    "zarr-python": "zarr.core.codec_pipeline.BatchedCodecPipeline",
    "fused": "zarr.core.codec_pipeline.FusedCodecPipeline",
}


def through_pipeline(name: str, folder: Path) -> Any:
    """An array of zarr-python that one of its codec pipelines reads and writes."""
    import zarr
    import zarr.core.codec_pipeline

    if name == "zarrs":
        import zarrs  # noqa: F401 - fails if zarrs is not installed
    if name == "fused" and not hasattr(zarr.core.codec_pipeline, "FusedCodecPipeline"):
        raise ImportError(f"zarr {zarr.__version__} has no FusedCodecPipeline")
    zarr.config.set({"threading.max_workers": THREADS, "codec_pipeline.max_workers": THREADS})
    with zarr.config.set({"codec_pipeline.path": PIPELINES[name]}):
        return zarr.open_array(folder, mode="r+")


def by_pipeline(name: str, path: Path) -> Read:
    """`zarr.open(path)["x"][...]`, including opening, through one of zarr-python's codec pipelines."""
    import zarr

    if name == "zarrs":
        import zarrs  # noqa: F401 - fails if zarrs is not installed
    chosen = {"codec_pipeline.path": PIPELINES[name], "threading.max_workers": THREADS}

    def read(key: Any) -> Any:
        with zarr.config.set(chosen):
            return zarr.open_group(path, mode="r")["x"][key]

    return read


def by_preadv(plain: Path, shape: tuple[int, ...], dtype: np.dtype[Any], out: np.ndarray | None) -> Read:
    """The floor for uncompressed data: two threads read 4 MiB per call into an array like ours."""
    step = 4 << 20

    def read(_: Any) -> np.ndarray:
        array = aligned_empty(shape, dtype) if out is None else out
        view = array.reshape(-1).view(np.uint8).data
        descriptor = os.open(plain, os.O_RDONLY)

        def part(first: int) -> None:
            for start in range(first, len(view), THREADS * step):
                stop = min(start + step, len(view))
                while start < stop:
                    start += os.preadv(descriptor, [view[start:stop]], start)

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(part, range(0, THREADS * step, step)))
        os.close(descriptor)
        return array

    return read


class InflateFloor:
    """The floor for deflated and shuffled chunks: the engine's example `inflate_floor`, which keeps running."""

    PROGRAM = ROOT / "target" / "release" / "examples" / "inflate_floor"
    BUILD = "cargo build --release --locked -p hyperslab-engine --example inflate_floor"

    def __init__(self, path: Path, decoder: str) -> None:
        if not self.PROGRAM.exists():
            raise FileNotFoundError(self.BUILD)
        with h5py.File(path) as file:
            array, table = file["x"], {}
            array.id.chunk_iter(lambda chunk: table.update({chunk.chunk_offset: (chunk.byte_offset, chunk.size)}))
            rows, row_nbytes = math.prod(array.chunks[:-1]), array.chunks[-1] * array.dtype.itemsize
            across = array.shape[-1] // array.chunks[-1]
            numbers = (THREADS, array.dtype.itemsize, rows, row_nbytes, across)
        # NumPy asks for huge pages for large arrays; this makes malloc do so too.
        environment = {**os.environ, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
        self._process = subprocess.Popen(
            [self.PROGRAM, path, decoder, *map(str, numbers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for position in sorted(table):
            print(*table[position], file=self._process.stdin)
        print(file=self._process.stdin)

    def read(self) -> FloorOutput:
        """Read everything into new memory of the floor's process."""
        self.order("read")
        return FloorOutput(self)

    def order(self, word: str) -> int:
        """Send a command and wait for the answer."""
        assert self._process.stdin
        assert self._process.stdout
        print(word, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().strip()
        if not answer:
            raise RuntimeError(f"inflate_floor ended with {self._process.wait()}")
        return int(answer)


class FloorOutput:
    """What the floor read.

    It stays in the floor's memory until this is freed, which is not timed, as for our arrays.
    """

    def __init__(self, floor: InflateFloor) -> None:
        self._floor = floor

    def checksum(self) -> int:
        """The checksum, as of an array."""
        return self._floor.order("sum")

    def __del__(self) -> None:
        self._floor.order("drop")


def checksum(array: Any) -> int:
    """The checksum of an array that was read as a whole. The floor computes it of its own output."""
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8))

"""Reading without the HDF5 library, against the peers: ratios of medians, every pair of sides interleaved.

    python benchmarks/read_speed.py [REPEATS] [MEGABYTES]

The field is the one of the peers' study: float32 waves with noise, kept to two decimals, in chunks of (1, 512, 512)
(1 MiB). Files are warm. Each row names its peer and the peer's work: same bytes, same codec, same fresh or reused
output. Results are kept in benchmarks/results/read_speed.json.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from paired import paired_ratio

import hyperslab
from hyperslab.bench import cache
from hyperslab.bench.environment import observe

RESULTS = Path(__file__).parent / "results" / "read_speed.json"
CHUNK = (1, 512, 512)
Work = Callable[[], Any]


def field(megabytes: int) -> np.ndarray:
    """Smooth waves and noise, to two decimals: deflate with shuffle halves it."""
    shape = (max(1, megabytes // 4), 1024, 1024)
    random = np.random.default_rng(7)
    t, y, x = np.ogrid[: shape[0], : shape[1], : shape[2]]
    out = np.sin(x / 37.0) * 20 + np.cos(y / 53.0) * 15 + np.sin(t / 5.0) * 5
    out = out.astype(np.float32)
    out += random.normal(0, 0.3, shape).astype(np.float32)
    return np.round(out, 2)


def interleaved(sides: dict[str, Work], repeats: int) -> dict[str, list[float]]:
    """Seconds of each side, in turn; the first turn is warm-up."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for repeat in range(-1, repeats):
        for name, work in sides.items():
            start = time.perf_counter()
            result = work()
            elapsed = time.perf_counter() - start
            del result
            if repeat >= 0:
                seconds[name].append(elapsed)
    return seconds


def row(work: str, peer: str, sides: dict[str, Work], repeats: int) -> dict[str, Any]:
    """One comparison: ours against a peer's, with a bootstrap interval of the ratio over the turns."""
    found = interleaved(sides, repeats)
    measured = paired_ratio(found["hyperslab"], found["peer"])
    made = {
        "work": work,
        "peer": peer,
        "hyperslab_seconds": measured.ours_seconds,
        "peer_seconds": measured.peer_seconds,
        "ratio": measured.ratio,
        "low": measured.low,
        "high": measured.high,
        "turns": repeats,
    }
    print(
        f"{work}: {made['hyperslab_seconds']:.4f} s, {peer} {made['peer_seconds']:.4f} s, "
        f"ratio {made['ratio']:.3f} [{measured.low:.3f}, {measured.high:.3f}]",
        flush=True,
    )
    return made


def two_thread_preadv(path: Path, offset: int, out: np.ndarray) -> np.ndarray:
    """The floor: two threads, 4 MiB a call, straight into an array."""
    view = out.reshape(-1).view(np.uint8).data
    descriptor = os.open(path, os.O_RDONLY)

    def part(start: int) -> None:
        for place in range(start, len(view), 8 << 20):
            stop = min(place + (4 << 20), len(view))
            os.preadv(descriptor, [view[place:stop]], offset + place)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(part, (0, 4 << 20)))
    os.close(descriptor)
    return out


LAYOUTS: dict[str, dict[str, Any]] = {
    "deflate+shuffle": {"chunks": CHUNK, "compression": "gzip", "compression_opts": 4, "shuffle": True},
    "chunked, uncompressed": {"chunks": CHUNK},
    "contiguous": {},
}


def whole_arrays(directory: Path, data: np.ndarray, repeats: int) -> list[dict[str, Any]]:
    """Everything, of compressed, chunked and contiguous arrays, against h5py and against the floor."""
    plain = directory / "plain.bin"
    data.tofile(plain)
    rows = []
    for name, layout in LAYOUTS.items():
        path = directory / f"{name.split(',')[0]}.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=data, **layout)
        cache.warm_up([path, plain])
        rows.append(against_h5py(path, name, max(3, repeats // 3) if "deflate" in name else repeats))
        if "deflate" not in name:
            rows += against_the_floor(path, plain, name, repeats)
    return rows


def against_h5py(path: Path, name: str, repeats: int) -> dict[str, Any]:
    """Both return a new array."""
    theirs, ours = h5py.File(path)["x"], hyperslab.open(path)["x"]
    assert np.array_equal(theirs[...], ours[...])
    return row(
        f"all, {name}, fresh array", "h5py", {"hyperslab": lambda: ours[...], "peer": lambda: theirs[...]}, repeats
    )


def against_the_floor(path: Path, plain: Path, name: str, repeats: int) -> list[dict[str, Any]]:
    """Two threads of preadv on a plain file of the same bytes, into a new array and into one that is used again."""
    ours = hyperslab.open(path)["x"]
    out = np.empty(ours.shape, ours.dtype)
    fresh = {
        "hyperslab": lambda: ours[...],
        "peer": lambda: two_thread_preadv(plain, 0, np.empty(ours.shape, ours.dtype)),
    }
    reused = {"hyperslab": lambda: ours.read(out=out), "peer": lambda: two_thread_preadv(plain, 0, out)}
    return [
        row(f"all, {name}, fresh array", "two-thread preadv", fresh, repeats),
        row(f"all, {name}, reused array", "two-thread preadv", reused, repeats),
    ]


def parts(directory: Path, data: np.ndarray, repeats: int) -> list[dict[str, Any]]:
    """Small selections of the compressed array, without and with decoded chunks at hand."""
    path = directory / "deflate+shuffle.h5"
    theirs = h5py.File(path, rdcc_nbytes=0)["x"]
    cold, cached = hyperslab.open(path, chunk_cache_nbytes=0)["x"], hyperslab.open(path)["x"]
    depth = min(8, data.shape[0])
    selections = {
        "a box (8, 64, 64)": np.s_[0:depth, 480:544, 480:544],
        "a point": np.s_[0, 700, 300],
        "a column [:, i, j]": np.s_[:, 100, 900],
    }
    rows = []
    for name, key in selections.items():
        assert np.array_equal(theirs[key], cold[key])
        sides = {"hyperslab": lambda key=key: cold[key], "peer": lambda key=key: theirs[key]}
        rows.append(row(f"{name}, nothing cached", "h5py", sides, repeats))
        cached[key]
        sides = {"hyperslab": lambda key=key: cached[key], "peer": lambda key=key: theirs[key]}
        rows.append(row(f"{name}, again from the chunk cache", "h5py without its cache", sides, repeats))
    return rows


def indexes(directory: Path, repeats: int) -> list[dict[str, Any]]:
    """Opening files with very many chunks or arrays: the index is built, nothing is read."""
    many = directory / "many_chunks.h5"
    with h5py.File(many, "w") as file:
        array = file.create_dataset("x", (102400, 10), "f4", chunks=(1, 10))
        array[...] = np.ones((102400, 10), "f4")
    arrays = directory / "many_arrays.h5"
    with h5py.File(arrays, "w") as file:
        for k in range(2000):
            file.create_dataset(f"a{k:04d}", data=np.ones((4, 16), "f4"), chunks=(1, 16))

    def ours(path: Path) -> int:
        return sum(array.stored_nbytes for array in hyperslab.open(path).walk())

    def theirs(path: Path) -> int:
        found: list[int] = []
        with h5py.File(path) as file:
            for array in file.values():
                array.id.chunk_iter(lambda chunk: found.append(chunk.byte_offset))
        return len(found)

    rows = []
    for name, path in (("index of 102,400 chunks", many), ("index of 2,000 arrays", arrays)):
        cache.warm_up([path])
        sides = {"hyperslab": lambda path=path: ours(path), "peer": lambda path=path: theirs(path)}
        rows.append(row(name, "h5py chunk_iter", sides, max(3, repeats // 2)))
    ours_open, theirs_open = hyperslab.open(many)["x"], h5py.File(many)["x"]
    sides = {"hyperslab": lambda: ours_open[...], "peer": lambda: theirs_open[...]}
    rows.append(row("all of 102,400 chunks of 40 bytes", "h5py", sides, max(3, repeats // 2)))
    return rows


def zarr_stores(directory: Path, data: np.ndarray, repeats: int) -> list[dict[str, Any]]:
    """The same data in Zarr version 3, against the two fast readers of it."""
    from hyperslab.formats import make_format
    from hyperslab.formats.contract import ArraySpec, Codec, Layout

    rows = []
    for codec in ("zstd:3", "blosc-lz4:5"):
        path = directory / f"{codec.split(':')[0]}.zarr"
        spec = ArraySpec(data.shape, data.dtype, Layout(CHUNK, None, (Codec.parse(codec),)))
        made = make_format("zarr3").create(path)
        made.create_array("x", spec).write(data)
        made.close()
        cache.warm_up(cache.files_below(path))
        ours = hyperslab.open(path)["x"]
        assert np.array_equal(ours[...], data)
        for peer in ("zarrs", "tensorstore"):
            theirs = make_format(peer).open(path).open_array("x")
            sides = {"hyperslab": lambda ours=ours: ours[...], "peer": lambda theirs=theirs: theirs.read()}
            rows.append(row(f"all, Zarr 3, {codec}", peer, sides, repeats))
    return rows


def main() -> None:
    """Every comparison; the figures and the machine are kept."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    megabytes = int(sys.argv[2]) if len(sys.argv) > 2 else 512
    data = field(megabytes)
    with tempfile.TemporaryDirectory(prefix="hyperslab-") as scratch:
        directory = Path(scratch)
        rows = whole_arrays(directory, data, repeats)
        rows += parts(directory, data, repeats)
        rows += indexes(directory, repeats)
        rows += zarr_stores(directory, data, repeats)
        environment = asdict(observe(directory, ["hdf5", "zarrs", "tensorstore"]))
    said = {"megabytes": megabytes, "rows": rows, "environment": environment}
    RESULTS.write_text(json.dumps(said, indent=1) + "\n")


if __name__ == "__main__":
    main()

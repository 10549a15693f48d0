"""Draws datasets and what is done to them: `python writes_program.py FILE SEED COUNT` writes so many files.

What it does depends on the seed alone, so that the same program runs with and without `hyperslab run --writes`. It
prints what it has read in between.
"""

from __future__ import annotations

import sys
import zlib
from typing import Any

import h5py
import hdf5plugin
import numpy as np

TYPES = ["u1", "<i2", ">i4", "<f4", "<f8", "S5", [("a", "<f4"), ("b", "<i8")], ("<i2", (3,))]
FILTERS: list[dict[str, Any]] = [
    {"compression": "gzip", "compression_opts": 4, "shuffle": True}, {"compression": "gzip", "compression_opts": 1},
    {"compression": "gzip", "compression_opts": 9, "fletcher32": True}, {"fletcher32": True}, {"shuffle": True},
    {"compression": "lzf", "shuffle": True}, {"shuffle": True, **hdf5plugin.Zstd(clevel=3)}, dict(hdf5plugin.LZ4()),
    dict(hdf5plugin.Bitshuffle()), dict(hdf5plugin.Blosc("zstd")), dict(hdf5plugin.Blosc("blosclz")),
    dict(hdf5plugin.Blosc("lz4hc")), {},
]  # fmt: skip


class Program:
    """One file and the datasets in it."""

    def __init__(self, path: str, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.path = path
        self.file = h5py.File(
            path, "w", libver=self.one(["earliest", "latest"]), rdcc_nbytes=self.one([0, 200, 1 << 20])
        )
        self.names: list[str] = []

    def one(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def values(self, kind: Any, shape: tuple[int, ...]) -> Any:
        kind = np.dtype(kind)
        low = int(self.rng.integers(1, 200))  # noise, or what can be compressed
        count = int(np.prod(shape)) * kind.itemsize
        values = self.rng.integers(1, 1 + low, count, dtype="u1").view(kind.base if kind.subdtype else kind)
        return values.reshape(shape + kind.shape)

    def create(self) -> None:
        ndim = int(self.rng.integers(1, 4))
        shape = tuple(int(self.rng.integers(1, 12)) for _ in range(ndim))
        chunks = tuple(int(self.rng.integers(1, length + 1)) for length in shape)
        kind, name = np.dtype(self.one(TYPES)), f"x{len(self.names)}"
        settings = {**self.one(FILTERS), "chunks": chunks, "maxshape": (None,) * ndim}
        if self.rng.random() < 0.3 and kind.kind in "iuf" and not kind.subdtype:
            settings["fillvalue"] = 7
        settings["track_times"] = False
        early = h5py.h5d.ALLOC_TIME_EARLY if self.rng.random() < 0.2 else h5py.h5d.ALLOC_TIME_INCR
        never = h5py.h5d.FILL_TIME_NEVER if self.rng.random() < 0.1 else h5py.h5d.FILL_TIME_IFSET
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_alloc_time(early)
        properties.set_fill_time(never)
        made = h5py._hl.dataset.make_new_dset(self.file, shape, kind, name=name.encode(), dcpl=properties, **settings)
        dataset = h5py.Dataset(made)
        dataset[...] = self.values(kind, shape)
        self.names.append(name)

    def step(self) -> None:
        """Do one thing to one of the datasets."""
        name = self.one(self.names)
        dataset = self.file[name]
        todo = self.one(["whole", "chunks", "chunks", "part", "grow", "append", "shrink", "read", "flush", "reopen"])
        if todo == "whole" or (todo == "chunks" and 0 in dataset.shape):
            box = tuple(slice(0, length) for length in dataset.shape)
        elif todo == "chunks":
            box = tuple(
                self.whole_chunks(length, chunk) for length, chunk in zip(dataset.shape, dataset.chunks, strict=True)
            )
        elif todo == "part":
            edges = [sorted(self.rng.integers(0, length + 1, 2)) for length in dataset.shape]
            box = tuple(slice(int(low), int(high)) for low, high in edges)
        elif todo in ("grow", "shrink", "append"):
            self.resize(name, todo)
            return
        else:
            self.look(todo, name)
            return
        shape = tuple(one.stop - one.start for one in box)
        data = self.values(dataset.dtype, shape)
        if 0 not in shape:
            dataset[box] = data

    def whole_chunks(self, length: int, chunk: int) -> slice:
        count = -(-length // chunk)
        low, high = sorted(self.rng.integers(0, count + 1, 2))
        return slice(min(int(low) * chunk, length), min(int(high) * chunk, length))

    def resize(self, name: str, todo: str) -> None:
        dataset = self.file[name]
        before = dataset.shape
        step = dataset.chunks[0] if todo == "append" else int(self.rng.integers(1, 6))
        dataset.resize(max(0, before[0] - step) if todo == "shrink" else before[0] + step, 0)
        if todo == "append" and 0 not in dataset.shape:
            dataset[before[0] :] = self.values(dataset.dtype, (step, *before[1:]))

    def look(self, todo: str, name: str) -> None:
        if todo == "reopen":
            self.file.close()
            self.file = h5py.File(self.path, "r+", rdcc_nbytes=self.one([0, 200, 1 << 20]))
        elif todo == "flush":
            self.file.flush()
        found = self.file[name][...]
        print(todo, name, zlib.crc32(np.ascontiguousarray(found).tobytes()))


def main() -> None:
    """Draw so many programs, and run them in one file each."""
    path, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for number in range(count):
        program = Program(f"{path}.{number}", seed + number)
        for _ in range(int(program.rng.integers(1, 4))):
            program.create()
        for _ in range(int(program.rng.integers(4, 25))):
            program.step()
        for name in program.names:
            program.look("read", name)
        program.file.close()


if __name__ == "__main__":
    main()

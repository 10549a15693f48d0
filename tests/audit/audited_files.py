"""Files with one fault each, drawn from a seed, and good ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np

Maker = Callable[[Path, np.random.Generator], None]


def good(path: Path, random: np.random.Generator) -> None:
    """Few arrays, written at once: a small file is all in the first request."""
    with h5py.File(path, "w") as made:
        made["sst"] = random.normal(size=(int(random.integers(2, 9)), 40, 50)).astype("f4")
        made["lat"] = np.arange(40.0)


def small_chunks(path: Path, random: np.random.Generator) -> None:
    """One array in thousands of chunks of a few bytes, stored in no order, so that few come together."""
    with h5py.File(path, "w", libver="latest") as made:
        count = int(random.integers(1500, 2500))
        array = made.create_dataset("sst", (count, 32, 32), "f4", chunks=(1, 32, 32))
        for step in random.permutation(count):
            array.id.write_direct_chunk((int(step), 0, 0), bytes(4096))


def scattered_metadata(path: Path, random: np.random.Generator) -> None:
    """Groups that were made one after the other, with data between them."""
    with h5py.File(path, "w") as made:
        for number in range(int(random.integers(50, 60))):
            made.create_dataset(f"g{number}/x", data=random.normal(size=90_000), chunks=(90_000,))


def cut_coordinates(path: Path, random: np.random.Generator) -> None:
    """A time axis that grew step by step, far apart in the file."""
    with h5py.File(path, "w") as made:
        time = made.create_dataset("time", (0,), "f8", chunks=(1,), maxshape=(None,))
        time.make_scale("time")
        count = int(random.integers(40, 60))
        array = made.create_dataset("sst", (0, 64, 64), "f8", chunks=(1, 64, 64), maxshape=(None, 64, 64))
        for step in range(count):
            for one in (time, array):
                one.resize(step + 1, axis=0)
                one[step] = step
        array.dims[0].attach_scale(time)


def foreign_filters(path: Path, random: np.random.Generator) -> None:
    """An array that HDF5 cannot decode without a plugin."""
    import hdf5plugin

    with h5py.File(path, "w") as made:
        made.create_dataset("sst", data=random.normal(size=(64, 64)), chunks=(64, 64), **hdf5plugin.Zstd())


def tiny_arrays(path: Path, random: np.random.Generator) -> None:
    """Hundreds of arrays of one number."""
    with h5py.File(path, "w") as made:
        for number in range(int(random.integers(150, 250))):
            made[f"n{number}"] = float(number)


def unreadable(path: Path, random: np.random.Generator) -> None:
    """No array file at all."""
    path.write_bytes(random.bytes(3000))


def damaged(path: Path, random: np.random.Generator) -> None:
    """A file that lacks its end, where the elements of its only array are."""
    with h5py.File(path, "w") as made:
        made["x"] = random.normal(size=100_000)
    content = path.read_bytes()
    path.write_bytes(content[: -int(random.integers(1, 5000))])


MAKERS: dict[str, Maker] = {
    "good": good,
    "small-chunks": small_chunks,
    "scattered-metadata": scattered_metadata,
    "cut-coordinates": cut_coordinates,
    "foreign-filters": foreign_filters,
    "tiny-arrays": tiny_arrays,
    "unreadable": unreadable,
    "damaged": damaged,
}


def drawn(folder: Path, kind: str, seed: int = 0) -> Path:
    """A file of one kind."""
    path = folder / f"{kind}-{seed}.nc"
    MAKERS[kind](path, np.random.default_rng(seed))
    return path

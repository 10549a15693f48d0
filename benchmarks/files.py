"""The files to read, created when they are first needed: one field in every layout, very many chunks, very many arrays.

The field is that of the peers' study: float32 waves with noise, rounded to two decimals, in chunks of (1, 512, 512),
which is 1 MiB. Deflate with shuffle halves it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np

from hyperslab.formats import make_format
from hyperslab.formats.contract import ArraySpec
from hyperslab.storage.chain import CodecChain
from hyperslab.storage.layout import StoredLayout

CHUNK = (1, 512, 512)
PLANE = (1024, 1024)
SMALL_PLANE = (64, 128)
LAYOUTS: dict[str, dict[str, Any]] = {
    "deflate": {"chunks": CHUNK, "compression": "gzip", "compression_opts": 4, "shuffle": True},
    "chunked": {"chunks": CHUNK},
    "contiguous": {},
}


def field(megabytes: int) -> np.ndarray:
    """Smooth waves with noise, rounded to two decimals. Shape (megabytes / 4, 1024, 1024), float32."""
    shape = (max(1, megabytes // 4), *PLANE)
    random = np.random.default_rng(7)
    t, y, x = np.ogrid[: shape[0], : shape[1], : shape[2]]
    out = (np.sin(x / 37.0) * 20 + np.cos(y / 53.0) * 15).astype(np.float32) + np.sin(t / 5.0).astype(np.float32) * 5
    for plane in out:
        plane += random.standard_normal(PLANE, np.float32) * np.float32(0.3)
        np.round(plane, 2, out=plane)
    return out


def _write_part(file: netCDF4.Dataset, number: int) -> None:
    """Part `number` of a collection."""
    shape = {"time": 10, "lat": 16, "lon": 16}
    file.title = "a part of a collection"
    for name, length in shape.items():
        file.createDimension(name, None if name == "time" else length)
        own = file.createVariable(name, "f8", (name,), chunksizes=(length,))
        own.standard_name = name
        own[:] = np.arange(length) + (number * length if name == "time" else 0)
    file["time"].setncatts({"units": "days since 2000-01-01", "calendar": "standard"})
    x = file.createVariable("x", "f4", tuple(shape), chunksizes=(1, 16, 16))
    x.setncatts({"units": "m", "long_name": "height of the sea"})
    x[:] = np.full(tuple(shape.values()), number, "f4")


class Files:
    """A directory of files. Files that exist are used again."""

    def __init__(self, directory: Path, megabytes: int) -> None:
        self._directory = directory
        self._megabytes = megabytes

    @property
    def directory(self) -> Path:
        """Where the files are."""
        return self._directory

    @cached_property
    def data(self) -> np.ndarray:
        """The field."""
        shape = (max(1, self._megabytes // 4), *PLANE)
        return np.fromfile(self.plain, np.float32).reshape(shape)

    @cached_property
    def plain(self) -> Path:
        """The elements of the field without any metadata."""
        return self._once("plain.bin", lambda path: field(self._megabytes).tofile(path))

    def hdf5(self, layout: str) -> Path:
        """The field as array `x` of an HDF5 file."""

        def write(path: Path) -> None:
            with h5py.File(path, "w") as file:
                file.create_dataset("x", data=self.data, **LAYOUTS[layout])

        return self._once(f"{layout}.h5", write)

    def zarr(self, codec: str | None) -> Path:
        """The field as array `x` of a Zarr 3 folder."""

        def write(path: Path) -> None:
            codecs = CodecChain.read(codec)
            store = make_format("zarr3").create(path)
            spec = ArraySpec(self.data.shape, self.data.dtype, StoredLayout(CHUNK, codecs=codecs))
            store.create_array("x", spec).write(self.data)
            store.close()

        return self._once(f"{(codec or 'uncompressed').replace(':', '-')}.zarr", write)

    def many_chunks(self, count: int, elements: int) -> Path:
        """Array `x` of `count` uncompressed chunks of (1, elements) float32."""

        def write(path: Path) -> None:
            with h5py.File(path, "w") as file:
                array = file.create_dataset("x", (count, elements), "f4", chunks=(1, elements))
                array[...] = self.small_rows(count, elements)

        return self._once(f"{count}-chunks.h5", write)

    def small_rows(self, count: int, elements: int) -> np.ndarray:
        """The elements of `many_chunks`."""
        return np.arange(count * elements, dtype=np.float32).reshape(count, elements)

    def small_deflated(self, count: int) -> Path:
        """Array `x` with `count` deflated and shuffled chunks of 32 KiB, one per plane."""

        def write(path: Path) -> None:
            with h5py.File(path, "w") as file:
                said = LAYOUTS["deflate"] | {"chunks": (1, *SMALL_PLANE), "compression_opts": 1}
                file.create_dataset("x", data=self.small_planes(count), **said)

        return self._once(f"{count}-small.h5", write)

    def small_planes(self, count: int) -> np.ndarray:
        """The elements of `small_deflated`."""
        waves = np.sin(np.arange(count * SMALL_PLANE[0] * SMALL_PLANE[1], dtype=np.float32) / np.float32(37)) * 20
        noise = np.random.default_rng(5).standard_normal(waves.size, np.float32) * np.float32(0.3)
        return np.round(waves + noise, 2).reshape(count, *SMALL_PLANE)

    def made(self, name: str, write: Callable[[Path], None]) -> Path:
        """A file that `write` creates."""
        return self._once(name, write)

    def many_arrays(self, groups: int) -> tuple[Path, list[str]]:
        """A hundred arrays in each group, with four uncompressed chunks each; and the arrays' names."""
        names = [f"g{group:02d}/a{number:03d}" for group in range(groups) for number in range(100)]

        def write(path: Path) -> None:
            with h5py.File(path, "w") as file:
                for number, name in enumerate(names):
                    file.create_dataset(name, data=np.full((4, 16), number, "f4"), chunks=(1, 16))

        return self._once(f"{len(names)}-arrays.h5", write), names

    def many_files(self, count: int) -> list[Path]:
        """NetCDF files with ten time steps each: array `x` in chunks of one step, with its coordinates."""

        def write(folder: Path) -> None:
            folder.mkdir()
            for number in range(count):
                with netCDF4.Dataset(folder / f"{number:05d}.nc", "w") as file:
                    _write_part(file, number)

        folder = self._once(f"{count}-files", write)
        return [folder / f"{number:05d}.nc" for number in range(count)]

    def _once(self, name: str, write: Callable[[Path], None]) -> Path:
        path = self._directory / f"{self._megabytes}-{name}"
        if not path.exists():
            unfinished = path.with_name(f"{os.getpid()}-{path.name}")
            print(f"making {path.name} ...", flush=True)
            write(unfinished)
            unfinished.rename(path)
        return path

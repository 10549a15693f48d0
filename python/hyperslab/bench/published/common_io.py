"""The programs of "A Comparison of CSV, HDF5, Zarr, and netCDF4 …": their timers, defaults and loops.

https://github.com/asriniket/File-Format-Testing (2022, one loop) and its sequel of 2023 (two loops, CSV, compression).
Do not copy this code: it repeats each fault that affects the published figures, in its original position, and names it
in `faults`.

The versions of the libraries are different. The study had zarr-python 2.11. We have 3.x, which writes format 2 with the
former default compressor, Blosc-LZ4, because its own default has changed.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar, Literal

import numpy as np

from hyperslab.bench.operations import Operation
from hyperslab.bench.published import PublishedArrays, Replay
from hyperslab.errors import Refused
from hyperslab.storage.hdf5_plugins import h5py_with_plugins, plugins

BLOSC_ZSTD_LEVEL = 9


class Contender(ABC):
    """What the study's programs did with one library between their timers."""

    @abstractmethod
    def create_file(self, path: Path, arrays: PublishedArrays) -> Any:
        """Create the file."""

    @abstractmethod
    def create(self, file: Any, name: str, arrays: PublishedArrays) -> Any:
        """Create an array in the file."""

    @abstractmethod
    def open_file(self, path: Path) -> Any:
        """Open the file. This is never timed."""

    @abstractmethod
    def open(self, file: Any, name: str) -> Any:
        """Find an array in the file."""

    def close(self, file: Any) -> None:
        """Close the file. This is never timed."""
        file.close()


class Hdf5(Contender):
    """h5py with its defaults: contiguous, or Blosc with chunks that h5py chooses."""

    def create_file(self, path: Path, _: PublishedArrays) -> Any:
        """Create the file."""
        import h5py

        return h5py.File(path, "w")

    def create(self, file: Any, name: str, arrays: PublishedArrays) -> Any:
        """Create a dataset."""
        if not arrays.compressed:
            return file.create_dataset(name, shape=arrays.shape, dtype="f")
        blosc = plugins().Blosc(cname="zstd", clevel=BLOSC_ZSTD_LEVEL, shuffle=plugins().Blosc.SHUFFLE)
        return file.create_dataset(name, shape=arrays.shape, dtype="f", **blosc)

    def open_file(self, path: Path) -> Any:
        """Open the file. Importing hdf5plugin registers Blosc."""
        return h5py_with_plugins().File(path, "r")

    def open(self, file: Any, name: str) -> Any:
        """Find a dataset."""
        return file[name]


class NetCDF4(Contender):
    """netCDF4 with all dimensions unlimited as in the study, which gives chunks of about 4 KiB."""

    def create_file(self, path: Path, arrays: PublishedArrays) -> Any:
        """Create the file and its dimensions."""
        import netCDF4

        file = netCDF4.Dataset(path, "w", format="NETCDF4")
        for dimension in _dimensions(arrays):
            file.createDimension(dimension, None)
        return file

    def create(self, file: Any, name: str, arrays: PublishedArrays) -> Any:
        """Create a variable. If compressed, it has the library's default level, 4."""
        packed = {"compression": "blosc_zstd"} if arrays.compressed else {}
        return file.createVariable(name, "f", _dimensions(arrays), **packed)

    def open_file(self, path: Path) -> Any:
        """Open the file. This parses all variables, and no timer measures it."""
        import netCDF4

        return netCDF4.Dataset(path, "r")

    def open(self, file: Any, name: str) -> Any:
        """Find a variable: a dictionary lookup."""
        return file.variables[name]


class Zarr2(Contender):
    """Zarr format 2. What the study calls "uncompressed" is compressed with Blosc-LZ4, the default of that time."""

    def create_file(self, path: Path, _: PublishedArrays) -> Any:
        """Create the group."""
        import zarr

        return zarr.open_group(path, mode="w", zarr_format=2)

    def create(self, file: Any, name: str, arrays: PublishedArrays) -> Any:
        """Create an array with chunks that the library chooses."""
        import numcodecs

        packed = numcodecs.Blosc(cname="zstd", clevel=BLOSC_ZSTD_LEVEL, shuffle=numcodecs.Blosc.SHUFFLE)
        codec = packed if arrays.compressed else numcodecs.Blosc()
        return file.create_array(name, shape=arrays.shape, dtype="f4", compressors=codec)

    def open_file(self, path: Path) -> Any:
        """Open the group."""
        import zarr

        return zarr.open_group(path, mode="r", zarr_format=2)

    def open(self, file: Any, name: str) -> Any:
        """Find an array."""
        return file.get(name)

    def close(self, file: Any) -> None:
        """Do nothing: Zarr's groups are not closed."""


class Basic(Replay):
    """HDF5, netCDF4 and Zarr: create and write in one loop (2022) or two (2023), open and read in one."""

    name: ClassVar[str] = "common-io-basic"
    source: ClassVar[str] = "https://github.com/asriniket/File-Format-Testing"
    formats: ClassVar[tuple[str, ...]] = ("hdf5", "netcdf4", "zarr2")
    trials: ClassVar[int] = 5
    dropped: ClassVar[int] = 1
    statistic: ClassVar[Literal["mean", "min"]] = "mean"
    faults: ClassVar[Mapping[str, str]] = {
        "B2": "the read timer includes printing what was read",
        "B3": "defaults are compared: HDF5 contiguous, netCDF4 unlimited with chunks of 4 KiB, Zarr with Blosc-LZ4",
        "B4": "opening the file, where netCDF4 parses every variable, is not timed; nor is what netCDF4 creates late",
        "B5": "with two loops, the creation time is that of the last array, counted once for each array",
        "B6": "the first of five trials is missing from the averages",
        "B9": "nothing is synced to the device, and closing is not timed",
        "B10": "files are copied and renamed to defeat the cache, but the copy puts them into the cache",
    }

    _contenders: ClassVar[Mapping[str, type[Contender]]] = {"hdf5": Hdf5, "netcdf4": NetCDF4, "zarr2": Zarr2}

    def write(self, format_name: str, path: Path, arrays: PublishedArrays, operation: Operation) -> dict[str, float]:
        """Write as published, then copy and rename the file for `read`."""
        contender = self._contender(format_name)
        loops = {"write": _one_loop, "write-separate": _two_loops}
        if operation.name not in loops:
            raise Refused(f"{self.name} does not support {operation.name}: the study wrote in one loop or in two")
        original = path.with_name(f"{path.name}.original")
        file = contender.create_file(original, arrays)
        phases = loops[operation.name](contender, file, arrays)
        contender.close(file)
        copy_and_rename(original, path)
        return phases

    def read(self, format_name: str, path: Path, arrays: PublishedArrays, operation: Operation) -> dict[str, float]:
        """Open and read each array in turn. The read timer includes the printing."""
        if operation.name != "read-all":
            raise Refused(f"{self.name} does not support {operation.name}: the study read everything")
        contender = self._contender(format_name)
        file = contender.open_file(path)
        everything = whole(arrays.shape)
        opening = reading = 0.0
        for index in range(arrays.count):
            t1 = perf_counter()
            array = contender.open(file, array_name(index))
            t2 = perf_counter()
            print(array[everything])
            t3 = perf_counter()
            opening += t2 - t1
            reading += t3 - t2
        contender.close(file)
        return {"open_array": opening, "read": reading}

    def _contender(self, format_name: str) -> Contender:
        if format_name not in self._contenders:
            raise Refused(f"{self.name} has no format {format_name}; it has {', '.join(self.formats)}")
        return self._contenders[format_name]()


def _one_loop(contender: Contender, file: Any, arrays: PublishedArrays) -> dict[str, float]:
    everything = whole(arrays.shape)
    creating = writing = 0.0
    for index in range(arrays.count):
        data = random_array(arrays.shape)
        t1 = perf_counter()
        array = contender.create(file, array_name(index), arrays)
        t2 = perf_counter()
        array[everything] = data
        t3 = perf_counter()
        creating += t2 - t1
        writing += t3 - t2
    return {"create_array": creating, "write": writing}


def _two_loops(contender: Contender, file: Any, arrays: PublishedArrays) -> dict[str, float]:
    """Two loops. The creation time is summed in the second loop, where t1 and t2 are those of the last array (B5)."""
    everything = whole(arrays.shape)
    made = []
    t1 = t2 = 0.0
    for index in range(arrays.count):
        t1 = perf_counter()
        made.append(contender.create(file, array_name(index), arrays))
        t2 = perf_counter()
    creating = writing = 0.0
    for array in made:
        data = random_array(arrays.shape)
        t3 = perf_counter()
        array[everything] = data
        t4 = perf_counter()
        creating += t2 - t1
        writing += t4 - t3
    return {"create_array": creating, "write": writing}


class WithCsv(Basic):
    """The same programs with CSV as well: one file for each array."""

    name: ClassVar[str] = "common-io-csv"
    formats: ClassVar[tuple[str, ...]] = ("csv", "hdf5", "netcdf4", "zarr2")
    faults: ClassVar[Mapping[str, str]] = {
        "B1": "CSV is read and parsed before the clock starts: only a slice of an array in memory is timed",
        "B12": "CSV is written with '%f', which loses digits",
        **Basic.faults,
    }

    def write(self, format_name: str, path: Path, arrays: PublishedArrays, operation: Operation) -> dict[str, float]:
        """CSV: fill an array that was loaded from an empty file and save it, for each array in turn."""
        if format_name != "csv":
            return super().write(format_name, path, arrays, operation)
        if operation.name != "write" or len(arrays.shape) > 2:
            raise Refused(f"{self.name} wrote CSV in one loop, for arrays with one or two axes")
        original = path.with_name(f"{path.name}.original")
        original.mkdir()
        writing = sum(_write_csv(original / f"{array_name(i)}.csv", arrays.shape) for i in range(arrays.count))
        copy_and_rename(original, path)
        return {"write": writing}

    def read(self, format_name: str, path: Path, arrays: PublishedArrays, operation: Operation) -> dict[str, float]:
        """CSV: load the file, then time slicing the array in memory."""
        if format_name != "csv":
            return super().read(format_name, path, arrays, operation)
        if operation.name != "read-all":
            raise Refused(f"{self.name} does not support {operation.name}: the study read everything")
        return {"read": sum(_read_csv(path / f"{array_name(i)}.csv", arrays.shape) for i in range(arrays.count))}


def _write_csv(path: Path, shape: tuple[int, ...]) -> float:
    _save(path, np.empty(shape))
    array = _load(path, shape)
    data = random_array(shape)
    start = perf_counter()
    array[whole(shape)] = data
    _save(path, array)
    return perf_counter() - start


def _read_csv(path: Path, shape: tuple[int, ...]) -> float:
    array = _load(path, shape)
    everything = whole(shape)
    start = perf_counter()
    array[everything]
    return perf_counter() - start


def _save(path: Path, array: np.ndarray) -> None:
    np.savetxt(path, array, fmt="%f", delimiter=",")


def _load(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    return np.loadtxt(path, delimiter=",").reshape(shape)


def _dimensions(arrays: PublishedArrays) -> tuple[str, ...]:
    return tuple(f"axis{axis}" for axis in range(len(arrays.shape)))


def array_name(index: int) -> str:
    """The study's name for an array."""
    return f"Dataset_{index}"


def whole(shape: tuple[int, ...]) -> tuple[slice, ...]:
    """A selection of everything, with bounds for each axis as in the study: unlimited dimensions grow to them."""
    return tuple(slice(0, length) for length in shape)


def random_array(shape: tuple[int, ...]) -> np.ndarray:
    """Uniform in [0, 1) in float32, generated as in the study."""
    return np.random.rand(*shape).astype(np.float32)


def copy_and_rename(original: Path, path: Path) -> None:
    """Copy a file or directory, rename the copy, and remove the original, as the study did before reading.

    Whatever an earlier write of the same trial left at `path` is replaced.
    """
    copy = path.with_name(f"{path.name}.copy")
    if original.is_dir():
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(original, copy)
        shutil.rmtree(original)
    else:
        shutil.copy(original, copy)
        original.unlink()
    copy.replace(path)

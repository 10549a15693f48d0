"""A program whose threads read or write HDF5 files through one library: what `threads_campaign.py` runs.

    python benchmarks/threads_program.py LIBRARY read|write same|different THREADS SEED FOLDER

It prints "right" if all values are right, and else ends with an error. FOLDER has what `made` makes; what
it writes goes there too, and is removed at the end.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

SHAPE = (24, 60, 90)
CHUNKS = (4, 60, 45)
FILE_COUNT = 8
TURNS = 4
# PyTables keeps a list of open files in Python, and its documentation asks for a lock where threads open or close any.
TABLES = threading.Lock()
Array = np.ndarray[Any, np.dtype[np.float32]]
Indices = tuple[slice, slice, slice]


def values(seed: int) -> Array:
    """The elements of an array, by its number."""
    return np.random.default_rng(seed).integers(0, 1000, SHAPE).astype("f4")


def made(folder: Path) -> None:
    """Make the files that are read. PyTables does not read the references in those of netCDF."""
    import h5py
    import netCDF4

    for number in range(FILE_COUNT):
        with netCDF4.Dataset(folder / f"{number}.nc", "w") as file:
            define(file, "v")[...] = values(number)
            file.title = f"number {number}"
        with h5py.File(folder / f"{number}.h5", "w") as other:
            other.create_dataset("v", data=values(number), chunks=CHUNKS, compression="gzip", shuffle=True)


def define(file: Any, name: str) -> Any:
    """A new variable of an open netCDF file."""
    axes = ("t", "y", "x")
    for axis, length in zip(axes, SHAPE, strict=True):
        if axis not in file.dimensions:
            file.createDimension(axis, length)
    return file.createVariable(name, "f4", axes, zlib=True, complevel=1, shuffle=True, chunksizes=CHUNKS)


def parts(random: np.random.Generator) -> Iterator[Indices]:
    """Parts of an array, small and large."""
    for _ in range(TURNS):
        bounds = [sorted(random.choice(length + 1, 2, replace=False).tolist()) for length in SHAPE]
        yield tuple(slice(start, stop) for start, stop in bounds)  # type: ignore[misc]
    yield (slice(None), slice(None), slice(None))


def check(found: Any, expected: Array) -> None:
    """Stop the thread if values are wrong."""
    if not np.array_equal(np.asarray(found), expected):
        raise AssertionError("wrong values")


def h5py_read(path: Path, number: int, random: np.random.Generator) -> None:
    """Parts of an array by h5py."""
    import h5py

    for part in parts(random):
        with h5py.File(path) as file:
            check(file["v"][part], values(number)[part])
            if file.attrs["title"] not in (f"number {number}", f"number {number}".encode()):
                raise AssertionError("a wrong attribute")


def h5py_write(path: Path, number: int, random: np.random.Generator) -> None:
    """A new file by h5py, read again."""
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=values(number), chunks=CHUNKS, compression="gzip", compression_opts=1)
        file.attrs["title"] = f"number {number}"
    h5py_read(path, number, random)


def netcdf_read(path: Path, number: int, random: np.random.Generator) -> None:
    """Parts of a variable by netCDF4."""
    import netCDF4

    for part in parts(random):
        with netCDF4.Dataset(path) as file:
            check(file["v"][part], values(number)[part])
            if (file.title, file["v"].chunking()) != (f"number {number}", list(CHUNKS)):
                raise AssertionError("wrong attributes")


def netcdf_write(path: Path, number: int, random: np.random.Generator) -> None:
    """A new file by netCDF4, read again."""
    import netCDF4

    with netCDF4.Dataset(path, "w") as file:
        define(file, "v")
        file.title = f"number {number}"
        for part in parts(random):
            file["v"][part] = values(number)[part]
    netcdf_read(path, number, random)


def xarray_read(path: Path, number: int, random: np.random.Generator, **options: Any) -> None:
    """Parts of a variable by xarray and netCDF4."""
    import xarray

    for part in parts(random):
        with xarray.open_dataset(path, engine="netcdf4", cache=False, **options) as file:
            check(file["v"][part].values, values(number)[part])


def xarray_write(path: Path, number: int, random: np.random.Generator, **options: Any) -> None:
    """A new file by xarray and netCDF4, read again."""
    import xarray

    encoding = {"v": {"zlib": True, "complevel": 1, "chunksizes": CHUNKS}}
    file = xarray.Dataset({"v": (("t", "y", "x"), values(number))})
    file.to_netcdf(path, engine="netcdf4", encoding=encoding)
    xarray_read(path, number, random, **options)


def unlocked_read(path: Path, number: int, random: np.random.Generator) -> None:
    """The same without xarray's lock."""
    xarray_read(path, number, random, lock=False)


def unlocked_write(path: Path, number: int, random: np.random.Generator) -> None:
    """The same without xarray's lock for reading."""
    xarray_write(path, number, random, lock=False)


def tables_read(path: Path, number: int, random: np.random.Generator) -> None:
    """Parts of an array by PyTables."""
    import tables

    for part in parts(random):
        with TABLES:
            file = tables.open_file(path)
        check(file.root.v[part], values(number)[part])
        with TABLES:
            file.close()


def tables_write(path: Path, number: int, random: np.random.Generator) -> None:
    """A new file by PyTables, read again."""
    import tables

    with TABLES:
        file = tables.open_file(path, "w")
    filters = tables.Filters(complevel=1, complib="zlib", shuffle=True)
    file.create_carray("/", "v", obj=values(number), chunkshape=CHUNKS, filters=filters)
    with TABLES:
        file.close()
    tables_read(path, number, random)


def shared_h5py(path: Path, _: int) -> Callable[[int], None]:
    """Threads write an array each to one file of h5py."""
    import h5py

    file = h5py.File(path, "w")

    def write(number: int) -> None:
        made = file.create_dataset(f"x{number}", SHAPE, "f4", chunks=CHUNKS, compression="gzip", compression_opts=1)
        for part in parts(np.random.default_rng(number)):
            made[part] = values(number)[part]
            check(made[part], values(number)[part])

    return write


def shared_netcdf(path: Path, count: int) -> Callable[[int], None]:
    """Threads write a variable each to one file of netCDF4, which has all of them before."""
    import netCDF4

    file = netCDF4.Dataset(path, "w")
    for number in range(count):
        define(file, f"x{number}")

    def write(number: int) -> None:
        for part in parts(np.random.default_rng(number)):
            file[f"x{number}"][part] = values(number)[part]
            check(file[f"x{number}"][part], values(number)[part])

    return write


READS = {
    "h5py": h5py_read,
    "netCDF4": netcdf_read,
    "xarray": xarray_read,
    "unlocked": unlocked_read,
    "tables": tables_read,
}
WRITES = {
    "h5py": h5py_write, "netCDF4": netcdf_write, "xarray": xarray_write, "unlocked": unlocked_write,
    "tables": tables_write,
}  # fmt: skip
SHARED = {"h5py": shared_h5py, "netCDF4": shared_netcdf}
"""Writes of several threads to one file. The other libraries have no file that threads may share for that."""


def work_of(library: str, action: str, sharing: str, count: int, seed: int, folder: Path) -> Callable[[int], None]:
    """What each thread does."""
    if action == "write" and sharing == "same":
        return SHARED[library](folder / f"out-{seed}.nc", count)
    random = [np.random.default_rng([seed, number]) for number in range(count)]

    def work(number: int) -> None:
        if action == "write":
            WRITES[library](folder / f"out-{seed}-{number}.nc", number, random[number])
        else:
            number_of_file = 0 if sharing == "same" else number % FILE_COUNT
            kind = "h5" if library == "tables" else "nc"
            READS[library](folder / f"{number_of_file}.{kind}", number_of_file, random[number])

    return work


def main(words: list[str]) -> None:
    """Start the threads, and say whether all found what they should."""
    library, action, sharing = words[:3]
    count, seed, folder = int(words[3]), int(words[4]), Path(words[5])
    __import__({"xarray": "netCDF4", "unlocked": "netCDF4"}.get(library, library))
    work, problems = work_of(library, action, sharing, count, seed, folder), []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as problem:
            problems.append(f"{type(problem).__name__}: {problem}")

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for path in folder.glob(f"out-{seed}*.nc"):
        path.unlink()
    sys.exit("; ".join(sorted(set(problems)))) if problems else print("right")


if __name__ == "__main__":
    main(sys.argv[1:])

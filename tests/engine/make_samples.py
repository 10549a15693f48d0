"""Write small files for Rust's tests: HDF5 with every structure that h5py can make, a virtual array, NetCDF-3, Zarr.

python make_samples.py DIRECTORY [CORPUS ...]

DIRECTORY/expected.json says what h5py, netCDF4 and zarr read of them, and of the HDF5 files below each CORPUS: shapes,
and hashes of the bytes of whole arrays and of strided selections.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import zarr

LIBVERS = ("earliest", "v108", "v110", "v112", "latest")
MOST_FILE_NBYTES = 1 << 20
MOST_ARRAY_NBYTES = 4 << 20


def fill(file: h5py.File) -> None:
    """Groups, links, attributes, types, layouts, filters and indexes in one file."""
    numbers = np.arange(6000, dtype="i4").reshape(60, 100)
    file.create_dataset("contiguous", data=numbers)
    file.create_dataset("chunked", data=numbers, chunks=(7, 30), compression="gzip", shuffle=True, fletcher32=True)
    file.create_dataset("single", data=numbers, chunks=(60, 100), compression="lzf")
    file.create_dataset("one_unlimited", data=numbers, chunks=(4, 10), maxshape=(60, None))
    file.create_dataset("two_unlimited", data=numbers, chunks=(9, 9), maxshape=(None, None), scaleoffset=0)
    file.create_dataset("sparse", shape=(1000, 1000), dtype="f8", chunks=(10, 10), fillvalue=-1)[500, 500] = 1
    file.create_dataset("text", data=["hello", "", "wörld"], dtype=h5py.string_dtype())
    file.create_dataset("fixed_text", data=np.array([b"ab", b"cde"]))
    ragged = file.create_dataset("ragged", (3,), dtype=h5py.vlen_dtype("f4"))
    ragged[0] = [1, 2, 3]
    table = np.zeros(5, dtype=[("a", "<i2"), ("b", ">f8"), ("c", "S3"), ("d", "f4", (2, 2))])
    file.create_dataset("table", data=table)
    file.create_dataset("flags", data=np.array([True, False]))
    file.create_dataset("scalar", data=3.5)
    file["null"] = h5py.Empty("f4")
    many = file.create_group("many", track_order=True)
    for k in range(40):
        many.create_group(f"group_{k}").attrs["index"] = k
        many.attrs[f"attribute_{k}"] = "x" * k
    file["soft"] = h5py.SoftLink("/many/group_3")
    file["external"] = h5py.ExternalLink("elsewhere.h5", "/x")
    file["hard"] = file["contiguous"]
    file["reference"] = file["many"].ref


def make_virtual(directory: Path) -> None:
    """An array that shows rows of this file, and of another one; a part of it has no source."""
    layout = h5py.VirtualLayout(shape=(100, 100), dtype="i4")
    layout[:60] = h5py.VirtualSource("latest.h5", "chunked", shape=(60, 100))
    layout[60:70] = h5py.VirtualSource(".", "own", shape=(20, 100))[5:15]
    with h5py.File(directory / "virtual.h5", "w", libver="latest") as file:
        file.create_dataset("own", data=np.arange(2000, dtype="i4").reshape(20, 100), chunks=(3, 50))
        file.create_virtual_dataset("shown", layout, fillvalue=-7)


def make_netcdf3(path: Path) -> None:
    """A variable of a fixed shape, and two that grow."""
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        file.createDimension("time", None)
        file.createDimension("x", 7)
        for name, dtype, dimensions in [
            ("fixed", "f8", ("x",)),
            ("one", "i2", ("time", "x")),
            ("two", "f4", ("time",)),
        ]:
            file.createVariable(name, dtype, dimensions)
        file["fixed"][:], file["one"][:] = np.arange(7), np.arange(91).reshape(13, 7)
        file["two"][:] = np.linspace(0, 1, 13)


def make_zarr(path: Path) -> None:
    """Chunks of their own, and chunks in shards."""
    numbers = np.arange(60 * 41, dtype="<i4").reshape(60, 41)
    group = zarr.open_group(path, mode="w")
    group.create_array("plain", data=numbers, chunks=(7, 20))
    group.create_array("inner/sharded", data=numbers, chunks=(5, 10), shards=(20, 20))


def stored(values: np.ndarray[Any, Any]) -> str:
    """The hash of the bytes of an array, in C order."""
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()


def expected(path: str, values: np.ndarray[Any, Any]) -> dict[str, Any]:
    """What a reader of an array should find: the whole, and every third index of each axis from a fifth on."""
    starts = [length // 5 for length in values.shape]
    part = values[tuple(slice(start, None, 3) for start in starts)]
    return {
        "path": path,
        "shape": list(values.shape),
        "sha256": stored(values),
        "starts": starts,
        "part_sha256": stored(part),
    }


def hdf5_arrays(file: h5py.File) -> Iterator[dict[str, Any]]:
    """Of an HDF5 file every small array of numbers that h5py reads, and that in memory is as it is stored.

    Not those without elements: in NetCDF-4 they may be as long as their dimension, of fill values.
    """
    found: list[h5py.Dataset] = []
    file.visititems(lambda _, node: found.append(node) if isinstance(node, h5py.Dataset) else None)
    for array in found:
        try:
            dtype = array.dtype
            same = h5py.h5t.py_create(dtype, logical=True).equal(array.id.get_type())
            if not array.size or dtype.kind not in "iuf" or not same or array.nbytes > MOST_ARRAY_NBYTES:
                continue
            yield expected(array.name, np.asarray(array[()], dtype))
        except (OSError, TypeError, ValueError, KeyError, RuntimeError):
            continue  # a filter that h5py has not, or a damaged array: there is no judge


def hdf5_files(folder: Path) -> Iterator[dict[str, Any]]:
    """What h5py reads of the small HDF5 files below a folder."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.stat().st_size > MOST_FILE_NBYTES or not h5py.is_hdf5(path):
            continue
        try:
            with h5py.File(path, "r") as file:
                arrays = list(hdf5_arrays(file))
        except (OSError, RuntimeError, ValueError):
            continue
        yield {"file": str(path.resolve()), "arrays": arrays}


def other_files(directory: Path) -> Iterator[dict[str, Any]]:
    """What netCDF4 and zarr read."""
    with netCDF4.Dataset(directory / "classic.nc") as file:
        file.set_auto_mask(False)
        values = {name: file[name][:] for name in file.variables}
        values = {name: array.astype(array.dtype.newbyteorder(">")) for name, array in values.items()}
    arrays = [expected(name, array) for name, array in values.items()]
    yield {"file": str((directory / "classic.nc").resolve()), "arrays": arrays}
    group = zarr.open_group(directory / "hierarchy.zarr", mode="r")
    arrays = [expected(name, np.asarray(group[name][...])) for name in ("plain", "inner/sharded")]
    yield {"file": str((directory / "hierarchy.zarr").resolve()), "arrays": arrays}


def main() -> None:
    """One file for each generation of HDF5, one of each other kind, and what is in all of them."""
    directory, *corpora = map(Path, sys.argv[1:])
    directory.mkdir(parents=True, exist_ok=True)
    for libver in LIBVERS:
        with h5py.File(directory / f"{libver}.h5", "w", libver=(libver, "latest")) as file:
            fill(file)
    with h5py.File(directory / "user_block.h5", "w", userblock_size=512) as file:
        fill(file)
    make_virtual(directory)
    make_netcdf3(directory / "classic.nc")
    make_zarr(directory / "hierarchy.zarr")
    files = [entry for folder in (directory, *corpora) for entry in hdf5_files(folder)]
    (directory / "expected.json").write_text(json.dumps([*files, *other_files(directory)], indent=1))


if __name__ == "__main__":
    main()

"""A little of everything, in an environment that has only the wheel and the versions under test.

Prints one line of JSON: the versions that were found, and what became of each part.
"""

from __future__ import annotations

import contextlib
import json
import pickle
import platform
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray
import zarr

import hyperslab as hs
import hyperslab.h5

NUMBERS = np.arange(600, dtype="<f4").reshape(20, 30)
TEXT = np.array(["a", "bb", "", "ünï"], dtype=object)
RECORDS = np.array([(1, 2.5, b"x"), (2, -1.0, b"yz")], dtype=[("i", "<i2"), ("f", "<f8"), ("s", "S3")])
PIPELINE = {"codec_pipeline.path": "hyperslab.archive.zarr_pipeline.Pipeline"}
Part = Callable[[Path], None]


def equal(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(found, expected)
    assert np.asarray(found).dtype == np.asarray(expected).dtype, (np.asarray(found).dtype, np.asarray(expected).dtype)


def write_hdf5(path: Path, **options: Any) -> Path:
    with h5py.File(path, "w", **options) as file:
        array = file.create_dataset("a/numbers", data=NUMBERS, chunks=(7, 8), compression="gzip", shuffle=True)
        array.attrs["units"] = "K"
        array.attrs["range"] = np.array([0.5, 2])
        file["text"] = TEXT
        file["records"] = RECORDS
        file["empty"] = h5py.Empty("f4")
        pieces = file.create_dataset("pieces", (2,), dtype=h5py.vlen_dtype("i4"))
        pieces[0], pieces[1] = [1, 2, 3], [4]
        layout = h5py.VirtualLayout((40, 30), "<f4")
        layout[:20] = layout[20:] = h5py.VirtualSource(".", "a/numbers", (20, 30))
        file.create_virtual_dataset("twice", layout)
    return path


def hdf5(folder: Path) -> None:
    """HDF5 of the oldest and newest layout that this libhdf5 writes."""
    for libver in ("earliest", "latest"):
        file = hs.open(write_hdf5(folder / f"{libver}.h5", libver=libver))
        equal(file["a/numbers"][3:17:2, ::4], NUMBERS[3:17:2, ::4])
        equal(file["a/numbers"][[1, 5, 9], 4], NUMBERS[[1, 5, 9], 4])
        assert file["text"][...].tolist() == TEXT.tolist()
        equal(file["records"]["f"], RECORDS["f"])
        assert [list(one) for one in file["pieces"][...]] == [[1, 2, 3], [4]]
        equal(file["twice"][15:25], np.concatenate([NUMBERS[15:], NUMBERS[:5]]))
        assert file["a/numbers"].attrs["units"] == "K"
        equal(pickle.loads(pickle.dumps(file["a/numbers"]))[...], NUMBERS)


def h5py_interface(folder: Path) -> None:
    path = write_hdf5(folder / "a.h5")
    with h5py.File(path) as theirs, hyperslab.h5.File(path) as ours:
        for name in ("a/numbers", "records", "twice"):
            equal(ours[name][...], theirs[name][...])
            assert (ours[name].chunks, ours[name].compression) == (theirs[name].chunks, theirs[name].compression)
        equal(ours["a/numbers"][NUMBERS > 300], NUMBERS[NUMBERS > 300])
        assert ours["text"][...].tolist() == theirs["text"][...].tolist()
        assert ours["text"].asstr()[:2].tolist() == theirs["text"].asstr()[:2].tolist()
        assert dict(ours["a/numbers"].attrs).keys() == dict(theirs["a/numbers"].attrs).keys()


def write_zarr(path: Path, zarr_format: int) -> Path:
    group = zarr.open_group(path, mode="w", zarr_format=zarr_format)
    more: dict[str, Any] = {"shards": (8, 16)} if zarr_format == 3 else {}
    group.create_array("numbers", shape=NUMBERS.shape, dtype=NUMBERS.dtype, chunks=(4, 8), fill_value=-1, **more)
    group["numbers"][:9] = NUMBERS[:9]
    group.create_array("whole", data=NUMBERS, chunks=(7, 8))
    group.attrs["title"] = "made"
    return path


def zarr_folders(folder: Path) -> None:
    expected = np.full_like(NUMBERS, -1)
    expected[:9] = NUMBERS[:9]
    for zarr_format in (2, 3):
        file = hs.open(write_zarr(folder / f"{zarr_format}.zarr", zarr_format))
        equal(file["numbers"][...], expected)
        equal(file["whole"][2:9, ::3], NUMBERS[2:9, ::3])
        assert file.attrs["title"] == "made"


def zarr_pipeline(folder: Path) -> None:
    """zarr-python with our pipeline reads and writes what it does with its own."""
    for zarr_format in (2, 3):
        path = write_zarr(folder / f"{zarr_format}.zarr", zarr_format)
        theirs = zarr.open_group(path, mode="r")
        with zarr.config.set(PIPELINE):
            ours = zarr.open_group(path, mode="r+")
            assert type(ours["numbers"]._async_array.codec_pipeline).__module__.startswith("hyperslab")
            for name in ("numbers", "whole"):
                for key in (slice(None), (slice(2, 11), slice(None, None, 3)), (3, 4), np.s_[5]):
                    equal(ours[name][key], theirs[name][key])
                first = np.arange(len(NUMBERS)) < ours[name].chunks[0]
                for rows in ([1, 8], first):
                    equal(ours[name].oindex[rows, :], theirs[name].oindex[rows, :])
                equal(ours[name].vindex[[1, 8], [2, 3]], theirs[name].vindex[[1, 8], [2, 3]])
            ours["numbers"][10] = 5
            equal(ours["numbers"][10], np.full(30, 5, "<f4"))


def zarr_missing_chunks(folder: Path) -> None:
    """From zarr 3.2 on, a missing chunk may be an error: it is the same one with our pipeline."""
    if "read_missing_chunks" not in zarr.config.get("array"):
        return
    path = write_zarr(folder / "a.zarr", 3)
    said = []
    for options in ({}, PIPELINE):
        with zarr.config.set({"array.read_missing_chunks": False, **options}):
            array = zarr.open_group(path, mode="r")["numbers"]
            equal(array[:8], NUMBERS[:8])
            try:
                array[...]
            except Exception as error:
                said.append(type(error).__name__)
    assert len(said) == 2, said
    assert said[0] == said[1], said


def zarr_store(folder: Path) -> None:
    """An HDF5 file as a store of zarr-python."""
    from hyperslab.archive.zarr_store import ZarrStore

    path = folder / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("numbers", data=NUMBERS, chunks=(7, 8), compression="gzip")
    group = zarr.open_group(ZarrStore(hs.open(path)), mode="r")
    equal(group["numbers"][2:9, ::3], NUMBERS[2:9, ::3])


def data_set() -> xarray.Dataset:
    values = NUMBERS.reshape(5, 4, 30).astype("f8")
    times = np.array(["2020-01-01", "2020-01-02", "2020-01-04", "2020-02-01", "2021-01-01"], "M8[ns]")
    return xarray.Dataset({"t": (("time", "y", "x"), values, {"units": "K"})}, {"time": times})


def xarray_engine(folder: Path) -> None:
    made = data_set()
    made.to_netcdf(folder / "a.nc", engine="scipy" if not has("h5netcdf") else "h5netcdf")
    made.to_zarr(folder / "a.zarr")
    for name in ("a.nc", "a.zarr"):
        with xarray.open_dataset(folder / name, engine="hyperslab") as found:
            xarray.testing.assert_equal(found.load(), made)
    assert "hyperslab" in xarray.backends.list_engines()


def has(name: str) -> bool:
    with contextlib.suppress(ImportError):
        __import__(name)
        return True
    return False


def references(folder: Path) -> None:
    path = folder / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("numbers", data=NUMBERS, chunks=(7, 8), compression="gzip")
    index = hs.index(path)
    for name in ("a.hs", "a.json"):
        index.save(folder / name)
        equal(hs.open(folder / name)["numbers"][...], NUMBERS)


def versions(folder: Path) -> None:
    path = folder / "a.h5"
    with hs.VersionedFile(path, "w") as archive:
        with archive.stage_version("one") as group:
            group.create_dataset("numbers", data=NUMBERS, chunks=(8, 8))
        with archive.stage_version("two") as group:
            group["numbers"][3] = -1
    changed = NUMBERS.copy()
    changed[3] = -1
    equal(hs.open(path, version="one")["numbers"][...], NUMBERS)
    equal(hs.open(path, version="two")["numbers"][...], changed)


def collection(folder: Path) -> None:
    for number in range(2):
        with h5py.File(folder / f"{number}.h5", "w") as file:
            file["numbers"] = NUMBERS + number
    found = hs.open([folder / "0.h5", folder / "1.h5"], concat=0)
    equal(found["numbers"][...], np.concatenate([NUMBERS, NUMBERS + 1]))


def command_line(folder: Path) -> None:
    path = write_hdf5(folder / "a.h5")
    program = [sys.executable, "-m", "hyperslab"]
    done = subprocess.run([*program, "info", str(path)], capture_output=True, text=True, timeout=60)
    assert "numbers" in done.stdout, done.stderr


PARTS: tuple[Part, ...] = (
    hdf5, h5py_interface, zarr_folders, zarr_pipeline, zarr_missing_chunks, zarr_store, xarray_engine, references,
    versions, collection, command_line,
)  # fmt: skip


def main() -> None:
    outcomes = {}
    for part in PARTS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                part(Path(folder))
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                outcomes[part.__name__] = (
                    f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
                )
            else:
                outcomes[part.__name__] = "passed"
    names = ("numpy", "zarr", "h5py", "xarray", "pandas")
    found = {"python": platform.python_version(), **{name: version(name) for name in names}}
    print(json.dumps({"versions": {**found, "libhdf5": h5py.version.hdf5_version}, "outcomes": outcomes}))


if __name__ == "__main__":
    main()

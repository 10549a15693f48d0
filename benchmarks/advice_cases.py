"""Files with the programs that read or write them, for advice on their layouts. Tests use small ones."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

import hyperslab as hs
from hyperslab.running.command import library
from hyperslab.trace.starting import run_traced

Random = np.random.Generator


@dataclass(frozen=True)
class Case:
    """A file, an array of it, and a program: what is traced. `is_far` says that the file is on a server.

    `work` is a function, or the text of a program that runs with the file as its argument.
    """

    name: str
    array: str
    make: Callable[[Path, float], Path]
    work: Callable[[Path], None] | str
    is_far: bool = False


def trace_of(case: Case, file: Path, path: Path) -> None:
    """Run the program of a case and save its trace."""
    if isinstance(case.work, str):
        done = run_traced([sys.executable, "-c", case.work, str(file)], path, library())
        if done.trace is None or done.status != 0:
            raise RuntimeError(f"{case.name}: its program was not traced: {'; '.join(done.messages)}")
        return
    with hs.record() as trace:
        case.work(file)
    trace.save(path)


def _waves(shape: tuple[int, ...], random: Random) -> np.ndarray:
    """Smooth fields with a little noise, as measurements are."""
    found = np.zeros(shape, np.float32)
    for axis, length in enumerate(shape):
        wave = np.sin(np.arange(length, dtype=np.float32) / max(length / 9, 1))
        found += wave.reshape([-1 if one == axis else 1 for one in range(len(shape))])
    return found + random.normal(0, 0.01, shape).astype(np.float32)


def _longer(length: int, scale: float) -> int:
    return max(24, round(length * scale))


# --- climate -------------------------------------------------------------------------------------------------


def _climate(chunks: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Callable[[Path, float], Path]:
    def make(folder: Path, scale: float) -> Path:
        import netCDF4

        shape = (_longer(240, scale), 90, 180)
        path = folder / "climate.nc"
        with netCDF4.Dataset(path, "w") as file:
            for name, length in zip(("time", "lat", "lon"), shape, strict=True):
                file.createDimension(name, length)
            stored = file.createVariable("tas", "f4", ("time", "lat", "lon"), zlib=True, shuffle=True, complevel=4,
                                         chunksizes=chunks(shape), fill_value=False)  # fmt: skip
            stored[:] = np.round(_waves(shape, np.random.default_rng(1)), 2)
        return path

    return make


def _series(path: Path) -> None:
    random = np.random.default_rng(2)
    with h5py.File(path) as file:
        array = file["tas"]
        for _ in range(30):
            array[:, random.integers(0, array.shape[1]), random.integers(0, array.shape[2])].mean()


def _maps(path: Path) -> None:
    with h5py.File(path) as file:
        array = file["tas"]
        for moment in range(0, len(array), 8):
            array[moment].mean()


def _packed(folder: Path, scale: float) -> Path:
    import netCDF4

    shape = (_longer(120, scale), 120, 240)
    path = folder / "packed.nc"
    random = np.random.default_rng(3)
    with netCDF4.Dataset(path, "w") as file:
        for name, length in zip(("time", "lat", "lon"), shape, strict=True):
            file.createDimension(name, length)
        stored = file.createVariable("sst", "i2", ("time", "lat", "lon"), zlib=True, complevel=4,
                                     chunksizes=(shape[0], 1, shape[2]), fill_value=-32768)  # fmt: skip
        stored.scale_factor, stored.add_offset = 0.01, 10.0
        stored.set_auto_maskandscale(False)
        elements = (_waves(shape, random) * 100).astype("i2")
        elements[:, random.random(shape[1:]) < 0.3] = -32768  # land
        stored[:] = elements
    return path


def _regions(path: Path) -> None:
    random = np.random.default_rng(4)
    with h5py.File(path) as file:
        array = file["sst"]
        for _ in range(20):
            lat, lon = random.integers(0, 80), random.integers(0, 180)
            array[random.integers(0, len(array)), lat : lat + 40, lon : lon + 60].max()


# --- other fields --------------------------------------------------------------------------------------------


def _hdf5(
    name: str, shape: tuple[int, ...], dtype: str, chunks: tuple[int, ...] | bool | None, **more: object
) -> Callable[[Path, float], Path]:
    def make(folder: Path, scale: float) -> Path:
        path = folder / f"{name}.h5"
        long = (_longer(shape[0], scale), *shape[1:])
        elements = _waves(long, np.random.default_rng(len(name)))
        if dtype[0] in "iu":
            elements = (elements * 500 + 2000).clip(0)
        cut = chunks if chunks is True or chunks is None else tuple(
            min(pair) for pair in zip(chunks, long, strict=True)  # type: ignore[arg-type]
        )  # fmt: skip
        with h5py.File(path, "w") as file:
            file.create_dataset(name, data=elements.astype(dtype), chunks=cut, **more)
        return path

    return make


def _channels(path: Path) -> None:
    random = np.random.default_rng(5)
    with h5py.File(path) as file:
        array = file["voltage"]
        for channel in range(array.shape[1]):
            start = int(random.integers(0, len(array) // 2))
            array[start : start + len(array) // 4, channel].std()


def _volumes(path: Path) -> None:
    random = np.random.default_rng(6)
    with h5py.File(path) as file:
        array = file["cells"]
        for _ in range(25):
            start = [int(random.integers(0, length - 15)) for length in array.shape]
            array[tuple(slice(one, one + 16) for one in start)].sum()


def _frames(path: Path) -> None:
    with h5py.File(path) as file:
        array = file["frames"]
        for number in range(0, len(array), 3):
            array[number].max()


def _stamps(path: Path) -> None:
    random = np.random.default_rng(7)
    with h5py.File(path) as file:
        array = file["sky"]
        for _ in range(60):
            row, column = (int(random.integers(0, length - 24)) for length in array.shape)
            array[row : row + 24, column : column + 24].sum()


def _batches(path: Path) -> None:
    random = np.random.default_rng(8)
    with h5py.File(path) as file:
        array = file["images"]
        for _ in range(6):
            array[np.sort(random.choice(len(array), 24, replace=False))].mean()


def _logs(folder: Path, scale: float) -> Path:
    path = folder / "log.h5"
    write_log(path, _longer(4000, scale))
    return path


def write_log(path: Path, rows: int, chunks: tuple[int, ...] = (1, 8)) -> None:
    """Append a row at a time, with a chunk for each."""
    elements = _waves((rows, 8), np.random.default_rng(9))
    with h5py.File(path, "w") as file:
        array = file.create_dataset("log", (0, 8), "f4", chunks=chunks, maxshape=(None, 8))
        for start in range(0, rows, 10):
            array.resize(min(start + 10, rows), axis=0)
            array[start : start + 10] = elements[start : start + 10]


def _append(path: Path) -> None:
    with h5py.File(path) as file:
        rows = len(file["log"])
    write_log(path, rows)


def _whole(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (1, *shape[1:])


def _tall(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[0], 5, 5)


# --- idioms: the same fields, read as people write it -----------------------------------------------------------

BEGIN = "import sys\npath = sys.argv[1]\n"
EACH_OPENS = (
    BEGIN
    + """import h5py
with h5py.File(path) as file:
    for k in range(0, 90, 4):
        file["tas"][:, k].mean()
"""
)
ONCE_OPENED = (
    BEGIN
    + """import h5py
with h5py.File(path) as file:
    array = file["tas"]
    for k in range(0, 90, 4):
        array[:, k].mean()
"""
)
BY_XARRAY = (
    BEGIN
    + """import xarray as xr
with xr.open_dataset(path, engine="netcdf4") as opened:
    for k in range(0, 90, 4):
        opened["tas"].isel(lat=k).mean().values
"""
)
BY_NETCDF4 = (
    BEGIN
    + """import netCDF4
with netCDF4.Dataset(path) as file:
    for k in range(0, 90, 4):
        file["tas"][:, k].mean()
"""
)
BY_PANDAS = (
    BEGIN
    + """import pandas as pd
with pd.HDFStore(path, "r") as store:
    rows = store.get_storer("x").nrows if "table" in sys.argv[1] else store.get_storer("x").shape[0]
    for start in range(0, rows, rows // 20):
        store.select("x", start=start, stop=start + 50).mean()
"""
)
BY_ZARR = (
    BEGIN
    + """import zarr
group = zarr.open_group(path, mode="r")
for k in range(0, 128, 8):
    group["x"][:, k : k + 2].mean()
"""
)


def _pandas(form: str) -> Callable[[Path, float], Path]:
    def make(folder: Path, scale: float) -> Path:
        import pandas as pd

        path = folder / f"{form}.h5"
        data = np.round(_waves((_longer(40_000, scale), 24), np.random.default_rng(10)), 2).astype("f8")
        frame = pd.DataFrame(data, columns=[f"c{number}" for number in range(24)])
        frame.to_hdf(path, key="x", format=form, complevel=4, complib="zlib", index=False)
        return path

    return make


def _zarr(folder: Path, scale: float) -> Path:
    import zarr

    data = np.round(_waves((_longer(120, scale), 128, 160), np.random.default_rng(11)), 2)
    made = zarr.open_group(folder / "field.zarr", mode="w", zarr_format=3)
    made.create_array("x", shape=data.shape, chunks=(1, 128, 160), dtype="f4")[...] = data
    return folder / "field.zarr"


IDIOMS = [
    Case('h5py: f["x"][k] in a loop', "tas", _climate(_whole), EACH_OPENS),
    Case("h5py: d[k] in a loop", "tas", _climate(_whole), ONCE_OPENED),
    Case("xarray", "tas", _climate(_whole), BY_XARRAY),
    Case("netCDF4", "tas", _climate(_whole), BY_NETCDF4),
    Case("pandas, fixed", "x/block0_values", _pandas("fixed"), BY_PANDAS),
    Case("pandas, table", "x/table", _pandas("table"), BY_PANDAS),
    Case("zarr", "x", _zarr, BY_ZARR),
]
CASES = [
    Case("climate: series from maps", "tas", _climate(_whole), _series),
    Case("climate: maps from series", "tas", _climate(_tall), _maps),
    Case("packed int16 with fill", "sst", _packed, _regions),
    Case("neuroscience columns", "voltage", _hdf5("voltage", (40_000, 32), "i2", (400, 32)), _channels),
    Case(
        "microscopy boxes", "cells", _hdf5("cells", (64, 256, 256), "u2", (1, 256, 256), compression="gzip"), _volumes
    ),
    Case("detector frames", "frames", _hdf5("frames", (120, 128, 160), "u2", (60, 16, 16), compression="lzf"), _frames),
    Case("cut-outs of sky", "sky", _hdf5("sky", (1500, 1500), "f4", (1, 1500), compression="gzip"), _stamps),
    Case("random batches", "images", _hdf5("images", (600, 48, 48), "f4", (100, 48, 48)), _batches),
    Case("append-heavy logs", "log", _logs, _append),
    Case("HTTP: series from maps", "tas", _climate(_whole), _series, is_far=True),
    Case("HTTP: regions", "sst", _packed, _regions, is_far=True),
    Case(
        "HTTP: cut-outs of sky", "sky", _hdf5("sky", (1500, 1500), "f4", (1, 1500), compression="gzip"), _stamps, True
    ),
    *IDIOMS,
]

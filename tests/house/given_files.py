"""The files that the pages speak of as the reader's own, small, with the structure that such files have."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

FORMATS = "not installed: pip install 'hyperslab[formats]'"


def ocean(folder: Path) -> None:
    """Fields of the sea, in NetCDF and in Zarr, as one file and as several."""
    netcdf, zarr = pytest.importorskip("netCDF4", reason=FORMATS), pytest.importorskip("zarr", reason=FORMATS)
    field = np.arange(7200.0).reshape(12, 20, 30)
    with netcdf.Dataset(folder / "ocean.nc", "w") as made:
        for name, length in (("time", 12), ("lat", 20), ("lon", 30)):
            made.createDimension(name, length)
        made.createVariable("sst", "f4", ("time", "lat", "lon"))[:] = field
    zarr.create_group(folder / "ocean.zarr").create_array("sst", data=field)
    for copy in ("2019.nc", "2020.nc", "ocean.h5"):
        shutil.copy(folder / "ocean.nc", folder / copy)
    months(folder)
    with netcdf.Dataset(folder / "depth.nc", "w") as made:
        made.createDimension("lat", 20)
        made.createVariable("depth", "f4", ("lat",))[:] = np.arange(20)


def months(folder: Path) -> None:
    """A file for each month, packed differently."""
    netcdf = pytest.importorskip("netCDF4", reason=FORMATS)
    for month, scale in ((1, 0.01), (2, 0.02)):
        days = 29 + month % 2 * 2
        with netcdf.Dataset(folder / f"sst-{month}.nc", "w") as made:
            for name, length in (("time", None), ("lat", 20), ("lon", 30)):
                made.createDimension(name, length)
            made.createVariable("time", "f8", ("time",)).units = f"days since 2020-{month:02d}-01"
            made["time"][:] = np.arange(days)
            made.createVariable("sst", "i2", ("time", "lat", "lon"), zlib=True).scale_factor = scale
            made["sst"][:] = np.random.default_rng(month).normal(15, 3, (days, 20, 30))


def survey(folder: Path) -> None:
    """A file with two versions."""
    pytest.importorskip("h5py", reason=FORMATS)
    import hyperslab as hs

    with hs.VersionedFile(folder / "survey.h5", "w") as file:
        with file.stage_version("march") as version:
            version.create_dataset("depth", data=np.arange(10_000.0), chunks=(1000,), compression="gzip")
        with file.stage_version("april") as version:
            version["depth"][20:25] = -1


def recording(folder: Path) -> None:
    """A session of electrophysiology with the groups and attributes of NWB, sampled at 30 kHz."""
    h5py = pytest.importorskip("h5py", reason=FORMATS)
    random = np.random.default_rng(2)
    with h5py.File(folder / "session.nwb", "w") as file:
        file.attrs["nwb_version"] = "2.8.0"
        series = file.create_group("acquisition/ElectricalSeries")
        series.attrs["neurodata_type"] = "ElectricalSeries"
        voltages = random.integers(-200, 200, (30_000, 32), dtype="i2")
        data = series.create_dataset("data", data=voltages, chunks=(10_000, 32), compression="gzip", shuffle=True)
        data.attrs["conversion"], data.attrs["unit"] = 1.95e-7, "volts"
        series.create_dataset("starting_time", data=0.0).attrs["rate"] = 30_000.0
        file["units/spike_times"] = np.sort(random.uniform(0.01, 0.99, 200))


def plate(folder: Path) -> None:
    """An image of OME-Zarr: time, channel, z, y, x, in two resolutions."""
    zarr = pytest.importorskip("zarr", reason=FORMATS)
    image = np.random.default_rng(3).poisson(100, (2, 2, 8, 128, 128)).astype("u2")
    group = zarr.create_group(folder / "cells.ome.zarr")
    group.create_array("0", data=image, chunks=(1, 1, 1, 64, 64))
    group.create_array("1", data=image[..., ::2, ::2], chunks=(1, 1, 1, 64, 64))
    kinds = {"t": "time", "c": "channel"} | dict.fromkeys("zyx", "space")
    axes = [{"name": name, "type": kind} for name, kind in kinds.items()]
    scales = [[1, 1, 2, 0.1 * step, 0.1 * step] for step in (1, 2)]
    levels = [
        {"path": str(k), "coordinateTransformations": [{"type": "scale", "scale": scale}]}
        for k, scale in enumerate(scales)
    ]
    group.attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": levels}]}


def night(folder: Path) -> None:
    """Exposures of one night, and a catalogue of stars."""
    fitsio = pytest.importorskip("fitsio", reason="not installed: pip install fitsio (GPL)")
    random = np.random.default_rng(4)
    for number in range(3):
        frame = random.normal(1000, 30, (256, 256)).astype("f4")
        header = [{"name": "EXPTIME", "value": 30.0}, {"name": "FILTER", "value": "r"}]
        fitsio.write(folder / f"frame-{number}.fits", frame, header=header, clobber=True)
    stars = np.zeros(50, [("ra", "f8"), ("dec", "f8"), ("mag", "f4")])
    stars["ra"], stars["mag"] = random.uniform(10, 11, 50), random.normal(18, 1, 50)
    fitsio.write(folder / "stars.fits", stars, clobber=True)


def scan(folder: Path) -> None:
    """A scan of a beamline: a master file with a virtual array over two files of frames."""
    h5py = pytest.importorskip("h5py", reason=FORMATS)
    plugins = pytest.importorskip("hdf5plugin", reason=FORMATS)
    layout = h5py.VirtualLayout((20, 64, 64), "u2")
    for part in range(2):
        frames = np.random.default_rng(part).poisson(3, (10, 64, 64)).astype("u2")
        with h5py.File(folder / f"scan_data_{part + 1:06}.h5", "w") as file:
            file.create_dataset("entry/data/data", data=frames, chunks=(1, 64, 64), **plugins.Bitshuffle())
        layout[part * 10 : part * 10 + 10] = h5py.VirtualSource(
            f"scan_data_{part + 1:06}.h5", "entry/data/data", (10, 64, 64)
        )
    with h5py.File(folder / "scan_master.h5", "w") as file:
        file.create_virtual_dataset("entry/data/data", layout, fillvalue=0)
        file["entry/instrument/detector/count_time"] = 0.1


# README, the tutorial, and docs/versions.md make their files themselves.
NOTHING: tuple[Callable[[Path], None], ...] = ()
GIVEN: dict[str, tuple[Callable[[Path], None], ...]] = {
    "README.md": NOTHING,
    "tutorial.md": NOTHING,
    "versions.md": NOTHING,
    "layouts.md": NOTHING,
    "from-h5py.md": (survey,),
    "climate.md": (months,),
    "neuroscience.md": (recording,),
    "microscopy.md": (plate,),
    "astronomy.md": (night,),
    "x-ray.md": (scan,),
    "clusters.md": (months,),
}


def give(page: str, folder: Path) -> None:
    """Make the files that a page takes for granted: those of the sea, unless it has its own."""
    for make in GIVEN.get(page, (ocean,)):
        make(folder)

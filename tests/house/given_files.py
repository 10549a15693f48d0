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


# README, the tutorial, the pages for each field and these two make their files themselves.
NOTHING: tuple[Callable[[Path], None], ...] = ()
GIVEN: dict[str, tuple[Callable[[Path], None], ...]] = {
    "README.md": NOTHING,
    "tutorial.md": NOTHING,
    "versions.md": NOTHING,
    "layouts.md": NOTHING,
    "gallery.md": NOTHING,
    "from-h5py.md": (survey,),
}


def is_given_nothing(page: Path) -> bool:
    """Whether a page must make all its files itself."""
    return page.parent.name == "how-to" or GIVEN.get(page.name) == NOTHING


def give(page: Path, folder: Path) -> None:
    """Make the files that a page takes for granted: those of the sea, unless it has its own."""
    if not is_given_nothing(page):
        for make in GIVEN.get(page.name, (ocean,)):
            make(folder)

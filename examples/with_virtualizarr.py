"""hyperslab's parser in VirtualiZarr: months of NetCDF files as one virtual dataset, saved as references, opened again.

    python examples/with_virtualizarr.py [FOLDER]

VirtualiZarr combines and saves. hyperslab finds the chunks in NetCDF-4 and NetCDF-3 files.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

import netCDF4
import numpy as np
import virtualizarr
import xarray
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore

import hyperslab as hs
from hyperslab.references.virtualizarr import HyperslabParser

warnings.filterwarnings("ignore", message=".*(Zarr V3 spec|Zarr version 3 spec)")  # of HDF5's codecs
FIRST_DAYS = (0, 30)


def write_month(path: Path, first_day: int) -> None:
    """Thirty days of maps, deflated and shuffled."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 1000)
        time = file.createVariable("time", "i4", ("time",), chunksizes=(30,))
        time.units = "days since 2020-01-01"
        time[:] = first_day + np.arange(30)
        wind = file.createVariable("wind", "f4", ("time", "x"), zlib=True, chunksizes=(10, 500))
        wind[:] = np.random.default_rng(first_day).normal(size=(30, 1000)).round(1)


def main(folder: Path) -> None:
    """Write files, combine them virtually, save and open references."""
    paths = [folder / f"from_{day}.nc" for day in FIRST_DAYS]
    for path, day in zip(paths, FIRST_DAYS, strict=True):
        write_month(path, day)

    registry = ObjectStoreRegistry({"file://": LocalStore()})
    with virtualizarr.open_virtual_mfdataset(
        [str(path) for path in paths],
        registry=registry,
        parser=HyperslabParser(),
        combine="nested",
        concat_dim="time",
        data_vars="minimal",
        coords="minimal",
        compat="override",
    ) as virtual:
        print(f"{virtual['wind'].shape}: {virtual['wind'].data.nbytes_virtual} bytes of references")
        virtual.vz.to_kerchunk(folder / "wind.json", format="json")

    found = hs.open(folder / "wind.json")["wind"]
    with xarray.open_mfdataset(paths, engine="netcdf4") as expected:
        assert (found[25:35] == expected["wind"][25:35].values).all()
    print(f"wind.json: equal to what netCDF4 reads, {found.shape} in chunks of {found.chunks}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]).resolve())
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made).resolve())

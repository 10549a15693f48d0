"""Years of NetCDF files as one Icechunk store of references, read by zarr-python and xarray.

    python examples/to_icechunk.py [FOLDER]

The arrays are not copied: the store has the locations of their chunks in the files.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

import icechunk
import netCDF4
import numpy as np
import xarray
import zarr

import hyperslab as hs

warnings.filterwarnings("ignore", message=".*(Zarr V3 spec|Zarr version 3 spec)")  # of HDF5's codecs


def write_year(path: Path, year: int) -> None:
    """A year of daily maps, deflated and shuffled."""
    with netCDF4.Dataset(path, "w") as file:
        for name, length in (("time", 365), ("lat", 45), ("lon", 90)):
            file.createDimension(name, length)
        time = file.createVariable("time", "i4", ("time",))
        time.units = f"days since {year}-01-01"
        time[:] = np.arange(365)
        sst = file.createVariable("sst", "f4", ("time", "lat", "lon"), zlib=True, chunksizes=(73, 45, 45))
        sst.units = "K"
        sst[:] = 280 + np.random.default_rng(year).normal(size=(365, 45, 90)).round(1)


def main(folder: Path) -> None:
    """Write files, reference them, read them back."""
    paths = [folder / f"{year}.nc" for year in (2019, 2021)]
    for path in paths:
        write_year(path, int(path.stem))

    # A repository that is allowed to read files below the folder.
    prefix = folder.as_uri() + "/"
    config = icechunk.RepositoryConfig.default()
    files = icechunk.local_filesystem_store(str(folder))
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(prefix, files))
    storage = icechunk.local_filesystem_storage(str(folder / "references"))
    access = getattr(icechunk.credentials, "LocalFileSystemAccess", None)  # Icechunk 1 takes None
    repository = icechunk.Repository.create(storage, config, authorize_virtual_chunk_access={prefix: access})
    repository.save_config()

    session = repository.writable_session("main")
    referenced = hs.index(paths).to_icechunk(session.store)
    session.commit("the files of 2019 and 2021")
    print(f"{referenced.array_count} arrays, {referenced.chunk_count} chunks in {referenced.file_count} files")

    store = repository.readonly_session("main").store
    for path in paths:
        with xarray.open_dataset(path, engine="netcdf4") as expected:
            with xarray.open_zarr(store, group=path.stem, consolidated=False) as found:
                xarray.testing.assert_identical(found.load(), expected.load())
            sst = zarr.open_group(store, mode="r")[f"{path.stem}/sst"]
            assert (sst[100:110] == expected["sst"][100:110].values).all()
        print(f"{path.name}: equal to what netCDF4 reads, {sst.shape} in chunks of {sst.chunks}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]).resolve())
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made).resolve())

"""Files like those of archives, with metadata scattered among the data. h5py and netCDF4 write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def goes_like(path: Path, every: int = 1) -> None:
    """NetCDF-4 like that of satellites: 163 objects, most of them scalars with many attributes; about 1,600 chunks.

    Of `every` so many rows, one has elements that do not compress: the file is smaller and sooner made.
    """
    import netCDF4

    random = np.random.default_rng(1)
    with netCDF4.Dataset(path, "w") as made:
        for name, length in (("y", 1500), ("x", 2500), ("band", 1), ("bounds", 2)):
            made.createDimension(name, length)
        for number in range(20):
            made.setncattr(f"title_{number}", f"attribute number {number} of the file " * 3)
        for number in range(16):
            image = made.createVariable(f"CMI_C{number:02d}", "i2", ("y", "x"), zlib=True, complevel=1,
                                        chunksizes=(226, 226), fill_value=-1)  # fmt: skip
            image.setncatts({f"attribute_{k}": f"text {k} of variable {number}" for k in range(12)})
            image.set_auto_maskandscale(False)
            values = np.zeros((1500, 2500), "i2")
            values[::every] = random.integers(0, 500, values[::every].shape, dtype="i2")
            image[:] = values
        for number in range(140):
            scalar = made.createVariable(f"scalar_{number}", "f4", ())
            scalar.setncatts({f"attribute_{k}": f"text {k} of scalar {number}" for k in range(9)})
            scalar[...] = number


def cmip_like(path: Path, steps: int = 2436) -> None:
    """NetCDF-4 like that of models: an unlimited time axis, one chunk per step, chunk indices among the data."""
    import netCDF4

    random = np.random.default_rng(2)
    with netCDF4.Dataset(path, "w") as made:
        made.createDimension("time", None)
        for name, length in (("lat", 72), ("lon", 96), ("bounds", 2)):
            made.createDimension(name, length)
        time = made.createVariable("time", "f8", ("time",), chunksizes=(1,))
        bounds = made.createVariable("time_bnds", "f8", ("time", "bounds"), chunksizes=(1, 2))
        field = made.createVariable("tas", "f4", ("time", "lat", "lon"), zlib=True, complevel=1, shuffle=True,
                                    chunksizes=(1, 72, 96))  # fmt: skip
        field.setncatts({f"attribute_{k}": f"text {k}" for k in range(20)})
        values = random.normal(size=(72, 96)).astype("f4")
        for step in range(steps):
            time[step], bounds[step], field[step] = step, (step, step + 1), values + step


def era_like(path: Path, every: int = 1) -> None:
    """NetCDF-4 with four variables of 496 chunks each, written alternately. `every` is that of `goes_like`."""
    import netCDF4

    random = np.random.default_rng(3)
    with netCDF4.Dataset(path, "w") as made:
        for name, length in (("time", 248), ("lat", 180), ("lon", 360)):
            made.createDimension(name, length)
        fields = [
            made.createVariable(
                f"field_{number}",
                "i2",
                ("time", "lat", "lon"),
                zlib=True,
                complevel=1,
                shuffle=True,
                chunksizes=(1, 90, 360),
                fill_value=-32767,
            )
            for number in range(4)
        ]
        values = np.zeros((180, 360), "i2")
        values[::every] = random.integers(0, 4000, values[::every].shape, dtype="i2")
        for step in range(248):
            for field in fields:
                field.set_auto_maskandscale(False)
                field[step] = values


MAKERS = {"goes": goes_like, "cmip": cmip_like, "era": era_like}

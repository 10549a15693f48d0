"""The far files of the benchmarks, of which the one with the most chunks has a quarter as many."""

from __future__ import annotations

from pathlib import Path

import far_files
import numpy as np

CMIP_STEPS = 609


def cmip_like(path: Path) -> None:
    """As `far_files.cmip_like`: an unlimited time axis, one chunk per step, chunk indices among the data."""
    import netCDF4

    values = np.random.default_rng(2).normal(size=(72, 96)).astype("f4")
    with netCDF4.Dataset(path, "w") as made:
        made.createDimension("time", None)
        for name, length in (("lat", 72), ("lon", 96), ("bounds", 2)):
            made.createDimension(name, length)
        time = made.createVariable("time", "f8", ("time",), chunksizes=(1,))
        bounds = made.createVariable("time_bnds", "f8", ("time", "bounds"), chunksizes=(1, 2))
        field = made.createVariable("tas", "f4", ("time", "lat", "lon"), zlib=True, complevel=1, shuffle=True,
                                    chunksizes=(1, 72, 96))  # fmt: skip
        field.setncatts({f"attribute_{k}": f"text {k}" for k in range(20)})
        for step in range(CMIP_STEPS):
            time[step], bounds[step], field[step] = step, (step, step + 1), values + step


MAKERS = {**far_files.MAKERS, "cmip": cmip_like}

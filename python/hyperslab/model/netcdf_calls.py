"""What netCDF4-python takes beyond h5py: its own work for each opening, each call and each byte.

Below both is the same libhdf5, so the coefficients of HDF5 hold for the rest. netCDF4 is measured as programs use it by
default: it masks and scales what it reads.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from hyperslab.errors import MissingLibrary
from hyperslab.formats import availability
from hyperslab.model.costs import CallsBeyond
from hyperslab.timers import Timers

ELEMENTS = 1 << 20
# So many calls for so many elements each.
CALLS = {1: 200, 256: 200, 1 << 16: 8, 1 << 19: 2}
ROUNDS = 7


def calls_beyond(directory: Path) -> CallsBeyond | None:
    """Measure it on a small file in `directory`, in about a second; None if one of the two is not installed."""
    if any(isinstance(availability(name), MissingLibrary) for name in ("hdf5", "netcdf4")):
        return None
    import netCDF4

    with tempfile.TemporaryDirectory(prefix="hyperslab-netcdf-", dir=directory) as folder:
        path = str(Path(folder, "a.nc"))
        with netCDF4.Dataset(path, "w") as file:
            file.createDimension("x", ELEMENTS)
            file.createVariable("x", "f4", ("x",))[:] = np.arange(ELEMENTS, dtype="f4")
        rounds = [_round(path) for _ in range(ROUNDS)]
    least = {name: min(one[name] for one in rounds) for name in rounds[0]}
    return _beyond(least)


def _round(path: str) -> dict[str, float]:
    """Seconds of both libraries, one after the other, so that both have the same machine."""
    import h5py
    import netCDF4

    timers = Timers()
    for name, opened in (("h5py", h5py.File), ("netCDF4", netCDF4.Dataset)):
        with timers(f"{name} opening"):
            file = opened(path)
            array = file["x"]
        _read(timers, name, array)
        with timers(f"{name} opening"):
            file.close()
    return timers.seconds


def _read(timers: Timers, name: str, array: Any) -> None:
    array[:]  # from the page cache from now on
    for length, count in CALLS.items():
        with timers(f"{name} {length}"):
            for place in range(count):
                array[place : place + length]


def _beyond(least: dict[str, float]) -> CallsBeyond:
    more = {kind: least[f"netCDF4 {kind}"] - least[f"h5py {kind}"] for kind in ("opening", *CALLS)}
    call = max(more[1] / CALLS[1], 0.0)
    largest = max(CALLS)
    byte = max((more[largest] / CALLS[largest] - call) / (largest * 4), 0.0)
    return CallsBeyond(max(more["opening"], 0.0), call, byte)

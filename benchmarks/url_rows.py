"""The rows of unmodified libraries that open URLs, as under `hyperslab run`: with us, and by what they have themselves.

h5py's wheels have no driver for URLs, so `#mode=bytes` of netCDF4's is the peer. It makes one request for each read of
libhdf5's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import h5py
import netCDF4
import numpy as np
import peers
from comparison import OURS, Row, Side
from far_rows import NEAR, W8_PLANES, Network
from files import Files

import hyperslab

BYTES = "netCDF4, #mode=bytes"
GROUPS = 20


def by_h5py(url: str, key: Any) -> Any:
    """h5py's elements."""
    with h5py.File(url) as file:
        return file["x"][key]


def by_netcdf4(url: str, key: Any) -> Any:
    """netCDF4's."""
    with netCDF4.Dataset(url) as file:
        file["x"].set_auto_maskandscale(False)
        return file["x"][key]


def by_xarray(url: str, key: Any) -> Any:
    """xarray's, with netCDF4's engine."""
    import xarray

    with xarray.open_dataset(url, engine="netcdf4", cache=False) as data:
        return data["x"][key].values


LIBRARIES = {"h5py": by_h5py, "netCDF4": by_netcdf4, "xarray": by_xarray}


def opened(files: Files, network: Network, quick: bool) -> Iterator[Row]:
    """Open and read 64 MiB of a deflated array; and list 2,000 arrays with their shapes."""
    with hyperslab.accelerated():
        yield from _read(files, network, quick)
        yield _listing(files, network, quick)


def _read(files: Files, network: Network, quick: bool) -> Iterator[Row]:
    path = files.hdf5("deflate")
    first = 0 if quick else 40
    key = np.s_[first : first + W8_PLANES]
    file = network.file(path, NEAR)
    for name, read in LIBRARIES.items():
        yield Row(
            key=f"urls-{name}",
            work=f"open a URL by {name} and read 64 MiB, 20 ms each way",
            files=[path],
            expected=peers.checksum(files.data[key]),
            sides={
                OURS: lambda read=read: Side(lambda: read(file.url(), key), peers.checksum),
                "hyperslab.open": lambda: Side(lambda: hyperslab.open(file.url())["x"][key], peers.checksum),
                BYTES: lambda: Side(lambda: by_netcdf4(f"{file.url()}#mode=bytes", key), peers.checksum),
            },
            targets={"hyperslab.open": 1.2, BYTES: 0.2},
            turns=3,
        )


def _listing(files: Files, network: Network, quick: bool) -> Row:
    many, names = files.many_arrays(2 if quick else GROUPS)
    listing = network.file(many, NEAR)
    return Row(
        key="urls-listed",
        work=f"open a URL by netCDF4 and list {len(names):,} arrays, 20 ms each way",
        files=[many],
        expected=len(names),
        sides={
            OURS: lambda: Side(lambda: listed(listing.url())),
            BYTES: lambda: Side(lambda: listed(f"{listing.url()}#mode=bytes")),
        },
        targets={BYTES: 0.1},
        turns=1 if quick else 3,
    )


def listed(url: str) -> int:
    """How many arrays there are, all of whose shapes were looked at."""
    with netCDF4.Dataset(url) as file:
        arrays = [array for group in file.groups.values() for array in group.variables.values()]
        return sum(array.shape == (4, 16) for array in arrays)

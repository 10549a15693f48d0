"""Which suffixes the name of a file has in each format that `convert` writes."""

from __future__ import annotations

from pathlib import Path

# The first one of each is what we name a file.
OF_FORMAT: dict[str, tuple[str, ...]] = {
    "hdf5": (".h5", ".hdf5", ".he5"),
    "netcdf4": (".nc", ".nc4"),
    "zarr2": (".zarr",),
    "zarr3": (".zarr",),
}
# What a suffix means by itself: of Zarr, version 3.
SUFFIXES = {suffix: name for name, listed in OF_FORMAT.items() if name != "zarr2" for suffix in listed}


def suited(path: str | Path, format: str) -> str:
    """The suffix of a name if it may be that of a file in this format; otherwise the format's usual one."""
    suffix = Path(path).suffix
    return suffix if suffix.lower() in OF_FORMAT[format] else OF_FORMAT[format][0]

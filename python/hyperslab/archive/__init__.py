"""Archives that other programs wrote: HDF5, NetCDF, FITS, HDF4 and Zarr, read in parallel without their libraries."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hyperslab.archive.array import Array
    from hyperslab.archive.opening import open
    from hyperslab.archive.remote import credentials, stats
    from hyperslab.archive.tree import Group

__all__ = ["Array", "Group", "credentials", "open", "stats"]
HOMES = {"Array": "array", "Group": "tree", "credentials": "remote", "open": "opening", "stats": "remote"}


def __getattr__(name: str) -> Any:
    """Names that users have from here, for which modules above this package are needed too."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)

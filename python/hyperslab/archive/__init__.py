"""Archives that other programs wrote: HDF5, NetCDF, FITS, HDF4 and Zarr, read in parallel without their libraries."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hyperslab.archive.far.remote import credentials, stats
    from hyperslab.archive.opening import open
    from hyperslab.archive.tree.array import Array
    from hyperslab.archive.tree.group import Group

__all__ = ["Array", "Group", "credentials", "open", "stats"]
HOMES = {
    "Array": "tree.array",
    "Group": "tree.group",
    "credentials": "far.remote",
    "open": "opening",
    "stats": "far.remote",
}


def __getattr__(name: str) -> Any:
    """Names that users have from here, for which modules above this package are needed too."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)

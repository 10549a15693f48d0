"""Archives that other programs wrote: HDF5, NetCDF, FITS, HDF4 and Zarr, read in parallel without their libraries."""

from hyperslab.archive.array import Array
from hyperslab.archive.remote import credentials, stats
from hyperslab.archive.tree import Group, open

__all__ = ["Array", "Group", "credentials", "open", "stats"]

"""The call that gives an array a larger chunk cache, in the library that the program uses."""

from __future__ import annotations


def cache_call(library: str, file: str, array: str, nbytes: int, slots: int) -> str:
    """The call, for a library as a trace names it: h5py, netCDF, PyTables, or HDF5 for any other program."""
    opened = "your_open_file" if file.startswith("<") else repr(file)
    if library == "netCDF":
        return f"netCDF4.Dataset({opened})[{array!r}].set_var_chunk_cache({nbytes}, {slots})"
    if library == "PyTables":
        return f"tables.open_file({opened}, CHUNK_CACHE_SIZE={nbytes}, CHUNK_CACHE_NELMTS={slots})"
    if library == "HDF5":
        return f"H5Pset_cache(properties, 0, {slots}, {nbytes}, 0.75) before H5Fopen({opened}, ..., properties)"
    return f"h5py.File({opened}, rdcc_nbytes={nbytes}, rdcc_nslots={slots})"

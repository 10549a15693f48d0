"""Which file formats and codecs to consider for an array, and what the codecs cost on its data.

An advice must end well for the program that asked: it reads the new file with the library that it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hyperslab.advise.candidate import CALLERS
from hyperslab.advise.codecs import encodings_for, measure_codecs
from hyperslab.advise.demand import Demand
from hyperslab.advise.limits import Limits
from hyperslab.advise.remembering import remembered
from hyperslab.advise.stored import StoredArray
from hyperslab.archive.opening import open as open_archive
from hyperslab.errors import HyperslabError
from hyperslab.model.caller_sample import CALLERS as MEASURED_CALLERS
from hyperslab.model.codec_sample import MeasuredCodec
from hyperslab.model.store_profile import StoreProfile
from hyperslab.storage.chain import PLAIN, USUAL_FILTERS, CodecChain, needs

# The libraries of the cost model that open a file of HDF5, and one of Zarr.
OF_HDF5 = ("hdf5", "netcdf4")
OPENS_HDF5, OPENS_ZARR = {"hdf5", "hyperslab"}, {"zarr", "hyperslab"}


def encodings_of(
    array: StoredArray, limits: Limits, profile: StoreProfile, demands: Sequence[Demand] = ()
) -> dict[str, list[CodecChain]]:
    """The codecs of each file format that the limits allow, and the program that makes the demands can read."""
    allowed = {}
    for name in _formats(array, limits, profile, demands):
        listed = [one for one in encodings_for(name, array.encoding) if _is_written(name, one)]
        allowed[name] = [
            one
            for one in listed
            if limits.codecs == "any" or reader_needs(name, one, array, demands, is_far=profile.is_far) is None
        ]
    return allowed


def _is_written(name: str, encoding: CodecChain) -> bool:
    """Whether `convert` can write a codec in a file format."""
    try:
        if name == "zarr2":
            encoding.zarr2(1)
        elif name == "zarr3":
            encoding.zarr3(1)
        else:
            encoding.hdf5(1, 1)
    except HyperslabError:
        return False
    return True


def reader_needs(
    name: str, encoding: CodecChain, array: StoredArray, demands: Sequence[Demand], *, is_far: bool = False
) -> str | None:
    """What a program must have, beside what it has, to read a codec in a file format; None if nothing."""
    if name.startswith("zarr") or (name == array.format and encoding == array.encoding):
        return None
    makers = {demand.library for demand in demands}
    if makers == {"hyperslab"} or (is_far and makers <= {None, "hyperslab"}):
        return None  # our engine has all of them
    decodable = USUAL_FILTERS
    sets = [demand.decodes for demand in demands if demand.decodes is not None and demand.library == "hdf5"]
    if sets:
        decodable = frozenset.intersection(*sets)
    filters, _ = encoding.hdf5(1, 1)
    return needs((number for number, *_ in filters), decodable)


def _formats(array: StoredArray, limits: Limits, profile: StoreProfile, demands: Sequence[Demand]) -> list[str]:
    hdf5 = "netcdf4" if array.format in ("netcdf4", "netcdf3") or limits.keep == "netcdf" else "hdf5"
    if limits.keep == "hdf5":
        hdf5 = "netcdf4" if array.format == "netcdf4" else "hdf5"
    zarr = "zarr2" if array.format == "zarr2" else "zarr3"
    held = [name for name in (hdf5, zarr) if _holds(name, array)]
    # Requests to far Zarr stores are not calibrated.
    names = [hdf5] if limits.keep in ("hdf5", "netcdf") or profile.is_far else held
    makers = {demand.library for demand in demands if demand.library is not None}
    if not makers or limits.keep is not None:
        return names
    opened = [name for name in names if makers <= (OPENS_ZARR if name.startswith("zarr") else OPENS_HDF5)]
    return opened or names


def _holds(name: str, array: StoredArray) -> bool:
    """Whether `convert` writes all that the type of an array says in a format."""
    is_own = name == array.format or (name in OF_HDF5 and array.format in OF_HDF5)
    return is_own or _holds_type(name, array.dtype)


def _holds_type(name: str, dtype: np.dtype[Any]) -> bool:
    about: Mapping[str, Any] = dtype.metadata or {}
    if dtype.fields is not None or dtype.subdtype is not None or about.get("enum"):
        return False
    if name == "netcdf4":
        return dtype.kind in "iu" or (dtype.kind == "f" and dtype.itemsize > 2)
    return dtype.kind in "biufc"


def unheld(path: str, name: str, options: Mapping[str, Any]) -> str | None:
    """The first array of a file that `convert` could not write in another format as it is; None if it could all."""
    with open_archive(path, storage_options=options) as archive:
        for array in archive.walk():
            try:
                is_held = not array.is_null and (array.is_text or _holds_type(name, array.dtype))
            except HyperslabError:
                is_held = False
            if not is_held and not array.is_dimension_only:
                return array.name
    return None


def codecs_of(
    array: StoredArray, encodings: dict[str, list[CodecChain]], profile: StoreProfile, demands: Sequence[Demand] = ()
) -> dict[tuple[str, CodecChain], MeasuredCodec]:
    """What the codecs cost each library on a sample of the array's elements, and each that calls HDF5 for a demand."""
    asked: dict[str, list[CodecChain]] = {}
    for name, listed in encodings.items():
        for library in ("zarr",) if name.startswith("zarr") else ("hdf5", "hyperslab"):
            if library in profile.libraries:
                asked[library] = list(dict.fromkeys([*asked.get(library, []), *listed]))
    if array.library in profile.libraries and array.encoding.codec is not None:
        asked.setdefault(array.library, [])
        if array.encoding not in asked[array.library]:
            asked[array.library].append(array.encoding)
    usual = "netCDF4" if array.is_netcdf4 else "h5py"
    for caller in dict.fromkeys(CALLERS.get(demand.caller, usual) for demand in demands) or (usual,):
        if caller in MEASURED_CALLERS and caller != "h5py" and "hdf5" in asked:
            asked[caller] = asked["hdf5"]
    asked = {name: [one for one in listed if one != PLAIN] for name, listed in asked.items()}
    return remembered(array, profile, asked, partial(measure_codecs, array.sample_chunk, array.sample))

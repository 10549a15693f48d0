"""Which file formats and codecs to consider for an array, and what the codecs cost on its data."""

from __future__ import annotations

from hyperslab.advise.candidate import Encoding
from hyperslab.advise.codecs import encodings_for, measure_codecs
from hyperslab.advise.limits import Limits
from hyperslab.advise.pricing import MeasuredCodec
from hyperslab.advise.stored import StoredArray
from hyperslab.model.store_profile import StoreProfile


def encodings_of(array: StoredArray, limits: Limits, profile: StoreProfile) -> dict[str, list[Encoding]]:
    """The codecs of each file format that the limits allow."""
    hdf5 = "netcdf4" if array.format in ("netcdf4", "netcdf3") or limits.keep == "netcdf" else "hdf5"
    if limits.keep == "hdf5":
        hdf5 = "netcdf4" if array.format == "netcdf4" else "hdf5"
    names = [hdf5]
    # Requests to far Zarr stores are not calibrated.
    if limits.keep is None and not profile.is_far:
        names.append("zarr2" if array.format == "zarr2" else "zarr3")
    return {name: encodings_for(name, array.encoding) for name in names}


def codecs_of(
    array: StoredArray, encodings: dict[str, list[Encoding]], profile: StoreProfile
) -> dict[tuple[str, Encoding], MeasuredCodec]:
    """What the codecs cost each library on a sample of the array's elements."""
    if array.sample is None:
        return {}
    asked: dict[str, list[Encoding]] = {}
    for name, listed in encodings.items():
        for library in ("zarr",) if name.startswith("zarr") else ("hdf5", "hyperslab"):
            if library in profile.libraries:
                asked[library] = list(dict.fromkeys([*asked.get(library, []), *listed]))
    if array.library in profile.libraries and array.encoding.codec is not None:
        asked.setdefault(array.library, [])
        if array.encoding not in asked[array.library]:
            asked[array.library].append(array.encoding)
    return measure_codecs(array.sample_chunk, array.sample, asked)

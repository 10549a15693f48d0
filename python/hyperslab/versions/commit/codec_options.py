"""The codecs of an array as options of h5py, from the filters that HDF5 stores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import h5py
from h5py import h5z

from hyperslab.storage.hdf5_plugins import has_codec
from hyperslab.storage.table import filters_of_hdf5, parameters_put_before

Filters: TypeAlias = "Iterable[tuple[int, Sequence[int]]]"  # the number and the parameters of each filter
SZIP_METHODS = {h5z.SZIP_EC_OPTION_MASK: "ec", h5z.SZIP_NN_OPTION_MASK: "nn"}
LEVELS = range(10)


def filters_in(raw: h5py.Dataset) -> list[tuple[int, tuple[int, ...]]]:
    """The filters of an array that h5py has open. Codecs that can be installed are then there to be used."""
    plist = raw.id.get_create_plist()
    described = [plist.get_filter(number) for number in range(plist.get_nfilters())]
    for number, *_ in described:
        has_codec(number)
    return [(number, values) for number, _, values, _ in described]


def codec_options(filters: Filters) -> dict[str, Any]:
    """The options with which h5py's `create_dataset` gives an array these filters.

    Contradictory parameters, as in a damaged file, are left out.
    """
    chosen: dict[str, Any] = {}
    for number, values in filters:
        if number == h5z.FILTER_SHUFFLE:
            chosen["shuffle"] = True
        elif number == h5z.FILTER_FLETCHER32:
            chosen["fletcher32"] = True
        elif number == h5z.FILTER_SCALEOFFSET:
            chosen["scaleoffset"] = values[1] if len(values) > 1 else None
        elif "compression" not in chosen and (_h5py_name(number) or number not in LEVELS):
            chosen["compression"], chosen["compression_opts"] = _compression(number, tuple(values))
    return {name: value for name, value in chosen.items() if value is not None}


def _compression(number: int, values: tuple[int, ...]) -> tuple[str | int | None, Any]:
    name = _h5py_name(number)
    if number == h5z.FILTER_DEFLATE:
        return name, values[0] if values and values[0] in LEVELS else None
    if number == h5z.FILTER_LZF:
        return name, None
    if number == h5z.FILTER_SZIP:
        mask, pixel_count = (*values, 0, 0)[:2]
        methods = [method for bit, method in SZIP_METHODS.items() if mask & bit]
        is_good = len(methods) == 1 and pixel_count in range(2, 33, 2)
        return name, (methods[0], pixel_count) if is_good else None
    return number, values[parameters_put_before(number) :] or None


def _h5py_name(number: int) -> str | None:
    return next((row.h5py for row in filters_of_hdf5(number)), None)

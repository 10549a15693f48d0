"""Keyword arguments of xarray's other engines, for programs that change only `engine=`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyperslab.archive.far.store_options import OF_READING
from hyperslab.archive.tree.dimensions import Numbering
from hyperslab.errors import UsageError
from hyperslab.meant import meant

# Keyword arguments of xarray's decoding.
DECODERS = (
    *("mask_and_scale", "decode_times", "concat_characters", "decode_coords", "use_cftime", "decode_timedelta"),
    *("decode_cf",),
)
# How other engines open, lock, cache and close files, or which format they expect. They do not change what we read.
WITHOUT_MEANING = frozenset((
    "format", "lock", "autoclose", "clobber", "diskless", "persist", "invalid_netcdf", "mmap", "consolidated",
    "zarr_format", "zarr_version", "chunk_store", "synchronizer", "overwrite_encoded_chunks", "cache_members",
    "use_zarr_fill_value_as_mask", "stacklevel", "auto_complex",
))  # fmt: skip
# Options that only one value is accepted for, and what to do instead of another value.
ONLY = {
    "mode": ("r", "leave it out: hyperslab only reads files"),
    "decode_vlen_strings": (True, "leave it out: text is always decoded, so encode it again where you need bytes"),
    "driver": (None, "leave it out: give the URL, and storage_options= for credentials"),
    "driver_kwds": (None, "leave it out: give the URL, and storage_options= for credentials"),
}
# What our own engine takes.
OWN = (
    *("drop_variables", "group", "concat", "version", "allowed", "open_options"),
    *("storage_options", "open_kwargs", "phony_dims"),
)
PHONY_DIMS = ("sort", "access")


def split(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], Numbering]:
    """Sort keyword arguments by who uses them.

    Parameters
    ----------
    given : Mapping[str, Any]
        The keyword arguments of `open_dataset` that are not parameters of our own engine.

    Returns
    -------
    tuple[dict[str, Any], dict[str, Any], Numbering]
        The keyword arguments for `hyperslab.open`; those for xarray's decoding; and how to number dimensions without a
        name, `"sort"` or `"access"`.

    Raises
    ------
    UsageError
        The engine cannot follow the value of one of them.
    TypeError
        No engine knows one of them.
    """
    rest = {name: value for name, value in given.items() if name not in WITHOUT_MEANING}
    decoders = {name: rest.pop(name) for name in DECODERS if name in rest}
    numbering: Numbering = rest.pop("phony_dims", None) or "sort"
    if numbering not in PHONY_DIMS:
        raise UsageError(f"phony_dims={numbering!r}: give {' or '.join(map(repr, PHONY_DIMS))}")
    for name, (value, remedy) in ONLY.items():
        if rest.pop(name, value) not in (value, None):
            raise UsageError(f"{name}= is not for the engine hyperslab; {remedy}")
    of_opening = {name for name in rest.pop("open_kwargs", None) or {} if name not in OF_READING}
    if of_opening:
        said = "give storage_options= for credentials and endpoints"
        raise UsageError(f"open_kwargs that are not for the engine hyperslab: {', '.join(sorted(of_opening))}; {said}")
    options = {}
    if rest.get("storage_options"):
        options["storage_options"] = dict(rest["storage_options"])
    rest.pop("storage_options", None)
    if rest:
        near = meant(min(rest), (*OWN, *DECODERS, *ONLY))
        said = f"the engine hyperslab has no argument {', '.join(rest)}{near}"
        raise TypeError(f"{said}; docs/xarray.md lists what it takes")
    return options, decoders, numbering

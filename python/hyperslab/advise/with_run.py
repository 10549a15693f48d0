"""The second column of a ranking: what a layout takes under `hyperslab run`, if that serves the calls.

A row is a file. Its first column is the library that the program has today, so that whoever follows an advice needs
nothing more than what is installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hyperslab.advise.candidate import Candidate
from hyperslab.advise.demand import Demand
from hyperslab.advise.tips import WITHOUT_LIBHDF5, WORTH_COUNTED
from hyperslab.storage.chain import PLAIN
from hyperslab.trace.byte_ranges import LAYOUT
from hyperslab.trace.served import worth_serving
from hyperslab.trace.table import TracedArray

SERVED = ("hdf5", "netcdf4")


def plain_reader(format_name: str, demands: Sequence[Demand], libraries: Sequence[str], *, is_far: bool) -> str | None:
    """The library by which the program reads a new file without us, by the cost model's name; None if nothing can."""
    usual = "zarr" if format_name.startswith("zarr") else "hdf5"
    is_ours = is_far or {demand.library for demand in demands} == {"hyperslab"} or usual not in libraries
    if is_ours and format_name in SERVED:
        usual = "hyperslab"
    return usual if usual in libraries else None


def without_run(one: Candidate, today: Candidate, reader: str) -> Candidate:
    """The same file, read by the library that the program has, which opens it as it opens today's."""
    if one.reader == reader or one.format not in SERVED:
        return one
    if reader != "hdf5":
        return replace(one, reader=reader).with_cache((None, None))
    by_netcdf = today.by_netcdf or (one.format == "netcdf4" and today.format not in SERVED)
    made = replace(one, reader="hdf5", by_netcdf=by_netcdf, caller=today.caller)
    return made.with_cache(today.chunk_cache)


def under_run(one: Candidate, demands: Sequence[Demand]) -> Candidate | None:
    """The same file under `hyperslab run`; None if that would leave the calls to libhdf5, or is what reads it now."""
    if one.reader != "hdf5" or one.format not in SERVED or not may_run(demands):
        return None
    if not all(_is_served(one, demand) for demand in demands):
        return None
    return replace(one, reader="hyperslab").with_cache((None, None))


def may_run(demands: Sequence[Demand]) -> bool:
    """Whether the programs only read, by a libhdf5 into which `hyperslab run` can be loaded."""
    seen = [demand.summary.array for demand in demands if demand.summary is not None]
    if any(one.layout == LAYOUT or not one.is_local for one in seen):
        return False
    return not any(
        demand.writes or demand.library not in (None, "hdf5") or demand.caller in WITHOUT_LIBHDF5 for demand in demands
    )


def _is_served(one: Candidate, demand: Demand) -> bool:
    """Whether `hyperslab run` would serve what takes the time of these calls, in this layout."""
    if one.is_today and demand.summary is not None:
        return demand.served_share is None or demand.served_share >= WORTH_COUNTED
    return share_served(one, demand) >= WORTH_COUNTED


def share_served(one: Candidate, demand: Demand) -> float:
    """The share of the selected elements that reads select which `hyperslab run` serves, in a layout."""
    is_whole, chunk = one.layout.contiguous, one.layout.chunk_shape
    if one.order is not None:
        chunk = tuple(chunk[one.order.index(axis)] for axis in range(len(chunk)))
    array = TracedArray(
        demand.caller or "h5py", "", "", demand.shape, None if is_whole else chunk, None, "", demand.element_nbytes,
        () if one.encoding == PLAIN else ("any codec",), "contiguous" if is_whole else "chunked",
        one.library(demand.shape).chunk_cache_nbytes if one.reader == "hdf5" else None,  # type: ignore[union-attr]
    )  # fmt: skip
    counts = demand.sizes
    touched = np.zeros(len(counts), np.int64) if is_whole else demand.touches(chunk).astype(np.int64)
    served = worth_serving(array, counts, counts * demand.element_nbytes, touched)
    return float(counts[served].sum()) / max(1, int(counts.sum()))

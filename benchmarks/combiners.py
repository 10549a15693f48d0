"""The peers that combine files along a dimension. Timed: from the paths to one combined array, without reading it.

The results are compared by the stored bytes of the array `x`, whose chunks are not compressed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from comparison import Side

import hyperslab


def by_hyperslab(paths: Sequence[Path]) -> Side:
    """Open all files as one. Coordinates are compared and their order is checked."""
    return Side(lambda: hyperslab.open(paths, concat="time"), lambda group: group["x"].stored_nbytes)


def by_virtualizarr(paths: Sequence[Path]) -> Side:
    """One virtual dataset in the given order, without comparing variables that have no time axis."""
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore
    from virtualizarr import open_virtual_mfdataset
    from virtualizarr.parsers import HDFParser

    registry = ObjectStoreRegistry({"file://": LocalStore()})
    urls = [f"file://{path}" for path in paths]
    how = {"combine": "nested", "concat_dim": "time", "data_vars": "minimal", "coords": "minimal"}

    def run() -> Any:
        return open_virtual_mfdataset(
            urls, registry, HDFParser(), loadable_variables=[], compat="override", combine_attrs="override", **how
        )

    return Side(run, lambda made: int(made["x"].variable.data.manifest._lengths.sum()))


def by_kerchunk(paths: Sequence[Path]) -> Side:
    """References of each file, combined. Coordinates are read to put the files in order."""
    from kerchunk.combine import MultiZarrToZarr
    from kerchunk.hdf import SingleHdf5ToZarr

    def run() -> dict[str, Any]:
        single = [SingleHdf5ToZarr(str(path), inline_threshold=0).translate() for path in paths]
        return MultiZarrToZarr(single, concat_dims=["time"], identical_dims=["lat", "lon"]).translate()["refs"]

    def stored_nbytes(refs: dict[str, Any]) -> int:
        json.dumps(refs)  # references, not data
        return sum(part[2] for key, part in refs.items() if key.startswith("x/") and isinstance(part, list))

    return Side(run, stored_nbytes)

"""References written by one tool and read by another: kerchunk, hyperslab, zarr-python, xarray and VirtualiZarr.

    python examples/references.py

The script writes a NetCDF file and passes its references from each writer to each reader. All of them must read what
netCDF4 reads. It names the libraries that are not installed and leaves them out.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray

import hyperslab

VARIABLE = "sst"


def ocean(path: Path) -> Any:
    """Write a file as models do: packed, compressed, one chunk per month. Returns its elements."""
    values = np.where(np.arange(12 * 30 * 40) % 11, np.arange(12 * 30 * 40) / 100, np.nan).reshape(12, 30, 40)
    time = np.array("2020-01", "M8[M]").astype("M8[ns]") + np.arange(12) * np.timedelta64(30, "D")
    made = xarray.Dataset({VARIABLE: (("time", "y", "x"), values, {"units": "K"})}, {"time": time})
    packed = {"dtype": "i4", "scale_factor": 0.01, "_FillValue": -1, "zlib": True, "chunksizes": (1, 30, 40)}
    made.to_netcdf(path, engine="netcdf4", encoding={VARIABLE: packed})
    with xarray.open_dataset(path) as opened:
        return opened.load()


def by_hyperslab(source: Path, target: Path) -> None:
    """Index and save; the file's extension chooses the format."""
    hyperslab.index(source).save(target)


def by_kerchunk(source: Path, target: Path) -> None:
    """kerchunk's own index."""
    from kerchunk.df import refs_to_dataframe
    from kerchunk.hdf import SingleHdf5ToZarr

    refs = SingleHdf5ToZarr(str(source)).translate()
    if target.suffix == ".json":
        target.write_text(json.dumps(refs))
    else:
        refs_to_dataframe(refs, str(target))


def by_virtualizarr(source: Path, target: Path) -> None:
    """VirtualiZarr's virtual arrays, saved as kerchunk's references."""
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore
    from virtualizarr import open_virtual_dataset
    from virtualizarr.parsers import HDFParser

    registry = ObjectStoreRegistry({"file://": LocalStore()})
    opened = open_virtual_dataset(f"file://{source}", registry=registry, parser=HDFParser())
    opened.vz.to_kerchunk(str(target), format=target.suffix[1:])


def with_hyperslab(refs: Path) -> Any:
    """xarray over hyperslab."""
    return xarray.open_dataset(refs, engine="hyperslab")


def with_zarr(refs: Path) -> Any:
    """xarray over zarr-python over fsspec."""
    import fsspec
    import zarr

    options: dict[str, Any] = {"remote_protocol": "file", "asynchronous": True, "fo": str(refs)}
    options["remote_options"] = {"asynchronous": True}
    if refs.suffix == ".parquet":
        import pandas
        from fsspec.implementations.reference import LazyReferenceMapper

        pandas.set_option("future.infer_string", False)  # fsspec mistakes NaN, pandas 3's missing text, for a path
        options["fo"] = LazyReferenceMapper(str(refs), fs=fsspec.filesystem("file"), engine="pyarrow")
    store = zarr.storage.FsspecStore(fsspec.filesystem("reference", **options), read_only=True, path="")
    return xarray.open_dataset(store, engine="zarr", consolidated=False, zarr_format=2)


def with_kerchunk(refs: Path) -> Any:
    """kerchunk's engine of xarray."""
    import kerchunk  # noqa: F401 -- fails if kerchunk is not installed

    return xarray.open_dataset(str(refs), engine="kerchunk")


WRITERS: dict[str, Callable[[Path, Path], None]] = {
    "hyperslab": by_hyperslab,
    "kerchunk": by_kerchunk,
    "VirtualiZarr": by_virtualizarr,
}
READERS: dict[str, Callable[[Path], Any]] = {
    "hyperslab": with_hyperslab,
    "zarr-python": with_zarr,
    "xarray's kerchunk engine": with_kerchunk,
}
FORMATS = {"json": list(READERS), "parquet": ["hyperslab", "zarr-python"], "hs": ["hyperslab"]}


def main() -> None:
    """Try every writer with every format and every reader."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "ocean.nc"
        expected = ocean(source)
        for writer, write in WRITERS.items():
            for suffix, readers in FORMATS.items():
                if suffix == "hs" and writer != "hyperslab":
                    continue
                refs = Path(scratch) / f"{writer}.{suffix}"
                try:
                    write(source, refs)
                except ImportError as error:
                    print(f"{writer} as .{suffix}: left out: {error}")
                    continue
                for reader in readers:
                    check(f"{writer}'s .{suffix} read by {reader}", lambda r=reader, p=refs: READERS[r](p), expected)
        again = Path(scratch) / "again.json"
        hyperslab.index(hyperslab.open(Path(scratch) / "hyperslab.hs")).save(again)  # references of references
        check("hyperslab's .hs, saved as .json, read by zarr-python", lambda: with_zarr(again), expected)


def check(what: str, read: Callable[[], Any], expected: Any) -> None:
    """Print that the elements are right, or fail."""
    try:
        opened = read()
    except ImportError as error:
        print(f"{what}: left out: {error}")
        return
    with opened:
        xarray.testing.assert_equal(opened.load(), expected)
    print(f"{what}: right")


if __name__ == "__main__":
    main()

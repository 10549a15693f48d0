"""Make the files that tests write references for, with h5py as the judge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np


def expressible(path: Path) -> None:
    """All that kerchunk can express: every codec that numcodecs has of HDF5, edge chunks, scalars, groups."""
    import hdf5plugin

    rng = np.random.default_rng(3)
    smooth = np.cumsum(rng.integers(-3, 4, (50, 70)), axis=1)
    with h5py.File(path, "w") as file:
        file.attrs["title"] = "made"
        file.attrs["numbers"] = np.arange(3, dtype="i2")
        file.attrs["none"] = np.nan
        group = file.create_group("codecs")
        kinds: dict[str, Any] = {
            "plain": {},
            "shuffled": {"shuffle": True, "compression": "gzip"},
            "summed": {"fletcher32": True, "compression": 4, "shuffle": True},
            "zstd": hdf5plugin.Zstd(),
            "blosc": hdf5plugin.Blosc(cname="zstd"),
            "bzip2": hdf5plugin.BZip2(),
        }
        for name, options in kinds.items():
            for dtype in ("<i4", ">f8", "u1"):
                data = smooth.astype(dtype)
                group.create_dataset(f"{name}_{dtype[1:]}", data=data, chunks=(20, 33), dtype=dtype, **options)
        file["contiguous"] = smooth.astype("f4")
        file["scalar"] = np.float64(4.5)
        file["text"] = np.array([b"one", b"three"] * 100, "S5")
        file["complex"] = (smooth[0] + 2j).astype("c16")
        file["truth"] = smooth[0] > 3
        unwritten = file.create_dataset("zeros_missing", (40, 40), "i4", chunks=(10, 10))
        unwritten[5:15, 5:15] = 7
        marked = file.create_dataset("fill_missing", (40, 40), "f4", chunks=(10, 10), fillvalue=-9)
        marked[5:15, 5:15] = 7
        marked.attrs["_FillValue"] = np.array([-9], "f4")
        file["time"] = np.arange(50)
        file["time"].make_scale("time")
        file["along"] = smooth.astype("i2")
        file["along"].dims[0].attach_scale(file["time"])
        file["small_words"] = np.array(["a", "bé", ""], dtype=h5py.string_dtype())


def inexpressible(path: Path) -> dict[str, str]:
    """What kerchunk cannot express, with a part of the reason for each array."""
    rng = np.random.default_rng(4)
    data = rng.integers(0, 99, (40, 50)).astype("i4")
    with h5py.File(path, "w") as file:
        file.create_dataset("lzf", data=data, chunks=(20, 20), compression="lzf")
        file.create_dataset("scaleoffset", data=data, chunks=(20, 20), scaleoffset=0)
        file.create_dataset("words", data=np.array(["a", "b"] * 99, object), dtype=h5py.string_dtype())
        filled = file.create_dataset("filled", (40, 50), "i4", chunks=(20, 25), fillvalue=5)
        filled[:20] = 1
        other = file.create_dataset("other_fill", (40, 50), "i4", chunks=(20, 25), fillvalue=5)
        other[:20] = 1
        other.attrs["_FillValue"] = np.int32(6)
        masked = file.create_dataset("masked", data=data, chunks=(20, 25), compression="gzip")
        masked.id.write_direct_chunk((0, 0), data[:20, :25].tobytes(), filter_mask=1)
        file["fine"] = data
        layout = h5py.VirtualLayout((40, 25), "i4")
        layout[:, :] = h5py.VirtualSource(file["fine"])[:, ::2]
        file.create_virtual_dataset("every_other", layout)
        summed = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        summed.set_chunk((10, 10))
        summed.set_fletcher32()
        summed.set_shuffle()
        space = h5py.h5s.create_simple((40, 50))
        h5py.h5d.create(file.id, b"summed_first", h5py.h5t.IEEE_F64LE, space, summed)
        file["summed_first"][...] = data
        kind = np.dtype({"names": ["a", "b"], "formats": ["i1", "f8"], "offsets": [0, 8], "itemsize": 16})
        file["gaps"] = np.zeros(200, kind)
    return {
        "lzf": "lzf", "scaleoffset": "scaleoffset", "words": "variable length", "filled": "not marked",
        "other_fill": "differs from CF", "masked": "filter masks", "every_other": "its part at", "gaps": "gaps",
        "summed_first": "not a whole number of elements",
    }  # fmt: skip


def arrays(file: h5py.File) -> Iterator[tuple[str, h5py.Dataset]]:
    """Every array of a file, by its path."""
    found: list[tuple[str, h5py.Dataset]] = []
    file.visititems(lambda name, node: found.append((name, node)) if isinstance(node, h5py.Dataset) else None)
    yield from found


def packed_netcdf(path: Path) -> None:
    """A netCDF-4 file with coordinates, units, missing values and packed numbers, by xarray."""
    import xarray

    values = np.where(np.arange(60) % 7, np.arange(60) / 10, np.nan).reshape(6, 10)
    time = np.array("2020-01-01", "M8[ns]") + np.arange(6) * np.timedelta64(1, "D")
    data = {"t": (("time", "x"), values, {"units": "K"}), "packed": (("time", "x"), values), "n": ("x", np.arange(10))}
    xarray.Dataset(data, {"time": time, "x": np.arange(10.0)}, {"title": "made"}).to_netcdf(
        path,
        engine="netcdf4",
        encoding={
            "t": {"chunksizes": (4, 4), "zlib": True},
            "packed": {"dtype": "i2", "scale_factor": 0.1, "_FillValue": -1, "chunksizes": (3, 10)},
        },
    )

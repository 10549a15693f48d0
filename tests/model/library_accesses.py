"""Run cases through a library in a process that strace watches. This module needs only the library and NumPy.

It reads a JSON list of cases from standard input, and writes the version of each to standard output. Of HDF5 files, a
copy named `.before` shows how they were before the accesses. Before each
access, the position of a marker file identifies it: `case * STEPS + step`. Step 0 is creating and opening, the accesses
count from 1, and closing comes last (for HDF5, first the array and then the file).
"""

import json
import os
import shutil
import sys
from pathlib import Path

STEPS = 1000


def slices(access):
    return tuple(slice(*axis) for axis in access["slices"])


def values(np, shape, dtype):
    return (np.arange(int(np.prod(shape, dtype=int))) % 100 + 1).reshape(shape).astype(dtype)


def access_all(np, held, case, mark, opened=None):
    """Make the accesses to the array in a list, where `opened` puts it again after it was closed."""
    dtype = np.dtype(case["dtype"])
    for step, access in enumerate(case["accesses"], start=1):
        if access.get("reopens"):
            mark(step)
            array = held[0] = None
            held[0] = opened()
        array = held[0]
        if access["operation"] == "append":
            rows = [access["rows"], *array.shape[1:]]
            new = values(np, rows, dtype)
            mark(step)
            first = array.shape[0]
            array.resize((first + rows[0], *rows[1:]))
            array[first:] = new
            continue
        selected = slices(access)
        shape = [len(range(*axis)) for axis in access["slices"]]
        new = values(np, shape, dtype)
        mark(step)
        if access["operation"] == "read":
            array[selected]
        else:
            array[selected] = new


CODECS = {
    None: {},
    "gzip": {"compression": "gzip", "compression_opts": 1},
    "lzf": {"compression": "lzf"},
    "shuffle": {"shuffle": True},
    "shuffle-gzip": {"compression": "gzip", "compression_opts": 1, "shuffle": True},
    "fletcher32": {"fletcher32": True},
}


def creation_list(h5py, case):
    """The times of filling and allocating, if the case gives them."""
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if case.get("fill_time"):
        made.set_fill_time(getattr(h5py.h5d, f"FILL_TIME_{case['fill_time'].upper()}"))
    if case.get("alloc_time"):
        made.set_alloc_time(getattr(h5py.h5d, f"ALLOC_TIME_{case['alloc_time'].upper()}"))
    return made


def hdf5(case, path, mark):
    import h5py
    import numpy as np

    options = {"maxshape": case["maxshape"]} if case.get("maxshape") else {}
    options.update(CODECS[case.get("codec")])
    shape, chunks = tuple(case["shape"]), tuple(case["chunks"]) if case["chunks"] else None
    names = {"rdcc_nbytes": "nbytes", "rdcc_nslots": "slots", "rdcc_w0": "w0"}
    library = {name: case[key] for name, key in names.items() if key in case}
    libver = {"libver": case["libver"]} if case.get("libver") else {}
    with h5py.File(path, "w", **libver) as file:
        if case.get("fill_time") or case.get("alloc_time"):
            options["dcpl"] = creation_list(h5py, case)
        array = file.create_dataset("x", shape=shape, chunks=chunks, dtype=case["dtype"], **options)
        for written in case["written"]:
            selected = slices(written)
            array[selected] = values(np, [len(range(*axis)) for axis in written["slices"]], case["dtype"])
    shutil.copyfile(path, f"{path}.before")
    writes = any(access["operation"] != "read" for access in case["accesses"])
    file = h5py.File(path, "r+" if writes else "r", **libver, **library)
    held = [file["x"]]
    access_all(np, held, case, mark, lambda: file["x"])
    mark(len(case["accesses"]) + 1)
    held.clear()
    mark(len(case["accesses"]) + 2)
    file.close()
    mark(0)
    return {"version": h5py.version.hdf5_version}


def compressed(name):
    def made(zarr, version):
        if version == 2:
            import numcodecs

            return {"zstd": numcodecs.Zstd, "gzip": numcodecs.GZip, "blosc": numcodecs.Blosc}[name]()
        return {"zstd": zarr.codecs.ZstdCodec, "gzip": zarr.codecs.GzipCodec, "blosc": zarr.codecs.BloscCodec}[name]()

    return made


COMPRESSORS = {None: lambda *_: None, **{name: compressed(name) for name in ("zstd", "gzip", "blosc")}}


def zarr(case, path, mark):
    import numpy as np
    import zarr as library

    options = {"shards": tuple(case["shards"])} if case.get("shards") else {}
    array = library.create_array(
        path,
        shape=tuple(case["shape"]),
        chunks=tuple(case["chunks"]),
        dtype=case["dtype"],
        zarr_format=case["format"],
        compressors=COMPRESSORS[case.get("compressor")](library, case["format"]),
        fill_value=0,
        **options,
    )
    for written in case["written"]:
        selected = slices(written)
        array[selected] = values(np, [len(range(*axis)) for axis in written["slices"]], case["dtype"])
    array = library.open_array(path, mode="r+")
    access_all(np, [array], case, mark)
    mark(len(case["accesses"]) + 1)
    return {"version": library.__version__}


def hyperslab(case, path, mark):
    import h5py
    import numpy as np

    import hyperslab as hs

    with h5py.File(path, "w") as file:
        options = {"compression": "gzip"} if case.get("compression") else {}
        shape, chunks = tuple(case["shape"]), tuple(case["chunks"])
        file.create_dataset("x", data=values(np, shape, case["dtype"]), chunks=chunks, **options)
    shutil.copyfile(path, f"{path}.before")
    array = hs.open(path, chunk_cache_nbytes=case["nbytes"])["x"]
    _ = array.shape, array.dtype, array.via  # these are looked up once
    for step, access in enumerate(case["accesses"], start=1):
        mark(step)
        array.read(hs.Hyperslab.from_slices(slices(access), case["shape"]))
    mark(len(case["accesses"]) + 1)
    return {}


def main(library, folder):
    marker = os.open(Path(folder, "marker"), os.O_RDWR | os.O_CREAT)
    found = []
    for number, case in enumerate(json.load(sys.stdin)):

        def mark(step, number=number):
            os.lseek(marker, number * STEPS + step, os.SEEK_SET)

        mark(0)
        found.append(globals()[library](case, str(Path(folder, str(number))), mark))
        mark(0)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

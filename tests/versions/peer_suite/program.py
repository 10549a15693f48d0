"""A program as users of versioned-hdf5 write it; `python program.py FILE ours` runs it with hyperslab."""

from __future__ import annotations

import sys
from typing import Any

import h5py
import numpy as np


def show_all(group: Any) -> None:
    found: list[tuple[str, Any]] = []
    group.visititems(lambda name, one: found.append((name, one)))
    for name, one in sorted(found, key=lambda each: each[0]):
        if isinstance(one, h5py.Group):
            print(name, "group")
        else:
            print(name, one.shape, one.dtype, one.compression, repr(one.fillvalue), one.attrs.get("units"))


def show(version: Any, found: Any) -> None:
    print(version, found.name, found.attrs["prev_version"], sorted(found.datasets()))
    words = [one.encode() if isinstance(one, str) else one for one in found["words"]]  # versioned-hdf5 mixes them
    few = found["few"]
    print(found["g/x"][...].tolist(), words, few[:, 1].tolist(), [int(length) for length in few.chunks])


def write(f: h5py.File) -> None:
    from versioned_hdf5 import VersionedHDF5File
    from versioned_hdf5.backend import DATA_VERSION, initialize
    from versioned_hdf5.versions import all_versions
    from versioned_hdf5.wrappers import DatasetWrapper, InMemoryGroup

    initialize(f)
    file = VersionedHDF5File(f)
    with file.stage_version("a") as group:
        group.attrs["by"] = "me"
        x = group.create_dataset("g/x", data=np.arange(20.0), chunks=(6,), compression="gzip", maxshape=(None,))
        x.attrs["units"] = "m"
        group["words"] = np.array(["one", "two", "é"], dtype=h5py.string_dtype())
        group.create_dataset("few", shape=(9, 9), dtype="i2", chunks=(4, 4), fillvalue=7)[2, 3:5] = 1
        group["pairs"] = np.zeros(3, [("n", "i4"), ("v", "f8")])
    with file.stage_version("b", timestamp=np.datetime64("2030-01-01T00:00")) as group:
        x = group["g"]["x"]
        x.resize(25, axis=0)
        x[[1, 3]] = -1
        x[20:] = x[:5]
        group["words"][1] = "changed"
        group["few"][[0, 8], 1::3] = np.arange(6).reshape(2, 3)
        group["g/new"] = [1, 2, 3]
        del group["pairs"]
        show_all(group)
        print(sorted(group), "g/x" in group, "pairs" in group, len(group["g/x"]), group["g/x"][-3:])
        print(isinstance(group, InMemoryGroup), isinstance(x, DatasetWrapper))
    for key in ("a", "b", 0, -1, np.datetime64("2029-01-01T00:00"), np.datetime64("2031-01-01T00:00")):
        show(key, file[key])
    print(sorted(all_versions(f)), file.current_version, file.data_version_identifier == DATA_VERSION)
    try:
        file["a"]["g/x"][0] = 1
    except ValueError as error:
        print("committed" in str(error))
    file.current_version = "a"
    with file.stage_version("c", timestamp=np.datetime64("2031-01-01T00:00")) as group:
        group["g/x"][...] = 3


def rewrite(f: h5py.File) -> None:
    from versioned_hdf5 import VersionedHDF5File, delete_version, delete_versions, modify_metadata

    delete_versions(f, ["a"])
    file = VersionedHDF5File(f)
    print(sorted(file), [file[name].attrs["prev_version"] for name in "bc"])
    modify_metadata(f, "g/x", chunks=(10,), dtype="f4", compression=None)
    show("b", file["b"])
    print(file["b"]["g/x"].dtype, file["b"]["g/x"].chunks == (10,), file["b"]["g/x"].compression)
    delete_version(file, "c")
    print(list(file), file.current_version)


def read(f: h5py.File) -> None:
    from versioned_hdf5 import VersionedHDF5File

    file = VersionedHDF5File(f)
    group = file["b"]
    print(isinstance(group, h5py.Group), isinstance(group["g/x"], h5py.Dataset), group["words"].asstr()[:].tolist())
    show_all(group)
    differ = {(key.raw[0].start, key.raw[0].stop): parts for key, parts in file.get_diff("g/x", "a", "b").items()}
    for place, parts in sorted(differ.items()):
        print(place, *(None if part is None else part.tolist() for part in parts))


def main(path: str, library: str) -> None:
    if library == "ours":
        import hyperslab.versions.compat

        sys.modules["versioned_hdf5"] = hyperslab.versions.compat
    for mode, step in (("w", write), ("r", read), ("r+", rewrite)):
        with h5py.File(path, mode) as f:
            step(f)


if __name__ == "__main__":
    main(*sys.argv[1:])

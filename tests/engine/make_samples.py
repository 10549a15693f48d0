"""Write small HDF5 files with every structure that h5py can make, for tests that damage files.

python make_samples.py DIRECTORY
"""

from __future__ import annotations

import sys
from pathlib import Path

import h5py
import numpy as np

LIBVERS = ("earliest", "v108", "v110", "v112", "latest")


def fill(file: h5py.File) -> None:
    """Groups, links, attributes, types, layouts, filters and indexes in one file."""
    numbers = np.arange(6000, dtype="i4").reshape(60, 100)
    file.create_dataset("contiguous", data=numbers)
    file.create_dataset("chunked", data=numbers, chunks=(7, 30), compression="gzip", shuffle=True, fletcher32=True)
    file.create_dataset("single", data=numbers, chunks=(60, 100), compression="lzf")
    file.create_dataset("one_unlimited", data=numbers, chunks=(4, 10), maxshape=(60, None))
    file.create_dataset("two_unlimited", data=numbers, chunks=(9, 9), maxshape=(None, None), scaleoffset=0)
    file.create_dataset("sparse", shape=(1000, 1000), dtype="f8", chunks=(10, 10), fillvalue=-1)[500, 500] = 1
    file.create_dataset("text", data=["hello", "", "wörld"], dtype=h5py.string_dtype())
    file.create_dataset("fixed_text", data=np.array([b"ab", b"cde"]))
    ragged = file.create_dataset("ragged", (3,), dtype=h5py.vlen_dtype("f4"))
    ragged[0] = [1, 2, 3]
    table = np.zeros(5, dtype=[("a", "<i2"), ("b", ">f8"), ("c", "S3"), ("d", "f4", (2, 2))])
    file.create_dataset("table", data=table)
    file.create_dataset("flags", data=np.array([True, False]))
    file.create_dataset("scalar", data=3.5)
    file["null"] = h5py.Empty("f4")
    many = file.create_group("many", track_order=True)
    for k in range(40):
        many.create_group(f"group_{k}").attrs["index"] = k
        many.attrs[f"attribute_{k}"] = "x" * k
    file["soft"] = h5py.SoftLink("/many/group_3")
    file["external"] = h5py.ExternalLink("elsewhere.h5", "/x")
    file["hard"] = file["contiguous"]
    file["reference"] = file["many"].ref


def main() -> None:
    """One file for each generation of the format."""
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for libver in LIBVERS:
        with h5py.File(directory / f"{libver}.h5", "w", libver=(libver, "latest")) as file:
            fill(file)
    with h5py.File(directory / "user_block.h5", "w", userblock_size=512) as file:
        fill(file)


if __name__ == "__main__":
    main()

"""Makes `text-1.3.14.h5`, with the versioned-hdf5 that wrote equal chunks of text several times.

python3.11 -m venv old
old/bin/pip install "numpy<1.25" "h5py==3.8.0" "ndindex" "versioned-hdf5==1.3.14"
old/bin/python make_file.py text-1.3.14.h5
"""

import sys

import h5py
import numpy as np
from versioned_hdf5 import VersionedHDF5File

with h5py.File(sys.argv[1], "w") as file:
    versions = VersionedHDF5File(file)
    with versions.stage_version("a") as group:
        words = np.array([f"row {number % 3}" for number in range(9)], object)
        group.create_dataset("text", data=words, dtype=h5py.string_dtype(), chunks=(3,), maxshape=(None,))
        group.create_dataset("numbers", data=np.arange(9), chunks=(3,), maxshape=(None,))
    for number, name in enumerate("bcd"):
        with versions.stage_version(name) as group:
            group["text"][0] = f"first {number}"
            group["text"][8] = f"last {number % 2}"
            group["numbers"][0] = -number
    with versions.stage_version("e") as group:
        group["text"][:3] = np.array(["row 0", "row 1", "row 2"], object)  # as `a` has them: stored again
        group["text"][8] = "row 2"

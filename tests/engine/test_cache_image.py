"""Files closed with an image of HDF5's metadata cache, as h5py's own HDF5 writes them."""

from __future__ import annotations

import ctypes
from pathlib import Path

import h5py
import numpy as np
import pytest

import hyperslab as hs
from hyperslab.errors import DamagedFile


class ImageConfiguration(ctypes.Structure):
    """`H5AC_cache_image_config_t`, version 1."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("generate_image", ctypes.c_bool),
        ("save_resize_status", ctypes.c_bool),
        ("entry_ageout", ctypes.c_int),
    )


def library() -> ctypes.CDLL:
    """The HDF5 library that h5py has loaded."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        pytest.skip("no list of loaded libraries")
    return ctypes.CDLL(
        next(line.split()[-1] for line in lines if "h5py" in line and "libhdf5" in line and "_hl" not in line)
    )


def test_metadata_of_an_image_count(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file.create_dataset("first", data=np.arange(100), chunks=(10,), maxshape=(None,), compression="gzip")
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
    configuration = ImageConfiguration(1, True, False, -1)
    set_image = library().H5Pset_mdc_image_config
    set_image.argtypes = (ctypes.c_int64, ctypes.c_void_p)
    assert set_image(access.id, ctypes.byref(configuration)) >= 0
    with h5py.File(h5py.h5f.open(str(path).encode(), h5py.h5f.ACC_RDWR, fapl=access)) as file:
        file["group/second"] = np.arange(50.0)
        file["texts"] = ["one", "two"] * 20
        file["first"].resize((200,))
        file["first"][100:] = 7
        for number in range(40):
            file.attrs[f"a{number}"] = number
        expected = {name: file[name][...] for name in ("first", "group/second")}
        texts, attributes = file["texts"].asstr()[...].tolist(), dict(file.attrs)
    image = path.read_bytes().index(b"MDCI")
    assert b"group" in path.read_bytes()[image:]  # the new metadata are in the image
    assert b"second" not in path.read_bytes()[:image]  # and nowhere else
    root = hs.open(path)  # HDF5 2.0 itself does not read this file again: "non-parent entry has children"
    for name, values in expected.items():
        np.testing.assert_array_equal(root[name][...], values)
    assert root["texts"][...].tolist() == texts
    assert dict(root.attrs) == attributes
    path.write_bytes(path.read_bytes().replace(b"MDCI", b"MDCX"))
    with pytest.raises(DamagedFile, match="cache image"):
        hs.open(path)

"""A far file converts like a local one, as h5py and zarr-python judge."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
import servers

import hyperslab as hs


def test_a_file_over_http_becomes_hdf5_and_zarr(server: servers.Nginx, root: Path, tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    wishes = {"chunks": {"deflated": [64, 16, 16]}, "codec": {"deflated": "deflate-4+shuffle", "plain": "none"}}
    hs.convert(f"{server.url}/ocean.h5", tmp_path / "near.h5", verify="library", **wishes)
    hs.convert(f"{server.url}/ocean.h5", tmp_path / "near.zarr", chunks="16,32,64", codec="zstd-1")
    group = zarr.open_group(tmp_path / "near.zarr", mode="r")
    with h5py.File(root / "ocean.h5") as before, h5py.File(tmp_path / "near.h5") as after:
        for name in ("deflated", "plain", "whole", "group/deep"):
            np.testing.assert_array_equal(after[name], before[name])
            np.testing.assert_array_equal(group[name][...], before[name])
        assert after["deflated"].chunks == (64, 16, 16)
        assert list(after["names"][...]) == list(before["names"][...])
        assert list(group["names"][...]) == [one.decode() for one in before["names"][...]]
    assert not list(tmp_path.glob(".*"))

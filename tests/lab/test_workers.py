"""Worker processes: what they inherit from the process that starts them."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hyperslab.lab.worker import LocalWorkers


@dataclass(frozen=True)
class Pack:
    """Write an array with Blosc by h5py, as the replay of a published study does."""

    path: Path

    def run(self, _: Any) -> str | None:
        """Return the folder of filters that this process has heard of."""
        import h5py
        import hdf5plugin

        with h5py.File(self.path, "w") as file:
            file.create_dataset("a", shape=(1024,), dtype="f4", **hdf5plugin.Blosc(cname="zstd"))
        return os.environ.get("HDF5_PLUGIN_PATH")


def test_netcdf4_in_the_parent_does_not_take_blosc_from_h5py_in_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netcdf4 = pytest.importorskip("netCDF4")
    pytest.importorskip("hdf5plugin")
    folder = str(Path(netcdf4.__path__[0]) / "plugins")  # which its wheels name when they are imported
    monkeypatch.setenv("HDF5_PLUGIN_PATH", folder)
    with closing(LocalWorkers(60)) as workers:
        assert workers.worker("hdf5").ask(Pack(tmp_path / "a.h5")) is None
    assert os.environ["HDF5_PLUGIN_PATH"] == folder, "this process keeps it, for netCDF4"


def test_a_folder_of_filters_that_the_user_names_is_inherited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("hdf5plugin")
    monkeypatch.setenv("HDF5_PLUGIN_PATH", str(tmp_path))
    with closing(LocalWorkers(60)) as workers:
        assert workers.worker("hdf5").ask(Pack(tmp_path / "a.h5")) == str(tmp_path)

"""Dimensions without a name are numbered through the whole file, as netCDF-C does, or as h5netcdf does if asked."""

from __future__ import annotations

from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr

Names = dict[str, tuple[str, ...]]


def by_netcdf4(path: Path) -> Names:
    found: Names = {}

    def walk(group: netCDF4.Group, prefix: str) -> None:
        found.update({f"{prefix}{name}": variable.dimensions for name, variable in group.variables.items()})
        for name, child in group.groups.items():
            walk(child, f"{prefix}{name}/")

    with netCDF4.Dataset(path) as file:
        walk(file, "/")
    return found


def ours(path: Path, **options: str) -> Names:
    groups = xr.backends.list_engines()["hyperslab"].open_groups_as_dict(path, **options)
    return {
        f"{group.rstrip('/')}/{name}": variable.dims
        for group, dataset in groups.items()
        for name, variable in dataset.variables.items()
    }


def nested(file: h5py.File) -> None:
    file["b/x"], file["b/c/y"] = np.zeros((3, 4)), np.zeros((4, 5, 4))
    file["a/z"], file["r"] = np.zeros(3), np.zeros((7, 3))


def named(file: h5py.File) -> None:
    """Some dimensions have names: axes of their lengths take these, where both may grow, or neither."""
    for name, length in (("t", 3), ("u", 4)):
        file[name] = np.arange(float(length))
        file[name].make_scale(name)
    file["x"], file["y"], file["g/z"] = np.zeros((3, 4)), np.zeros((3, 4)), np.zeros((3, 4))
    for axis, name in enumerate("tu"):
        file["x"].dims[axis].attach_scale(file[name])
    file["v"], file["w"] = np.zeros(3), np.zeros((3, 3))
    file.create_dataset("q", (3,), "f8", maxshape=(None,))


def two_scales(file: h5py.File) -> None:
    for name in ("t", "t2"):
        file[name] = np.arange(3.0)
        file[name].make_scale(name)
    file["x"] = np.zeros(3)
    for name in ("t", "t2"):
        file["x"].dims[0].attach_scale(file[name])


def as_made(file: h5py.File) -> None:
    file["z"], file["a"], file["g/q"], file["b/q"] = np.zeros(3), np.zeros(4), np.zeros(5), np.zeros(6)


@pytest.mark.parametrize("is_ordered", [False, True])
@pytest.mark.parametrize("make", [nested, named, two_scales, as_made])
def test_names_are_those_of_netcdf_c(tmp_path: Path, make, is_ordered: bool) -> None:
    with h5py.File(tmp_path / "a.h5", "w", track_order=is_ordered) as file:
        make(file)
    assert ours(tmp_path / "a.h5") == by_netcdf4(tmp_path / "a.h5")


def test_access_numbers_as_h5netcdf(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        nested(file)
    assert ours(tmp_path / "a.h5", phony_dims="access") == {
        "/r": ("phony_dim_0", "phony_dim_1"), "/a/z": ("phony_dim_2",), "/b/x": ("phony_dim_3", "phony_dim_4"),
        "/b/c/y": ("phony_dim_5", "phony_dim_7", "phony_dim_6"),
    }  # fmt: skip


@pytest.mark.parametrize("make", [nested, named, as_made])
@pytest.mark.parametrize("numbering", ["sort", "access"])
def test_groups_are_one_tree(tmp_path: Path, make, numbering: str) -> None:
    """Every group had a `phony_dim_0` of its own, so that xarray found their lengths to differ."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        make(file)
    tree = xr.open_datatree(tmp_path / "a.h5", engine="hyperslab", phony_dims=numbering)
    assert len(tree.groups) == len(set(tree.groups)) > 1


def test_one_group_has_the_names_that_it_has_in_the_tree(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        nested(file)
    alone = xr.open_dataset(tmp_path / "a.h5", engine="hyperslab", group="b/c")
    assert alone.y.dims == ("phony_dim_1", "phony_dim_2", "phony_dim_3")
    without = xr.open_dataset(tmp_path / "a.h5", engine="hyperslab", group="b", drop_variables="x")
    assert not without.sizes

"""Boolean masks as indices: the elements of an array in C order, or the indices of one axis, as in h5py and NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import hyperslab as hs
from hyperslab import h5

SHAPES: dict[str, tuple[int, ...]] = {
    "line": (60,), "plane": (12, 9), "box": (6, 7, 8), "four": (3, 4, 5, 6), "thin": (1, 50), "empty": (0, 4)
}  # fmt: skip
SHARES = (0.0, 0.002, 0.03, 0.2, 0.7, 1.0)  # of the elements that a mask picks: points, and all around them


def written(path: Path) -> Path:
    """Arrays of every shape: contiguous, in chunks, and encoded; and elements that need care."""
    rng = np.random.default_rng(5)
    with h5py.File(path, "w") as file:
        for name, shape in SHAPES.items():
            data = rng.integers(-9, 99, shape).astype(">i2")
            chunks = tuple(max(1, length // 2) for length in shape)
            file[f"{name}/plain"] = data
            if 0 not in shape:
                file.create_dataset(f"{name}/chunked", data=data, chunks=chunks)
                file.create_dataset(f"{name}/encoded", data=data, chunks=chunks, compression="gzip", shuffle=True)
        plane = SHAPES["plane"]
        file["plane/words"] = np.array([f"é{number}" for number in range(108)], object).reshape(plane)
        pairs = np.zeros(plane, "i4,f8")
        pairs["f0"] = np.arange(108).reshape(plane)
        file["plane/pairs"] = pairs
        file.create_dataset("plane/arrays", plane, np.dtype(("i4", (3,))))[...] = rng.integers(0, 9, (*plane, 3))
        layout = h5py.VirtualLayout(plane, "i2")
        layout[:6] = h5py.VirtualSource(file["plane/encoded"])[6:]
        layout[6:] = h5py.VirtualSource(file["plane/encoded"])[:6]
        file.create_virtual_dataset("plane/virtual", layout)
    return path


def pairs(file: h5py.File, *others: Any) -> Any:
    """Every array of a file as h5py opens it, and as others do."""
    for group in file:
        for name in file[group]:
            yield file[group][name], *(other[f"{group}/{name}"] for other in others)


@pytest.mark.parametrize("share", SHARES)
def test_a_mask_of_the_arrays_shape_picks_what_h5py_picks(tmp_path: Path, share: float) -> None:
    path, rng = written(tmp_path / "a.h5"), np.random.default_rng(int(1000 * share))
    given = hs.open(path.read_bytes())  # read as a remote file is
    with h5py.File(path) as file, h5.File(path) as same:
        for theirs, ours, remote, again in pairs(file, hs.open(path), given, same):
            mask = rng.random(theirs.shape) < share
            expected = np.asarray(theirs[...])[mask]
            if mask.any() and theirs.dtype.kind != "O" and theirs.dtype.subdtype is None:
                np.testing.assert_array_equal(theirs[mask], expected)  # the judge agrees with NumPy
            np.testing.assert_array_equal(again[mask], expected, err_msg=theirs.name)
            if theirs.dtype.kind == "O":
                expected = np.array([text.decode() for text in expected], object)
            for array in (ours, remote):
                assert array[mask].dtype == array.dtype.base
                np.testing.assert_array_equal(array[mask], expected, err_msg=theirs.name)
                np.testing.assert_array_equal(array[(mask,)], expected, err_msg=theirs.name)


def test_a_mask_reads_into_your_array(tmp_path: Path) -> None:
    array = hs.open(written(tmp_path / "a.h5"))["box/encoded"]
    whole, rng = array[...], np.random.default_rng(2)
    for share in SHARES:
        mask = rng.random(array.shape) < share
        out = np.empty(int(mask.sum()), "f8")
        assert array.read(mask, out=out, threads=1) is out
        np.testing.assert_array_equal(out, whole[mask])
    with pytest.raises(ValueError, match=r"out has shape \(3,\)"):
        array.read(mask, out=np.empty(3, "i2"))


def test_a_mask_of_one_axis_picks_indices_of_that_axis(tmp_path: Path) -> None:
    path = written(tmp_path / "a.h5")
    with h5py.File(path) as file, h5.File(path) as same:
        theirs, ours, again = file["box/encoded"], hs.open(path)["box/encoded"], same["box/encoded"]
        first, last = np.arange(6) % 2 == 0, np.arange(8) > 5
        np.testing.assert_array_equal(ours[first], theirs[first])
        np.testing.assert_array_equal(again[first], theirs[first])
        np.testing.assert_array_equal(ours[2, :, last], theirs[2, :, last])
        np.testing.assert_array_equal(again[2, :, last], theirs[2, :, last])
        np.testing.assert_array_equal(ours[first, :, last], theirs[...][np.ix_(first, np.ones(7, bool), last)])


@pytest.mark.parametrize("shape", [(12, 8), (9, 12), (12, 9, 1), (2, 2)])
def test_a_mask_of_another_shape_is_refused_with_both_shapes(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = written(tmp_path / "a.h5")
    mask = np.ones(shape, bool)
    array = hs.open(path)["plane/plain"]
    with pytest.raises(ValueError, match=r"the mask has the shape \(.*but the array has the shape \(12, 9\)"):
        array[mask]
    with pytest.raises(ValueError, match="the mask has the shape"):
        array.plan(mask)
    with h5.File(path) as same, pytest.raises(TypeError, match="Boolean indexing array has incompatible shape"):
        same["plane/plain"][mask]


def test_a_few_elements_touch_only_their_chunks(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=np.arange(10000).reshape(100, 100), chunks=(10, 10), compression="gzip")
    array = hs.open(tmp_path / "a.h5")["x"]
    mask = np.zeros((100, 100), bool)
    mask[3, 5] = mask[98, 99] = True
    assert array.plan(mask).chunk_count == 2
    assert array[mask].tolist() == [305, 9899]
    mask[:] = False
    mask[[0, 99]] = True  # two rows, far apart: what lies between them is not read
    assert array.plan(mask).chunk_count == 20
    np.testing.assert_array_equal(array[mask], array[...][mask])


@pytest.mark.parametrize("encoded", [{}, {"chunks": (10, 100), "compression": "gzip"}])
def test_many_elements_are_read_with_all_around_them(tmp_path: Path, encoded: dict[str, Any]) -> None:
    data = np.arange(300 * 200).reshape(300, 200)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=data, **encoded)
    array, mask = hs.open(tmp_path / "a.h5")["x"], np.zeros(data.shape, bool)
    mask[:50, 10:190] = mask[-50:, 10:190] = np.arange(180) % 3 > 0
    plan = array.plan(mask)
    assert plan.shape == (100, 120)  # the rows and columns that have one, not those between them
    np.testing.assert_array_equal(array[mask], data[mask])
    with h5.File(tmp_path / "a.h5") as same:
        np.testing.assert_array_equal(same["x"][mask], data[mask])


def test_masks_of_zarr_netcdf_and_collections(tmp_path: Path) -> None:
    zarr, netcdf = pytest.importorskip("zarr"), pytest.importorskip("netCDF4")
    data = np.arange(120.0).reshape(12, 10)
    zarr.open_group(tmp_path / "a.zarr", mode="w").create_array("x", data=data, chunks=(5, 4))
    for number in range(2):
        with netcdf.Dataset(tmp_path / f"{number}.nc", "w") as file:
            file.createDimension("t", 6)
            file.createDimension("y", 10)
            file.createVariable("x", "f8", ("t", "y"), zlib=True)[:] = data[6 * number : 6 * number + 6]
    together = hs.open([tmp_path / "0.nc", tmp_path / "1.nc"], concat="t", order="any")
    for array in (hs.open(tmp_path / "a.zarr")["x"], together["x"]):
        for share in SHARES:
            mask = np.random.default_rng(3).random(data.shape) < share
            np.testing.assert_array_equal(array[mask], data[mask])

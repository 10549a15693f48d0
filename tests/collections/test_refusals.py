"""Unsafe combinations are refused, with a message that names both files and the difference."""

import netCDF4
import numpy as np
import pytest
from made import SHAPE, by_hyperslab, write

import hyperslab as hs
from hyperslab.errors import NotCombinable, UsageError


@pytest.fixture
def two(tmp_path):
    return [write(tmp_path / f"{n}.nc", np.arange(n * 3, n * 3 + 3)) for n in range(2)]


def changed(path, change):
    with netCDF4.Dataset(path, "a") as file:
        file.set_auto_maskandscale(False)
        change(file)


def refused(paths, *words, **options):
    with pytest.raises(NotCombinable) as raised:
        hs.open(paths, **{"concat": "time", **options})
    for word in (*map(str, paths), *words):
        assert word in str(raised.value), raised.value


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [("units", "km", "'m' in the one and 'km'"), ("standard_name", "depth", "absent in the one and 'depth'"),
     ("cell_methods", "time: mean", "cell_methods"), ("flag_values", np.array([1, 2], "i4"), "flag_values")],
)  # fmt: skip
def test_attributes_that_say_what_numbers_mean(two, name, value, said):
    changed(two[1], lambda file: file["x"].setncattr(name, value))
    refused(two, "/x", f"the attribute {name}", said, 'leave_out=["x"]')
    assert "x" not in hs.open(two, concat="time", leave_out="x")


def test_other_attributes_may_differ(two):
    changed(two[1], lambda file: file["x"].setncattr("long_name", "another"))
    changed(two[0], lambda file: file["x"].setncattr("long_name", "first"))
    group = hs.open(two, concat="time")
    assert (group["x"].attrs["long_name"], group.attrs["history"]) == ("first", "0")


def test_arrays_without_the_dimension(two):
    changed(two[1], lambda file: file["lat"].__setitem__(2, 99))
    refused(two, "/lat is not the same", 'differing="first"')
    assert hs.open(two, concat="time", differing="first")["lat"][2] == 5


def test_shapes_and_dimensions(tmp_path, two):
    with netCDF4.Dataset(two[1], "a") as file:
        file.renameDimension("lat", "y")
    refused(two, "dimensions", "'lat'", "'y'", leave_out=["lat"])
    other = tmp_path / "wide.nc"
    with netCDF4.Dataset(other, "w") as file:
        for name, length in (("time", None), ("lat", SHAPE[0]), ("lon", SHAPE[1] + 1)):
            file.createDimension(name, length)
        file.createVariable("x", "f4", ("time", "lat", "lon"))[:] = np.zeros((3, SHAPE[0], SHAPE[1] + 1))
    refused([two[0], other], "the shapes are (3, 5, 7) and (3, 5, 8)", leave_out=["lat", "lon", "time"])


def test_arrays_in_some_files_only(two):
    changed(two[1], lambda file: file.createVariable("y", "f4", ("time",)))
    refused(two, "/y is in", "but not in", 'missing="drop"')
    assert "y" not in hs.open(two, concat="time", missing="drop")


def test_arrays_of_other_lengths(two):
    """Arrays that are shorter than others are padded with fill values, otherwise later files would be shifted."""
    for path in two:
        changed(path, lambda file: file.createVariable("y", "f4", ("time",), chunksizes=(1,)).__setitem__(0, 1))
    expected = []
    for path in two:
        with netCDF4.Dataset(path) as file:
            file.set_auto_mask(False)
            expected.append(file["y"][:])
    np.testing.assert_array_equal(hs.open(two, concat="time")["y"][:], np.concatenate(expected))


@pytest.mark.parametrize(
    ("units", "name", "said"),
    [("days since 2000-01-04", "noleap", "different dates"), ("months since 2000-01-01", "standard", "no fixed length"),
     ("days since the flood", "standard", "not understood"), ("days since 2000-02-31", "360_day", "no such date"),
     ("days since 1500-01-01", "proleptic_gregorian", "different dates")],
)  # fmt: skip
def test_times_that_cannot_be_joined(tmp_path, units, name, said):
    first = write(tmp_path / "0.nc", np.arange(3))
    second = write(tmp_path / "1.nc", np.arange(3), units=units, calendar=name)
    refused([first, second], "/time", repr(units), "calendars", said, order="any")


def test_times_that_are_masked(tmp_path):
    first = write(tmp_path / "0.nc", np.arange(3))
    second = write(tmp_path / "1.nc", np.array([0, 1, np.nan]), units="days since 2000-02-01")
    refused([first, second], "missing or not finite")


def test_texts_of_any_length_along_the_dimension(two):
    for path in two:
        changed(path, lambda file: file.createVariable("name", str, ("time",)).__setitem__(0, "a"))
    refused(two, "/name", "elements of variable length")


def test_packing_that_nobody_can_undo(two):
    changed(two[1], lambda file: file["x"].setncattr("scale_factor", "a tenth"))
    refused(two, "/x", "scale_factor")


def test_what_is_asked_for_must_be_there(tmp_path, two):
    with pytest.raises(NotCombinable, match=r"no array of .* has the dimension 'day'"):
        hs.open(two, concat="day")
    with pytest.raises(FileNotFoundError, match="no file matches"):
        hs.open(str(tmp_path / "z-*.nc"), concat="time")
    with pytest.raises(UsageError, match="list of files is empty"):
        hs.open([])
    with pytest.raises(UsageError, match="order='up' is not one of"):
        hs.open(two, concat="time", order="up")
    with pytest.raises(TypeError, match="no argument along"):
        hs.open(two, along="time")
    with pytest.raises(UsageError, match="not a root group"):
        hs.open([hs.open(two[0]), hs.Group(hs.open(two[0]).opened, 0, "/deep")])
    with pytest.raises(FileNotFoundError):
        hs.open([two[0], tmp_path / "gone.nc"], concat="time")
    (tmp_path / "text.nc").write_text("nothing")
    with pytest.raises(hs.errors.Unsupported, match=r"text\.nc"):
        hs.open([two[0], tmp_path / "text.nc"], concat="time")


def test_one_file_is_a_collection_too(two):
    np.testing.assert_array_equal(by_hyperslab(two[:1]).x, hs.open(two[0])["x"][:])

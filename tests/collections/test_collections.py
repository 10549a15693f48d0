"""Collections equal what xarray returns for the same files, loaded and decoded one by one."""

import calendar
import json
import pickle
from pathlib import Path

import dask
import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
from dask.base import tokenize
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made import SHAPE, by_hyperslab, by_xarray, check, write

import hyperslab as hs
from draws import few
from hyperslab.archive.collections.combining import Combination
from hyperslab.errors import FileChanged, NotCombinable, Refused


def test_months_and_leap_years(tmp_path):
    paths, start = [], 0
    for year in (2019, 2020):
        for month in range(1, 13):
            count = calendar.monthrange(year, month)[1]
            encoding = {"chunksizes": (10, *SHAPE), "zlib": True}
            path = write(tmp_path / f"x-{year}-{month}.nc", np.arange(start, start + count), encoding=encoding)
            paths.append(path)
            start += count
    whole = check(paths)
    assert whole.sizes["time"] == 365 + 366
    by_pattern = by_hyperslab(str(tmp_path / "x-*.nc"))  # x-2019-10 comes after x-2019-9
    xr.testing.assert_identical(by_pattern, whole)


CODECS = [
    {},
    {"zlib": True, "shuffle": False, "chunksizes": (1, 5, 7)},
    {"zlib": True, "complevel": 1, "fletcher32": True, "chunksizes": (4, 2, 7)},
    {"compression": "zstd", "chunksizes": (3, 5, 3)},
    {"contiguous": False, "chunksizes": (2, 3, 3)},
]


def test_codecs_chunks_and_formats_may_differ(tmp_path):
    paths = [
        write(tmp_path / f"x{n}.nc", np.arange(n * 4, n * 4 + 4), encoding=encoding)
        for n, encoding in enumerate(CODECS)
    ]
    for n, file_format in enumerate(("NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA", "NETCDF4_CLASSIC"), len(paths)):
        paths.append(write(tmp_path / f"x{n}.nc", np.arange(n * 4, n * 4 + 3), file_format=file_format))
    check(paths)


# Packing attributes of x, with its dtype.
PACKINGS = {
    "float": ("f4", {}, None),
    "double": ("f8", {}, None),
    "masked float": ("f4", {"missing_value": np.float32(7)}, -9.0),
    "masked double": ("f8", {}, -9.0),
    "NaN": ("f4", {}, np.nan),
    "doubly masked": ("f4", {"missing_value": np.float64(7)}, np.float32(7)),
    "short": ("i2", {"scale_factor": 0.01, "add_offset": 20.0}, -9),
    "other scale": ("i2", {"scale_factor": 0.02, "add_offset": 20.0}, -9),
    "other mask": ("i2", {"scale_factor": 0.01, "add_offset": 20.0, "missing_value": np.int16(7)}, 7),
    "single": ("i2", {"scale_factor": np.float32(0.1), "add_offset": np.float32(3)}, -9),
    "single, wide": ("i4", {"scale_factor": np.float32(0.1), "add_offset": np.float32(3)}, -9),
    "single scale": ("i4", {"scale_factor": np.float32(0.1)}, -9),
    "scale alone": ("i1", {"scale_factor": 0.1}, None),
    "offset alone": ("u1", {"add_offset": np.float32(0.3)}, None),
    "mixed": ("i2", {"scale_factor": np.float32(0.1), "add_offset": 3.7}, -9),
    "scaled float": ("f4", {"scale_factor": 1.7}, np.nan),
    "scaled, masked float": ("f4", {"scale_factor": np.float32(1.7), "add_offset": np.float32(0.1)}, -9.0),
    "unsigned": ("i1", {"_Unsigned": "true", "scale_factor": 0.5}, -9),
    "signed": ("u1", {"_Unsigned": "false", "scale_factor": 0.5}, 247),
    "long": ("i8", {"scale_factor": 0.1}, -9),
    "masked short": ("i2", {}, -9),
    "masked long": ("i4", {}, -9),
    "masked unsigned": ("i2", {"_Unsigned": "true"}, -9),
    "big-endian": (">i2", {"scale_factor": 0.01, "add_offset": 20.0}, -9),
    "integers": ("i4", {}, None),
    "bytes": ("u1", {}, None),
}


def packed(tmp_path, names):
    paths = []
    for n, name in enumerate(names):
        dtype, attrs, fill = PACKINGS[name]
        path = tmp_path / f"{n}-{len(name)}.nc"
        paths.append(write(path, np.arange(n * 3, n * 3 + 3), dtype=dtype, attrs=attrs, fill=fill))
    return paths


@pytest.mark.filterwarnings("ignore:.*multiple fill values.*")
@pytest.mark.parametrize(
    ("first", "other"),
    [
        (first, other)
        for row, first in enumerate(["float", "short", "masked long", "integers"])
        for column, other in enumerate(PACKINGS)
        if (row + column) % 2 == 0 or few(100) == 100  # each packing with two of the four
    ],
)
def test_files_packed_differently_are_unpacked_as_xarray_does(tmp_path, first, other):
    check(packed(tmp_path, [first, other, first]))


@pytest.mark.filterwarnings("ignore:.*multiple fill values.*")
@settings(max_examples=few(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(list(PACKINGS)), min_size=2, max_size=4))
def test_any_packings(tmp_path_factory, names):
    check(packed(tmp_path_factory.mktemp("packed"), names))


def test_files_packed_alike_stay_packed(tmp_path):
    group = hs.open(packed(tmp_path, ["short", "big-endian", "short"]), concat="time")
    assert group["x"].dtype == np.dtype("i2")
    assert group["x"].attrs["scale_factor"] == 0.01


def test_attributes_of_packed_numbers_go_with_the_packing(tmp_path):
    paths = packed(tmp_path, ["short", "other scale"])
    with netCDF4.Dataset(paths[0], "a") as file:
        file["x"].valid_max = np.int16(90)
    assert dict(hs.open(paths, concat="time")["x"].attrs) == {"units": "m"}


def test_chunks_that_were_never_written(tmp_path):
    for n, (fill, packing) in enumerate(((-9, 0.1), (7, 0.2), (0, 0.3))):
        path = write(
            tmp_path / f"{n}.nc", np.arange(n * 3, n * 3 + 3), dtype="i2", fill=fill, data=np.zeros((3, *SHAPE))
        )
        with netCDF4.Dataset(path, "a") as file:
            y = file.createVariable("y", "i2", ("time", "lat"), fill_value=fill, chunksizes=(1, 5))
            y.scale_factor = packing
            y.set_auto_maskandscale(False)
            y[2] = np.arange(5) * 2  # the chunks of the two days before were never written
        with h5py.File(path, "a") as file:
            unwritten = file.create_dataset("z", (3,), "i2", chunks=(1,), maxshape=(None,), fillvalue=n + 40)
            unwritten.dims[0].attach_scale(file["time"])
            unwritten[0] = 5
            unwritten.attrs["scale_factor"] = packing
    check([tmp_path / f"{n}.nc" for n in range(3)])


TIMES = {
    "days": ("days since 2000-01-01", "f8", 1),
    "later days": ("days since 2000-01-05", "f8", 1),
    "hours": ("hours since 2000-01-01", "i4", 24),
    "seconds": ("seconds since 1990-06-01 12:30:00", "i8", 86400),
    "with a zone": ("minutes since 2000-01-01 00:00:00 +01:00", "f8", 1440),
    "single": ("days since 1999-12-30 06:00", "f4", 1),
}


@pytest.mark.parametrize("name", ["standard", "proleptic_gregorian", "noleap", "360_day", "all_leap", "julian"])
@pytest.mark.parametrize("other", TIMES)
def test_times_are_made_one(tmp_path, name, other):
    paths = []
    for n, key in enumerate(("days", other, "hours")):
        units, dtype, per_day = TIMES[key]
        numbers = (np.arange(4) * 0.25 + n * 10) * per_day if key != "seconds" else np.arange(4) + 86400 * 4000
        paths.append(write(tmp_path / f"{n}.nc", numbers, units=units, calendar=name, time_dtype=dtype))
    ours = xr.open_dataset(hs.open(paths, concat="time", order="any"), engine="hyperslab").load()
    xr.testing.assert_identical(ours, by_xarray(paths))


def test_calendars_that_have_the_same_dates_are_joined(tmp_path):
    days = np.arange(3)
    units = "days since 2001-01-01"
    paths = [
        write(tmp_path / "0.nc", days, calendar="standard"),
        write(tmp_path / "1.nc", days, calendar="proleptic_gregorian", units=units),
        write(tmp_path / "2.nc", days + 500, calendar="gregorian", units=units),
    ]
    ours = by_hyperslab(paths)
    np.testing.assert_array_equal(ours.time, by_xarray(paths).time)


def test_bounds_follow_their_times(tmp_path):
    paths = []
    for n, (units, unit) in enumerate((("days since 2000-01-01", 1), ("hours since 2000-01-03 12:00", 24))):
        path = write(tmp_path / f"{n}.nc", np.arange(2) * unit, units=units)
        with netCDF4.Dataset(path, "a") as file:
            file.createDimension("edge", 2)
            file["time"].bounds = "time_bnds"
            bounds = file.createVariable("time_bnds", "f8", ("time", "edge"))
            bounds[:] = (np.arange(2)[:, None] + np.array([-0.5, 0.5])) * unit
        paths.append(path)
    check(paths)


def test_merge_of_files_with_other_arrays(tmp_path):
    first = write(tmp_path / "x.nc", np.arange(3))
    with xr.open_dataset(first, engine="netcdf4") as opened:
        whole = opened.load()
    other = tmp_path / "y.nc"
    whole.rename(x="y").to_netcdf(other)
    merged = xr.open_dataset(hs.open([first, other]), engine="hyperslab").load()
    np.testing.assert_array_equal(merged.y, whole.x)
    np.testing.assert_array_equal(merged.x, whole.x)


def test_collections_of_collections(tmp_path):
    for name in "xy":
        for n in range(2):
            with xr.open_dataset(
                write(tmp_path / f"{name}-{n}.nc", np.arange(n * 3, n * 3 + 3)), engine="netcdf4"
            ) as made:
                renamed = made.load().rename(x=name)
            renamed.to_netcdf(tmp_path / f"{name}-{n}.nc")
    parts = [hs.open(str(tmp_path / f"{name}-*.nc"), concat="time") for name in "xy"]
    merged = hs.open(parts)
    assert merged["x"].shape == merged["y"].shape == (6, *SHAPE)
    for name, part in zip("xy", parts, strict=True):
        np.testing.assert_array_equal(merged[name][:], part[name][:])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(merged))["y"][2:5], parts[1]["y"][2:5])


def test_groups(tmp_path):
    paths = []
    for n in range(3):
        path = write(tmp_path / f"{n}.nc", np.arange(n * 3, n * 3 + 3))
        with netCDF4.Dataset(path, "a") as file:
            deep = file.createGroup("deep")
            deep.setncattr("note", "first" if n == 0 else "later")
            deep.createVariable("salt", "f4", ("time",))[:] = np.arange(3) + n
        paths.append(path)
    tree = xr.open_datatree(hs.open(paths, concat="time"), engine="hyperslab")
    assert tree["deep"].attrs == {"note": "first"}
    np.testing.assert_array_equal(tree["deep/salt"], [0, 1, 2, 1, 2, 3, 2, 3, 4])


def test_text_that_is_equal_in_all_files_and_scalars(tmp_path):
    paths = []
    for n in range(3):
        path = write(tmp_path / f"{n}.nc", np.arange(n * 3, n * 3 + 3))
        with netCDF4.Dataset(path, "a") as file:
            file.createVariable("station", str, ("lat",))[:] = np.array(list("abcde"), object)
            file.createVariable("crs", "i4", ()).setncattr("grid_mapping_name", "latitude_longitude")
            file["crs"][:] = 4
        paths.append(path)
    whole = check(paths)
    assert list(whole.station.values) == list("abcde")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zarr(tmp_path, zarr_format):
    pytest.importorskip("zarr")
    paths, whole = [], []
    for n, scale in enumerate((0.1, 0.1, 0.5)):
        values = np.random.default_rng(n).integers(0, 99, (n + 2, 4)) * scale
        values[0, 0] = np.nan
        made = xr.Dataset({"x": (("time", "y"), values)}, {"time": ("time", np.arange(n + 2) + n * 10)})
        encoding = {"x": {"dtype": "i2", "scale_factor": scale, "_FillValue": np.int16(-1), "chunks": (n + 1, 3)}}
        made.to_zarr(tmp_path / f"{n}.zarr", encoding=encoding, zarr_format=zarr_format, consolidated=False)
        paths.append(tmp_path / f"{n}.zarr")
        whole.append(xr.open_zarr(paths[-1], consolidated=False).load())
    xr.testing.assert_identical(by_hyperslab(paths), xr.concat(whole, "time", combine_attrs="override"))
    alike = hs.open(paths[:2], concat="time")
    assert alike["x"].dtype == np.dtype("i2")
    ours = xr.open_dataset(alike, engine="hyperslab").load()
    xr.testing.assert_identical(ours, xr.concat(whole[:2], "time", combine_attrs="override"))


def test_files_of_one_name_in_two_folders(tmp_path, monkeypatch):
    """This also holds for files that references name, relative to their folder or to the working directory."""
    for number in range(2):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        with h5py.File(folder / "data.h5", "w") as file:
            file["x"] = np.full(9, number)
        monkeypatch.chdir(folder)
        hs.index("data.h5").save("refs.json")
        hs.index("data.h5").save("refs.hs")
        layout = h5py.VirtualLayout((9,), "i8")
        layout[:] = h5py.VirtualSource("data.h5", "x", (9,))
        with h5py.File("virtual.h5", "w") as file:
            file.create_virtual_dataset("x", layout)
        assert json.loads((folder / "refs.json").read_text())["refs"]["x/0"]
    monkeypatch.chdir(tmp_path)
    for name in ("data.h5", "refs.json", "refs.hs", "virtual.h5"):
        for parts in (
            [f"{number}/{name}" for number in range(2)],
            [hs.open(f"{number}/{name}") for number in range(2)],
        ):
            group = hs.open(parts, concat=0)
            np.testing.assert_array_equal(group["x"][...], np.repeat([0, 1], 9))
            again = pickle.loads(pickle.dumps(group["x"]))
            np.testing.assert_array_equal(again[5:14], np.repeat([0, 1], [4, 5]))


def test_files_without_names_of_dimensions_are_concatenated_by_axis(tmp_path):
    fitsio = pytest.importorskip("fitsio")
    images = [np.arange(n, n + 12.0, dtype="f4").reshape(-1, 4) for n in range(3)]
    for n, image in enumerate(images):
        fitsio.write(tmp_path / f"{n}.fits", image[: n + 1])
    group = hs.open(str(tmp_path / "*.fits"), concat=0)
    (name,) = group.arrays
    np.testing.assert_array_equal(group[name][:], np.concatenate([image[: n + 1] for n, image in enumerate(images)]))


@settings(max_examples=few(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_splits_of_an_array(tmp_path_factory, data):
    """Random arrays, split along a random axis into files with random chunk shapes, with random selections."""
    folder = tmp_path_factory.mktemp("split")
    shape = data.draw(st.tuples(*[st.integers(1, 9)] * data.draw(st.integers(1, 3))))
    axis = data.draw(st.integers(0, len(shape) - 1))
    whole = np.random.default_rng(1).integers(0, 30000, shape).astype("i2")
    cuts = sorted(data.draw(st.lists(st.integers(0, shape[axis]), max_size=4)))
    parts = np.split(whole, cuts, axis=axis)
    dtypes = data.draw(st.sampled_from([["<i2"], ["<i2", ">i2"], ["<i2", ">i4"], ["f4", "<i2"], ["f8", ">i4", "u2"]]))
    paths = []
    for n, part in enumerate(parts):
        with h5py.File(folder / f"{n}.h5", "w") as file:
            chunks = data.draw(st.none() | st.tuples(*[st.integers(1, max(1, length)) for length in part.shape]))
            maxshape = (None,) * part.ndim if chunks else None
            dtype = dtypes[n % len(dtypes)]
            file.create_dataset("x", data=part.astype(dtype), chunks=chunks, maxshape=maxshape)
        paths.append(folder / f"{n}.h5")
    array = hs.open(paths, concat=axis)["x"]
    assert array.shape == shape
    expected = np.result_type(*dtypes[: len(parts)])
    assert array.dtype.newbyteorder("=") == expected.newbyteorder("=")
    np.testing.assert_array_equal(array[...], whole)
    key = tuple(data.draw(st.slices(length).filter(lambda s: (s.step or 1) > 0)) for length in shape)
    np.testing.assert_array_equal(array[key], whole[key])


def test_nothing_but_coordinates_is_read_when_opening(tmp_path, monkeypatch):
    paths = [write(tmp_path / f"{n}.nc", np.arange(n * 3, n * 3 + 3)) for n in range(4)]
    read = []
    inner = Combination.read
    monkeypatch.setattr(Combination, "read", lambda self, recipe, path: read.append(path) or inner(self, recipe, path))
    hs.open(paths, concat="time")
    assert set(read) == {"/lat", "/lon", "/time"}


def open_count():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_more_files_than_may_be_open(tmp_path):
    import resource

    paths = [write(tmp_path / f"{n}.nc", np.array([n])) for n in range(150)]
    before = open_count()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before + 90, hard))
    try:
        group = hs.open(paths, concat="time")
        assert open_count() <= before + 64
        np.testing.assert_array_equal(group["time"][:], np.arange(150))
        group["x"][:]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_pickles_tokens_and_dask(tmp_path):
    paths = [write(tmp_path / f"{n}.nc", np.arange(n * 3, n * 3 + 3)) for n in range(3)]
    group = hs.open(paths, concat="time")
    again = pickle.loads(pickle.dumps(group["x"]))
    np.testing.assert_array_equal(again[2:7], group["x"][2:7])
    assert again._file is pickle.loads(pickle.dumps(group["time"]))._file  # a process combines the files once
    assert tokenize(group["x"]) == tokenize(hs.open(paths, concat="time")["x"]) != tokenize(group["time"])
    lazy = xr.open_dataset([str(path) for path in paths], engine="hyperslab", concat="time", chunks={})
    with dask.config.set(scheduler="processes", num_workers=1):
        xr.testing.assert_identical(lazy.mean("time").compute(), by_xarray(paths).mean("time"))


def test_a_file_that_changes_is_noticed(tmp_path):
    paths = [write(tmp_path / f"{n}.nc", np.arange(n * 3, n * 3 + 3)) for n in range(3)]
    group = hs.open(paths, concat="time")
    write(paths[1], np.arange(3, 6), data=np.zeros((3, *SHAPE)), encoding={"zlib": True})
    with pytest.raises(FileChanged, match=r"1\.nc"):
        group["x"][:]
    np.testing.assert_array_equal(hs.open(paths, concat="time")["x"][3:6], 0)
    with pytest.raises(FileChanged):
        group["x"][3:6]


def test_zarr_stores_show_collections(tmp_path):
    zarr = pytest.importorskip("zarr")
    from hyperslab.archive.zarr_store import ZarrStore

    paths = packed(tmp_path, ["short", "other scale", "float"])
    shown = zarr.open(ZarrStore(hs.open(paths, concat="time")), mode="r")
    np.testing.assert_array_equal(shown["x"][:], by_xarray(paths).x)


def test_order(tmp_path):
    paths = [write(tmp_path / f"{n}.nc", np.arange(n * 3, n * 3 + 3)) for n in (2, 0, 1)]
    with pytest.raises(NotCombinable, match=r"time is 6.* in .*2.nc, then 0.* in .*0.nc.*order"):
        hs.open(paths, concat="time")
    np.testing.assert_array_equal(hs.open(paths, concat="time", order="sort")["time"][:], np.arange(9))
    np.testing.assert_array_equal(hs.open(paths, concat="time", order="any")["time"][:3], [6, 7, 8])
    falling = [write(tmp_path / f"f{n}.nc", np.arange(n * 3 + 2, n * 3 - 1, -1)) for n in (2, 1, 0)]
    np.testing.assert_array_equal(hs.open(falling, concat="time")["time"][:], np.arange(8, -1, -1))


def test_collections_are_saved_as_references(tmp_path):
    paths = packed(tmp_path, ["short", "other scale", "float"])
    for path in paths:
        with netCDF4.Dataset(path, "a") as file:
            file.createVariable("station", str, ("lat",))[:] = np.array(list("abcde"), object)
    group = hs.open(paths, concat="time")
    hs.index(group).save(tmp_path / "whole.hs")
    again = hs.open(tmp_path / "whole.hs")
    for name in ("x", "time", "lat", "station"):
        np.testing.assert_array_equal(again[name][:], group[name][:])
    assert dict(again["x"].attrs) == dict(group["x"].attrs)
    with pytest.raises(Refused, match=r"/x"):
        hs.index(group).save(tmp_path / "whole.json")
    pytest.importorskip("fsspec")
    alike = [
        write(
            tmp_path / f"alike{n}.nc", np.arange(n * 3, n * 3 + 3), encoding={"zlib": True, "chunksizes": (1, *SHAPE)}
        )
        for n in range(3)
    ]
    hs.index(hs.open(alike, concat="time")).save(tmp_path / "alike.json")
    theirs = hs.open(tmp_path / "alike.json")
    np.testing.assert_array_equal(theirs["x"][:], hs.open(alike, concat="time")["x"][:])


def test_dask_cuts_where_files_and_chunks_end(tmp_path):
    lengths, chunks = (5, 7, 4), ((2, 5, 3), (3, 5, 7), (4, 5, 3))
    paths, start = [], 0
    for n, (length, chunk) in enumerate(zip(lengths, chunks, strict=True)):
        days = np.arange(start, start + length)
        paths.append(write(tmp_path / f"{n}.nc", days, encoding={"zlib": True, "chunksizes": chunk}))
        start += length
    lazy = xr.open_dataset(hs.open(paths, concat="time"), engine="hyperslab", chunks={})
    assert lazy.x.chunks == ((2, 2, 1, 3, 3, 1, 4), (5,), (7,))
    xr.testing.assert_identical(lazy.load(), by_xarray(paths))
    even = [write(tmp_path / f"e{n}.nc", np.arange(4) + n * 4, encoding={"chunksizes": (2, *SHAPE)}) for n in range(3)]
    assert hs.open(even, concat="time")["x"].chunk_lengths == (2, *SHAPE)


def test_large_pieces_are_unpacked_in_parts(tmp_path):
    whole = np.random.default_rng(5).integers(0, 999, (3, 370, 1010)).astype("i2")
    for n, part in enumerate(np.split(whole, [1])):
        with h5py.File(tmp_path / f"{n}.h5", "w") as file:
            file["x"] = part
            file["x"].attrs["scale_factor"] = (1 + n) * 0.5
    array = hs.open(str(tmp_path / "*.h5"), concat=0)["x"]
    expected = np.concatenate([whole[:1] * 0.5, whole[1:] * 1.0])
    np.testing.assert_array_equal(array[...], expected)
    np.testing.assert_array_equal(array[1:, 100:300:7, 5], expected[1:, 100:300:7, 5])
    assert array.plan((2, 5)).fetched_nbytes <= 1 << 20

"""xarray's engine "hyperslab" gives what its engines "netcdf4" and "zarr" give."""

import asyncio
import os
import pickle
from importlib.util import find_spec
from pathlib import Path

import dask
import dask.array
import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
from dask.base import tokenize
from hypothesis import given, settings
from hypothesis import strategies as st

import hyperslab as hs
from draws import few
from hyperslab.errors import UsageError

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"


def by_netcdf4(path, **options):
    """What netCDF4 reads. Its file is closed at once, because its library may not be called from two threads."""
    with xr.open_dataset(path, engine="netcdf4", **options) as opened:
        return opened.load()


@pytest.fixture(scope="module")
def ocean(tmp_path_factory):
    path = tmp_path_factory.mktemp("xarray") / "ocean.nc"
    random = np.random.default_rng(3)
    with netCDF4.Dataset(path, "w") as file:
        file.title = "made for tests"
        for name, length in (("time", None), ("y", 30), ("x", 40)):
            file.createDimension(name, length)
        time = file.createVariable("time", "f8", ("time",))
        time.units, time.calendar = "days since 2000-01-01", "noleap"
        time[:] = np.arange(12)
        packed = file.createVariable("sst", "i2", ("time", "y", "x"), zlib=True, chunksizes=(2, 30, 7), fill_value=-99)
        packed.set_auto_maskandscale(False)
        packed.scale_factor, packed.add_offset = 0.01, 20.0
        packed[:] = random.integers(-99, 900, (12, 30, 40))
        file.createVariable("name", "S1", ("x",))[:] = np.array(list("abcdefgh" * 5), "S1")
        file.createVariable("station", str, ("y",))[:] = np.array([f"station {n}" for n in range(30)], object)
        deep = file.createGroup("deep")
        deep.createVariable("salt", "f4", ("y", "x"))[:] = 35
        deep.createGroup("deeper").createVariable("flag", "u1", ("y",))[:] = 1
    return path


@pytest.fixture(scope="module")
def loaded(ocean):
    return by_netcdf4(ocean)


def test_identical_to_netcdf4(ocean):
    theirs = by_netcdf4(ocean)
    with xr.open_dataset(ocean, engine="hyperslab") as ours:
        xr.testing.assert_identical(ours.load(), theirs)
        assert ours.encoding["unlimited_dims"] == {"time"}
        assert ours.sst.encoding["chunksizes"] == theirs.sst.encoding["chunksizes"]
        assert ours.sst.encoding["scale_factor"] == 0.01


@pytest.mark.parametrize("options", [{"mask_and_scale": False}, {"decode_times": False}, {"decode_cf": False}])
def test_decoders_are_xarrays(ocean, options):
    xr.testing.assert_identical(
        xr.open_dataset(ocean, engine="hyperslab", **options).load(), by_netcdf4(ocean, **options)
    )


def test_groups(ocean):
    tree = xr.open_datatree(ocean, engine="hyperslab")
    with xr.open_datatree(ocean, engine="netcdf4") as expected:
        assert tree.groups == expected.groups
        xr.testing.assert_identical(tree.load(), expected.load())
    deep = xr.open_dataset(ocean, engine="hyperslab", group="deep")
    xr.testing.assert_identical(deep.load(), by_netcdf4(ocean, group="deep"))


def test_drop_variables(ocean):
    assert "sst" not in xr.open_dataset(ocean, engine="hyperslab", drop_variables="sst")


axis = st.one_of(
    st.integers(0, 11),
    st.builds(slice, st.integers(0, 12), st.integers(0, 12), st.integers(1, 4)),
    st.builds(slice, st.integers(0, 11), st.none(), st.integers(-4, -1)),
    st.lists(st.integers(0, 11), min_size=1, max_size=5),
)


@settings(max_examples=few(60))
@given(time=axis, x=axis)
def test_lazy_indexing_equals_numpy(ocean, loaded, time, x):
    ours = xr.open_dataset(ocean, engine="hyperslab")
    xr.testing.assert_identical(ours.sst.isel(time=time, x=x).load(), loaded.sst.isel(time=time, x=x))


def test_dask_chunks_follow_the_files_and_tokens_are_the_same_in_every_process(ocean):
    lazy = xr.open_dataset(ocean, engine="hyperslab", chunks={})
    assert lazy.sst.data.chunksize == (2, 30, 7)
    expected = by_netcdf4(ocean)
    for scheduler in ("threads", "processes"):
        with dask.config.set(scheduler=scheduler):
            xr.testing.assert_identical(lazy.compute(), expected)
    again = pickle.loads(pickle.dumps(hs.open(ocean)["sst"]))
    assert tokenize(again) == tokenize(hs.open(ocean)["sst"]) != tokenize(hs.open(ocean)["time"])
    assert dask.array.from_array(hs.open(ocean)["sst"]).name == dask.array.from_array(again).name


def test_async(ocean):
    dataset = xr.open_dataset(ocean, engine="hyperslab")
    loaded = asyncio.run(dataset.isel(time=slice(0, 3)).load_async())
    xr.testing.assert_identical(loaded, by_netcdf4(ocean).isel(time=slice(0, 3)))


def test_an_open_group_and_options(ocean):
    root = hs.open(ocean)
    xr.testing.assert_identical(
        xr.open_dataset(root, engine="hyperslab").load(), xr.open_dataset(ocean, engine="hyperslab").load()
    )
    assert xr.open_dataset(ocean, engine="hyperslab", open_options={"chunk_cache_nbytes": 0}).sst.shape == (12, 30, 40)
    with pytest.raises(UsageError, match="give the group"):
        xr.open_dataset(ocean, engine="hyperslab", group="sst")


def test_axes_without_names(tmp_path):
    with h5py.File(tmp_path / "bare.h5", "w") as file:
        file["a"] = np.zeros((3, 4, 3))
        file["b"] = np.zeros((4, 5))
    ours = xr.open_dataset(tmp_path / "bare.h5", engine="hyperslab")
    xr.testing.assert_identical(ours.load(), by_netcdf4(tmp_path / "bare.h5"))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zarr_folders(ocean, tmp_path, zarr_format):
    by_netcdf4(ocean).drop_vars(["name", "station"]).to_zarr(
        tmp_path / "o.zarr", zarr_format=zarr_format, consolidated=False
    )
    theirs = xr.open_dataset(tmp_path / "o.zarr", engine="zarr", consolidated=False).load()
    xr.testing.assert_identical(xr.open_dataset(tmp_path / "o.zarr", engine="hyperslab").load(), theirs)


# Where the judges and we differ, and why.
DIFFERENT = {
    "f03tst_open_mem.nc": "netCDF-C gives memory that nobody wrote where the file has no chunk",
    "ref_nc_test_netcdf4_4_0.nc": "text that is not UTF-8: one byte as h5netcdf has it, more as netCDF4 has them",
    "air_linked.nc": "an array under two names: netCDF-C calls the dimension by the one that was linked later",
    "attr_datatypes.hdf5": "h5py gives big-endian numbers in sequences the wrong way round",
    "references.hdf5": "references: we show the paths that they lead to, netCDF4 leaves them out, h5netcdf fails",
}


# netCDF-C ends the process when it reads sequences or compounds of these.
CRASHING = {
    "float_special_values_earliest.hdf5", "float_special_values_latest.hdf5", "globalheaps_test.hdf5",
    "compound_datasets_earliest.hdf5", "compound_datasets_latest.hdf5",
}  # fmt: skip


def by_h5netcdf(path, **options):
    with xr.open_dataset(path, engine="h5netcdf", phony_dims="access", **options) as opened:
        return opened.load()


JUDGES = [(by_netcdf4, {})] + ([(by_h5netcdf, {"phony_dims": "access"})] if find_spec("h5netcdf") else [])


def _corpus():
    suffixes = ("nc", "nc4", "h5", "hdf5", "he5")
    return sorted(path for suffix in suffixes for path in CORPUS.glob(f"**/*.{suffix}")) if CORPUS.exists() else []


def difference(ours, theirs):
    """What differs; NumPy cannot compare elements that are arrays themselves: these are compared as they are shown."""
    try:
        xr.testing.assert_identical(ours, theirs)
    except AssertionError as error:
        return str(error)
    except (TypeError, ValueError):
        return "" if repr(ours.to_dict()) == repr(theirs.to_dict()) else "elements or attributes differ"
    return ""


def _cases():
    """Each file of the corpus. One has more than 2^31 elements, which every judge reads."""
    huge = {"tiny_huge_1d_over_maxint.hdf5"}
    in_full = pytest.mark.skipif(not os.environ.get("HYPERSLAB_SUITES"), reason="takes a minute: HYPERSLAB_SUITES=1")
    return [pytest.param(one, id=one.name, marks=[in_full] if one.name in huge else []) for one in _corpus()]


@pytest.mark.parametrize("path", _cases())
@pytest.mark.filterwarnings("ignore")
def test_foreign_files(path):
    """Each is as netCDF4 has it, or else as h5netcdf does."""
    if path.name in DIFFERENT:
        pytest.skip(DIFFERENT[path.name])
    differences, problems = [], []
    for judge, options in JUDGES:
        try:
            if judge is by_netcdf4 and path.name in CRASHING:
                raise OSError("netCDF-C ends the process")
            theirs = judge(path)
        except Exception as error:
            problems.append(type(error).__name__)
            continue
        found = difference(xr.open_dataset(path, engine="hyperslab", **options).load(), theirs)
        if not found:
            return
        differences.append(found)
    if not differences:
        pytest.skip(f"no judge can read it: {', '.join(problems)}")
    if len(differences) < len(JUDGES) or len(JUDGES) == 1:
        assert path.suffix not in (".nc", ".nc4"), differences[0]
        pytest.skip(f"only one judge, and no NetCDF file: {differences[0][:200]}")
    raise AssertionError("\n\n".join(differences))


def test_a_misspelled_argument_is_answered_by_the_nearest() -> None:
    from hyperslab.archive.xarray_options import split

    with pytest.raises(TypeError, match="no argument conct; did you mean 'concat'"):
        split({"conct": "time"})

"""An archive read through zarr-python equals a Zarr copy of it."""

import asyncio
import pickle
import subprocess
import sys

import h5py
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import hyperslab as hs
from draws import few
from hyperslab.archive.zarr_store import ZarrStore

PIPELINES = ("zarr.core.codec_pipeline.BatchedCodecPipeline", "hyperslab.archive.zarr_pipeline.Pipeline")


@pytest.fixture(params=PIPELINES, ids=["chunk by chunk", "our pipeline"])
def pipeline(request):
    with zarr.config.set({"codec_pipeline.path": request.param}):
        yield request.param


@pytest.fixture(scope="module")
def data():
    return np.arange(20 * 17 * 9, dtype=">f4").reshape(20, 17, 9)


@pytest.fixture(scope="module")
def archive(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("zarr") / "all.h5"
    with h5py.File(path, "w") as file:
        deflated = file.create_dataset("g/deflated", data=data, chunks=(7, 5, 9), compression="gzip", shuffle=True)
        deflated.attrs["levels"] = [1, 2]
        file.create_dataset("plain", data=data.astype("i2"))
        file.create_dataset("scaled", data=data.astype("i4"), chunks=(20, 17, 3), scaleoffset=0)
        file.create_dataset("c", data=np.zeros(5, [("x", "<i4"), ("y", ">f8")]))
        file.create_dataset("text", data=["a", "bé", ""], dtype=h5py.string_dtype())
        file.create_dataset("scalar", data=np.float64(3.5))
        file.create_dataset("holes", (30, 30), "f8", chunks=(4, 4), fillvalue=-9.0)[5:7, 8:20] = 1
        file.create_dataset("empty", (0, 4), "u1", maxshape=(None, 4))
        file.create_dataset("points", data=h5py.Empty("f4"))
    return path


def test_every_array_equals_h5py(archive, pipeline):
    hierarchy = zarr.open(ZarrStore(hs.open(archive)), mode="r")
    with h5py.File(archive) as file:
        for name in ("g/deflated", "plain", "scaled", "c", "scalar", "holes", "empty"):
            found, expected = hierarchy[name], file[name]
            assert found.shape == expected.shape
            assert np.array_equal(found[...], expected[...]), name
        assert list(hierarchy["text"][:]) == list(file["text"].asstr()[:])
        assert hierarchy["g/deflated"].attrs["levels"] == [1, 2]


selections = st.tuples(
    *(
        st.one_of(
            st.integers(0, length - 1),
            st.builds(slice, st.integers(0, length), st.integers(0, length + 3), st.integers(1, 5)),
            st.just(slice(None)),
        )
        for length in (20, 17, 9)
    )
)


@settings(max_examples=few(60))
@given(key=selections)
def test_basic_selections(archive, data, key):
    for path in PIPELINES:
        with zarr.config.set({"codec_pipeline.path": path}):
            array = zarr.open(ZarrStore(hs.open(archive)), mode="r")["g/deflated"]
            assert np.array_equal(array[key], data[key])


@settings(max_examples=few(30))
@given(
    rows=st.lists(st.integers(0, 19), min_size=1, max_size=6),
    columns=st.lists(st.integers(0, 16), min_size=1, max_size=6),
)
def test_lists_and_points(archive, data, rows, columns):
    with zarr.config.set({"codec_pipeline.path": PIPELINES[1]}):
        array = zarr.open(ZarrStore(hs.open(archive)), mode="r")["g/deflated"]
        assert np.array_equal(array.oindex[rows, columns], data[np.ix_(rows, columns)])
        places = (rows[: len(columns)], columns[: len(rows)], [3] * min(len(rows), len(columns)))
        assert np.array_equal(array.vindex[places], data[places])


def test_nothing_can_be_written(archive):
    hierarchy = zarr.open(ZarrStore(hs.open(archive)), mode="r")
    with pytest.raises((ValueError, PermissionError), match=r"read.only"):
        hierarchy["plain"][0] = 1


def test_listing_and_pickling(archive):
    store = ZarrStore(hs.open(archive))
    again = pickle.loads(pickle.dumps(store))
    assert again == store
    names = ["c", "empty", "g", "holes", "plain", "scalar", "scaled", "text"]
    assert sorted(zarr.open(again, mode="r")) == names
    assert set(store.left_out) == {"points"}


def test_what_zarr_cannot_say_is_named(tmp_path):
    with h5py.File(tmp_path / "vlen.h5", "w") as file:
        file.create_dataset("ragged", (3,), dtype=h5py.vlen_dtype("i4"))
        file.create_dataset("good", data=[1, 2])
    store = ZarrStore(hs.open(tmp_path / "vlen.h5"))
    hierarchy = zarr.open(store, mode="r")
    assert list(hierarchy) == ["good"]
    assert "ragged" in store.left_out


def test_other_stores_go_their_own_way(tmp_path, data, pipeline):
    written = zarr.create_array(tmp_path / "own.zarr", shape=data.shape, chunks=(6, 6, 6), dtype="f4")
    written[...] = data
    assert np.array_equal(zarr.open(tmp_path / "own.zarr")[3:9, ::2], data[3:9, ::2])


def test_xarray_reads_it_as_zarr(tmp_path, pipeline):
    made = xr.Dataset(
        {"t": (("time", "x"), np.array([[1.5, np.nan], [2.5, 3.5]]))},
        {"time": np.array(["2000-01-01", "2000-01-02"], "M8[ns]")},
    )
    made.to_netcdf(tmp_path / "t.nc", encoding={"t": {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -1}})
    store = ZarrStore(hs.open(tmp_path / "t.nc"))
    with xr.open_zarr(store, chunks=None) as found:
        xr.testing.assert_equal(found.load(), made)


def test_stores_are_opened_as_zarrs_others_are(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(5)

    async def opened():
        store = await ZarrStore.open(hs.open(tmp_path / "a.h5"))
        with pytest.raises(ValueError, match="already open"):
            await store._open()
        group = await zarr.api.asynchronous.open_group(store, mode="r")
        return [name async for name in group.keys()]  # noqa: SIM118 -- it is no mapping

    assert "x" in asyncio.run(opened())
    with ZarrStore(hs.open(tmp_path / "a.h5")) as store:
        assert zarr.open_group(store, mode="r")["x"][...].tolist() == [0, 1, 2, 3, 4]


def test_older_versions_of_zarr_find_what_they_need(tmp_path):
    """zarr 3.1.0 has `parse_dtype` by its older name only; up to 3.1.2, stores say whether they write parts."""
    older = (
        "import zarr.dtype, zarr.abc.store as abc; del zarr.dtype.parse_dtype\n"
        "class Older(abc.Store):\n"
        "    @property\n"
        "    @__import__('abc').abstractmethod\n"
        "    def supports_partial_writes(self): ...\n"
        "    @__import__('abc').abstractmethod\n"
        "    async def set_partial_values(self, values): ...\n"
        "abc.Store = Older\n"
        "import asyncio, sys, hyperslab as hs\n"
        "from hyperslab.archive.zarr_store import ZarrStore\n"
        "store = ZarrStore(hs.open(sys.argv[1]))\n"
        "assert store.supports_partial_writes is False\n"
        "assert zarr.open_array(store, path='x', mode='r')[...].tolist() == [0, 1, 2]\n"
        "try: asyncio.run(store.set_partial_values([]))\n"
        "except ValueError: print('read-only')\n"
    )
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(3)
    program = [sys.executable, "-W", "ignore", "-c", older, str(tmp_path / "a.h5")]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.stdout == "read-only\n", done.stderr

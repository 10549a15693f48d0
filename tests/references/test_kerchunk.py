"""References in kerchunk's formats, opened by others: zarr-python and xarray over fsspec, kerchunk's own engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import reference_files as made

import hyperslab as hs
from hyperslab.errors import Refused, UsageError

zarr = pytest.importorskip("zarr")
xarray = pytest.importorskip("xarray")
fsspec = pytest.importorskip("fsspec")
pytest.importorskip("kerchunk")

SUFFIXES = ("json", "parquet")


def mapped(refs: Path) -> Any:
    """Open the references as a store of zarr-python."""
    options = {
        "fo": str(refs),
        "remote_protocol": "file",
        "asynchronous": True,
        "remote_options": {"asynchronous": True},
    }
    if refs.is_dir():
        import pandas
        from fsspec.implementations.reference import LazyReferenceMapper

        pandas.set_option(
            "future.infer_string", False
        )  # fsspec takes NaN, which is pandas 3's null for text, for a path
        options["fo"] = LazyReferenceMapper(str(refs), fs=fsspec.filesystem("file"), engine="pyarrow")
    return zarr.storage.FsspecStore(fsspec.filesystem("reference", **options), read_only=True, path="")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("inline_threshold", [0, 500, 10**6])
def test_zarr_reads_what_h5py_reads(tmp_path: Path, suffix: str, inline_threshold: int) -> None:
    made.expressible(tmp_path / "made.h5")
    refs = tmp_path / f"refs.{suffix}"
    threshold = max(inline_threshold, 24)  # the words cannot be expressed otherwise
    saved = hs.index(tmp_path / "made.h5").save(refs, inline_threshold=threshold)
    assert not saved.left_out
    group = zarr.open_group(mapped(refs), mode="r", zarr_format=2)
    assert group.attrs["title"] == "made"
    assert group.attrs["numbers"] == [0, 1, 2]
    with h5py.File(tmp_path / "made.h5") as file:
        for name, array in made.arrays(file):
            expected = array.asstr()[...] if name == "small_words" else array[...]
            np.testing.assert_array_equal(group[name][...], expected, err_msg=name)
            assert group[name].shape == array.shape
        assert saved.array_count == len(list(made.arrays(file)))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_xarray_reads_what_its_own_engine_reads(tmp_path: Path, suffix: str) -> None:
    made.packed_netcdf(tmp_path / "made.nc")
    refs = tmp_path / f"refs.{suffix}"
    hs.index(tmp_path / "made.nc").save(refs, inline_threshold=0)
    store = str(refs) if suffix == "json" else mapped(refs)
    options = (
        {"engine": "kerchunk"} if suffix == "json" else {"engine": "zarr", "consolidated": False, "zarr_format": 2}
    )
    with xarray.open_dataset(store, **options) as found, xarray.open_dataset(tmp_path / "made.nc") as expected:
        xarray.testing.assert_identical(found.load(), expected.load())


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_cannot_be_said_is_refused_by_name(tmp_path: Path, suffix: str) -> None:
    reasons = made.inexpressible(tmp_path / "made.h5")
    found = hs.index(tmp_path / "made.h5")
    refs = tmp_path / f"refs.{suffix}"
    with pytest.raises(Refused, match="cannot be referenced"):
        found.save(refs, inline_threshold=0)
    assert [path.name for path in tmp_path.iterdir()] == ["made.h5"]  # nothing was left behind
    saved = found.save(refs, inline_threshold=0, skip_unsupported=True)
    assert set(saved.left_out) == set(reasons)
    for name, reason in reasons.items():
        assert reason in saved.left_out[name], saved.left_out[name]
    assert list(zarr.open_group(mapped(refs), mode="r", zarr_format=2)) == ["fine"]


def test_small_arrays_of_any_kind_are_put_in_as_values(tmp_path: Path) -> None:
    reasons = made.inexpressible(tmp_path / "made.h5")
    saved = hs.index(tmp_path / "made.h5").save(tmp_path / "refs.json", inline_threshold=10**5, skip_unsupported=True)
    assert set(saved.left_out) == {"gaps"}
    group = zarr.open_group(mapped(tmp_path / "refs.json"), mode="r", zarr_format=2)
    with h5py.File(tmp_path / "made.h5") as file:
        for name in set(reasons) - {"gaps", "words", "masked"}:
            np.testing.assert_array_equal(group[name][...], file[name][...], err_msg=name)
        assert list(group["words"][:2]) == ["a", "b"]
    np.testing.assert_array_equal(group["masked"][...], hs.open(tmp_path / "made.h5")["masked"][...])


def test_virtual_arrays_of_whole_chunks_are_references_to_their_sources(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    layout = h5py.VirtualLayout((60, 30), "f8")
    for number in range(3):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file.create_dataset("x", data=rng.random((20, 30)), chunks=(10, 7), compression="gzip")
        layout[20 * number : 20 * number + 20] = h5py.VirtualSource(tmp_path / f"{number}.h5", "x", (20, 30))
    with h5py.File(tmp_path / "all.h5", "w") as file:
        file.create_virtual_dataset("v", layout)
    hs.index(tmp_path / "all.h5").save(tmp_path / "refs.json", inline_threshold=0)
    group = zarr.open_group(mapped(tmp_path / "refs.json"), mode="r", zarr_format=2)
    with h5py.File(tmp_path / "all.h5") as file:
        np.testing.assert_array_equal(group["v"][...], file["v"][...])


def test_parquet_in_many_records(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        array = file.create_dataset("x", (40, 50), "i4", chunks=(3, 7))
        array[10:20] = np.arange(500).reshape(10, 50)
        array[:, 30:] = 3
        expected = array[...]
    hs.index(tmp_path / "a.h5").save(tmp_path / "refs.parquet", inline_threshold=0, record_size=11)
    assert len(list((tmp_path / "refs.parquet" / "x").iterdir())) == -(-14 * 8 // 11)
    group = zarr.open_group(mapped(tmp_path / "refs.parquet"), mode="r", zarr_format=2)
    np.testing.assert_array_equal(group["x"][...], expected)
    hs.index(tmp_path / "a.h5").save(tmp_path / "refs.parquet")  # a folder of references is replaced


def test_several_files_are_groups(tmp_path: Path) -> None:
    for name in ("a.h5", "b.h5"):
        with h5py.File(tmp_path / name, "w") as file:
            file["g/x"] = np.full(300, ord(name[0]))
    hs.index([tmp_path / "a.h5", tmp_path / "b.h5", tmp_path / "a.h5"]).save(tmp_path / "refs.json")
    group = zarr.open_group(mapped(tmp_path / "refs.json"), mode="r", zarr_format=2)
    assert sorted(group) == ["a", "a_2", "b"]
    assert (group["b/g/x"][...] == ord("b")).all()


def test_netcdf3_and_fits(tmp_path: Path) -> None:
    fitsio = pytest.importorskip("fitsio")
    xarray.Dataset({"x": (("time", "y"), np.arange(30.0).reshape(5, 6))}).to_netcdf(
        tmp_path / "a.nc", engine="scipy", unlimited_dims=["time"]
    )
    fitsio.write(tmp_path / "a.fits", np.arange(600, dtype="i2").reshape(20, 30))
    for name in ("a.nc", "a.fits"):
        hs.index(tmp_path / name).save(tmp_path / "refs.json", inline_threshold=0)
        group = zarr.open_group(mapped(tmp_path / "refs.json"), mode="r", zarr_format=2)
        for array in hs.open(tmp_path / name).walk():
            np.testing.assert_array_equal(group[array.name.strip("/")][...], array[...])


def test_targets_that_are_something_else(tmp_path: Path) -> None:
    made.expressible(tmp_path / "made.h5")
    found = hs.index(tmp_path / "made.h5")
    (tmp_path / "folder.parquet").mkdir()
    (tmp_path / "file.parquet").write_text("mine")
    for name in ("refs.txt", "folder.parquet", "file.parquet", "nowhere/refs.json"):
        with pytest.raises(UsageError):
            found.save(tmp_path / name)
    assert (tmp_path / "file.parquet").read_text() == "mine"


def test_documents_are_kerchunks(tmp_path: Path) -> None:
    made.expressible(tmp_path / "made.h5")
    hs.index(tmp_path / "made.h5").save(tmp_path / "refs.json", inline_threshold=0, skip_unsupported=True)
    document = json.loads((tmp_path / "refs.json").read_text())
    assert document["version"] == 1
    zarray = json.loads(document["refs"]["codecs/shuffled_i4/.zarray"])
    assert [codec["id"] for codec in zarray["filters"]] == ["shuffle", "zlib"]
    assert json.loads(document["refs"]["along/.zattrs"])["_ARRAY_DIMENSIONS"] == ["phony_dim_0", "phony_dim_1"]
    with h5py.File(tmp_path / "made.h5") as file:
        info = file["codecs/shuffled_i4"].id.get_chunk_info_by_coord((20, 33))
    assert document["refs"]["codecs/shuffled_i4/1.1"] == [str(tmp_path / "made.h5"), info.byte_offset, info.size]

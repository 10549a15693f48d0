"""Virtual references in Icechunk stores, read back through Icechunk by zarr-python and xarray."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import reference_files as made

import hyperslab as hs
from hyperslab.errors import FileChanged, Refused, UsageError

zarr = pytest.importorskip("zarr")
icechunk = pytest.importorskip("icechunk", reason="not installed: pip install 'hyperslab[icechunk]'")
pytestmark = pytest.mark.filterwarnings("ignore:.*(Zarr V3 spec|Zarr version 3 spec|consolidated)")


def repository(folder: Path) -> Any:
    """A repository in memory that may read files below a folder."""
    prefix = folder.as_uri() + "/"
    config = icechunk.RepositoryConfig.default()
    store = icechunk.local_filesystem_store(str(folder))
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(prefix, store))
    allowed = {prefix: getattr(icechunk.credentials, "LocalFileSystemAccess", None)}  # Icechunk 1 takes None
    return icechunk.Repository.create(icechunk.in_memory_storage(), config, authorize_virtual_chunk_access=allowed)


def written(index: Any, repo: Any, **options: Any) -> tuple[Any, Any]:
    """What was referenced, and the group as zarr-python reads it from the commit."""
    session = repo.writable_session("main")
    referenced = index.to_icechunk(session.store, **options)
    session.commit("references")
    return referenced, zarr.open_group(repo.readonly_session("main").store, mode="r")


@pytest.mark.parametrize("inline_threshold", [24, 500, 10**6])
def test_zarr_reads_what_h5py_reads(tmp_path: Path, inline_threshold: int) -> None:
    made.expressible(tmp_path / "made.h5")
    referenced, group = written(hs.index(tmp_path / "made.h5"), repository(tmp_path), inline_threshold=inline_threshold)
    assert not referenced.left_out
    assert dict(group.attrs) == {"title": "made", "numbers": [0, 1, 2]}  # strict JSON has no NaN
    with h5py.File(tmp_path / "made.h5") as file:
        arrays = list(made.arrays(file))
        for name, array in arrays:
            expected = array.asstr()[...] if name == "small_words" else array[...]
            np.testing.assert_array_equal(group[name][...], expected, err_msg=name)
            assert group[name].shape == array.shape
        assert referenced.array_count == len(arrays)
        assert referenced.file_count == 1
    assert group["along"].metadata.dimension_names == ("phony_dim_0", "phony_dim_1")


def test_references_are_references(tmp_path: Path) -> None:
    made.expressible(tmp_path / "made.h5")
    repo = repository(tmp_path)
    referenced, _ = written(hs.index(tmp_path / "made.h5"), repo, inline_threshold=24)
    locations = repo.readonly_session("main").all_virtual_chunk_locations()
    assert set(locations) == {(tmp_path / "made.h5").as_uri()}
    assert len(locations) == referenced.chunk_count - 2  # the scalar and the words are stored as values
    (tmp_path / "made.h5").unlink()
    group = zarr.open_group(repo.readonly_session("main").store, mode="r")
    assert group["scalar"][...] == 4.5
    with pytest.raises(icechunk.IcechunkError):
        group["contiguous"][...]


def test_xarray_reads_what_its_own_engine_reads(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    made.packed_netcdf(tmp_path / "made.nc")
    repo = repository(tmp_path)
    written(hs.index(tmp_path / "made.nc"), repo, inline_threshold=0)
    store = repo.readonly_session("main").store
    with (
        xarray.open_zarr(store, consolidated=False) as found,
        xarray.open_dataset(tmp_path / "made.nc", engine="netcdf4") as expected,
    ):
        xarray.testing.assert_identical(found.load(), expected.load())


def test_what_cannot_be_said_is_refused_by_name_and_nothing_is_written(tmp_path: Path) -> None:
    reasons = made.inexpressible(tmp_path / "made.h5")
    for name in ("filled", "other_fill"):  # Zarr 3 distinguishes its fill value from CF's
        del reasons[name]
    with h5py.File(tmp_path / "made.h5", "a") as file:
        file["__hidden"] = np.arange(600)
        file["null"] = h5py.Empty("f4")
        file.create_dataset("big_fields", data=np.zeros(99, [("a", ">i4"), ("b", ">f8")]))
    reasons |= {"__hidden": "reserves names", "null": "no elements", "big_fields": "big-endian"}
    index, repo = hs.index(tmp_path / "made.h5"), repository(tmp_path)
    store = repo.writable_session("main").store
    with pytest.raises(Refused, match="cannot be referenced"):
        index.to_icechunk(store, inline_threshold=0)
    assert list(zarr.open_group(store, mode="a")) == []
    referenced, group = written(index, repo, inline_threshold=0, skip_unsupported=True)
    assert set(referenced.left_out) == set(reasons)
    for name, reason in reasons.items():
        assert reason in referenced.left_out[name], referenced.left_out[name]
    with h5py.File(tmp_path / "made.h5") as file:
        for name in ("fine", "filled", "other_fill"):
            np.testing.assert_array_equal(group[name][...], file[name][...])


def test_chunks_that_are_missing_or_at_hand_and_arrays_without_elements(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "made.h5", "w") as file:
        sparse = file.create_dataset("sparse", (40, 50), ">i2", chunks=(7, 9), fillvalue=-3, compression="gzip")
        sparse[10:20, 20:30] = np.arange(100).reshape(10, 10)
        file.create_dataset("never", (300,), "f8", chunks=(100,), fillvalue=np.nan)
        file.create_dataset("none", (0, 5), "i4", chunks=(1, 5), maxshape=(None, 5))
        file["pairs"] = np.array([(1, 2.5), (3, 4.5)] * 100, [("a", "<i4"), ("b", "<f8")])
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((200,))
        h5py.h5d.create(file.id, b"compact", h5py.h5t.STD_I32BE, space, plist)
        file["compact"][...] = np.arange(200)
    _, group = written(hs.index(tmp_path / "made.h5"), repository(tmp_path), inline_threshold=0)
    with h5py.File(tmp_path / "made.h5") as file:
        for name, array in made.arrays(file):
            np.testing.assert_array_equal(group[name][...], array[...], err_msg=name)
        assert group["sparse"].nchunks_initialized < group["sparse"].nchunks


def test_zarr_2_with_codecs_of_arrays(tmp_path: Path) -> None:
    numcodecs = pytest.importorskip("numcodecs")
    root = zarr.open_group(tmp_path / "made.zarr", mode="w", zarr_format=2)
    data = np.cumsum(np.arange(600).reshape(20, 30) % 7, axis=1).astype("i4")
    chains: dict[str, dict[str, Any]] = {
        "delta": {"filters": [numcodecs.Delta("i4")], "compressors": numcodecs.GZip()},
        "scaled": {"filters": [numcodecs.FixedScaleOffset(5, 2, "f8", "f8")], "compressors": numcodecs.Zlib()},
        "reversed": {"order": "F", "compressors": numcodecs.LZ4()},
        "narrowed": {"filters": [numcodecs.FixedScaleOffset(0, 1, "f8", "i2")], "compressors": None},
    }
    for name, options in chains.items():
        values = data.astype("f8") if name in ("scaled", "narrowed") else data
        root.create_array(name, shape=values.shape, dtype=values.dtype, chunks=(8, 9), **options)[:] = values
    index, repo = hs.index(tmp_path / "made.zarr"), repository(tmp_path)
    referenced, group = written(index, repo, inline_threshold=0, skip_unsupported=True)
    assert list(referenced.left_out) == ["narrowed"]
    for name in group:
        np.testing.assert_array_equal(group[name][...], root[name][...], err_msg=name)


def test_other_formats_and_several_files(tmp_path: Path) -> None:
    fitsio, xarray = pytest.importorskip("fitsio"), pytest.importorskip("xarray")
    folder = tmp_path / "sp ace #1%41?"
    folder.mkdir()
    xarray.Dataset({"x": (("time", "y"), np.arange(30.0).reshape(5, 6)), "z": ("time", np.arange(5))}).to_netcdf(
        folder / "a.nc", engine="scipy", unlimited_dims=["time"]
    )
    fitsio.write(folder / "b.fits", np.arange(600, dtype="i2").reshape(20, 30))
    layout = h5py.VirtualLayout((60, 30), "f8")
    for number in range(3):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file.create_dataset("x", data=np.random.default_rng(1).random((20, 30)), chunks=(10, 7), compression="gzip")
        layout[20 * number : 20 * number + 20] = h5py.VirtualSource(tmp_path / f"{number}.h5", "x", (20, 30))
    with h5py.File(tmp_path / "all.h5", "w") as file:
        file.create_virtual_dataset("v", layout)
    paths = [folder / "a.nc", folder / "b.fits", tmp_path / "all.h5"]
    referenced, group = written(hs.index(paths), repository(tmp_path), inline_threshold=0)
    assert referenced.file_count == 3
    assert sorted(group) == ["a", "all", "b"]
    for path in paths:
        for array in hs.open(path).walk():
            np.testing.assert_array_equal(group[path.stem + array.name][...], array[...])


def test_files_that_changed_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "made.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(1000)
    index, repo = hs.index(path), repository(tmp_path)
    _, group = written(index, repo)
    assert group["x"][3] == 3
    later = path.stat().st_mtime + 10
    os.utime(path, (later, later))
    with pytest.raises(icechunk.IcechunkError):
        group["x"][:]
    store = repo.writable_session("main").store
    with pytest.raises(FileChanged, match=r"made\.h5 has changed"):
        index.to_icechunk(store)


def test_stores_that_cannot_take_them(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "made.h5", "w") as file:
        file["x"] = np.arange(1000)
    index, repo = hs.index(tmp_path / "made.h5"), repository(tmp_path)
    with pytest.raises(UsageError, match="not an Icechunk store"):
        index.to_icechunk(tmp_path)
    with pytest.raises(UsageError, match="read-only"):
        index.to_icechunk(repo.readonly_session("main").store)
    bare = icechunk.Repository.create(icechunk.in_memory_storage())
    with pytest.raises(UsageError, match=f"no virtual chunk containers.*{tmp_path.as_uri()}/"):
        index.to_icechunk(bare.writable_session("main").store)
    with pytest.raises(UsageError, match=r"has containers only for .*elsewhere/"):
        index.to_icechunk(repository(tmp_path / "elsewhere").writable_session("main").store)
    session = repo.writable_session("main")
    index.to_icechunk(session.store)
    with pytest.raises(UsageError, match="already has x"):
        index.to_icechunk(session.store)


def test_objects_of_s3(s3: str, tmp_path: Path) -> None:
    boto3 = pytest.importorskip("boto3", reason="not installed: pip install 'hyperslab[dev]'")
    with h5py.File(tmp_path / "made.h5", "w") as file:
        file.create_dataset("x", data=np.arange(1000), chunks=(300,), compression="gzip")
    login = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=s3, **login)
    client.create_bucket(Bucket="indexed")
    options = {"key": "a", "secret": "b", "endpoint_url": s3}
    for name in ("folder/made=1.h5", "folder a/made #1?.h5"):
        client.upload_file(tmp_path / "made.h5", "indexed", name)
    store = icechunk.s3_store(region="us-east-1", endpoint_url=s3, allow_http=True, force_path_style=True)
    config = icechunk.RepositoryConfig.default()
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer("s3://indexed/", store))
    login = {"s3://indexed/": icechunk.s3_credentials(access_key_id="a", secret_access_key="b")}
    allowed = icechunk.containers_credentials(login)
    repo = icechunk.Repository.create(icechunk.in_memory_storage(), config, authorize_virtual_chunk_access=allowed)
    with pytest.raises(Refused, match="URLs escape"):
        written(hs.index(f"s3://indexed/{name}", storage_options=options), repo)
    name = "folder/made=1.h5"
    _, group = written(hs.index(f"s3://indexed/{name}", storage_options=options), repo, inline_threshold=0)
    np.testing.assert_array_equal(group["x"][:], np.arange(1000))
    with h5py.File(tmp_path / "made.h5", "a") as file:
        file["x"][...] = 0
    client.upload_file(tmp_path / "made.h5", "indexed", name)  # another ETag
    with pytest.raises(icechunk.IcechunkError):
        group["x"][:]

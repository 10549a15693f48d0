"""VirtualiZarr with our parser and manifests; and its references, opened by us."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import reference_files as made

import hyperslab as hs
from hyperslab.errors import Refused, UsageError
from hyperslab.references.virtualizarr import HyperslabParser

xarray = pytest.importorskip("xarray")
virtualizarr = pytest.importorskip("virtualizarr", reason="not installed: pip install 'hyperslab[virtualizarr]'")
pytestmark = pytest.mark.filterwarnings("ignore:.*(Zarr V3 spec|Zarr version 3 spec|consolidated|Pandas)")


def registry_of(prefix: str, store: Any) -> Any:
    from obspec_utils.registry import ObjectStoreRegistry

    return ObjectStoreRegistry({prefix: store})


@pytest.fixture
def registry() -> Any:
    from obstore.store import LocalStore

    return registry_of("file://", LocalStore())


def weather(path: Path, **options: Any) -> None:
    """A dataset with times, packed and missing values, a scalar, and attributes."""
    data = np.where(np.arange(60) % 7, np.arange(60) / 10, np.nan).reshape(6, 10)
    xarray.Dataset(
        {"t": (("time", "x"), data, {"units": "K"}), "packed": (("time", "x"), data), "crs": ((), 7)},
        {"time": np.array("2020-01-01", "M8[ns]") + np.arange(6) * np.timedelta64(1, "D"), "x": np.arange(10.0)},
        {"title": "made", "numbers": np.arange(3)},
    ).to_netcdf(path, **options)


ENCODING = {
    "t": {"chunksizes": (3, 4), "zlib": True, "shuffle": True},
    "packed": {"dtype": "i2", "scale_factor": 0.1, "_FillValue": -1, "chunksizes": (3, 10)},
}


@pytest.mark.parametrize(
    "options",
    [
        {"engine": "netcdf4", "encoding": ENCODING},
        {"engine": "scipy", "unlimited_dims": ["time"]},
        {"engine": "scipy", "format": "NETCDF3_64BIT"},
    ],
)
def test_loaded_data_are_what_the_library_reads(tmp_path: Path, registry: Any, options: dict[str, Any]) -> None:
    path = tmp_path / "sp ace.nc"
    weather(path, **options)
    parser = HyperslabParser()
    with (
        xarray.open_dataset(path, engine=options["engine"]) as expected,
        virtualizarr.open_virtual_dataset(str(path), registry=registry, parser=parser) as virtual,
    ):
        assert isinstance(virtual["t"].data, virtualizarr.manifests.ManifestArray)
        np.testing.assert_array_equal(virtual["time"], expected["time"])
        manifests = parser(path.as_uri(), registry)
        with xarray.open_zarr(manifests, consolidated=False, zarr_format=3) as found:
            xarray.testing.assert_identical(found.load(), expected.load())


def test_every_codec_and_group_is_read_element_by_element(tmp_path: Path, registry: Any) -> None:
    zarr = pytest.importorskip("zarr")
    path = tmp_path / "made.h5"
    made.expressible(path)
    parser = HyperslabParser(skip_variables=["small_words"])
    group = zarr.open_group(parser(path.as_uri(), registry), mode="r")
    with h5py.File(path) as file:
        for name, array in made.arrays(file):
            if name != "small_words":
                np.testing.assert_array_equal(group[name][...], array[...], err_msg=name)
    inner = zarr.open_group(HyperslabParser(group="/codecs")(path.as_uri(), registry), mode="r")
    np.testing.assert_array_equal(inner["zstd_i4"][...], group["codecs/zstd_i4"][...])
    with virtualizarr.open_virtual_datatree(path.as_uri(), registry=registry, parser=parser) as tree:
        assert set(tree["codecs"].data_vars) == set(group["codecs"])
    with pytest.raises(UsageError, match="is an array"):
        HyperslabParser(group="scalar")(path.as_uri(), registry)


def test_manifests_are_those_of_its_own_parser(tmp_path: Path, registry: Any) -> None:
    path = tmp_path / "made.nc"
    weather(path, engine="netcdf4", encoding=ENCODING)
    options = {"registry": registry, "loadable_variables": []}
    ours = virtualizarr.open_virtual_dataset(str(path), parser=HyperslabParser(), **options)
    theirs = virtualizarr.open_virtual_dataset(str(path), parser=virtualizarr.parsers.HDFParser(), **options)
    assert set(ours.variables) == set(theirs.variables)
    for name, variable in ours.variables.items():
        one, other = variable.data, theirs[name].variable.data
        assert one.manifest.dict() == other.manifest.dict()
        assert (one.shape, one.metadata.chunk_grid, one.dtype) == (other.shape, other.metadata.chunk_grid, other.dtype)
        assert [type(codec) for codec in one.metadata.codecs] == [type(codec) for codec in other.metadata.codecs]


def test_what_it_cannot_say_is_refused_by_name(tmp_path: Path, registry: Any) -> None:
    reasons = made.inexpressible(tmp_path / "made.h5")
    url = (tmp_path / "made.h5").as_uri()
    with pytest.raises(Refused, match="cannot be referenced"):
        HyperslabParser()(url, registry)
    (tmp_path / "a#b.h5").write_bytes((tmp_path / "made.h5").read_bytes())
    with pytest.raises(Refused, match="contains #, % or"):
        HyperslabParser(skip_variables=set(reasons))((tmp_path / "a#b.h5").as_uri(), registry)
    found = HyperslabParser(skip_unsupported=True)(url, registry).to_virtual_dataset(loadable_variables=[])
    assert set(found.variables) == {"fine", "filled", "other_fill"} <= {"fine", *reasons}


def test_files_are_concatenated(tmp_path: Path, registry: Any) -> None:
    paths = [tmp_path / f"{number}.nc" for number in range(3)]
    for path in paths:
        weather(path, engine="netcdf4", encoding=ENCODING, unlimited_dims=["time"])
    options = {
        "concat_dim": "time",
        "combine": "nested",
        "data_vars": "minimal",
        "coords": "minimal",
        "compat": "override",
    }
    with virtualizarr.open_virtual_mfdataset(
        [str(path) for path in paths], registry=registry, parser=HyperslabParser(), **options
    ) as virtual:
        refs = tmp_path / "all.json"
        virtual[["packed"]].vz.to_kerchunk(refs, format="json")
    found = hs.open(refs)["packed"][...]
    with h5py.File(paths[0]) as file:
        np.testing.assert_array_equal(found, np.concatenate([file["packed"][...]] * 3))


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_references_made_by_virtualizarr_open_in_ours(tmp_path: Path, registry: Any, kind: str) -> None:
    path = tmp_path / "made.nc"
    weather(path, engine="netcdf4", encoding=ENCODING)
    for parser in (HyperslabParser(), virtualizarr.parsers.HDFParser()):
        refs = tmp_path / f"{type(parser).__name__}.{kind}"
        with virtualizarr.open_virtual_dataset(str(path), registry=registry, parser=parser) as virtual:
            kept = virtual.drop_vars("crs") if kind == "parquet" else virtual  # fsspec loses scalars there
            kept.vz.to_kerchunk(refs, format=kind)
        opened = hs.open(refs)
        with h5py.File(path) as file:
            for name in kept.variables:
                np.testing.assert_array_equal(opened[name][...], file[name][...], err_msg=name)


def test_objects_of_s3_by_the_settings_of_the_store(s3: str, tmp_path: Path) -> None:
    boto3 = pytest.importorskip("boto3", reason="not installed: pip install 'hyperslab[dev]'")
    from obstore.store import S3Store

    weather(tmp_path / "made.nc", engine="netcdf4", encoding=ENCODING)
    login = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=s3, **login)
    client.create_bucket(Bucket="virtual")
    client.upload_file(tmp_path / "made.nc", "virtual", "made.nc")
    options = {"endpoint": s3, "region": "us-east-1", "access_key_id": "a", "secret_access_key": "b"}
    store = S3Store("virtual", **options, client_options={"allow_http": True})
    registry = registry_of("s3://virtual", store)
    with (
        virtualizarr.open_virtual_dataset("s3://virtual/made.nc", registry=registry, parser=HyperslabParser()) as found,
        xarray.open_dataset(tmp_path / "made.nc", engine="netcdf4") as expected,
    ):
        assert found["t"].data.manifest.dict()["0.0"]["path"] == "s3://virtual/made.nc"
        np.testing.assert_array_equal(found["time"], expected["time"])

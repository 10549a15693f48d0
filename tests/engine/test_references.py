"""References to other files: made by Kerchunk and VirtualiZarr, read by hyperslab as by xarray and h5py."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import hyperslab as hs
from hyperslab._core import ArchiveFile
from hyperslab.errors import DamagedFile, ReadError, Unsupported

FIELD = np.arange(7 * 9 * 11, dtype="<f4").reshape(7, 9, 11)
NO_FILE = 2**32 - 1


@pytest.fixture(scope="module")
def hdf5(tmp_path_factory) -> Path:
    """Chunked and filtered, contiguous, big-endian, in groups, scalars, and chunks that were never written."""
    path = tmp_path_factory.mktemp("hdf5") / "made.h5"
    with h5py.File(path, "w") as file:
        file.attrs["title"] = "made"
        file.create_dataset("field", data=FIELD, chunks=(2, 4, 5), compression="gzip", shuffle=True)
        file.create_dataset("checked", data=FIELD, chunks=(3, 9, 11), fletcher32=True)
        file.create_dataset("plain", data=FIELD[0].astype(">i2"))
        file.create_dataset("group/inner/deep", data=FIELD[:, 0, 0].astype("<i8"), chunks=(3,))
        file.create_dataset("scalar", data=np.float64(2.5))
        sparse = file.create_dataset("sparse", shape=(10,), chunks=(4,), dtype="<u2", fillvalue=7)
        sparse[4:8] = 3
        file["field"].attrs["units"] = "K"
        for name, length in [("x", 7), ("y", 9), ("z", 11), ("s", 10)]:
            file.create_dataset(name, data=np.arange(length) / 2).make_scale(name)
        for array, names in [("field", "xyz"), ("checked", "xyz"), ("plain", "yz"), ("sparse", "s")]:
            for dimension, name in zip(file[array].dims, names, strict=True):
                dimension.attach_scale(file[name])
    return path


def same(found: hs.Group, path: Path) -> int:
    """Compare every array that the references have with h5py's; how many there are."""
    names = []
    found.visititems(lambda name, node: names.append(name) if isinstance(node, hs.Array) else None)
    with h5py.File(path) as file:
        for name in names:
            expected = file[name][()]
            np.testing.assert_array_equal(found[name][...], expected, err_msg=name)
            if expected.ndim == 3:
                np.testing.assert_array_equal(found[name][1:6:2, 3, ::4], expected[1:6:2, 3, ::4])
    return len(names)


def kerchunked(path: Path, **options: Any) -> dict[str, Any]:
    kerchunk = pytest.importorskip("kerchunk.hdf", reason="not installed: pip install 'hyperslab[benchmarks]'")
    return kerchunk.SingleHdf5ToZarr(str(path), **options).translate()


def written(references: object, folder: Path, name: str = "references.json") -> str:
    path = folder / name
    path.write_text(json.dumps(references))
    return str(path)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("inline", [0, 500])
def test_kerchunk_of_hdf5(hdf5, tmp_path, version, inline):
    references = kerchunked(hdf5, inline_threshold=inline)
    assert references["version"] == 1
    if version == 0:
        references = references["refs"]
    with hs.open(written(references, tmp_path)) as found:
        assert found.format == "references"
        assert found.attrs["title"] == "made"
        assert found["field"].attrs["units"] == "K"
        assert found["field"].dims == ("x", "y", "z")
        assert same(found, hdf5) >= 8
        np.testing.assert_array_equal(found["sparse"][...], [7] * 4 + [3] * 4 + [7] * 2)


def test_xarray_reads_the_same(hdf5, tmp_path):
    xarray = pytest.importorskip("xarray")
    references = kerchunked(hdf5)
    path = written(references, tmp_path)
    with (
        xarray.open_dataset(path, engine="kerchunk", mask_and_scale=False) as expected,
        hs.open(path) as found,
    ):
        for name in ("field", "plain", "sparse", "x"):
            np.testing.assert_array_equal(found[name][...], expected[name].values, err_msg=name)


def test_kerchunk_of_netcdf3(tmp_path):
    netcdf3 = pytest.importorskip("kerchunk.netCDF3", reason="not installed: pip install 'hyperslab[benchmarks]'")
    netcdf4 = pytest.importorskip("netCDF4")
    path = tmp_path / "made.nc"
    with netcdf4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        file.createDimension("time", None)
        file.createDimension("x", 5)
        file.createVariable("fixed", "i2", ("x",))[:] = np.arange(5)
        for name, kind in [("record", "f4"), ("other", "i1")]:
            file.createVariable(name, kind, ("time", "x"))[:] = np.arange(20).reshape(4, 5)
    references = netcdf3.NetCDF3ToZarr(str(path), inline_threshold=0).translate()
    with hs.open(written(references, tmp_path)) as found, netcdf4.Dataset(path) as file:
        for name in ("fixed", "record", "other"):
            np.testing.assert_array_equal(found[name][...], file[name][...], err_msg=name)


def test_kerchunk_of_many_files(tmp_path):
    combine = pytest.importorskip("kerchunk.combine", reason="not installed: pip install 'hyperslab[benchmarks]'")
    xarray = pytest.importorskip("xarray")
    parts = []
    for year in range(3):
        path = tmp_path / f"{year}.nc"
        with h5py.File(path, "w") as file:
            file.create_dataset("time", data=np.arange(2.0) + 2 * year).make_scale("time")
            file.create_dataset("x", data=np.arange(3.0)).make_scale("x")
            field = file.create_dataset("field", data=np.full((2, 3), year, "<i4"), chunks=(2, 3), compression="gzip")
            field.dims[0].attach_scale(file["time"])
            field.dims[1].attach_scale(file["x"])
        parts.append(kerchunked(path))
    references = combine.MultiZarrToZarr(parts, concat_dims=["time"], identical_dims=["x"]).translate()
    path = written(references, tmp_path)
    with hs.open(path) as found, xarray.open_dataset(path, engine="kerchunk", mask_and_scale=False) as expected:
        for name in ("field", "time", "x"):
            np.testing.assert_array_equal(found[name][...], expected[name].values, err_msg=name)
        assert found["field"].shape == (6, 3)


def test_virtualizarr(hdf5, tmp_path):
    virtualizarr = pytest.importorskip("virtualizarr", reason="not installed: pip install 'hyperslab[benchmarks]'")
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore
    from virtualizarr.parsers import HDFParser

    registry = ObjectStoreRegistry({"file://": LocalStore()})
    options = {"loadable_variables": ["x"], "decode_times": False}
    with virtualizarr.open_virtual_dataset(
        url=f"file://{hdf5}", parser=HDFParser(), registry=registry, **options
    ) as dataset:
        dataset.virtualize.to_kerchunk(str(tmp_path / "references.json"), format="json")
    with hs.open(tmp_path / "references.json") as found:
        assert same(found, hdf5) >= 6


def test_relative_files_are_beside_the_references(hdf5, tmp_path):
    document = json.dumps({"zarr_format": 2, "shape": [9, 11], "chunks": [9, 11], "dtype": ">i2", "fill_value": 0})
    with h5py.File(hdf5) as file:
        offset = file["plain"].id.get_offset()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "copy.h5").write_bytes(hdf5.read_bytes())
    references: dict[str, Any] = {".zgroup": {"zarr_format": 2}, "a/.zarray": document, "b/.zarray": document}
    references["a/0.0"] = ["data/copy.h5", offset, 198]
    (tmp_path / "whole").write_bytes(FIELD[0].astype(">i2").tobytes())
    references["b/0.0"] = ["whole"]
    with hs.open(written(references, tmp_path)) as found:
        np.testing.assert_array_equal(found["a"][...], FIELD[0])
        np.testing.assert_array_equal(found["b"][...], FIELD[0])


@pytest.mark.parametrize(
    ("reference", "error", "words"),
    [
        (["gone.nc", 0, 4], ReadError, "gone.nc"),
        (["gone.nc"], ReadError, "gone.nc"),
        (["short", 2, 4], DamagedFile, "short"),
        (["short", 1 << 62, 4], DamagedFile, "short"),
        (["short", 0, 0], DamagedFile, "short"),
        (["short", 0, 3], DamagedFile, "short"),
        ("abc", DamagedFile, "chunk"),
        (["s3://bucket/a.nc"], Unsupported, "s3://bucket/a.nc"),
        (["s3://bucket/a.nc", 0, 4], ReadError, "s3://bucket/a.nc"),
    ],
)
def test_references_that_lead_nowhere(tmp_path, reference, error, words):
    document = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|u1", "fill_value": 0, "compressor": None}
    references = {".zgroup": {"zarr_format": 2}, "x/.zarray": document, "y/.zarray": document, "x/0": reference}
    (tmp_path / "short").write_bytes(b"12345")
    with hs.open(written(references, tmp_path)) as found:
        with pytest.raises(error, match=words):
            found["x"][...]
        np.testing.assert_array_equal(found["y"][...], np.zeros(4))


@pytest.mark.parametrize("text", ["", " {", "{]", "{}", '{"version": 1}', '{"version": 9, "refs": {}}', "[1]", "null"])
def test_other_json_is_refused(tmp_path, text):
    (tmp_path / "references.json").write_text(text)
    with pytest.raises((DamagedFile, Unsupported), match=r"references\.json"):
        hs.open(tmp_path / "references.json")


@pytest.mark.parametrize("has_paths", [True, False])
@pytest.mark.parametrize("is_folder", [True, False])
def test_chunk_stores_of_consolidated_metadata(hdf5, tmp_path, has_paths, is_folder):
    zarray = {"zarr_format": 2, "shape": [7, 9, 11], "chunks": [2, 4, 5], "dtype": "<f4", "fill_value": 0.0}
    zarray |= {"order": "C", "filters": [{"id": "shuffle", "elementsize": 4}], "compressor": {"id": "zlib", "level": 4}}
    store: dict[str, Any] = {}
    with h5py.File(hdf5) as file:
        field = file["field"]
        for number in range(field.id.get_num_chunks()):
            chunk = field.id.get_chunk_info(number)
            key = ".".join(str(at // length) for at, length in zip(chunk.chunk_offset, field.chunks, strict=True))
            place = {"offset": chunk.byte_offset, "size": chunk.size}
            store[f"field/{key}" if has_paths else key] = place
    store["source"] = {"array_name": "/field", "uri": hdf5.as_uri()}
    metadata = {".zgroup": {"zarr_format": 2}, "field/.zarray": zarray, "field/.zchunkstore": store}
    path = written({"zarr_consolidated_format": 1, "metadata": metadata}, tmp_path, ".zmetadata")
    with hs.open(tmp_path if is_folder else path) as found:
        assert same(found, hdf5) == 1


def test_tables(hdf5, tmp_path):
    document = {"zarr_format": 2, "shape": [7, 9, 11], "chunks": [2, 4, 5], "dtype": "<f4", "fill_value": 0.0}
    document |= {"filters": [{"id": "shuffle", "elementsize": 4}], "compressor": {"id": "zlib"}}
    with h5py.File(hdf5) as file:
        chunks = [file["field"].id.get_chunk_info(number) for number in range(36)]
        encoded = file["field"].id.read_direct_chunk((0, 0, 0))[1]
    places = {np.ravel_multi_index(np.array(chunk.chunk_offset) // (2, 4, 5), (4, 3, 3)): chunk for chunk in chunks}
    files = np.array([NO_FILE] + [1] * 34 + [NO_FILE], "u4")
    offsets = np.array([places[index].byte_offset for index in range(36)], "u8")
    lengths = np.array([places[index].size for index in range(36)], "u8")
    expected = FIELD.copy()
    expected[6:, 8:, 10:] = 0
    documents = {"g/.zarray": json.dumps(document).encode(), ".zgroup": b'{"zarr_format": 2}'}
    names = ["elsewhere", hdf5.name]

    def made(table: tuple[Any, ...]) -> ArchiveFile:
        return ArchiveFile.of_references(documents, {"g": table}, names, str(hdf5.parent), 0)

    archive = made((files, offsets, lengths, {0: encoded}))
    assert (archive.format, archive.array_count) == ("references", 1)
    (_, kind, number) = archive.links(0)[0]
    assert kind == "array"
    axes = [(0, 1, length, 1) for length in expected.shape]
    out = np.empty(expected.shape, "<f4")
    archive.array(number, "/g").read_into(axes, out.reshape(-1).view("u1"), None, False)
    np.testing.assert_array_equal(out, expected)
    for table in [
        (files[:-1], offsets, lengths, {}),
        (files + np.uint32(1), offsets, lengths, {}),
        (files, ~np.zeros_like(offsets), lengths, {}),
    ]:
        with pytest.raises(DamagedFile, match="table of chunks"):
            made(table)


def test_inline_data_of_any_bytes(tmp_path):
    values = np.random.default_rng(1).integers(0, 256, 300, "u1")
    document = {"zarr_format": 2, "shape": [300], "chunks": [100], "dtype": "|u1", "fill_value": 0}
    references: dict[str, Any] = {"x/.zarray": document, ".zgroup": {"zarr_format": 2}}
    for number in range(3):
        part = values[100 * number :][:100].tobytes()
        references[f"x/{number}"] = "base64:" + base64.b64encode(part).decode()
    with hs.open(written(references, tmp_path)) as found:
        np.testing.assert_array_equal(found["x"][...], values)
        np.testing.assert_array_equal(found["x"][50:250:3], values[50:250:3])

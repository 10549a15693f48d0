"""Zarr's rarer data types, checksums and shards within shards, written by zarr-python and read by hyperslab."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hyperslab as hs
from hyperslab.errors import DamagedFile

zarr = pytest.importorskip("zarr", reason="not installed: pip install 'hyperslab[formats]'")
numcodecs = pytest.importorskip("numcodecs", reason="not installed: pip install 'hyperslab[formats]'")

MOMENTS = np.arange(-3, 6)
RECORDS = np.array([(1, 2.5, b"ab"), (3, 4.5, b"cd")], dtype=[("i", "<i2"), ("f", "<f8"), ("s", "S2")])
NESTED = np.array([(1, (2, 3.0)), (4, (5, 6.0))], dtype=[("i", "<i2"), ("n", [("a", "<i4"), ("b", "<f4")])])
ARRAYS = {
    "bytes": np.array([b"a", b"bcd"]),
    "text": np.array(["a", "日本", ""]),
    "big-endian text": np.array(["a", "日本"], dtype=">U3"),
    "raw": np.array([b"abcde", b"12345"], dtype="V5"),
    "records": RECORDS,
    "nested records": NESTED,
    **{
        dtype: MOMENTS.astype(dtype)
        for dtype in ("M8[ns]", "M8[D]", "m8[s]", "m8[10ms]", "M8[25s]", ">M8[us]", ">m8[h]")
    },
}


def written(folder: Path, data: np.ndarray[Any, Any], version: int, **options: Any) -> np.ndarray[Any, Any]:
    """Write an array "a" and read it again, both by zarr-python."""
    zarr.create_group(folder, zarr_format=version)
    options = {"chunks": data.shape, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a data type has no specification
        array = zarr.create_array(folder / "a", shape=data.shape, dtype=data.dtype, zarr_format=version, **options)
        array[...] = data
        expected: np.ndarray[Any, Any] = array[...]
    return expected


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", ARRAYS)
def test_data_types(tmp_path, version, kind):
    expected = written(tmp_path / "z", ARRAYS[kind], version, chunks=(2,))
    with hs.open(tmp_path / "z") as file:
        stored = expected.dtype if version == 2 else expected.dtype.newbyteorder("<")  # version 3 stores little-endian
        assert file["a"].dtype == stored
        np.testing.assert_array_equal(file["a"][...], expected)
        np.testing.assert_array_equal(file["a"][1:], expected[1:])


def test_fill_values_of_moments(tmp_path):
    zarr.create_group(tmp_path / "z", zarr_format=2)
    for name, fill in [("a", np.datetime64("NaT")), ("b", np.datetime64("2000-01-01"))]:
        zarr.create_array(tmp_path / "z" / name, shape=(3,), dtype="M8[D]", fill_value=fill, zarr_format=2)
    with hs.open(tmp_path / "z") as file:
        assert np.isnat(file["a"][...]).all()
        np.testing.assert_array_equal(file["b"][...], np.full(3, "2000-01-01", "M8[D]"))


CHECKSUMS = [
    *[(name, {"location": at}) for name in ("CRC32", "Adler32", "CRC32C") for at in ("start", "end")],
    *[(name, {}) for name in ("CRC32", "Adler32", "CRC32C", "Fletcher32")],
]


def checksum(name: str, options: dict[str, str]) -> Any:
    from numcodecs import checksum32, fletcher32

    kind = getattr(checksum32, name, None) or getattr(fletcher32, name)
    return kind(**options)


@pytest.mark.parametrize(("name", "options"), CHECKSUMS)
@pytest.mark.parametrize("is_compressed", [True, False])
def test_checksums(tmp_path, name, options, is_compressed):
    data = np.arange(61, dtype="<i4")
    codec = checksum(name, options)
    chain = {"filters": [codec], "compressors": numcodecs.Zlib()} if is_compressed else {"compressors": codec}
    written(tmp_path / "z", data, 2, chunks=(20,), **chain)
    with hs.open(tmp_path / "z") as file:
        np.testing.assert_array_equal(file["a"][...], data)
        np.testing.assert_array_equal(file["a"][15:45:7], data[15:45:7])
    if is_compressed:
        return
    chunk = tmp_path / "z" / "a" / "1"
    good = chunk.read_bytes()
    for damaged in (good[:11] + bytes([good[11] ^ 1]) + good[12:], good[:-1], good[:3]):
        chunk.write_bytes(damaged)
        with hs.open(tmp_path / "z") as file, pytest.raises(DamagedFile, match="chunk"):
            file["a"][...]


@pytest.mark.parametrize("name", ["CRC32", "Adler32", "CRC32C", "Fletcher32"])
def test_checksums_of_version_3(tmp_path, name):
    codecs = pytest.importorskip("zarr.codecs.numcodecs")
    data = np.arange(61, dtype="<i4")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the codec has no specification
        codec = getattr(codecs, name)()
    written(tmp_path / "z", data, 3, chunks=(20,), compressors=[codec])
    with hs.open(tmp_path / "z") as file:
        np.testing.assert_array_equal(file["a"][...], data)


def test_shards_within_shards(tmp_path):
    from zarr.codecs import BytesCodec, ShardingCodec, ZstdCodec

    inner = ShardingCodec(chunk_shape=(2, 5), codecs=[BytesCodec(), ZstdCodec()])
    middle = ShardingCodec(chunk_shape=(4, 10), codecs=[inner], index_location="start")
    data = np.arange(18 * 25).reshape(18, 25)
    data[8:16, :20] = 0  # a shard that is not there
    data[:2, :5] = 0  # and a chunk
    written(tmp_path / "z", data, 3, chunks=(8, 20), serializer=middle, compressors=None, filters=None)
    with hs.open(tmp_path / "z") as file:
        np.testing.assert_array_equal(file["a"][...], data)
        np.testing.assert_array_equal(file["a"][1:17:3, 4:22], data[1:17:3, 4:22])


def test_shards_that_share_their_insides_are_damaged(tmp_path):
    """A few bytes must not become chunks without number."""
    sharding: dict[str, Any] = {"codecs": ["bytes"]}
    for length in (1, 1000, 1000_000):
        configuration = {"chunk_shape": [length], "index_codecs": ["bytes"], **sharding}
        sharding = {"codecs": [{"name": "sharding_indexed", "configuration": configuration}]}
    document = {"zarr_format": 3, "node_type": "array", "shape": [10**9], "data_type": "uint8", "fill_value": 0}
    document |= {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [10**9]}}, **sharding}
    document |= {"chunk_key_encoding": {"name": "default"}}
    index = np.tile(np.array([0, 16000], "<u8"), 1000).tobytes()
    (tmp_path / "z" / "a" / "c").mkdir(parents=True)
    (tmp_path / "z" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    (tmp_path / "z" / "a" / "zarr.json").write_text(json.dumps(document))
    (tmp_path / "z" / "a" / "c" / "0").write_bytes(index)
    with hs.open(tmp_path / "z") as file, pytest.raises(DamagedFile, match="overlap"):
        file["a"][:10]

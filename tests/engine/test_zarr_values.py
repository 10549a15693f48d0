"""Zarr's elements of variable length: text, bytes, sequences and JSON, as zarr-python and numcodecs read them."""

from __future__ import annotations

import json
import struct
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hyperslab as hs
from draws import few
from hyperslab.errors import DamagedFile, Unsupported

zarr = pytest.importorskip("zarr", reason="not installed: pip install 'hyperslab[formats]'")
numcodecs = pytest.importorskip("numcodecs", reason="not installed: pip install 'hyperslab[formats]'")

TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
BYTES = st.binary(max_size=12)
NUMBERS = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5).map(lambda found: np.array(found, "<i4"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
VALUES = {"vlen-utf8": TEXTS, "vlen-bytes": BYTES, "vlen-array": NUMBERS, "json2": JSON}
COMPRESSORS = [None, {"id": "zlib", "level": 1}, {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1}]


def objects(values: list[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An array of objects, in C order."""
    made = np.empty(len(values), object)
    for place, value in enumerate(values):
        made[place] = value
    return made.reshape(shape)


def plain(read: Any) -> Any:
    """What can be compared: nested lists."""
    found = np.asarray(read, object) if not isinstance(read, np.ndarray) else read
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in found.reshape(-1).tolist()]


def write_v2(
    folder: Path,
    array: np.ndarray[Any, Any],
    chunks: tuple[int, ...],
    filters: list[dict[str, Any]],
    compressor: dict[str, Any] | None = None,
    fill: Any = None,
    order: str = "C",
) -> None:
    """A version 2 group with an array "a", each chunk encoded by numcodecs."""
    (folder / "a").mkdir(parents=True)
    (folder / ".zgroup").write_text('{"zarr_format": 2}')
    document = {"zarr_format": 2, "shape": array.shape, "chunks": chunks, "dtype": "|O", "fill_value": fill}
    document |= {"order": order, "filters": filters, "compressor": compressor}
    (folder / "a" / ".zarray").write_text(json.dumps(document))
    codecs = [numcodecs.get_codec(dict(codec)) for codec in [*filters, *([compressor] if compressor else [])]]
    grid = [range(-(-length // chunk)) for length, chunk in zip(array.shape, chunks, strict=True)]
    for index in np.ndindex(*map(len, grid)):
        part = array[tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, chunks, strict=True))]
        whole = objects([part.reshape(-1)[0]] * int(np.prod(chunks)), chunks)
        whole[tuple(slice(length) for length in part.shape)] = part
        encoded: Any = np.array(whole, order=order)
        for codec in codecs:
            encoded = codec.encode(encoded)
        (folder / "a" / ".".join(map(str, index))).write_bytes(bytes(encoded))


def filter_of(codec: str) -> dict[str, Any]:
    return {"id": codec, "dtype": "<i4"} if codec == "vlen-array" else {"id": codec}


@pytest.mark.parametrize("codec", VALUES)
@settings(max_examples=few(25), deadline=None)
@given(data=st.data())
def test_version_2(codec, data):
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=2)))
    chunks = tuple(data.draw(st.integers(1, length)) for length in shape)
    count = int(np.prod(shape))
    values = data.draw(st.lists(VALUES[codec], min_size=count, max_size=count))
    array = objects(values, shape)
    with tempfile.TemporaryDirectory() as folder:
        order, compressor = data.draw(st.sampled_from("CF")), data.draw(st.sampled_from(COMPRESSORS))
        write_v2(Path(folder) / "z", array, chunks, [filter_of(codec)], compressor, order=order)
        with hs.open(Path(folder) / "z") as file:
            found = file["a"]
            assert codec in found.codecs
            assert plain(found[...]) == plain(array)
            start = tuple(data.draw(st.integers(0, length - 1)) for length in shape)
            some = tuple(slice(begin, None, data.draw(st.integers(1, 3))) for begin in start)
            assert plain(found[some]) == plain(array[some])
            last = np.array([[length - 1 for length in shape], [0] * len(shape)])
            assert plain(found.read(hs.Points(last))) == plain(array[tuple(last.T)])
        if codec in ("vlen-utf8", "vlen-bytes") and order == "C":  # zarr-python 3 knows no other objects
            theirs = zarr.open_group(Path(folder) / "z", mode="r")["a"][...]
            assert plain(theirs.astype(object)) == plain(array)


@pytest.mark.parametrize("kind", ["string", "variable_length_bytes"])
@pytest.mark.parametrize("sharded", [False, True])
@settings(max_examples=few(20), deadline=None)
@given(data=st.data())
def test_version_3(kind, sharded, data):
    values = data.draw(st.lists(TEXTS if kind == "string" else BYTES, min_size=1, max_size=24))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a data type has no specification
        zarr.create_group(folder, zarr_format=3, overwrite=True)
        options = {"shards": (4,)} if sharded else {}
        array = zarr.create_array(Path(folder) / "a", shape=(len(values) + 3,), chunks=(2,), dtype=kind, **options)
        array[: len(values)] = np.array(values, object)
        expected = plain(array[...].astype(object))
        with hs.open(folder) as file:
            assert plain(file["a"][...]) == expected
            assert plain(file["a"][::2]) == expected[::2]
            assert plain(file["a"].read(threads=1)) == expected


@pytest.mark.parametrize(
    ("codec", "fill", "expected"),
    [
        *(("vlen-utf8", fill, text) for fill, text in [(None, ""), ("", ""), ("fil\0l", "fil\0l"), (0, "0")]),
        *(("vlen-bytes", fill, value) for fill, value in [(None, b""), ("", b""), ("YWJj", b"abc")]),
        ("json2", {"a": 1}, {"a": 1}), ("json2", None, None), ("json2", 0, 0),
    ],
)  # fmt: skip
def test_fill_values(tmp_path, codec, fill, expected):
    write_v2(tmp_path / "z", objects([expected] * 4, (4,)), (2,), [filter_of(codec)], fill=fill)
    (tmp_path / "z" / "a" / "1").unlink()
    with hs.open(tmp_path / "z") as file:
        assert plain(file["a"][2:]) == [expected, expected]
        assert file["a"].fill_value == (None if fill is None else expected)
    if codec != "json2":
        assert plain(zarr.open_group(tmp_path / "z", mode="r")["a"][2:].astype(object)) == [expected, expected]


@pytest.mark.parametrize(
    "data_type", ["fixed_length_utf32", "null_terminated_bytes", "raw", "numpy.datetime64", "numpy.timedelta64"]
)
def test_other_data_types_of_version_3(tmp_path, data_type):
    dtypes = {"fixed_length_utf32": "<U3", "null_terminated_bytes": "S3", "raw": "V3", "numpy.datetime64": "<M8[10s]"}
    values = np.frombuffer(bytes(range(96)), dtypes.get(data_type, "<m8[ms]"))[:8]
    values = np.array(["a", "", "\u00fc\u20acz"], "<U3") if data_type == "fixed_length_utf32" else values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.create_group(tmp_path / "z", zarr_format=3)
        array = zarr.create_array(tmp_path / "z" / "a", shape=values.shape, chunks=(2,), dtype=values.dtype)
        array[...] = values
        assert data_type.split("_")[0] in json.dumps(json.loads((tmp_path / "z/a/zarr.json").read_text())["data_type"])
        with hs.open(tmp_path / "z") as file:
            np.testing.assert_array_equal(file["a"][...], array[...])


def framed(*values: bytes, count: int | None = None) -> bytes:
    lengths = (struct.pack("<I", len(value)) + value for value in values)
    return struct.pack("<I", len(values) if count is None else count) + b"".join(lengths)


HOSTILE = {
    "count too small": (framed(b"a", count=1), "another number of values"),
    "count too large": (framed(b"a", b"b", count=2**32 - 1), "another number of values"),
    "length beyond the end": (struct.pack("<II", 2, 2**32 - 1) + b"abcd", "ends before its last value"),
    "cut off": (framed(b"abc", b"def")[:-1], "ends before its last value"),
    "nothing": (b"", "another number of values"),
    "more behind": (framed(b"abc", b"def") + b"x", "bytes follow its last value"),
    "no UTF-8": (framed(b"abc", b"\xff\xfe"), "not UTF-8"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_chunks(tmp_path, kind):
    encoded, said = HOSTILE[kind]
    write_v2(tmp_path / "z", objects(["a", "b"], (2,)), (2,), [{"id": "vlen-utf8"}])
    (tmp_path / "z" / "a" / "0").write_bytes(encoded)
    with hs.open(tmp_path / "z") as file, pytest.raises(DamagedFile, match=said) as raised:
        file["a"][...]
    assert "/a of" in str(raised.value)
    assert "chunk [0]" in str(raised.value)


def test_bombs_are_refused(tmp_path):
    """A chunk of few bytes that decodes to many: an error before they are made."""
    write_v2(tmp_path / "z", objects(["a", "b"], (2,)), (2,), [{"id": "vlen-utf8"}], {"id": "zstd", "level": 1})
    huge = struct.pack("<I", 2) + struct.pack("<I", 200 << 20) + bytes(200 << 20) + framed(b"b")[4:]
    (tmp_path / "z" / "a" / "0").write_bytes(numcodecs.Zstd(19).encode(huge))
    with hs.open(tmp_path / "z") as file, pytest.raises(DamagedFile, match="crafted to exhaust memory"):
        file["a"][...]


def test_long_values(tmp_path):
    """Values far longer than the pointers that stand for them."""
    values = objects(["x" * 3_000_000, "y" * 25_000_000], (2,))
    write_v2(tmp_path / "z", values, (2,), [{"id": "vlen-utf8"}], {"id": "zlib", "level": 1})
    write_v2(tmp_path / "plain", values, (2,), [{"id": "vlen-utf8"}])
    for name in ("z", "plain"):
        with hs.open(tmp_path / name) as file:
            assert file["a"][...].tolist() == values.tolist()


def test_json_that_python_cannot_parse(tmp_path):
    write_v2(tmp_path / "z", objects(["a", "b"], (2,)), (2,), [{"id": "json2"}])
    for text in ("[tru, 1, '|O', [2]]", '[tru, 1, "|O", [2]]', f'[{"[" * 100_000}{"]" * 100_000}, 1, "|O", [2]]'):
        (tmp_path / "z" / "a" / "0").write_text(text)
        with hs.open(tmp_path / "z") as file, pytest.raises(DamagedFile, match=r"/a of .*z"):
            file["a"][...]


def unreadable(folder: Path) -> None:
    """An array of pickles, and one of numbers."""
    array = objects(["a", 1], (2,))
    write_v2(folder, array, (2,), [{"id": "pickle"}])
    (folder / "a" / ".zattrs").write_text('{"_ARRAY_DIMENSIONS": ["x"]}')
    (folder / "b").mkdir()
    document = {"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "<f8", "fill_value": None, "order": "C"}
    (folder / "b" / ".zarray").write_text(json.dumps({**document, "filters": None, "compressor": None}))
    (folder / "b" / ".zattrs").write_text('{"_ARRAY_DIMENSIONS": ["x"]}')
    (folder / "b" / "0").write_bytes(np.array([1.5, 2.5]).tobytes())


def test_pickles_are_refused_and_close_nothing(tmp_path):
    xarray = pytest.importorskip("xarray", reason="not installed: pip install 'hyperslab[xarray]'")
    unreadable(tmp_path / "z")
    with hs.open(tmp_path / "z") as file:
        assert list(file.arrays) == ["a", "b"]
        assert "arbitrary code" in (file["a"].unsupported or "")
        with pytest.raises(Unsupported, match=r"/a of .*z: codec pickle, .* arbitrary code"):
            file["a"][...]
    with xarray.open_dataset(tmp_path / "z", engine="hyperslab") as opened:
        assert set(opened) == {"a", "b"}
        assert opened["b"].values.tolist() == [1.5, 2.5]
        with pytest.raises(Unsupported, match="arbitrary code"):
            opened["a"].load()


@pytest.mark.parametrize("version", [2, 3])
def test_xarray(tmp_path, version):
    """Datasets with text as xarray writes them, text indexes too, and what it makes of them again."""
    xarray = pytest.importorskip("xarray", reason="not installed: pip install 'hyperslab[xarray]'")
    pandas = pytest.importorskip("pandas", reason="not installed: pip install 'hyperslab[report]'")
    texts = np.array([["a", "bb"], ["", "\u65e5"], ["c", "d"]], object)
    index = pandas.Index(["p", "q", "r"], dtype=pandas.StringDtype())
    written = xarray.Dataset({"n": ("x", [1.0, 2.0, 3.0]), "s": (("x", "y"), texts)}, coords={"x": index})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        written.to_zarr(tmp_path / "o.zarr", zarr_format=version)
        theirs = xarray.open_dataset(tmp_path / "o.zarr", engine="zarr").load()
    with xarray.open_dataset(tmp_path / "o.zarr", engine="hyperslab") as ours:
        assert not ours["s"].variable._in_memory
        xarray.testing.assert_identical(ours.load(), theirs)
        assert ours["x"].to_index().equals(theirs["x"].to_index())
        ours.to_netcdf(tmp_path / "o.nc", engine="netcdf4")
    with xarray.open_dataset(tmp_path / "o.nc", engine="netcdf4") as again:
        xarray.testing.assert_equal(again, theirs)
    lazy = xarray.open_dataset(tmp_path / "o.zarr", engine="hyperslab", chunks={})
    assert lazy["s"].compute().values.tolist() == texts.tolist()


@pytest.mark.parametrize("masked", ["", "bb"])
def test_xarray_masks_fill_values_of_version_2(tmp_path, masked):
    xarray = pytest.importorskip("xarray", reason="not installed: pip install 'hyperslab[xarray]'")
    write_v2(tmp_path / "z", objects(["a", "bb", ""], (3,)), (2,), [{"id": "vlen-utf8"}], fill=masked)
    (tmp_path / "z" / "a" / ".zattrs").write_text('{"_ARRAY_DIMENSIONS": ["x"]}')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = xarray.open_dataset(tmp_path / "z", engine="zarr", consolidated=False).load()
    with xarray.open_dataset(tmp_path / "z", engine="hyperslab") as ours:
        assert ours["a"].isnull().values.tolist() == theirs["a"].isnull().values.tolist()
        xarray.testing.assert_equal(ours.load(), theirs)


def test_references(tmp_path):
    """kerchunk's JSON by hand and by kerchunk, its Parquet, and our own `.hs`."""
    values = objects([f"text {number} \u20ac" for number in range(50)], (50,))
    write_v2(tmp_path / "z", values, (7,), [{"id": "vlen-utf8"}], {"id": "zstd", "level": 1})
    refs: dict[str, Any] = {".zgroup": '{"zarr_format": 2}', "a/.zarray": (tmp_path / "z/a/.zarray").read_text()}
    for chunk in range(8):
        file = tmp_path / "z" / "a" / str(chunk)
        refs[f"a/{chunk}"] = [str(file), 0, file.stat().st_size]
    (tmp_path / "refs.json").write_text(json.dumps({"version": 1, "refs": refs}))
    hs.index(tmp_path / "z").save(tmp_path / "o.hs")
    expected = values.tolist()
    hs.index(tmp_path / "z").save(tmp_path / "saved.json", inline_threshold=0)
    hs.index(tmp_path / "refs.json").save(tmp_path / "saved.parquet", inline_threshold=0)
    document = json.loads(json.loads((tmp_path / "saved.json").read_text())["refs"]["a/.zarray"])
    assert document["filters"] == [{"id": "vlen-utf8"}, {"id": "zstd", "level": 1}]
    for name in ("refs.json", "o.hs", "saved.json", "saved.parquet"):
        with hs.open(tmp_path / name) as file:
            assert file["a"][...].tolist() == expected, name
            assert file["a"][11:40:3].tolist() == expected[11:40:3]


def test_parquet_references(tmp_path):
    pytest.importorskip("pyarrow", reason="not installed: pip install 'hyperslab[report]'")
    refs = pytest.importorskip("fsspec.implementations.reference", reason="not installed: pip install fsspec")
    values = objects([f"text {number}" for number in range(30)], (30,))
    write_v2(tmp_path / "z", values, (7,), [{"id": "vlen-utf8"}])
    (tmp_path / "refs.parquet").mkdir()
    mapper = refs.LazyReferenceMapper.create(root=str(tmp_path / "refs.parquet"), record_size=4)
    mapper[".zgroup"] = b'{"zarr_format": 2}'
    mapper["a/.zarray"] = (tmp_path / "z/a/.zarray").read_bytes()
    for chunk in range(5):
        file = tmp_path / "z" / "a" / str(chunk)
        mapper[f"a/{chunk}"] = file.read_bytes() if chunk == 2 else [str(file), 0, file.stat().st_size]
    mapper.flush()
    with hs.open(tmp_path / "refs.parquet") as file:
        assert file["a"][...].tolist() == values.tolist()


def test_json_that_we_wrote(tmp_path):
    """References that we make of text in HDF5 hold it, and we read them."""
    import h5py

    with h5py.File(tmp_path / "t.h5", "w") as made:
        made["words"] = np.array(["a", "\u65e5\u672c", ""], h5py.string_dtype())
        made["numbers"] = np.arange(3)
    for target in ("o.json", "o.parquet"):
        hs.index(tmp_path / "t.h5").save(tmp_path / target)
        with hs.open(tmp_path / target) as file:
            assert file["words"][...].tolist() == ["a", "\u65e5\u672c", ""]
            assert file["numbers"][...].tolist() == [0, 1, 2]

"""kerchunk's references that a program has: as a dict, a mapper, or a file system of fsspec."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hyperslab as hs
from hyperslab.archive.far.remote import Remote
from hyperslab.archive.given import references as given_references
from hyperslab.archive.tree.locating import locate
from hyperslab.errors import NotAllowed, Unsupported, UsageError

fsspec = pytest.importorskip("fsspec")

VALUES = np.arange(12, dtype="<i4").reshape(4, 3)
ARRAY = {
    "zarr_format": 2, "shape": [4, 3], "chunks": [2, 3], "dtype": "<i4", "compressor": None, "filters": None,
    "fill_value": None, "order": "C",
}  # fmt: skip


def references(first: str, second: str) -> dict[str, Any]:
    """An array of two chunks, which lie in files, one after the other."""
    return {
        ".zgroup": '{"zarr_format": 2}',
        "a/.zarray": json.dumps(ARRAY),
        "a/.zattrs": b'{"_ARRAY_DIMENSIONS": ["y", "x"]}',
        "a/0.0": [first, 0, 24],
        "a/1.0": [second, 24, 24],
    }


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = tmp_path / "data.bin"
    path.write_bytes(VALUES.tobytes())
    return str(path)


@pytest.fixture
def in_memory() -> str:
    fsspec.filesystem("memory").pipe("given_references/data.bin", VALUES.tobytes())
    return "memory://given_references/data.bin"


def test_a_dict_is_opened_in_either_version_and_with_templates(data: str) -> None:
    keys = references(data, data)
    filled = references("{{u}}", "{{u}}")
    folder, name = data.rsplit("/", 1)
    for given in (keys, {"refs": keys}, {"version": 1, "refs": filled, "templates": {"u": data}}):
        found = hs.open(given)
        np.testing.assert_array_equal(found["a"][...], VALUES)
        assert found["a"].dims == ("y", "x")
    made = {key: value for key, value in keys.items() if key != "a/1.0"}
    gen = [{"key": "a/{{i}}.0", "url": f"{folder}/{{{{n}}}}", "offset": "24", "length": "24",
            "dimensions": {"i": [1]}}]  # fmt: skip
    given = {"version": 1, "refs": made, "gen": gen, "templates": {"n": name}}
    np.testing.assert_array_equal(hs.open(given)["a"][...], VALUES)


def test_what_is_there_as_bytes_is_read(data: str) -> None:
    class Buffer:
        def to_bytes(self) -> bytes:
            return VALUES[:2].tobytes()

    for held in (VALUES[:2].tobytes(), Buffer(), b"base64:AAAAAAEAAAACAAAAAwAAAAQAAAAFAAAA"):
        np.testing.assert_array_equal(hs.open({**references(data, data), "a/0.0": held})["a"][...], VALUES)
    with pytest.raises(UsageError, match="a reference is a int64: it must be text, bytes or"):
        hs.open({**references(data, data), "a/0.0": np.int64(1)})


def test_files_of_fsspec_alone_are_read_by_it(data: str, in_memory: str) -> None:
    here = f"file://{data}"
    for first, second in ((in_memory, here), (here, in_memory), (in_memory, in_memory)):
        given = references(first, second)
        by_dict = hs.open(given, storage_options={"remote_protocol": "memory"})
        np.testing.assert_array_equal(by_dict["a"][...], VALUES)
        options = {"fo": given, "remote_protocol": "memory"}
        np.testing.assert_array_equal(hs.open("reference://", storage_options=options)["a"][...], VALUES)


def test_file_systems_and_what_is_made_of_them(tmp_path: Path, data: str) -> None:
    zarr = pytest.importorskip("zarr")
    given = {
        key: value.decode() if isinstance(value, bytes) else value for key, value in references(data, data).items()
    }
    path = tmp_path / "refs.json"
    path.write_text(json.dumps(given))
    fs = fsspec.filesystem("reference", fo=given)
    wrapped = fsspec.implementations.asyn_wrapper.AsyncFileSystemWrapper(fsspec.filesystem("file"), asynchronous=True)
    waiting = fsspec.filesystem("reference", fo=given, fs=wrapped, asynchronous=True)
    for source, options in (
        (fs, None),
        ((fs, ""), None),
        (fs.get_mapper(""), None),
        (zarr.storage.FsspecStore(waiting), None),
        ("reference://", {"fo": given}),
        ("reference://", {"fo": str(path)}),
        ("reference://", {"fo": str(path), "remote_protocol": "file", "remote_options": {}, "target_options": {}}),
        (str(path), {"remote_protocol": "file"}),
        (path, {"remote_protocol": None, "remote_options": {"auto_mkdir": False}}),
    ):
        np.testing.assert_array_equal(hs.open(source, storage_options=options)["a"][...], VALUES)


def test_xarray_opens_them_as_with_kerchunks_engine(data: str, in_memory: str) -> None:
    xarray = pytest.importorskip("xarray")
    for given, options in (
        (references(data, data), {}),
        (references(in_memory, in_memory), {"remote_protocol": "memory"}),
    ):
        found = xarray.open_dataset(given, engine="hyperslab", storage_options=options)
        np.testing.assert_array_equal(found["a"].values, VALUES)
        assert found["a"].dims == ("y", "x")
    with pytest.raises(UsageError, match="cannot be pickled"):
        pickle.dumps(hs.open(references(in_memory, in_memory))["a"])


def test_pickles_hold_the_references_and_no_options(data: str) -> None:
    opened = hs.open(references(data, data), storage_options={"token": "secret-word"})
    again = pickle.dumps(opened["a"])
    assert b"secret-word" not in again
    np.testing.assert_array_equal(pickle.loads(again)[...], VALUES)


def test_what_is_not_allowed_is_not_read(tmp_path: Path, data: str, in_memory: str) -> None:
    opened = hs.open(references(data, data), allowed=())
    with pytest.raises(NotAllowed, match=r"data\.bin"):
        opened["a"][...]
    np.testing.assert_array_equal(hs.open(references(data, data), allowed=[tmp_path])["a"][...], VALUES)
    with pytest.raises(NotAllowed, match="only fsspec can read"):
        hs.open(references(f"file://{data}", in_memory), allowed=[tmp_path])


def test_options_reach_the_files_and_names_get_their_protocol() -> None:
    keys = {**references("bucket/a", "s3://bucket/b"), "b/0": ["{{u}}/a", 0, 1]}
    options = {"remote_protocol": "s3", "remote_options": {"anon": True}}
    location, resolver = locate(keys, {**options, "endpoint_url": "http://127.0.0.1:9"})
    assert isinstance(location, given_references.GivenReferences)
    assert not location.asks_fsspec
    assert resolver.options == {"anon": True, "endpoint_url": "http://127.0.0.1:9"}
    assert location._document["a/0.0"] == ["s3://bucket/a", 0, 24]
    assert location._document["b/0"] == ["{{u}}/a", 0, 1]
    far, resolver = locate("s3://bucket/refs.json", {**options, "target_options": {"region": "eu-west-1"}})
    assert isinstance(far, Remote)
    assert far.options == resolver.options == {"anon": True, "region": "eu-west-1"}
    assert resolver.near == "s3://bucket/refs.json"  # it may lead to its own folder only


def test_too_much_is_refused(monkeypatch: pytest.MonkeyPatch, in_memory: str) -> None:
    monkeypatch.setattr(given_references, "MOST_NBYTES", 47)
    with pytest.raises(Unsupported, match=r"memory://given_references/data\.bin"):
        hs.open(references(in_memory, in_memory))


@pytest.mark.parametrize("given", [{}, {"version": 1, "refs": {}}, {"a": 1}, {"refs": []}, {1: 2}])
def test_a_dict_of_anything_else_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match=r"this dict has no key that ends in \.zgroup"):
        hs.open(given)


def test_a_path_that_holds_no_references_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.nc").write_bytes(b"CDF\x01\xff\xff")
    with pytest.raises(UsageError, match="cannot open these references"):
        hs.open(tmp_path / "a.nc", storage_options={"remote_protocol": "memory"})


@pytest.mark.parametrize("dtype", ["<i2", "<f8", "<M8[ns]"])
@pytest.mark.parametrize("fill", [None, 0, 3])
@pytest.mark.parametrize("attribute", [None, 1])
def test_the_fill_value_masks_and_not_the_attribute(dtype: str, fill: Any, attribute: Any) -> None:
    """As xarray's engine "zarr" has it for Zarr 2."""
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("kerchunk")
    if attribute == 1 and fill is None and dtype == "<M8[ns]":
        pytest.skip("xarray cannot mask times by a number")
    values = np.arange(4).astype(dtype)
    fsspec.filesystem("memory").pipe("given_references/values.bin", values.tobytes())
    array = {**ARRAY, "shape": [4], "chunks": [4], "dtype": dtype, "fill_value": fill}
    attributes = {"_ARRAY_DIMENSIONS": ["x"], **({} if attribute is None else {"_FillValue": attribute})}
    given = {
        ".zgroup": '{"zarr_format": 2}',
        "a/.zarray": json.dumps(array),
        "a/.zattrs": json.dumps(attributes),
        "a/0": ["memory://given_references/values.bin"],
    }
    options = {"remote_protocol": "memory"}
    theirs = xarray.open_dataset(dict(given), engine="kerchunk", storage_options=options)
    ours = xarray.open_dataset(given, engine="hyperslab", storage_options=options)
    xarray.testing.assert_identical(ours.load(), theirs.load())
    for place in ("attrs", "encoding"):
        found, expected = (getattr(one["a"], place).get("_FillValue") for one in (ours, theirs))
        assert (found is None) == (expected is None)
        assert found == expected

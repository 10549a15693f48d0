"""What you can do with a staged version."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import hyperslab as hs
from hyperslab.errors import UsageError

DATA = np.arange(7 * 9 * 4).reshape(7, 9, 4)
KEYS: list[Any] = [
    ...,
    3,
    -1,
    (2, slice(1, 8, 3)),
    (..., 0),
    (slice(None, None, 2), [0, 3, 8], slice(1, 3)),
    ([6, 0, 3], slice(None), [2, 1]),
    (np.array([True, False] * 3 + [True]), 4),
    (1, 2, 3),
    (slice(3, 3),),
    slice(-3, None),
]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[hs.VersionedFile]:
    with hs.VersionedFile(tmp_path / "v.h5", "w") as file:
        with file.stage_version("a") as version:
            version.create_dataset("x", data=DATA, chunks=(3, 2, 4))
            version.create_dataset("g/y", data=np.arange(10.0))
            version["g"].attrs["note"] = "n"
        yield file


def numpy_of(key: Any) -> Any:
    """The same in NumPy, where several lists would be paired."""
    if isinstance(key, tuple) and sum(isinstance(one, list) for one in key) > 1:
        return np.ix_(*[one if isinstance(one, list) else range(9)[one] for one in key])
    return key


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("touched", [False, True])
def test_reads_and_writes_are_numpys(file: hs.VersionedFile, key: Any, touched: bool) -> None:
    expected = DATA.copy()
    with file.stage_version("b") as version:
        array = version["x"]
        if touched:
            array[0, 0, 0] = expected[0, 0, 0] = -7
        np.testing.assert_array_equal(array[key], expected[numpy_of(key)])
        new = -np.arange(expected[numpy_of(key)].size).reshape(expected[numpy_of(key)].shape)
        expected[numpy_of(key)] = new
        array[key] = new
        np.testing.assert_array_equal(array[...], expected)
    np.testing.assert_array_equal(file["b"]["x"][...], expected)
    np.testing.assert_array_equal(file["a"]["x"][...], DATA)


def test_masks_and_points_and_scalars(file: hs.VersionedFile) -> None:
    expected = DATA.copy()
    with file.stage_version("b") as version:
        mask = expected % 5 == 0
        np.testing.assert_array_equal(version["x"][mask], expected[mask])
        version["x"][mask] = expected[mask] = 1000
        version["x"][:, 2] = expected[:, 2] = 5
        version["x"][hs.Points([[0, 1, 2], [6, 8, 3]])] = 77
        expected[0, 1, 2] = expected[6, 8, 3] = 77
        with pytest.raises(ValueError, match="broadcast"):
            version["x"][0] = np.zeros(3)
        with pytest.raises(IndexError):
            version["x"][7] = 0
    np.testing.assert_array_equal(file["b"]["x"][...], expected)


def test_groups(file: hs.VersionedFile) -> None:
    with file.stage_version("b") as version:
        assert sorted(version) == ["g", "x"]
        assert "g/y" in version
        assert version["g"].attrs["note"] == "n"
        version.create_group("h/i")
        version["h/i/z"] = np.arange(3)
        version["w"] = [1.5, 2.5]
        del version["x"]
        assert "x" not in version
        with pytest.raises(KeyError, match="was deleted"):
            version["x"]
        with pytest.raises(KeyError, match="there is no"):
            version["nothing"]
        with pytest.raises(ValueError, match="already"):
            version.create_group("g")
        with pytest.raises(ValueError, match="versions"):
            version.create_group("versions")
        seen: list[str] = []
        version.visititems(lambda path, _: seen.append(path))
        assert sorted(seen) == ["g", "g/y", "h", "h/i", "h/i/z", "w"]
    assert sorted(array.name.split("/b/")[1] for array in file["b"].walk()) == ["g/y", "h/i/z", "w"]
    with pytest.raises(ValueError, match="was committed"):
        version["w"][0] = 1
    with pytest.raises(ValueError, match="was committed"):
        del version["w"]


def test_attributes_alone(file: hs.VersionedFile) -> None:
    with file.stage_version("b") as version:
        version["x"].attrs["units"] = "m"
        version.attrs["by"] = "me"
    with file.stage_version("c") as version:
        assert version["x"].attrs == {"units": "m"}
        assert version.attrs == {}
    assert "units" not in file["a"]["x"].attrs
    assert [file[name]["x"].attrs["units"] for name in "bc"] == ["m", "m"]
    assert file["b"].attrs["by"] == "me"
    np.testing.assert_array_equal(file["c"]["x"][...], DATA)


def test_text_of_any_length(file: hs.VersionedFile) -> None:
    with file.stage_version("b") as version:
        version.create_dataset("words", data=np.array(["a", "bb", ""], np.dtypes.StringDType()), chunks=(2,))
        version["words"][1] = b"bytes"
        version["words"].resize((5,))
        assert version["words"][...].tolist() == ["a", "bytes", "", "", ""]
    assert file["b"]["words"][...].tolist() == ["a", "bytes", "", "", ""]


def test_what_is_refused(file: hs.VersionedFile) -> None:
    with file.stage_version("b") as version:
        for name, error, options in [
            ("s", NotImplementedError, {"data": 3.0}),
            ("v", TypeError, {"shape": (2,), "dtype": h5py.vlen_dtype("i4")}),
            ("c", ValueError, {"data": np.zeros((2, 2)), "chunks": (2,)}),
            ("o", TypeError, {"data": np.zeros(2), "colour": "red"}),
            ("n", TypeError, {"dtype": "f4"}),
        ]:
            with pytest.raises(error):
                version.create_dataset(name, **options)
        del version["x"]
        for options in [
            {"data": DATA.astype("f4")},
            {"data": DATA, "chunks": (1, 1, 1)},
            {"data": DATA, "fillvalue": 3},
        ]:
            with pytest.raises(ValueError, match="in earlier versions"):
                version.create_dataset("x", **options)
        with pytest.raises(UsageError, match="is being made"), file.stage_version("c"):
            pass
    for name in ("a", "", "x/y", "__first_version__"):
        with pytest.raises(ValueError, match="version"), file.stage_version(name):
            pass
    with pytest.raises(ValueError, match="to start from"), file.stage_version("c", "nothing"):
        pass
    with hs.VersionedFile(file.path) as reader, pytest.raises(UsageError, match=r"mode='r\+'"):
        reader.stage_version("c").__enter__()
    assert file.versions == ["a", "b"]


def test_a_write_to_an_array_that_is_first_looked_at_after_the_commit_is_refused(file: hs.VersionedFile) -> None:
    with file.stage_version("first") as version:
        version["g/x"] = np.arange(4)
    with file.stage_version("second") as version:
        pass
    assert version["g/x"][1] == 1
    with pytest.raises(ValueError, match="g/x: its version was committed or abandoned"):
        version["g/x"][0] = 1
    with pytest.raises(ValueError, match="the version was committed or abandoned"):
        version["g"].create_group("h")


def test_what_was_cut_off_does_not_come_back(file: hs.VersionedFile) -> None:
    for name, shape in [("b", (0, 9, 4)), ("c", (4, 9, 4))]:
        with file.stage_version(name, "a") as version:
            version["x"].resize(shape)
            version["x"].resize(DATA.shape)
            expected = np.zeros_like(DATA)
            expected[: shape[0]] = DATA[: shape[0]]
            np.testing.assert_array_equal(version["x"][...], expected)
        np.testing.assert_array_equal(file[name]["x"][...], expected)


def test_text_of_some_length(file: hs.VersionedFile) -> None:
    words = np.array(["é".encode(), b"a"] + [b"x"] * 6, h5py.string_dtype("utf-8", 3))
    with file.stage_version("b") as version:
        version.create_dataset("w", data=words, dtype=words.dtype, chunks=(2,), fillvalue=b"x")
        version.create_dataset("u", data=["é", "bc"])
    with file.stage_version("c") as version:
        version["w"][1] = "é".encode()
        version["w"].resize((10,))
    np.testing.assert_array_equal(file["b"]["w"][...], words)
    read = file["c"]["w"][...].tolist()
    assert read == ["é".encode()] * 2 + [b"x"] * 8
    file.close()
    with h5py.File(file.path, "r") as plain:
        group = plain["_version_data/versions/c"]
        assert group["w"][...].tolist() == read
        assert group["w"].fillvalue == b"x"
        assert group["u"].asstr()[...].tolist() == ["é", "bc"]


def test_arrays_called_as_the_layout_calls_its_own(file: hs.VersionedFile) -> None:
    paths = ["raw_data", "hash_table", "g/raw_data", "raw/raw_data/raw_data", "g/versions"]
    with file.stage_version("b") as version:
        for path in paths:
            version.create_dataset(path, data=np.arange(10.0), chunks=(4,))
    with file.stage_version("c") as version:
        for path in paths:
            version[path][5] = -1
    for path in paths:
        np.testing.assert_array_equal(file["b"][path][...], np.arange(10.0))
        np.testing.assert_array_equal(file["c"][path][...], [0, 1, 2, 3, 4, -1, 6, 7, 8, 9])


def test_an_array_stays_if_another_cannot_take_its_place(file: hs.VersionedFile) -> None:
    with file.stage_version("b") as version:
        with pytest.raises(ValueError, match="in earlier versions"):
            version["x"] = DATA.astype("f4")
        with pytest.raises(ValueError, match="is a group"):
            version["g"] = DATA
        version["x"] = DATA + 1
    np.testing.assert_array_equal(file["b"]["x"][...], DATA + 1)


def test_an_array_created_again_takes_over_its_dtype_chunks_and_fill_value(file: hs.VersionedFile) -> None:
    with file.stage_version("b") as version:
        version.create_dataset("z", data=np.arange(5, dtype="<i2"), chunks=(2,), fillvalue=7)
    with file.stage_version("c", "a") as version:
        made = version.create_dataset("z", shape=(3,))
        assert (made.dtype, made.chunks) == (np.dtype("<i2"), (2,))
    np.testing.assert_array_equal(file["c"]["z"][...], [7, 7, 7])


def test_versions_in_a_group_of_a_file(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "v.h5", "w") as plain:
        group = plain.create_group("some/group")
        versions = hs.VersionedFile(group)
        hs.VersionedFile(plain)
        for name in "ab":
            with versions.stage_version(name) as version:
                version.require_group("g")
                if name == "a":
                    version.create_dataset("g/x", data=DATA, chunks=(3, 2, 4))
                else:
                    version["g/x"][0] = -1
        assert versions.versions == ["a", "b"]
        np.testing.assert_array_equal(versions["a"]["g/x"][...], DATA)
        np.testing.assert_array_equal(group["_version_data/versions/b/g/x"], versions["b"]["g/x"][...])
        assert versions["b"]["g/x"][0, 1, 2] == -1
        assert hs.VersionedFile(plain).versions == []


def test_through_xarray(file: hs.VersionedFile) -> None:
    xr = pytest.importorskip("xarray")
    with file.stage_version("b") as version:
        version["x"][0] = 0
    opened = xr.open_dataset(file.path, engine="hyperslab", open_options={"version": "a"})
    np.testing.assert_array_equal(opened["x"], DATA)


def test_a_file_that_nobody_closes(tmp_path: Path) -> None:
    """At the end of the process libhdf5 would write to the file when Python is gone already."""
    code = (
        "import sys, numpy as np, hyperslab as hs\n"
        "file = hs.VersionedFile(sys.argv[1], 'w')\n"
        "file.itself = [file]\n"
        "with file.stage_version('a') as version:\n"
        "    version['x'] = np.arange(5)\n"
        "file._file.create_group('never committed')\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "v.h5")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    with hs.VersionedFile(tmp_path / "v.h5") as file:
        assert file["a"]["x"][...].tolist() == [0, 1, 2, 3, 4]


def test_attributes_of_records_that_hold_arrays(tmp_path: Path) -> None:
    """Comparing attributes with those of the version before must not ask for the truth value of an array."""
    record = np.zeros((), [("place", "<f8", (3,)), ("name", "S5")])
    path = tmp_path / "v.h5"
    with hs.VersionedFile(path, "w") as file:
        with file.stage_version("v0") as version:
            version.create_dataset("x", data=np.arange(9.0)).attrs["record"] = record
        with file.stage_version("v1") as version:
            version["x"][0] = 1
    with hs.VersionedFile(path) as file:
        assert file["v1"]["x"].attrs["record"].tobytes() == record.tobytes()

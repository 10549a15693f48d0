"""`hyperslab.versions.compat` does what versioned-hdf5 does, or, where that fails, what its users would expect."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import versioned_hdf5

import hyperslab.versions.compat as ours
from hyperslab.versions.compat.wrappers import AxisError, DatasetWrapper, InMemoryGroup, InMemorySparseDataset

PROGRAM = Path(__file__).parent / "peer_suite" / "program.py"


@pytest.fixture
def f(tmp_path: Path) -> Iterator[h5py.File]:
    with h5py.File(tmp_path / "v.h5", "w") as f:
        with ours.VersionedHDF5File(f).stage_version("a") as group:
            group.create_dataset("x", data=np.arange(100.0), chunks=(8,))
            group.create_dataset("g/y", data=np.arange(12).reshape(3, 4), chunks=(2, 2), compression="gzip")
        yield f


def run(library: str, folder: Path) -> str:
    command = [sys.executable, str(PROGRAM), str(folder / f"{library}.h5"), library]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONUTF8": "1"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_program_does_the_same_with_either(tmp_path: Path) -> None:
    assert run("ours", tmp_path) == run("theirs", tmp_path)


@pytest.mark.parametrize("mode", ["r", "r+"])
@pytest.mark.parametrize(
    "data",
    [
        np.arange(60).reshape(12, 5) * 1.5,
        np.arange(60).reshape(12, 5).astype(">i2"),
        np.arange(60).reshape(12, 5) % 3 == 0,
        np.array([[f"{row}é", "", "x" * row] for row in range(12)], h5py.string_dtype()),
        np.array([[f"{row}", "", "x" * row] for row in range(12)], h5py.string_dtype("ascii")),
        np.array([[b"a", b"bc"]] * 12, "S4"),
        np.array([["é".encode()] * 2] * 12, h5py.string_dtype("utf-8", 5)),
        np.array([[(row, row / 2)] * 2 for row in range(12)], [("n", "<i4"), ("v", "<f4")]),
        np.array([[0, 1]] * 12, h5py.enum_dtype({"no": 0, "yes": 1}, "u1")),
    ],
    ids=lambda data: f"{data.dtype.str}{data.dtype.metadata or ''}",
)
def test_what_is_read_is_what_h5py_reads(tmp_path: Path, data: np.ndarray[Any, Any], mode: str) -> None:
    path = tmp_path / "v.h5"
    with h5py.File(path, "w") as f:
        file = ours.VersionedHDF5File(f)
        with file.stage_version("a") as group:
            group.create_dataset("x", data=data, dtype=data.dtype, chunks=(5, 2))
        with file.stage_version("b") as group:
            group["x"][4:7] = data[2:5]
            group["x"].resize((14, data.shape[1]))
    with h5py.File(path, mode) as f:
        for version in "ab":
            found, plain = ours.VersionedHDF5File(f)[version]["x"], f[f"_version_data/versions/{version}/x"]
            assert (found.shape, found.dtype, found.ndim, found.size) == (plain.shape, plain.dtype, 2, plain.size)
            assert h5py.check_string_dtype(found.dtype) == h5py.check_string_dtype(plain.dtype)
            assert h5py.check_enum_dtype(found.dtype) == h5py.check_enum_dtype(plain.dtype)
            assert found.chunks == (5, 2)
            for key in [..., (), 3, (3, 1), (-1, slice(0, 1)), slice(2, 11, 3), ([0, 4, 11], slice(None))]:
                one, other = found[key], plain[key]
                assert (type(one), np.shape(one)) == (type(other), np.shape(other))
                np.testing.assert_array_equal(one, other, str(key), strict=isinstance(one, np.ndarray))
            np.testing.assert_array_equal(np.asarray(found), plain[...])
            if h5py.check_string_dtype(plain.dtype):
                np.testing.assert_array_equal(found.asstr()[1], plain.asstr()[1])
                np.testing.assert_array_equal(found.astype("T")[2:4], plain.astype("T")[2:4])
            if plain.dtype.names:
                np.testing.assert_array_equal(found["n"], plain["n"])
                np.testing.assert_array_equal(found["v", 3:5], plain["v", 3:5])
                np.testing.assert_array_equal(found.fields("v")[:2], plain.fields("v")[:2])


def test_reading_does_not_open_virtual_arrays(f: h5py.File) -> None:
    path = f.filename
    f.close()
    with h5py.File(path, "r") as f:
        array = ours.VersionedHDF5File(f)["a"]["x"]
        np.testing.assert_array_equal(array[10:20], np.arange(10.0, 20))
        assert (array.shape, len(array)) == ((100,), 100)
        assert "_id" not in array.__dict__
        assert (array.name, array.is_virtual, array.attrs["chunks"]) == ("/_version_data/versions/a/x", True, 8)
        with pytest.raises(ValueError, match=r".*"):
            array[::-1]


def test_all_handles_see_what_any_library_commits(f: h5py.File) -> None:
    one, other = ours.VersionedHDF5File(f), ours.VersionedHDF5File(f["/"])
    with one.stage_version("b") as group:
        group["x"][0] = 5
        assert "b" not in other
        with pytest.raises(ValueError, match="is still being made"):
            one["b"]
    assert other["b"]["x"][0] == other[0]["x"][0] == 5
    with versioned_hdf5.VersionedHDF5File(f).stage_version("c") as group:
        group["x"][0] = 6
    for file in (one, other):
        assert sorted(file) == sorted(file.versions) == ["a", "b", "c"]
        assert file.current_version == "c"
        assert [file[number]["x"][0] for number in (0, -1, -2)] == [6, 5, 0]
    assert one["c"] == other["c"] != one["b"]
    one.close()
    assert one.closed
    assert other["a"]["x"][3] == 3


def test_what_is_held_stays_right_when_versions_are_deleted_or_rewritten(f: h5py.File) -> None:
    file = ours.VersionedHDF5File(f)
    for name in ("b", "c"):
        with file.stage_version(name) as group:
            group["x"][:50] += 1
            group["g/y"][0] = 7
    held = file["c"]
    x, y, staged = held["x"], held["g/y"], group["x"]
    expected = x[...]
    ours.delete_versions(f, ["a"])
    del file["b"]
    assert file.versions == ["c"]
    assert file["c"].attrs["prev_version"] == "__first_version__"
    with file.stage_version("d") as later:
        later["x"][...] = -1  # perhaps where deleted chunks were
        later["g/y"][...] = -1
    ours.modify_metadata(file, "g/y", chunks=(3, 3), compression=None)
    for array in (x, staged, held["x"], file["c"]["x"]):
        np.testing.assert_array_equal(array[...], expected)
    np.testing.assert_array_equal(y[...], [[7] * 4, [4, 5, 6, 7], [8, 9, 10, 11]])
    assert (y.chunks, y.compression, y.attrs) == ((3, 3), None, {})
    with pytest.raises(ValueError, match="no version 'a'"):
        ours.delete_version(f, "a")
    with pytest.raises(KeyError):
        del file["a"]


def test_groups_and_arrays_stay_after_the_commit(f: h5py.File) -> None:
    file = ours.VersionedHDF5File(f)
    with file.stage_version("b") as group:
        x = group["x"]
        x[0] = 7
        new = group.create_dataset("new", shape=(5,), dtype="f4")
        assert (type(x), type(new), group["new"]) == (DatasetWrapper, InMemorySparseDataset, new)
        assert group["x"] is x
        assert isinstance(group, h5py.Group)
        assert group.attrs["prev_version"] == "a"
        with pytest.raises(ValueError, match="only in memory"):
            _ = group.id
    assert group.attrs["committed"]
    assert (x[0], group["g/y"][1, 1], group["x"].shape) == (7, 5, (100,))
    assert isinstance(group, InMemoryGroup)
    assert repr(group) == '<Committed InMemoryGroup "/_version_data/versions/b">'
    changes: list[Any] = [
        lambda: group.create_group("h"),
        lambda: group.__setitem__("x", [1]),
        lambda: group.__delitem__("x"),
        lambda: x.resize((3,)),
        lambda: x.__setitem__(0, 1),
        lambda: file["a"]["x"].__setitem__(0, 1),
    ]
    for change in changes:
        with pytest.raises(ValueError, match="committed"):
            change()


def test_differences_while_the_file_is_open_for_writing(f: h5py.File) -> None:
    file = ours.VersionedHDF5File(f)
    with file.stage_version("b") as group:
        group["x"][10] = -1
        group["x"][16:24] = 0  # only the fill value: no chunk is stored
        group["x"].resize((90,))
    found = {key.raw[0].start: (key, parts) for key, parts in file.get_diff("x", "a", "b").items()}
    assert sorted(found) == [8, 16, 88, 96]
    key, (before, after) = found[8]
    assert key.raw == (slice(8, 16, 1),)
    np.testing.assert_array_equal(before, np.arange(8.0, 16))
    np.testing.assert_array_equal(after, [8, 9, -1, 11, 12, 13, 14, 15])
    np.testing.assert_array_equal(found[16][1][1], np.zeros(8))
    assert found[96][1][1] is None
    assert file.get_diff("x", "b", "b") == {}
    with pytest.raises(KeyError):
        file.get_diff("nothing", "a", "b")


def test_fields_and_copies_and_lists_of_text(f: h5py.File) -> None:
    file = ours.VersionedHDF5File(f)
    pairs = np.zeros(4, [("n", "i4"), ("v", "f8")])
    with file.stage_version("b") as group:
        group["pairs"] = pairs
        group["pairs"]["n"] = [1, 2, 3, 4]
        group["pairs"][1:3, "v"] = 0.5
        group["words"] = ["a", "bc"]
        group["y"] = group["g/y"]
        group["old"] = file["a"]["x"]
        assert (group["y"].chunks, group["y"].compression) == ((2, 2), "gzip")
        group.require_dataset("x", (100,), "f8")
        with pytest.raises(TypeError, match="not of the shape"):
            group.require_dataset("x", (3,), "f8")
    assert file["b"]["pairs"]["n"].tolist() == [1, 2, 3, 4]
    assert file["b"]["pairs"]["v"].tolist() == [0, 0.5, 0.5, 0]
    assert file["b"]["words"][:].tolist() == [b"a", b"bc"]
    assert file["b"]["words"].asstr()[1] == "bc"
    np.testing.assert_array_equal(file["b"]["y"], np.arange(12).reshape(3, 4))
    np.testing.assert_array_equal(file["b"]["old"], np.arange(100.0))


def test_what_people_get_wrong_says_so(f: h5py.File) -> None:
    file = ours.VersionedHDF5File(f)
    with file.stage_version("b") as group:
        wrong: list[tuple[type[Exception], str, Any]] = [
            (NotImplementedError, "Scalar", lambda: group.__setitem__("s", 3.0)),
            (ValueError, "has the dtype float64, not int64", lambda: group.__setitem__("x", np.arange(100))),
            (
                ValueError,
                "compression='gzip' in earlier",
                lambda: group.create_dataset("g/y", (3, 4), compression="lzf"),
            ),
            (ValueError, "chunks of", lambda: group.create_dataset("x", (100,), "f8", chunks=(9,))),
            (ValueError, "forbidden", lambda: group.create_dataset("versions/x", (3,))),
            (ValueError, "leave out the first '/'", lambda: group.create_dataset("/x", (3,))),
            (ValueError, "chunks=False", lambda: group.create_dataset("n", (3,), chunks=False)),
            (ValueError, "fill value", lambda: group.create_dataset("n", (3,), h5py.string_dtype(), fillvalue="no")),
            (TypeError, "create_group", lambda: group.__setitem__("h", group["g"])),
            (KeyError, "there is no", lambda: group["nothing"]),
            (KeyError, "is an array", lambda: group["x/y"]),
            (AxisError, "axis 1", lambda: group["x"].resize(3, axis=1)),
            (ValueError, "read-only", lambda: group["x"].astype("f4").__setitem__(0, 1)),
            (ValueError, "no field", lambda: group["x"].__setitem__("field", 1)),
            (NotImplementedError, "delete", lambda: group.move("x", "z")),
        ]
        for error, match, change in wrong:
            with pytest.raises(error, match=match):
                change()
        np.testing.assert_array_equal(group["x"][:5], np.arange(5.0))
        with pytest.warns(UserWarning, match="track_times"):
            group.create_dataset("n", (3,), track_times=True)
    lookups: list[tuple[type[Exception], Any]] = [(KeyError, "no"), (IndexError, 1), (IndexError, -9), (KeyError, 1.5)]
    for error, key in [*lookups, (ValueError, "/x")]:
        with pytest.raises(error):
            file[key]
    with h5py.File.in_memory() as memory, pytest.raises(ValueError, match="file on disk"):
        ours.VersionedHDF5File(memory)
    assert file[""].name.endswith("__first_version__")

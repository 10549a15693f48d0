"""The same versions, made by hyperslab and by versioned-hdf5, give the same objects in the file."""

from __future__ import annotations

import datetime as dt
from hashlib import sha256
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from versioned_hdf5 import VersionedHDF5File, delete_versions

import hyperslab as hs
from hyperslab.versions.layout.names import chunk_hash

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


def make(file: Any) -> None:
    """Versions with a bit of everything."""
    rng = np.random.default_rng(0)
    with file.stage_version("first", timestamp=START) as version:
        version.create_dataset("x", data=np.arange(100.0), chunks=(8,))
        version["x"].attrs["units"], version["x"].attrs["scale"] = "K", np.float32(2)
        version.create_dataset("default", data=np.arange(5000, dtype="i4"))
        version["assigned"] = np.arange(30, dtype="i8")
        version.create_dataset(
            "g/h/y", data=rng.integers(0, 2, (9, 7)), chunks=(2, 3), compression="gzip", shuffle=True
        )
        version.create_dataset("g/fill", data=np.full((5, 5), 7, "u1"), chunks=(2, 2), fillvalue=7)
        version.create_dataset("sparse", shape=(1000, 4), dtype="f4", chunks=(10, 2), fillvalue=np.nan, data=None)
        version.create_dataset("empty", shape=(0, 4), dtype="f4", chunks=(10, 2), data=None)
        words = np.array(["a", "", "äöü", "a", ""], object)
        version.create_dataset("text", data=words, dtype=h5py.string_dtype(), chunks=(2,))
        version.create_dataset("fixed", data=np.array([b"abc", b"", b"x"]), chunks=(2,))
        version.create_dataset("flags", data=np.array([True, False, True]), chunks=(2,))
        pair = np.array([(1, 0.5), (2, 1.5), (0, 0)], [("a", "i2"), ("b", "f8")])
        version.create_dataset("pair", data=pair, chunks=(2,))
        version.create_group("nothing")
        version["g"].attrs["note"] = "kept"
    with file.stage_version("second", timestamp=START + dt.timedelta(days=1)) as version:
        version["x"][3] = -1
        version["x"][64:72] = np.arange(8.0)  # the elements of the first chunk
        version["g/h/y"].resize((10, 6))
        version["sparse"][995, 3] = 1
        version["text"].resize((7,))
        version["text"][6] = "new"
        del version["fixed"]
        version["x"].attrs["units"] = "C"
    with file.stage_version("third", "first", timestamp=START + dt.timedelta(days=2), make_current=False) as version:
        version["g/fill"][0, 0] = 1
        version["x"][...] = np.arange(100.0)[::-1]
        version["empty"].resize((3, 4))
        version["text"][1:3] = ["é", "z"]


def properties(found: Any) -> dict[str, Any]:
    """What is known of an object apart from its elements."""
    attributes = {
        name: (
            found.attrs.get_id(name).get_type().equal(h5py.h5t.py_create(np.dtype("i8"))),
            np.asarray(value).tolist(),
        )
        for name, value in found.attrs.items()
    }
    if isinstance(found, h5py.Group):
        return {"attributes": attributes, "names": sorted(found)}
    plist = found.id.get_create_plist()
    mappings = None
    if found.is_virtual:
        spaces = [
            (one.vspace.get_select_bounds(), one.src_space.get_select_bounds()) for one in found.virtual_sources()
        ]
        mappings = [(target, source[1][0] - source[0][0]) for target, source in spaces]
    return {
        "attributes": attributes,
        "dtype": found.dtype.descr if found.dtype.kind == "V" else str(found.dtype),
        "text": h5py.check_string_dtype(found.dtype),
        "shape": found.shape,
        "maxshape": found.maxshape,
        "chunks": found.chunks,
        "filters": [plist.get_filter(number)[:3] for number in range(plist.get_nfilters())],
        "fill": repr(found.fillvalue),
        "layout": plist.get_layout(),
        "mappings": mappings,
    }


@pytest.fixture
def both(tmp_path: Path) -> tuple[Path, Path]:
    ours, theirs = tmp_path / "ours.h5", tmp_path / "theirs.h5"
    with hs.VersionedFile(ours, "w") as file:
        make(file)
    with h5py.File(theirs, "w") as file:
        make(VersionedHDF5File(file))
    return ours, theirs


def test_objects_are_the_same(both: tuple[Path, Path]) -> None:
    with h5py.File(both[0]) as ours, h5py.File(both[1]) as theirs:
        names: dict[str, list[str]] = {}
        for file in (ours, theirs):
            paths = names.setdefault(file.filename, [])
            _walk(file, "", paths)
        names[ours.filename].remove("/_version_fingerprints")  # only ours has it
        assert sorted(names[ours.filename]) == sorted(names[theirs.filename])
        for path in names[ours.filename]:
            mine, other = properties(ours[path]), properties(theirs[path])
            if path.endswith("__first_version__"):
                mine["attributes"], other["attributes"] = [*mine["attributes"]], [*other["attributes"]]
            if path.endswith("hash_table"):  # ours has shorter chunks: each commit writes the last one anew
                assert (mine.pop("chunks"), other.pop("chunks")) == ((512,), (4096,))
                assert [mine.pop("filters")[0][:2]] == [other.pop("filters")[0][:2]]
            assert mine == other, path
        for path in (path for path in names[ours.filename] if path.endswith("hash_table")):
            mine, other = ours[path][:], theirs[path][:]
            assert {one.tobytes() for one in mine["hash"]} == {one.tobytes() for one in other["hash"]}, path
            assert sorted(np.diff(mine["shape"])[:, 0]) == sorted(np.diff(other["shape"])[:, 0]), path


def _walk(group: Any, prefix: str, paths: list[str]) -> None:
    """Every path, including several paths of one object."""
    for name, child in group.items():
        paths.append(f"{prefix}/{name}")
        if isinstance(child, h5py.Group):
            _walk(child, f"{prefix}/{name}", paths)


def test_each_goes_on_with_the_other_without_storing_anything_twice(both: tuple[Path, Path]) -> None:
    counts = []
    for path in both:
        with h5py.File(path, "r+") as file:
            before = _counts(file)
            with VersionedHDF5File(file).stage_version("theirs", "second") as version:
                version["x"][...] = np.arange(100.0)
                version["text"][...] = np.array(["a", "", "äöü", "a", "", "", "new"], object)
            assert _counts(file) == before, "a chunk that was there was stored again"
        with hs.VersionedFile(path, "r+") as file, file.stage_version("ours", "second") as version:
            version["x"][...] = np.arange(100.0)
            version["g/h/y"][...] = version["g/h/y"][...]
        with h5py.File(path) as file:
            assert _counts(file) == before, "a chunk that was there was stored again"
        counts.append(before)
    assert counts[0] == counts[1]


def _counts(file: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    file["_version_data"].visititems(
        lambda name, one: found.update({name: int(one.attrs["largest_index"])}) if name.endswith("hash_table") else None
    )
    return found


def test_hashes_are_what_the_documentation_says() -> None:
    numbers = bytes.fromhex("01 00 02 00 03 00 04 00 05 00 06 00 28 32 2c 20 33 29")
    assert chunk_hash(np.array([[1, 2, 3], [4, 5, 6]], "<i2")) == sha256(numbers).digest()
    words = bytes.fromhex("01 00 00 00 00 00 00 00 61 02 00 00 00 00 00 00 00 c3 a9 28 32 2c 29")
    assert chunk_hash(np.array(["a", "é"], object)) == sha256(words).digest()


def test_versions_share_chunks_and_no_objects(tmp_path: Path) -> None:
    """versioned-hdf5 rewrites arrays where it finds them: it would rewrite one twice, or in one version only."""
    path = tmp_path / "v.h5"
    with hs.VersionedFile(path, "w") as file:
        with file.stage_version("a") as version:
            version.create_dataset("g/h/y", data=np.arange(63).reshape(9, 7), chunks=(2, 3))
            version["g/h"].attrs["note"] = "kept"
        with file.stage_version("b") as version:
            version["g/h/y"][3, 3], version["g/h/y"][4:6, 5:7] = 100, 200
        expected = file["b"]["g/h/y"][...]
        for name in "cde":
            with file.stage_version(name) as version:
                version[name] = np.arange(3)
    with h5py.File(path, "r+") as theirs:
        found = [theirs[f"_version_data/versions/{name}"] for name in "bcde"]
        for shared in ("g", "g/h", "g/h/y"):
            assert len({hash(one[shared]) for one in found}) == 4
        sources = [
            [one.src_space.get_select_bounds() for one in version["g/h/y"].virtual_sources()] for version in found
        ]
        assert all(one == sources[0] for one in sources)
        assert found[3]["g/h"].attrs["note"] == "kept"
        delete_versions(theirs, ["a", "c"])
    with hs.VersionedFile(path) as file:
        for name in "bde":
            np.testing.assert_array_equal(file[name]["g/h/y"][...], expected)
        assert file.verify().is_whole


def test_what_did_not_change_takes_the_room_of_its_mappings(tmp_path: Path) -> None:
    with hs.VersionedFile(tmp_path / "v.h5", "w") as file:
        with file.stage_version("a") as version:
            for number in range(50):
                version.create_dataset(f"g/{number}", data=np.arange(2000.0) + number, chunks=(10,))
        sizes = []
        for name in "bc":
            with file.stage_version(name) as version:
                version["g/7"][5] = 1
            sizes.append((tmp_path / "v.h5").stat().st_size)
    assert sizes[1] - sizes[0] < 50 * (200 * 92 + 2000)  # the elements take 800,000 bytes


@pytest.mark.parametrize("library", ["ours", "theirs"])
def test_the_example_of_the_documentation(tmp_path: Path, library: str) -> None:
    with h5py.File(tmp_path / "v.h5", "w") as file:
        versions: Any = hs.VersionedFile(file) if library == "ours" else VersionedHDF5File(file)
        with versions.stage_version("a") as version:
            version.create_dataset("x", data=np.arange(5), chunks=(3,))
        with versions.stage_version("b") as version:
            version["x"][4] = 9
        raw, table = file["_version_data/x/raw_data"], file["_version_data/x/hash_table"]
        assert raw[...].tolist() == [0, 1, 2, 3, 4, 0, 3, 9, 0]
        assert table.attrs["largest_index"] == 3
        assert table["shape"][:3].tolist() == [[0, 3], [3, 5], [6, 8]]
        for row, chunk in enumerate([[0, 1, 2], [3, 4], [3, 9]]):
            expected = sha256(np.array(chunk).tobytes() + str((len(chunk),)).encode())
            assert table["hash"][row].tobytes() == expected.digest()
        for name, last in (("a", (3, 5)), ("b", (6, 8))):
            shown = file[f"_version_data/versions/{name}/x"].virtual_sources()
            bounds = [(interval(one.vspace), interval(one.src_space)) for one in shown]
            assert bounds == [((0, 3), (0, 3)), ((3, 5), last)]
        with versions.stage_version("c") as version:
            version["x"].resize((6,))
        assert raw[9:].tolist() == [3, 9, 0]
        assert table["shape"][3].tolist() == [9, 12]


def interval(space: Any) -> tuple[int, int]:
    """What is selected along one axis."""
    [first], [last] = space.get_select_bounds()
    return int(first), int(last) + 1

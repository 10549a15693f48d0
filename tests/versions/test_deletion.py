"""Deleting versions and changing how arrays are stored works as in versioned-hdf5, and both can go on with the file."""

from __future__ import annotations

import shutil
from itertools import product
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import versioned_hdf5
from disks import ALL
from test_layout import make, properties
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from hyperslab.errors import DamagedFile, UsageError

WAYS = ["repacked", "in place", "through h5py"]


def change(path: Path, way: str, name: str, *arguments: Any, **options: Any) -> None:
    """Make one of our changes, in one of the ways."""
    if way == "through h5py":
        with h5py.File(path, "r+") as file:
            getattr(hs.VersionedFile(file), name)(*arguments, **options)
        return
    with hs.VersionedFile(path, "r+") as file:
        getattr(file, name)(*arguments, **options, repack=way == "repacked")


def plain(read: Any) -> Any:
    array = np.asarray(read)
    if array.dtype.kind not in "OT":
        return array.tolist() if array.dtype.kind == "V" else array
    return [one.decode() if isinstance(one, bytes) else one for one in array.reshape(-1)]


def contents(path: Path) -> dict[str, Any]:
    """Everything that both libraries must agree on, read by versioned-hdf5."""
    found: dict[str, Any] = {}
    with h5py.File(path) as file:
        versions = VersionedHDF5File(file)
        found["current"] = versions.current_version
        for name in versions.versions:
            group = file["_version_data/versions"][name]
            found[name] = {key: str(value) for key, value in group.attrs.items()}

            def visit(inner: str, one: Any, name: str = name) -> None:
                kept = {key: (str(value), np.asarray(value).dtype.kind) for key, value in one.attrs.items()}
                found[name, inner] = kept
                if isinstance(one, h5py.Dataset):
                    found[name, inner] |= {"shape": one.shape, "dtype": str(one.dtype), "fill": str(one.fillvalue)}
                    found[name, inner, "values"] = plain(one[()])

            group.visititems(visit)
    return found


def chunks(path: Path) -> dict[str, Any]:
    """What is stored for each array."""
    found: dict[str, Any] = {}

    def visit(name: str, one: Any) -> None:
        if name.endswith("/raw_data") and isinstance(one, h5py.Dataset):
            said = properties(one)
            found[name] = {
                key: said[key] for key in ("dtype", "text", "shape", "maxshape", "chunks", "filters", "fill")
            }
        elif name.endswith("/hash_table"):
            rows = one[: one.attrs["largest_index"]]
            found[name] = sorted(digest.tobytes() for digest in rows["hash"])

    with h5py.File(path) as file:
        file["_version_data"].visititems(visit)
    return found


def check_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for key, value in one.items():
        np.testing.assert_equal(value, other[key], str(key))


def check_reads(path: Path) -> None:
    """We read what versioned-hdf5 reads, and every hash is right."""
    with h5py.File(path) as file, hs.VersionedFile(path) as ours:
        theirs = VersionedHDF5File(file)
        assert set(ours.versions) == set(theirs.versions)
        for name in ours:
            for array in ours[name].walk():
                inner = array.name.split(f"/{name}/", 1)[1]
                np.testing.assert_equal(plain(array[...]), plain(theirs[name][inner][()]))


def check_goes_on(path: Path) -> None:
    """Both libraries add versions and delete them again."""
    with hs.VersionedFile(path, "r+") as file, file.stage_version("ours") as version:
        for name in list(version):
            if isinstance(version[name], hs.versions.StagedArray) and version[name].dtype.kind == "f":
                version[name][...] = np.full(version[name].shape, 3)
    with h5py.File(path, "r+") as file, VersionedHDF5File(file).stage_version("theirs") as version:
        version.create_dataset("more", data=np.arange(10.0))
        for name in list(version):
            # versioned-hdf5 says that a fill value NaN is not the same as NaN
            if name == "sparse" or isinstance(version[name], h5py.Group) or version[name].dtype.kind != "f":
                continue
            version[name][...] = np.full(version[name].shape, 4)
    check_reads(path)
    with h5py.File(path, "r+") as file:
        versioned_hdf5.delete_versions(file, ["ours"])
    check_reads(path)


LIBRARIES = ["ours", "theirs"]
COMBINATIONS = 6  # of a library and a way


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file with a bit of everything, written by each of the libraries."""
    folder = tmp_path_factory.mktemp("originals")
    with hs.VersionedFile(folder / "ours.h5", "w") as file:
        make(file)
    with h5py.File(folder / "theirs.h5", "w") as theirs:
        make(VersionedHDF5File(theirs))
    return {name: folder / f"{name}.h5" for name in LIBRARIES}


@pytest.fixture(params=LIBRARIES)
def made(request: Any, originals: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copy(originals[request.param], tmp_path / "made.h5"))


SOME = [["first"], ["second"], ["third"], ["first", "second"], ["second", "third"], ["first", "third"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "way", "names"),
    [
        (LIBRARIES[(row + column) % 2], way, names)
        for (row, way), (column, names) in product(enumerate(WAYS), enumerate(SOME))
        if ALL or (column - row) % 3 == 0  # a way has two of them, and both libraries
    ],
    ids=str,
    indirect=["made"],
)
def test_deleting_versions(made: Path, way: str, names: list[str]) -> None:
    other = made.with_name("other.h5")
    shutil.copy(made, other)
    change(made, way, "delete_versions", names)
    with h5py.File(other, "r+") as file:
        versioned_hdf5.delete_versions(file, names)
    check_same(contents(made), contents(other))
    mine, theirs = chunks(made), chunks(other)
    for name in (
        theirs.keys() - mine.keys()
    ):  # versioned-hdf5 keeps chunks that hold only the fill value and are in no version
        assert theirs.pop(name) == [] if name.endswith("hash_table") else theirs.pop(name)["shape"][0] == 0
    for name in theirs:  # and chunks of arrays that are empty in all deleted versions
        assert mine[name] == theirs[name], name
    check_reads(made)
    if len(names) == 2:
        check_goes_on(made)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_deleting_all_versions(made: Path, way: str) -> None:
    change(made, way, "delete_versions", ["first", "second", "third"])
    assert hs.VersionedFile(made).versions == []
    assert hs.VersionedFile(made).current_version is None
    assert chunks(made) == {}
    check_goes_on(made)


OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("x", {"chunks": (13,)}),
    ("x", {"chunks": (50,), "dtype": "f4"}),
    ("x", {"dtype": "i2"}),
    ("x", {"fillvalue": 3.0}),
    ("x", {"compression": "gzip", "compression_opts": 3, "shuffle": True}),
    ("x", {"compression": "lzf", "chunks": (16,)}),
    ("g/h/y", {"compression": None}),
    ("g/h/y", {"chunks": (3, 2), "fletcher32": True}),
    ("g/h/y", {"fillvalue": 1}),
    ("g/fill", {"fillvalue": 9}),
    ("g/fill", {"dtype": "f8", "chunks": (5, 5)}),
    ("sparse", {"dtype": "f8"}),
    ("sparse", {"chunks": (7, 3)}),
    ("empty", {"chunks": (2, 2)}),
    ("text", {"chunks": (3,)}),
    ("fixed", {"chunks": (3,)}),
    ("fixed", {"dtype": "S9"}),
    ("pair", {"chunks": (1,), "compression": "gzip"}),
    ("flags", {"compression": "gzip"}),
    ("assigned", {"scaleoffset": 0}),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "changes", "way"),
    [(LIBRARIES[number % 2], OPTIONS[number::COMBINATIONS], WAYS[number % 3]) for number in range(COMBINATIONS)],
    ids=str,
    indirect=["made"],
)
def test_changing_how_arrays_are_stored(
    request: pytest.FixtureRequest, made: Path, originals: dict[str, Path], changes: list[Any], way: str
) -> None:
    """Several arrays of one file, each in one way: what one change does to another array is seen too."""
    assert len({array for array, _ in changes}) == len(changes)
    # versioned-hdf5 changes its own file: if several links led to one array, it would change only one of them.
    other = made.with_name("other.h5")
    shutil.copy(originals["theirs"], other)
    for array, options in changes:
        with h5py.File(other, "r+") as file:  # opened again, or it treats arrays that it still holds as stored ones
            versioned_hdf5.modify_metadata(file, array, **options)
        change(made, way, "modify_metadata", array, **options)
    check_same(contents(made), contents(other))
    mine, theirs = chunks(made), chunks(other)
    assert mine.keys() == theirs.keys()
    for name in mine:
        if name.endswith("raw_data"):
            # Both libraries leave out chunks that hold only the fill value only if they are whole. versioned-hdf5 2.6
            # takes the codecs of the chunks that it writes again.
            for key in ("dtype", "text", "chunks", "fill", "maxshape"):
                assert mine[name][key] == theirs[name][key], (name, key)
            assert [code for code, *_ in mine[name]["filters"]] == [code for code, *_ in theirs[name]["filters"]], name
    check_reads(made)
    if ALL or request.node.callspec.params["made"] == "ours":  # the other library's files go on after deletions
        check_goes_on(made)


def test_what_cannot_be_changed(made: Path) -> None:
    before = made.read_bytes()
    with hs.VersionedFile(made, "r+") as file:
        with pytest.raises(KeyError, match="no version"):
            file.modify_metadata("nowhere", chunks=(3,))
        with pytest.raises(ValueError, match="chunks of"):
            file.modify_metadata("x", chunks=(3, 3))
        with pytest.raises(TypeError, match="no such option"):
            file.modify_metadata("x", level=3)
        with pytest.raises(TypeError, match="cannot become"):
            file.modify_metadata("text", dtype="f8")
        with pytest.raises(TypeError, match="cannot become"):
            file.modify_metadata("pair", dtype="f8")
        with pytest.raises(ValueError, match="no version 'nothing'"):
            file.delete_versions(["first", "nothing"])
        with pytest.raises(ValueError, match="__first_version__"):
            file.delete_versions("__first_version__")
    assert made.read_bytes() == before
    with pytest.raises(UsageError, match="open for reading"):
        hs.VersionedFile(made).delete_versions("first")


def test_text_and_words_of_one_length(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    with hs.VersionedFile(path, "w") as file:
        with file.stage_version("a") as version:
            version.create_dataset("w", data=np.array(["a", "", "bcd"], object), dtype=h5py.string_dtype(), chunks=(2,))
        for dtype in ("S4", str, "S2"):
            file.modify_metadata("w", dtype=dtype)
        assert file["a"]["w"][...].tolist() == [b"a", b"", b"bc"]


@pytest.mark.parametrize("way", WAYS[:2])
def test_what_becomes_of_the_space(tmp_path: Path, way: str) -> None:
    path, secret = tmp_path / "v.h5", np.frombuffer(b"a secret that is to go ..........", "u1")
    with hs.VersionedFile(path, "w") as file:
        with file.stage_version("a") as version:
            version.create_dataset("x", data=np.random.default_rng(0).random(100_000), chunks=(1000,))
        with file.stage_version("b") as version:
            version["x"][...] = np.random.default_rng(1).random(100_000)
            version.create_dataset("s", data=secret)
    before = path.stat().st_size
    change(path, way, "delete_versions", "b")
    if way == "repacked":
        assert path.stat().st_size < 0.55 * before
        assert secret.tobytes() not in path.read_bytes()
    else:
        assert path.stat().st_size > before  # as the documentation says
        with hs.VersionedFile(path, "r+") as file:
            file.repack()
        assert path.stat().st_size < 0.55 * before
    check_reads(path)


@pytest.mark.parametrize("way", WAYS[:2])
def test_readers_keep_what_they_have(tmp_path: Path, way: str) -> None:
    path = tmp_path / "v.h5"
    data = np.random.default_rng(0).random((3, 20_000))
    with hs.VersionedFile(path, "w") as file:
        for number, row in enumerate(data):
            with file.stage_version(f"v{number}") as version:
                if not number:
                    version.create_dataset("x", data=row, chunks=(100,), compression="gzip")
                version["x"][...] = row
    reader = hs.VersionedFile(path, chunk_cache_nbytes=0)
    held = [reader[f"v{number}"]["x"] for number in range(3)]
    with hs.VersionedFile(path, "r+") as file:
        file.delete_versions("v1", repack=way == "repacked")
        for number in range(3, 6):
            with file.stage_version(f"v{number}") as version:
                version["x"][...] = np.random.default_rng(number).random(20_000)
        for array, row in zip(held, data, strict=True):
            np.testing.assert_array_equal(array[...], row)
    reader.refresh()
    assert reader.versions == ["v0", "v2", "v3", "v4", "v5"]
    with pytest.raises(KeyError):
        reader["v1"]
    np.testing.assert_array_equal(reader["v2"]["x"][...], data[2])


def test_everything_else_in_the_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    with hs.VersionedFile(path, "w") as file:
        make(file)
    with h5py.File(path, "r+") as file:
        file.attrs["title"] = "mine"
        file.create_dataset("beside/data", data=np.arange(10))
        file["link"] = h5py.SoftLink("/beside/data")
        file["hard"] = file["beside"]
        file["_version_data/x"].create_dataset("notes", data=[1, 2])
        file["_version_data"].attrs["note"] = "theirs"
    for way in WAYS:
        change(path, way, "modify_metadata", "x", chunks=({"repacked": 9, "in place": 10}.get(way, 11),))
        with h5py.File(path) as file:
            assert file.attrs["title"] == "mine"
            assert file["link"][3] == 3
            assert isinstance(file.get("link", getlink=True), h5py.SoftLink)
            assert file["_version_data/x/notes"][:].tolist() == [1, 2]
            assert file["_version_data"].attrs["note"] == "theirs"
            assert file["hard"] == file["beside"], "one object under two names"
            versions = VersionedHDF5File(file)
            assert versions["first"]["default"] != versions["second"]["default"], "versions share no objects"


def test_the_name_keeps_leading_there(tmp_path: Path) -> None:
    """Through a link to the file, with its permissions, and while it is locked."""
    path, link = tmp_path / "v.h5", tmp_path / "link.h5"
    with hs.VersionedFile(path, "w") as file:
        make(file)
    path.chmod(0o640)
    link.symlink_to(path)
    with hs.VersionedFile(link, "r+") as file:
        file.delete_versions("first")
        assert link.is_symlink()
        assert path.stat().st_mode & 0o777 == 0o640
        with pytest.raises(UsageError, match="open elsewhere"):
            hs.VersionedFile(path, "r+")
        assert hs.VersionedFile(path).versions == file.versions == ["second", "third"]
        with file.stage_version("fourth") as version:
            version["x"][0] = 5
    assert hs.VersionedFile(link)["fourth"]["x"][0] == 5
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link.h5", "v.h5"]


def test_a_version_that_cannot_be_read_stops_a_deletion(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    with hs.VersionedFile(path, "w") as file:
        make(file)
    with h5py.File(path, "r+") as file:
        file["_version_data/x/raw_data"].resize(3 * file["_version_data/x/raw_data"].chunks[0], axis=0)
    before = path.read_bytes()
    with hs.VersionedFile(path, "r+") as file, pytest.raises(DamagedFile, match="do not exist"):
        file.delete_versions("first")
    assert path.read_bytes() == before

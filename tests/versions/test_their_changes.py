"""What versioned-hdf5's own functions do to our files: `modify_metadata`, `delete_versions`, rebuilding."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import versioned_hdf5
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from hyperslab.errors import DamagedFile
from hyperslab.versions import repair

VERSIONS = "_version_data/versions"
NAMES = "abcde"
ARRAYS = ("x", "many", "g/text")


def make(path: Path, borrowed: bool = False) -> dict[str, dict[str, np.ndarray]]:
    """Versions, in most of which most arrays did not change; and what they hold."""
    content, expected = made(borrowed)
    path.write_bytes(content)
    return copy.deepcopy(expected)


@cache
def made(borrowed: bool) -> tuple[bytes, dict[str, dict[str, np.ndarray]]]:
    """The same file for all tests."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "v.h5")
        expected = commit(path, borrowed)
        return path.read_bytes(), expected


def commit(path: Path, borrowed: bool) -> dict[str, dict[str, np.ndarray]]:
    with h5py.File(path, "w") if borrowed else hs.VersionedFile(path, "w") as opened:
        file = hs.VersionedFile(opened) if borrowed else opened
        with file.stage_version("a") as version:
            version.create_dataset("x", data=np.arange(40), chunks=(4,)).attrs["units"] = "m"
            version.create_dataset("many", data=np.arange(600.0).reshape(300, 2), chunks=(4, 1))  # 150 mappings
            version["many"].attrs["note"] = np.array(["ä", "b"], h5py.string_dtype())
            words = np.array(["a", "bc"] * 20, object)
            version.create_dataset("g/text", data=words, chunks=(4,), dtype=h5py.string_dtype())
            version["other"] = np.arange(3)
        for number, name in enumerate(NAMES[1:]):
            with file.stage_version(name) as version:
                version["other"][0] = number
                if name == "d":
                    version["x"][3], version["many"][7, 1], version["g/text"][3] = 100, -1, "new"
        return {name: {array: file[name][array][...] for array in ARRAYS} for name in NAMES}


def plain(read: Any) -> np.ndarray:
    """Text as `str`."""
    array = np.asarray(read)
    if array.dtype.kind != "O":
        return array
    return np.array([one.decode() if isinstance(one, bytes) else one for one in array], object)


def all_as(path: Path, expected: dict[str, dict[str, np.ndarray]], *, is_last: bool = True) -> None:
    """Every version is right for h5py, for versioned-hdf5 and for us, and at last undamaged."""
    with hs.VersionedFile(path) as ours, h5py.File(path) as file:
        theirs = VersionedHDF5File(file)
        for name, arrays in expected.items():
            for array, elements in arrays.items():
                for read in (ours[name][array], file[f"{VERSIONS}/{name}/{array}"], theirs[name][array]):
                    np.testing.assert_array_equal(plain(read[()]), plain(elements), f"{name} {array}")
            assert ours[name]["x"].attrs["units"] == "m"
            assert list(ours[name]["many"].attrs["note"]) == ["ä", "b"]
    if not is_last:
        return
    with hs.VersionedFile(path) as ours:  # h5py's is closed, so that what `verify` asks can be forked from this process
        found = ours.verify()
    assert found.is_whole, found.damages


def changes() -> Iterator[Any]:
    """An array and what is changed; every other time our file was opened by h5py when it was made."""
    options: tuple[dict[str, Any], ...]
    options = ({"chunks": (7,)}, {"chunks": (2,)}, {"dtype": "f4"}, {"fillvalue": 5}, {"compression": "gzip"})
    some = [*(("x", one) for one in options), ("many", {"chunks": (5, 2)}), ("many", {"compression": "lzf"}),
            ("g/text", {"chunks": (3,)}), ("g/text", {"compression": "gzip"})]  # fmt: skip
    for number, (array, one) in enumerate(some):
        (name, value), borrowed = *one.items(), number % 2 == 1
        yield pytest.param(array, one, borrowed, id=f"{array}-{name}-{value}{'-borrowed' if borrowed else ''}")


@pytest.mark.slow
@pytest.mark.parametrize(("array", "options", "borrowed"), list(changes()))
def test_modify_metadata_of_versioned_hdf5(tmp_path: Path, array: str, options: dict[str, Any], borrowed: bool) -> None:
    path = tmp_path / "v.h5"
    expected = make(path, borrowed)
    if "fillvalue" in options:  # elements equal to the old fill value become the new one
        for arrays in expected.values():
            arrays["x"] = np.where(arrays["x"] == 0, 5, arrays["x"])
    with h5py.File(path, "r+") as file:
        versioned_hdf5.modify_metadata(file, array, **options)
    all_as(path, expected, is_last=False)
    with hs.VersionedFile(path, "r+") as ours, ours.stage_version("ours") as version:
        version[array][0] = expected["a"][array][1]
    with h5py.File(path, "r+") as file, VersionedHDF5File(file).stage_version("theirs") as version:
        version[array][1] = expected["a"][array][0]
    all_as(path, expected)


@pytest.mark.slow
@pytest.mark.parametrize("names", ["a", "d", ["a", "c", "e"], ["b", "c"]])
def test_delete_versions_of_versioned_hdf5(tmp_path: Path, names: Any) -> None:
    path = tmp_path / "v.h5"
    expected = make(path)
    with h5py.File(path, "r+") as file:
        versioned_hdf5.delete_versions(file, names)
    all_as(path, {name: arrays for name, arrays in expected.items() if name not in names})


@pytest.mark.slow
@pytest.mark.parametrize("rebuild", ["rebuild_hashtables", "rebuild_object_dtype_hashtables"])
def test_rebuilt_hash_tables(tmp_path: Path, rebuild: str) -> None:
    path = tmp_path / "v.h5"
    expected = make(path)
    with hs.VersionedFile(path, "r+") as ours:
        with ours.stage_version("lost") as version:
            for array in ARRAYS:
                version[array][0] = "lost" if array == "g/text" else 77
        with ours.stage_version("kept", "e") as version:  # its chunks lie after those of the lost version
            for array in ARRAYS:
                version[array][0] = "kept" if array == "g/text" else 78
        expected["kept"] = {array: ours["kept"][array][...] for array in ARRAYS}
    with h5py.File(path, "r+") as file:
        del file[f"{VERSIONS}/lost"]  # its chunks stay, and have no row after this
        del file["_version_fingerprints"]  # otherwise `verify` would miss the version
        file[VERSIONS].attrs["current_version"] = "kept"
        getattr(VersionedHDF5File(file), rebuild)()
    with hs.VersionedFile(path, "r+") as ours, ours.stage_version("ours") as version:
        for array in ARRAYS:
            version[array][0] = "ours" if array == "g/text" else 79
    all_as(path, expected, is_last=False)
    with h5py.File(path, "r+") as file:
        with VersionedHDF5File(file).stage_version("theirs") as version:
            for array in ARRAYS:
                version[array][0] = "theirs" if array == "g/text" else 80
        versioned_hdf5.delete_versions(file, "b")
    del expected["b"]
    all_as(path, expected)


def shared(path: Path) -> dict[str, dict[str, np.ndarray]]:
    """A file as our earlier releases made it: unchanged arrays are one object."""
    expected = make(path)
    with h5py.File(path, "r+") as file:
        versions = file[VERSIONS]
        for first, others in (("a", "bc"), ("d", "e")):
            for name in others:
                for array in ARRAYS:
                    del versions[f"{name}/{array}"]
                    versions[f"{name}/{array}"] = versions[f"{first}/{array}"]
    return expected


@pytest.mark.slow
def test_files_of_earlier_releases_are_read_and_changed(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    expected = shared(path)
    all_as(path, expected)
    with hs.VersionedFile(path, "r+") as file:
        file.modify_metadata("x", chunks=(3,), repack=False)
    all_as(path, expected, is_last=False)
    with hs.VersionedFile(path, "r+") as file:
        file.delete_versions("b")
        del expected["b"]
    all_as(path, expected, is_last=False)
    with h5py.File(path, "r+") as file:
        objects = [file[f"{VERSIONS}/{name}/x"] for name in expected]
        assert len({hash(one) for one in objects}) == len(objects)  # writing the file again protects it from this:
        versioned_hdf5.modify_metadata(file, "x", chunks=(5,))
    all_as(path, expected)


@pytest.mark.parametrize(("options", "said"), [({"chunks": (7,)}, "chunk shape"), ({"dtype": "f4"}, "elements are")])
def test_what_modify_metadata_made_of_shared_arrays_is_damaged(
    tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    path = tmp_path / "v.h5"
    expected = shared(path)
    with h5py.File(path, "r+") as file:
        versioned_hdf5.modify_metadata(file, "x", **options)
    named = []
    with hs.VersionedFile(path) as file:
        for name in NAMES:
            np.testing.assert_array_equal(file[name]["many"][...], expected[name]["many"])
            try:
                read = file[name]["x"][...]
            except DamagedFile as error:
                named.append((name, str(error)))
            else:
                np.testing.assert_array_equal(read, expected[name]["x"])
        assert all(said in one for _, one in named)
        named = [name for name, _ in named]
        assert named
        found = file.verify()
        assert {(one.array, *(one.versions or ())) for one in found.damages} == {("x", name) for name in named}
    with pytest.raises(DamagedFile, match=said):
        hs.open(path, version=named[0])["x"]
    before = path.read_bytes()
    with hs.VersionedFile(path, "r+") as file:
        with pytest.raises(DamagedFile, match=said), file.stage_version("next", named[0]) as version:
            version["x"][0] = 1
        assert "next" not in file
        with pytest.raises(DamagedFile, match=said):
            file.modify_metadata("x", chunks=(2,))
        if "chunks" in options:
            with pytest.raises(DamagedFile, match=said):
                file.delete_versions("a")
    assert path.read_bytes() == before
    with hs.VersionedFile(path, "r+") as file:
        with file.stage_version("next", named[0]) as version:  # what it does not touch is kept
            version["many"][0, 0] = 5
        assert file["next"]["many"][0, 0] == 5


def test_a_version_whose_chunks_were_cut_off_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    make(path)
    with h5py.File(path, "r+") as file:
        file["_version_data/x/raw_data"].resize(5 * 4, axis=0)
    with hs.VersionedFile(path) as file, pytest.raises(DamagedFile, match="shows chunk"):
        file["a"]["x"]


def rotated(file: h5py.File, name: str) -> None:
    """Write an array's mappings in another order: the first chunk's comes last, as versioned-hdf5 1.3 writes it."""
    before = file[name]
    layout = h5py.VirtualLayout(before.shape, before.dtype)
    sources = before.virtual_sources()
    for one in [*sources[1:], sources[0]]:
        (start, stop), (low, high) = one.vspace.get_select_bounds(), one.src_space.get_select_bounds()
        shown = tuple(slice(first, last + 1) for first, last in zip(start, stop, strict=True))
        stored = tuple(slice(first, last + 1) for first, last in zip(low, high, strict=True))
        layout[shown] = h5py.VirtualSource(".", one.dset_name, one.src_space.shape)[stored]
    attributes = dict(before.attrs)
    del file[name]
    made = file.create_virtual_dataset(name, layout, fillvalue=before.fillvalue)
    made.attrs.update(attributes)


@pytest.mark.parametrize("array", ["x", "many"])
def test_mappings_in_another_order(tmp_path: Path, array: str) -> None:
    path = tmp_path / "v.h5"
    expected = make(path)
    with h5py.File(path, "r+") as file:
        rotated(file, f"{VERSIONS}/c/{array}")
        rotated(file, f"{VERSIONS}/e/{array}")
    all_as(path, expected, is_last=False)
    with hs.VersionedFile(path) as file:
        assert file["e"][array][1:3].tolist() == expected["e"][array][1:3].tolist()
    with hs.VersionedFile(path, "r+") as file:
        with file.stage_version("f") as version:
            version["x"][1] = 7
        file.delete_versions("b")
    del expected["b"]
    expected["f"] = {**expected["e"], "x": np.array([expected["e"]["x"][0], 7, *expected["e"]["x"][2:]])}
    all_as(path, expected)


@pytest.fixture
def orphaned(tmp_path: Path) -> Path:
    """`rebuild_hashtables` deletes the table of hashes of an array that no version has any more, but not its chunks."""
    path = tmp_path / "orphan.h5"
    with h5py.File(path, "w") as h5:
        file = VersionedHDF5File(h5)
        with file.stage_version("a") as group:
            group.create_dataset("x", data=np.arange(10), chunks=(4,))
            group.create_dataset("y", data=np.arange(10), chunks=(4,))
        with file.stage_version("b", "") as group:
            group.create_dataset("y", data=np.arange(10), chunks=(4,))
        del file["a"]
        file.rebuild_hashtables()
        assert list(h5["_version_data/x"]) == ["raw_data"]
    return path


def test_chunks_without_a_table_of_hashes_are_no_damage(orphaned: Path) -> None:
    with hs.VersionedFile(orphaned) as file:
        assert file.verify().is_whole
        assert [one.name for one in file.log()] == ["b"]
        file.stats()
    assert repair(orphaned, orphaned.with_name("r.h5")).is_complete


def test_an_array_with_such_a_name_can_be_made_again(orphaned: Path) -> None:
    with hs.VersionedFile(orphaned, "r+") as file:
        with file.stage_version("c") as version:
            version["y"][3] = -3
        with file.stage_version("d") as version:
            version.create_dataset("x", data=np.arange(20), chunks=(4,))
        assert file.verify().is_whole
        np.testing.assert_array_equal(file["d"]["x"][...], np.arange(20))
    with h5py.File(orphaned, "r+") as h5:
        theirs = VersionedHDF5File(h5)
        with theirs.stage_version("e") as group:
            group["x"][0] = 7
        np.testing.assert_array_equal(theirs["d"]["x"][()], np.arange(20))
    with hs.VersionedFile(orphaned) as file:
        np.testing.assert_array_equal(file["e"]["x"][...], [7, *range(1, 20)])
        assert file.verify().is_whole


@pytest.mark.parametrize("in_place", [False, True])
def test_deleting_versions_and_repacking_remove_such_chunks(orphaned: Path, in_place: bool) -> None:
    with hs.VersionedFile(orphaned, "r+") as file:
        if in_place:
            with file.stage_version("c"):
                pass
            file.delete_versions("c", repack=False)
        else:
            file.repack()
    with h5py.File(orphaned) as h5:
        assert set(h5["_version_data"]) == {"versions", "y"}
        np.testing.assert_array_equal(VersionedHDF5File(h5)["b"]["y"][()], np.arange(10))
    assert hs.VersionedFile(orphaned).verify().is_whole


def test_a_lost_table_of_hashes_is_damage_until_it_is_made_again(orphaned: Path) -> None:
    with h5py.File(orphaned, "r+") as h5:
        del h5["_version_data/y/hash_table"]
    with hs.VersionedFile(orphaned) as file:
        assert ("y", "its chunks, or their hashes, are missing") in [
            (one.array, one.what) for one in file.verify().damages
        ]
    with hs.VersionedFile(orphaned, "r+") as file:
        with file.stage_version("c") as version:
            version["y"][0] = 9
        file.repack()
        np.testing.assert_array_equal(file["c"]["y"][...], [9, *range(1, 10)])
        np.testing.assert_array_equal(file["b"]["y"][...], np.arange(10))
        assert "have no hash" in file.verify().damages[0].what


@pytest.mark.parametrize(("dtype", "fill"), [("f4", 1.0), ("S3", b"a")])
def test_chunks_at_ends_that_others_store_without_need_are_no_damage(tmp_path: Path, dtype: str, fill: Any) -> None:
    """Nobody wrote to them, but `modify_metadata` stores them when it writes the others again."""
    path = tmp_path / "v.h5"
    with hs.VersionedFile(path, "w") as file, file.stage_version("a") as version:
        version.create_dataset("x", shape=(13, 5), dtype=dtype, chunks=(4, 4), fillvalue=fill)
        version["x"][0, 0] = 0
    with h5py.File(path, "r+") as file:
        versioned_hdf5.modify_metadata(file, "x", chunks=(4, 4))
    with hs.VersionedFile(path) as file:
        found = file.verify()
    assert (found.is_whole, found.proved) == (True, ["a"])
    with h5py.File(path, "r+") as file:  # an element that is not the fill value is damage, wherever it is
        file["_version_data/x/raw_data"][-4, 0] = 0
    with hs.VersionedFile(path) as file:
        assert not file.verify().is_whole

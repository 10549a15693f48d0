"""Compounds with gaps: versioned-hdf5 hashes what memory holds between fields, and stores what another copy has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from hyperslab.versions import apply, bundle, import_files, push, repair
from hyperslab.versions.inspect.regions import unequal
from hyperslab.versions.layout.padding import cleared

PADDED = np.dtype([("a", "<i2"), ("b", "<f8"), ("c", "S3")], align=True)
Elements = dict[str, Any]


def dirty(shape: tuple[int, ...], gaps: int, dtype: np.dtype[Any] = PADDED) -> Any:
    """Equal elements for equal shapes, whatever lies between their fields."""
    count = int(np.prod(shape))
    data = np.full(count * dtype.itemsize, gaps, np.uint8).view(dtype).reshape(shape)
    for name in dtype.names or ():
        data[name] = b"x" if dtype[name].kind == "S" else np.arange(count).reshape(shape) % 7
    return data


def theirs(path: Path, name: str, change: Callable[[Any], None]) -> None:
    with h5py.File(path, "r+" if path.exists() else "w") as h5, VersionedHDF5File(h5).stage_version(name) as staged:
        change(staged)


def ours(path: Path, name: str, change: Callable[[Any], None]) -> None:
    with hs.VersionedFile(path, "a") as file, file.stage_version(name) as staged:
        change(staged)


def wrong_hashes(path: Path, array: str, shape: tuple[int, ...]) -> None:
    """Give the first chunk the hash of the same elements with other bytes in the gaps, as versioned-hdf5 does where
    NumPy copies them field by field before they are hashed.
    """
    from hyperslab.versions.layout.names import chunk_hash

    with h5py.File(path, "r+") as h5:
        group = h5[f"_version_data/{array}"]
        rows = group["hash_table"][...]
        chunk = group["raw_data"][tuple(map(slice, shape))]
        copied = np.full(chunk.nbytes, 0xA5, np.uint8).view(chunk.dtype).reshape(chunk.shape)
        for name in chunk.dtype.names or ():
            copied[name] = chunk[name]
        rows["hash"][0] = np.frombuffer(chunk_hash(copied), np.uint8)
        group["hash_table"][...] = rows


def grown(path: Path) -> Elements:
    """Two versions of versioned-hdf5, and one of ours, of an array whose first chunk has such a hash."""
    x = dirty((13, 11), 0x11)
    theirs(path, "a", lambda staged: staged.create_dataset("x", data=x, chunks=(4, 5)))
    wrong_hashes(path, "x", (4, 5))
    expected: Elements = {"a": x}
    for name, by, at in (("b", theirs, (12, 0)), ("c", ours, (8, 6)), ("d", theirs, (12, 10))):
        before = expected[list(expected)[-1]].copy()
        before[at] = dirty((1,), 0x33)[0]

        def change(staged: Any, at: tuple[int, int] = at) -> None:
            staged["x"][at] = dirty((1,), 0x33)[0]

        by(path, name, change)
        expected[name] = before
    return expected


def check(path: Path, expected: Elements) -> Any:
    with hs.VersionedFile(path) as file:
        found = file.verify()
        for name, elements in expected.items():
            assert (file[name]["x"][...] == elements).all()
    with h5py.File(path) as h5:
        for name, elements in expected.items():
            assert (h5[f"_version_data/versions/{name}/x"][()] == elements).all()
            assert (VersionedHDF5File(h5)[name]["x"][()] == elements).all()
    assert found.damages == []
    return found


def test_hashes_of_gaps_are_unproved_and_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    expected = grown(path)
    found = check(path, expected)
    assert "1 of its chunks" in found.unchecked["x"]
    assert "c" in found.unproved
    assert found.proved == []  # ours shows that chunk too


def test_versions_without_such_a_chunk_are_proved(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    expected = grown(path)

    def change(staged: Any) -> None:
        staged["x"][...] = dirty((13, 11), 0x44)[::-1]

    ours(path, "e", change)
    expected["e"] = dirty((13, 11), 0x44)[::-1]
    assert check(path, expected).proved == ["e"]


@pytest.mark.parametrize("way", ["push", "bundle", "import", "other chunks"])
def test_such_versions_go_to_other_files(tmp_path: Path, way: str) -> None:
    path, target = tmp_path / "v.h5", tmp_path / "two.h5"
    expected = grown(path)
    if way == "push":
        push(path, target)
    elif way == "bundle":
        bundle(path, tmp_path / "x.bundle")
        apply(target, tmp_path / "x.bundle")
    else:
        import_files([path], target, chunks={} if way == "import" else {"x": (3, 7)})
    found = check(target, expected)
    if way in ("push", "bundle"):
        assert "x" in found.unchecked
    else:
        assert found.proved == ["a", "b", "c", "d"]  # we hashed these
    theirs(target, "more", lambda staged: staged["x"].resize((14, 12)))
    check(target, expected)


def test_rewritten_files_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    expected = grown(path)
    with hs.VersionedFile(path, "r+") as file:
        file.delete_versions("b")
    del expected["b"]
    assert "x" in check(path, expected).unchecked
    with h5py.File(path, "r+") as h5:
        VersionedHDF5File(h5).rebuild_hashtables()
    check(path, expected)
    with hs.VersionedFile(path, "r+") as file:
        file.modify_metadata("x", chunks=(5, 5))
    assert check(path, expected).unchecked == {}


def test_repair_keeps_what_is_not_proved_only_if_asked(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    expected = grown(path)
    repaired = repair(path, tmp_path / "r.h5")
    assert "cannot be proved" in repaired.lost[0].reason
    assert repair(path, tmp_path / "all.h5", keep_unproved=True).is_complete
    check(tmp_path / "all.h5", expected)


def test_a_chunk_that_cannot_be_decoded_is_damage_nevertheless(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    with hs.VersionedFile(path, "w") as file, file.stage_version("a") as staged:
        staged.create_dataset("x", data=dirty((40,), 0x11), chunks=(10,), fletcher32=True)
    with h5py.File(path) as h5:
        at = h5["_version_data/x/raw_data"].id.get_chunk_info(2).byte_offset
    stored = bytearray(path.read_bytes())
    stored[at + 3] ^= 1
    path.write_bytes(stored)
    with hs.VersionedFile(path) as file:
        assert "cannot be decoded" in file.verify().damages[0].what


@pytest.mark.parametrize("dtype", [PADDED, np.dtype([("n", "i1"), ("z", "g")], align=True)], ids=["padded", "long"])
def test_equal_elements_are_one_chunk_whatever_lies_between_their_fields(tmp_path: Path, dtype: np.dtype[Any]) -> None:
    path = tmp_path / "v.h5"
    ours(path, "a", lambda staged: staged.create_dataset("x", data=dirty((40,), 0x11, dtype), chunks=(10,)))

    def again(staged: Any) -> None:
        staged["x"][...] = dirty((40,), 0x77, dtype)

    def some(staged: Any) -> None:
        staged["x"][3:25] = dirty((40,), 0x99, dtype)[3:25]

    ours(path, "b", again)
    ours(path, "c", some)
    clean = cleared(dirty((40,), 0, dtype))

    def theirs_again(staged: Any) -> None:
        staged["x"][...] = clean

    theirs(path, "d", theirs_again)  # as h5py reads them, which begins with zeros
    with h5py.File(path) as h5:
        assert h5["_version_data/x/hash_table"].attrs["largest_index"] == 4
    with hs.VersionedFile(path) as file:
        assert list(file.diff("a", "c").arrays) == []
        assert file.verify().proved == ["a", "b", "c"]


def test_the_fill_value_has_no_chunk(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    fill = dirty((3,), 0xEE)[2]

    def create(staged: Any) -> None:
        staged.create_dataset("x", data=np.full((20,), fill, PADDED), chunks=(10,), fillvalue=fill)

    ours(path, "a", create)
    with h5py.File(path) as h5:
        assert h5["_version_data/x/hash_table"].attrs["largest_index"] == 0
    assert (hs.VersionedFile(path)["a"]["x"][...] == fill).all()


def test_gaps_are_no_difference_in_merges_and_blame(tmp_path: Path) -> None:
    assert not unequal(dirty((2, 5), 0x11), dirty((2, 5), 0x22)).any()
    path = tmp_path / "v.h5"
    theirs(path, "a", lambda staged: staged.create_dataset("x", data=dirty((40,), 0x11), chunks=(10,)))
    with hs.VersionedFile(path, "r+") as file:
        file.create_branch("side", "a")
        for branch, at, gaps in (("side", 3, 0x22), ("main", 5, 0x33)):
            with file.stage_version(branch[0], branch=branch) as staged:
                staged["x"][:10] = dirty((40,), gaps)[:10]
                staged["x"][at] = np.array((at, 99, b"y"), PADDED)
        file.merge("side", into="main", conflict="raise", name="both")
        found = file["both"]["x"][...]
        assert found["b"][[3, 5]].tolist() == [99, 99]
        blamed = file.blame_elements("x")
        names = [blamed.changes[number].version.name for number in blamed.numbers[[2, 3, 5]].tolist()]
        assert names == ["a", "s", "m"]
        assert file.verify().is_whole

"""What you can see of versions: their log, their differences, their sizes."""

from __future__ import annotations

import datetime as dt
from itertools import product
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from differences import assert_difference
from disks import ALL
from versioned_hdf5 import VersionedHDF5File, delete_versions

import hyperslab as hs
from hyperslab.errors import DamagedFile, FileChanged, UsageError
from hyperslab.versions.inspect.chunk_maps import ChunkMaps
from hyperslab.versions.inspect.regions import joined, runs

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    """Four versions in a tree: b and c are based on a, d on c."""
    path = tmp_path / "survey.h5"
    with hs.VersionedFile(path, "w") as file:
        with file.stage_version("a", timestamp=START) as version:
            version.attrs["author"] = "Ada"
            version.create_dataset("x", data=np.arange(100.0), chunks=(8,))
            version["x"].attrs["units"] = "m"
            version.create_dataset("g/y", data=np.arange(63).reshape(9, 7), chunks=(2, 3))
            words = np.array(["a", "", "äö"], object)
            version.create_dataset("text", data=words, dtype=h5py.string_dtype(), chunks=(2,))
        with file.stage_version("b", timestamp=START + dt.timedelta(1)) as version:
            version["x"][20:25] = -1
            version["x"][90] = np.nan
            version["x"].attrs["units"] = "km"
        with file.stage_version("c", "a", timestamp=START + dt.timedelta(2)) as version:
            version["g/y"][3, 3], version["g/y"][4:6, 5:7] = 100, 200
            version["x"].resize((120,))
            del version["text"]
            version.create_group("empty")
        with file.stage_version("d", timestamp=START + dt.timedelta(3)) as version:
            version.create_dataset("z", shape=(10, 10), dtype="i2", data=None, chunks=(4, 4))
    return path


def test_the_log_says_who_came_from_whom_and_what_changed(survey: Path) -> None:
    seen = []
    with hs.VersionedFile(survey) as file:
        entries = file.log(lambda *said: seen.append(said))
    assert seen == [("a", 1, 4), ("b", 2, 4), ("c", 3, 4), ("d", 4, 4)]
    assert [(entry.name, entry.version.parent, entry.is_current) for entry in entries] == [
        ("a", None, False),
        ("b", "a", False),
        ("c", "a", False),
        ("d", "c", True),
    ]
    assert dict(entries[0].attributes) == {"author": "Ada"}
    assert entries[1].version.time == START + dt.timedelta(1)
    changes = [{(one.path, one.status, one.chunk_count, one.attributes) for one in entry.changes} for entry in entries]
    assert changes[0] == {("x", "added", 13, ()), ("g/y", "added", 15, ()), ("text", "added", 2, ())}
    assert changes[1] == {("x", "changed", 3, ("units",))}
    assert changes[2] == {("x", "changed", 3, ()), ("g/y", "changed", 3, ()), ("text", "removed", 2, ())}
    assert changes[3] == {("z", "added", 9, ())}
    assert (entries[3].size.nbytes, entries[3].size.new_nbytes) == (120 * 8 + 63 * 8 + 200, 0)


def test_a_difference_is_seen_without_reading_and_then_where_it_is(survey: Path) -> None:
    with hs.VersionedFile(survey) as file:
        found = file.diff("a", "b")
        assert list(found.arrays) == ["x"]
        array = found["x"]
        assert (array.chunks.tolist(), array.chunk_count) == ([[2], [3], [11]], 3)
        assert array.attributes == {"units": ("m", "km")}
        assert found.attributes == {"": {"author": ("Ada", None)}}
        elements = array.elements()
        assert (elements.count, elements.boxes.tolist()) == (6, [[[20, 25]], [[90, 91]]])
        assert (elements.bounds, array.elements() is elements) == (((20, 91),), True)
        assert elements.values == ((20.0, 90.0), (-1.0, -1.0))
        changed = file.diff(-2, "c")
        assert (sorted(changed.arrays), changed.added_groups, changed.removed_groups) == (
            ["g/y", "text", "x"],
            ["empty"],
            [],
        )
        assert changed["g/y"].elements().boxes.tolist() == [[[3, 4], [3, 4]], [[4, 6], [5, 7]]]
        assert changed["x"].elements().added_count == 20
        assert changed["text"].status == "removed"
        assert file.diff("c", "c").is_empty
        with pytest.raises(KeyError, match="no version 'e'"):
            file.diff("a", "e")


def test_differences_are_seen_while_a_version_is_made(survey: Path) -> None:
    with hs.VersionedFile(survey, "r+") as file, file.stage_version("e") as version:
        version["x"][0] = 5
        assert file.diff("a", "b")["x"].elements().count == 6
        assert [entry.name for entry in file.log()] == ["a", "b", "c", "d"]
        assert file.verify().is_whole


DTYPES = ("<f8", ">i2", "S3", "?", "i4,f2", "text")
SHAPES = (((100,), (7,)), ((20, 13), (6, 5)), ((5, 6, 7), (2, 3, 7)))
# Each library with each dtype, and with each shape; HYPERSLAB_CRASHES=all combines all of them.
PAIRS = [pair for place, pair in enumerate(product(DTYPES, SHAPES)) if ALL or (place + place // 3) % 3 == 0]


@pytest.mark.parametrize("library", ["ours", "theirs"])
@pytest.mark.parametrize(("dtype", "form"), PAIRS)
def test_differences_are_what_brute_force_finds(
    tmp_path: Path, library: str, dtype: str, form: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    shape, chunk_shape = form
    rng, path, states = np.random.default_rng(3), tmp_path / "v.h5", [made(dtype, shape, np.random.default_rng(4))]
    kind: Any = h5py.string_dtype() if dtype == "text" else np.dtype(dtype)
    with hs.VersionedFile(path, "w") as file, file.stage_version("v0") as version:
        version.create_dataset("g/x", data=states[0], dtype=kind, chunks=chunk_shape)
    for number in range(1, 5):
        state = states[-1].copy()
        box = tuple(slice(*sorted(rng.integers(0, length + 1, 2))) for length in state.shape)
        state[box] = made(dtype, state[box].shape, rng)
        state = state[tuple(slice(0, rng.integers(length // 2, length + 1)) for length in shape)]
        if library == "ours":
            with hs.VersionedFile(path, "r+") as file, file.stage_version(f"v{number}") as version:
                change(version["g/x"], state)
        else:
            with h5py.File(path, "r+") as file, VersionedHDF5File(file).stage_version(f"v{number}") as version:
                change(version["g/x"], state)
        states.append(state.copy())
    with hs.VersionedFile(path) as file:
        for one, other in [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]:
            assert_difference(file, f"v{one}", f"v{other}", {"g/x": states[one]}, {"g/x": states[other]})


def change(array: Any, state: np.ndarray[Any, Any]) -> None:
    array.resize(state.shape)
    array[...] = state


def made(dtype: str, shape: tuple[int, ...], rng: Any) -> np.ndarray[Any, Any]:
    numbers = rng.integers(0, 3, shape)
    if dtype == "text":
        return np.asarray(np.array(["", "é", "longer"], object)[numbers])
    if dtype == "i4,f2":
        both = np.zeros(shape, dtype)
        both["f0"], both["f1"] = numbers, numbers / 2
        return both
    if dtype == "S3":
        return np.asarray(np.array([b"", b"a", b"abc"])[numbers], "S3")
    return np.asarray(numbers.astype(dtype))


def test_boxes_that_make_a_box_are_one() -> None:
    grid = [[[r, r + 1], [c, c + 2]] for r in range(3) for c in (0, 2, 4)]
    assert joined(np.array(grid)).tolist() == [[[0, 3], [0, 6]]]
    assert joined(np.array(grid[:-1])).tolist() == [[[0, 2], [0, 6]], [[2, 3], [0, 4]]]
    assert runs(np.array([1, 2, 3, 7, 9, 10])).tolist() == [[1, 4], [7, 8], [9, 11]]
    assert runs(np.array([], np.int64)).shape == (0, 2)


def test_sizes_add_up(survey: Path) -> None:
    with hs.VersionedFile(survey) as file:
        found = file.stats()
    sizes = {size.name: size for size in found.versions}
    x, y, text = 13 * 64, 15 * 48, 2 * 32
    assert (sizes["a"].stored_nbytes, sizes["a"].new_nbytes, sizes["a"].own_nbytes) == (x + y + text, x + y + text, 0)
    assert (sizes["b"].stored_nbytes, sizes["b"].new_nbytes, sizes["b"].own_nbytes) == (x + y + text, 192, 192)
    assert (sizes["b"].shared_nbytes, sizes["a"].nbytes) == (x + y + text - 192, 800 + 63 * 8 + 3 * 8)
    assert sizes["d"].new_nbytes == 0
    stored = sum(size.stored_nbytes or 0 for size in found.versions)
    assert found.deduplication_ratio == stored / found.stored_nbytes
    assert found.file_nbytes == survey.stat().st_size > found.other_nbytes > 0
    assert {array.path: array.version_count for array in found.arrays} == {"x": 4, "g/y": 4, "text": 2, "z": 1}
    assert (found.unreferenced_nbytes, found.uncommitted_nbytes, found.problems) == (0, 0, {})


def test_what_no_version_has_is_counted(survey: Path) -> None:
    with h5py.File(survey, "r+") as file:
        del file["_version_data/versions/b"]  # versioned-hdf5 deletes a version like this: nothing is freed
        del file["_version_fingerprints"]  # otherwise `verify` would miss the version
        raw = file["_version_data/x/raw_data"]
        raw.resize((raw.shape[0] + 16, *raw.shape[1:]))
        raw[-16:] = 7  # as a commit that was cut short leaves it
    with hs.VersionedFile(survey) as file:
        found = file.stats()
        assert (found.unreferenced_nbytes, found.uncommitted_nbytes) == (192, 128)
        assert file.verify().is_whole


def test_versions_are_parsed_in_batches_and_few_are_kept(survey: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hyperslab.versions.inspect.chunk_maps.MOST_KEPT_VERSIONS", 1)
    monkeypatch.setattr("hyperslab.versions.inspect.chunk_maps.MOST_PARSED_SLOTS", 1)
    with hs.VersionedFile(survey) as file:
        assert [len(entry.changes) for entry in file.log()] == [3, 1, 3, 1]
        assert len(ChunkMaps(file.path)._kept) <= 1


def test_a_damaged_mapping_is_unknown_not_equal(survey: Path) -> None:
    data = survey.read_bytes()
    place = data.index(b".\0/_version_data/g/y/raw_data") + 2
    survey.write_bytes(data[:place] + b"X" + data[place + 1 :])
    with hs.VersionedFile(survey) as file:
        pairs = [file.diff(one, other).arrays.get("g/y") for one, other in (("a", "c"), ("c", "d"), ("b", "d"))]
        damaged = [array for array in pairs if array is not None and array.problem]
        assert damaged
        assert [array.chunk_count for array in damaged] == [None] * len(damaged)
        with pytest.raises(DamagedFile):
            damaged[0].elements()
        assert not file.verify().is_whole
        file.stats(), file.log()


def test_a_difference_that_is_no_longer_true_says_so(survey: Path) -> None:
    """versioned-hdf5 gives chunks other slots when versions are deleted."""
    with hs.VersionedFile(survey, "r+") as file:
        with file.stage_version("e") as version:
            version["x"][...] = -np.arange(120.0)
        with file.stage_version("f") as version:
            version["x"][7] = 3
    with hs.VersionedFile(survey) as file:
        found, other = file.diff("e", "f"), file.diff("e", "f")
        assert other["x"].elements().boxes.tolist() == [[[7, 8]]]
        with h5py.File(survey, "r+") as theirs:
            delete_versions(theirs, ["a", "b", "c", "d"])
        with pytest.raises(FileChanged, match="compare them again"):
            found["x"].elements()
        with pytest.raises(KeyError, match="refresh"):
            file.diff("a", "b")


@pytest.mark.parametrize("dtype", ["<f8", "S3", "?", "text"])
def test_a_version_that_is_being_made_differs_as_it_will(tmp_path: Path, dtype: str) -> None:
    rng, kind = np.random.default_rng(7), h5py.string_dtype() if dtype == "text" else np.dtype(dtype)
    old = {name: made(dtype, (20, 13), rng) for name in ("x", "same", "g/whole", "gone")}
    new = {name: one.copy() for name, one in old.items() if name != "gone"}
    new["x"][3:7, 5] = made(dtype, (4,), rng)
    new["x"] = new["x"][:17]
    new["g/whole"] = made(dtype, (20, 13), rng)
    new["new"] = made(dtype, (5, 5), rng)
    with hs.VersionedFile(tmp_path / "v.h5", "w") as file:
        with file.stage_version("a") as version:
            for name, one in old.items():
                version.create_dataset(name, data=one, dtype=kind, chunks=(6, 5))
            version["x"].attrs["units"] = "m"
        with file.stage_version("b") as version:
            assert version.diff().is_empty
            version["x"][3:7, 5] = new["x"][3:7, 5]
            version["x"].resize((17, 13))
            version["x"].attrs["units"] = "km"
            version["same"][2:5] = old["same"][2:5]  # touched, but equal
            version["g/whole"][...] = new["g/whole"]
            version.create_dataset("new", data=new["new"], dtype=kind, chunks=(6, 5))
            version.create_group("empty")
            del version["gone"]
            staged = version.diff()
            assert set(staged.arrays) == {"x", "g/whole", "new", "gone"}
            assert staged["x"].attributes == {"units": ("m", "km")}
            assert (staged.before, staged.after, staged.added_groups) == ("a", "b", ["empty"])
            found = {name: one.elements() for name, one in staged.arrays.items()}
            late = version.diff()["x"]
            version["x"][0] = made(dtype, (13,), rng)
            with pytest.raises(FileChanged, match="compare again"):
                late.elements()
            version["x"][0] = new["x"][0]
            with pytest.raises(UsageError, match=r"call diff\(\) of its version"):
                version["g"].diff()
        committed = file.diff("a", "b")
        assert set(committed.arrays) == set(staged.arrays)
        for name, array in committed.arrays.items():
            np.testing.assert_array_equal(array.chunks, staged[name].chunks)
            for one, other in zip(array.elements().__dict__.values(), found[name].__dict__.values(), strict=True):
                np.testing.assert_array_equal(one, other)
        assert_difference(file, "a", "b", old, new)


def test_the_first_version_adds_everything(tmp_path: Path) -> None:
    with hs.VersionedFile(tmp_path / "v.h5", "w") as file, file.stage_version("a") as version:
        version.create_dataset("x", data=np.arange(10), chunks=(4,))
        found = version.diff()
        assert [(one.path, one.status, one.chunk_count) for one in found.arrays.values()] == [("x", "added", 3)]
        assert found["x"].elements().added_count == 10

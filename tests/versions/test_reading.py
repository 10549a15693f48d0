"""Versions as versioned-hdf5 wrote them, read by the engine."""

from __future__ import annotations

import datetime as dt
import pickle
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from hyperslab._core import chunk_slots_of
from hyperslab.archive.tree.group import root_of
from hyperslab.errors import DamagedFile, Unsupported, UsageError

TIMES = [dt.datetime(2024, 1, day, tzinfo=dt.UTC) for day in (1, 2, 3)]


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, list[np.ndarray[Any, Any]]]:
    path, state = tmp_path / "v.h5", [np.arange(100.0)]
    with h5py.File(path, "w") as file:
        versions = VersionedHDF5File(file)
        with versions.stage_version("a", timestamp=TIMES[0]) as version:
            version.create_dataset("g/x", data=state[0], chunks=(8,), compression="gzip")
            version["g/x"].attrs["units"] = "K"
        with versions.stage_version("b", timestamp=TIMES[1]) as version:
            version["g/x"][3:12] = -1
            state.append(version["g/x"][...])
        with versions.stage_version("c", timestamp=TIMES[2]) as version:
            version["g/x"].resize((61,))
            state.append(version["g/x"][...])
    return path, state


def test_versions_are_found_by_name_time_and_ancestry(written: tuple[Path, list[Any]]) -> None:
    path, state = written
    minute = dt.timedelta(minutes=1)
    keys: list[tuple[Any, int]] = [("a", 0), ("c", 2), (0, 2), (-1, 1), (-2, 0), (TIMES[1], 1), (TIMES[2] + minute, 2)]
    keys += [(TIMES[2] - minute, 1), (np.datetime64("2024-01-02T12:00"), 1)]
    with hs.VersionedFile(path) as file:
        assert (file.versions, file.current_version, len(file)) == (["a", "b", "c"], "c", 3)
        for key, number in keys:
            np.testing.assert_array_equal(file[key]["g/x"][...], state[number], str(key))
            np.testing.assert_array_equal(hs.open(path, version=key)["g/x"][5:80], state[number][5:80])
        np.testing.assert_array_equal(file[None]["g/x"][...], state[2])
        assert file["a"]["g/x"].attrs["units"] == "K"
        for key, error in [("d", KeyError), (-3, IndexError), (1, IndexError), (TIMES[0] - minute, KeyError)]:
            with pytest.raises(error):
                file[key]
        with pytest.raises(ValueError, match="not in UTC"):
            file[dt.datetime(2024, 1, 1)]
    with pytest.raises(ValueError, match="closed"):
        file["a"]


def test_groups_and_arrays_of_versions_are_pickled(written: tuple[Path, list[Any]]) -> None:
    path, state = written
    array = pickle.loads(pickle.dumps(hs.open(path, version="b")["g/x"]))
    np.testing.assert_array_equal(array[...], state[1])


def test_only_what_a_version_needs_is_parsed(written: tuple[Path, list[Any]]) -> None:
    path, _ = written
    root = root_of(hs.open(path, version="b").opened)
    assert list(root) == ["_version_data"]
    assert list(root["_version_data/versions"]) == ["b"]


def test_a_version_is_one_table_of_chunks_and_equals_the_general_way(tmp_path: Path) -> None:
    """Mappings in another order form one grid as well. If one comes twice, they are read in the general way."""
    path, rng = tmp_path / "v.h5", np.random.default_rng(1)
    for shape, chunk in [((1000,), (16,)), ((37, 23), (5, 4)), ((9, 8, 7), (2, 3, 7))]:
        data = rng.integers(0, 5, shape) * 1.5
        data[tuple(slice(0, 2 * length) for length in chunk)] = 0.25  # some chunks hold only the fill value
        with h5py.File(path, "w") as file:
            versions = VersionedHDF5File(file)
            with versions.stage_version("a") as version:
                version.create_dataset("x", data=rng.random(shape), chunks=chunk, fillvalue=0.25, compression="lzf")
            with versions.stage_version("b") as version:
                version["x"][...] = data
            made = file["_version_data/versions/b/x"]
            mappings = [(one.vspace.copy(), one.src_space.copy()) for one in made.virtual_sources()]
            for name, order in [(b"reversed", mappings[::-1]), (b"twice", [*mappings, mappings[0]])]:
                plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                plist.set_fill_value(np.array(0.25))
                for target, source in order:
                    plist.set_virtual(target, b".", b"/_version_data/x/raw_data", source)
                h5py.h5d.create(file.id, name, h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple(shape), plist)
        root = hs.open(path)
        one, other, general = (root[name] for name in ("_version_data/versions/b/x", "reversed", "twice"))
        assert one._stored.segment_count == other._stored.segment_count == 1
        assert general._stored.segment_count > 1
        slots = chunk_slots_of(one._stored, chunk)
        assert slots is not None
        np.testing.assert_array_equal(slots, chunk_slots_of(other._stored, chunk))
        assert chunk_slots_of(general._stored, chunk) is None
        assert one.codecs == other.codecs == ("lzf",)
        for key in [..., tuple(slice(1, None, 3) for _ in shape), tuple([0, length - 1] for length in shape)]:
            np.testing.assert_array_equal(one[key], other[key])
            np.testing.assert_array_equal(one[key], general[key])
        np.testing.assert_array_equal(one[...], data)


def test_what_has_no_versions_says_so(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "plain.h5", "w") as file:
        file["x"] = [1, 2]
    with pytest.raises(Unsupported, match="holds no versions"):
        hs.VersionedFile(tmp_path / "plain.h5")
    with pytest.raises(Unsupported, match="holds no versions"):
        hs.open(tmp_path / "plain.h5", version="v1")
    with pytest.raises(UsageError, match="mode='a'"):
        hs.VersionedFile(tmp_path / "plain.h5", "r+")
    with pytest.raises(FileNotFoundError):
        hs.VersionedFile(tmp_path / "nothing.h5")


def test_later_layouts_are_refused_and_earlier_ones_only_read(written: tuple[Path, list[Any]]) -> None:
    path, state = written
    for number in (5, 3):
        with h5py.File(path, "r+") as file:
            file["_version_data/versions"].attrs["data_version"] = number
        if number > 4:
            with pytest.raises(Unsupported, match="data_version 5"):
                hs.VersionedFile(path)
        with pytest.raises((Unsupported, UsageError), match=f"data_version {number}"):
            hs.VersionedFile(path, "r+")
    np.testing.assert_array_equal(hs.VersionedFile(path)["b"]["g/x"][...], state[1])


def test_a_reader_keeps_its_version_while_others_are_committed(written: tuple[Path, list[Any]]) -> None:
    path, state = written
    reader = hs.VersionedFile(path)
    late = hs.VersionedFile(path)
    assert len(reader) == 3
    array = reader["c"]["g/x"]
    with hs.VersionedFile(path, "r+") as writer:
        for number in range(20):
            with writer.stage_version(f"n{number}") as version:
                version["g/x"][...] = np.full(61, number)
            np.testing.assert_array_equal(array[...], state[2])
            np.testing.assert_array_equal(reader["a"]["g/x"][...], state[0])
            assert "n0" not in reader
            np.testing.assert_array_equal(late[None]["g/x"][...], state[2])
    assert (late.current_version, len(late), late.current_version) == ("c", 23, "c")
    late.refresh()
    assert late.current_version == "n19"
    reader.refresh()
    np.testing.assert_array_equal(reader["n19"]["g/x"][...], np.full(61, 19))


def test_versions_are_read_whatever_became_of_others(written: tuple[Path, list[Any]]) -> None:
    """The current version, and versions asked for by name, are found without looking at all of them."""
    path, state = written
    with h5py.File(path, "r+") as file:
        del file["_version_data/versions/a"].attrs["timestamp"]
    for key, number in ((None, 2), (0, 2), ("b", 1), ("c", 2)):
        np.testing.assert_array_equal(hs.VersionedFile(path)[key]["g/x"][...], state[number])
        opened = hs.open(path, version=0 if key is None else key)
        np.testing.assert_array_equal(opened["g/x"][...], state[number])
    file = hs.VersionedFile(path)
    assert file.current_version == "c"
    with pytest.raises(DamagedFile, match="'a'"):
        _ = file.versions


@pytest.mark.parametrize("name", ["nowhere", "*", "**", "", "a/g", "__first_version__", "a/../b"])
def test_names_that_no_version_has(written: tuple[Path, list[Any]], name: str) -> None:
    with pytest.raises(KeyError):
        hs.VersionedFile(written[0])[name]


def test_a_current_version_that_was_never_committed(written: tuple[Path, list[Any]]) -> None:
    path, state = written
    with h5py.File(path, "r+") as file:
        versions = file["_version_data/versions"]
        versions.create_group("d").attrs.update({"prev_version": "c", "committed": False})
        versions.attrs["current_version"] = "d"
    file = hs.VersionedFile(path)
    np.testing.assert_array_equal(file[None]["g/x"][...], state[2])
    assert (file.current_version, file.versions) == ("c", ["a", "b", "c"])
    assert hs.VersionedFile(path).current_version == "c"
    with pytest.raises(KeyError):
        hs.VersionedFile(path)["d"]

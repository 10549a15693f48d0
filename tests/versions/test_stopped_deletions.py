"""A deletion by versioned-hdf5 that was stopped in the middle: fingerprints tell which arrays are still right.

The tests decide in which order it goes through the versions, which otherwise depends on Python's hash seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import versioned_hdf5
from disks import ALL
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from hyperslab.versions import Repair, repair
from hyperslab.versions.rewrite.renumbering import renumbered

State = dict[str, np.ndarray[Any, Any]]
History = dict[str, State]  # by version


def drawn_history(rng: random.Random) -> History:
    """Versions that share some of their chunks with others, as edits leave them."""
    states = [{"g/y": np.arange(60.0).reshape(12, 5), "x": np.arange(103), "z": np.arange(40)}]
    for number in range(1, rng.randint(4, 7)):
        state = {path: data.copy() for path, data in rng.choice(states).items()}
        for path, data in state.items():
            for _ in range(rng.choice([0, 1, 1, 3])):
                data[rng.randrange(len(data))] = -number
            if path != "g/y" and rng.random() < 0.3:
                state[path] = np.resize(data, rng.randint(1, 150))
        states.append(state)
    return {f"v{number}": state for number, state in enumerate(states)}


def commit(versions: Any, name: str, state: State, *, is_first: bool) -> None:
    with versions.stage_version(name) as version:
        for path, data in state.items():
            if is_first:
                version.create_dataset(path, data=data, chunks=(5, 5) if data.ndim == 2 else (10,))
            else:
                version[path].resize(data.shape)
                version[path][...] = data


def committed(path: Path, history: History, theirs: Iterable[str] = ()) -> Path:
    """A file with these versions, some of them committed by versioned-hdf5."""
    for number, (name, state) in enumerate(history.items()):
        with h5py.File(path, "a") as file:
            versions: Any = VersionedHDF5File(file) if name in theirs else hs.VersionedFile(file)
            commit(versions, name, state, is_first=not number)
    return path


def stop_deletion(path: Path, deleted: list[str], order: Callable[[list[str]], list[str]], stop_at: int) -> bool:
    """Stop a deletion before it writes its n-th virtual array. Returns whether there were so many."""
    original, fill, count = versioned_hdf5.replay._recreate_virtual_dataset, versioned_hdf5.replay.vds_fillvalue, 0

    def ordered(f: Any, name: str, versions: Any, *rest: Any, **options: Any) -> Any:
        return original(f, name, order(sorted(versions)), *rest, **options)

    def stopping(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        if count == stop_at:
            raise MemoryError
        return fill(*arguments)

    with pytest.MonkeyPatch.context() as patched, h5py.File(path, "r+") as file:
        patched.setattr(versioned_hdf5.replay, "_recreate_virtual_dataset", ordered)
        patched.setattr(versioned_hdf5.replay, "vds_fillvalue", stopping)
        try:
            versioned_hdf5.delete_versions(file, deleted)
        except MemoryError:
            return True
    return False


def wrong_arrays(path: Path, history: History) -> set[tuple[str, str]]:
    """The arrays that hold something else than was committed, by version and path."""
    with hs.VersionedFile(path) as file:
        arrays = [(name, array.name.split(f"/{name}/", 1)[1], array) for name in file for array in file[name].walk()]
        return {(name, inner) for name, inner, one in arrays if not np.array_equal(one[...], history[name][inner])}


def lost(found: Repair) -> set[tuple[str, str | None]]:
    return {(one.version, one.path) for one in found.lost}


@pytest.mark.parametrize("seed", range(300 if ALL else 12))
def test_repair_saves_what_stays_and_gives_no_other_array(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    history = drawn_history(rng)
    path = committed(tmp_path / "v.h5", history)
    deleted = rng.sample(list(history), rng.choice([1, 1, 2]))
    while not stop_deletion(path, deleted, lambda names: rng.sample(names, len(names)), rng.randint(1, 12)):
        path.unlink()
        committed(path, history)
    found = repair(path, tmp_path / "new.h5")
    assert wrong_arrays(found.output, history) == set()
    assert {version for version, _ in lost(found)} <= set(deleted)
    assert set(found.versions) == set(history)
    try:
        before = wrong_arrays(path, history)
    except hs.HyperslabError:
        return  # some arrays show chunks that do not exist: each reader says so
    with hs.VersionedFile(path) as file:
        verified = file.verify()
    assert not {version for version, _ in before} & set(verified.proved)
    reported = {(name, one.array) for one in verified.damages for name in one.versions or ()}
    assert before <= reported, verified


THREE: History = {f"v{number}": {"x": np.arange(40) + 100 * number} for number in range(4)}


def stopped(tmp_path: Path, stop_at: int, theirs: Iterable[str] = ()) -> Path:
    path = committed(tmp_path / "v.h5", THREE, theirs)
    assert stop_deletion(path, ["v1"], sorted, stop_at)
    return path


def test_a_version_that_shows_the_array_of_another_one_is_named(tmp_path: Path) -> None:
    """The order is v0, v2, v3: v2 is written again, and the chunks of v1 in its place are now those of v2."""
    path = stopped(tmp_path, 3)
    with hs.VersionedFile(path) as file:
        np.testing.assert_array_equal(file["v1"]["x"][...], THREE["v2"]["x"])
        verified = file.verify()
    assert verified.proved == ["v0", "v2"]
    said = {one.versions: one.what for one in verified.damages if one.array == "x"}
    assert "was stopped" in said["v1",]
    found = repair(path, tmp_path / "new.h5")
    assert [str(one) for one in found.lost] == [
        "v1: x: it is not what was committed with this version, as its fingerprint says"
    ]
    assert (wrong_arrays(found.output, THREE), found.mended_chunk_count) == (set(), 4)


def test_what_you_keep_although_it_is_wrong_has_a_note(tmp_path: Path) -> None:
    found = repair(stopped(tmp_path, 3), tmp_path / "new.h5", keep_unproved=True)
    assert found.is_complete
    assert wrong_arrays(found.output, THREE) == {("v1", "x")}
    assert [(one.version, one.path) for one in found.notes] == [("v1", "x")]
    assert "not what was committed" in found.notes[0].reason


def test_fingerprints_warn_of_versions_that_have_none(tmp_path: Path) -> None:
    """versioned-hdf5 committed v2 and v3. The array of v1 is wrong, so theirs may be, too."""
    found = repair(stopped(tmp_path, 3, ["v2", "v3"]), tmp_path / "new.h5")
    assert wrong_arrays(found.output, THREE) == set()
    assert lost(found) == {("v1", "x"), ("v2", "x"), ("v3", "x")}


@pytest.mark.parametrize("is_removed", [False, True])
def test_an_array_that_was_to_replace_another(tmp_path: Path, is_removed: bool) -> None:
    """A stop when the new virtual array was written, before or after the old one was removed."""
    path = committed(tmp_path / "v.h5", THREE)
    with pytest.MonkeyPatch.context() as patched, h5py.File(path, "r+") as file:
        move = h5py.Group.move

        def moving(group: Any, source: str, target: str) -> None:
            if target == "x" and group.name.endswith("v2"):
                raise MemoryError
            move(group, source, target)

        patched.setattr(h5py.Group, "move", moving)
        original = versioned_hdf5.replay._recreate_virtual_dataset
        patched.setattr(
            versioned_hdf5.replay,
            "_recreate_virtual_dataset",
            lambda f, name, versions, *rest: original(f, name, sorted(versions), *rest),
        )
        if not is_removed:
            removing = h5py.Group.__delitem__

            def deleting(group: Any, name: str) -> None:
                if name == "x" and group.name.endswith("v2"):
                    raise MemoryError
                removing(group, name)

            patched.setattr(h5py.Group, "__delitem__", deleting)
        with pytest.raises(MemoryError):
            versioned_hdf5.delete_versions(file, ["v1"])
        assert "_tmp_x" in file["_version_data/versions/v2"]
        assert ("x" in file["_version_data/versions/v2"]) != is_removed
    found = repair(path, tmp_path / "new.h5")
    assert lost(found) == {("v1", "x")}
    assert wrong_arrays(found.output, THREE) == set()


def test_an_array_that_a_version_lost_is_named(tmp_path: Path) -> None:
    path = committed(tmp_path / "v.h5", THREE)
    with h5py.File(path, "r+") as file:
        del file["_version_data/versions/v2/x"]
    found = repair(path, tmp_path / "new.h5")
    assert [str(one) for one in found.lost] == ["v2: x: it was committed with this version, but is not in it any more"]


def test_a_mapping_that_leads_to_other_chunks_is_mended_from_another_version(tmp_path: Path) -> None:
    """v3 has the array of v2, unchanged."""
    history = {**THREE, "v3": THREE["v2"]}
    path = committed(tmp_path / "v.h5", history)
    with h5py.File(path, "r+") as file:
        versions = file["_version_data/versions"]
        del versions["v3/x"]
        file.copy(versions["v1/x"], versions["v3"], "x")
    found = repair(path, tmp_path / "new.h5")
    assert found.is_complete
    assert (wrong_arrays(found.output, history), found.mended_chunk_count) == (set(), 4)


def test_what_is_stored_otherwise_on_purpose_stays(tmp_path: Path) -> None:
    path = committed(tmp_path / "v.h5", THREE)
    with h5py.File(path, "r+") as file:
        versioned_hdf5.modify_metadata(file, "x", dtype="f4", chunks=(7,), compression="gzip")
    found = repair(path, tmp_path / "new.h5")
    assert found.is_complete
    assert wrong_arrays(found.output, THREE) == set()


def test_a_damaged_list_of_fingerprints_is_said(tmp_path: Path) -> None:
    path = committed(tmp_path / "v.h5", THREE)
    with h5py.File(path, "r+") as file:
        file["_version_fingerprints"][30] ^= 255
    found = repair(path, tmp_path / "new.h5")
    assert found.is_complete
    assert "the list of fingerprints is damaged" in str(found.notes[0])


def test_chunks_are_numbered_as_fingerprints_say() -> None:
    """b and d are to be found; a has its new mapping already, and c is to be deleted."""
    olds = {"b": np.array([0, 5, 2]), "c": np.array([6, 6, 7]), "d": np.array([8, -1, 9])}
    right = {"b": [0, 4, 2], "d": [5, -1, 6]}  # a shows 1 and 3: slots 1 and 3 or 4 of before
    taken = np.isin(np.arange(7), [1, 3])
    found = renumbered(olds, taken, lambda name, slots: right.get(name) == slots.tolist())
    assert {name: slots.tolist() for name, slots in found.items()} == right
    assert renumbered(olds, taken, lambda *_: False) == {}
    many = {str(number): np.arange(number, 20_000, 7) for number in range(5)}
    assert renumbered(many, np.ones(15_000, bool), lambda *_: False) == {}, "the search has an end"

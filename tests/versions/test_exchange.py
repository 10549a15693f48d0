"""Versions that go from one file to another, directly and in bundles: what comes, what stays, and what is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from disks import Killed, Trials
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner
from versioned_hdf5 import VersionedHDF5File, delete_versions

import hyperslab as hs
from hyperslab.cli.versions import app
from hyperslab.errors import DamagedFile, FileReplaced, HyperslabError, Unsupported, UsageError
from hyperslab.versions import apply, bundle, pull, push
from hyperslab.versions.commit import writing
from hyperslab.versions.transfer.applying import Bundle, apply_bundle


def commit(file: hs.VersionedFile, name: str, value: int, **options: Any) -> None:
    with file.stage_version(name, **options) as version:
        if "g/x" not in version:
            version.create_dataset("g/x", data=np.arange(400.0), chunks=(40,), compression="gzip")
            version.create_dataset("words", data=["a", "é"] * 20, dtype=h5py.string_dtype(), chunks=(8,))
            version["g"].attrs["kind"] = np.int16(3)
        version["g/x"][value % 400] = value + 1000
        if "words" in version:
            version["words"][value % 40] = f"w{value}"
        version["g/x"].attrs["last"] = value


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "one.h5"
    with hs.VersionedFile(made, "w") as file:
        commit(file, "a1", 1)
        commit(file, "b1", 62, branch="side", message="gauge", author="Ada")
        commit(file, "a2", 123)
        file.create_tag("paper", "a1", message="Figure 3")
        file.merge("side", conflict="theirs", name="m", message="both")
        with file.stage_version("a3") as version:
            version["g/x"].resize((415,))
            del version["words"]
            version.create_dataset("y", data=np.arange(12).reshape(3, 4), chunks=(2, 3), fillvalue=-1)
    return made


def same(one: Path, other: Path, names: list[str] | None = None, *, verify: bool = True) -> None:
    """The versions of one file are in the other, for us and for versioned-hdf5."""
    with hs.VersionedFile(one) as mine, hs.VersionedFile(other) as file, h5py.File(other) as h5:
        theirs = VersionedHDF5File(h5)
        assert not verify or file.verify().is_whole
        for name in mine.versions if names is None else names:
            assert file.table[name] == mine.table[name]
            assert file.merged_into(name) == mine.merged_into(name)
            assert dict(file[name].attrs.items()).keys() == dict(mine[name].attrs.items()).keys()
            found, wanted = ({array.name: array for array in each[name].walk()} for each in (file, mine))
            assert found.keys() == wanted.keys()
            for path, array in wanted.items():
                np.testing.assert_array_equal(found[path][...], array[...])
                assert found[path].dtype == array.dtype
                inner = path.partition(f"/versions/{name}/")[2]
                assert theirs[name][inner].shape == array.shape
                attrs = [{key: str(value) for key, value in one.attrs.items()} for one in (found[path], array)]
                assert attrs[0] == attrs[1]


def test_push_sends_all_to_a_new_file(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.h5"
    taken = push(path, other)
    assert taken.versions[0] == "a1"
    assert set(taken.versions) == {"a1", "a2", "a3", "b1", "m"}
    assert (taken.branches, taken.tags, taken.diverged) == ({"main": "a3", "side": "b1"}, {"paper": "a1"}, {})
    same(path, other)
    with hs.VersionedFile(other) as file:
        assert (file.current_version, file.checked_out, file.tags["paper"].message) == ("a3", "main", "Figure 3")
        assert [one.name for one in file.history("g/x", 62)] == ["b1", "a1"]
        assert file.stats().unreferenced_nbytes == 0
    again = push(path, other)
    assert (again.versions, again.chunk_count, again.branches) == ([], 0, {})


def test_only_what_lacks_goes_with_versions_of_both_libraries(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.h5"
    push(path, other)
    with h5py.File(path, "r+") as h5, VersionedHDF5File(h5).stage_version("t1") as version:
        version["g/x"][300] = -5
    taken = push(path, other, ["main"])
    assert (taken.versions, taken.chunk_count, taken.branches) == (["t1"], 1, {"main": "t1"})
    same(path, other)
    with h5py.File(other, "r+") as h5, VersionedHDF5File(h5).stage_version("t2") as version:
        version["g/x"][0] = -6
    assert pull(path, other).branches == {"main": "t2"}
    same(other, path)
    with hs.VersionedFile(path) as file:
        assert file.current_version == "t2"


def test_a_branch_with_versions_of_its_own_stays(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.h5"
    push(path, other)
    with hs.VersionedFile(path, "r+") as file:
        commit(file, "a4", 5, branch="main", make_current=True)
        file.create_tag("late", "a4")
    with hs.VersionedFile(other, "r+") as file:
        commit(file, "o4", 6)
        file.create_tag("late", "a3")
    taken = push(path, other)
    assert taken.versions == ["a4"]
    assert taken.diverged == {
        "main": "it has versions of its own here: merge 'a4'",
        "late": "the tag names another version here, or its name is taken",
    }
    with hs.VersionedFile(other, "r+") as file:
        assert (file.current_version, file.tags["late"].version) == ("o4", "a3")
        assert file.merge("a4", name="both", conflict="ours").how == "merged"
    assert push(other, path, ["main"]).branches == {"main": "both"}
    assert push(path, other, ["side"]).diverged == {}
    behind = CliRunner().invoke(app, ["push", str(path), str(other), "late"])
    assert (behind.exit_code, "late stays where it is" in behind.stdout) == (1, True)


def test_bundles_carry_a_difference(path: Path, tmp_path: Path) -> None:
    other, whole, part = tmp_path / "other.h5", tmp_path / "whole.bundle", tmp_path / "part.bundle"
    done = bundle(path, whole)
    assert (done.needs, len(done.versions)) == ((), 5)
    apply(other, whole)
    same(path, other)
    small = tmp_path / "small.h5"
    push(path, small, ["side", "paper"])
    same(path, small, ["a1", "b1"])
    done = bundle(path, part, ["main"], since=["side"])
    assert (set(done.versions), set(done.needs)) == ({"a2", "m", "a3"}, {"a1", "b1"})
    assert done.nbytes < whole.stat().st_size
    with h5py.File(path) as h5:
        assert done.chunk_count < h5["_version_data/g/x/raw_data"].id.get_num_chunks()
    taken = apply(small, part)
    assert (taken.branches, len(taken.versions)) == ({"main": "a3"}, 3)
    same(path, small)
    with pytest.raises(UsageError, match="lacks version"):
        apply(tmp_path / "empty.h5", part)
    assert bundle(path, part, ["a2"], since=["a1"]).versions == ("a2",)
    with pytest.raises(Unsupported, match="no bundle"):
        apply(other, path)
    with pytest.raises(Unsupported):
        hs.VersionedFile(part)


def test_another_version_of_the_same_name_is_refused(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.h5"
    with hs.VersionedFile(other, "w") as file:
        commit(file, "a2", 3)
    before = other.read_bytes()
    with pytest.raises(UsageError, match="another version 'a2'"):
        push(path, other)
    with pytest.raises(UsageError, match="both files"):
        push(path, path)
    with pytest.raises(KeyError, match="nothing"):
        push(path, other, ["nothing"])
    assert other.read_bytes() == before


def test_a_target_that_others_write_or_that_was_replaced_is_left_alone(path: Path, tmp_path: Path) -> None:
    other, moved = tmp_path / "other.h5", tmp_path / "moved.h5"
    push(path, other, ["paper"])
    bundle(path, tmp_path / "x.bundle")
    with hs.VersionedFile(other, "r+") as file:
        with pytest.raises(UsageError, match="open"):
            push(path, other, timeout=0)
        moved.write_bytes(other.read_bytes())
        moved.rename(other)
        with Bundle(str(tmp_path / "x.bundle")) as opened, pytest.raises(FileReplaced):
            apply_bundle(file, opened)
    with hs.VersionedFile(other) as file:
        assert file.versions == ["a1"]
    other.rename(moved)
    assert push(path, moved).branches == {"main": "a3", "side": "b1"}
    same(path, moved)


@pytest.mark.parametrize("how", ["chunks", "content"])
def test_a_file_that_stores_the_version_before_in_another_way_is_refused(path: Path, tmp_path: Path, how: str) -> None:
    other = tmp_path / "other.h5"
    push(path, other, ["paper"])
    with hs.VersionedFile(other, "r+") as file:
        if how == "chunks":
            file.modify_metadata("g/x", chunks=(20,))
        else:
            file.modify_metadata("g/x", fillvalue=7.0)
    if how == "content":
        with h5py.File(other, "r+") as h5:
            raw = h5["_version_data/versions/a1"]
            time = raw.attrs["timestamp"]
            del h5["_version_data/versions/a1"]
            theirs = VersionedHDF5File(h5)
            theirs.current_version = "__first_version__"
            with theirs.stage_version("a1") as version:
                version.create_dataset("g/x", data=np.zeros(400), chunks=(40,), fillvalue=7.0)
            h5["_version_data/versions/a1"].attrs["timestamp"] = time
    with pytest.raises((UsageError, DamagedFile), match="g/x"):
        push(path, other)
    with hs.VersionedFile(other) as file:
        assert set(file.versions) <= {"a1", "b1", "a2"}


def test_damaged_bundles_are_refused(path: Path, tmp_path: Path) -> None:
    made, other = tmp_path / "x.bundle", tmp_path / "other.h5"
    bundle(path, made)
    stored = made.read_bytes()
    with h5py.File(made, "r+") as h5:
        number = next(name for name in h5["stacks"] if h5[f"stacks/{name}/raw"].dtype == "f8")
        h5[f"stacks/{number}/raw"][3] = 99
    with pytest.raises(DamagedFile, match="does not have its hash"):
        apply(other, made)
    with hs.VersionedFile(other) as file:
        assert len(file) == 0
    rng = np.random.default_rng(3)
    for _ in range(8):
        hurt = bytearray(stored)
        hurt[int(rng.integers(len(hurt)))] ^= 1 << int(rng.integers(8))
        made.write_bytes(hurt)
        other.unlink(missing_ok=True)
        try:
            apply(other, made)
        except HyperslabError:
            continue
        same_elements(path, other)


def same_elements(one: Path, other: Path) -> None:
    with hs.VersionedFile(one) as mine, hs.VersionedFile(other) as file:
        for name in mine.versions:
            np.testing.assert_array_equal(file[name]["g/x"][...], mine[name]["g/x"][...])


def test_the_commands(path: Path, tmp_path: Path) -> None:
    runner, other, made = CliRunner(), str(tmp_path / "other.h5"), str(tmp_path / "x.bundle")
    said = json.loads(runner.invoke(app, ["bundle", str(path), "-o", made, "--json"]).stdout)
    assert said["needs"] == []
    assert json.loads(runner.invoke(app, ["apply", other, made, "--json"]).stdout)["branches"] == {
        "main": "a3",
        "side": "b1",
    }
    assert "0 new versions" in runner.invoke(app, ["pull", other, str(path)]).stdout
    assert "needs a3" in runner.invoke(app, ["bundle", str(path), "main", "--since", "main", "-o", made]).stdout
    assert runner.invoke(app, ["push", str(path), other, "nothing"]).exit_code != 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # from a process that is dead
def test_kills(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a kill at any write, no branch or tag names a version that is not there; the same push goes on."""
    begun = tmp_path / "begun" / "b.h5"
    begun.parent.mkdir()
    push(path, begun, ["paper"])

    def work(target: Path) -> Iterator[int]:
        push(path, target)
        yield 1

    trials = Trials(begun, work, monkeypatch, returned=0)
    for returned in trials.kills(4):
        with hs.VersionedFile(trials.path) as file:
            heads = {name: one.version for name, one in file.branches.items()}
            assert heads in ({}, {"main": "a1"}, {"main": "a3", "side": "b1"}), returned
            assert file.tags["paper"].version == "a1"
            names = file.versions
        same(path, trials.path, names, verify=False)
        push(path, trials.path)
        same(path, trials.path)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # from a process that is dead
def test_a_kill_while_the_target_is_made_leaves_none_or_one_to_go_on_with(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "made" / "other.h5"
    other.parent.mkdir()
    for last in range(1, 14, 3):
        killed = Killed(last, 0.5)
        monkeypatch.setattr(writing, "SYSTEM", killed)
        with suppress(OSError, RuntimeError):
            push(path, other)
        monkeypatch.setattr(writing, "SYSTEM", os)
        assert killed.count >= last
        if other.exists() and other.stat().st_size:  # an empty one is as good as none
            with hs.VersionedFile(other) as file:
                assert set(file.versions) <= {"a1", "b1", "a2", "m", "a3"}
        assert push(path, other).branches == {"main": "a3", "side": "b1"}
        assert [one.name for one in other.parent.iterdir()] == ["other.h5"]
        for one in other.parent.iterdir():
            one.unlink()


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_two_files_that_push_and_pull_come_to_the_same(tmp_path: Path, data: st.DataObject) -> None:
    """Mixed histories: both files get versions of both libraries, branches and merges, deletions, and exchange them."""
    paths = [tmp_path / "one.h5", tmp_path / "two.h5"]
    for one in paths:
        one.unlink(missing_ok=True)
    with hs.VersionedFile(paths[0], "w") as file:
        commit(file, "v0", 0)
    push(*paths)
    for number in range(1, data.draw(st.integers(3, 8))):
        at = data.draw(st.integers(0, 1))
        how = data.draw(st.sampled_from(["ours", "theirs", "side", "push", "delete", "repack"]))
        if how == "theirs":
            with h5py.File(paths[at], "r+") as h5, VersionedHDF5File(h5).stage_version(f"v{number}") as version:
                version["g/x"][number] = number
        elif how == "push":
            exchange(paths[at], paths[1 - at], number)
        else:
            with hs.VersionedFile(paths[at], "r+") as file:
                if how == "delete" and len(file) > 2:
                    name = data.draw(st.sampled_from(file.versions[1:]))
                    file.delete_versions(name)
                elif how == "repack":
                    file.repack()
                else:
                    commit(file, f"v{number}", number, branch="side" if how == "side" else None)
    exchange(paths[0], paths[1], 100)
    exchange(paths[1], paths[0], 200)
    with hs.VersionedFile(paths[0]) as one, hs.VersionedFile(paths[1]) as two:
        heads = [{name: branch.version for name, branch in file.branches.items()} for file in (one, two)]
        assert heads[0] == heads[1]
        for name in {*heads[0].values()}:
            np.testing.assert_array_equal(one[name]["g/x"][...], two[name]["g/x"][...])
        assert one.verify().is_whole
        assert two.verify().is_whole


def exchange(source: Path, target: Path, number: int) -> None:
    """Push, and merge what has versions of its own there."""
    taken = push(source, target)
    with hs.VersionedFile(source) as file:
        heads = {name: str(branch.version) for name, branch in file.branches.items()}
    with hs.VersionedFile(target, "r+") as file:
        for count, name in enumerate(taken.diverged):
            if "merge" in taken.diverged[name]:
                file.merge(heads[name], into=name, conflict="ours", name=f"m{number}-{count}")


@pytest.mark.parametrize("is_repacked", [False, True])
def test_a_version_that_others_deleted_and_a_pull_brings_back_is_no_damage(
    path: Path, tmp_path: Path, is_repacked: bool
) -> None:
    """Its child has another parent since, which is not the one that was recorded."""
    other = tmp_path / "other.h5"
    push(path, other)
    with h5py.File(path, "r+") as h5:
        delete_versions(h5, ["a2"])
    with hs.VersionedFile(path) as file:
        assert file.table["m"].parent == "a1"
    assert pull(path, other).versions == ["a2"]
    with hs.VersionedFile(path, "r+") as file:
        if is_repacked:
            file.repack()
        assert file.table["m"].parent == "a1"
        assert file.verify().is_whole
    with h5py.File(path, "r+") as h5:
        h5["_version_data/versions/a3"].attrs["prev_version"] = "a1"  # nobody took that away
    with hs.VersionedFile(path) as file:
        assert [one.versions for one in file.verify().damages] == [("a3",)]

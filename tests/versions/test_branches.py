"""Branches and tags: with versioned-hdf5 in between, after deletions and repacks, and in damaged or made-up files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from disks import Trials
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from versioned_hdf5 import VersionedHDF5File
from versioned_hdf5 import delete_versions as delete_theirs

import hyperslab as hs
from hyperslab.errors import DamagedFile, UsageError
from hyperslab.versions import repair
from hyperslab.versions.layout.fingerprint_log import LOG, packed
from hyperslab.versions.layout.names import TIME_FORMAT


def commit(file: hs.VersionedFile, name: str, value: int, **options: Any) -> None:
    with file.stage_version(name, **options) as version:
        if "x" not in version:
            version.create_dataset("x", data=np.arange(40), chunks=(10,))
        version["x"][value % 40] = value + 100


def commit_theirs(path: Path, name: str, value: int, parent: str | None = None) -> None:
    with h5py.File(path, "r+") as file, VersionedHDF5File(file).stage_version(name, prev_version=parent) as version:
        version["x"][value % 40] = value + 100


def heads(path: Path) -> dict[str, str | None]:
    with hs.VersionedFile(path) as file:
        return {name: branch.version for name, branch in file.branches.items()}


def appended(path: Path, said: dict[str, Any]) -> None:
    """Add a record to the list of fingerprints, as a hostile program would."""
    with h5py.File(path, "r+") as file:
        log, stored = file[LOG], np.frombuffer(packed(said), np.uint8)
        log.resize((len(log) + len(stored),))
        log[-len(stored) :] = stored


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """`main` at a3, which is current; `side` at b1, made from a1; tag `paper` on a2."""
    made = tmp_path / "survey.h5"
    with hs.VersionedFile(made, "w") as file:
        commit(file, "a1", 1)
        commit(file, "b1", 12, branch="side", message="recalibrated", author="Ada")
        commit(file, "a2", 23)
        file.create_tag("paper", message="Figure 3", author="Bo")
        commit(file, "a3", 34)
    return made


def test_a_file_has_a_branch_before_anybody_names_one(tmp_path: Path) -> None:
    with hs.VersionedFile(tmp_path / "x.h5", "w") as file:
        assert (file.branches, file.tags, file.checked_out) == ({}, {}, None)
        commit(file, "v1", 1)
        assert {name: one.version for name, one in file.branches.items()} == {"main": "v1"}
        assert file.checked_out == "main"
        assert file["main"]["x"][1] == 101


def test_a_version_its_branch_and_its_message_are_one_commit(path: Path) -> None:
    with hs.VersionedFile(path) as file:
        assert file.current_version == "a3"
        assert {name: one.version for name, one in file.branches.items()} == {"main": "a3", "side": "b1"}
        assert (file.table["b1"].parent, file.table["a2"].parent) == ("a1", "a1")
        assert dict(file["side"].attrs.items())["message"] == "recalibrated"
        assert file["side"].attrs["author"] == "Ada"
        tag = file.tags["paper"]
        assert (tag.version, tag.message, tag.author, tag.problem) == ("a2", "Figure 3", "Bo", None)
        assert file.verify().is_whole
        assert [one.path for one in file.diff("side", "main").arrays.values()] == ["x"]
    assert hs.open(path, version="paper")["x"][23] == 123
    with h5py.File(path) as file:
        assert VersionedHDF5File(file)["b1"].attrs["message"] == "recalibrated"


def test_versioned_hdf5_works_on_the_branch_that_is_checked_out(path: Path) -> None:
    commit_theirs(path, "c1", 5)
    assert heads(path) == {"main": "c1", "side": "b1"}
    with hs.VersionedFile(path, "r+") as file:
        assert file.checkout("side") == file.current_version == "b1"
        assert file.checked_out == "side"
    commit_theirs(path, "c2", 6)
    commit_theirs(path, "c3", 7)
    assert heads(path) == {"main": "c1", "side": "c3"}
    with hs.VersionedFile(path, "r+") as file:
        commit(file, "d1", 8)
        commit(file, "d2", 9, branch="main")
        assert (file.current_version, file.table["d1"].parent, file.table["d2"].parent) == ("d1", "c3", "c1")
        assert file.verify().is_whole
    assert heads(path) == {"main": "d2", "side": "d1"}


def test_what_versioned_hdf5_makes_current_elsewhere_is_said(path: Path) -> None:
    commit_theirs(path, "c1", 5, parent="a1")
    with hs.VersionedFile(path, "r+") as file:
        main = file.branches["main"]
        assert (main.version, file.current_version, file.checked_out) == ("a3", "c1", None)
        assert "moved outside" in str(main.problem)
        commit(file, "c2", 6)  # on no branch
        assert (file.table["c2"].parent, file.checked_out) == ("c1", None)
        assert (file.branches["main"].version, file.branches["main"].problem) == ("a3", None)
        file.create_branch("kept", "c2")
        file.checkout("main")
        assert file.current_version == "a3"


@pytest.mark.parametrize("deleter", ["ours", "theirs"])
@pytest.mark.parametrize("ahead", [False, True])
def test_a_branch_whose_head_was_deleted_is_at_the_version_before(path: Path, deleter: str, ahead: bool) -> None:
    if ahead:
        commit_theirs(path, "c1", 5)
    if deleter == "theirs":
        with h5py.File(path, "r+") as file:
            delete_theirs(file, ["a3", "b1"])
    else:
        with hs.VersionedFile(path, "r+") as file:
            file.delete_versions(["a3", "b1"])
    assert heads(path) == {"main": "c1" if ahead else "a2", "side": "a1"}
    with hs.VersionedFile(path, "r+") as file:
        assert file.verify().is_whole
        commit(file, "d1", 9)
        commit(file, "d2", 9, branch="side")
        file.repack()
        assert file.verify().is_whole
    assert heads(path) == {"main": "d1", "side": "d2"}


def test_tags_never_name_another_version(path: Path) -> None:
    with hs.VersionedFile(path, "r+") as file:
        with pytest.raises(ValueError, match="there is a tag 'paper'"):
            file.create_tag("paper", "a1")
        with pytest.raises(UsageError, match="has the tag 'paper'"):
            file.delete_versions(name for name in ["a2"])
        assert "a2" in file
        file.delete_versions(["a2"], force=True)
        tag = file.tags["paper"]
        assert (tag.version, tag.recorded) == (None, "a2")
        assert str(tag.problem) == "dangling: its version 'a2' was deleted, before it there is 'a1'"
        with pytest.raises(KeyError, match="dangling"):
            file["paper"]
        assert file.verify().refs == {"paper": tag.problem}
        commit(file, "a2", 2)  # another version of the same name is not the one that was tagged
        assert file.tags["paper"].version is None
        file.delete_tag("paper")
        assert file.tags == {}
        assert file.verify().is_whole


def test_what_is_tagged_after_the_versions_were_listed_is_not_called_dangling(path: Path) -> None:
    with hs.VersionedFile(path) as reader:
        assert len(reader.versions) == 4
        with hs.VersionedFile(path, "r+") as file:
            commit(file, "a4", 4)
            file.create_tag("late")
        assert list(reader.tags) == ["paper"]
        assert reader.branches["main"].version == "a3"
        reader.refresh()
        assert (reader.tags["late"].version, reader.branches["main"].version) == ("a4", "a4")


def test_a_branch_without_any_version_left_is_dangling(tmp_path: Path) -> None:
    with hs.VersionedFile(tmp_path / "x.h5", "w") as file:
        commit(file, "v1", 1)
        commit(file, "w1", 2, branch="side", prev_version="")
        file.delete_versions("w1")
        assert (file.branches["side"].version, file.branches["main"].version) == (None, "v1")
        assert "dangling" in str(file.branches["side"].problem)
        with pytest.raises(UsageError, match="dangling"):
            file.checkout("side")
        with pytest.raises(UsageError, match="dangling"):
            commit(file, "w2", 2, branch="side")
        assert file.verify().is_whole
        file.create_branch("side", "v1", move=True)
        file.delete_branch("side")
        assert list(file.branches) == ["main"]


def test_wrong_requests_change_nothing(path: Path) -> None:
    before = path.read_bytes()
    with hs.VersionedFile(path, "r+") as file:
        for wrong, said in (
            (lambda: file.create_branch("side"), "move it with move=True"),
            (lambda: file.create_branch("a1"), "there is a version 'a1'"),
            (lambda: file.create_branch("paper"), "there is a tag 'paper'"),
            (lambda: file.create_branch("x/y"), "without '/'"),
            (lambda: file.create_tag("side"), "there is a branch 'side'"),
            (lambda: file.create_tag("n\0l"), "NUL"),
            (lambda: file.delete_branch("main"), "is checked out"),
            (lambda: file.delete_branch("sid"), "no branch 'sid'.*side"),
            (lambda: file.checkout("paper"), "no branch 'paper'"),
            (lambda: file.delete_tag("pape"), "no tag"),
            (lambda: commit(file, "paper", 1), "name of a branch or a tag"),
            (lambda: commit(file, "v", 1, branch="side", prev_version="a1"), "the head of branch 'side' is 'b1'"),
            (lambda: commit(file, "v", 1, branch="main", make_current=False), "is checked out"),
        ):
            with pytest.raises(ValueError, match=said):
                wrong()  # type: ignore[no-untyped-call]
        with pytest.raises(KeyError):
            file.create_branch("new", "nothing")
        with pytest.raises(TypeError, match="must be text"):
            commit(file, "v", 1, message=3)
    assert path.read_bytes() == before


def test_a_version_made_elsewhere_leaves_the_branch_where_it_is(path: Path) -> None:
    with hs.VersionedFile(path, "r+") as file:
        commit(file, "e1", 4, prev_version="a1")
        assert (file.checked_out, file.branches["main"].version) == (None, "a3")
        file.checkout("main")
        file.current_version = "a1"
        assert (file.checked_out, file.branches["main"].version, file.current_version) == (None, "a3", "a1")
        file.checkout("main")
        commit(file, "e2", 4, make_current=False)
        assert (file.checked_out, file.current_version) == ("main", "a3")
        commit(file, "e3", 4, branch="side", make_current=True)
        assert (file.checked_out, file.current_version) == ("side", "e3")
        file.create_branch("side", "a1", move=True)
        assert (file.checked_out, file.current_version) == ("side", "a1")


def test_repair_keeps_branches_and_tags(path: Path, tmp_path: Path) -> None:
    commit_theirs(path, "c1", 5)
    repaired = repair(path, tmp_path / "mended.h5")
    assert repaired.is_complete
    assert heads(tmp_path / "mended.h5") == {"main": "c1", "side": "b1"}
    with hs.VersionedFile(tmp_path / "mended.h5") as file:
        assert (file.tags["paper"].version, file.checked_out) == ("a2", "main")
        assert file.verify().is_whole
    with h5py.File(path, "r+") as h5:
        del h5["_version_data/versions/a2"]
    lost = repair(path, tmp_path / "again.h5").lost
    assert [(one.version, "dangling" in one.reason) for one in lost] == [("paper", True)]


def test_a_damaged_record_costs_no_other_ref(path: Path, tmp_path: Path) -> None:
    appended(path, {"tags": {"lost": None}})
    with h5py.File(path, "r+") as file:
        file[LOG][-1] ^= 1
    with hs.VersionedFile(path, "r+") as file:
        assert not file.verify().is_whole
        assert {name: one.version for name, one in file.branches.items()} == {"main": "a3", "side": "b1"}
        with pytest.raises(DamagedFile, match="list of branches and tags"):
            file.create_tag("new")
    repaired = repair(path, tmp_path / "mended.h5")
    assert any("list of branches and tags" in note.reason for note in repaired.notes)
    assert heads(tmp_path / "mended.h5") == {"main": "a3", "side": "b1"}


@pytest.mark.parametrize(
    "said",
    [
        {"branches": {"evil": ["nothing", "never"]}},
        {"tags": {"evil": {"target": ["nothing", "never"]}}},
        {"branches": {"evil": 7}},
        {"branches": 7},
        {"tags": {"evil": ["a1"]}},
        {"checked_out": "nobody"},
        {"checked_out": [1]},
        {"parents": [["a", "t", 1]]},
        {"merged": [["a1"]]},
        {"branches": {"evil": ["p", "1"]}, "parents": [["p", "1", "q"], ["q", "2", "p"], ["r", "3", "r"]]},
    ],
    ids=str,
)
def test_refs_that_somebody_made_up_end_no_program(path: Path, tmp_path: Path, said: dict[str, Any]) -> None:
    appended(path, said)
    with hs.VersionedFile(path, "r+") as file:
        verified = file.verify()
        assert not verified.is_whole or "evil" in verified.refs
        assert file.branches["side"].version == "b1"
        assert "evil" not in file.branches or file.branches["evil"].version is None
        assert len(file.log()) == 4
    repair(path, tmp_path / "mended.h5")
    assert heads(tmp_path / "mended.h5") == {"main": "a3", "side": "b1"}


def test_a_circle_of_versions_ends_no_program(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        versions = file["_version_data/versions"]
        versions["a1"].attrs["prev_version"] = "a3"
        versions.attrs["current_version"] = "b1"
    with hs.VersionedFile(path, "r+") as file:
        assert file.branches["main"].version == "b1"  # which comes from a3 now
        assert not file.verify().is_whole
        file.create_branch("new", "a1")
        assert file.branches["new"].version == "a1"


def test_a_thousand_branches(tmp_path: Path) -> None:
    with hs.VersionedFile(tmp_path / "x.h5", "w") as file:
        commit(file, "v", 0)
        first = ["v", file.table["v"].time.strftime(TIME_FORMAT)]
        file._put({"branches": {f"b{number}": first for number in range(1000)}}, "branches")
        commit(file, "w", 1, branch="b500")
        assert len(file.branches) == 1001
        assert (file.branches["b500"].version, file.branches["b501"].version) == ("w", "v")
        file.repack()
        assert len(file.branches) == 1001


class Model:
    """What branches and tags must be: heads, tags, the parent of each version, and the branch checked out."""

    def __init__(self) -> None:
        self.parents: dict[str, str | None] = {"v0": None}
        self.heads = {"main": "v0"}
        self.tags: dict[str, str] = {}
        self.out = "main"
        self.number = 0

    def new(self) -> str:
        self.number += 1
        return f"v{self.number}"

    def add(self, name: str, branch: str) -> None:
        self.parents[name] = self.heads[branch]
        self.heads[branch] = name

    def delete(self, name: str) -> None:
        above = self.parents.pop(name)
        assert above is not None
        self.parents = {one: above if parent == name else parent for one, parent in self.parents.items()}
        self.heads = {branch: above if head == name else head for branch, head in self.heads.items()}


STEPS = st.sampled_from(["ours", "on", "theirs", "new", "out", "tag", "delete", "delete theirs", "repack", "metadata"])


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(STEPS, st.integers(0, 99)), min_size=3, max_size=12))
def test_refs_survive_what_both_libraries_do(tmp_path: Path, steps: list[tuple[str, int]]) -> None:
    path, model = tmp_path / "mixed.h5", Model()
    with hs.VersionedFile(path, "w") as file:
        commit(file, "v0", 0)
    for step, number in steps:
        do(path, model, step, number)
        with hs.VersionedFile(path) as file:
            assert {name: branch.version for name, branch in file.branches.items()} == model.heads
            assert {name: tag.version for name, tag in file.tags.items()} == model.tags
            assert (file.current_version, file.checked_out) == (model.heads[model.out], model.out)
            assert {name: file.table[name].parent for name in file} == model.parents
    with hs.VersionedFile(path) as file:
        assert file.verify().is_whole


def do(path: Path, model: Model, step: str, number: int) -> None:
    """One step, in the file and in the model."""
    branch = sorted(model.heads)[number % len(model.heads)]
    free = [one for one in model.parents if one != "v0" and one not in model.tags.values()]
    victim = free[number % len(free)] if free else None
    if "theirs" in step:
        do_theirs(path, model, step, number, victim)
        return
    with hs.VersionedFile(path, "r+") as file:
        if step in ("ours", "on"):
            on = branch if step == "on" else model.out
            model.add(name := model.new(), on)
            commit(file, name, number, branch=on if step == "on" else None)
        elif step == "new":
            name, made = model.new(), f"b{model.number}"
            model.heads[made] = model.heads[model.out]
            model.add(name, made)
            commit(file, name, number, branch=made)
        elif step == "out":
            file.checkout(branch)
            model.out = branch
        elif step == "tag":
            file.create_tag(f"t{len(model.tags)}", branch)
            model.tags[f"t{len(model.tags)}"] = model.heads[branch]
        elif step == "delete" and victim is not None:
            file.delete_versions(victim, repack=bool(number % 2))
            model.delete(victim)
        elif step == "repack":
            file.repack()
        elif step == "metadata":
            file.modify_metadata("x", chunks=(5 + number % 7,), repack=bool(number % 2))


def do_theirs(path: Path, model: Model, step: str, number: int, victim: str | None) -> None:
    """A step of versioned-hdf5."""
    if step == "theirs":
        model.add(name := model.new(), model.out)
        commit_theirs(path, name, number)
    elif victim is not None:
        with h5py.File(path, "r+") as h5:
            delete_theirs(h5, [victim])
        model.delete(victim)


# ----------------------------------------------------------------------------------------------------- kills

REF_STEPS = [
    lambda file: commit(file, "v1", 1, branch="side", message="one"),
    lambda file: file.create_tag("paper", "side"),
    lambda file: file.checkout("side"),
    lambda file: commit(file, "v2", 2),
    lambda file: file.delete_versions("v1", force=True),
]
REF_STATES = [
    ({"main": "v0"}, {}, "v0"),
    ({"main": "v0", "side": "v1"}, {}, "v0"),
    ({"main": "v0", "side": "v1"}, {"paper": "v1"}, "v0"),
    ({"main": "v0", "side": "v1"}, {"paper": "v1"}, "v1"),
    ({"main": "v0", "side": "v2"}, {"paper": "v1"}, "v2"),
    ({"main": "v0", "side": "v2"}, {"paper": None}, "v2"),
]


def ref_work(path: Path) -> Any:
    with hs.VersionedFile(path, "r+") as file:
        for number, step in enumerate(REF_STEPS):
            step(file)
            yield number + 1


def check_refs(path: Path, returned: int) -> None:
    """The steps that returned were done, and at most one more, completely."""
    with hs.VersionedFile(path) as file:
        branches = {name: one.version for name, one in file.branches.items()}
        tags = {name: one.version for name, one in file.tags.items()}
        assert (branches, tags, file.current_version) in REF_STATES[returned : returned + 2]
        assert file["v0"]["x"][3] == 3
    with h5py.File(path) as h5:
        assert VersionedHDF5File(h5)["v0"]["x"][3] == 3
    with hs.VersionedFile(path, "r+") as file:
        commit(file, "next", 3, branch="main")
        assert file.branches["main"].version == "next"


@pytest.fixture
def trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trials:
    begun = tmp_path / "begun.h5"
    with hs.VersionedFile(begun, "w") as file:
        commit(file, "v0", 0)
    return Trials(begun, ref_work, monkeypatch, returned=0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # from a process that is dead
def test_refs_and_kills(trials: Trials) -> None:
    for returned in trials.kills(24):
        check_refs(trials.path, returned)


@pytest.mark.slow
@pytest.mark.parametrize("number", [5, 28])  # EIO, ENOSPC
def test_refs_and_failing_disks(trials: Trials, number: int) -> None:
    for returned in trials.failures(number, stays=bool(number % 2), most=8):
        check_refs(trials.path, returned)


@pytest.mark.slow
def test_refs_and_power_cuts(trials: Trials) -> None:
    for returned in trials.power_cuts(12, 6):
        check_refs(trials.path, returned)


def test_a_commit_through_another_h5py_that_fails_moves_no_branch(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hyperslab.versions.commit import commit as committing

    with h5py.File(path, "r+") as h5:
        file = hs.VersionedFile(h5)
        for branch in ("side", "new"):
            with monkeypatch.context() as patched:
                patched.setattr(committing, "put_flag", lambda *_, **__: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    commit(file, "f1", 3, branch=branch)
        file.create_tag("after")
    assert heads(path) == {"main": "a3", "side": "b1"}
    with hs.VersionedFile(path) as file:
        assert file.tags["after"].version == "a3"
        assert file.verify().is_whole

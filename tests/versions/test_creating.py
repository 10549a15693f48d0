"""Creating a file with versions, killed or failing at any call: the old file stays until the new one is whole."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest
from disks import Trials
from test_crashes import check, commit, committed

import hyperslab as hs


def anew(path: Path) -> Iterator[int]:
    """Create the file again; the new one has no versions."""
    hs.VersionedFile(path, "w").close()
    yield 0


def first(path: Path) -> Iterator[int]:
    """Create the file where there is none."""
    path.unlink()
    hs.VersionedFile(path, "a").close()
    yield 0


def found_after(path: Path) -> int:
    """How many versions are there; the file can be gone on with, and nothing lies beside it."""
    hs.VersionedFile(path, "a").close()
    assert sorted(one.name for one in path.parent.iterdir() if one.name.startswith("v.h5")) == ["v.h5"]
    with hs.VersionedFile(path) as file:
        count = len(file)
    return check(path, count) if count else begin_with(path)


def begin_with(path: Path) -> int:
    """Make the first version, which must be as it should, and say that there was none."""
    with hs.VersionedFile(path, "r+") as file:
        commit(file, 0)
    check(path, 1)
    return 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # from a process that is dead
def test_a_kill_leaves_the_old_file_or_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = Trials(committed(tmp_path / "begun.h5", 2), anew, monkeypatch, returned=0)
    found = [found_after(trials.path) for _ in trials.kills(12)]
    assert set(found) == {0, 2}
    assert found == sorted(found, reverse=True), "it changes in one step"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_you_can_go_on_after_a_kill_while_a_first_file_is_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "begun.h5").touch()
    trials = Trials(tmp_path / "begun.h5", first, monkeypatch, returned=0)
    assert {found_after(trials.path) for _ in trials.kills(8)} == {0}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_failing_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    trials = Trials(committed(tmp_path / "begun.h5", 2), anew, monkeypatch, returned=0)
    found = [found_after(trials.path) for _ in trials.failures(number, stays=True, most=6)]
    assert set(found) <= {0, 2}
    assert found[0] == 2


def test_power_cuts_leave_the_old_file_or_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = Trials(committed(tmp_path / "begun.h5", 2), anew, monkeypatch, returned=0)
    assert {found_after(trials.path) for _ in trials.power_cuts(12, 1)} == {0, 2}

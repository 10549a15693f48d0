"""Deleting versions and storing arrays in another way, killed or failing at any call: the old state or the new one."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from disks import ALL, Trials
from test_crashes import commit, committed, state_of, text
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs

# The steps, with the versions after each one, the chunks of x and its codec.
STEPS: list[tuple[Callable[[hs.VersionedFile], None], str, int, str]] = [
    (lambda file: file.delete_versions("v1"), "v0 v2 v3", 40, "gzip"),
    (lambda file: file.modify_metadata("x", chunks=(64,), repack=False), "v0 v2 v3", 64, "gzip"),
    (lambda file: file.delete_versions("v2", repack=False), "v0 v3", 64, "gzip"),
    (lambda file: file.modify_metadata("x", compression="lzf"), "v0 v3", 64, "lzf"),
    (lambda file: commit(file, 4), "v0 v3 v4", 64, "lzf"),
]
STATES = [("v0 v1 v2 v3", 40, "gzip"), *[step[1:] for step in STEPS]]


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    return committed(tmp_path / "begun.h5", 4)


def work(path: Path) -> Iterator[int]:
    """Do the steps; returns how many have returned."""
    with hs.VersionedFile(path, "r+") as file:
        for number, step in enumerate(STEPS):
            step[0](file)
            yield number + 1


def state(path: Path) -> tuple[str, int, str]:
    with h5py.File(path) as file:
        raw = file["_version_data/x/raw_data"]
        return " ".join(sorted(VersionedHDF5File(file).versions)), raw.chunks[0], raw.compression


def check(path: Path, returned: int) -> int:
    """The steps that returned were done, and at most one more, completely; all values are right, and the next version
    can be made. Returns how many steps were done.
    """
    with hs.VersionedFile(path) as file:
        for name in file.versions:
            for array, data in state_of(int(name[1:])).items():
                np.testing.assert_array_equal(text(file[name][array][...]), text(data))
        last = file.versions[-1]
        assert file.current_version == last
    found = state(path)
    assert found in STATES[returned : returned + 2], f"{returned} steps returned, found {found}"
    with h5py.File(path) as h5:
        theirs = VersionedHDF5File(h5)
        for name in theirs.versions:
            for array, data in state_of(int(name[1:])).items():
                np.testing.assert_array_equal(text(theirs[name][array][()]), text(data))
    with hs.VersionedFile(path, "r+") as file:
        commit(file, 7)
        for array, data in state_of(7).items():
            np.testing.assert_array_equal(text(file["v7"][array][...]), text(data))
    assert sorted(one.name for one in path.parent.iterdir() if one.name.startswith("v.h5")) == ["v.h5"]
    return STATES.index(found)


@pytest.fixture
def trials(begun: Path, monkeypatch: pytest.MonkeyPatch) -> Trials:
    return Trials(begun, work, monkeypatch, returned=0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # from a process that is dead
def test_kills(trials: Trials) -> None:
    found = [check(trials.path, returned) for returned in trials.kills(6)]
    print(f"{len(found)} kills")


@pytest.mark.slow
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("stays", [False, True])
def test_failing_disks(trials: Trials, number: int, stays: bool) -> None:
    found = [check(trials.path, returned) for returned in trials.failures(number, stays=stays, most=4)]
    print(f"{len(found)} failures")


@pytest.mark.slow
def test_power_cuts_while_rewriting(trials: Trials) -> None:
    found = [check(trials.path, returned) for returned in trials.power_cuts(10, 6)]
    print(f"{len(found)} cuts")


@pytest.mark.parametrize("step", range(4))
def test_exceptions_leave_the_old_state(begun: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Not only at the disk: Ctrl-C, or no memory, at any of our calls into libhdf5."""
    from hyperslab.versions.commit import virtual
    from hyperslab.versions.rewrite import rewriting

    class Stop(BaseException):
        pass

    calls = 0
    for stop in range(0, 100_000, 1 if ALL else 30):
        path, calls = begun.with_name("v.h5"), 0
        path.write_bytes(begun.read_bytes())

        def counted(original: Any) -> Any:
            def called(*arguments: Any, **options: Any) -> Any:
                nonlocal calls
                calls += 1
                if calls == stop:  # noqa: B023
                    raise Stop
                return original(*arguments, **options)

            return called

        with hs.VersionedFile(path, "r+") as file:
            for done in STEPS[:step]:
                done[0](file)
            with monkeypatch.context() as patched:
                for module, name in ((virtual, "create_virtual"), (rewriting, "copy_attributes")):
                    patched.setattr(module, name, counted(getattr(module, name)))
                patched.setattr(rewriting.Rewriting, "take", counted(rewriting.Rewriting.take))
                try:
                    STEPS[step][0](file)
                except Stop:
                    assert " ".join(file.versions) == STATES[step][0]
                    stopped = True
                else:
                    stopped = False
            commit(file, 6)
        assert state(path)[1:] == STATES[step + (not stopped)][1:]
        if not stopped and stop > 0:
            break
    assert calls > 5

"""Killed, out of space, broken or without power at any call: every committed version exists and is right."""

from __future__ import annotations

import errno
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from disks import ALL, Failing, Trials
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from hyperslab.errors import UsageError

State = dict[str, np.ndarray[Any, Any]]
COMMITS = 4


def state_of(number: int) -> State:
    """What version `v{number}` holds."""
    grown = np.zeros(200 + 50 * number)
    grown[::7] = number + 1
    words = np.array([f"{number} {place % 3}" * (place % 4) for place in range(30)], object)
    return {"x": np.arange(500.0) + 1000 * number, "g/grown": grown, "words": words, "same": np.arange(300)}


def commit(file: hs.VersionedFile, number: int) -> None:
    state = state_of(number)
    with file.stage_version(f"v{number}") as version:
        if number == 0:
            for path, data in state.items():
                options = {"dtype": h5py.string_dtype()} if data.dtype == object else {"compression": "gzip"}
                version.create_dataset(path, data=data, chunks=(40,), **options)
            return
        version["x"][...] = state["x"]
        version["g/grown"].resize(state["g/grown"].shape)
        version["g/grown"][...] = state["g/grown"]
        version["words"][:] = state["words"]


def text(read: Any) -> Any:
    array = np.asarray(read)
    return np.array([one.decode() if isinstance(one, bytes) else one for one in array]) if array.dtype == "O" else array


def check(path: Path, returned: int) -> int:
    """All versions whose commits returned exist and are right, at most one more exists, and the next can be made."""
    with hs.VersionedFile(path) as file:
        found = len(file)
        assert returned <= found <= returned + 1, f"{returned} commits returned, {file.versions} are there"
        assert set(file.versions) == {f"v{number}" for number in range(found)}
        for number in range(found):
            for name, data in state_of(number).items():
                np.testing.assert_array_equal(text(file[f"v{number}"][name][...]), text(data))
        assert file.current_version == (f"v{found - 1}" if found else None)
    with h5py.File(path) as h5:
        theirs = VersionedHDF5File(h5)
        for number in range(found):
            for name, data in state_of(number).items():
                np.testing.assert_array_equal(text(theirs[f"v{number}"][name][()]), text(data))
    with hs.VersionedFile(path, "r+") as file:
        commit(file, found)
        for name, data in state_of(found).items():
            np.testing.assert_array_equal(text(file[f"v{found}"][name][...]), text(data))
    assert not Path(f"{path}.journal").exists()
    return found


def committed(path: Path, count: int) -> Path:
    """A new file with this many versions."""
    with hs.VersionedFile(path, "w") as file:
        for number in range(count):
            commit(file, number)
    return path


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    return committed(tmp_path / "begun.h5", 1)


def work(path: Path) -> Iterator[int]:
    """Make commits one after another; returns how many have returned."""
    with hs.VersionedFile(path, "r+") as file:
        for number in range(1, COMMITS):
            commit(file, number)
            yield number + 1


@pytest.fixture
def trials(begun: Path, monkeypatch: pytest.MonkeyPatch) -> Trials:
    return Trials(begun, work, monkeypatch, returned=1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_kill_at_any_call(trials: Trials) -> None:
    found = [check(trials.path, returned) for returned in trials.kills(24)]
    assert {1, 2, 3, COMMITS} <= set(found)
    print(f"{len(found)} kills")


@pytest.mark.slow
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("stays", [False, True])
def test_a_failing_disk(trials: Trials, number: int, stays: bool) -> None:
    found = [check(trials.path, returned) for returned in trials.failures(number, stays=stays, most=8)]
    print(f"{len(found)} failures")


def test_a_file_goes_on_after_a_failure(begun: Path, trials: Trials) -> None:
    failing = Failing(0, errno.ENOSPC, stays=False)
    trials.put(failing)
    with hs.VersionedFile(begun, "r+") as file:
        failing.last = failing.count + 3
        with pytest.raises(OSError, match="ENOSPC"):
            commit(file, 1)
        assert file.versions == ["v0"]
        np.testing.assert_array_equal(file["v0"]["x"][...], state_of(0)["x"])
        commit(file, 1)
    assert check(begun, 2) == 2


@pytest.mark.slow
def test_power_cuts(trials: Trials) -> None:
    found = [check(trials.path, returned) for returned in trials.power_cuts(30, 12)]
    print(f"{len(found)} cuts")


PROGRAM = """
import sys; sys.path.insert(0, sys.argv[2])
import hyperslab as hs; from test_crashes import commit
with hs.VersionedFile(sys.argv[1], "r+") as file:
    for number in range(1, 100):
        commit(file, number); print(number + 1, flush=True)
"""


@pytest.mark.slow
def test_kill_9(begun: Path) -> None:
    rng = random.Random(3)
    for _ in range(20 if ALL else 2):
        path = begun.with_name("v.h5")
        path.write_bytes(begun.read_bytes())
        command = [sys.executable, "-c", PROGRAM, str(path), str(Path(__file__).parent)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        returned = int(process.stdout.readline())
        time.sleep(rng.random() * 0.3)
        process.send_signal(signal.SIGKILL)
        returned = max([returned, *map(int, process.stdout.read().split())])
        process.wait()
        check(path, returned)


def interrupted(file: hs.VersionedFile) -> None:
    with file.stage_version("v1") as version:
        version["x"][...] = 0
        version.create_dataset("new", data=np.arange(5))
        raise KeyboardInterrupt


def impossible(file: hs.VersionedFile) -> None:
    with file.stage_version("v1") as version:
        version["x"][...] = 0
        version["x"].attrs["bad"] = object()


def test_exceptions_leave_nothing_behind(begun: Path) -> None:
    before = begun.read_bytes()
    with hs.VersionedFile(begun, "r+") as file:
        with pytest.raises(KeyboardInterrupt):
            interrupted(file)
        with pytest.raises(TypeError):
            impossible(file)
        assert file.versions == ["v0"]
    assert begun.read_bytes() == before
    check(begun, 1)


def test_what_was_not_committed_is_cleaned_up(begun: Path) -> None:
    """As versioned-hdf5 leaves a file when it is stopped: the current version is one that was never committed."""
    with h5py.File(begun, "r+") as file:
        versions = file["_version_data/versions"]
        half = versions.create_group("half")
        half.attrs["prev_version"], half.attrs["committed"] = "v0", False
        half.attrs["timestamp"] = "2030-01-01 00:00:00.000000+0000"
        versions.attrs["current_version"] = "half"
    assert hs.VersionedFile(begun).versions == ["v0"]
    check(begun, 1)
    with h5py.File(begun) as file:
        assert "half" not in file["_version_data/versions"]


def test_one_writer_at_a_time(begun: Path) -> None:
    with hs.VersionedFile(begun, "r+") as file:
        with pytest.raises(UsageError, match="open elsewhere"):
            hs.VersionedFile(begun, "r+")
        with pytest.raises(OSError, match="lock"):
            h5py.File(begun, "r+")
        assert hs.VersionedFile(begun).versions == file.versions
    with h5py.File(begun, "r+"), pytest.raises(UsageError, match="open elsewhere"):
        hs.VersionedFile(begun, "r+")

"""Ctrl-C and SIGTERM at any moment: the work is done completely or not at all, and the user is told which."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from disks import ALL
from test_crashes import commit, committed, state_of, text

import hyperslab as hs
import hyperslab.cli
from hyperslab.cli import main, signals


@contextmanager
def interrupted_at(call: int) -> Iterator[list[int]]:
    """Ctrl-C at a call of a function, counted over all of Python's. Returns how many calls there were."""
    calls = [0]

    def count(*_: object) -> None:
        calls[0] += 1
        if calls[0] == call:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # an exception in what it calls would be lost
    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        gc.enable()
        signal.signal(signal.SIGINT, before)


# What is interrupted, and the versions before and after.
STEPS: dict[str, tuple[Callable[[hs.VersionedFile], Any], set[str]]] = {
    "commit": (lambda file: commit(file, 3), {"v0", "v1", "v2", "v3"}),
    "delete and repack": (lambda file: file.delete_versions("v1"), {"v0", "v2"}),
    "delete": (lambda file: file.delete_versions("v1", repack=False), {"v0", "v2"}),
    "modify": (lambda file: file.modify_metadata("x", chunks=(64,), repack=False), {"v0", "v1", "v2"}),
    "recode": (lambda file: file.modify_metadata("x", compression="lzf"), {"v0", "v1", "v2"}),
}


def check(file: hs.VersionedFile | Path) -> None:
    """All versions are right."""
    with hs.VersionedFile(file.path if isinstance(file, hs.VersionedFile) else file) as reader:
        assert reader.verify().is_whole
        for name in reader:
            for path, data in state_of(int(name[1:])).items():
                np.testing.assert_array_equal(text(reader[name][path][...]), text(data), f"{name} {path}")


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    return committed(tmp_path / "begun.h5", 3)


@pytest.mark.slow
@pytest.mark.parametrize("step", list(STEPS))
def test_ctrl_c_at_any_call(begun: Path, step: str) -> None:
    work, after = STEPS[step]
    path, before = begun.with_name("v.h5"), {"v0", "v1", "v2"}
    path.write_bytes(begun.read_bytes())
    with hs.VersionedFile(path, "r+") as file, interrupted_at(0) as calls:
        work(file)
    came_early = 0
    points = sorted(random.Random(step).sample(range(1, calls[0] + 1), 1000 if ALL else 3))
    for call in points:
        path.write_bytes(begun.read_bytes())
        with hs.VersionedFile(path, "r+") as file:
            try:
                with interrupted_at(call) as made:
                    work(file)
            except KeyboardInterrupt:
                came_early += set(file.versions) != after
            else:
                assert made[0] < call, f"Ctrl-C at call {call} of {made[0]} was lost"
            assert set(file.versions) in (before, after)
            check(file)
            commit(file, 5)  # the open file still works
        check(path)
        with h5py.File(path, "r+"):
            pass
        assert sorted(one.name for one in path.parent.iterdir()) == ["begun.h5", "v.h5"]
    print(f"{step}: Ctrl-C at {len(points)} of {calls[0]} calls, {came_early} undone")


def run(log: Path, *arguments: object) -> int:
    """The command in a process of its own. Returns its process id.

    A signal that comes before the command begins is seen when it begins, and one that comes after it is not seen:
    around the command is this test, which has no good end for a signal.
    """
    stopping = (signal.SIGINT, signal.SIGTERM)
    log.write_bytes(b"")
    signal.pthread_sigmask(signal.SIG_BLOCK, stopping)
    process = os.fork()
    if process:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stopping)
        return process
    status, command = 70, hyperslab.cli._run

    def stoppable(words: list[str]) -> None:
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, stopping)
            command(words)
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, stopping)

    try:
        hyperslab.cli._run = stoppable
        try:
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
            sys.argv = ["hyperslab", "versions", *map(str, arguments)]
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            main()
            status = 0
        except SystemExit as stopped:
            status = int(stopped.code or 0)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
    finally:
        os._exit(status)


def ended(process: int) -> int:
    """The exit status."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


CHUNKS = 1000 if ALL else 500


@pytest.fixture(scope="module")
def long_history(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file that keeps commands busy for a while."""
    path = tmp_path_factory.mktemp("interrupting") / "long.h5"
    numbers = np.random.default_rng(0).integers(0, 1000, 400 * CHUNKS)
    with hs.VersionedFile(path, "w") as file:
        for name in ("march", "april", "may"):
            with file.stage_version(name) as version:
                if name == "march":
                    version.create_dataset("x", data=numbers, chunks=(400,), compression="gzip")
                version["x"][::1000] = len(name)
    return path.read_bytes()


COMMANDS: dict[str, tuple[list[str], str | None]] = {
    "verify": (["verify"], None),
    "export to HDF5": (["export", "april", "-o", "april.h5"], "april.h5"),
    "export to Zarr": (["export", "april", "-o", "april.zarr"], "april.zarr"),
    "export as references": (["export", "april", "-o", "april.json"], "april.json"),
    "delete": (["delete", "april", "--yes"], None),
    "delete, not repacked": (["delete", "april", "--yes", "--no-repack"], None),
    "repair": (["repair", "-o", "new.h5"], "new.h5"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(COMMANDS))
def test_commands(tmp_path: Path, long_history: bytes, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    (command, *arguments), output = COMMANDS[name]
    path, log = Path("v.h5"), Path("log")
    rng, stopped = random.Random(name), 0
    path.write_bytes(long_history)
    start = time.monotonic()
    assert ended(run(log, command, path, *arguments)) == 0, log.read_text()
    seconds = time.monotonic() - start
    if output is not None:
        remove(Path(output))
    for attempt in range(80 if ALL else 60):
        if stopped >= 2 and not ALL:
            break
        number = (signal.SIGINT, signal.SIGTERM)[attempt % 2]
        path.write_bytes(long_history)
        process = run(log, command, path, *arguments)
        time.sleep(seconds * rng.uniform(0.05, 0.9))
        os.kill(process, number)
        status, said = ended(process), log.read_text()
        if status == 0:  # too late: the machine's speed varies
            seconds *= 0.8
        else:
            assert status == 128 + number, said
            assert said.splitlines()[-1] == f"hyperslab: {'interrupted' if number == signal.SIGINT else 'terminated'}"
            assert "Traceback" not in said
            stopped += 1
        deleted = check_history(path, long_history, command == "delete")
        if command == "delete" and status > 0 and not deleted:
            assert "april deleted" not in said
        names = {one.name for one in Path().iterdir()} - {"v.h5", "log"}
        assert names in (set(), {output}), (status, said)  # the output exists if all but the last words was done
        if output in names:
            check_output(Path(output))
            remove(Path(output))
    print(f"{name}: {stopped} stopped")
    assert stopped


def check_history(path: Path, before: bytes, may_be_deleted: bool) -> bool:
    """Nothing changed, unless a version was deleted completely. Returns whether it was."""
    if path.read_bytes() == before:
        return False
    assert may_be_deleted
    with hs.VersionedFile(path) as file:
        assert file.verify().is_whole
        return file.versions == ["march", "may"]


def check_output(path: Path) -> None:
    """The file is whole."""
    if path.name == "new.h5":
        with hs.VersionedFile(path) as file:
            assert file.versions == ["march", "april", "may"]
    elif path.suffix in (".h5", ".zarr"):
        assert hs.open(path)["x"].stored_chunk_count == CHUNKS


def remove(path: Path) -> None:
    if path.is_dir():
        for one in sorted(path.rglob("*"), reverse=True):
            one.rmdir() if one.is_dir() else one.unlink()
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_inside_h5py(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    """Cython may turn the exception of a signal into "returned a result with an exception set"."""

    def app() -> None:
        try:
            os.kill(os.getpid(), number)
        except (KeyboardInterrupt, SystemExit) as signalled:
            raise SystemError("a function returned a result with an exception set") from signalled

    monkeypatch.setattr(hyperslab.cli, "_run", lambda _: app())
    monkeypatch.setattr(signals, "_received", [])
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        with pytest.raises(SystemExit) as stopped:
            main()
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    assert stopped.value.code == 128 + number
    assert capsys.readouterr().err == f"hyperslab: {'interrupted' if number == signal.SIGINT else 'terminated'}\n"

"""Others who have, or had, the file open: waiting for readers and writers, forked children, descriptors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from test_crashes import check, commit, committed

import hyperslab as hs
from command_line import run_hyperslab
from hyperslab.errors import HyperslabError, UsageError

HOLDS = "import h5py, sys\nwith h5py.File(sys.argv[1], sys.argv[2]):\n print('open', flush=True)\n sys.stdin.read()\n"


def held_by_another(path: Path, mode: str) -> subprocess.Popen[str]:
    """A process that has the file open until its input ends."""
    command = [sys.executable, "-c", HOLDS, str(path), mode]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_others_are_waited_for(tmp_path: Path, mode: str) -> None:
    path = committed(tmp_path / "v.h5", 1)
    process = held_by_another(path, mode)
    assert process.stdin is not None
    with pytest.raises(UsageError, match="open elsewhere, in this"):
        hs.VersionedFile(path, "r+", timeout=0)
    threading.Timer(0.3, process.stdin.close).start()
    with hs.VersionedFile(path, "r+", timeout=300) as file:
        commit(file, 1)
    process.wait()
    assert check(path, 2) == 2


def descriptors(path: Path) -> list[str]:
    """What this process has open of a file."""
    found = (Path(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd"))  # noqa: PTH208
    return [str(one.readlink()) for one in found if one.is_symlink() and str(path) in str(one.readlink())]


def test_waiting_has_an_end(tmp_path: Path) -> None:
    path = committed(tmp_path / "v.h5", 1)
    with hs.VersionedFile(path, "r+"):
        with pytest.raises(UsageError, match=r"for 0\.2 s"):
            hs.VersionedFile(path, "a", timeout=0.2)
        with pytest.raises(UsageError, match="for 1 s"):
            hs.VersionedFile(path, "w")
    assert check(path, 1) == 1


def test_ctrl_c_ends_waiting(tmp_path: Path) -> None:
    path = committed(tmp_path / "v.h5", 1)

    def interrupt() -> None:
        time.sleep(0.3)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def wait() -> None:
        threading.Thread(target=interrupt).start()  # here, because this thread may be slow to go on
        hs.VersionedFile(path, "r+", timeout=600)

    # A shell that starts the tests in the background makes them ignore Ctrl-C.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with hs.VersionedFile(path, "r+") as file:
            before = descriptors(path)
            with pytest.raises(KeyboardInterrupt):
                wait()
            assert descriptors(path) == before
            commit(file, 1)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert check(path, 2) == 2


def in_child(work: Callable[[], Any]) -> str:
    """What a forked child reports about its work."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            work()
            said = "done"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with open(reader) as stream:
        said = stream.read()
    os.waitpid(child, 0)
    return said


def test_a_forked_child_may_not_write(tmp_path: Path) -> None:
    path = committed(tmp_path / "v.h5", 1)
    with hs.VersionedFile(path, "r+") as file:
        version = file.stage_version("staged")
        version.__enter__()["x"][:] = 7
        assert in_child(lambda: version.__exit__(None, None, None)).startswith("UsageError")
        version.__exit__(None, None, None)
        for work in (
            lambda: commit(file, 1),
            lambda: file.delete_versions("v0"),
            lambda: file.delete_versions("v0", repack=False),
            lambda: setattr(file, "current_version", "v0"),
            file.repack,
        ):
            before = path.read_bytes()
            said = in_child(work)
            assert said.startswith("UsageError")
            assert f"opened by process {os.getpid()}" in said
            assert path.read_bytes() == before
        assert in_child(file.close) == "done"
        assert in_child(lambda: file["staged"]["x"][...].tolist()) == "done"
        file.delete_versions("staged")
        commit(file, 1)
    assert check(path, 2) == 2


def test_a_forked_child_may_not_write_by_an_h5py_file(tmp_path: Path) -> None:
    from hyperslab.versions.compat import VersionedHDF5File

    path = committed(tmp_path / "v.h5", 1)
    with h5py.File(path, "r+") as h5:
        file, theirs = hs.VersionedFile(h5), VersionedHDF5File(h5)
        before = path.read_bytes()
        assert in_child(lambda: commit(file, 1)).startswith("UsageError")
        assert in_child(lambda: theirs.stage_version("v1").__enter__()).startswith("UsageError")
        assert path.read_bytes() == before
        commit(file, 1)
    assert check(path, 2) == 2


def test_a_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    path = committed(tmp_path / "v.h5", 1)
    file = hs.VersionedFile(path, "r+")
    child = os.fork()
    if not child:
        time.sleep(600)
        os._exit(0)
    try:
        time.sleep(0.2)
        file.close()
        hs.VersionedFile(path, "r+", timeout=60).close()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.parametrize("mode", ["r", "r+", "a", "w"])
def test_closing_lets_go_of_descriptors(tmp_path: Path, mode: Any) -> None:
    path = committed(tmp_path / "v.h5", 2)
    file = hs.VersionedFile(path, mode)
    if mode == "w":
        commit(file, 0)
    held = file["v0"]["x"][:5]
    native = None if mode == "r" else file._file["_version_data"]  # what h5py still has open
    assert descriptors(path)
    file.close()
    assert not descriptors(path)
    file.close()
    del held, native


@pytest.mark.slow
def test_an_empty_file_stays_empty(tmp_path: Path) -> None:
    path = tmp_path / "empty.h5"
    path.write_bytes(b"")
    done = run_hyperslab("versions", "delete", path, "v0", "--yes", "--timeout", "0")
    assert done.returncode == 2
    assert "holds no versions" in done.stderr
    with pytest.raises(HyperslabError):
        hs.VersionedFile(path, "r+")
    plain = tmp_path / "plain.h5"
    with h5py.File(plain, "w") as file:
        file["x"] = np.arange(5)
    before = plain.read_bytes()
    with pytest.raises(UsageError, match="holds no versions"):
        hs.VersionedFile(plain, "r+")
    assert (path.read_bytes(), plain.read_bytes()) == (b"", before)

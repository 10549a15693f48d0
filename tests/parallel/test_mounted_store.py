"""The striped store as a mounted file system: real libraries on it, against the servers' own logs."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from alone_with_stores import alone_with_stores
from typer.testing import CliRunner

from hyperslab.cli import app
from hyperslab.errors import Refused, UsageError
from hyperslab.model import Hdf5, Layout, Workload, Zarr
from hyperslab.parallel.partition import divided
from hyperslab.parallel.predict import Sharing, count_processes
from hyperslab.parallel.striped_store import fuse_protocol, namespaces
from hyperslab.parallel.striped_store.mount import MountedStore, remove_left_mounts
from hyperslab.parallel.striped_store.store import Logged, StoreSpeeds, StripedStore
from hyperslab.parallel.striping import Striping

reason = namespaces.why_not() or (None if os.access("/dev/fuse", os.R_OK | os.W_OK) else "no /dev/fuse")
needs_mounts = [
    pytest.mark.skipif(reason is not None, reason=f"no mounted striped store here: {reason}"),
    pytest.mark.slow,
]
FAST = StoreSpeeds(mbit_s=800.0, request_seconds=0.0, metadata_seconds=0.0)
SHAPE, CHUNKS = (256, 128), (64, 64)
STRIPE = 64 * 64 * 4


def run(text: str, *arguments: str) -> tuple[int, str]:
    """A program of its own: a process that uses a mount of this one must not be this one."""
    started = subprocess.Popen(
        [sys.executable, "-c", text, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    said, errors = started.communicate(timeout=120)
    assert started.returncode == 0, errors
    return started.pid, said.strip()


USER, OTHER_USER = 65533, 65534


def as_user(user: int, call: str, directory: Path) -> int:
    """How a shell command of another user ends in a directory, into which root has put its process."""
    whose: Any = {"user": user, "group": user, "extra_groups": []}
    return subprocess.run(["sh", "-c", call], cwd=directory, capture_output=True, timeout=120, **whose).returncode


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One mounted store for all tests of real libraries."""
    striping = Striping(4, STRIPE, 3)
    with contextlib.ExitStack() as stack:
        with alone_with_stores():
            served = stack.enter_context(StripedStore(4, FAST))
            made = stack.enter_context(MountedStore(served, tmp_path_factory.mktemp("mounted"), striping))
        yield served, made.directory


class TestMounted:
    """Real libraries on a mounted store."""

    pytestmark = needs_mounts

    def test_files_are_files(self, store: Any) -> None:
        text = """
import os, sys
os.chdir(sys.argv[1])
before = os.listdir(".")
os.makedirs("a/b"); assert os.listdir("a") == ["b"]
for name in ("a/plain", "a/shared.h5"):
    content = os.urandom(3_000_000)
    open(name, "wb").write(content); assert open(name, "rb").read() == content
    with open(name, "r+b") as file:
        file.seek(2_999_990); file.write(b"x" * 20); file.truncate(1000); file.truncate(2000)
    assert open(name, "rb").read() == content[:1000] + bytes(1000)
    os.rename(name, "a/b/moved"); assert os.stat("a/b/moved").st_size == 2000
    with open("a/b/moved", "rb") as file:
        os.remove("a/b/moved"); assert file.read() == content[:1000] + bytes(1000)
    assert open(name, "wb").write(b"new") == 3 and os.path.getsize(name) == 3
    os.remove(name)
open("large", "wb").close()
calls = (lambda: os.rmdir("a"), lambda: open("none"), lambda: os.mkdir("a"), lambda: os.truncate("large", 1 << 40))
for call in calls:
    try:
        call()
    except OSError as error:
        print(error.errno)
os.remove("large"); os.rmdir("a/b"); os.rmdir("a"); assert os.listdir(".") == before
"""
        assert run(text, str(store[1]))[1].split() == ["39", "2", "17", "27"]

    def test_only_the_owner_of_the_directory_and_root_can_use_it(self, store: Any, tmp_path: Path) -> None:
        served, directory = store
        assert (directory.stat().st_uid, oct(directory.stat().st_mode)) == (os.getuid(), "0o40700")
        run('import sys; open(sys.argv[1] + "/ours", "w").write("text")', str(directory))
        try:
            for call in (
                "echo theirs > new",
                "echo theirs > ours",
                "cat ours",
                "ls",
                "mkdir new",
                "rm ours",
                "mv ours x",
            ):
                assert as_user(OTHER_USER, call, directory) != 0, call
            os.chown(tmp_path, USER, USER)
            with MountedStore(served, tmp_path, Striping(4, STRIPE, 3)):
                assert as_user(USER, 'mkdir a && echo text > a/b.h5 && test "$(cat a/b.h5)" = text', tmp_path) == 0
                for call in ("echo theirs > new", "cat a/b.h5", "ls", "echo theirs > a/b.h5"):
                    assert as_user(OTHER_USER, call, tmp_path) != 0, call
                assert ((tmp_path / "a/b.h5").stat().st_uid, (tmp_path / "a").stat().st_mode & 0o777) == (USER, 0o700)
        finally:
            (directory / "ours").unlink()

    @pytest.mark.parametrize("library", ["hdf5", "zarr"])
    def test_real_libraries_make_the_requests_that_we_count(self, store: Any, library: str) -> None:
        pytest.importorskip("h5py" if library == "hdf5" else "zarr")
        served, directory = store
        write = """
import sys, numpy as np, h5py, zarr
array = np.arange(256 * 128, dtype="f4").reshape(256, 128)
if sys.argv[2] == "hdf5":
    with h5py.File(sys.argv[1] + "/x.h5", "w") as file: file.create_dataset("x", data=array, chunks=(64, 64))
else:
    zarr.create_array(sys.argv[1] + "/x.zarr", data=array, chunks=(64, 64), compressors=None)
"""
        read = """
import sys, numpy as np, h5py, zarr
array = np.arange(256 * 128, dtype="f4").reshape(256, 128)
file = h5py.File(sys.argv[1] + "/x.h5")["x"] if sys.argv[2] == "hdf5" else zarr.open_array(sys.argv[1] + "/x.zarr")
for box in eval(sys.argv[3]):
    assert (file[box] == array[box]).all()
"""
        run(write, str(directory), library)
        asked = Workload.model_validate(
            {"array": {"shape": SHAPE, "dtype": "float32"}, "accesses": [{"select": "all"}]}
        )
        layout = Layout(CHUNKS)
        sharing = Sharing(3, Striping(4, STRIPE, 3), "round-robin")
        counted = count_processes(asked, layout, Hdf5() if library == "hdf5" else Zarr(), sharing)
        for part, planned in zip(divided(asked, layout, 3, "round-robin"), counted, strict=True):
            before = len(served.logs())
            boxes = [step.selection.slices for step in part.steps()]  # type: ignore[union-attr]
            process, _ = run(read, str(directory), library, repr(boxes))
            logs = in_time(served)[before:]
            if library == "hdf5":  # threads of zarr-python have numbers of their own
                assert {each.process for each in logs} == {process}
            assert chunk_nbytes(each.length for each in logs if each.operation == "read") == chunk_nbytes(
                planned.nbytes[~planned.writes]
            )
            opened = {each.number for each in logs if each.operation == "open"}
            if library == "zarr":  # a visit for each chunk file, and one for zarr.json
                assert len(opened) == planned.opens + 1

    def test_mpi_ranks_write_one_shared_file(self, store: Any) -> None:
        from hyperslab.bench import mpi

        if (why := mpi.refusal("hdf5", "write")) is not None:
            pytest.skip(why)
        served, directory = store
        before = len(served.logs())
        text = """
import sys, h5py, numpy as np
from mpi4py import MPI
world = MPI.COMM_WORLD
with h5py.File(sys.argv[1], "w", driver="mpio", comm=world) as file:
    array = file.create_dataset("x", (256, 128), "f4", chunks=(64, 64))
    with array.collective:
        array[64 * world.rank : 64 * world.rank + 64] = np.full((64, 128), world.rank, "f4")
sizes = world.gather(world.size)
if world.rank == 0:  # mpirun mixes what several ranks print, letter by letter
    print(*sizes)
"""
        command = [mpi.MPIRUN, "--allow-run-as-root", "--oversubscribe", "-n", "4", mpi.PYTHON, "-c", text]
        done = subprocess.run([*command, str(directory / "m.h5")], capture_output=True, text=True, timeout=240)
        assert done.stdout.split() == ["4"] * 4, done.stderr
        found = run(
            'import sys, h5py; print(sorted(set(h5py.File(sys.argv[1])["x"][::64].ravel().tolist())))',
            str(directory / "m.h5"),
        )[1]
        assert found == "[0.0, 1.0, 2.0, 3.0]"
        wrote = [each for each in in_time(served)[before:] if each.operation == "write"]
        assert {each.server for each in wrote} == {0, 1, 2}


def in_time(store: StripedStore) -> list[Logged]:
    """What the servers have served, in the order in which they began."""
    return sorted(store.logs(), key=lambda each: each.begun)


def chunk_nbytes(lengths: Any) -> int:
    """The bytes of requests that are chunks or pieces of them, which superblocks, headers and indexes are not."""
    return sum(int(length) for length in lengths if length > 3000)


@pytest.mark.skipif(reason is not None, reason=f"no mounted striped store here: {reason}")
@pytest.mark.slow
@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("killed_by", [signal.SIGTERM, signal.SIGKILL])
def test_a_mount_of_a_killed_store_is_removed_by_the_next_start_at_the_latest(
    killed_by: signal.Signals, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "hyperslab", "lab", "serve-striped", "--servers", "2", "--mount", str(tmp_path)]
    started = subprocess.Popen([*command, "--stripe", "64KiB:1"], stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    while not started.stdout.readline().startswith("logs"):
        assert started.poll() is None
    run('import sys; open(sys.argv[1] + "/a", "w").write("text")', str(tmp_path))
    started.send_signal(killed_by)
    started.communicate(timeout=120)
    if killed_by == signal.SIGKILL:
        assert str(tmp_path) in Path("/proc/self/mountinfo").read_text()
        with pytest.raises(OSError, match="not connected"):
            list(tmp_path.iterdir())
        assert remove_left_mounts() == [str(tmp_path)]
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and namespaces.remove_left() == []:
            time.sleep(0.1)
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("alone")
def test_what_cannot_be_mounted_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = StripedStore(2, FAST)
    with (
        pytest.raises(Refused, match="is not a directory: make it first"),
        MountedStore(store, tmp_path / "none", Striping(2, 1, 1)),
    ):
        pass

    def nothing(*_: object) -> int:
        raise OSError(2, "No such file or directory: '/dev/fuse'")

    monkeypatch.setattr(fuse_protocol, "mount", nothing)
    with (
        pytest.raises(Refused, match=r"cannot be mounted here: .*dev/fuse"),
        MountedStore(store, tmp_path, Striping(2, 1, 1)),
    ):
        pass


@pytest.mark.parametrize(
    ("stripe", "said"), [("none", "is not a stripe"), ("1MiB:9", "stripe count of 9 does not fit")]
)
def test_impossible_stripes_of_a_mount_are_refused(stripe: str, said: str) -> None:
    failed = CliRunner().invoke(app, ["lab", "serve-striped", "--stripe", stripe])
    assert isinstance(failed.exception, UsageError)
    assert said in str(failed.exception)

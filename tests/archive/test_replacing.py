"""Files are replaced completely or not at all, whatever the target is, and on a full disk too."""

from __future__ import annotations

import gc
import os
import resource
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import h5py
import numpy as np
import pytest

import hyperslab
from command_line import run_hyperslab
from hyperslab.errors import NoSpace, UsageError
from hyperslab.replacing import replace_with, replacing
from hyperslab.scratch import remove

VALUES = np.arange(500_000.0)
COMMAND = (sys.executable, "-m", "hyperslab")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=VALUES, chunks=(50_000,), compression="gzip")
    return path


def read(source: Path, *options: object) -> subprocess.CompletedProcess[str]:
    return run_hyperslab("read", source, "x", *options)


def started(source: Path, *options: object, **how: object) -> subprocess.CompletedProcess[bytes]:
    """The same by a new Python: its output as bytes, or with a limit."""
    command = [*COMMAND, "read", str(source), "x", *map(str, options)]
    return subprocess.run(command, capture_output=True, timeout=250, **how)  # type: ignore[call-overload]


@pytest.mark.parametrize("name", ["old.npy", "new.npy"])
def test_a_full_disk_is_an_error_and_leaves_what_was_there(source: Path, small_disk: Path, name: str) -> None:
    done = read(source, "-o", small_disk / name)
    assert done.returncode == 1, done.stderr
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in small_disk.iterdir()] == ["old.npy"]
    assert (small_disk / "old.npy").read_bytes() == b"worth something"


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["hs", "json", "parquet"])
def test_references_on_a_full_disk(tmp_path: Path, small_disk: Path, ending: str) -> None:
    path = tmp_path / "many.h5"
    with h5py.File(path, "w") as file:
        for number in range(60 if ending == "json" else 400):
            made = file.create_dataset(f"array-{number}", (4,), "i4", data=range(4))
            made.attrs["text"] = os.urandom(15_000).hex()
    with hyperslab.open(path) as root, pytest.raises(NoSpace, match="No space left"):
        hyperslab.index(root).save(small_disk / f"many.{ending}")
    assert [found.name for found in small_disk.iterdir()] == ["old.npy"]


@pytest.mark.parametrize("ending", ["h5", "zarr"])
def test_an_exported_version_on_a_full_disk(tmp_path: Path, small_disk: Path, ending: str) -> None:
    path = tmp_path / "versions.h5"
    with hyperslab.VersionedFile(path, "w") as file, file.stage_version("one") as staged:
        staged.create_dataset("x", data=VALUES, chunks=(50_000,))
    done = run_hyperslab("versions", "export", path, "one", "-o", small_disk / f"one.{ending}")
    assert done.returncode == 1, done.stderr
    assert "o space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert [found.name for found in small_disk.iterdir()] == ["old.npy"]


def test_a_limit_of_the_file_size_is_an_error(source: Path, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    done = started(source, "-o", tmp_path / "out.npy", preexec_fn=limit)
    assert done.returncode == 1, done.stderr
    assert b"File too large" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["source.h5"]


def character_device(path: Path, minor: int) -> Path:
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
        path.open("wb").close()
    except OSError as error:
        pytest.skip(f"no device can be made: {error}")
    return path


def test_devices_and_pipes_are_refused(source: Path, tmp_path: Path) -> None:
    devices = [character_device(tmp_path / "null", 3), character_device(tmp_path / "full", 7)]
    os.mkfifo(tmp_path / "pipe")
    for path, what in [*((one, "a device") for one in devices), (tmp_path / "pipe", "a pipe")]:
        before = path.stat()
        done = read(source, "-o", path)
        assert done.returncode == 2
        assert f"is {what}, not a file" in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert (path.stat().st_mode, path.stat().st_rdev) == (before.st_mode, before.st_rdev)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "null", "pipe", "source.h5"]


def test_a_device_stays_one(tmp_path: Path) -> None:
    """Commands that do not refuse devices write to them, and never replace them."""
    null, full = character_device(tmp_path / "null", 3), character_device(tmp_path / "full", 7)
    replace_with(null, "x")
    with pytest.raises(NoSpace, match="No space left on device"):
        replace_with(full, "x")
    assert null.is_char_device()
    assert full.is_char_device()


def test_a_pipe_gets_all(tmp_path: Path) -> None:
    pipe, loaded = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: loaded.append(pipe.read_bytes()))
    reader.start()
    replace_with(pipe, VALUES.tobytes())
    reader.join()
    assert loaded == [VALUES.tobytes()]
    assert pipe.is_fifo()


def test_standard_output_is_a_pipe_or_what_the_shell_has_open(source: Path, tmp_path: Path) -> None:
    piped = started(source, "-o", "/dev/stdout")
    (tmp_path / "piped.npy").write_bytes(piped.stdout)
    assert np.array_equal(np.load(tmp_path / "piped.npy"), VALUES), piped.stderr
    shown = tmp_path / "shown.npy"
    shown.write_bytes(b"before")
    command = [*COMMAND, "read", str(source), "x", "-o", "/dev/stdout"]
    with shown.open("ab") as appended:
        subprocess.run(command, stdout=appended, check=True, timeout=250)
    assert shown.read_bytes() == b"before" + piped.stdout


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    real, link, second = tmp_path / "folder" / "real", tmp_path / "link", tmp_path / "second"
    real.parent.mkdir()
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to("folder/real")
    second.symlink_to(link)
    replace_with(second, "new")
    assert link.is_symlink()
    assert second.is_symlink()
    assert real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    leads_nowhere = tmp_path / "nowhere"
    leads_nowhere.symlink_to("folder/made")
    replace_with(leads_nowhere, "made")
    assert (tmp_path / "folder" / "made").read_text() == "made"
    circle = tmp_path / "circle"
    circle.symlink_to("circle")
    with pytest.raises(UsageError, match="leads to itself"):
        replace_with(circle, "x")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").touch()
    with pytest.raises(UsageError, match="holds something else"):
        replace_with(tmp_path / "folder", "x")
    with pytest.raises(UsageError, match="there is no folder"):
        replace_with(tmp_path / "no" / "x", "x")
    with pytest.raises(UsageError, match="cannot become a folder"), replacing(Path(os.devnull), is_folder=True):
        pass
    disk = tmp_path / "disk"
    try:
        os.mknod(disk, 0o600 | stat.S_IFBLK, os.makedev(7, 255))
    except OSError as error:
        pytest.skip(f"no device can be made: {error}")
    with pytest.raises(UsageError, match="is a disk"):
        replace_with(disk, "x")
    assert disk.is_block_device()


def test_files_of_similar_names_are_nobody_s(source: Path, tmp_path: Path) -> None:
    mine = [tmp_path / name for name in ("out.npy.new", ".out.npy.new", f".out.npy.{os.getpid()}.new")]
    for path in mine:
        path.write_text("mine")
    assert read(source, "-o", tmp_path / "out.npy").returncode == 0
    assert {path.read_text() for path in mine} == {"mine"}
    versioned = tmp_path / "v.h5"
    (tmp_path / "v.h5.new").write_text("mine")
    with hyperslab.VersionedFile(versioned, "w") as file, file.stage_version("one") as staged:
        staged["x"] = [1, 2]
    with hyperslab.VersionedFile(versioned, "r+") as file:
        file.repack()
    assert (tmp_path / "v.h5.new").read_text() == "mine"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_what_was_begun_is_removed(tmp_path: Path, error: type[BaseException]) -> None:
    (tmp_path / "x").write_text("old")

    def interrupted() -> None:
        with replacing(tmp_path / "x") as beside:
            beside.write_text("half")
            raise error

    with pytest.raises(error):
        interrupted()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x", "old")]


@contextmanager
def ctrl_c_at(call: int) -> Iterator[list[int]]:
    """Ctrl-C where a function begins, or one of C begins or ends: there Python looks for signals. Yields how many."""
    calls = [0]

    def count(_: object, event: str, __: object) -> None:
        calls[0] += event != "return"
        if calls[0] == call and event != "return":
            raise KeyboardInterrupt

    gc.disable()  # an exception in what it calls would be lost
    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        gc.enable()


@pytest.mark.parametrize("is_there", [False, True], ids=["new", "replaced"])
def test_ctrl_c_at_any_call_leaves_the_old_file_or_the_new_one(tmp_path: Path, is_there: bool) -> None:
    path, old = tmp_path / "x", {"x": "old"} if is_there else {}
    with ctrl_c_at(0) as made:
        replace_with(path, "new")
    assert made[0] > 100
    for call in range(1, made[0]):
        remove(path)
        if is_there:
            path.write_text("old")
        # shutil.rmtree of Python 3.11 closes a folder twice if Ctrl-C comes after the first time.
        with suppress(KeyboardInterrupt, OSError), ctrl_c_at(call):
            replace_with(path, "new")
        found = {one.name: one.read_text() if one.is_file() else "a folder" for one in tmp_path.iterdir()}
        assert found in (old, {"x": "new"}), f"call {call} of {made[0]}"

"""Kills, full disks, changed sources, existing targets: nothing is lost, and nothing half-written gets the name."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from convert_sources import assert_same

import hyperslab as hs
from command_line import run_python
from hyperslab.conversion.journal import ConversionJournal
from hyperslab.errors import FileChanged, UsageError

IMPORTED = ("numpy", "h5py", "zarr", "hyperslab.conversion.journal")

# Converts and kills itself when so many slabs are in the journal.
KILLED = """
import os, signal, sys
import hyperslab as hs
from hyperslab.conversion.journal import ConversionJournal
after = int(sys.argv[3])
add = ConversionJournal.add
def counted(self, *given):
    add(self, *given)
    if len(self.finished) == after:
        os.kill(os.getpid(), signal.SIGKILL)
ConversionJournal.add = counted
hs.convert(sys.argv[1], sys.argv[2], chunks="100,10", codec="deflate-4+shuffle", memory=100_000, resume=True,
           format=sys.argv[4])
"""


def killed(source: Path, target: Path, after: int, format: str) -> None:
    """Run a conversion that kills itself, in a process that need not import everything anew."""
    done = run_python(KILLED, source, target, after, format, modules=IMPORTED)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.fixture
def source(tmp_path: Path) -> Path:
    random = np.random.default_rng(3)
    path = tmp_path / "source.h5"
    with h5py.File(path, "w") as file:
        for name in ("a", "b"):
            file.create_dataset(name, data=random.integers(0, 99, (300, 200)).astype("f4"), chunks=(10, 200))
            file[name].attrs["units"] = "K"
        file.create_dataset("c", data=np.arange(2000.0))
    return path


@pytest.mark.parametrize("format", ["hdf5", "zarr2", "zarr3"])
def test_a_killed_conversion_goes_on(source: Path, tmp_path: Path, format: Any) -> None:
    target = tmp_path / "target"
    for after in (1, 3, 4, 7):
        killed(source, target, after, format)
        assert not target.exists()
    options: dict[str, Any] = {"chunks": "100,10", "codec": "deflate-4+shuffle", "memory": 100_000, "format": format}
    with pytest.raises(UsageError, match="unfinished conversion: go on with --resume"):
        hs.convert(source, target, **options)
    with pytest.raises(UsageError, match="another wish"):
        hs.convert(source, target, resume=True, **(options | {"chunks": "50,10"}))
    done = hs.convert(source, target, resume=True, verify="library", **options)
    assert done.is_resumed
    if format == "hdf5":
        assert_same(source, target, {"a": (100, 10), "b": (100, 10)})
    else:
        with hs.open(target) as found, h5py.File(source) as file:
            for name in ("a", "b", "c"):
                np.testing.assert_array_equal(found[name][...], file[name][...])
    assert not list(tmp_path.glob(".*"))


def test_a_resumed_file_is_the_same_as_an_uninterrupted_one(source: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"chunks": "100,10", "codec": "deflate-4+shuffle", "memory": 100_000}
    killed(source, tmp_path / "a.h5", 5, "hdf5")
    hs.convert(source, tmp_path / "a.h5", resume=True, format="hdf5", **options)
    hs.convert(source, tmp_path / "b.h5", **options)
    with h5py.File(tmp_path / "a.h5") as a, h5py.File(tmp_path / "b.h5") as b:
        for name in ("a", "b"):
            for number in range(a[name].id.get_num_chunks()):
                assert a[name].id.get_chunk_info(number) == b[name].id.get_chunk_info(number)


def test_a_changed_source_is_an_error(source: Path, tmp_path: Path) -> None:
    killed(source, tmp_path / "a.h5", 3, "hdf5")
    options: dict[str, Any] = {"chunks": "100,10", "codec": "deflate-4+shuffle", "memory": 100_000, "format": "hdf5"}
    with h5py.File(source, "r+") as file:
        file["a"][0] = 5
    with pytest.raises(FileChanged, match="start again with --overwrite"):
        hs.convert(source, tmp_path / "a.h5", resume=True, **options)
    hs.convert(source, tmp_path / "a.h5", overwrite=True, **options)
    assert_same(source, tmp_path / "a.h5")


def test_a_source_that_changes_meanwhile_is_an_error(source: Path, tmp_path: Path) -> None:
    def change(*_: Any) -> None:
        os.utime(source, ns=(time.time_ns(), time.time_ns()))

    with pytest.raises(FileChanged):
        hs.convert(source, tmp_path / "a.h5", chunks="100,10", memory=100_000, progress=change)
    assert [path.name for path in tmp_path.iterdir()] == ["source.h5"]


@pytest.mark.parametrize("version", [2, 3])
def test_chunks_of_zarr_that_change_are_a_changed_source(source: Path, tmp_path: Path, version: int) -> None:
    """Only the documents were looked at: a copy that went on could have old and new elements."""
    zarr = pytest.importorskip("zarr", reason="not installed: pip install 'hyperslab[zarr]'")
    hs.convert(source, tmp_path / "a.zarr", format=f"zarr{version}")
    killed(tmp_path / "a.zarr", tmp_path / "b.h5", 3, "hdf5")
    zarr.open_group(tmp_path / "a.zarr", mode="r+")["a"][200:] = 5
    options: dict[str, Any] = {"chunks": "100,10", "codec": "deflate-4+shuffle", "memory": 100_000, "format": "hdf5"}
    with pytest.raises(FileChanged, match="start again with --overwrite"):
        hs.convert(tmp_path / "a.zarr", tmp_path / "b.h5", resume=True, **options)
    hs.convert(tmp_path / "a.zarr", tmp_path / "b.h5", overwrite=True, **options)
    with h5py.File(tmp_path / "b.h5") as file:
        assert (file["a"][200:] == 5).all()


LIMITED = """
import resource, signal, sys
import hyperslab as hs
from hyperslab.errors import NoSpace
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (130_000, resource.RLIM_INFINITY))
try:
    hs.convert(sys.argv[1], sys.argv[2], chunks="100,10", memory=300_000, format=sys.argv[3])
except NoSpace as error:
    print(error)
"""


@pytest.mark.parametrize("format", ["hdf5", "zarr3", "netcdf4"])
def test_a_full_disk_is_named(source: Path, tmp_path: Path, format: Any) -> None:
    target = tmp_path / "target"
    if format == "zarr3":
        with h5py.File(source, "r+") as file:
            file.create_dataset("large", data=np.random.default_rng(1).random((10, 18, 100)), chunks=(10, 18, 100))
    done = run_python(LIMITED, source, target, format, modules=IMPORTED)
    assert b"make room: " in done.stdout, done.stderr
    assert b"go on with --resume" in done.stdout
    assert done.returncode == 0
    assert not target.exists()
    hs.convert(source, target, chunks="100,10", memory=300_000, format=format, resume=True)
    with hs.open(target) as found, h5py.File(source) as file:
        np.testing.assert_array_equal(found["b"][...], file["b"][...])


@pytest.mark.parametrize("name", ["a.h5", "a.zarr", "a.nc"])
def test_an_existing_target_stays(source: Path, tmp_path: Path, name: str) -> None:
    target = tmp_path / name
    if name == "a.zarr":
        target.mkdir()
        (target / "mine.txt").write_text("mine")
    else:
        target.write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        hs.convert(source, target)
    if name == "a.zarr":
        with pytest.raises(UsageError, match="holds something else"):
            hs.convert(source, target, overwrite=True)
        assert (target / "mine.txt").read_text() == "mine"
    else:
        assert target.read_text() == "mine"
        hs.convert(source, target, overwrite=True)
        hs.convert(source, target, overwrite=True)
    assert not list(tmp_path.glob(".*"))
    with pytest.raises(UsageError, match="is the source"):
        hs.convert(source, source, overwrite=True)


def test_interrupting_leaves_what_is_finished(source: Path, tmp_path: Path) -> None:
    def stop(what: str, done: int, __: int) -> None:
        if "first pass" not in what:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"chunks": "100,10", "memory": 100_000}
    with pytest.raises(KeyboardInterrupt):
        hs.convert(source, tmp_path / "a.h5", progress=stop, **options)
    assert not (tmp_path / "a.h5").exists()
    assert hs.convert(source, tmp_path / "a.h5", resume=True, **options).is_resumed
    assert_same(source, tmp_path / "a.h5")


@pytest.mark.parametrize("method", ["_take", "_clear", "is_resumed"])
def test_interrupting_before_anything_is_written_leaves_nothing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """As Ctrl-C does: the signal arrives while the folder is new, and nobody has it yet."""

    def interrupted(*_: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # another test may have left another one
    there = set(tmp_path.iterdir())
    patched = property(lambda _: interrupted(), lambda *_: None) if method == "is_resumed" else interrupted
    monkeypatch.setattr(ConversionJournal, method, patched, raising=False)
    try:
        with pytest.raises(KeyboardInterrupt):
            hs.convert(source, tmp_path / "made.h5")
    finally:
        signal.signal(signal.SIGINT, handler)
    assert set(tmp_path.iterdir()) == there
    monkeypatch.undo()
    hs.convert(source, tmp_path / "made.h5")


def test_memory_is_bounded(tmp_path: Path) -> None:
    """Of 95 MiB, which are more than 100 MiB on top if the bound is not kept."""
    with h5py.File(tmp_path / "large.h5", "w") as file:
        array = file.create_dataset("x", (100, 500, 500), "f4", chunks=(1, 500, 500), compression="lzf")
        for number in range(100):
            array[number] = number
    code = (
        "import sys, hyperslab as hs, h5py\n"
        "from hyperslab.conversion import steps, from_hdf5\n"
        # the peak of this program alone: ru_maxrss begins with that of the process that started it
        "def peak(): return next(int(line.split()[1]) for line in open('/proc/self/status') if 'VmHWM' in line) >> 10\n"
        "before = peak()\n"
        "hs.convert(sys.argv[1], sys.argv[2], chunks='100,50,50', codec='lz4', memory=10 << 20)\n"
        "print(peak() - before)\n"
    )
    call = [sys.executable, "-c", code, str(tmp_path / "large.h5"), str(tmp_path / "b.h5")]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    assert 0 < int(done.stdout) < 60, done.stdout  # what libraries keep comes on top of the 10
    assert_same(tmp_path / "large.h5", tmp_path / "b.h5", {"x": (100, 50, 50)})

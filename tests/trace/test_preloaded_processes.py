"""The preloaded recorder in programs that fork, start others, use threads, die, or lose their log."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from preloaded_programs import IS_PRELOADED, traced, traced_python

import hyperslab as hs
from hyperslab.trace.recording import log as raw

h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")
pytest.importorskip("pyarrow", reason="not installed: pip install 'hyperslab[report]'")
pytestmark = pytest.mark.skipif(not IS_PRELOADED, reason="there is no libhyperslab_preload.so: only Linux has it")
BEGIN = """
import ctypes, os, signal, subprocess, sys, threading
import h5py
file = h5py.File("a.h5")
def read(rows):
    for k in rows:
        file["x"][k % 20]
read(range(3))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=[[k] * 20 for k in range(20)], chunks=(5, 5))
    return tmp_path


def program(folder: Path, rest: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(BEGIN + rest)
    return traced(folder, sys.executable, "program.py")


def rows(trace: hs.Trace) -> list[int]:
    return [one.selection[0] for one in trace]


def test_a_forked_child_has_its_own_log(folder: Path) -> None:
    trace = traced_python(folder, BEGIN + "if os.fork() == 0:\n    read([7])\n    os._exit(0)\nos.wait()\nread([8])\n")
    assert trace.notes == []
    assert rows(trace) == [0, 1, 2, 7, 8]
    assert len({one.process for one in trace}) == 2


def test_children_by_other_ways(folder: Path) -> None:
    """Among them one that cannot be started, which ends while it shares its parent's memory."""
    rest = """
for words in (["/no/such/program"], [sys.executable, "-I", "-c", "import h5py; h5py.File('a.h5')['x'][5]"]):
    try:
        subprocess.run(words, check=True)
    except FileNotFoundError:
        pass
pid = os.posix_spawn(sys.executable, [sys.executable, "-c", "import h5py; h5py.File('a.h5')['x'][6]"], os.environ)
os.waitpid(pid, 0)
read([9])
"""
    trace = traced_python(folder, BEGIN + rest)
    assert trace.notes == []
    assert rows(trace) == [0, 1, 2, 5, 6, 9]


def test_a_program_that_starts_another_one_in_its_place(folder: Path) -> None:
    rest = "os.execv(sys.executable, [sys.executable, '-c', \"import h5py; h5py.File('a.h5')['x'][5]\"])\n"
    trace = traced_python(folder, BEGIN + rest)
    assert trace.notes == []
    assert rows(trace) == [0, 1, 2, 5]
    assert len({one.process for one in trace}) == 1


def test_threads(folder: Path) -> None:
    rest = """
threads = [threading.Thread(target=read, args=([k] * 500,)) for k in range(4)]
[one.start() for one in threads], [one.join() for one in threads]
"""
    trace = traced_python(folder, BEGIN + rest)
    assert trace.notes == []
    assert sorted(rows(trace)) == sorted([0, 1, 2] + [0, 1, 2, 3] * 500)
    assert len({one.thread for one in trace}) >= 2


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_program_that_a_signal_ends(folder: Path, number: signal.Signals) -> None:
    done = program(folder, f"read(range(5000))\nos.kill(os.getpid(), {int(number)})\n")
    assert done.returncode == -number
    trace = hs.Trace.open(folder / "run.trace")
    assert len(trace) == 5003
    assert ["the process was killed" in note for note in trace.notes] == [True]


@pytest.mark.parametrize("end", ["os._exit(3)", "sys.exit(3)", "ctypes.CDLL(None)._exit(3)", "raise SystemExit(3)"])
def test_ways_to_end(folder: Path, end: str) -> None:
    assert program(folder, end + "\n").returncode == 3
    trace = hs.Trace.open(folder / "run.trace")
    assert (trace.notes, rows(trace)) == ([], [0, 1, 2])


def test_a_log_that_cannot_grow(folder: Path) -> None:
    """As on a full disk. No signal may end the program."""
    rest = """
import resource
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (300000, resource.RLIM_INFINITY))
read(range(6000))
print("done")
"""
    done = program(folder, rest)
    assert (done.returncode, done.stdout) == (1, "done\n")  # the trace is not whole
    trace = hs.Trace.open(folder / "run.trace")
    assert 1000 < len(trace) < 6003
    assert f"{6003 - len(trace)} are missing: the log could not be written (File too large)" in trace.notes[0]
    assert trace.notes[0] in done.stderr


def test_a_log_that_somebody_removes(folder: Path) -> None:
    rest = "import glob\n[os.remove(path) for path in glob.glob('run.trace.logs/*.log')]\n"
    rest += "read(range(6000))\nprint('done')\n"
    done = program(folder, rest)
    assert (done.returncode, done.stdout) == (0, "done\n")


def test_a_program_that_closes_all_descriptors(folder: Path) -> None:
    """Ours must not be a number that then means another file."""
    rest = """
file.close()
del file
os.closerange(3, 200)
own = [os.open(f"own{k}", os.O_RDWR | os.O_CREAT) for k in range(20)]
[os.write(one, b"mine") for one in own]
file = h5py.File("a.h5")
read(range(6000))
"""
    trace = traced_python(folder, BEGIN + rest)
    assert (len(trace), trace.notes) == (6003, [])
    assert {(folder / f"own{k}").read_bytes() for k in range(20)} == {b"mine"}


def test_a_file_that_vanishes(folder: Path) -> None:
    trace = traced_python(folder, BEGIN + "os.remove('a.h5')\nread([4])\nos.chdir('/')\nread([5])\n")
    assert (rows(trace), trace.notes) == ([0, 1, 2, 4, 5], [])
    done = subprocess.run(
        [sys.executable, "-m", "hyperslab", "trace", "show", "run.trace"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "a.h5:/x" in done.stdout


def test_a_recorder_of_another_version(folder: Path) -> None:
    rest = """
import glob
with open(glob.glob("run.trace.logs/*.log")[0], "r+b") as log:
    log.seek(8), log.write(bytes([77]))
print("done")
"""
    done = program(folder, rest)
    assert (done.returncode, done.stdout) == (1, "done\n"), "its accesses are lost"
    assert "has version 77 of the raw log" in done.stderr
    assert "the hyperslab that recorded it" in done.stderr


def test_programs_into_which_nothing_can_be_preloaded(folder: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("not installed: apt install gcc")
    (folder / "a.c").write_text('#include <stdio.h>\nint main(void) { puts("fine"); return 4; }\n')
    if subprocess.run(["gcc", "-static", "-o", "static", "a.c"], cwd=folder, capture_output=True).returncode:
        pytest.skip("not installed: apt install libc6-dev")
    done = traced(folder, "./static")
    assert (done.returncode, done.stdout) == (4, "fine\n")
    assert "./static is linked statically, so nothing can be preloaded: its accesses are not recorded" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a program run as somebody else")
def test_a_program_with_the_rights_of_another_user(folder: Path) -> None:
    shutil.copy(shutil.which("true") or "", folder / "theirs")
    os.chown(folder / "theirs", 65534, 65534)
    (folder / "theirs").chmod(0o4755)
    folder.chmod(0o755)
    done = traced(folder, "./theirs")
    assert done.returncode == 0
    said = "./theirs runs with the rights of another user, so the system preloads nothing"
    assert f"{said}: its accesses are not recorded" in done.stderr


def test_logs_of_both_recorders_have_the_same_form(folder: Path) -> None:
    """The bytes that `log.py` describes, read with its own structures."""
    (folder / "program.py").write_text(BEGIN + "os.kill(os.getppid(), 9)\n")
    words = [sys.executable, "-m", "hyperslab", "trace", "-o", "run.trace", "--", sys.executable, "program.py"]
    # The pipe is open until the program has ended too, of which hyperslab can tell nothing anymore.
    done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE)
    assert done.returncode == -9
    (path,) = (folder / "run.trace.logs").glob("*.log")
    content = path.read_bytes()
    magic, version, *_, state, errno, _, _, lost, count = raw.HEADER.unpack_from(content)
    assert (magic, version, state, errno, lost, count) == (raw.MAGIC, raw.VERSION, raw.ENDED, 0, 0, 3)
    place, kinds = raw.HEADER.size, []
    while place < len(content):
        length, kind = raw.RECORD.unpack_from(content, place)
        kinds.append(kind)
        place += raw.RECORD.size + length + -length % raw.ALIGNMENT
    assert kinds == [raw.EVENT, raw.ARRAY, raw.TEXT, raw.ACCESSED, raw.ACCESSED, raw.ACCESSED]
    assert place == len(content)

"""`hyperslab trace` runs any program as it would run without us, and its trace says what was recorded."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import hyperslab as hs
from command_line import run_hyperslab

pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")
pytest.importorskip("pyarrow", reason="not installed: pip install 'hyperslab[report]'")

MAKE = """
import h5py, numpy as np
with h5py.File("a.h5", "w") as file:
    file.create_dataset("x", data=np.arange(400.0).reshape(20, 20), chunks=(5, 5))
"""
READ_ROWS = "import h5py\nfile = h5py.File('a.h5')\nfor k in range(20): file['x'][k]\n"


def traced(folder: Path, program: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(program)
    return command(folder, *options, "--", sys.executable, "program.py")


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_hyperslab("trace", "-o", "run.trace", *words, cwd=folder)


def test_a_script_is_recorded(tmp_path: Path) -> None:
    done = traced(tmp_path, MAKE + READ_ROWS)
    assert done.returncode == 0, done.stderr
    trace = hs.Trace.open(tmp_path / "run.trace")
    assert [one.operation for one in trace] == ["write"] + ["read"] * 20
    assert [one.selection[0] for one in trace if one.operation == "read"] == list(range(20))
    assert trace.notes == []
    assert (trace.program["exit_status"], trace.program["arguments"][-1]) == (0, "program.py")
    assert [entry.name for entry in tmp_path.glob("run.trace*")] == ["run.trace"]
    assert "run.trace: 21 accesses to 1 array\n" in done.stderr


def test_children_and_threads_are_recorded(tmp_path: Path) -> None:
    program = """
import multiprocessing, subprocess, sys, threading
def read(k):
    import h5py
    with h5py.File("a.h5") as file:
        file["x"][k]
if __name__ == "__main__":
    subprocess.run([sys.executable, "make.py"], check=True)
    threads = [threading.Thread(target=read, args=(k,)) for k in (1, 2)]
    [one.start() for one in threads], [one.join() for one in threads]
    for method in ("fork", "spawn"):
        made = multiprocessing.get_context(method).Process(target=read, args=(3,))
        made.start(), made.join()
"""
    (tmp_path / "make.py").write_text(MAKE)
    done = traced(tmp_path, program)
    assert done.returncode == 0, done.stderr
    trace = hs.Trace.open(tmp_path / "run.trace")
    assert trace.notes == []
    assert [one.operation for one in trace] == ["write", "read", "read", "read", "read"]
    assert len({one.process for one in trace}) == 4


def test_a_program_that_a_signal_ends(tmp_path: Path) -> None:
    done = traced(tmp_path, MAKE + READ_ROWS + "import os\nos.kill(os.getpid(), 9)\n")
    assert done.returncode == -signal.SIGKILL
    trace = hs.Trace.open(tmp_path / "run.trace")
    assert len(trace) == 21
    assert ["the process was killed" in note for note in trace.notes] == [True]
    assert trace.program["exit_status"] == -9


def test_exit_status_output_and_arguments_are_the_programs(tmp_path: Path) -> None:
    program = "import sys\nprint(sys.argv[1:], sys.stdin.read())\nsys.exit(7)\n"
    (tmp_path / "program.py").write_text(program)
    words = [sys.executable, "-m", "hyperslab", "trace", "-o", "run.trace", "--quiet", sys.executable, "program.py"]
    done = subprocess.run([*words, "--help", "-o", "show"], cwd=tmp_path, capture_output=True, text=True, input="in")
    assert (done.returncode, done.stdout, done.stderr) == (7, "['--help', '-o', 'show'] in\n", "")


def test_a_program_that_opens_no_array(tmp_path: Path) -> None:
    done = command(tmp_path, "--", "true")
    assert done.returncode == 0
    assert "no access to an array was seen" in done.stderr
    assert len(hs.Trace.open(tmp_path / "run.trace")) == 0


def test_a_program_that_does_not_exist(tmp_path: Path) -> None:
    done = command(tmp_path, "--", "no-such-program")
    assert done.returncode == 127
    assert "no-such-program cannot be started: No such file" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_users_own_sitecustomize_still_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import builtins\nbuiltins.from_own = 5\n")
    import os

    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'own'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    done = traced(tmp_path, MAKE + "import sys, sitecustomize\nprint(from_own, sitecustomize.__file__)\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("5 ")
    assert "own" in done.stdout
    assert len(hs.Trace.open(tmp_path / "run.trace")) == 1


def test_a_folder_that_cannot_be_written_does_not_stop_the_program(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "hyperslab", "trace", "-o", "/proc/run.trace", "--", "echo", "fine"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "fine\n")  # whoever looks for the trace must learn of it
    assert "nothing is recorded" in done.stderr


def test_raw_logs_of_a_killed_command_are_opened_and_not_overwritten(tmp_path: Path) -> None:
    assert traced(tmp_path, MAKE).returncode == 0
    program = MAKE + "import os\nos.kill(os.getppid(), 9)\n"
    assert traced(tmp_path, program).returncode == -signal.SIGKILL
    (tmp_path / "run.trace").unlink()
    trace = hs.Trace.open(tmp_path / "run.trace")
    assert len(trace) == 1
    assert "`hyperslab trace` was killed" in " ".join(trace.notes)
    done = traced(tmp_path, MAKE)
    assert done.returncode == 2
    assert "a trace that is not finished" in done.stderr


def test_a_log_that_cannot_grow_does_not_stop_the_program(tmp_path: Path) -> None:
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))\n"
    opened = "import hyperslab\nfile = hyperslab.open('a.h5')\n"  # whose recorder writes its log in Python
    reads = "for k in range(100): file['x'][k % 20]\n"
    done = traced(tmp_path, MAKE + opened + limit + reads + "print('done')\n")
    assert (done.returncode, done.stdout) == (1, "done\n")  # the trace is not whole
    trace = hs.Trace.open(tmp_path / "run.trace")
    assert 2 < len(trace) < 101
    assert f"{101 - len(trace)} are missing: the log could not be written (File too large)" in trace.notes[0]
    assert "recording stops in process" in done.stderr


def test_h5netcdf_and_xarray_are_recorded(tmp_path: Path) -> None:
    pytest.importorskip("h5netcdf", reason="not installed: pip install h5netcdf")
    pytest.importorskip("xarray", reason="not installed: pip install 'hyperslab[xarray]'")
    program = "import xarray\nxarray.open_dataset('a.h5', engine='h5netcdf', phony_dims='sort')['x'][3:5, ::2].values\n"
    done = traced(tmp_path, MAKE + program)
    assert done.returncode == 0, done.stderr
    trace = hs.Trace.open(tmp_path / "run.trace")
    assert [3, 1, 2, 1, 0, 2, 10, 1] in [one.selection for one in trace]


def test_a_trace_onto_a_full_disk_fails_with_a_message_even_if_quiet(tmp_path: Path, small_disk: Path) -> None:
    made = [sys.executable, "-m", "hyperslab", "trace", "-o", str(small_disk / "run.trace"), "--quiet", "--"]
    (small_disk / "fill").write_bytes(bytes(1_000_000))
    with suppress(OSError), (small_disk / "rest").open("wb", buffering=0) as rest:
        while True:
            rest.write(bytes(4096))
    program = [sys.executable, "-c", f"{MAKE}{READ_ROWS}print('fine')"]
    done = subprocess.run([*made, *program], cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout) == (1, "fine\n")
    assert "No space left on device" in done.stderr

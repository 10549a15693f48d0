"""The command ends as the program does, and says what it did."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from run_programs import Ran, run

from hyperslab.running.command import WrongUse, parse
from hyperslab.running.programs import obstacle
from hyperslab.running.records import MAGIC, REASONS, WRITE_REASONS, totals

RUN = [sys.executable, "-m", "hyperslab", "run"]


def started(*words: str, **options: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*RUN, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)  # type: ignore[call-overload]


def test_the_exit_status_is_the_programs() -> None:
    assert run("sh", "-c", "exit 7").status == 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_the_signal_is_the_programs(number: signal.Signals) -> None:
    ran = run("sh", "-c", f"kill -{number.value} $$")
    assert ran.status == -number
    assert ran.counts["signal"] == number.name


def test_a_signal_reaches_the_program() -> None:
    process = started("--", "sh", "-c", 'trap "echo caught; exit 3" TERM; echo ready; while :; do sleep 0.05; done')
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=120)
    assert (process.returncode, out) == (3, b"caught\n")


def test_the_program_has_the_streams_and_the_signals_of_the_caller() -> None:
    ran = subprocess.run(
        [*RUN, "--quiet", "--", "sh", "-c", "cat; yes | head -1"], input=b"in\n", capture_output=True, timeout=120
    )
    assert (ran.stdout, ran.stderr) == (b"in\ny\n", b"")


@pytest.mark.parametrize(("word", "status"), [("no-such-program", 127), (str(Path(__file__).parent), 126)])
def test_a_program_that_cannot_be_started(word: str, status: int) -> None:
    done = subprocess.run([*RUN, "--", word], capture_output=True, text=True, timeout=120)
    assert done.returncode == status
    assert "cannot be started" in done.stderr


@pytest.mark.parametrize(
    "words", [[], ["--"], ["--wrong", "ls"], ["--threads", "0", "ls"], ["--threads"], ["--memory", "2X", "ls"],
              ["--memory=", "ls"]],
)  # fmt: skip
def test_wrong_use(words: list[str]) -> None:
    with pytest.raises(WrongUse):
        parse(words)
    done = subprocess.run([*RUN, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.startswith("hyperslab run: ")
    assert len(done.stderr.splitlines()) == 1


def test_options_end_at_the_program() -> None:
    options = parse(["--quiet", "--threads=3", "--memory", "1GiB", "ls", "--json", "--", "x"])
    assert options.program == ["ls", "--json", "--", "x"]
    assert (options.is_quiet, options.is_json) == (True, False)
    assert options.settings == {"HYPERSLAB_THREADS": "3", "HYPERSLAB_MEMORY": "1GiB"}


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    run("true", TMPDIR=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_nowhere_to_count_changes_nothing() -> None:
    code = "import sys; from hyperslab.running import command as own; own.TEMPORARY = ('/proc',); "
    code += "sys.exit(own.run(['sh', '-c', 'echo out; exit 4']))"
    environment = {**os.environ, "TMPDIR": "/no/such/folder"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment)
    assert (done.returncode, done.stdout) == (4, "out\n")
    assert "could not be counted (/no/such/folder: No such file or directory): set TMPDIR to a folder" in done.stderr


def test_a_missing_or_too_long_folder_for_temporary_files_is_not_used(file: Path, tmp_path: Path) -> None:
    """Nothing of the command depends on TMPDIR, and other programs look elsewhere too."""
    deep = tmp_path
    while len(str(deep)) < 3800:
        deep /= "d" * 200
        deep.mkdir()
    deep /= "e" * (4030 - len(str(deep)))
    deep.mkdir()
    code = "import h5py, sys; h5py.File(sys.argv[1])['x'][:]"
    for folder in ("/no/such/folder", "/dev/null", str(deep)):
        ran = run(sys.executable, "-c", code, file, TMPDIR=folder)
        assert (ran.served, ran.counts["notes"]) == (1, [])


@pytest.mark.parametrize("words", [["a\x1b[31mb\n"], ["--wr\x1b[31mong\n", "ls"], ["--", "\x1b]0;title\x07"]])
def test_a_terminal_obeys_no_names(words: list[str]) -> None:
    done = subprocess.run([*RUN, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode in (2, 127)
    assert done.stderr[:-1].isprintable()


def test_a_program_without_a_name_is_wrong_use() -> None:
    done = subprocess.run([*RUN, "--", ""], capture_output=True, text=True, timeout=120)
    assert (done.returncode, "name the program to run" in done.stderr, "[usage-error]" in done.stderr) == (
        2,
        True,
        True,
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")
    with h5py.File(tmp_path / "a.h5", "w") as made:
        made.create_dataset("x", data=range(100_000), chunks=(10_000,), compression="gzip")
    return tmp_path / "a.h5"


def test_a_program_that_starts_none_is_counted_once(file: Path) -> None:
    """Python's child shares its parent's memory until it starts a program; if it cannot, it ends like one that read."""
    code = """
import h5py, subprocess, sys
print(h5py.File(sys.argv[1])["x"][:].sum())
try:
    subprocess.run(["no-such-program"])
except FileNotFoundError:
    print("not found")
"""
    ran = run(sys.executable, "-c", code, file)
    assert ran.out.endswith(b"not found\n")
    assert (ran.served, ran.counts["processes"]) == (1, 1)


@pytest.mark.skipif(shutil.which("h5dump") is None, reason="not installed: apt install hdf5-tools")
def test_a_program_that_may_write_no_files(file: Path) -> None:
    """Writing our counts beyond its limit would end the program by SIGXFSZ."""
    words = ["sh", "-c", f"ulimit -f 0; h5dump -d x {file}"]
    expected = subprocess.run(words, capture_output=True, timeout=120)  # by pipes, which have no limit
    ran = Ran(subprocess.run([*RUN, "--json", "--", *words], capture_output=True, timeout=120))
    assert (ran.status, ran.out) == (expected.returncode, expected.stdout)
    assert ran.status == 0


def test_programs_that_cannot_be_served_are_named_and_run(tmp_path: Path) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source = tmp_path / "a.c"
    source.write_text("int main(void) { return 5; }")
    made = subprocess.run([compiler, "-static", "-o", tmp_path / "static", source], capture_output=True)
    if made.returncode:
        pytest.skip("the C compiler has no static libc")
    ran = run(tmp_path / "static")
    assert ran.status == 5
    assert "is linked statically" in ran.counts["notes"][0]
    script = tmp_path / "script"
    script.write_text(f"#!{tmp_path / 'static'}\n")
    assert "is linked statically" in (obstacle(str(script)) or "")


def test_set_uid_programs_are_named(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a program of another user")
    copy = tmp_path / "true"
    shutil.copy(shutil.which("true") or "/bin/true", copy)
    os.chown(copy, 65534, -1)
    copy.chmod(0o4755)
    ran = run(copy)
    assert ran.status == 0
    assert "the rights of another user" in ran.counts["notes"][0]


def test_other_preloaded_libraries_stay() -> None:
    ran = run("sh", "-c", "echo $LD_PRELOAD", LD_PRELOAD="libm.so.6")
    assert ran.out.strip().endswith(b"libhyperslab_preload.so:libm.so.6")


def test_records_of_another_version_are_said(tmp_path: Path) -> None:
    (tmp_path / "1.1").write_bytes(MAGIC + bytes(8 * (13 + 2 * len(REASONS) + 5 + 2 * len(WRITE_REASONS) + 6)))
    (tmp_path / "2.1").write_bytes(b"HSRUN\0\0\x63" + bytes(100))
    (tmp_path / "3.1").write_bytes(MAGIC[:5])
    found = totals(str(tmp_path))
    assert (found.process_count, found.unknown_count) == (1, 2)


def test_the_line_is_one_line() -> None:
    done = subprocess.run([*RUN, "--", "true"], capture_output=True, text=True, timeout=120)
    assert done.stderr == "hyperslab run: no reads through libhdf5 were seen\n"
    assert json.loads(run("true").counts and "{}") == {}


def test_the_start_imports_little() -> None:
    code = "import sys, os; sys.argv = ['hyperslab', 'run', '--quiet', '--', 'true']; import hyperslab.__main__ as m\n"
    code += "os._exit = lambda status: print(*sys.modules) or sys.exit(status)\nm.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "hyperslab.running.command" in done.stdout.split()
    assert not {"typer", "typing", "enum", "numpy", "subprocess", "json", "hyperslab._core"} & set(done.stdout.split())


def test_a_killed_program_leaves_its_counts(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as made:
        made.create_dataset("v", (1000, 1000), "f8", chunks=(100, 1000), compression="gzip")
    code = "import sys, h5py, os, signal\nh5py.File(sys.argv[1])['v'][:]\nos.kill(os.getpid(), signal.SIGKILL)"
    ran = run(sys.executable, "-c", code, tmp_path / "a.h5")
    assert ran.status == -signal.SIGKILL
    assert ran.served == 1

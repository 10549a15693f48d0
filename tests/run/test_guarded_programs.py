"""Programs that check what is loaded into them, or give up their rights, or read HDF5 in a way of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import pytest
from c_programs import alone, compiled, compressed_file, system_libhdf5
from run_programs import run

READ = r"""
    #include <sys/wait.h>
    #include <unistd.h>
    int main(int count, char **words) {
        H5open();
        long array = H5Dopen2(H5Fopen(words[1], 0, 0), "x", 0), sum = 0;
        int *out = malloc(300 * 400 * 4), done = H5Dread(array, H5T_NATIVE_INT_g, 0, 0, 0, out);
        for (int k = 0; k < 300 * 400; k++) sum = sum * 31 + out[k];
        printf("%d %lx\n", done, sum);
        fflush(stdout);
        if (fork() == 0) {
            printf("%d\n", H5Dread(array, H5T_NATIVE_INT_g, 0, 0, 0, out));
            free(out);
            return 0;
        }
        int status = 0, found;
        wait(&status);
        found = out[count > 2 ? 300 * 400 : 0];
        free(out);
        printf("%d\n", status);
        return found < 0;
    }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return compressed_file(tmp_path / "a.h5")


def sanitized(tmp_path: Path) -> Path:
    libhdf5 = system_libhdf5()
    try:
        return compiled(tmp_path, "program", READ, libhdf5, "-fsanitize=address")
    except subprocess.CalledProcessError:
        pytest.skip("the C compiler has no AddressSanitizer")


def test_a_program_under_address_sanitizer(file: Path, tmp_path: Path) -> None:
    """It looks for memory that is lost, too, at the end of the program and of a child that it forks."""
    program = sanitized(tmp_path)
    expected = alone(program, file)
    for words in ([program, file], ["sh", "-c", f"{program} {file}"]):
        ran = run(*words)
        assert (ran.status, ran.out, ran.errors) == (expected.returncode, expected.stdout, expected.stderr.decode())
        assert ran.served == 2


def test_address_sanitizer_still_finds_errors(file: Path, tmp_path: Path) -> None:
    program = sanitized(tmp_path)
    expected, ran = alone(program, file, "beyond"), run(program, file, "beyond")
    assert (ran.status, ran.out) == (expected.returncode, expected.stdout)
    assert "heap-buffer-overflow" in ran.errors
    assert "heap-buffer-overflow" in expected.stderr.decode()


def test_options_for_address_sanitizer_stay() -> None:
    ran = run("sh", "-c", "echo $ASAN_OPTIONS", ASAN_OPTIONS="detect_leaks=0")
    assert ran.out == b"detect_leaks=0:verify_asan_link_order=0\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("way", ["setuid(65534)", "setreuid(65534, 65534)", "seteuid(65534)"])
def test_a_program_that_becomes_another_user_is_counted(file: Path, way: str) -> None:
    """So are the processes that it starts then. Nobody else may write where they are counted."""
    code = f"""
import os, sys, h5py
file = h5py.File(sys.argv[1])
os.{way}
print(file["x"][:].sum(), flush=True)
child = os.fork()
if child == 0:
    print(file["x"][1:].sum(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
folder = os.environ.get("HYPERSLAB_RUN_FOLDER")
if folder:
    print(oct(os.stat(folder).st_mode & 0o777), os.access(folder, os.W_OK, effective_ids=True), file=sys.stderr)
"""
    ran = run(sys.executable, "-c", code, file, TMPDIR="/tmp")  # which other users can reach
    with h5py.File(file) as opened:
        values = opened["x"][:]
    assert (ran.status, ran.out.split()) == (0, [b"%d" % values.sum(), b"%d" % values[1:].sum()]), ran.errors
    assert (ran.served, ran.counts["processes"], ran.counts["unreadable_records"]) == (2, 2, 0)
    assert ran.errors == "0o711 False"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_what_another_user_leaves_there_is_no_trap() -> None:
    """Neither something that never ends, nor a link to what is none of their business. Nothing stays behind."""
    code = """
import os
os.setuid(65534)
folder = os.environ["HYPERSLAB_RUN_FOLDER"]
os.mkfifo(f"{folder}/u65534/1.1")
os.symlink("/etc/passwd", f"{folder}/u65534/2.2")
print(folder)
"""
    ran = run(sys.executable, "-c", code, TMPDIR="/tmp")
    assert (ran.status, ran.counts["unreadable_records"], ran.counts["processes"]) == (0, 2, 0)
    assert not Path(ran.out.decode().strip()).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_program_that_becomes_another_user_is_traced(file: Path) -> None:
    import hyperslab as hs

    pytest.importorskip("pyarrow", reason="not installed: pip install 'hyperslab[report]'")
    code = "import os, sys, h5py\nfile = h5py.File(sys.argv[1])\nos.setuid(65534)\nfile['x'][3]\n"
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # where other users may pass, unlike in pytest's
        Path(folder).chmod(0o711)
        program = [sys.executable, "-c", code, str(file)]
        words = [sys.executable, "-m", "hyperslab", "trace", "-o", "run.trace", "--", *program]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr
        (access,) = hs.Trace.open(Path(folder) / "run.trace")
    assert access.selection[0] == 3


def test_gdal_reads_by_a_file_driver_of_its_own(file: Path) -> None:
    if shutil.which("gdalinfo") is None:
        pytest.skip("not installed: apt install gdal-bin")
    words = ["gdalinfo", "-checksum", f'HDF5:"{file}"://x']
    expected, ran = alone(*words), run(*words)
    assert (ran.status, ran.out) == (expected.returncode, expected.stdout)
    assert b"Checksum=" in ran.out
    assert (ran.served, ran.passed("driver") > 0) == (0, True), ran.counts

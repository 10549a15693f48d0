"""Calls that pass through on purpose: asynchronous reads, reads of encoded chunks, and closing the library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from c_programs import alone, compiled, compressed_file, wheel_libhdf5
from run_programs import python, run, without

PROGRAM = r"""
    int main(int count, char **words) {
        H5open();
        long file = H5Fopen(words[1], 0, 0), array = H5Dopen2(file, "x", 0);
        int *out = calloc(300 * 400, 4);
        int done = H5Dread_async("a.c", "main", 1, array, H5Dget_type(array), 0, 0, 0, out, 0);
        unsigned long sum = 0;
        for (int k = 0; k < 300 * 400; k++) sum = sum * 31 + out[k];
        int failed = H5Dread_async("a.c", "main", 1, 99, H5Dget_type(array), 0, 0, 0, out, 0);
        printf("%d %lx %d\n", done, sum, failed);
        return 0;
    }
"""


# Closed and opened again, the library gives another file the number that the first one had, and its array has the same
# place in it; the descriptor leads to the first file, as the program has opened that itself.
CLOSING = r"""
    #include <fcntl.h>
    int main(int count, char **words) {
        int *out = calloc(300 * 400, 4);
        for (int k = 1; k < 3; k++) {
            H5open();
            long file = H5Fopen(words[k], 0, 0), array = H5Dopen2(file, "x", 0);
            int done = H5Dread(array, H5Dget_type(array), 0, 0, 0, out);
            unsigned long sum = 0;
            for (int n = 0; n < 300 * 400; n++) sum = sum * 31 + out[n];
            printf("%d %lx\n", done, sum);
            H5close();
            open(words[1], O_RDONLY);
        }
        return 0;
    }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return compressed_file(tmp_path / "a.h5")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return compiled(tmp_path, "program", PROGRAM, *wheel_libhdf5())


def test_asynchronous_reads(program: Path, file: Path) -> None:
    expected = alone(program, file)
    ran = run(program, file, HYPERSLAB_SERVE_SMALL="1")
    assert (ran.status, ran.out) == (expected.returncode, expected.stdout)
    assert (ran.served, bool(ran.errors)) == (0, bool(expected.stderr))
    assert b"0 0 " not in expected.stdout


def test_asynchronous_reads_are_not_traced(program: Path, file: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="not installed: pip install 'hyperslab[report]'")
    expected = alone(program, file)
    words = [sys.executable, "-m", "hyperslab", "trace", "-o", "run.trace", "--", program, file]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=120)
    assert (done.returncode, done.stdout) == (expected.returncode, expected.stdout)
    assert b"no access to an array was seen" in done.stderr


def test_a_library_that_is_closed_and_opened_again(file: Path, tmp_path: Path) -> None:
    other = compressed_file(tmp_path / "b.h5", seed=2)
    program = compiled(tmp_path, "program", CLOSING, *wheel_libhdf5())
    expected = alone(program, file, other)
    assert len(set(expected.stdout.splitlines())) == 2
    ran = run(program, file, other)
    assert (ran.status, ran.out, ran.served) == (0, expected.stdout, 2)


def test_encoded_chunks(file: Path) -> None:
    """`H5Dread_chunk` gives bytes as they are stored: there is nothing to decode, so it stays with libhdf5."""
    code = """
    import hashlib, sys, h5py
    array = h5py.File(sys.argv[1])["x"]
    print(hashlib.md5(array[...].tobytes()).hexdigest())
    for k in range(array.id.get_num_chunks()):
        mask, content = array.id.read_direct_chunk(array.id.get_chunk_info(k).chunk_offset)
        print(mask, hashlib.md5(content).hexdigest())
    try:
        array.id.read_direct_chunk((1, 1))
    except Exception as error:
        print(type(error), error)
    """
    expected, ran = without(code, file), python(code, file)
    assert (ran.status, ran.out, ran.errors) == (0, expected.stdout, "")
    assert ran.served == 1
    assert ran.counts["passed"]["reads"] == 0

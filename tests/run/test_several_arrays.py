"""`H5Dread_multi`: the arrays that are ours are served, the others are libhdf5's, and so are errors."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from c_programs import alone, compiled, compressed_file, wheel_libhdf5
from run_programs import run

PROGRAM = r"""
    int main(int count, char **words) {
        H5open();
        long file = H5Fopen(words[1], 0, 0), arrays[8], types[8], all[8] = {0};
        void *out[8];
        for (int k = 2; k < count; k++) {
            arrays[k - 2] = strcmp(words[k], "closed") ? H5Dopen2(file, words[k], 0) : 99;
            types[k - 2] = strcmp(words[k], "closed") ? H5Dget_type(arrays[k - 2]) : types[0];
            out[k - 2] = calloc(300 * 400, 8);
        }
        int done = H5Dread_multi(count - 2, arrays, types, all, all, 0, out);
        printf("%d", done);
        for (int k = 0; k < count - 2; k++) {
            unsigned long sum = 0;
            for (int n = 0; n < 300 * 400; n++) sum = sum * 31 + ((unsigned long *)out[k])[n];
            if (done >= 0) printf(" %lx", sum);
        }
        printf("\n");
        return 0;
    }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, with the libhdf5 of h5py's wheel, which is new enough."""
    return compiled(tmp_path_factory.mktemp("several"), "program", PROGRAM, *wheel_libhdf5())


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("several") / "a.h5"
    random = np.random.default_rng(1)
    with h5py.File(path, "w") as made:
        for name in "abc":
            values = random.integers(0, 99, (300, 400))
            made.create_dataset(name, data=values, chunks=(50, 400), compression="gzip")
        made.create_dataset("small", data=random.integers(0, 99, 20))
    return path


@pytest.mark.parametrize(
    ("names", "served"), [("abc", 3), (["a", "small", "c"], 2), (["small", "small"], 0), (["a", "closed"], 1), ("", 0)]
)
def test_several_arrays(program: Path, file: Path, names: list[str], served: int) -> None:
    expected = alone(program, file, *names)
    ran = run(program, file, *names)
    assert (ran.status, ran.out) == (expected.returncode, expected.stdout), ran.errors
    assert (ran.counts["served"]["reads"], bool(ran.errors)) == (served, bool(expected.stderr))


CHANGING = r"""
    #include <unistd.h>
    int main(int count, char **words) {
        H5open();
        long file = H5Fopen(words[1], 0, 0), arrays[2], types[2], all[2] = {0};
        int *out[2];
        for (int k = 0; k < 2; k++) {
            arrays[k] = H5Dopen2(file, words[k + 2], 0);
            types[k] = H5Dget_type(arrays[k]);
            out[k] = malloc(300 * 400 * 4);
        }
        for (int round = 0; round < 3; round++) {
            for (int k = 0; k < 2; k++) memset(out[k], 255, 300 * 400 * 4);
            int done = H5Dread_multi(2, arrays, types, all, all, 0, (void **)out);
            unsigned long sum = 0;
            for (int n = 0; n < 2 * 300 * 400; n++) sum = sum * 31 + out[n / 120000][n % 120000];
            printf("%d %lx\n", done, sum);
            truncate(words[1], 3000);
        }
        return 0;
    }
"""


@pytest.mark.parametrize(("names", "served"), [(["a", "b"], 2), (["a", "small"], 1)])
def test_what_libhdf5_would_have_in_its_cache_is_answered(tmp_path: Path, names: list[str], served: int) -> None:
    """The file is cut off after the first read: libhdf5 alone goes on reading from its memory, and prints nothing."""
    made, path = compiled(tmp_path, "program", CHANGING, *wheel_libhdf5()), tmp_path / "a.h5"

    def new() -> Path:
        with h5py.File(compressed_file(path, "ab"), "r+") as file:
            file.create_dataset("small", data=np.arange(20))
        return path

    expected, ran = alone(made, new(), *names), run(made, new(), *names)
    assert (ran.status, ran.out, ran.errors) == (expected.returncode, expected.stdout, expected.stderr.decode())
    assert (expected.stdout.count(b"0 "), ran.counts["served"]["reads"]) == (3, served), ran.counts


WRITING = r"""
    long H5Fflush(long, int);
    int H5Dwrite_multi(size_t, long *, long *, long *, long *, long, const void **);
    int main(int count, char **words) {
        H5open();
        long file = H5Fopen(words[1], 1, 0), arrays[8], types[8], all[8] = {0};
        const void *out[8];
        for (int k = 2; k < count; k++) {
            arrays[k - 2] = strcmp(words[k], "closed") ? H5Dopen2(file, words[k], 0) : 99;
            types[k - 2] = strcmp(words[k], "closed") ? H5Dget_type(arrays[k - 2]) : types[0];
            long *values = calloc(300 * 400, 8);
            for (int n = 0; n < 300 * 400; n++) values[n] = n / 7 + k;
            out[k - 2] = values;
        }
        printf("%d\n", H5Dwrite_multi(count - 2, arrays, types, all, all, 0, out));
        H5close();
        return 0;
    }
"""


@pytest.mark.parametrize(
    ("names", "encoded", "left"),
    [("abc", 3, {}), (["a", "small", "c"], 2, {"small": 1}), (["plain", "b"], 1, {"plain": 1}),
     (["a", "b", "a"], 0, {}), (["a", "closed"], 0, {}), ("", 0, {})],
)  # fmt: skip
def test_several_arrays_are_written(tmp_path: Path, names: list[str], encoded: int, left: dict[str, int]) -> None:
    """Of one array twice, the order of the writes matters: they are libhdf5's, as is a call that makes no sense."""
    program = compiled(tmp_path, "program", WRITING, *wheel_libhdf5())
    for path in (tmp_path / "ours", tmp_path / "theirs"):
        with h5py.File(path, "w") as made:
            for name in "abc":
                made.create_dataset(name, (300, 400), "i8", chunks=(50, 400), compression="gzip")
            made.create_dataset("small", (20,), "i8", chunks=(20,), compression="gzip")
            made.create_dataset("plain", (300, 400), "i8")
    expected = alone(program, tmp_path / "theirs", *names)
    ran = run(program, tmp_path / "ours", *names, HYPERSLAB_WRITES="1", HYPERSLAB_THREADS="2")
    assert (ran.status, ran.out) == (expected.returncode, expected.stdout), ran.errors
    found = {reason: one["writes"] for reason, one in ran.counts["writes"]["left"].items()}
    assert (ran.counts["writes"]["encoded"], found) == (encoded, left)
    with h5py.File(tmp_path / "ours") as ours, h5py.File(tmp_path / "theirs") as theirs:
        assert all((ours[name][...] == theirs[name][...]).all() for name in theirs)

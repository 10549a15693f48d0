"""`H5Dread_multi`: the arrays that are ours are served, the others are libhdf5's, and so are errors."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
from run_programs import run

PROGRAM = r"""
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    long H5Fopen(const char *, unsigned, long), H5Dopen2(long, const char *, long), H5Dget_type(long);
    int H5open(void), H5Fclose(long);
    int H5Dread_multi(size_t, long *, long *, long *, long *, long, void **);
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
    compiler = shutil.which("gcc") or shutil.which("cc")
    libraries = sorted((Path(h5py.__file__).parents[1] / "h5py.libs").glob("libhdf5-*.so*"))
    if compiler is None or not libraries or h5py.version.hdf5_version_tuple < (1, 14):
        pytest.skip("no C compiler, or no wheel of h5py with HDF5 1.14")
    folder = tmp_path_factory.mktemp("several")
    (folder / "a.c").write_text(PROGRAM)
    made = folder / "program"
    found = [f"-Wl,-rpath,{libraries[0].parent}", "-Wl,--allow-shlib-undefined"]
    subprocess.run([compiler, "-w", "-o", made, folder / "a.c", libraries[0], *found], check=True)
    return made


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
    expected = subprocess.run([program, file, *names], capture_output=True, text=True, timeout=120)
    ran = run(program, file, *names)
    assert (ran.status, ran.out.decode()) == (expected.returncode, expected.stdout), ran.errors
    assert (ran.counts["served"]["reads"], bool(ran.errors)) == (served, bool(expected.stderr))

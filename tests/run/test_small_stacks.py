"""Threads with small stacks: who survives without us survives with us."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from c_programs import alone, compiled, system_libhdf5
from run_programs import run

# Each size in a process of its own, which says how it ended.
PROGRAM = r"""
    #include <pthread.h>
    #include <sys/wait.h>
    #include <unistd.h>
    static long file, array, type;
    static char *name, *what;
    static double *out;
    static void *act(void *none) {
        if (!strcmp(what, "all")) { file = H5Fopen(name, 0, 0); array = H5Dopen2(file, "x", 0); }
        long done = H5Dread(array, type, 0, 0, 0, out);
        if (!strcmp(what, "all")) done += H5Dclose(array) + H5Fclose(file);
        if (!strcmp(what, "exit")) _exit(3);
        return (void *)done;
    }
    int main(int count, char **words) {
        H5open();
        what = words[1], name = words[2];
        out = calloc(300 * 400, 8);
        file = H5Fopen(name, 0, 0), array = H5Dopen2(file, "x", 0);
        type = words[3][0] == 'f' ? H5T_NATIVE_FLOAT_g : H5T_NATIVE_DOUBLE_g;
        for (long nbytes = 16 << 10; nbytes <= 24 << 10; nbytes += 512) {
            int status;
            fflush(stdout);
            pid_t child = fork();
            if (child == 0) {
                pthread_attr_t small;
                pthread_t thread;
                void *done = 0;
                pthread_attr_init(&small);
                int error = pthread_attr_setstacksize(&small, nbytes);
                error = error ? error : pthread_create(&thread, &small, act, 0);
                if (error) _exit(100 + error);
                pthread_join(thread, &done);
                unsigned char sum = 0;
                for (int k = 0; k < 300 * 400 * 8; k++) sum = sum * 31 + ((unsigned char *)out)[k];
                _exit(done ? 1 : sum | 2);
            }
            waitpid(child, &status, 0);
            printf("%ld %d\n", nbytes, status);
        }
        long read = H5Dread(array, type, 0, 0, 0, out);
        printf("%ld\n", read);
        return 0;
    }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "a.h5", "w") as made:
        values = np.random.default_rng(1).random((300, 400)).astype("f4")
        made.create_dataset("x", data=values, chunks=(50, 400), compression="gzip")
    return tmp_path / "a.h5"


@pytest.mark.parametrize(("what", "element"), [("read", "double"), ("all", "float"), ("exit", "double")])
def test_the_same_stacks_are_large_enough(file: Path, tmp_path: Path, what: str, element: str) -> None:
    program = compiled(tmp_path, "program", PROGRAM, system_libhdf5(), "-pthread")
    expected = alone(program, what, file, element)
    ran = run(program, what, file, element)
    assert (ran.status, ran.out) == (expected.returncode, expected.stdout)
    ended_well = [line for line in expected.stdout.decode().splitlines()[:-1] if int(line.split()[1]) >= 256]
    assert len(ended_well) >= 10
    assert ran.served == 1, ran.counts  # by the first thread
    assert ran.passed("stack") >= 10

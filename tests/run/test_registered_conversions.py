"""Conversions that a program registers in libhdf5, or removes: then libhdf5 converts, whenever that happened."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from c_programs import alone, compiled, system_libhdf5
from run_programs import run, without

PROGRAM = r"""
    struct data { int command, needs_background, again; void *own; };
    typedef int (*Conversion)(long, long, struct data *, size_t, size_t, size_t, void *, void *, long);
    int H5Tregister(int, const char *, long, long, Conversion);
    int H5Tunregister(int, const char *, long, long, Conversion);
    size_t H5Tget_size(long);
    extern long H5T_STD_I32BE_g;

    static double get(long type, const char *from) {
        if (type == H5T_NATIVE_DOUBLE_g) { double value; memcpy(&value, from, 8); return value; }
        int value; memcpy(&value, from, 4); return value;
    }
    static void put(long type, char *to, double value) {
        float single = value; int whole = value;
        if (H5Tget_size(type) == 8) memcpy(to, &value, 8);
        else memcpy(to, type == H5T_NATIVE_FLOAT_g ? (void *)&single : (void *)&whole, 4);
    }
    static long from_type, to_type;
    /* Adds 1000. */
    static int own(long from, long to, struct data *data, size_t count, size_t stride, size_t other, void *all,
                   void *none, long properties) {
        size_t before = H5Tget_size(from), after = H5Tget_size(to);
        if (data->command == 0) data->needs_background = 0;
        if (data->command != 1) return 0;
        for (size_t k = 0; k < count; k++) {
            size_t one = after > before ? count - 1 - k : k;
            put(to_type, (char *)all + one * after, get(from_type, (char *)all + one * before) + 1000);
        }
        return 0;
    }
    static char out[100000 * 8];
    int main(int count, char **words) {
        H5open();
        long array = H5Dopen2(H5Fopen(words[1], 0, 0), words[2], 0);
        from_type = words[2][0] == 'd' ? H5T_NATIVE_DOUBLE_g : words[2][0] == 'b' ? H5T_STD_I32BE_g : H5T_NATIVE_INT_g;
        to_type = words[2][0] == 'd' ? H5T_NATIVE_FLOAT_g : words[2][0] == 'b' ? H5T_NATIVE_INT_g : H5T_NATIVE_DOUBLE_g;
        for (int k = 3; k < count; k++) {
            int done = 0;
            if (!strcmp(words[k], "read")) {
                unsigned long sum = 0;
                done = H5Dread(array, to_type, 0, 0, 0, out);
                for (int n = 0; n < 100000 * 8; n++) sum = sum * 31 + (unsigned char)out[n];
                printf("%lx ", sum);
            } else if (!strcmp(words[k], "hard") || !strcmp(words[k], "soft"))
                done = H5Tregister(words[k][0] == 's', "own", from_type, to_type, own);
            else
                done = H5Tunregister(-1, NULL, from_type, to_type, !strcmp(words[k], "remove") ? own : NULL);
            printf("%s %d\n", words[k], done);
        }
        return 0;
    }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("program"), "program", PROGRAM, system_libhdf5())


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    random = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("file") / "a.h5"
    with h5py.File(path, "w") as made:
        named = {"chunks": (10_000,), "compression": "gzip", "compression_opts": 1}
        made.create_dataset("i", data=random.integers(0, 99, 100_000, "i4"), **named)
        made.create_dataset("b", data=random.integers(0, 99, 100_000).astype(">i4"), **named)
        # Halfway between two numbers of float32: not all ways to round agree.
        halfway = 1 + random.integers(0, 1 << 20, 100_000) * 2.0**-23 + 2.0**-24
        made.create_dataset("d", data=halfway, **named)
    return path


@pytest.mark.parametrize("array", ["i", "d", "b"])
@pytest.mark.parametrize(
    ("steps", "served"),
    [
        ("hard read", 0),
        ("read hard read remove", 1),
        ("read soft read", 1),
        ("read all", 1),
        ("hard remove all read", 0),
    ],
)
def test_a_programs_own_conversions(file: Path, program: Path, array: str, steps: str, served: int) -> None:
    words = steps.replace("all", "everything").split()
    expected = alone(program, file, array, *words)
    ran = run(program, file, array, *words)
    assert (ran.status, ran.out, ran.errors) == (expected.returncode, expected.stdout, expected.stderr.decode().strip())
    # A soft one does not replace what libhdf5 has for numbers of the processor itself.
    also = int(steps == "read soft read" and array != "b")
    assert ran.served == served + also, ran.counts


def test_libhdf5_rounds_otherwise_when_its_own_conversion_is_gone(file: Path, program: Path) -> None:
    expected = alone(program, file, "d", "read", "hard", "remove", "read")
    ran = run(program, file, "d", "read", "hard", "remove", "read")
    assert (ran.status, ran.out) == (0, expected.stdout)
    first, *_, last = expected.stdout.decode().splitlines()
    assert (first[-6:], last[-6:]) == ("read 0", "read 0")
    assert first != last
    assert (ran.served, ran.passed("conversion")) == (1, 1)


@pytest.mark.parametrize("when", ["before", "after"])
def test_conversions_that_were_registered_when_accelerate_is_called(file: Path, when: str) -> None:
    code = """
    import ctypes, sys, h5py, numpy as np, hyperslab
    from hyperslab.running.accelerating import accelerations
    with open("/proc/self/maps") as maps:
        library = ctypes.CDLL(next(line.split()[-1] for line in maps if "/libhdf5-" in line or "/libhdf5.so" in line))
    data = ctypes.POINTER(ctypes.c_int)
    kind = [ctypes.c_int64, ctypes.c_int64, data] + [ctypes.c_size_t] * 3 + [ctypes.c_void_p] * 3
    @ctypes.CFUNCTYPE(ctypes.c_int, *kind)
    def own(source, target, data, count, stride, other, values, background, properties):
        data[1] = 0
        if data[0] == 1:
            whole = np.ctypeslib.as_array((ctypes.c_int32 * (2 * count)).from_address(values))[:count].copy()
            np.ctypeslib.as_array((ctypes.c_double * count).from_address(values))[:] = whole + 1000.0
        return 0
    def register():
        words = (h5py.h5t.NATIVE_INT32.id, h5py.h5t.NATIVE_DOUBLE.id)
        assert library.H5Tregister(0, b"own", *map(ctypes.c_int64, words), own) == 0
    array = h5py.File(sys.argv[1])["i"]
    if sys.argv[2] == "before":
        register()
    with hyperslab.accelerated():
        if sys.argv[2] == "after":
            print(array.astype("f8")[:].sum() == array[:].sum())
            register()
        served = accelerations().served_reads
        print(array.astype("f8")[:].sum() - array[:].sum(), accelerations().served_reads - served)
    """
    expected = {"before": "100000000.0 1", "after": "True\n100000000.0 1"}[when]
    done = without(code, file, when)
    assert done.stdout.decode().strip() == expected, done.stderr.decode()

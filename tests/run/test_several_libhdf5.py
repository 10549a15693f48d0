"""Several libhdf5 in one process: each call reaches the one that it reaches without us, and is served there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
from c_programs import alone, compiled, system_libhdf5
from run_programs import Ran, python, run, without

READ = r"""
    /* Opens an array and reads it. */
    static long sum_of(const char *path) {
        static int out[300 * 400];
        H5open();
        long file = H5Fopen(path, 0, 0), array = H5Dopen2(file, "x", 0), sum = 0;
        if (H5Dread(array, H5T_NATIVE_INT_g, 0, 0, 0, out) < 0) return -1;
        for (int k = 0; k < 300 * 400; k++) sum = sum * 31 + out[k];
        return sum;
    }
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Two files, so that an array of one library has the same identifier as another array of the other library."""
    for number in (1, 2):
        with h5py.File(tmp_path / f"{number}.h5", "w") as made:
            values = np.random.default_rng(number).integers(0, 99, (300, 400), "i4")
            made.create_dataset("x", data=values, chunks=(50, 400), compression="gzip")
    return tmp_path / "1.h5", tmp_path / "2.h5"


def same(ran: Ran, expected: subprocess.CompletedProcess[bytes], served: int) -> None:
    assert (ran.status, ran.out, ran.errors) == (0, expected.stdout, expected.stderr.decode().strip())
    assert expected.returncode == 0, expected.stderr
    assert ran.served == served, ran.counts


@pytest.mark.parametrize("binding", ["lazy", "now"])
@pytest.mark.parametrize("order", ["serial first", "openmpi first"])
def test_two_that_only_versions_of_symbols_tell_apart(
    files: tuple[Path, Path], tmp_path: Path, order: str, binding: str
) -> None:
    for kind in ("serial", "openmpi"):
        code = f"{READ} long {kind}(const char *path) {{ return sum_of(path); }}"
        compiled(tmp_path, f"lib{kind}.so", code, system_libhdf5(kind), f"-Wl,-z,{binding}")
    code = """
        long serial(const char *), openmpi(const char *);
        int main(int count, char **words) {
            long one = serial(words[1]), other = openmpi(words[2]);
            printf("%lx %lx %lx %lx\\n", one, other, openmpi(words[1]), serial(words[2]));
            return 0;
        }
    """
    libraries = [tmp_path / f"lib{kind}.so" for kind in ("serial", "openmpi")]
    libraries = libraries if order == "serial first" else libraries[::-1]
    program = compiled(tmp_path, "program", code, *libraries, f"-Wl,-rpath,{tmp_path}", f"-Wl,-z,{binding}")
    same(run(program, *files), alone(program, *files), 4)


LOADED = """
    import ctypes, sys, h5py
    path, own, other = sys.argv[1:4]
    array = h5py.File(own)["x"] if "array" in sys.argv else None
    library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL if "global" in sys.argv else ctypes.RTLD_LOCAL)
    if array is None:
        array = h5py.File(own)["x"]
    names = "H5Fopen", "H5Dopen2", "H5Dget_type"
    for name in names:
        getattr(library, name).restype = ctypes.c_int64
    long = ctypes.c_int64
    out = (ctypes.c_int32 * (300 * 400))()
    library.H5open()
    file = library.H5Fopen(other.encode(), 0, long(0))
    opened = library.H5Dopen2(long(file), b"x", long(0))
    kind = library.H5Dget_type(long(opened))
    print(array[:].sum(), library.H5Dread(long(opened), long(kind), long(0), long(0), long(0), out), sum(out))
    print(array[1:].sum())
"""


@pytest.mark.parametrize("words", [["global"], ["global", "array"], ["local"], ["local", "array"]])
def test_the_libhdf5_of_the_system_is_loaded_after_h5pys(files: tuple[Path, Path], words: list[str]) -> None:
    """ctypes looks its functions up by `dlsym`."""
    words = [str(system_libhdf5()), *map(str, files), *words]
    same(python(LOADED, *words), without(LOADED, *words), 3)


@pytest.mark.parametrize("way", ["jump", "pointer"])
def test_a_function_that_ends_by_jumping_to_libhdf5(files: tuple[Path, Path], tmp_path: Path, way: str) -> None:
    """The address that its call returns to is in ctypes' library, or in the program."""
    called = {"jump": "H5Dread", "pointer": "read_by"}[way]
    code = f"""
        static int (*read_by)(long, long, long, long, long, void *) = H5Dread;
        long open_file(const char *path) {{ H5open(); return H5Fopen(path, 0, 0); }}
        long open_array(long file) {{ return H5Dopen2(file, "x", 0); }}
        int read_all(long array, void *out) {{ return {called}(array, H5T_NATIVE_INT_g, 0, 0, 0, out); }}
    """
    library = compiled(tmp_path, "libjumping.so", code, system_libhdf5())
    code = """
    import ctypes, sys, h5py
    path, own, other = sys.argv[1:]
    array = h5py.File(own)["x"]
    library = ctypes.CDLL(path)
    library.open_file.restype = library.open_array.restype = ctypes.c_int64
    out = (ctypes.c_int32 * (300 * 400))()
    file = library.open_file(other.encode())
    opened = library.open_array(ctypes.c_int64(file))
    print(opened == array.id.id, library.read_all(ctypes.c_int64(opened), out), sum(out))
    print(array[:].sum())
    """
    ran, expected = python(code, library, *files), without(code, library, *files)
    same(ran, expected, 2)


def test_a_program_that_jumps_to_one_and_calls_another(files: tuple[Path, Path], tmp_path: Path) -> None:
    jumping = """
        long other_file(const char *path) { H5open(); return H5Fopen(path, 0, 0); }
        long other_array(long file) { return H5Dopen2(file, "x", 0); }
        int other_read(long array, void *out) { return H5Dread(array, H5T_NATIVE_INT_g, 0, 0, 0, out); }
    """
    library = compiled(tmp_path, "libjumping.so", jumping, system_libhdf5("openmpi"))
    code = (
        READ
        + """
        long other_file(const char *), other_array(long);
        int other_read(long, void *);
        int main(int count, char **words) {
            static int out[300 * 400];
            long sum = sum_of(words[1]), array = other_array(other_file(words[2])), other = 0;
            int done = other_read(array, out);
            for (int k = 0; k < 300 * 400; k++) other = other * 31 + out[k];
            printf("%lx %d %lx\\n", sum, done, other);
            return 0;
        }
    """
    )
    program = compiled(tmp_path, "program", code, system_libhdf5(), library, f"-Wl,-rpath,{tmp_path}")
    same(run(program, *files), alone(program, *files), 2)


def test_functions_that_a_program_looks_up(files: tuple[Path, Path], tmp_path: Path) -> None:
    code = """
        #include <dlfcn.h>
        int main(int count, char **words) {
            static int out[300 * 400];
            void *library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
            #define FOUND(result, name) ((result (*)())dlsym(library, name))
            FOUND(int, "H5open")();
            long file = FOUND(long, "H5Fopen")(words[2], 0, 0L), array = FOUND(long, "H5Dopen2")(file, "x", 0L);
            long sum = 0;
            int done = FOUND(int, "H5Dread")(array, *(long *)dlsym(library, "H5T_NATIVE_INT_g"), 0L, 0L, 0L, out);
            for (int k = 0; k < 300 * 400; k++) sum = sum * 31 + out[k];
            printf("%d %lx %p %d\\n", done, sum, dlsym(library, "H5Dno_such"), dlerror() != NULL);
            return 0;
        }
    """
    words = [system_libhdf5(), files[0]]
    program = compiled(tmp_path, "program", code, "-ldl")
    same(run(program, *words), alone(program, *words), 1)


def test_numbers_that_a_program_has_copies_of(files: tuple[Path, Path], tmp_path: Path) -> None:
    """gcc makes programs so by default: then libhdf5 itself looks for its types in the program."""
    code = """
        static double out[300 * 400];
        int main(int count, char **words) {
            H5open();
            long array = H5Dopen2(H5Fopen(words[1], 0, 0), "x", 0);
            int done = H5Dread(array, H5T_NATIVE_DOUBLE_g, 0, 0, 0, out);
            double sum = 0;
            for (int k = 0; k < 300 * 400; k++) sum += out[k] * (k % 7);
            printf("%d %.17g\\n", done, sum);
            return 0;
        }
    """
    program = compiled(tmp_path, "program", code, system_libhdf5())
    same(run(program, files[0]), alone(program, files[0]), 1)


def test_a_library_that_wraps_libhdf5_does_its_work(files: tuple[Path, Path], tmp_path: Path) -> None:
    """As Darshan's, which counts reads. The linker puts it between the program and libhdf5, behind us."""
    wrapping = """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        int H5Dread(long array, long type, long memory, long space, long properties, void *out) {
            puts("wrapped");
            int (*real)(long, long, long, long, long, void *) = dlsym(RTLD_NEXT, "H5Dread");
            return real(array, type, memory, space, properties, out);
        }
    """
    library = compiled(tmp_path, "libwrapping.so", wrapping, "-ldl")
    code = READ + 'int main(int count, char **words) { printf("%lx\\n", sum_of(words[1])); return 0; }'
    program = compiled(tmp_path, "program", code, system_libhdf5())
    ran, expected = (
        run(program, files[0], LD_PRELOAD=str(library)),
        alone("env", f"LD_PRELOAD={library}", program, files[0]),
    )
    assert expected.stdout.startswith(b"wrapped\n")
    same(ran, expected, 0)
    assert ran.passed("library") == 1

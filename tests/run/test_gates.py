"""Calls of a library that is not made for threads arrive there as they were made, and so do its answers."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import h5py
import pytest
from c_programs import alone, compiled, netcdf_libhdf5, system_libhdf5
from run_programs import Ran, python, run

# It stands for a libnetcdf, because it has `nc_open`.
ODD = r"""
    #include <errno.h>
    #include <stdarg.h>
    struct pair { long a, b; };
    struct floats { double a, b; };
    struct mixed { double a; long b; };
    struct large { long all[5]; };
    int nc_open(const char *path, int mode, int *id) { return 0; }
    long nc_long(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l,
                 long m) {
        return a + 2*b + 3*c + 4*d + 5*e + 6*f + 7*g + 8*h + 9*i + 10*j + 11*k + 12*l + 13*m;
    }
    double nc_double(double a, double b, double c, double d, double e, double f, double g, double h, double i,
                     double j) {
        return a + 2*b + 3*c + 4*d + 5*e + 6*f + 7*g + 8*h + 9*i + 10*j;
    }
    double nc_both(int a, double b, long c, float d, struct pair e, struct large f, struct floats g, short h) {
        return a + 2*b + 3*c + 4*d + 5*e.a + 6*e.b + 7*f.all[0] + 8*f.all[4] + 9*g.a + 10*g.b + 11*h;
    }
    double nc_variable(const char *kinds, ...) {
        va_list all;
        double sum = 0;
        va_start(all, kinds);
        for (int k = 0; kinds[k]; k++) sum += (k + 1) * (kinds[k] == 'd' ? va_arg(all, double) : va_arg(all, long));
        va_end(all);
        return sum;
    }
    struct pair nc_pair(long a) { struct pair made = {a, -a}; return made; }
    struct floats nc_floats(double a) { struct floats made = {a, -a}; return made; }
    struct mixed nc_mixed(double a) { struct mixed made = {a, 7}; return made; }
    struct large nc_large(long a) { struct large made = {{a, 2, 3, 4, 5 * a}}; return made; }
    int nc_errno(int value) { int before = errno; errno = value; return before; }
    int nc_back(int (*back)(void *), void *data) { return back(data); }
    int nc_variable_of_it = 5;
    static volatile long count;
    long nc_count(long (*back)(void), long step) {
        long before = count;
        if (back) before = back();
        for (volatile int k = 0; k < 20; k++);
        return count = before + step;
    }
"""
DECLARED = r"""
    #include <errno.h>
    struct pair { long a, b; };
    struct floats { double a, b; };
    struct mixed { double a; long b; };
    struct large { long all[5]; };
    int nc_open(const char *, int, int *), nc_errno(int), nc_back(int (*)(void *), void *);
    long nc_long(long, long, long, long, long, long, long, long, long, long, long, long, long);
    double nc_double(double, double, double, double, double, double, double, double, double, double);
    double nc_both(int, double, long, float, struct pair, struct large, struct floats, short);
    double nc_variable(const char *, ...);
    struct pair nc_pair(long);
    struct floats nc_floats(double);
    struct mixed nc_mixed(double);
    struct large nc_large(long);
    extern int nc_variable_of_it;
    long nc_count(long (*)(void), long);
"""
MAIN = r"""
    static int within(void *data) { return nc_errno(3) + (int)nc_long(1,0,0,0,0,0,0,0,0,0,0,0,1); }
    int main(void) {
        struct pair pair = {21, 22};
        struct large large = {{31, 32, 33, 34, 35}};
        struct floats floats = {.5, .25};
        printf("%ld %.17g\n", nc_long(1,2,3,4,5,6,7,8,9,10,11,12,13), nc_double(1,2,3,4,5,6,7,8,9,10));
        printf("%.17g\n", nc_both(1, 2.5, 3, 4.5f, pair, large, floats, 7));
        printf("%.17g\n", nc_variable("dldldldldldldldl", 1., 2l, 3., 4l, 5., 6l, 7., 8l, 9., 10l, 11., 12l, 13.,
                                      14l, 15., 16l));
        pair = nc_pair(5);
        floats = nc_floats(.125);
        struct mixed mixed = nc_mixed(.75);
        large = nc_large(9);
        printf("%ld %ld %g %g ", pair.a, pair.b, floats.a, floats.b);
        printf("%g %ld %ld %ld\n", mixed.a, mixed.b, large.all[0], large.all[4]);
        errno = 11;
        int before = nc_errno(12);
        printf("%d %d %d %d\n", before, errno, nc_back(within, 0), nc_variable_of_it);
        return 0;
    }
"""


def odd(folder: Path) -> list[str]:
    """The library, as words for the compiler of a program that calls it."""
    system_libhdf5()  # a compiler, or no test
    return [str(compiled(folder, "libodd.so", ODD)), f"-Wl,-rpath,{folder}"]


def same(program: Path, *words: object) -> Ran:
    ran, expected = run(program, *words), alone(program, *words)
    assert (ran.status, ran.out, ran.errors) == (0, expected.stdout, expected.stderr.decode().strip())
    assert expected.returncode == 0, expected.stderr
    return ran


@pytest.mark.parametrize("binding", ["lazy", "now"])
def test_arguments_and_results_of_all_kinds(tmp_path: Path, binding: str) -> None:
    program = compiled(tmp_path, "program", DECLARED + MAIN, *odd(tmp_path), f"-Wl,-z,{binding}")
    same(program)


def test_a_call_at_the_very_end_of_a_stack(tmp_path: Path) -> None:
    """Behind the arguments there is nothing that could be copied."""
    code = r"""
        #include <sys/mman.h>
        #include <ucontext.h>
        #include <unistd.h>
        static ucontext_t first, second;
        static long sum;
        static void called(void) {
            for (int k = 0; k < 1000; k++) sum += nc_errno(k);
            sum += nc_long(1,2,3,4,5,6,7,8,9,10,11,12,13);
        }
        int main(void) {
            long nbytes = 64 * sysconf(_SC_PAGESIZE);
            char *memory = mmap(0, 2 * nbytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            mprotect(memory, nbytes, PROT_READ | PROT_WRITE);
            for (int cut = 0; cut < 4096; cut += 16) {
                getcontext(&second);
                second.uc_stack.ss_sp = memory;
                second.uc_stack.ss_size = nbytes - cut;
                second.uc_link = &first;
                makecontext(&second, called, 0);
                swapcontext(&first, &second);
            }
            printf("%ld\n", sum);
            return 0;
        }
    """
    same(compiled(tmp_path, "program", DECLARED + code, *odd(tmp_path)))


LEAVING = r"""
    #include <pthread.h>
    #include <setjmp.h>
    static jmp_buf place;
    static int jumps(void *data) { longjmp(place, 1); }
    static int ends(void *data) { pthread_exit(0); }
    static int inner(void *data) { return setjmp(place) ? 5 : nc_back(jumps, 0); }
    static void *calls(void *data) { return (void *)(long)nc_errno(1); }
    static void *ending(void *data) { return (void *)(long)nc_back(ends, 0); }
    static void *both(void *(*work)(void *)) {
        pthread_t thread;
        void *found = 0;
        pthread_create(&thread, 0, work, 0);
        pthread_join(thread, &found);
        return found;
    }
    int main(void) {
        int is_left = setjmp(place);
        if (!is_left) nc_back(jumps, 0);
        printf("%d\n", nc_back(inner, 0));
        both(calls);
        both(ending);
        both(calls);
        puts("done");
        return 0;
    }
"""


def test_a_call_that_is_left_by_a_jump_or_by_the_end_of_its_thread_keeps_nobody_waiting(tmp_path: Path) -> None:
    same(compiled(tmp_path, "program", DECLARED + LEAVING, *odd(tmp_path), "-pthread"))


COUNTING = r"""
    #include <pthread.h>
    #include <sys/syscall.h>
    #include <sys/wait.h>
    #include <unistd.h>
    static long within(void) { return nc_count(0, 0); }
    static void *counts(void *data) {
        for (int k = 0; k < 50000; k++) nc_count(k % 3 ? 0 : within, 1);
        return 0;
    }
    static pthread_t threads[4];
    static void begin(void) { for (int k = 0; k < 4; k++) pthread_create(&threads[k], 0, counts, 0); }
    static void end(void) { for (int k = 0; k < 4; k++) pthread_join(threads[k], 0); }
"""


def test_calls_of_several_threads_never_overlap(tmp_path: Path) -> None:
    """Each takes a number, and puts the next one back: one that overlaps another is lost."""
    code = (
        COUNTING
        + r"""
        int main(void) {
            begin(), end();
            printf("%ld\n", nc_count(0, 0));
            return 0;
        }
    """
    )
    ran = run(compiled(tmp_path, "program", DECLARED + code, *odd(tmp_path), "-pthread"))
    assert (ran.status, ran.out) == (0, b"200000\n"), ran.errors


def test_a_process_that_forks_while_its_threads_call(tmp_path: Path) -> None:
    """All children call too. Their locks are free, and no thread of the parent waits for ever."""
    code = (
        COUNTING
        + r"""
        int main(void) {
            int ended = 0, status;
            begin();
            for (int k = 0; k < 30; k++) {
                if (fork() == 0) {
                    counts(0);
                    _exit(7);
                }
            }
            end();
            while (wait(&status) > 0) ended += WIFEXITED(status) && WEXITSTATUS(status) == 7;
            printf("%d %ld\n", ended, nc_count(0, 0));
            return 0;
        }
    """
    )
    ran = run(compiled(tmp_path, "program", DECLARED + code, *odd(tmp_path), "-pthread"))
    assert (ran.status, ran.out) == (0, b"30 200000\n"), ran.errors


def test_a_thread_that_ends_in_a_call_without_leaving_it_keeps_nobody_waiting(tmp_path: Path) -> None:
    """No destructor runs there. Whoever waits finds out after a second that nobody will let go of the lock."""
    code = (
        COUNTING
        + r"""
        static volatile int is_within;
        static int ends(void *data) { is_within = 1; syscall(SYS_exit, 0); }
        static void *ending(void *data) { return (void *)(long)nc_back(ends, 0); }
        int main(void) {
            pthread_t thread;
            pthread_create(&thread, 0, ending, 0);
            while (!is_within) usleep(100);
            printf("%ld\n", nc_count(0, 1));
            return 0;
        }
    """
    )
    ran = run(compiled(tmp_path, "program", DECLARED + code, *odd(tmp_path), "-pthread"))
    assert (ran.status, ran.out) == (0, b"1\n"), ran.errors


def test_an_exception_passes_through_a_call(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("no C++ compiler")
    words = odd(tmp_path)
    compiled(tmp_path, "libodd.so", ODD, "-fexceptions")
    source, program = tmp_path / "a.cc", tmp_path / "program"
    source.write_text(r"""
        #include <cstdio>
        #include <stdexcept>
        #include <thread>
        extern "C" int nc_back(int (*)(void *), void *), nc_errno(int);
        static int throws(void *) { throw std::runtime_error("thrown"); }
        int main() {
            try { nc_back(throws, nullptr); } catch (std::exception &problem) { puts(problem.what()); }
            std::thread([] { nc_errno(1); puts("called"); }).join();
            return 0;
        }
    """)
    subprocess.run(["g++", "-w", "-o", program, source, *words, "-pthread"], check=True)
    same(program)


def exported(library: Path) -> dict[str, str]:
    """What a library has, and of which kind it is, as `nm` says."""
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed")
    said = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    found = (line.split()[1:] for line in said.splitlines())
    return {name.split("@")[0]: kind for kind, name in found}


LOOKED_UP = """
    import ctypes, sys
    path, *names = sys.argv[1:]
    library = ctypes.CDLL(path)
    own = [line.split()[0].split("-") for line in open("/proc/self/maps") if "libhyperslab_preload.so" in line]
    first, last = int(own[0][0], 16), int(own[-1][1], 16)
    for name in names:
        print(name, first <= ctypes.cast(getattr(library, name), ctypes.c_void_p).value < last)
"""
# What has an entry even if nothing is locked: reads are served, and what they depend on is seen.
HOOKED = {
    "H5Dread", "H5Dread_multi", "H5Dread_chunk", "H5Dread_chunk1", "H5Dread_chunk2", "H5Dwrite", "H5Dwrite_multi",
    "H5Dwrite_chunk", "H5Dset_extent", "H5Dextend", "H5Drefresh", "H5close", "H5Fopen", "H5Fcreate", "H5Fclose",
    "H5Dclose", "H5Oclose", "H5Idec_ref",
}  # fmt: skip


def of_libraries() -> list[Path]:
    """Libraries of the system and of wheels."""
    packages = Path(h5py.__file__).parents[1]
    found = [*Path("/usr/lib").glob("*/libhdf5_*.so.1??"), *Path("/usr/lib").glob("*/libnetcdf.so.??")]
    for folder in ("h5py.libs", "netcdf4.libs", "tables.libs"):
        found += [
            path for path in (packages / folder).glob("*.so*") if re.match("libhdf5-|libhdf5_hl|libnetcdf", path.name)
        ]
    return [path for path in found if re.match(r"lib(hdf5|netcdf)(?!.*(_cpp|fortran))", path.name)]


@pytest.mark.parametrize("library", of_libraries(), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_each_function_of_a_library_that_needs_a_lock_has_a_gate(library: Path) -> None:
    """Nobody has typed their names: the table of the library itself says what it has."""
    names = {name: kind for name, kind in exported(library).items() if name.startswith(("H5", "nc_"))}
    functions = {name for name, kind in names.items() if kind == "T"}
    assert len(functions) > 40
    ran = python(LOOKED_UP, library, *names)
    assert ran.status == 0, ran.errors
    gated = {name for name, is_own in map(str.split, ran.out.decode().splitlines()) if is_own == "True"}
    assert gated == (functions if needs_lock(library) else functions & HOOKED)


def needs_lock(library: Path) -> bool:
    """A libhdf5 says whether it is made for threads, also to libraries on top of it."""
    if "netcdf" in library.name:
        return True
    code = (
        "import ctypes, sys; is_safe = ctypes.c_bool(); "
        "ctypes.CDLL(sys.argv[1]).H5is_library_threadsafe(ctypes.byref(is_safe)); print(is_safe.value)"
    )
    done = alone("python3", "-c", code, library)
    assert done.returncode == 0, done.stderr
    return done.stdout == b"False\n"


SLOTS = """
    import sys, importlib
    module = importlib.import_module(sys.argv[1])
    def mapped(part):
        lines = [line.split() for line in open("/proc/self/maps") if part in line]
        return [(int(line[0].split("-")[0], 16), int(line[0].split("-")[1], 16)) for line in lines]
    own = mapped("libhyperslab_preload.so")
    base = mapped(sys.argv[2])[0][0]
    memory = open("/proc/self/mem", "rb")
    for word in sys.argv[3:]:
        name, place = word.split("=")
        memory.seek(base + int(place, 16))
        value = int.from_bytes(memory.read(8), "little")
        print(name, any(start <= value < end for start, end in own))
"""


@pytest.mark.parametrize("name", ["netCDF4", "libnetcdf", "h5py"])
def test_all_calls_of_a_module_arrive_at_gates(name: str) -> None:
    """Before its first call, and although it was loaded long after the program began."""
    module = pytest.importorskip("h5py" if name == "h5py" else "netCDF4")
    netcdf_libhdf5()
    packages = Path(module.__file__).parents[1]
    pattern = {"netCDF4": "netCDF4/_netCDF4*.so", "libnetcdf": "netcdf4.libs/libnetcdf*", "h5py": "h5py/defs*.so"}[name]
    path = next(packages.glob(pattern), None)
    if path is None or shutil.which("readelf") is None:
        pytest.skip(f"no {pattern}, or no readelf")
    said = subprocess.run(["readelf", "-Wr", path], capture_output=True, text=True, check=True).stdout
    places = re.findall(r"^([0-9a-f]+) .*JU?MP_SLOT? +[0-9a-f]+ ((?:H5|nc)\w+)", said, re.MULTILINE)
    defined = exported(path)
    words = [f"{function}={place}" for place, function in places if function not in defined]
    assert len(words) > 90
    ran = python(SLOTS, module.__name__, path, *words)
    assert ran.status == 0, ran.errors
    assert [line for line in ran.out.decode().splitlines() if not line.endswith("True")] == []

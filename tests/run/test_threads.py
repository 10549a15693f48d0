"""Threads that call libraries which are not made for threads: one call at a time, and none waits for ever."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import h5py
import pytest
from c_programs import alone, compiled, netcdf_libhdf5, wheel_libhdf5
from run_programs import Ran, python, run, without

from hyperslab.running.command import parse
from hyperslab.running.records import Totals
from hyperslab.running.summary import line

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the campaign of 1,000 runs, of which some are run here."""
    pytest.importorskip("netCDF4")
    made = tmp_path_factory.mktemp("campaign")
    code = "import sys, pathlib, threads_program; threads_program.made(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, made], check=True, cwd=BENCHMARKS, timeout=120)
    return made


@pytest.mark.parametrize(
    ("library", "words"),
    [
        ("netCDF4", "read same 8"), ("netCDF4", "read different 4"), ("netCDF4", "write same 4"),
        ("netCDF4", "write different 8"), ("xarray", "write different 4"), ("unlocked", "read same 4"),
        ("unlocked", "write different 4"), ("h5py", "read different 4"), ("h5py", "write same 4"),
        ("tables", "read same 4"),
    ],
)  # fmt: skip
def test_threads_get_the_right_values(folder: Path, library: str, words: str) -> None:
    """`benchmarks/threads_campaign.py` runs these 1,000 times. Most crash without us."""
    pytest.importorskip({"unlocked": "xarray"}.get(library, library))
    small = str(len(words) % 2)
    program = BENCHMARKS / "threads_program.py"
    ran = run(sys.executable, program, library, *words.split(), 1, folder, HYPERSLAB_SERVE_SMALL=small)
    assert (ran.status, ran.out) == (0, b"right\n"), ran.errors


def test_threads_under_trace_and_after_accelerate(folder: Path, tmp_path: Path) -> None:
    program = BENCHMARKS / "threads_program.py"
    words = [program, "netCDF4", "read", "same", "4", "1", folder]
    traced = [sys.executable, "-m", "hyperslab", "trace", "-o", tmp_path / "run.trace", "--", sys.executable, *words]
    pytest.importorskip("pyarrow", reason="not installed: pip install 'hyperslab[report]'")
    assert alone(*traced).stdout == b"right\n"
    code = """
    import runpy, sys, hyperslab
    hyperslab.accelerate()
    runpy.run_path(sys.argv.pop(1), run_name="__main__")
    """
    done = without(code, *words)
    assert (done.returncode, done.stdout) == (0, b"right\n"), done.stderr


# A thread is in a call of the library, and its callback tells others when.
VISITING = """
    import ctypes, os, sys, threading, time
    import h5py
    path, own = sys.argv[1:3]
    library, held = ctypes.CDLL(path), ctypes.PyDLL(path)  # the calls of one let go of Python's lock
    Visit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p)
    library.H5Fopen.restype = ctypes.c_int64
    library.H5Literate2.argtypes = [ctypes.c_int64, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, Visit, ctypes.c_void_p]
    library.H5open()
    file = library.H5Fopen(own.encode(), 0, ctypes.c_int64(0))
    numbers = [ctypes.c_uint() for _ in range(3)]
    version = [ctypes.byref(number) for number in numbers]
    within, done = threading.Event(), threading.Event()

    def awaited():  # returns once another thread waits for the call that this one is in
        own = ctypes.CDLL(next(line.split()[-1] for line in open("/proc/self/maps") if "hyperslab_preload" in line))
        counts = (ctypes.c_uint64 * 64)()
        while not counts[11]:
            time.sleep(0.001)
            own.hyperslab_counts(counts, 64)

    def visit(wait):
        def visited(group, name, info, data):
            within.set()
            wait()
            return 1
        found = Visit(visited)
        return library.H5Literate2(file, 0, 0, None, found, None)

    def start(work, *arguments):
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        thread.start()
        return thread
"""


def visiting(path: Path, code: str, **environment: str) -> Ran:
    with h5py.File(path, "w") as made:
        made["x"] = 1
    code = textwrap.dedent(VISITING) + textwrap.dedent(code)
    return python(code, netcdf_libhdf5(), path, **environment)


def test_a_thread_waits_until_the_call_of_another_has_returned(tmp_path: Path) -> None:
    code = """
    order = []
    def call():
        within.wait()
        order.append("asks")
        library.H5get_libversion(*version)
        order.append("has")
    thread = start(call)
    visit(lambda: (awaited(), order.append("lets go")))
    thread.join()
    print(*order)
    """
    ran = visiting(tmp_path / "a.h5", code)
    assert (ran.status, ran.out) == (0, b"asks lets go has\n"), ran.errors
    assert ran.counts["waits"]["count"] == 1
    assert 0 < ran.counts["waits"]["seconds"] < 60


def test_without_the_lock_nobody_waits(tmp_path: Path) -> None:
    """A callback may then wait for another thread that calls the same library, which hangs with the lock."""
    code = """
    def call():
        within.wait()
        library.H5get_libversion(*version)
        done.set()
    start(call)
    print(visit(lambda: done.wait(60)), done.is_set())
    """
    options = parse(["--no-lock", "true"])
    ran = visiting(tmp_path / "a.h5", code, **options.settings)
    assert (ran.out, ran.counts["waits"]["count"]) == (b"1 True\n", 0), ran.errors


def test_a_thread_that_waits_lets_go_of_pythons_lock(tmp_path: Path) -> None:
    """The callback of the other one needs it. Without that, both wait for ever."""
    code = """
    def call():
        within.wait()
        held.H5get_libversion(*version)  # with Python's lock, as h5py and PyTables call
        done.set()
    thread = start(call)
    print(visit(awaited))  # which cannot go on without Python's lock
    thread.join()
    print(done.is_set(), numbers[0].value >= 1)
    """
    ran = visiting(tmp_path / "a.h5", code)
    assert (ran.status, ran.out) == (0, b"1\nTrue True\n"), ran.errors
    assert ran.counts["waits"]["count"] == 1


def test_a_forked_child_has_free_locks(tmp_path: Path) -> None:
    """The thread that is in a call does not exist there."""
    code = """
    thread = start(visit, done.wait)
    within.wait()
    child = os.fork()
    if child == 0:
        library.H5get_libversion(*version)
        os._exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    done.set()
    thread.join()
    library.H5get_libversion(*version)
    print("parent", numbers[0].value >= 1)
    """
    ran = visiting(tmp_path / "a.h5", code)
    assert (ran.status, ran.out) == (0, b"7\nparent True\n"), ran.errors


def test_a_callback_that_forks_has_the_lock_in_both_processes(tmp_path: Path) -> None:
    code = """
    children = []
    def fork():
        children.append(os.fork())
        library.H5get_libversion(*version)
    visit(fork)
    thread = start(library.H5get_libversion, *version)
    thread.join()
    if children[0] == 0:
        os._exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]), numbers[0].value >= 1)
    """
    ran = visiting(tmp_path / "a.h5", code)
    assert (ran.status, ran.out) == (0, b"7 True\n"), ran.errors


def test_a_signal_handler_calls_the_library_within_a_call(tmp_path: Path) -> None:
    code = r"""
        #include <pthread.h>
        #include <signal.h>
        int H5get_libversion(unsigned *, unsigned *, unsigned *), H5Eset_auto2(long, void *, void *);
        static volatile long count;
        static unsigned numbers[3];
        static void handle(int number) { H5get_libversion(numbers, numbers + 1, numbers + 2); count++; }
        static volatile int is_done;
        static void *calls(void *data) {
            while (!is_done) H5get_libversion(numbers, numbers + 1, numbers + 2);
            return 0;
        }
        int main(void) {
            pthread_t threads[3];
            H5get_libversion(numbers, numbers + 1, numbers + 2); // it begins by malloc, where no handler may call
            signal(SIGUSR1, handle);
            for (int k = 0; k < 3; k++) pthread_create(&threads[k], 0, calls, 0);
            for (int k = 0; k < 300; k++) pthread_kill(threads[k % 3], SIGUSR1), usleep(100);
            is_done = 1;
            for (int k = 0; k < 3; k++) pthread_join(threads[k], 0);
            printf("%d %d\n", count > 0, numbers[0] > 0);
            return 0;
        }
    """
    program = compiled(tmp_path, "program", code, *wheel_libhdf5(), "-pthread")
    ran = run(program)
    assert (ran.status, ran.out) == (0, b"1 1\n"), ran.errors


def test_a_thread_that_waits_gets_the_lock_of_one_that_takes_it_all_the_time(tmp_path: Path) -> None:
    code = r"""
        #include <pthread.h>
        #include <unistd.h>
        int H5get_libversion(unsigned *, unsigned *, unsigned *);
        static volatile int is_done;
        static unsigned numbers[3];
        static void *greedy(void *data) {
            while (!is_done) H5get_libversion(numbers, numbers + 1, numbers + 2);
            return 0;
        }
        static void *modest(void *data) {
            for (int k = 0; k < 200; k++) H5get_libversion(numbers, numbers + 1, numbers + 2), usleep(10);
            is_done = 1;
            return 0;
        }
        int main(void) {
            pthread_t threads[4];
            for (int k = 0; k < 4; k++) pthread_create(&threads[k], 0, k ? greedy : modest, 0);
            for (int k = 0; k < 4; k++) pthread_join(threads[k], 0);
            puts("done");
            return 0;
        }
    """
    program = compiled(tmp_path, "program", code, *wheel_libhdf5(), "-pthread")
    ran = run(program)
    assert (ran.status, ran.out) == (0, b"done\n"), ran.errors


def test_netcdf_has_the_lock_of_its_libhdf5(tmp_path: Path) -> None:
    """A thread in a call of libhdf5 keeps others out of netCDF-C."""
    code = """
    import netCDF4
    order = []
    def call():
        within.wait()
        order.append("asks")
        netCDF4.Dataset(own).close()
        order.append("has")
    thread = start(call)
    visit(lambda: (awaited(), order.append("lets go")))
    thread.join()
    print(*order)
    """
    ran = visiting(tmp_path / "a.h5", code)
    assert (ran.status, ran.out) == (0, b"asks lets go has\n"), ran.errors


def test_the_line_says_how_often_threads_waited() -> None:
    totals = Totals()
    assert "waited" not in line(totals, [])
    totals.waits, totals.waited_seconds = 1, 0.25
    assert "; threads waited once for each other's calls (0.25 s)" in line(totals, [])
    totals.waits = 12
    assert "threads waited 12 times for each other's calls" in line(totals, [])

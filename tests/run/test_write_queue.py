"""Writes of few chunks wait under `hyperslab run --writes`, and nobody sees that they do."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import h5py
import pytest
from c_programs import alone, compiled, wheel_libhdf5
from run_programs import Ran, run

STEPS = """
    import os, subprocess, sys
    import h5py
    import numpy as np
    path = sys.argv[1]
    data = np.cumsum(np.random.default_rng(1).normal(size=(12, 64, 200)), axis=1).astype("f4")
    settings = dict(compression="gzip", shuffle=True, chunks=(1, 64, 200), track_times=False)
    growing = dict(maxshape=(None, 64, 200), **settings)
"""


ALL = """
    for k in range(12):
        x[k] = data[k]
"""


def waiting(code: str, path: Path, **environment: str) -> Ran:
    """Run a program with and without us. Both say the same, and the files are the same."""
    ours, theirs = path / "ours", path / "theirs"
    ran = run(
        sys.executable, "-c", textwrap.dedent(STEPS) + textwrap.dedent(code), ours, HYPERSLAB_WRITES="1", **environment
    )
    line = [sys.executable, "-c", textwrap.dedent(STEPS) + textwrap.dedent(code), str(theirs)]
    expected = subprocess.run(line, capture_output=True)
    assert (ran.status, ran.out.decode()) == (expected.returncode, expected.stdout.decode()), ran.errors
    with h5py.File(ours) as one, h5py.File(theirs) as other:
        for name, array in other.items():
            assert one[name].shape == array.shape
            assert one[name][...].tobytes() == array[...].tobytes(), name
            assert array.chunks is None or one[name].id.get_num_chunks() == array.id.get_num_chunks(), name
    return ran


def waited(ran: Ran) -> int:
    return int(ran.counts["writes"]["waited"])


def test_each_step_waits_and_what_sees_it_stores_it_first(tmp_path: Path) -> None:
    code = """
    with h5py.File(path, "w") as file:
        x = file.create_dataset("x", (0, 64, 200), "f4", **growing)
        for k in range(12):
            x.resize(k + 1, 0)
            x[k] = data[k]
            if k == 3:
                print(x[2:4].sum(dtype="f8"))
            if k == 5:
                print(x.id.get_storage_size() > 10_000, x.id.get_num_chunks())
            if k == 7:
                x.attrs["a"] = 1
            if k == 9:
                x.resize(6, 0), x.resize(10, 0)
                print(float(x[9].max()), float(x[5].max()))
    """
    assert waited(waiting(code, tmp_path)) == 12


def test_arrays_that_are_opened_for_each_step_wait_too(tmp_path: Path) -> None:
    code = """
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (12, 64, 200), "f4", **settings)
        file.create_dataset("time", (12,), "f8")
        for k in range(12):
            file["x"][k] = data[k]
            file["time"][k] = k
    with h5py.File(path, "r+") as file:
        print(sorted(file), float(file["x"][11].max()))
        file["x"][3] = data[4]
    """
    assert waited(waiting(code, tmp_path)) >= 12


def test_a_chunk_that_waits_is_changed_in_order(tmp_path: Path) -> None:
    code = """
    with h5py.File(path, "w", rdcc_nbytes=0) as file:
        x = file.create_dataset("x", (12, 64, 200), "f4", **settings)
        for k in range(6):
            x[k] = data[k]
            x[k] = data[k + 1]
            x[k, 3] = 5
            x[k : k + 6] = data[k : k + 6]
    """
    assert waited(waiting(code, tmp_path)) >= 1  # chunks that exist already do not wait


@pytest.mark.parametrize("how", ["file.flush()", "del x, file"])
def test_another_process_reads_what_was_flushed(how: str, tmp_path: Path) -> None:
    code = f"""
    file = h5py.File(path, "w", locking=False)
    x = file.create_dataset("x", (12, 64, 200), "f4", **settings)
    for k in range(12):
        x[k] = data[k]
    {how}
    code = "import h5py, sys; print(h5py.File(sys.argv[1], locking=False)['x'][:].sum(dtype='f8'))"
    found = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    print(found.stdout, found.stderr)
    """
    assert waited(waiting(code, tmp_path)) == 12


def test_a_program_that_closes_nothing_loses_nothing(tmp_path: Path) -> None:
    code = """
    import builtins
    builtins.kept = file = h5py.File(path, "w")
    builtins.array = x = file.create_dataset("x", (12, 64, 200), "f4", **settings)
    """
    assert waited(waiting(textwrap.dedent(code) + textwrap.dedent(ALL), tmp_path)) == 12


def test_a_forked_child_and_its_parent_have_what_was_written(tmp_path: Path) -> None:
    code = """
    with h5py.File(path, "w") as file:
        x = file.create_dataset("x", (12, 64, 200), "f4", **settings)
        for k in range(12):
            x[k] = data[k]
            if k in (2, 7):
                if os.fork() == 0:
                    print(k, x[k].sum(dtype="f8"), flush=True)
                    os._exit(0)
                os.wait()
    """
    assert waited(waiting(code, tmp_path)) == 12


def test_little_memory_makes_fewer_wait(tmp_path: Path) -> None:
    made = 'x = h5py.File(path, "w").create_dataset("x", (12, 64, 200), "f4", **settings)'
    code = textwrap.dedent(STEPS) + made + textwrap.dedent(ALL)
    for count, settings in (
        (12, {"HYPERSLAB_MEMORY": "450000"}),
        (0, {"HYPERSLAB_MEMORY": "204000"}),
        (0, {"HYPERSLAB_LOCK": "0"}),  # without gates, not all calls are seen
    ):
        ran = run(sys.executable, "-c", code, tmp_path / "ours", HYPERSLAB_WRITES="1", **settings)
        assert (ran.status, waited(ran)) == (0, count), ran.errors


def test_threads_write_steps_of_files_of_their_own(tmp_path: Path) -> None:
    code = """
    import sys, threading
    import netCDF4, numpy as np
    data = np.cumsum(np.random.default_rng(1).normal(size=(24, 64, 200)), axis=1).astype("f4")
    def write(number):
        with netCDF4.Dataset(f"{sys.argv[1]}.{number}", "w") as file:
            file.createDimension("t", None), file.createDimension("y", 64), file.createDimension("x", 200)
            settings = dict(chunksizes=(1, 64, 200), shuffle=True, zlib=True)
            x = file.createVariable("x", "f4", ("t", "y", "x"), **settings)
            time = file.createVariable("t", "f8", ("t",))
            for k in range(24):
                time[k] = k
                x[k] = data[k] + number
                if k and k % 7 == number:
                    assert (x[k - 1] == data[k - 1] + number).all()
    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    [one.start() for one in threads], [one.join() for one in threads]
    for number in range(4):
        with netCDF4.Dataset(f"{sys.argv[1]}.{number}") as file:
            assert (file["x"][:] == data + number).all() and (file["t"][:] == np.arange(24)).all()
    """
    ran = run(sys.executable, "-c", textwrap.dedent(code), tmp_path / "a", HYPERSLAB_WRITES="1")
    assert ran.status == 0, ran.errors
    assert waited(ran) == 96


FULL = """
    import ctypes, resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    file = h5py.File(path, "w", rdcc_nbytes=0)
    x = file.create_dataset("x", (12, 64, 200), "f4", **settings)
    file.flush()
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, most))
    def wait():
        # One that our thread encodes before the call returns fails within it, and then its chunk is not new any more.
        for k in range(11):
            try:
                x[k] = data[k]
                return k
            except OSError:
                pass
        sys.exit("each write was encoded before its call returned")
"""


def test_a_write_that_cannot_be_stored_is_told_by_the_next_call_that_sees_it(tmp_path: Path) -> None:
    code = """
    wait()
    try:
        file.flush()
    except (OSError, RuntimeError) as error:
        print("told", "write" in str(error), flush=True)
    os._exit(0)
    """
    ran = run(sys.executable, "-c", textwrap.dedent(STEPS + FULL + code), tmp_path / "a.h5", HYPERSLAB_WRITES="1")
    assert ran.out == b"told True\n", ran.errors
    assert waited(ran) == 1


def test_a_write_that_a_fork_could_not_store_still_waits(tmp_path: Path) -> None:
    """A fork stores what waits, but cannot say if that fails. Here the disk has room again before anyone asks."""
    code = """
    first = wait()
    if os.fork() == 0:
        os._exit(0)
    os.wait()
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    x[first + 1] = data[first + 1]
    file.close()
    with h5py.File(path) as file:
        print([bool((file["x"][k] == data[k]).all()) for k in (first, first + 1)])
    """
    ran = run(sys.executable, "-c", textwrap.dedent(STEPS + FULL + code), tmp_path / "a.h5", HYPERSLAB_WRITES="1")
    assert ran.out == b"[True, True]\n", ran.errors
    assert waited(ran) >= 2


def test_last_writes_that_cannot_be_stored_are_said_at_the_end(tmp_path: Path) -> None:
    """Nobody closes what Python never gives up."""
    code = """
    for kept in (file.id, x.id):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    wait()
    """
    program = textwrap.dedent(STEPS + FULL + code)
    ran = run(sys.executable, "-c", program, tmp_path / "ours", HYPERSLAB_WRITES="1", HYPERSLAB_THREADS="8")
    assert "hyperslab run: the last writes could not be stored" in ran.errors, ran.errors


CLOSING = r"""
    int H5Idec_ref(long), H5Iinc_ref(long), H5Iis_valid(long), H5Iget_type(long);
    int H5Dwrite(long, long, long, long, long, const void *), H5Eset_auto2(long, void *, void *);
    int main(int count, char **words) {
        H5open();
        H5Eset_auto2(0, NULL, NULL);
        long file = H5Fopen(words[1], 1, 0), x = H5Dopen2(file, "x", 0);
        int *values = calloc(300 * 400, 4);
        for (int n = 0; n < 300 * 400; n++) values[n] = n / 7;
        printf("%d", H5Dwrite(x, H5T_NATIVE_INT_g, 0, 0, 0, values));
        printf(" %d", H5Iinc_ref(x) > 1);
        printf(" %d", H5Idec_ref(x));
        printf(" %d", H5Idec_ref(x));
        printf(" %d", words[2][0] == 'v' ? H5Iis_valid(x) : words[2][0] == 't' ? H5Iget_type(x) :
                      words[2][0] == 'w' ? H5Dwrite(x, H5T_NATIVE_INT_g, 0, 0, 0, values) : H5Idec_ref(x));
        printf(" %d\n", H5Fclose(file));
        return 0;
    }
"""


@pytest.mark.parametrize("question", ["valid", "type", "write", "release"])
def test_an_array_that_the_program_has_closed_is_closed(tmp_path: Path, question: str) -> None:
    """A write that waits keeps it open for us. Questions by its identifier were answered as if it were open."""
    program = compiled(tmp_path, "program", CLOSING, *wheel_libhdf5())
    for path in (tmp_path / "ours", tmp_path / "theirs"):
        with h5py.File(path, "w", libver="earliest") as made:
            made.create_dataset("x", (300, 400), "i4", chunks=(300, 400), compression="gzip")
    expected = alone(program, tmp_path / "theirs", question)
    ran = run(program, tmp_path / "ours", question, HYPERSLAB_WRITES="1", HYPERSLAB_THREADS="2")
    assert (ran.status, ran.out, waited(ran)) == (0, expected.stdout, 1), ran.errors
    with h5py.File(tmp_path / "ours") as ours, h5py.File(tmp_path / "theirs") as theirs:
        assert (ours["x"][...] == theirs["x"][...]).all()
        assert ours["x"][-1, -1] > 0


def test_what_waits_takes_no_more_memory_than_was_allowed(tmp_path: Path) -> None:
    """The peak of a program that writes faster than we encode: at most 64 MiB and `HYPERSLAB_MEMORY` above its own.

    Without a limit, 48 writes of 2 MiB would wait.
    """
    code = textwrap.dedent(STEPS) + textwrap.dedent("""
    step = np.arange(512 * 1024, dtype="f4").reshape(512, 1024) // 999
    count = int(sys.argv[2])
    with h5py.File(path, "w") as file:
        x = file.create_dataset("x", (count, *step.shape), "f4", chunks=(1, *step.shape), compression=4, shuffle=True)
        for k in range(count):
            x[k] = step
    print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
    """)
    ran = run(sys.executable, "-c", code, tmp_path / "ours", 48, HYPERSLAB_WRITES="1", HYPERSLAB_MEMORY="8M")
    line = [sys.executable, "-c", code, str(tmp_path / "theirs"), "2"]
    expected = int(subprocess.run(line, capture_output=True, check=True).stdout)
    assert (ran.status, ran.counts["writes"]["encoded"]) == (0, 48), ran.errors
    assert waited(ran) > 0
    assert int(ran.out) <= expected + (8 + 64) * 1024, "KiB"

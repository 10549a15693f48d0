"""`hyperslab run --writes` stores what libhdf5 would have stored: chunks, masks and elements."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin  # noqa: F401 - registers filters
import numpy as np
import pytest
from c_programs import system_libhdf5
from run_programs import Ran, run

from command_line import run_python

PROGRAM = Path(__file__).with_name("writes_program.py")
DATA = """
    import sys
    import numpy as np
    random = np.random.default_rng(1)
    path, data = sys.argv[1], np.cumsum(random.normal(size=(12, 64, 200)), axis=1).astype("f4")
"""
BY_H5PY = """
    import h5py
    with h5py.File(path, "w") as file:
        settings = dict(compression="gzip", shuffle=True, track_times=False)
        file.create_dataset("whole", data=data, chunks=(1, 64, 200), **settings)
        file.create_dataset("edges", data=data, chunks=(5, 50, 90), fletcher32=True, fillvalue=3, **settings)
        settings |= dict(maxshape=(None, 64, 200), chunks=(1, 64, 200))
        steps = file.create_dataset("steps", (0, 64, 200), "f4", **settings)
        for k in range(12):
            steps.resize(k + 1, 0)
            steps[k] = data[k]
            if k % 5 == 0:
                assert (steps[k] == data[k]).all()
"""
BY_NETCDF4 = """
    import netCDF4
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("t", None), file.createDimension("y", 64), file.createDimension("x", 200)
        axes, settings = ("t", "y", "x"), dict(chunksizes=(1, 64, 200), shuffle=True)
        file.createVariable("whole", "f4", axes, zlib=True, complevel=4, **settings)[:] = data
        file.createVariable("zstd", "f4", axes, compression="zstd", complevel=4, **settings)[:] = data
        steps = file.createVariable("steps", "f4", axes, zlib=True, fletcher32=True, **settings)
        for k in range(12):
            steps[k] = data[k]
"""
BY_XARRAY = """
    import xarray
    made = xarray.Dataset({"whole": (("t", "y", "x"), data)}, {"t": np.arange(12.0)})
    encoding = {"zlib": True, "complevel": 4, "shuffle": True, "chunksizes": (1, 64, 200)}
    made.to_netcdf(path, engine="netcdf4", encoding={"whole": encoding})
"""
BY_PYTABLES = """
    import tables
    with tables.open_file(path, "w") as file:
        filters = tables.Filters(complevel=4, complib="zlib", shuffle=True, fletcher32=True)
        file.create_carray("/", "whole", obj=data, filters=filters, chunkshape=(1, 64, 200), track_times=False)
        steps = file.create_earray("/", "steps", tables.Float32Atom(), (0, 64, 200), filters=filters,
                                   chunkshape=(1, 64, 200), track_times=False)
        for k in range(12):
            steps.append(data[k : k + 1])
"""


@pytest.fixture(autouse=True)
def _own_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs find the filters that they bring themselves. netCDF4, which other tests import, sets the path."""
    monkeypatch.delenv("HDF5_PLUGIN_PATH", raising=False)


def write(code: str, *words: object, **environment: Any) -> Ran:
    """Run Python code under `hyperslab run --writes`."""
    return run(sys.executable, "-c", textwrap.dedent(code), *words, HYPERSLAB_WRITES="1", **environment)


def alone(code: str, *words: object) -> subprocess.CompletedProcess[bytes]:
    """Run the same code without us."""
    return run_python(textwrap.dedent(code), *words, modules=("numpy",))


def chunks(array: h5py.Dataset) -> dict[tuple[int, ...], int]:
    """The mask of each stored chunk, by the place of the chunk."""
    infos = [array.id.get_chunk_info(k) for k in range(array.id.get_num_chunks())] if array.chunks else []
    return {info.chunk_offset: info.filter_mask for info in infos}


def must_be_equal(one: Path, other: Path, most_larger: float = 0.02) -> None:
    """Files with the same arrays, elements, chunks and masks; the first one stores at most so much more."""
    names: list[str] = []
    with h5py.File(one) as ours, h5py.File(other) as theirs:
        ours.visititems(lambda name, found: names.append(name) if isinstance(found, h5py.Dataset) else None)
        assert sorted(names) == sorted(name for name in theirs if isinstance(theirs[name], h5py.Dataset))
        for name in names:
            made, expected = ours[name], theirs[name]
            assert (made.shape, made.dtype, made._filters) == (expected.shape, expected.dtype, expected._filters)
            assert made[...].tobytes() == expected[...].tobytes(), name
            own, their = chunks(made), chunks(expected)
            is_lz4 = "lz4" in name  # which compresses better than LZ4 at a low level, so that less is skipped
            assert own == their or (is_lz4 and own.keys() == their.keys() and max(own.values()) == 0), name
            tiny = 100 * len(chunks(made))
            assert made.id.get_storage_size() <= (1 + most_larger) * expected.id.get_storage_size() + tiny, name


def encoded(ran: Ran) -> int:
    assert ran.status == 0, ran.errors
    return int(ran.counts["writes"]["encoded"])


def left(ran: Ran) -> dict[str, int]:
    """How many writes were left to libhdf5, by the reason."""
    assert ran.status == 0, ran.errors
    return {reason: found["writes"] for reason, found in ran.counts["writes"]["left"].items()}


@pytest.mark.parametrize(
    ("code", "count"), [(BY_H5PY, 14), (BY_NETCDF4, 14), (BY_XARRAY, 1), (BY_PYTABLES, 13)],
    ids=["h5py", "netCDF4", "xarray", "PyTables"],
)  # fmt: skip
def test_files_are_those_that_the_library_writes_alone(code: str, count: int, tmp_path: Path) -> None:
    assert alone(DATA + code, tmp_path / "theirs").returncode == 0
    ran = write(DATA + code, tmp_path / "ours")
    assert encoded(ran) == count
    must_be_equal(tmp_path / "ours", tmp_path / "theirs")


def test_without_the_option_nothing_is_encoded(tmp_path: Path) -> None:
    ran = run(sys.executable, "-c", textwrap.dedent(DATA + BY_H5PY), tmp_path / "a.h5")
    assert (encoded(ran), left(ran)) == (0, {})


@pytest.mark.parametrize("seed", [1, 1001])
def test_random_programs_write_and_read_the_same(seed: int, tmp_path: Path) -> None:
    """All filters, layouts and selections; reads, flushes, resizes and new openings in between."""
    words = [PROGRAM, tmp_path / "ours", seed, 40]
    ran = run(sys.executable, *words, HYPERSLAB_WRITES="1", HYPERSLAB_SERVE_SMALL="1")
    words[1] = tmp_path / "theirs"
    expected = subprocess.run([sys.executable, *map(str, words)], capture_output=True, check=True)
    assert (ran.status, ran.out) == (0, expected.stdout), ran.errors
    assert encoded(ran) > 50
    assert {"parts", "again", "filter", "plain"} <= set(left(ran))
    for k in range(40):
        must_be_equal(tmp_path / f"ours.{k}", tmp_path / f"theirs.{k}")


@pytest.mark.parametrize("library", ["h5py", "netCDF4"])
def test_stored_sizes_are_near_those_of_zlib_at_each_level(library: str, tmp_path: Path) -> None:
    """The two wheels bring a zlib each."""
    by = {
        "h5py": """
            import h5py
            with h5py.File(path, "w") as file:
                for level in range(10):
                    file.create_dataset(f"x{level}", data=data, chunks=(4, 64, 200), compression=level, shuffle=True)
        """,
        "netCDF4": """
            import netCDF4
            with netCDF4.Dataset(path, "w") as file:
                file.createDimension("t", 12), file.createDimension("y", 64), file.createDimension("x", 200)
                for level in range(1, 10):
                    file.createVariable(f"x{level}", "f4", ("t", "y", "x"), zlib=True, complevel=level, shuffle=True,
                                        chunksizes=(4, 64, 200))[:] = data
        """,
    }
    code = textwrap.dedent(DATA) + textwrap.dedent(by[library])
    assert alone(code, tmp_path / "theirs").returncode == 0
    assert encoded(write(code, tmp_path / "ours")) in (9, 10)
    must_be_equal(tmp_path / "ours", tmp_path / "theirs")


BY_BLOSC = """
    import itertools, h5py, hdf5plugin
    whole = np.round(np.cumsum(random.normal(size=(64, 1500)), axis=1) * 20)
    drawn = {"f4": (whole / 7).astype("f4"), "i2": whole.astype("i2")}
    noise, counts = random.integers(0, 256, (64, 1500)), random.poisson(3, (64, 1500))
    drawn |= {"noise": noise.astype("u1"), "u1": counts.astype("u1")}
    with h5py.File(path, "w") as file:
        for name, values in drawn.items():
            file.create_dataset(f"{name} lzf", data=values, chunks=(64, 200), compression="lzf", shuffle=True)
            compressors = "lz4", "zlib", "zstd", "blosclz"
            for compressor, shuffle, level in itertools.product(compressors, (0, 1, 2), (1, 6)):
                settings = dict(chunks=(50, 1500), **hdf5plugin.Blosc(compressor, level, shuffle))
                file.create_dataset(f"{name} {compressor} {shuffle} {level}", data=values, **settings)
"""


def test_blosc_and_lzf_store_as_much_as_the_real_ones(tmp_path: Path) -> None:
    """Blosc stored up to 63 % more, as it did not divide blocks. Of BloscLZ, the same bytes are stored."""
    code = DATA + BY_BLOSC
    assert alone(code, tmp_path / "theirs").returncode == 0
    ran = write(code, tmp_path / "ours")
    assert (encoded(ran), left(ran)) == (4 * 25, {})
    must_be_equal(tmp_path / "ours", tmp_path / "theirs", 0.02)
    with h5py.File(tmp_path / "ours") as ours, h5py.File(tmp_path / "theirs") as theirs:
        for name in (name for name in ours if "blosclz" in name):
            made, expected = ours[name].id.read_direct_chunk((0, 0)), theirs[name].id.read_direct_chunk((0, 0))
            assert made == expected, name


PASSING = {
    "small": "file.create_dataset('x', data=data[0, 0], chunks=(100,), **settings)",
    "plain": "file.create_dataset('x', data=data, chunks=(1, 64, 200))",
    "parts": "file.create_dataset('x', data.shape, 'f4', chunks=(8, 64, 200), **settings)[1:9] = data[1:9]",
    "filter": "file.create_dataset('x', data=data, chunks=(1, 64, 200), **hdf5plugin.Blosc('lz4hc'))",
    "conversion": "file.create_dataset('x', data.shape, 'f8', chunks=(1, 64, 200), **settings)[...] = data",
    "pointers": """
        x = file.create_dataset('x', (40000,), h5py.string_dtype(), chunks=(4000,), **settings)
        x[...] = np.full(40000, 'a', object)""",
    "memory": """
        x = file.create_dataset('x', (12, 64, 100), 'f4', chunks=(1, 64, 100), **settings)
        x.write_direct(data, np.s_[:, :, 50:150], np.s_[...])""",
    "swmr": """
        x = file.create_dataset('x', data.shape, 'f4', chunks=(1, 64, 200), **settings)
        file.swmr_mode = True
        x[...] = data""",
    "again": """
        x = file.create_dataset('x', data.shape, 'f4', chunks=(1, 64, 200), **settings)
        x[0] = data[0]
        x[0] = data[1]""",
}


@pytest.mark.parametrize("reason", PASSING)
def test_the_line_says_why_libhdf5_does_a_write(reason: str, tmp_path: Path) -> None:
    code = textwrap.dedent(DATA) + textwrap.dedent(f"""
import h5py, hdf5plugin
settings = dict(compression="gzip", shuffle=True, track_times=False)
file = h5py.File(path, "w", libver="latest")
{textwrap.dedent(PASSING[reason])}
file.close()
    """)
    assert alone(code, tmp_path / "theirs").returncode == 0
    ran = write(code, tmp_path / "ours")
    assert left(ran) == {reason: 1}
    assert encoded(ran) == (1 if reason == "again" else 0)
    must_be_equal(tmp_path / "ours", tmp_path / "theirs")


def test_other_drivers_and_edges_without_filters_are_left_alone(tmp_path: Path) -> None:
    code = textwrap.dedent(DATA) + textwrap.dedent("""
        import h5py, hdf5plugin, io
        settings = dict(chunks=(1, 64, 200), compression="gzip")
        with h5py.File("memory", "w", driver="core", backing_store=False) as file:
            file.create_dataset("x", data=data, **settings)
        with h5py.File(io.BytesIO(), "w") as file:
            file.create_dataset("x", data=data, **settings)
    """)
    ran = write(code, tmp_path / "ours")
    assert (left(ran), encoded(ran)) == ({"driver": 2}, 0)


def test_what_waits_in_the_cache_of_libhdf5_is_replaced(tmp_path: Path) -> None:
    """A part of a chunk waits in libhdf5's cache; then the chunk is written whole, among others; then a part again."""
    code = (
        DATA
        + """
    import h5py
    with h5py.File(path, "w", rdcc_nbytes=60000) as file:
        x = file.create_dataset("x", data.shape, "f4", chunks=(1, 64, 200), compression=4, track_times=False)
        x[3, :10] = 5
        x[:6] = data[:6]
        assert (x[:6] == data[:6]).all()
        x[4, 5:9] = 7
        x[5:] = data[5:]
        x[2:6] = data[2:6] + 1
        x[2, 0, 0] = 9
        file.flush()
        print(x[...].sum(dtype="f8"))
    """
    )
    expected = alone(code, tmp_path / "theirs")
    ran = write(code, tmp_path / "ours")
    assert (expected.returncode, ran.out) == (0, expected.stdout)
    assert (encoded(ran), left(ran)) == (3, {"small": 3})
    must_be_equal(tmp_path / "ours", tmp_path / "theirs")


KILLED = (
    DATA
    + """
    import os, signal, h5py
    calls, flushes, is_old = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "old"
    file = h5py.File(path, "r+" if is_old else "w", locking=False)
    if is_old:
        x = file["x"]
    else:
        x = file.create_dataset("x", (0, 64, 200), "f4", maxshape=(None, 64, 200), chunks=(1, 64, 200), compression=4)
    for k in range(calls):
        if is_old:
            x[k % 12] = data[k % 12] + k
        else:
            x.resize(k + 1, 0)
            x[k] = data[k]
        if flushes and k % flushes == flushes - 1:
            file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
)


def readable(path: Path) -> list[bytes]:
    """The chunks that can be read, in order."""
    found = []
    try:
        with h5py.File(path, locking=False) as file:
            for k in range(len(file["x"])):
                try:
                    found.append(file["x"][k].tobytes())
                except OSError:
                    found.append(b"")
    except (OSError, KeyError):
        return []
    return found


@pytest.mark.parametrize(("calls", "flushes"), [(3, 0), (9, 1), (11, 4)])
@pytest.mark.parametrize("kind", ["new", "old"])
def test_a_killed_program_leaves_no_less_than_alone(calls: int, flushes: int, kind: str, tmp_path: Path) -> None:
    paths = [tmp_path / "ours", tmp_path / "theirs"]
    if kind == "old":
        for path in paths:
            with h5py.File(path, "w") as file:
                data = np.random.default_rng(3).normal(size=(12, 64, 200)).astype("f4")
                file.create_dataset("x", data=data, chunks=(1, 64, 200), compression=4)
    ran = write(KILLED, paths[0], calls, flushes, kind)
    expected = alone(KILLED, paths[1], calls, flushes, kind)
    assert ran.status == expected.returncode == -signal.SIGKILL
    ours, theirs = readable(paths[0]), readable(paths[1])
    lost = [k for k, chunk in enumerate(theirs) if chunk and (k >= len(ours) or not ours[k])]
    assert not lost
    if kind == "new" and flushes:
        assert len(ours) >= calls // flushes * flushes
        assert ours == theirs


FAILING = r"""
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <errno.h>
    #include <stdlib.h>
    #include <unistd.h>
    static long left = -1;
    ssize_t pwrite64(int file, const void *from, size_t count, off_t at) {
        ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite64");
        if (left < 0) left = getenv("LEFT") ? atol(getenv("LEFT")) : 1L << 60;
        if (file > 2 && count > (getenv("LEAST") ? atol(getenv("LEAST")) : 4096)) {
            if (left < (long)count) { errno = atoi(getenv("ERROR_NUMBER")); return -1; }
            left -= count;
        }
        return real(file, from, count, at);
    }
    ssize_t pwrite(int file, const void *from, size_t count, off_t at) { return pwrite64(file, from, count, at); }
"""
FILLED = (
    DATA
    + """
    import h5py
    file = h5py.File(path, "w", rdcc_nbytes=0)
    waits = len(sys.argv) > 2 and sys.argv[2] == "waits"
    chunks = (1, 64, 200) if waits else (1, 16, 50)
    x = file.create_dataset("x", (0, 64, 200), "f4", maxshape=(None, 64, 200), chunks=chunks, compression=4)
    failed = []
    for k in range(12):
        try:
            x.resize(k + 1, 0)
            x[k] = data[k]
        except OSError as error:
            failed.append(k)
            said = str(error)
    if waits:
        try:
            file.flush()
        except OSError as error:
            failed.append(12)
            said = str(error)
        failed = bool(failed)
    print(failed, said[:60], "errno = " in said and said[said.index("errno = "):][:12])
    os = __import__("os")
    os._exit(0)
"""
)


@pytest.mark.parametrize(
    ("kind", "number"), [("within", "ENOSPC"), ("waits", "EIO"), ("within", "EDQUOT"), ("waits", "EROFS")]
)
def test_a_full_or_broken_disk_a_quota_and_a_read_only_one_are_told(kind: str, number: str, tmp_path: Path) -> None:
    """By the same call if that has many chunks, otherwise at the latest by one that could see the difference."""
    system_libhdf5()  # which also looks for a compiler
    shim = tmp_path / "failing.so"
    source = tmp_path / "failing.c"
    source.write_text(textwrap.dedent(FAILING))
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(shim), str(source), "-ldl"], check=True)
    settings: dict[str, str] = {"LEFT": "190000", "ERROR_NUMBER": str(getattr(errno, number)), "LD_PRELOAD": str(shim)}
    if kind == "within":  # its chunks are smaller
        settings |= {"LEAST": "1024", "HYPERSLAB_THREADS": "2"}
    ran = write(FILLED, tmp_path / "ours", kind, **settings)
    line: list[Any] = [sys.executable, "-c", textwrap.dedent(FILLED), str(tmp_path / "theirs"), kind]
    expected = subprocess.run(line, capture_output=True, text=True, env={**os.environ, **settings})
    assert (ran.out.decode(), ran.status) == (expected.stdout, 0), ran.errors
    assert f"errno = {getattr(errno, number)}" in expected.stdout
    assert bool(ran.counts["writes"]["waited"]) == (kind == "waits")


def test_the_time_of_an_encoded_write_is_recorded(tmp_path: Path) -> None:
    """It was noted to have taken nothing."""
    pytest.importorskip("pyarrow", reason="not installed: pip install 'hyperslab[report]'")
    from hyperslab.trace.trace import Trace

    code = """
        import sys, h5py, numpy as np
        data = np.random.default_rng(1).normal(size=(8, 256, 256))
        with h5py.File(sys.argv[1], "w") as file:
            file.create_dataset("x", data=data, chunks=(1, 256, 256), compression="gzip")
    """
    words = ["trace", "--quiet", "-o", tmp_path / "run.trace", "--", sys.executable, "-c", textwrap.dedent(code)]
    line = [sys.executable, "-m", "hyperslab", *map(str, words), str(tmp_path / "a.h5")]
    subprocess.run(line, check=True, env={**os.environ, "HYPERSLAB_WRITES": "1"})
    (access,) = Trace.open(tmp_path / "run.trace")
    assert access.operation == "write"
    assert access.seconds > 1e-4, "4 MiB are not encoded in no time"

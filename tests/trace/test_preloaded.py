"""The preloaded recorder: traces of programs that use any libhdf5 equal what the programs did."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from preloaded_programs import IS_PRELOADED, SHAPE, mask, selected, traced, traced_python, union

import hyperslab as hs

h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")
pytest.importorskip("pyarrow", reason="not installed: pip install 'hyperslab[report]'")
pytestmark = pytest.mark.skipif(not IS_PRELOADED, reason="there is no libhyperslab_preload.so: only Linux has it")
FEW = settings(
    max_examples=15 if os.environ.get("HYPERSLAB_DRAWS") == "new" else 2,  # each has up to 30 selections
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "a.nc", "w", libver=("v108", "v110")) as file:
        file.create_dataset("x", data=np.arange(108, dtype="i4").reshape(SHAPE), chunks=(4, 4), compression="gzip")
        file["x"].dims[0].label = "row"
        file.create_dataset("plain", data=np.arange(108.0).reshape(SHAPE))
        file.create_dataset("table", data=np.zeros(5, [("a", "i4"), ("b", ">f8", (2,))]))
        file.create_dataset("one", data=3.0)
    return tmp_path


@st.composite
def keys(draw: st.DrawFn) -> tuple[Any, ...]:
    axes: list[Any] = []
    for length in SHAPE:
        start = draw(st.integers(0, length - 1))
        stop = draw(st.integers(start + 1, length))
        axes.append(draw(st.sampled_from([start, slice(start, stop, draw(st.integers(1, 4))), slice(None)])))
    return tuple(axes)


listed = st.lists(st.integers(0, 8), min_size=1, max_size=9, unique=True).map(sorted)
MANY = st.lists(keys(), min_size=1, max_size=30)


READS_COUNTED = """
import io, sys, h5py
class Counted(io.FileIO):
    count = 0
    def readinto(self, buffer):
        Counted.count += 1
        return super().readinto(buffer)
with Counted("many.h5") as raw, h5py.File(raw) as file:
    for k in range(0, 4000, 397):
        file["x"][k]
        print(Counted.count, file=sys.stderr)
"""


def test_recording_reads_nothing_that_the_program_does_not_read(tmp_path: Path) -> None:
    """Not even the index of an array's chunks: later calls would find it in memory, and seem faster than they are."""
    with h5py.File(tmp_path / "many.h5", "w") as file:
        file.create_dataset("x", data=np.arange(4000), chunks=(1,), compression="gzip")
    plain = subprocess.run([sys.executable, "-c", READS_COUNTED], cwd=tmp_path, capture_output=True, text=True)
    (tmp_path / "program.py").write_text(READS_COUNTED)
    done = traced(tmp_path, sys.executable, "program.py")
    numbers = [line for line in done.stderr.splitlines() if line.isdigit()]
    assert numbers == plain.stderr.split()
    assert len(numbers) == 11


@FEW
@given(asked=MANY, column=listed, seed=st.integers(0, 99))
def test_h5py(folder: Path, asked: list[Any], column: list[int], seed: int) -> None:
    points = np.random.default_rng(seed).random(SHAPE) < 0.2
    points[0, 0] = True
    everything = [*asked, np.s_[2:7, column], points]
    program = f"""
import h5py, numpy as np
file = h5py.File("a.nc")
for key in {asked!r}:
    file["x"][key]
file["x"][2:7, {column!r}]
file["x"][np.array({points.tolist()!r})]
with h5py.File("w.h5", "w") as new:
    made = new.create_dataset("y", data=np.ones({SHAPE}))
    for key in {asked!r}:
        made[key] = np.zeros({SHAPE})[key]
"""
    trace = traced_python(folder, program)
    assert trace.notes == []
    assert [one.operation for one in trace] == ["read"] * len(everything) + ["write"] * (len(asked) + 1)
    for access, key in zip(trace, [*everything, ..., *asked], strict=True):
        np.testing.assert_array_equal(mask(access), selected(key))
        assert access.nbytes == access.array.element_nbytes * int(mask(access).sum())


@FEW
@given(asked=MANY, column=listed)
def test_netcdf4(folder: Path, asked: list[Any], column: list[int]) -> None:
    pytest.importorskip("netCDF4", reason="not installed: pip install 'hyperslab[formats]'")
    program = f"""
import netCDF4, numpy as np
with netCDF4.Dataset("w.nc", "w") as new:
    new.createDimension("a", {SHAPE[0]}), new.createDimension("b", {SHAPE[1]})
    made = new.createVariable("y", "f4", ("a", "b"), zlib=True)
    made.set_auto_maskandscale(False)
    made[:] = np.ones({SHAPE}, "f4")
    for key in {asked!r}:
        made[key] = np.zeros({SHAPE})[key]
file = netCDF4.Dataset("w.nc")
file.set_auto_maskandscale(False)
for key in {asked!r}:
    file["y"][key]
file["y"][:, {column!r}]
"""
    trace = traced_python(folder, program)
    assert trace.notes == []
    writes, reads = ([one for one in trace if one.operation == operation] for operation in ("write", "read"))
    for access, key in zip(writes, [..., *asked], strict=True):
        np.testing.assert_array_equal(mask(access), selected(key))
    for access, key in zip(reads, asked, strict=False):
        np.testing.assert_array_equal(mask(access), selected(key))
    np.testing.assert_array_equal(union(reads[len(asked) :]), selected(np.s_[:, column]))
    assert {(one.array.library, one.array.array, one.array.filters) for one in trace} == {
        ("netCDF", "/y", ("shuffle", "deflate"))
    }


def test_xarray_and_dask(folder: Path) -> None:
    pytest.importorskip("dask", reason="not installed: pip install dask")
    pytest.importorskip("xarray", reason="not installed: pip install 'hyperslab[xarray]'")
    pytest.importorskip("netCDF4", reason="not installed: pip install 'hyperslab[formats]'")
    for engine in ("netcdf4", "h5netcdf"):
        program = f"""
import netCDF4, xarray
with netCDF4.Dataset("d.nc", "w") as new:
    new.createDimension("a", 12), new.createDimension("b", 9)
    new.createVariable("y", "f4", ("a", "b"))[:] = 1
found = xarray.open_dataset("d.nc", engine="{engine}", chunks=dict(a=5, b=9))
assert float(found["y"].sum()) == 108
"""
        trace = traced_python(folder, program)
        reads = [one for one in trace if one.operation == "read" and one.array.array == "/y"]
        blocks = [selected(np.s_[start : start + 5]) for start in (0, 5, 10)]
        found = sorted((mask(one) for one in reads), key=lambda one: int(one.argmax()))
        np.testing.assert_array_equal(found, blocks)
        assert {one.array.library for one in reads} == {"netCDF" if engine == "netcdf4" else "h5py"}


@pytest.mark.skipif(shutil.which("h5dump") is None, reason="not installed: apt install hdf5-tools")
@pytest.mark.parametrize(
    ("words", "key"),
    [
        ((), np.s_[:]), (("-s", "2,3", "-c", "4,5"), np.s_[2:6, 3:8]),
        (("-s", "0,1", "-S", "3,2", "-c", "4,3"), np.s_[::3, 1:7:2]),
    ],
)  # fmt: skip
def test_h5dump(folder: Path, words: tuple[str, ...], key: Any) -> None:
    done = traced(folder, "h5dump", "-d", "x", *words, "a.nc")
    assert done.returncode == 0, done.stderr
    trace = hs.Trace.open(folder / "run.trace")
    assert {(one.operation, one.array.array, one.array.library) for one in trace} == {("read", "/x", "HDF5")}
    np.testing.assert_array_equal(union(trace), selected(key))


NETCDF = """
import netCDF4
with netCDF4.Dataset("c.nc", "w") as new:
    new.createDimension("time", None), new.createDimension("lat", 4), new.createDimension("lon", 5)
    for name, kind in (("time", "f8"), ("lat", "f8"), ("lon", "f8")):
        made = new.createVariable(name, kind, (name,))
        made.units = dict(time="days since 2000-01-01", lat="degrees_north", lon="degrees_east")[name]
        made[:] = range(dict(time=6, lat=4, lon=5)[name])
    new.createVariable("y", "f4", ("time", "lat", "lon"), zlib=True)[:] = 1
"""


@pytest.mark.parametrize(
    ("program", "words", "key"),
    [
        ("ncks", ("-O", "-v", "y", "-d", "time,2,4", "-d", "lon,1,3", "c.nc", "out.nc"), np.s_[2:5, :, 1:4]),
        ("cdo", ("-s", "-f", "nc4", "timmean", "-selname,y", "c.nc", "out.nc"), np.s_[:]),
    ],
)
def test_nco_and_cdo(folder: Path, program: str, words: tuple[str, ...], key: Any) -> None:
    pytest.importorskip("netCDF4", reason="not installed: pip install 'hyperslab[formats]'")
    if shutil.which(program) is None:
        pytest.skip(f"not installed: apt install {'nco' if program == 'ncks' else program}")
    traced_python(folder, NETCDF)
    done = traced(folder, program, *words)
    assert done.returncode == 0, done.stderr
    trace = hs.Trace.open(folder / "run.trace")
    reads = [one for one in trace if one.operation == "read" and one.array.array == "/y"]
    np.testing.assert_array_equal(union(reads, (6, 4, 5)), selected(key, (6, 4, 5)))
    assert {one.array.library for one in reads} == {"netCDF"}
    assert any(one.operation == "write" and Path(one.array.file).name.startswith("out.nc") for one in trace)


def test_facts_of_an_array(folder: Path) -> None:
    program = """
import h5py, numpy as np
file = h5py.File("./a.nc", rdcc_nbytes=12345, rdcc_nslots=11, rdcc_w0=0.5)
file["x"].astype("f8")[3]
file["table"][:]
file["table"]["a"]
file["one"][()]
file["x"].id.read_direct_chunk((8, 8))
file["x"][0:0]
with h5py.File("w.h5", "w") as new:
    made = new.create_dataset("grown", (2, 3), maxshape=(None, 3), chunks=(2, 3), dtype="c8")
    made[1] = 1j
    made.resize((4, 3))
    made[3] = 1j
    new.create_dataset("flags", data=[True, False])
    new.create_dataset("text", data=np.array([b"ab"]))
    new.create_dataset("words", data=["ab", "c"])
    made.id.write_direct_chunk((2, 0), bytes(48))
"""
    trace = traced_python(folder, program)
    first, whole, field, one, chunk, nothing, *written = trace
    array = first.array
    assert (array.library, array.file, array.array) == ("h5py", str(folder / "a.nc"), "/x")
    assert (array.shape, array.chunks, array.dtype, array.filters) == (SHAPE, (4, 4), "<i4", ("deflate",))
    assert (array.cache_nbytes, array.cache_slots, array.cache_w0, array.layout) == (12345, 11, 0.5, "chunked")
    assert (first.memory_type, first.nbytes, first.has_failed) == ("float64", 36, False)
    assert array.stored_nbytes is not None
    assert array.stored_nbytes > 0
    assert whole.array.dtype == "[('a', '<i4'), ('b', ('>f8', (2,)))]"
    assert field.memory_type == "[('a', '<i4')]"
    assert (one.array.shape, one.selection_kind, one.nbytes) == ((), "all", 8)
    assert (chunk.selection, chunk.nbytes) == ([8, 1, 4, 1, 8, 1, 1, 1], 16)
    assert (nothing.selection_kind, nothing.nbytes) == ("nothing", 0)
    assert [one.array.shape for one in written] == [(2, 3), (4, 3), (2,), (1,), (2,), (4, 3)]
    assert [one.array.dtype for one in written] == ["<c8", "<c8", "|b1", "|S2", "object", "<c8"]
    assert [one.memory_type for one in written] == ["complex64", "complex64", "bool", "|S2", "object", ""]
    assert written[-1].selection == [2, 1, 2, 1, 0, 1, 3, 1]


def test_one_access_is_recorded_once(folder: Path) -> None:
    """Our engine, zarr and h5py in one program: h5py reads for our engine what that cannot read itself."""
    program = """
import h5py, numpy as np, hyperslab as hs
with h5py.File("w.h5", "w") as new:
    new.create_dataset("words", data=["ab", "c"])
    new.create_dataset("x", data=[1, 2, 3])
found = hs.open("w.h5")
found["words"][:], found["x"][:]
with hs.record() as inner:
    h5py.File("w.h5")["x"][1:2]
assert len(inner) == 1
"""
    trace = traced_python(folder, program)
    told = [(one.operation, one.array.library, one.array.array) for one in trace]
    written = [("write", "h5py", "/words"), ("write", "h5py", "/x")]
    assert told == [*written, ("read", "hyperslab", "/words"), ("read", "hyperslab", "/x"), ("read", "h5py", "/x")]


def test_errors_are_those_of_libhdf5(folder: Path) -> None:
    program = """
import h5py, numpy as np
with h5py.File("a.nc") as file:
    info = file["x"].id.get_chunk_info(0)
with open("a.nc", "r+b") as file:
    file.seek(info.byte_offset), file.write(bytes(info.size))
file = h5py.File("a.nc")
for key in ((0, 0), (slice(2), 1), ...):
    try:
        file["x"][key]
    except Exception as error:
        print(type(error).__name__, error)
"""
    (folder / "program.py").write_text(program)
    content = (folder / "a.nc").read_bytes()
    alone = subprocess.run([sys.executable, "program.py"], cwd=folder, capture_output=True, text=True)
    (folder / "a.nc").write_bytes(content)
    done = traced(folder, sys.executable, "program.py")
    assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout)
    assert "filter" in done.stdout
    trace = hs.Trace.open(folder / "run.trace")
    assert [one.has_failed for one in trace] == [True] * len(done.stdout.splitlines())


def test_types_and_arrays_by_turns(folder: Path) -> None:
    """The recorder asks as little as it can. What it keeps of an access must not be taken for another one."""
    pytest.importorskip("netCDF4", reason="not installed: pip install 'hyperslab[formats]'")
    program = """
import h5py, netCDF4
with netCDF4.Dataset("n.nc", "w") as new:
    new.createDimension("a", 12), new.createDimension("b", 9)
    new.createVariable("y", "i2", ("a", "b"))[:] = 1
file, other = h5py.File("a.nc"), netCDF4.Dataset("n.nc")
for turn in range(3):
    for dtype in ("i4", "f8", "i2", ">f4", "u1", "f8"):
        file["x"].astype(dtype)[2:5, 1:4]
        file["plain"].astype(dtype)[turn, 2]
    file["plain"][1:, ::2]
    other["y"][turn]
"""
    reads = [one for one in traced_python(folder, program) if one.operation == "read"]
    each = []
    for name in ("int32", "float64", "int16", ">f4", "uint8", "float64"):
        each += [("/x", name, np.s_[2:5, 1:4]), ("/plain", name, "element")]
    each += [("/plain", "float64", np.s_[1:, ::2]), ("/y", "int16", "row")]
    expected = [(array, name, key, turn) for turn in range(3) for array, name, key in each]
    for access, (array, name, key, turn) in zip(reads, expected, strict=True):
        assert (access.array.array, access.memory_type) == (array, name)
        key = {"element": (turn, 2), "row": (turn,)}.get(key, key) if isinstance(key, str) else key
        np.testing.assert_array_equal(mask(access), selected(key))


def test_a_selection_that_is_in_the_properties_is_missing_and_not_everything(folder: Path) -> None:
    program = """
import ctypes, sys, h5py, numpy as np
array = h5py.File("a.nc")["plain"]
with open("/proc/self/maps") as maps:
    own = ctypes.CDLL(next(line.split()[-1] for line in maps if "/libhdf5-" in line or "/libhdf5.so" in line))
if not hasattr(own, "H5Pset_dataset_io_hyperslab_selection"):
    sys.exit("this libhdf5 is too old")
properties, memory = h5py.h5p.create(h5py.h5p.DATASET_XFER), h5py.h5s.create_simple((6,))
numbers = [(ctypes.c_uint64 * 2)(*pair) for pair in ((1, 2), (1, 1), (2, 3), (1, 1))]
assert own.H5Pset_dataset_io_hyperslab_selection(ctypes.c_int64(properties.id), 2, 0, *numbers) >= 0
out = np.zeros(6)
words = (array.id.id, h5py.h5t.NATIVE_DOUBLE.id, memory.id, 2, properties.id, out.ctypes.data)
assert ctypes.CDLL(None).H5Dread(*map(ctypes.c_int64, words)) >= 0
assert out.tolist() == [11, 12, 13, 20, 21, 22], out
"""
    (folder / "program.py").write_text(program)
    done = traced(folder, sys.executable, "program.py")
    if "too old" in done.stderr:
        pytest.skip("this libhdf5 has no selections in properties")
    assert done.returncode == 0, done.stderr
    trace = hs.Trace.open(folder / "run.trace")
    assert len(trace) == 0
    assert "there were 1" in trace.notes[0]


def test_numbers_that_a_c_program_has_copies_of(folder: Path) -> None:
    """gcc makes programs so by default: libhdf5 then looks for its own types in the program, and so must we."""
    libraries = sorted(Path("/usr/lib").glob("*/libhdf5_serial.so.*"))
    if shutil.which("gcc") is None or not libraries:
        pytest.skip("no C compiler, or no libhdf5 of the system: tests/system-packages.txt")
    (folder / "a.c").write_text("""
        long H5Fopen(const char *, unsigned, long), H5Dopen2(long, const char *, long);
        int H5open(void), H5Dread(long, long, long, long, long, void *);
        extern long H5T_NATIVE_DOUBLE_g;
        static double out[12 * 9];
        int main(void) {
            H5open();
            return H5Dread(H5Dopen2(H5Fopen("a.nc", 0, 0), "x", 0), H5T_NATIVE_DOUBLE_g, 0, 0, 0, out);
        }
    """)
    subprocess.run(["gcc", "-w", "-o", folder / "program", folder / "a.c", libraries[0]], check=True)
    done = traced(folder, "./program")
    assert (done.returncode, "HDF5" in done.stderr) == (0, False), done.stderr
    (access,) = hs.Trace.open(folder / "run.trace")
    assert (access.array.array, access.memory_type) == ("/x", "float64")


@pytest.mark.parametrize("has_plugins", [False, True])
def test_the_filters_that_the_program_has_are_known(folder: Path, has_plugins: bool) -> None:
    """Also those that it imports after its first reads; and each array is described once all the same."""
    pytest.importorskip("netCDF4")  # it sets HDF5_PLUGIN_PATH, and recording must load no plugin from there
    if has_plugins:
        pytest.importorskip("hdf5plugin")
    program = f"""
import h5py
file = h5py.File("a.nc")
file["x"][0]
if {has_plugins}:
    import hdf5plugin
again = h5py.File("a.nc", "r")
for name in ("plain", "one", "table", "x"):
    again[name][()]
"""
    trace = traced_python(folder, program)
    assert trace.notes == []
    assert sorted(one.array for one in trace.arrays) == ["/one", "/plain", "/table", "/x"]
    known = {number for one in trace.arrays for number in one.decodes or ()}
    assert {1, 2, 3, 32000} <= known
    assert (32015 in known, 32001 in known) == (has_plugins, has_plugins)
    trace.save(folder / "again.trace")
    assert hs.Trace.open(folder / "again.trace").arrays == trace.arrays


@pytest.mark.skipif(shutil.which("h5dump") is None, reason="not installed: apt-get install hdf5-tools")
def test_asking_for_filters_prints_nothing(folder: Path) -> None:
    done = traced(folder, "h5dump", "-d", "/x", "a.nc")
    assert done.returncode == 0
    assert "HDF5-DIAG" not in done.stderr

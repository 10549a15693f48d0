"""HDF5 forgets the chunks of an array that is closed: traces count those that it decodes in the loops people write."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_traces import array_of, made_trace
from preloaded_programs import IS_PRELOADED, traced_python

import hyperslab as hs
from hyperslab.advise.traced_demands import open_trace, traced_array, traced_demand
from hyperslab.model.counting import openings
from hyperslab.model.libraries import LIBRARIES
from hyperslab.trace import summaries
from hyperslab.trace.recording.log import FAILED, FILE_REOPENED, REOPENED
from hyperslab.trace.summaries import MOST_ROWS, ArraySummary, summaries_of

h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")
pytest.importorskip("pyarrow", reason="not installed: pip install 'hyperslab[report]'")
is_preloaded = pytest.mark.skipif(not IS_PRELOADED, reason="there is no libhyperslab_preload.so: only Linux has it")
SHAPE, CHUNKS, NUMBER = (24, 8, 8), (6, 8, 8), 300
FILTER = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
/* Changes nothing, and appends a byte to the file $DECODED whenever libhdf5 decodes a chunk. */
static size_t filter(unsigned flags, size_t count, const unsigned *values, size_t nbytes, size_t *size, void **buffer) {
    if (flags & 0x100) {
        int file = open(getenv("DECODED"), O_WRONLY | O_APPEND | O_CREAT, 0600);
        if (file < 0 || write(file, "x", 1) != 1) return 0;
        close(file);
    }
    return nbytes;
}
static const struct {
    int version, number;
    unsigned encodes, decodes;
    const char *name;
    void *can_apply, *set_local;
    size_t (*filter)(unsigned, size_t, const unsigned *, size_t, size_t *, void **);
} told = {1, 300, 1, 1, "counted", 0, 0, filter};
int H5PLget_plugin_type(void) { return 0; }
const void *H5PLget_plugin_info(void) { return &told; }
"""
WRITTEN = f"""
import h5py, numpy as np
with h5py.File("a.h5", "w") as file:
    for name in ("vol", "other"):
        stored = np.arange({int(np.prod(SHAPE))}, dtype="i4").reshape({SHAPE})
        file.create_dataset(name, data=stored, chunks={CHUNKS}, compression={NUMBER})
    for axis, length in zip("abc", {SHAPE}):
        file[axis] = np.arange(length)
        file[axis].make_scale(axis)
    for axis, name in enumerate("abc"):
        file["vol"].dims[axis].attach_scale(file[name])
"""
TABLE = """
import h5py, numpy, pandas
pandas.DataFrame({"x": numpy.arange(4000.0)}).to_hdf("plain.h5", key="df", format="table")
with h5py.File("plain.h5", "r+") as file:
    old = file["df/table"]
    content = old[...]
    del file["df/table"]
    new = file["df"].create_dataset("table", data=content, chunks=(512,), maxshape=(None,), compression=300)
    for name in old.attrs:
        attribute = h5py.h5a.open(old.id, name.encode())
        kind, space = attribute.get_type(), attribute.get_space()
        copy = h5py.h5a.create(new.id, name.encode(), kind, space)
        if space.shape is not None:
            content = numpy.zeros(space.shape, f"V{kind.get_size()}")
            attribute.read(content, kind)
            copy.write(content, kind)
"""


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files whose chunks are counted when they are decoded."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("counted")
    (folder / "counted.c").write_text(FILTER)
    made = [compiler, "-shared", "-fPIC", "-o", "libcounted.so", "counted.c"]
    subprocess.run(made, cwd=folder, check=True, timeout=240)
    _run(folder, WRITTEN)
    return folder


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "HDF5_PLUGIN_PATH": str(folder), "DECODED": str(folder / "decoded")}


def _run(folder: Path, program: str) -> None:
    subprocess.run([sys.executable, "-c", program], cwd=folder, env=_environment(folder), check=True, timeout=240)


def opened(name: str, loop: str, arrays: int, files: int = 1, decoded: int | None = None) -> object:
    return pytest.param(loop, arrays, files, decoded, id=name)


HALF = "held = file['vol']\nfor k in range(24):\n file['vol'][k]\n if k == 11: del held"
H5PY = "import h5py\nfile = h5py.File('a.h5')\n"
LOOPS = [
    opened("opened for each", H5PY + "for k in range(24): file['vol'][k]", 24, decoded=24),
    opened("opened once", H5PY + "array = file['vol']\nfor k in range(24): array[k]", 1, decoded=4),
    opened("before the last one is closed", H5PY + "for k in range(24):\n array = file['vol']\n array[k]", 1),
    opened("held elsewhere", H5PY + "held = file['vol']\nfor k in range(24): file['vol'][k]", 1),
    opened("held half of the time", H5PY + HALF, 13),
    opened("another one is held", H5PY + "held = file['other']\nfor k in range(24): file['vol'][k]", 24),
    opened("by another name", H5PY + "for k in range(24): file['/'].get('vol')[k]", 24),
    opened("two in turn", H5PY + "for k in range(6): file['vol'][k]; array = file['other']; array.shape", 6),
    opened("a file for each", H5PY + "file.close()\nfor k in range(24): h5py.File('a.h5')['vol'][k]", 24, 24),
    opened("refreshed", H5PY + "array = file['vol']\nfor k in range(24): array.refresh(); array[k]", 24),
    opened("its file is held", H5PY + "for k in range(24):\n with h5py.File('a.h5') as one: one['vol'][k]", 24, 1),
    opened("in threads", H5PY + "from concurrent.futures import ThreadPoolExecutor as Pool\n"
           "with Pool(1) as pool: list(pool.map(lambda k: file['vol'][k], range(24)))", 24),
    opened("by columns", H5PY + "for k in range(8): file['vol'][:, k]", 8, decoded=32),
]  # fmt: skip


# Each loop has a folder of its own, with a file and a count of decoded chunks, and nothing left open by others.
IN_TURN = """
import gc, os, pathlib
for place in sorted(pathlib.Path("loops").iterdir()):
    place = place.resolve()
    os.chdir(place)
    os.environ["DECODED"] = str(place / "decoded")
    exec((place / "loop.py").read_text(), {})
    gc.collect()
    os.chdir(place.parent.parent)
"""


def decoded_and_told_by_each(folder: Path, programs: list[str], name: str, file: str) -> list[tuple[int, ArraySummary]]:
    """For each program that reads a file: the chunks that libhdf5 decoded, and what the trace says of an array."""
    shutil.rmtree(folder / "loops", ignore_errors=True)
    places = [folder / "loops" / f"{number:02}" for number in range(len(programs))]
    for place, program in zip(places, programs, strict=True):
        place.mkdir(parents=True)
        shutil.copy(folder / file, place)
        (place / "loop.py").write_text(program)
    trace = traced_python(folder, IN_TURN, env=_environment(folder))
    assert trace.notes == []
    told = {one.array.file: one for one in summaries_of(trace) if one.array.array == name}
    assert len(told) == len(programs)
    return [((place / "decoded").stat().st_size, told[str(place / file)]) for place in places]


@pytest.fixture(scope="module")
def looped(counted: Path) -> dict[str, tuple[int, ArraySummary]]:
    """For each loop the chunks that libhdf5 decoded, and what the trace says."""
    programs = [str(loop.values[0]) for loop in LOOPS]
    return dict(zip(programs, decoded_and_told_by_each(counted, programs, "/vol", "a.h5"), strict=True))


@is_preloaded
@pytest.mark.parametrize(("program", "arrays", "files", "decoded"), LOOPS)
def test_h5py_decodes_as_many_chunks_as_the_trace_says(
    looped: dict[str, tuple[int, ArraySummary]], program: str, arrays: int, files: int, decoded: int | None
) -> None:
    counts, told = looped[program]
    assert (told.opening_count, told.file_opening_count) == (arrays, files)
    assert told.decoded_count == counts
    assert decoded in (None, counts)


@is_preloaded
def test_netcdf4_keeps_its_arrays_open_as_long_as_the_file(counted: Path) -> None:
    pytest.importorskip("netCDF4", reason="not installed: pip install 'hyperslab[formats]'")
    loops = [
        "file = netCDF4.Dataset('a.h5')\nfor k in range(24): file['vol'][k]",
        "for k in range(24):\n with netCDF4.Dataset('a.h5') as file: file['vol'][k]",
    ]
    programs = [f"import netCDF4\n{loop}" for loop in loops]
    found = decoded_and_told_by_each(counted, programs, "/vol", "a.h5")
    assert [(told.opening_count, told.file_opening_count) for _, told in found] == [(1, 1), (24, 24)]
    assert [told.decoded_count for _, told in found] == [counts for counts, _ in found] == [4, 24]


@is_preloaded
@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
def test_xarray_with_one_file_or_with_one_for_each_read(counted: Path, engine: str) -> None:
    for name in ("xarray", "netCDF4" if engine == "netcdf4" else engine):
        pytest.importorskip(name, reason=f"not installed: pip install {name}")
    opening = f"xarray.open_dataset('a.h5', engine='{engine}')"
    begin = f"import xarray\ndata = {opening}\n"
    once = begin + "for k in range(24): data.vol[k].values"
    again = begin + f"for k in range(24):\n with {opening} as data: data.vol[k].values"
    found = decoded_and_told_by_each(counted, [once, again], "/vol", "a.h5")
    assert [told.decoded_count for _, told in found] == [counts for counts, _ in found]
    assert found[0][0] >= 4
    assert found[1][0] >= 24


@is_preloaded
def test_pandas_with_one_store_or_with_one_for_each_read(counted: Path) -> None:
    pytest.importorskip("pandas", reason="not installed: pip install pandas")
    pytest.importorskip("tables", reason="not installed: pip install tables")
    _run(counted, TABLE)
    once = "with pandas.HDFStore('plain.h5', 'r') as store:\n"
    once += " for k in range(8): store.select('df', start=9 * k, stop=9 * k + 9)"
    again = "for k in range(8): pandas.read_hdf('plain.h5', 'df', start=9 * k, stop=9 * k + 9)"
    programs = [f"import pandas\n{loop}" for loop in (once, again)]
    found = decoded_and_told_by_each(counted, programs, "/df/table", "plain.h5")
    assert [told.decoded_count for _, told in found] == [counts for counts, _ in found] == [1, 8]
    assert [told.file_opening_count for _, told in found] == [1, 8]


RECORDED = [
    ("for k in range(24): file['vol'][k]", 24),
    ("array = file['vol']\nfor k in range(24): array[k]", 1),
    ("for k in range(24):\n array = file['vol']\n array[k]", 1),
    ("held = file['vol']\nfor k in range(24): file['vol'][k]", 1),
    (HALF, 13),
    ("held = file['other']\nfor k in range(24): file['vol'][k]", 24),
]


@pytest.mark.parametrize(("loop", "arrays"), RECORDED)
def test_what_record_says_of_a_loop_in_this_process(tmp_path: Path, loop: str, arrays: int) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name in ("vol", "other"):
            file.create_dataset(name, data=np.zeros(SHAPE), chunks=CHUNKS)
    with h5py.File(tmp_path / "a.h5") as file, hs.record() as trace:
        exec(loop, {"file": file})
    (told,) = summaries_of(trace)
    assert (told.opening_count, told.file_opening_count) == (arrays, 1)
    assert told.decoded_count == {1: 4, 13: 14, 24: 24}[arrays]


def test_record_sees_that_a_file_is_opened_again(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("vol", data=np.zeros(SHAPE), chunks=CHUNKS)
    with hs.record() as trace:
        for k in range(5):
            with h5py.File(tmp_path / "a.h5") as file:
                file["vol"][k]
    (told,) = summaries_of(trace)
    assert (told.opening_count, told.file_opening_count, told.decoded_count) == (5, 5, 5)
    trace.save(tmp_path / "run.trace")
    assert [one.reopens_file for one in hs.Trace.open(tmp_path / "run.trace")] == [False, True, True, True, True]


def test_a_zarr_array_that_is_opened_for_each_read(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr", reason="not installed: pip install zarr")
    zarr.open_group(str(tmp_path / "a.zarr"), mode="w").create_array("vol", shape=SHAPE, chunks=CHUNKS, dtype="i4")
    with hs.record() as trace:
        group = zarr.open_group(str(tmp_path / "a.zarr"), mode="r")
        once = group["vol"]
        for k in range(5):
            once[k]
        for k in range(3):
            group["vol"][k]
    assert [one.reopens_array for one in trace] == [False] * 5 + [True] * 3
    (told,) = summaries_of(trace)
    assert (told.opening_count, told.file_opening_count, told.decoded_count) == (4, 1, 8)


def test_each_process_has_a_cache_of_its_own() -> None:
    """Two of them read the same rows by turns, and the second one opens the array again in between."""
    array = array_of(SHAPE, CHUNKS, cache_nbytes=1 << 20, cache_slots=521)
    trace = made_trace([np.s_[k // 2] for k in range(48)], array)
    trace.columns["process"][:] = np.arange(48) % 2
    (told,) = summaries_of(trace)
    assert (told.process_count, told.opening_count, told.file_opening_count, told.decoded_count) == (2, 2, 2, 8)
    trace.columns["flags"][5] = REOPENED
    (told,) = summaries_of(trace)
    assert (told.process_count, told.opening_count, told.file_opening_count, told.decoded_count) == (2, 3, 2, 9)
    one = open_trace(trace)
    demand = traced_demand(one, one.summaries[0], traced_array(one.summaries[0]))
    assert [(place, step.reopens) for place, step in enumerate(demand.steps) if step.reopens] == [(24, True)]
    assert [place for place, step in enumerate(demand.steps) if step.reopens_array] == [26]
    assert demand.is_opened_again
    assert [place for place, step in enumerate(demand.kept_open()) if step.reopens or step.reopens_array] == [24]
    trace.columns["flags"][5] = 0
    one = open_trace(trace)
    assert not traced_demand(one, one.summaries[0], traced_array(one.summaries[0])).is_opened_again


def test_an_opening_counts_also_if_the_access_after_it_failed() -> None:
    array = array_of(SHAPE, CHUNKS, cache_nbytes=1 << 20, cache_slots=521)
    trace = made_trace([np.s_[0], np.s_[0], np.s_[0]], array)
    trace.columns["flags"][1] = FAILED | REOPENED | FILE_REOPENED
    one = open_trace(trace)
    steps = traced_demand(one, one.summaries[0], traced_array(one.summaries[0])).steps
    assert [step.reopens for step in steps] == [False, True]


def priced_openings(trace: hs.Trace) -> dict[str, dict[str, float]]:
    """By array: how often it is opened, and how many of these times its file is open already."""
    one = open_trace(trace)
    demands = {each.array.array: traced_demand(one, each, traced_array(each)) for each in one.summaries}
    return {name: openings(demand.steps, LIBRARIES["hdf5"]) for name, demand in demands.items()}


def test_an_opening_of_a_file_is_paid_once_for_all_its_arrays(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name in ("t", "u", "v"):
            file.create_dataset(name, data=np.zeros(SHAPE), chunks=CHUNKS)
    shutil.copy(tmp_path / "a.h5", tmp_path / "b.h5")
    with hs.record() as trace:
        for k in range(5):
            with h5py.File(tmp_path / "a.h5") as file:
                file["t"][k]
                if k % 2:
                    file["u"][k]
                file["v"][k]
                file["v"][k]
            with h5py.File(tmp_path / "b.h5") as file:
                file["v" if k else "t"][k]
    trace.arrays[:] = [
        replace(one, array=one.array if "a.h5" in one.file else one.array.upper()) for one in trace.arrays
    ]
    found = priced_openings(trace)
    assert found["/t"] == {"n_array": 5.0, "n_again": 0.0}
    assert found["/u"] == {"n_array": 2.0, "n_again": 2.0}
    assert found["/v"] == {"n_array": 10.0, "n_again": 10.0}
    files = {name: one["n_array"] - one["n_again"] for name, one in found.items()}
    assert sum(files[name] for name in ("/t", "/u", "/v")) == 5
    # The second file was opened for /T, and 4 times for /V: the first of these may have been the same opening.
    assert files["/T"] + files["/V"] == 4


def test_each_process_opens_a_file_for_itself() -> None:
    """Two processes read two arrays of a file, which the second one opens again."""
    array = array_of(SHAPE, CHUNKS, cache_nbytes=1 << 20, cache_slots=521)
    trace = made_trace([np.s_[k] for k in range(8)], array)
    trace.arrays.append(replace(array, array="/other"))
    trace.columns["process"][:] = [0, 0, 1, 1, 1, 1, 1, 1]
    trace.columns["array"][:] = [0, 1, 1, 0, 1, 0, 0, 1]
    trace.columns["flags"][4:6] = REOPENED | FILE_REOPENED
    found = priced_openings(trace)
    assert found[array.array] == {"n_array": 3.0, "n_again": 2.0}
    assert found["/other"] == {"n_array": 3.0, "n_again": 1.0}


def test_stretches_of_a_long_trace_keep_the_openings() -> None:
    array = array_of(SHAPE, CHUNKS, cache_nbytes=1 << 20, cache_slots=521)
    trace = made_trace([np.s_[k % 24] for k in range(24_000)], array)
    trace.columns["flags"][::3] = REOPENED
    one = open_trace(trace)
    assert one.summaries[0].opening_count == 8000
    demand = traced_demand(one, one.summaries[0], traced_array(one.summaries[0]))
    assert len(demand.steps) == 20_000
    assert sum(step.reopens_array for step in demand.steps) == pytest.approx(20_000 / 3, abs=20)


@is_preloaded
def test_an_array_that_grows_and_is_opened_for_each_step(counted: Path) -> None:
    program = """
import h5py
with h5py.File("growing.h5", "w") as file:
    file.create_dataset("x", shape=(0, 8), maxshape=(None, 8), chunks=(4, 8), dtype="f4")
    for k in range(8):
        file["x"].resize(k + 1, 0)
        file["x"][k] = k
for k in range(8):
    with h5py.File("growing.h5", "r+") as file:
        file["x"].resize(9 + k, 0)
        file["x"][8 + k] = k
"""
    trace = traced_python(counted, program)
    flags = [(one.reopens_array, one.reopens_file) for one in trace]
    assert flags == [(False, False), *[(True, False)] * 7, *[(True, True)] * 8]


def test_accesses_that_nobody_looks_at_take_little_memory_to_summarize() -> None:
    """Of a million, 200,000 are looked at; the others only say how often what was opened."""

    def peak_nbytes(count: int) -> int:
        trace = made_trace([np.s_[0]], array_of(SHAPE, CHUNKS, cache_nbytes=1 << 20, cache_slots=521))
        columns = {name: np.repeat(column, count) for name, column in trace.columns.items()}
        long = hs.Trace(trace.arrays, columns, np.arange(count + 1) * 12, np.tile(trace.numbers, count))
        tracemalloc.start()
        try:
            summaries_of(long)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    more = 600_000
    assert peak_nbytes(MOST_ROWS + more) - peak_nbytes(MOST_ROWS) < 25 * more, "it was 51 bytes for each"


def test_the_time_of_a_long_trace_is_summed_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    trace = made_trace([np.s_[k % 24] for k in range(500)], array_of(SHAPE, CHUNKS))
    trace.columns["start_ns"][:] = np.sort(rng.integers(0, 10**9, 500))
    trace.columns["duration_ns"][:] = rng.integers(0, 5 * 10**6, 500)
    trace.columns["operation"][:] = rng.integers(0, 2, 500)
    whole, (reads, writes) = summaries.busy_seconds(trace), summaries.timeline(trace)
    busy, until = 0, 0
    for start, duration in zip(trace.columns["start_ns"].tolist(), trace.columns["duration_ns"].tolist(), strict=True):
        busy += max(start + duration - max(start, until), 0)
        until = max(until, start + duration)
    assert whole == busy / 1e9
    monkeypatch.setattr(summaries, "BLOCK", 7)
    assert summaries.busy_seconds(trace) == whole
    np.testing.assert_allclose(summaries.timeline(trace), (reads, writes), atol=1e-9)
    spent = [trace.columns["duration_ns"][trace.columns["operation"] == kind].sum() / 1e9 for kind in (0, 1)]
    np.testing.assert_allclose([sum(reads), sum(writes)], spent, atol=1e-6)

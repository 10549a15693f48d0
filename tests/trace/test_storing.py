"""Raw logs and Parquet files: what was recorded is what is read, whole, cut off, damaged or of another version."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hyperslab as hs
from command_line import run_python
from hyperslab.errors import NotATrace
from hyperslab.trace import selection, storing
from hyperslab.trace.raw_logs import read_logs, say_program
from hyperslab.trace.recording import log as raw
from hyperslab.trace.recording.log import Log, clock
from hyperslab.trace.summaries import summaries_of
from hyperslab.trace.table import COLUMNS, AccessTable, TracedArray
from hyperslab.trace.trace import Trace

ARRAY = {"library": "h5py", "file": "/a.h5", "array": "/x", "shape": [100, 50], "chunks": [10, 10], "dtype": "<f4",
         "element_nbytes": 4, "filters": ["deflate"]}  # fmt: skip


def write_log(folder: Path, count: int = 20) -> Path:
    folder.mkdir(exist_ok=True)
    log = Log(str(folder))
    number = log.array(ARRAY)
    for k in range(count):
        start = clock()
        log.access((start, start + 5), number, k % 2, (raw.HYPERSLAB, [k, 1, 2, 1, 0, 3, 4, 1]), 32, "float32")
    log.close()
    say_program(folder, {"seconds": 1.0})
    return next(folder.glob("*.log"))


def equal(left: AccessTable, right: AccessTable) -> bool:
    return (
        left.arrays == right.arrays
        and all(np.array_equal(left.columns[name], right.columns[name]) for name in COLUMNS)
        and [one.selection for one in left] == [one.selection for one in right]
        and (left.memory_types, left.notes, left.program) == (right.memory_types, right.notes, right.program)
    )


def test_neither_saving_nor_opening_a_trace_imports_pandas(tmp_path: Path) -> None:
    """It took `hyperslab trace` longer than all the rest, because pyarrow asks whether a list is a series."""
    write_log(tmp_path / "logs")
    code = (
        "import sys\nfrom hyperslab.trace.trace import Trace\n"
        "Trace.open(sys.argv[1]).save(sys.argv[2])\nTrace.open(sys.argv[2])\nassert 'pyarrow' in sys.modules\n"
        "assert 'pandas' not in sys.modules\n"
    )
    done = run_python(code, tmp_path / "logs", tmp_path / "run.trace", modules=("numpy",))
    assert done.returncode == 0, done.stderr.decode()


def test_parquet_gives_back_what_the_log_has(tmp_path: Path) -> None:
    write_log(tmp_path / "logs")
    trace = Trace.open(tmp_path / "logs")
    trace.save(tmp_path / "run.trace")
    assert equal(Trace.open(tmp_path / "run.trace"), trace)
    assert (trace[3].operation, trace[3].selection, trace[3].selection_kind) == (
        "write",
        [3, 1, 2, 1, 0, 3, 4, 1],
        "hyperslab",
    )
    assert trace.arrays == [TracedArray.of(ARRAY)]
    assert trace.is_complete


def test_other_tools_read_the_parquet_file(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="not installed: pip install 'hyperslab[report]'")
    write_log(tmp_path / "logs")
    Trace.open(tmp_path / "logs").save(tmp_path / "run.trace")
    (first, *_) = parquet.read_table(tmp_path / "run.trace").to_pylist()
    assert (first["file"], first["name"], first["shape"], first["chunks"]) == ("/a.h5", "/x", "100x50", "10x10")
    assert (first["operation_name"], first["memory_dtype"], first["filters"]) == ("read", "float32", "deflate")


def test_an_empty_trace_is_a_trace(tmp_path: Path) -> None:
    Trace().save(tmp_path / "run.trace")
    assert len(Trace.open(tmp_path / "run.trace")) == 0


@pytest.fixture(scope="module")
def whole_log(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write_log(tmp_path_factory.mktemp("logs")).read_bytes()


@given(data=st.data())
def test_a_log_that_is_cut_anywhere_is_read_up_to_there(whole_log: bytes, data: st.DataObject) -> None:
    import tempfile

    end = data.draw(st.integers(0, len(whole_log) - 1))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "1.log").write_bytes(whole_log[:end])
        say_program(Path(folder), {"seconds": 1.0})
        trace = read_logs(Path(folder))
    assert [one.selection[0] for one in trace] == list(range(len(trace)))
    record = raw.RECORD.size + raw.ACCESS.size + 8 * 8
    record += -record % raw.ALIGNMENT
    assert len(trace) >= 20 - (len(whole_log) - end + record - 1) // record
    assert trace.notes or len(trace) == 20


@given(data=st.data())
def test_a_damaged_log_raises_no_error_but_ours(whole_log: bytes, data: st.DataObject) -> None:
    import tempfile

    content = bytearray(whole_log)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "1.log").write_bytes(content)
        try:
            trace = Trace.open(Path(folder))
        except NotATrace:
            return
        for access in trace:
            assert access.array in trace.arrays
        assert json.dumps([one.to_dict() for one in summaries_of(trace)])


def test_selections_outside_of_their_array_are_left_out(tmp_path: Path) -> None:
    log = Log(str(tmp_path))
    number = log.array(ARRAY)
    good = [
        (raw.ALL, []),
        (raw.POINTS, [99, 49]),
        (raw.LISTS, [0, 0, 99, 2, 1, 2, 3, 49]),
        (raw.BOXES, [0, 0, 100, 50]),
    ]
    bad = [
        (raw.HYPERSLAB, [0, 1, 1 << 61, 1, 0, 1, 1, 1]),
        (raw.HYPERSLAB, [-1, 1, 1, 1, 0, 1, 1, 1]),
        (raw.POINTS, [100, 0]),
        (raw.BOXES, [0, 0, 100, 51]),
        (raw.LISTS, [0, 0, 100, 2, 1, 1, 0]),
        (raw.LISTS, [1, 9, 0, 0]),
    ]
    for one in [*bad, *good]:
        log.access((clock(), clock()), number, 0, one, 4)
    log.close()
    say_program(tmp_path, {})
    trace = Trace.open(tmp_path)
    assert [(access.selection_kind, access.selection) for access in trace] == [(selection.NAMES[k], n) for k, n in good]
    assert trace.notes == ["6 accesses make no sense and are left out: the trace is damaged"]


def test_an_absurd_array_takes_no_time() -> None:
    array = TracedArray("h5py", "/a.h5", "/x", (1 << 40, 1 << 20), (1, 1), cache_nbytes=100, cache_slots=5)
    columns = {name: np.zeros(2, dtype) for name, dtype in COLUMNS.items()}
    columns["kind"][1] = raw.HYPERSLAB
    trace = Trace([array], columns, np.array([0, 0, 8]), np.array([0, 2, 1 << 39, 1, 0, 1, 1 << 20, 1]))
    (one,) = summaries_of(trace)
    assert one.touched_count is not None


def test_a_full_disk_ends_the_log_and_the_header_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(str(tmp_path))
    number = log.array(ARRAY)
    log.access((clock(), clock()), number, 0, (raw.ALL, []), 1)

    def full(descriptor: int, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(raw.os, "write", full)
    log.access((clock(), clock()), number, 0, (raw.ALL, []), 1)
    log.access((clock(), clock()), number, 0, (raw.ALL, []), 1)
    monkeypatch.undo()
    log.close()
    trace = read_logs(tmp_path)
    assert len(trace) == 1
    assert "with 1 accesses, and 2 are missing: the log could not be written (No space left" in trace.notes[0]


def test_other_versions_are_named(tmp_path: Path) -> None:
    path = write_log(tmp_path / "logs")
    content = bytearray(path.read_bytes())
    content[8] = 9
    path.write_bytes(content)
    with pytest.raises(NotATrace, match="version 9 of the raw log; this hyperslab reads version 2"):
        Trace.open(tmp_path / "logs")


def test_a_parquet_file_of_another_version_or_another_kind(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="not installed: pip install 'hyperslab[report]'")
    import pyarrow.parquet as pq

    table = pa.table({"a": [1]})
    pq.write_table(table, tmp_path / "other")
    with pytest.raises(NotATrace, match="not a trace"):
        Trace.open(tmp_path / "other")
    pq.write_table(table.replace_schema_metadata({storing.KEY: json.dumps({"version": 7})}), tmp_path / "seven")
    with pytest.raises(NotATrace, match="version 7; this hyperslab reads 1"):
        Trace.open(tmp_path / "seven")
    (tmp_path / "text").write_text("no trace")
    with pytest.raises(NotATrace, match="not a trace"):
        Trace.open(tmp_path / "text")
    with pytest.raises(FileNotFoundError):
        Trace.open(tmp_path / "nothing")
    (tmp_path / "folder").mkdir()
    with pytest.raises(NotATrace, match="without raw logs"):
        Trace.open(tmp_path / "folder")


def test_large_selections_become_their_bounds() -> None:
    from hyperslab.trace.recording.selecting import lists, points

    kind, numbers = points(np.arange(2 * raw.MOST_NUMBERS).reshape(-1, 2))
    assert (kind, numbers) == (raw.BOUNDS, [0, 1, 2 * raw.MOST_NUMBERS - 1, 2 * raw.MOST_NUMBERS - 1])
    (kind, numbers), size = lists([range(0, 3 * raw.MOST_NUMBERS, 3), (2, 1, 4)])  # type: ignore[list-item]
    assert (kind, numbers, size) == (raw.BOUNDS, [0, 2, 3 * raw.MOST_NUMBERS - 2, 4], 4 * raw.MOST_NUMBERS)
    assert selection.bounds(kind, np.array(numbers), (4 * raw.MOST_NUMBERS, 9)) == (
        [0, 2],
        [3 * raw.MOST_NUMBERS - 3, 5],
    )


@pytest.mark.slow
def test_a_million_accesses_stay_below_50_mb(tmp_path: Path) -> None:
    count = 1_000_000
    generator = np.random.default_rng(1)
    columns = {name: np.zeros(count, dtype) for name, dtype in COLUMNS.items()}
    columns["start_ns"] = np.cumsum(generator.integers(1000, 100_000, count))
    columns["duration_ns"] = generator.integers(1000, 100_000, count)
    columns["kind"][:] = raw.HYPERSLAB
    numbers = np.ones((count, 3, 4), np.int64)
    numbers[:, :, 0] = generator.integers(0, 10_000, (count, 3))
    arrays = [TracedArray("h5py", "/a.h5", "/x", (10_000,) * 3)]
    trace = hs.Trace(arrays, columns, np.arange(count + 1) * 12, numbers.reshape(-1))
    trace.save(tmp_path / "run.trace")
    assert (tmp_path / "run.trace").stat().st_size < 50_000_000
    assert len(hs.Trace.open(tmp_path / "run.trace")) == count

"""Darshan's logs become traces: those that PyDarshan ships, and one whose accesses lie at chunks that h5py finds."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from preloaded_programs import mask

from command_line import run_hyperslab
from hyperslab.errors import MissingLibrary, NotATrace
from hyperslab.trace import darshan_logs
from hyperslab.trace.darshan_logs import read_darshan
from hyperslab.trace.summaries import summaries_of
from hyperslab.trace.trace import Trace

h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")
pytest.importorskip("pyarrow", reason="not installed: pip install 'hyperslab[report]'")


@pytest.fixture
def darshan() -> Any:
    return pytest.importorskip("darshan", reason="PyDarshan 3.5.0 has wheels for Python 3.11 and 3.12 only")


def shipped(darshan: Any) -> list[Path]:
    """The logs that PyDarshan ships, each name once."""
    found = Path(darshan.__file__).parent.rglob("*.darshan")
    return list({path.name: path for path in found if path.stat().st_size}.values())


def test_all_logs_that_pydarshan_ships(darshan: Any, tmp_path: Path) -> None:
    logs = shipped(darshan)
    assert len(logs) >= 10
    for path in logs:
        trace = read_darshan(path)
        trace_path = tmp_path / "run.trace"
        Trace(**vars(trace)).save(trace_path)
        again = Trace.open(trace_path)
        assert len(again) == len(trace), path
        summaries_of(again)
        modules = darshan.DarshanReport(str(path), read_all=False).modules
        assert len(trace) or any("no accesses to files" in note for note in trace.notes)
        if "POSIX" in modules:
            assert nbytes_of(trace) == counted_nbytes(darshan, path), path


def nbytes_of(trace: Trace) -> int:
    return sum(one.nbytes for one in trace)


def counted_nbytes(darshan: Any, path: Path) -> int:
    """The bytes that the POSIX module counted; those of arrays and of extended tracing for files that have them."""
    report = darshan.DarshanReport(str(path), read_all=False)
    total, seen = 0, set()
    if "H5D" in report.modules:
        report.mod_read_all_records("H5D")
        counters = report.records["H5D"].to_df()["counters"]
        total += int(counters["H5D_BYTES_READ"].sum() + counters["H5D_BYTES_WRITTEN"].sum())
        seen |= {report.name_records[one].rpartition(":")[0] for one in counters["id"]}
    for module in ("DXT_POSIX", "DXT_MPIIO"):
        if module in report.modules:
            report.mod_read_all_dxt_records(module, dtype="dict")
            records = [(report.name_records[one["id"]], one) for one in report.records[module].to_numpy()]
            mine = [(name, one) for name, one in records if name not in seen]
            parts = [part for _, one in mine for part in (*one["read_segments"], *one["write_segments"])]
            total += sum(part["length"] for part in parts)
            seen |= {name for name, _ in mine}
    for module, prefix in (("POSIX", "POSIX"), ("MPI-IO", "MPIIO")):
        if module in report.modules:
            report.mod_read_all_records(module)
            counters = report.records[module].to_df()["counters"]
            names = [report.name_records[one] for one in counters["id"]]
            is_new = [name not in seen for name in names]
            sums = counters[f"{prefix}_BYTES_READ"] + counters[f"{prefix}_BYTES_WRITTEN"]
            total += int(sums[is_new].sum())
            seen |= set(names)
    return total


def test_each_access_of_extended_tracing(darshan: Any) -> None:
    (path,) = (path for path in shipped(darshan) if path.name == "dxt.darshan")
    report = darshan.DarshanReport(str(path), read_all=False)
    report.mod_read_all_dxt_records("DXT_POSIX", dtype="dict")
    records = report.records["DXT_POSIX"].to_numpy()
    trace = Trace(**vars(read_darshan(path)))
    for operation, name in (("read", "read_segments"), ("write", "write_segments")):
        expected = sorted(
            (report.name_records[record["id"]], record["rank"], one["offset"], one["length"])
            for record in records
            for one in record[name]
            if one["length"] > 0
        )
        found = [one for one in trace if one.operation == operation and one.array.array == "(bytes)"]
        got = sorted((one.array.file, one.process, one.selection[0], one.selection[2]) for one in found)
        assert got == expected


def test_arrays_of_its_hdf5_module(darshan: Any) -> None:
    (path,) = (path for path in shipped(darshan) if path.name == "ior_hdf5_example.darshan")
    report = darshan.DarshanReport(str(path), read_all=False)
    report.mod_read_all_records("H5D")
    counters = report.records["H5D"].to_df()["counters"]
    trace = Trace(**vars(read_darshan(path)))
    arrays = {one.array for one in trace}
    assert [(one.array, one.shape, one.element_nbytes) for one in arrays] == [("/Dataset-0000.0000", (524288,), 8)]
    assert sorted((one.operation, one.process, one.nbytes) for one in trace) == sorted(
        (operation, rank, nbytes)
        for operation, name in (("read", "H5D_BYTES_READ"), ("write", "H5D_BYTES_WRITTEN"))
        for rank, nbytes in zip(counters["rank"], counters[name], strict=True)
    )
    assert "DXT_ENABLE_IO_TRACE" in trace.notes[0]


def stub(monkeypatch: pytest.MonkeyPatch, path: Path, segments: list[dict[str, Any]]) -> None:
    """A module `darshan` whose only log has these reads of a file."""

    class Records:
        def to_numpy(self) -> list[dict[str, Any]]:
            return [{"id": 7, "rank": 3, "read_segments": segments, "write_segments": []}]

    class DarshanReport:
        def __init__(self, *_: Any, **__: Any) -> None:
            self.modules: dict[str, Any] = {"DXT_POSIX": {}}
            self.metadata = {"job": {"run_time": 2.5}, "exe": "./reader a.h5"}
            self.name_records = {7: str(path)}
            self.records = {"DXT_POSIX": Records()}

        def mod_read_all_dxt_records(self, *_: Any, **__: Any) -> None: ...

    made = types.ModuleType("darshan")
    made.DarshanReport = DarshanReport  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "darshan", made)
    monkeypatch.setattr(darshan_logs, "need", lambda *_: None)


def test_offsets_become_chunks_if_the_file_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        array = file.create_dataset("x", data=np.arange(108).reshape(12, 9), chunks=(4, 4), compression="gzip")
        chunks = [array.id.get_chunk_info(k) for k in (4, 0)]
    segments = [
        {"offset": one.byte_offset, "length": one.size, "start_time": k, "end_time": k + 0.5}
        for k, one in enumerate(chunks)
    ]
    stub(monkeypatch, tmp_path / "a.h5", segments)
    trace = Trace(**vars(read_darshan(tmp_path / "a.h5")))
    assert [(one.array.array, one.array.library, one.process, one.seconds) for one in trace] == [
        ("/x", "Darshan", 3, 0.5)
    ] * 2
    for one, info in zip(trace, chunks, strict=True):
        expected = np.zeros((12, 9), bool)
        row, column = info.chunk_offset
        expected[row : row + 4, column : column + 4] = True
        np.testing.assert_array_equal(mask(one), expected)
    assert trace.program == {"arguments": ["./reader", "a.h5"], "seconds": 2.5}


def test_a_pydarshan_without_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "darshan.py").write_text("raise RuntimeError('Could not find libdarshan-util.so!')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "darshan", raising=False)
    with pytest.raises(MissingLibrary, match=r"use Python 3\.11 or 3\.12 .*libdarshan-util"):
        read_darshan(tmp_path / "a.darshan")


def test_what_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "a.darshan").write_bytes(b"no log")
    with pytest.raises((NotATrace, MissingLibrary)):
        read_darshan(tmp_path / "a.darshan")
    done = run_hyperslab("trace", "import", "missing.darshan", cwd=tmp_path)
    assert done.returncode == 2
    assert "there is no Darshan log missing.darshan" in done.stderr or "hyperslab[darshan]" in done.stderr


def test_the_command(darshan: Any, tmp_path: Path) -> None:
    path = next(path for path in shipped(darshan) if path.name == "ior_hdf5_example.darshan")
    done = run_hyperslab("trace", "import", path, "-o", "a.trace", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "a.trace: 6 accesses to 1 array\n" in done.stderr
    shown = run_hyperslab("trace", "show", "a.trace", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "test123.h5:/Dataset-0000.0000" in shown.stdout
    assert "hyperslab run" not in shown.stdout

"""A trace says which of its files have changed since the program read them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from hyperslab.advise.traced_demands import open_trace
from hyperslab.trace.starting import run_traced
from hyperslab.trace.trace import Trace

h5py = pytest.importorskip("h5py")
pytest.importorskip("pyarrow")

PROGRAM = "import h5py\nwith h5py.File('data.h5') as file: file['x'][2]"


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with h5py.File("data.h5", "w") as file:
        file["x"] = np.arange(100).reshape(10, 10)
    assert run_traced([sys.executable, "-c", PROGRAM], tmp_path / "run.trace").status == 0
    return tmp_path / "run.trace"


def changes(trace: Path) -> list[str]:
    return [note for note in open_trace(trace).trace.notes if "has changed" in note]


def test_a_trace_says_where_its_program_ran(trace: Path) -> None:
    assert Trace.open(trace).program["directory"] == str(trace.parent)


def test_a_file_that_stayed_or_is_gone_has_not_changed(trace: Path) -> None:
    assert changes(trace) == []
    (trace.parent / "data.h5").unlink()
    assert changes(trace) == []


def test_a_file_that_changed_is_named_once(trace: Path) -> None:
    file = trace.parent / "data.h5"
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1))
    (said,) = changes(trace)
    assert str(file) in said
    assert "record the program again" in said
    opened = Trace.open(trace)
    for _ in range(2):  # of a trace in memory, too
        assert len([note for note in open_trace(opened).trace.notes if "has changed" in note]) == 1

"""Traces that were edited or damaged: each opens as what it says, or is `NotATrace`, whatever is wrong inside."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import hyperslab as hs
from hyperslab.cli import app
from hyperslab.errors import HyperslabError, NotATrace
from hyperslab.trace.raw_logs import PROGRAM
from hyperslab.trace.recording import log as raw
from hyperslab.trace.recording.log import Log
from hyperslab.trace.storing import KEY
from hyperslab.trace.table import COLUMNS, AccessTable, TracedArray
from hyperslab.trace.trace import Trace

pa = pytest.importorskip("pyarrow", reason="not installed: pip install 'hyperslab[report]'")
ODD = (None, 5, -1, 1.5, math.nan, 10**30, True, "x", "\x1b[31m", "\ud800", [], [1], [-1], ["a"], [[1]], {}, {"a": 1})
DESCRIBED = {"library": "h5py", "file": "/a.h5", "array": "/x", "shape": [20, 30], "chunks": [5, 5], "shards": None,
             "dtype": "<f8", "element_nbytes": 8, "filters": ["deflate"], "layout": "chunked",
             "cache_nbytes": 1 << 20, "cache_slots": 521, "cache_w0": 0.75, "stored_nbytes": 4000}  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A trace of ten reads."""
    columns = {name: np.zeros(10, dtype) for name, dtype in COLUMNS.items()}
    columns["start_ns"] += np.arange(10) * 1000
    columns["kind"] += raw.HYPERSLAB
    numbers = np.tile([1, 1, 1, 1, 0, 1, 30, 1], 10).astype(np.int64)
    program = {"arguments": ["python", "a.py"], "seconds": 1.5, "exit_status": 0}
    made = (np.arange(11) * 8, numbers, ["", "float64"], ["a note"], program)
    Trace([TracedArray.of(DESCRIBED)], columns, *made).save(tmp_path / "a.trace")
    return tmp_path / "a.trace"


def opened(path: Path) -> str:
    """What becomes of a trace when it is opened and looked at: anything but our own error is a failure."""
    try:
        found = Trace.open(path)
    except NotATrace:
        return "refused"
    list(found)
    assert str(len(found)) in repr(found) + found._repr_html_()
    found.save(path.with_name("again.trace"))
    return "opened"


def places(document: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield above
    inner = (
        document.items() if isinstance(document, dict) else enumerate(document if isinstance(document, list) else ())
    )
    for key, value in inner:
        yield from places(value, (*above, key))


def edited(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    copy = document.copy()
    copy[place[0]] = edited(document[place[0]], place[1:], value)
    return copy


def test_whatever_is_edited_in_its_description(path: Path) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    described = json.loads(table.schema.metadata[KEY])
    found = []
    for place in places(described):
        for value in ODD:
            text = json.dumps(edited(described, place, value))
            pq.write_table(table.replace_schema_metadata({KEY: text}), path)
            found.append(opened(path))
            if found[-1] == "opened" and len(found) % 4 == 0:  # which takes most of the time
                shown = CliRunner().invoke(app, ["trace", "show", str(path)])
                assert isinstance(shown.exception, HyperslabError | SystemExit | None), (place, value)
    assert found.count("refused") > 200
    assert found.count("opened") > 50


@pytest.mark.parametrize("text", ["", "[]", "5", "{}", "[" * 100_000, '{"version": 1}', "\x00"])
def test_a_description_that_is_none(path: Path, text: str) -> None:
    import pyarrow.parquet as pq

    pq.write_table(pq.read_table(path).replace_schema_metadata({KEY: text}), path)
    assert opened(path) == "refused"


def test_columns_of_another_kind(path: Path) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    makes: tuple[Callable[[int], Any], ...] = (
        pa.nulls, lambda n: pa.array(["x"] * n), lambda n: pa.array([1e30] * n), lambda n: pa.array([-1] * n),
        lambda n: pa.array([200] * n), lambda n: pa.array([None, *[1] * (n - 1)]), lambda n: pa.array([[1]] * n),
        lambda n: pa.array([["a"]] * n), lambda n: pa.array([None, *[[1]] * (n - 1)]),
        lambda n: pa.array([{"a": 1}] * n),
    )  # fmt: skip
    for place, name in enumerate(table.column_names):
        for make in makes:
            pq.write_table(table.set_column(place, name, make(len(table))), path)
            opened(path)
        pq.write_table(table.remove_column(place), path)
        assert opened(path) == ("refused" if name in (*COLUMNS, "selection") else "opened")


def test_flipped_bytes_and_cut_files(path: Path) -> None:
    content, draw = path.read_bytes(), random.Random(1)
    found = []
    for number in range(300):
        changed = bytearray(content)
        if number % 3:
            changed[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        else:
            del changed[draw.randrange(len(content)) :]
        path.write_bytes(changed)
        found.append(opened(path))
    assert found.count("refused") > 150


def test_errors_of_the_system_stay_what_they_are(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet as pq

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(pq, "ParquetFile", refused)
    with pytest.raises(PermissionError):
        Trace.open(path)


@pytest.mark.parametrize("said", ["[]", "5", "{", '{"seconds": "x"}', '{"arguments": 5}', "[" * 100_000])
def test_raw_logs_with_an_edited_end(tmp_path: Path, said: str) -> None:
    log = Log(str(tmp_path))
    number = log.array(DESCRIBED)
    log.access((1, 2), number, 0, (raw.ALL, []), 32, "float32")
    log.close()
    (tmp_path / PROGRAM).write_text(said)
    found = Trace.open(tmp_path)
    assert len(found) == 1
    assert "the end of the program was not recorded" in found.notes[0]


@pytest.mark.parametrize("changed", [{"shape": None}, {"shape": 5}, {"chunks": [1]}, {"filters": [1]}, {"dtype": []}])
def test_raw_logs_with_an_array_that_cannot_be(tmp_path: Path, changed: dict[str, Any]) -> None:
    log = Log(str(tmp_path))
    log.array(DESCRIBED)
    number = log.array(DESCRIBED | changed)
    log.access((1, 2), number, 0, (raw.NOTHING, []), 32, "float32")
    log.close()
    found = Trace.open(tmp_path)
    assert len(found) == 0
    assert any("its log is damaged at byte" in note for note in found.notes)


def test_names_that_are_not_utf_8_are_saved(tmp_path: Path) -> None:
    table = AccessTable([TracedArray.of(DESCRIBED | {"file": "/\udcff.h5"})])
    hs.Trace(**vars(table)).save(tmp_path / "a.trace")
    assert Trace.open(tmp_path / "a.trace").arrays[0].file == "/\udcff.h5"

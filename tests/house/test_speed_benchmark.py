"""What benchmarks/read_speed.py says is true: wrong, broken and missing peers are named; verdicts follow the figures.

Its rows run for real, on a small field with fewer chunks; no figure is looked at.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")


@pytest.fixture(autouse=True)
def _benchmarks_can_be_imported(monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield
    for name in [
        name for name, module in sys.modules.items() if str(BENCHMARKS) in str(getattr(module, "__file__", ""))
    ]:
        del sys.modules[name]


def test_peers_that_cannot_be_measured_are_named(tmp_path) -> None:
    from comparison import OURS, Row, Side, measure

    file = tmp_path / "file"
    file.write_bytes(bytes(4096))

    def missing() -> Side:
        raise ImportError("No module named 'absent'")

    sides = {
        OURS: lambda: Side(lambda: np.arange(3)),
        "right": lambda: Side(lambda: np.arange(3)[:, None]),
        "wrong": lambda: Side(lambda: np.arange(1, 4)),
        "other dtype": lambda: Side(lambda: np.arange(3.0)),
        "missing": missing,
        "broken": lambda: Side(lambda: 1 // 0),
    }
    made = measure(Row("row", "work", [file], np.arange(3), sides, {"right": 1e9}), quick=True)
    status = {found["peer"]: found["status"].split(":")[0] for found in made["comparisons"]}
    expected = {"right": "measured", "wrong": "wrong", "other dtype": "wrong"}
    assert status == {**expected, "missing": "not installed", "broken": "failed"}
    assert set(made["seconds"]) == {OURS, "right"}
    assert made["comparisons"][0]["verdict"].startswith("met")


def test_ours_must_be_right(tmp_path) -> None:
    from comparison import OURS, Row, Side, measure

    row = Row("row", "work", [], np.arange(3), {OURS: lambda: Side(lambda: np.zeros(3, int))})
    with pytest.raises(RuntimeError, match="row: hyperslab itself is wrong"):
        measure(row, quick=True)


@pytest.mark.parametrize(
    ("value", "low", "high", "said"),
    [(0.9, 0.8, 0.95, "met"), (0.9, 0.8, 1.1, "met?"), (1.1, 0.9, 1.2, "missed?"), (1.1, 1.05, 1.2, "missed")],
)
def test_verdicts(value, low, high, said) -> None:
    from comparison import verdict

    assert verdict(value, low, high, 1.0) == said
    assert verdict(value, low, high, None) is None


@pytest.mark.parametrize("group", ["deflate", "uncompressed", "parts", "index", "tiny", "collection"])
def test_rows_read_what_is_in_the_files(group, tmp_path) -> None:
    """Each side that is installed reads a small file right."""
    import rows
    from comparison import OURS, _ready
    from files import Files

    files = Files(tmp_path, megabytes=8)
    make = getattr(rows, group)
    for row in make(files, 20) if group in ("index", "tiny", "collection") else make(files):
        ready, absent = _ready(row)
        assert OURS in ready
        assert all(reason.startswith("not installed") for reason in absent.values()), absent


def test_the_table_tells_everything_that_was_measured() -> None:
    from speed_table import RESULTS, markdown

    results = json.loads((RESULTS / "read_speed.json").read_text())
    table = markdown(results)
    for row in results["rows"].values():
        assert row["work"] in table
        for found in row["comparisons"]:
            assert found["peer"] in table

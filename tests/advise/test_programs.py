"""The campaign of `benchmarks/advice_programs.py`: what it draws, and that it runs. No figure is looked at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("h5py")
pytest.importorskip("pyarrow")

import advice_drawn
import advice_table

SMALL = 0.01


def drawn_programs(seed: int, count: int) -> list[advice_drawn.Drawn]:
    pairs = advice_drawn.paired(seed, count)
    return [advice_drawn.draw(number, seed, *pair, scale=SMALL) for number, pair in enumerate(pairs)]


def test_the_same_seed_draws_the_same_programs() -> None:
    assert drawn_programs(3, 12) == drawn_programs(3, 12)
    assert drawn_programs(3, 12) != drawn_programs(4, 12)


def test_all_patterns_are_drawn_with_all_idioms_that_have_them() -> None:
    possible = {(idiom.name, pattern.name) for idiom in advice_drawn.IDIOMS for pattern in advice_drawn.PATTERNS
                if pattern.ndims_for(idiom)}  # fmt: skip
    forty = advice_drawn.paired(1, 40)
    assert {pattern.name for _, pattern in forty} == {pattern.name for pattern in advice_drawn.PATTERNS}
    assert {idiom.name for idiom, _ in forty} == {idiom.name for idiom in advice_drawn.IDIOMS}
    many = advice_drawn.paired(1, len(advice_drawn.IDIOMS) * len(advice_drawn.PATTERNS))
    assert {(idiom.name, pattern.name) for idiom, pattern in many} == possible


def test_each_program_selects_parts_of_its_array_and_other_layouts_fit_it() -> None:
    import advice_programs

    for drawn in drawn_programs(2, 60):
        array = np.broadcast_to(np.zeros((), drawn.dtype), drawn.shape)
        keys = advice_drawn.keys_of(drawn.keys)
        assert drawn.keys in drawn.text
        assert 1 <= len(keys) == drawn.calls
        for key in keys:
            is_list = isinstance(key, np.ndarray) and key.dtype != bool
            assert array[key].size > 0
            assert not is_list or len(np.unique(key)) == len(key), "h5py refuses an index that comes twice"
        others = advice_programs.others(drawn)
        assert len(others) == 6
        for chunks, _ in others.values():
            assert chunks is None or all(0 < a <= b for a, b in zip(chunks, drawn.shape, strict=False))


def test_a_campaign_runs_each_program_on_all_its_layouts(tmp_path: Path, profile_file: Path) -> None:
    import advice_programs

    named = enumerate(advice_drawn.paired(1, 9))
    (number,) = [number for number, (idiom, _) in named if idiom.name == "h5py: d[k]"]
    made = tmp_path / "results.json"
    words = ["--count", "9", "--only", str(number), "--scale", str(SMALL), "--turns", "1", "--files", str(tmp_path)]
    advice_programs.main([*words, "--profile", str(profile_file), "-o", str(made)])
    results = json.loads(made.read_text())
    (found,) = results["programs"]
    assert "refused" not in found, found
    assert "not_written" not in found, found
    assert found["is_deterministic"], "all layouts, with and without us, gave the same elements"
    assert set(found["columns"]) == {"plain", "run"}
    pair = advice_drawn.paired(1, 9)[number]
    others = advice_programs.others(advice_drawn.draw(number, 1, *pair, scale=SMALL))
    assert set(found["layouts"]) - {"advised"} == {"today", *others}
    assert not any(column["problems"] for column in found["columns"].values())
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"], "nothing is left behind"
    assert advice_table.summary(results)
    assert advice_table.line(found)


def row(predicted: float | None, plain: float | None, run: float | None, today: float | None) -> dict[str, Any]:
    columns = {"plain": {"advised_over_best": plain, "advised_over_today": today}}
    columns |= {} if run is None else {"run": {"advised_over_best": run, "advised_over_today": 1.0}}
    ratios = {"predicted_over_measured": predicted, "predicted_over_traced": predicted}
    return {**ratios, "columns": columns, "idiom": "h5py", "pattern": "rows"}


def test_the_shares_count_what_is_missing_as_wrong() -> None:
    rows = [row(1.4, 1.2, 1.3, 0.5), row(0.5, 1.3, None, 1.2), row(None, None, 1.0, None)]
    assert advice_table.shares(rows) == {
        "the program's own clock": (1, 3), "the trace": (1, 3),
        "best, plain": (1, 3), "best, run": (1, 2), "slower": (1, 3),
    }  # fmt: skip


def test_the_tables_name_their_command_and_all_programs() -> None:
    results = {
        "seed": 7, "count": 2, "measured_at": "now", "revision": "abc", "programs": [row(1.4, 1.2, 1.3, 0.5)] * 2,
        "environment": {"cpu": "a processor", "cpu_count": 2, "file_system": "ext4"},
    }  # fmt: skip
    for table in (advice_table.predicted_markdown(results), advice_table.advised_markdown(results)):
        assert "python benchmarks/advice_programs.py --seed 7 --count 2" in table
        assert "| all | 2 |" in table


def test_the_tables_are_written_between_the_marks_of_the_docs() -> None:
    for name in ("advise.md", "cost-model.md"):
        page = (Path(__file__).parents[2] / "docs" / name).read_text()
        once = advice_table.written(page, "| a |")
        assert once.count("| a |") == 1
        assert advice_table.written(once, "| a |") == once

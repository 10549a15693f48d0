"""Tables show what is known, name no winner if intervals overlap, and show unknown values as unknown."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from synthetic import HOSTILE, cases, make_run

from hyperslab.bench.rankings import Ranking
from hyperslab.bench.results import Run
from hyperslab.report import tables, terminal
from hyperslab.report.ratios import ratio_tables
from hyperslab.report.wording import arrays_text, digits, interval_text, nbytes_text, seconds_text


def _ranking(run: Run, case: str, operation: str) -> Ranking:
    found = [r for r in run.rankings if (r.case, r.operation, r.method) == (case, operation, "fair")]
    return found[-1]


def test_a_winner_is_named_with_its_lead(run: Run):
    ranking = _ranking(run, "common-io-21", "write")
    table = tables.ranking_table(ranking)
    assert table.note == "winner: hdf5"
    assert table.rows[0][4] == "1.00 ×"
    assert tables.lead(ranking) == pytest.approx(1.8, rel=0.15)


def test_no_winner_where_intervals_overlap(run: Run):
    ranking = _ranking(run, "common-io-1", "read-all")
    assert ranking.winner is None
    assert tables.lead(ranking) is None
    assert tables.ranking_table(ranking).note.endswith("overlap")
    assert "raw" in tables.outcome(ranking)


def test_too_few_trials_are_said_to_be_too_few(tmp_path: Path, run: Run):
    few = make_run(tmp_path, trials=[t for t in run.trials if t.trial < 2])
    ranking = _ranking(few, "common-io-21", "write")
    assert "too few trials" in tables.outcome(ranking)
    assert tables.ranking_table(ranking).rows[0][2] == "–"


def test_unknown_environment_is_said_never_zero(run: Run):
    rows = dict(tables.environment_table(run).rows)
    assert rows["read ahead (KiB)"] == "unknown"
    assert rows["rotational"] == "no"
    assert rows["memory"] == "17.2 GB"


def test_losses_are_counted_with_their_reasons(run: Run):
    rows = tables.losses_table(run).rows
    by_status = {row[0]: row for row in rows}
    assert by_status["refused"][1] == "pdb"
    assert by_status["refused"][-1] == HOSTILE
    assert by_status["failed"][-2:] == ("1", "killed by signal 9")
    rejected = [t for t in run.trials if t.status == "rejected"]
    assert by_status["rejected"][-2] == str(len(rejected)) != "0"


def test_conversions_list_byte_order_and_lost_precision_only(run: Run):
    rows = {row[0]: row for row in tables.conversions_table(run).rows}
    assert set(rows) == {"fits", "csv"}
    assert rows["csv"][3:5] == ("no", "5e-07")
    assert rows["fits"][2] == ">f4"
    assert rows["fits"][4] == "–"


def test_overhead_is_nulls(run: Run):
    table = tables.overhead_table(run)
    assert {row[0] for row in table.rows} == {"common-io-1"}
    assert {row[1] for row in table.rows} == {"write", "read-all"}


def test_ratios_are_library_over_hdf5_over_all_sizes(run: Run):
    published = [t for t in ratio_tables(run) if t.method == "published"]
    total, alone = published[0].rows["hdf4"]
    assert len(total) == 4
    for metric_ratio in (*total, *alone):
        assert metric_ratio == pytest.approx(5.2, rel=0.15)
    assert {t.case for t in ratio_tables(run)} == {"formats-2002-W1"}
    assert "to" in tables.ratio_sheets(run)[0].rows[0][1]


def test_verdicts_have_all_their_columns(run: Run):
    table = tables.verdict_table(run)
    assert table.rows[1][-1].startswith("reverses: the file was loaded")
    assert len(table.header) == len(table.rows[0]) == 6


def test_terminal_shows_winners_ties_and_verdicts(run: Run):
    text = _printed(run, terminal.print_rankings) + _printed(run, terminal.print_verdicts)
    assert "raw ≈ " in text
    assert "no winner is named" in text
    assert "× netcdf4" in text
    assert "[8192x8192]" in text  # brackets are text, not markup
    assert "1 hold, 1 reverse, 1 undecided" in text


def test_terminal_shows_the_whole_table_of_a_single_case(tmp_path: Path):
    from synthetic import make_trials

    case = cases()[1:2]
    text = _printed(make_run(tmp_path, case, make_trials(case)[:-2]), terminal.print_rankings)
    assert "time / fastest" in text
    assert "winner: hdf5" in text


def test_terminal_without_rankings_says_so(tmp_path: Path):
    assert "There is no ranking" in _printed(make_run(tmp_path, trials=[]), terminal.print_rankings)


def _printed(run: Run, printer: object) -> str:
    stream = StringIO()
    assert callable(printer)
    printer(run, Console(file=stream, width=220, force_terminal=False))
    return stream.getvalue()


def test_words_for_figures():
    assert seconds_text(None) == "–"
    assert seconds_text(0.0123456) == "12.3 ms"
    assert seconds_text(123.4) == "123 s"
    assert interval_text(None, 1.0) == "–"
    assert interval_text(0.0012, 0.0013) == "[1.20 to 1.30] ms"
    assert nbytes_text(None) == "–"
    assert nbytes_text(0) == "0 B"
    assert digits(0.0) == "0.00"
    assert arrays_text("1024", 1, "[('p0', '<f4'), ('p1', '<f4')]") == "1 array of compound of 2 float32 [1024]"
    assert arrays_text("8x8", 3000, "uint16") == "3,000 arrays of uint16 [8 × 8]"
    assert digits(1235.4) == "1,235"


def test_a_tie_of_two_names_both(run: Run):
    ranking = replace(_ranking(run, "common-io-21", "write"), winner=None, tied=("hdf5", "netcdf4"))
    assert tables.outcome(ranking) == "no winner: intervals of hdf5 and netcdf4 overlap"

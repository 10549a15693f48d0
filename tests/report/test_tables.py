"""Tables show what is known, name no winner if intervals overlap, and show unknown values as unknown."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from synthetic import HOSTILE, cases, make_run

from hyperslab.bench.rankings import Ranking
from hyperslab.bench.results import Run
from hyperslab.quantities import digits, interval_text, nbytes_text, seconds_text, set_nbytes_text
from hyperslab.report import tables, terminal
from hyperslab.report.answers import answers_section
from hyperslab.report.ratios import ratio_tables
from hyperslab.report.wording import arrays_text


def _ranking(run: Run, case: str, operation: str) -> Ranking:
    found = [r for r in run.rankings if (r.case, r.operation, r.method) == (case, operation, "fair")]
    return found[-1]


def test_a_leader_is_named_with_its_lead_and_what_to_avoid(run: Run):
    ranking = _ranking(run, "common-io-21", "write")
    table = tables.ranking_table(ranking)
    assert re.fullmatch(
        r"hdf5 leads: netcdf4 takes 1\.\d+ times \(1\.\d+ to \d\.\d+\) as long; avoid zarr3, 4\.\d+ times as long",
        table.note,
    )
    assert table.rows[0][4] == "1.00 ×"
    assert [row[6] for row in table.rows] == ["leads", "slower", "slower"]


def test_contenders_that_may_be_as_fast_are_named(run: Run):
    ranking = _ranking(run, "common-io-1", "read-all")
    assert ranking.winner is None
    assert "may be as fast" in tables.outcome(ranking)
    assert {"raw", "npy"} <= set(ranking.tied)


def test_too_few_rounds_are_said_to_be_too_few(tmp_path: Path, run: Run):
    few = make_run(tmp_path, trials=[t for t in run.trials if t.trial < 2])
    ranking = _ranking(few, "common-io-21", "write")
    assert tables.outcome(ranking) == "hdf5 leads in 2 rounds, too few to be sure"
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


def test_verdicts_have_all_their_columns_and_stand_under_their_study(run: Run):
    found = tables.verdict_tables(run)
    assert ["Ambatipudi" in table.title or "Pourmal" in table.title for table, _ in found] == [True, True]
    table, words = found[0]
    assert words == ["holds", "reverses"]
    assert len(table.header) == len(table.rows[0]) == 5
    assert table.rows[1][-1] == "reverses: the file was loaded before the timer started"


def test_terminal_shows_leaders_open_races_and_verdicts(run: Run):
    text = _printed(run, terminal.print_answers) + _printed(run, terminal.print_verdicts)
    assert "may be as fast" in text
    assert "comparisons are decided (95 %, round by round)" in text
    assert "netcdf4 takes" in text
    assert "[8192 × 8192]" in text  # brackets are text, not markup
    assert "1 holds, 1 reverses, 1 is undecided" in text


def test_terminal_shows_the_whole_table_of_a_single_case(tmp_path: Path):
    from synthetic import make_trials

    case = cases()[1:2]
    text = _printed(make_run(tmp_path, case, make_trials(case)[:-2]), terminal.print_answers)
    assert "time / leader" in text
    assert "hdf5 leads: netcdf4 takes" in text
    assert "Use hdf5 (matched) for these 2 operations, each of which counts the same. This is clear (95 %" in text


def test_terminal_without_rankings_says_so(tmp_path: Path):
    assert "There is no answer" in _printed(make_run(tmp_path, trials=[]), terminal.print_answers)


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
    assert [nbytes_text(one) for one in (999, 999.6, 1000, 999_499, 999_600)] == [
        "999 B", "1.00 kB", "1.00 kB", "999 kB", "1.00 MB",
    ]  # fmt: skip
    assert [set_nbytes_text(one) for one in (512, 1 << 19, 1 << 20, 3 << 29)] == [
        "512 B",
        "512 KiB",
        "1 MiB",
        "1.5 GiB",
    ]
    assert digits(0.0) == "0.00"
    assert arrays_text("1024", 1, "[('p0', '<f4'), ('p1', '<f4')]") == "1 array of compound of 2 float32 [1024]"
    assert arrays_text("8x8", 3000, "uint16") == "3,000 arrays of uint16 [8 × 8]"
    assert digits(1235.4) == "1,235"


def test_notebooks_show_a_run_with_its_answers(run: Run) -> None:
    shown = run._repr_html_()
    assert "leads all operations together" in shown
    assert all(f">{title}</th>" in shown for title in ("study", "method", "conditions", "format", "seconds"))
    assert "common-io-1" in shown


def test_a_run_says_what_it_did_not_measure_and_why(tmp_path: Path):
    """An overloaded machine, stopped in its first rounds: nothing was said but that trials.csv has the reasons."""
    from synthetic import make_trials

    case = cases()[1:2]
    warm_ups = [t for t in make_trials(case)[:-2] if t.trial < 0]
    loaded = [replace(t, load=7.0) for t in warm_ups[:8]]
    text = _printed(make_run(tmp_path, case, loaded), terminal.print_answers)
    assert "Not measured: 48 of 48 cells, because the run ended before their turn (hdf5, netcdf4 and zarr3)" in text
    assert "The machine was overloaded: besides the trials, 6.00 other programs wanted 2 processors (median)" in text
    page = answers_section(make_run(tmp_path, case, loaded))
    assert "Not measured: 48 of 48 cells" in page


def test_operations_without_any_accepted_trial_are_named_with_the_reason(tmp_path: Path):
    """They vanished: what was recommended for “these 2 operations” did not count the third."""
    from synthetic import make_trials

    case = cases()[:1]
    kept = [t for t in make_trials(case)[:-2] if t.cache != "cold"]
    cold = [t for t in make_trials(case)[:-2] if t.cache == "cold" and t.method == "fair"]
    why = "12 % of the file was resident before a cold read"
    made = [*kept, *(replace(t, status="rejected", reason=why) for t in cold)]
    text = _printed(make_run(tmp_path, case, made), terminal.print_answers)
    assert f"rejected: {why}" in text
    assert "No answer counts these, because no format was measured: read everything, matched, cold cache" in text
    assert "overloaded" not in text


def test_an_interrupted_run_says_what_it_knows_so_far(tmp_path: Path):
    from synthetic import make_trials

    case = cases()[1:2]
    made = [t for t in make_trials(case)[:-2] if t.trial < 3 and t.format != "zarr3"]
    text = _printed(make_run(tmp_path, case, made), terminal.print_unfinished)
    assert text.startswith("so far: Use hdf5 (matched) for these 2 operations")
    assert "Not measured: 16 of 48 cells" in text
    assert "32 more have fewer than 6 trials" in text

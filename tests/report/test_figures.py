"""Figures are written, tell readers what they need, and draw nothing that was not measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from synthetic import cases, make_run

from hyperslab.bench.results import Run
from hyperslab.report.bars import bar_panels
from hyperslab.report.figures import draw
from hyperslab.report.lines import bare_metric
from hyperslab.report.palette import in_order, paint_of
from hyperslab.report.views import by_case_and_method, decoded_megabytes, throughput

STATED = ("95 % bootstrap interval", "Cache state:", "Method:", "Conditions:", "Test CPU 9000", "ext4")
UNITS = ("µs per array", "ms per array", "ms", "decoded MB/s", "time for all arrays")
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def paths(run: Run) -> list[Path]:
    return draw(run)


@pytest.mark.slow
def test_every_case_has_its_figures_as_png_and_svg(paths: list[Path]):
    names = {path.stem for path in paths}
    assert {"common-io-1-fair-bars", "common-io-1-published-bars", "common-io-21-fair-scale"} <= names
    assert {"formats-2002-W1-fair-speed", "formats-2002-W1-published-speed"} <= names
    assert "common-io-1-fair-scale" not in names  # one size makes no line
    assert "common-io-21-fair-speed" not in names
    for stem in names:
        png, svg = (paths[0].with_name(stem + suffix) for suffix in (".png", ".svg"))
        assert png.read_bytes().startswith(PNG_SIGNATURE)
        assert "<svg" in svg.read_text()


def test_every_figure_states_units_n_interval_cache_method_conditions_and_machine(paths: list[Path]):
    for path in paths:
        if path.suffix != ".svg":
            continue
        said = _said(path)
        for needed in (*STATED, "n = 7"):
            assert needed in said, (path, needed)
        assert any(unit in said for unit in UNITS), path


def _said(path: Path) -> str:
    """The text of the SVG's elements, without the ends of wrapped lines."""
    from xml.etree import ElementTree

    return " ".join(" ".join(ElementTree.parse(path).getroot().itertext()).split())


def test_published_figures_name_their_statistic_and_faults(run: Run, paths: list[Path]):
    svg = run.directory / "figures" / "common-io-1-published-bars.svg"
    said = _said(svg)
    assert "mean of the trials" in said
    assert "its faults included: the read timer includes printing" in said


def test_null_is_never_drawn(run: Run):
    drawn = [s.format for group in by_case_and_method(run).values() for s in group]
    assert "hdf5" in drawn
    assert "null" not in drawn


def test_reads_have_no_panel_of_writing_although_closing_is_a_phase_of_both(run: Run):
    panels = bar_panels(by_case_and_method(run)["common-io-1", "fair"])
    assert [(p.summaries[0].operation, p.summaries[0].metric) for p in panels] == [
        ("write", "create_total"), ("write", "write_durable"), ("read-all", "open_total"), ("read-all", "read"),
    ]  # fmt: skip


def test_what_was_not_measured_has_no_bar(tmp_path: Path, run: Run):
    trials = [
        replace(t, create_file_seconds=None) if t.format == "csv" else t
        for t in run.trials
        if (t.case, t.method) == ("common-io-1", "fair")
    ]
    panels = bar_panels(by_case_and_method(make_run(tmp_path, trials=trials))["common-io-1", "fair"])
    formats = {panel.summaries[0].metric: {s.format for s in panel.summaries} for panel in panels}
    assert "csv" not in formats["create_total"]
    assert "csv" in formats["write_durable"]


def test_a_run_without_accepted_trials_draws_nothing(tmp_path: Path):
    assert draw(make_run(tmp_path, trials=[])) == []


def test_throughput_is_by_the_methods_own_figure(run: Run):
    group = by_case_and_method(run)["formats-2002-W1", "published"]
    summary = next(s for s in group if s.metric == bare_metric(s))
    megabytes = int(summary.shape.split("x")[0]) ** 2 * 2 / 1e6
    assert decoded_megabytes(summary) == pytest.approx(megabytes)
    assert throughput(summary) == pytest.approx(megabytes / summary.min_seconds)


def test_every_format_has_a_paint_of_its_own():
    from hyperslab.formats import FORMATS

    paints = [paint_of(name) for name in FORMATS]
    assert len({paint.colour for paint in paints}) == len(paints)
    assert in_order({"zarr3", "unheard-of", "raw"}) == ["raw", "zarr3", "unheard-of"]


def test_cases_are_the_three_kinds_of_figure():
    assert [case.name for case in cases()] == ["common-io-1", "common-io-21", "formats-2002-W1"]

"""One self-contained, interactive report.html with all results of a run; it needs no network."""

from __future__ import annotations

from collections import Counter
from html import escape
from importlib.resources import files
from pathlib import Path

from hyperslab.bench.results import JOURNAL_FILE, RUN_FILE, Run
from hyperslab.replacing import replace_with
from hyperslab.report.answer_words import headline
from hyperslab.report.answers import answers_section
from hyperslab.report.captions import machine_text
from hyperslab.report.figures import DIRECTORY
from hyperslab.report.markup import section, table_markup
from hyperslab.report.page_data import page_data
from hyperslab.report.tables import (
    Table,
    boundaries_table,
    conversions_table,
    environment_table,
    losses_table,
    methods_table,
    metrics_table,
    overhead_table,
    ratio_sheets,
    verdict_tables,
)

PAGE = "report.html"
# The page fetches nothing, and this policy tells the browser to run only what is in the page itself.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
FILES = {
    "trials.parquet": "every raw trial with all its phases and proofs",
    "trials.csv": "the same as text, for any tool",
    "summary.csv": "medians and intervals of every metric",
    "rankings.json": "every comparison, with the seconds of each round",
    "recommendations.json": "what to use for each workload",
    "verdicts.json": "the verdicts",
    RUN_FILE: "the request and the machine",
    JOURNAL_FILE: "the journal that --resume reads",
}


def write_page(run: Run) -> Path:
    """Write report.html into the run's directory, and return its path."""
    path = run.directory / PAGE
    replace_with(path, render(run))
    return path


def render(run: Run) -> str:
    """The HTML of the whole page."""
    from plotly.offline import get_plotlyjs

    sections = [part for part in _sections(run) if part]
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(_title(run))}</title><style>{_resource('page.css')}</style></head><body>",
            _contents(run),
            f"<main>{_header(run)}{''.join(sections)}</main>",
            f'<script type="application/json" id="report-data">{page_data(run)}</script>',
            f"<script>{get_plotlyjs()}</script>",
            f"<script>{_resource('page.js')}</script></body></html>",
        ]
    )


def _resource(name: str) -> str:
    return files("hyperslab.report").joinpath(name).read_text(encoding="utf-8")


def _title(run: Run) -> str:
    families = dict.fromkeys(case.family or case.name for case in run.description.cases)
    return f"hyperslab bench: {', '.join(families)}"


def _sections(run: Run) -> list[str]:
    return [
        answers_section(run),
        _figures_section(run),
        section("ratios", "Ratio tables of 2002", "".join(table_markup(t) for t in ratio_sheets(run))),
        _verdicts_section(run),
        section("method", "Method and boundaries", _tables(boundaries_table(), metrics_table(), methods_table(run))),
        section("environment", "Environment", _tables(environment_table(run), overhead_table(run))),
        section(
            "losses", "Trials without figures", _tables(losses_table(run), conversions_table(run)) or _NOTHING_LOST
        ),
        _files_section(run),
    ]


_NOTHING_LOST = "<p>Every trial ran, proved its cache state, and gave back exactly what was written.</p>"


def _tables(*tables: Table) -> str:
    return "".join(table_markup(table) for table in tables)


def _contents(run: Run) -> str:
    entries = [("answer", "The answer")]
    if run.summaries:
        entries.append(("figures", "Figures"))
    if ratio_sheets(run):
        entries.append(("ratios", "Ratio tables of 2002"))
    if run.verdicts:
        entries.append(("verdicts", "Verdicts"))
    entries += [("method", "Method"), ("environment", "Environment"), ("losses", "No figures"), ("files", "Files")]
    links = "".join(f'<li><a href="#{anchor}">{name}</a></li>' for anchor, name in entries)
    return f'<nav aria-label="Contents"><p class="mark">hyperslab</p><ol>{links}</ol></nav>'


def _header(run: Run) -> str:
    asked = run.description
    when = asked.started_at[:16].replace("T", " ")
    return (
        f'<header><p class="kicker">Array I/O benchmark, {escape(when)}, scale {escape(asked.scale)}</p>'
        "<h1>Which format is best for arrays like yours?</h1>"
        f'<p class="lede">{escape(headline(run))}</p><p class="machine">{escape(machine_text(run))}</p></header>'
    )


def _figures_section(run: Run) -> str:
    if not run.summaries:
        return ""
    panes = "".join(
        f'<figure id="figure-{name}" class="pane"><h3>{title}</h3><div class="controls"></div>'
        '<div class="plot"></div><figcaption></figcaption></figure>'
        for name, title in (
            ("bars", "Side by side"),
            ("phases", "Where the time goes"),
            ("scale", "Time against size"),
            ("speed", "Speed curves of 2002"),
        )
    )
    bar = '<div class="chooser" id="chooser"></div>'
    return section("figures", "Figures", f"{bar}{panes}<noscript>The figures need JavaScript.</noscript>")


def _verdicts_section(run: Run) -> str:
    if not run.verdicts:
        return ""
    counts = Counter(verdict.verdict for verdict in run.verdicts)
    buttons = f'<button type="button" data-verdict="" aria-pressed="true">all {len(run.verdicts)}</button>'
    for name in ("holds", "reverses", "depends", "undecided"):
        buttons += f'<button type="button" data-verdict="{name}" aria-pressed="false">{name} {counts[name]}</button>'
    tables = "".join(table_markup(table, kinds=kinds) for table, kinds in verdict_tables(run))
    title = "Do the published conclusions hold?"
    return section("verdicts", title, f'<div class="filter" id="verdict-filter">{buttons}</div>{tables}')


def _files_section(run: Run) -> str:
    rows = "".join(f'<li><a href="{name}">{name}</a> {escape(text)}</li>' for name, text in FILES.items())
    drawn = sorted(path.name for path in (run.directory / DIRECTORY).glob("*.png"))
    pictures = "".join(
        f'<li><a href="{DIRECTORY}/{escape(name)}">{escape(name)}</a>, '
        f'<a href="{DIRECTORY}/{escape(Path(name).stem)}.svg">SVG</a></li>'
        for name in drawn
    )
    inner = f"<p>These files lie in the same folder as this page.</p><ul>{rows}</ul>"
    if pictures:
        inner += f"<details><summary>{len(drawn)} figures for print</summary><ul>{pictures}</ul></details>"
    return section("files", "Raw files", inner)
